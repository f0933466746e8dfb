"""From (expected) counts of tagged words to the scores of a lexicon.

Two lexicons: that of the Berkeley parser (Petrov et al. 2006), which scores tags given words and
inverts them, for parsing; and a closed one, whose words sum to one under every tag, for language
modelling.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from treelm.corpus.unknown_words import UNKNOWN, Signatures
from treelm.corpus.vocabulary import Vocabulary
from treelm.errors import UsageError
from treelm.grammar.grammar import FloatArray, IntArray
from treelm.grammar.lexicon import (
    Lexicon,
    LongArray,
    TaggedWords,
    block_starts,
    smooth_subcategories,
)
from treelm.grammar.rare_words import RareWords
from treelm.trees.profile import ProfileSource

#: The vocabulary of a lexicon, and the signature ids of rare words (first in a sentence, later).
LexiconNames = tuple[Vocabulary, npt.NDArray[np.uint32]]


@dataclass(frozen=True, slots=True, kw_only=True)
class LexiconOptions:
    """Constants of the lexicon, with the defaults of the Berkeley parser.

    Args:
        rare: Words at or below this count train the unknown-word model.
        unknown_smoothing: s0, weight of rare words in general relative to those with one signature.
        known_smoothing: s1, weight of rare words in general relative to the word itself.
        smooth_up_to: Words above this count are not smoothed.
        alpha: How far the subcategories of a tag are moved towards their mean.
        beta: Share of the unigram model in the closed lexicon.
        profile: Language profile of the signatures.
    """

    rare: int = 20
    unknown_smoothing: float = 0.5
    known_smoothing: float = 0.1
    smooth_up_to: int = 100
    alpha: float = 0.1
    beta: float = 0.01
    profile: ProfileSource = "english"

    def __post_init__(self) -> None:
        for name in ("rare", "unknown_smoothing", "known_smoothing", "smooth_up_to"):
            if not getattr(self, name) >= 0:
                raise UsageError(f"{name} is {getattr(self, name)}; it must be 0 or more.")
        for name in ("alpha", "beta"):
            if not 0 <= getattr(self, name) < 1:
                raise UsageError(f"{name} is {getattr(self, name)}; it must be between 0 and 1.")


def berkeley_lexicon(
    tagged: TaggedWords,
    counts: FloatArray,
    phrasal: int,
    substates: IntArray,
    options: LexiconOptions | None = None,
    *,
    names: LexiconNames | None = None,
    groups: IntArray | None = None,
) -> Lexicon:
    """Return the lexicon of the Berkeley parser.

    Args:
        tagged: The pairs of word and tag in the training trees.
        counts: Expected count of every subcategory of every pair, as `TaggedWords.starts` orders
            them; for a plain grammar the counts themselves.
        phrasal: The first symbol that is a tag.
        substates: Subcategories of all symbols.
        options: Constants.
        names: Result of `lexicon_names`, where many lexicons of the same words are made.
        groups: The group of every subcategory of all symbols, where smoothing is to stay within
            groups and each score is moved towards the mean of the others.
    """
    options = options or LexiconOptions()
    tagged.check_counts(counts, substates)
    work = _Berkeley(tagged, counts, phrasal, substates, options)
    vocabulary, signature_of = names or work.vocabulary()
    return work.lexicon(vocabulary, signature_of, groups)


def lexicon_names(
    tagged: TaggedWords, phrasal: int, symbols: int, options: LexiconOptions | None = None
) -> LexiconNames:
    """Return the vocabulary of a lexicon and the signatures of rare words.

    Args:
        tagged: The pairs of word and tag in the training trees.
        phrasal: The first symbol that is a tag.
        symbols: Number of symbols.
        options: Constants.
    """
    substates = np.ones(symbols, dtype=np.int32)
    counts = tagged.tokens.astype(np.float64)
    return _Berkeley(tagged, counts, phrasal, substates, options or LexiconOptions()).vocabulary()


class _Berkeley:
    """Counts of one lexicon on their way to scores; places are those of `TaggedWords.starts`."""

    def __init__(
        self,
        tagged: TaggedWords,
        counts: FloatArray,
        phrasal: int,
        substates: IntArray,
        options: LexiconOptions,
    ) -> None:
        self.tagged, self.options = tagged, options
        self.phrasal, self.substates = phrasal, substates
        self.starts = tagged.starts(substates)
        self.sizes = np.diff(self.starts)
        self.tag_starts = block_starts(substates[phrasal:])
        #: Per expected count: its place among the subcategories of all tags.
        self.tag_place = np.repeat(
            self.tag_starts[tagged.pairs[:, 1] - phrasal] - self.starts[:-1], self.sizes
        ) + np.arange(len(counts))
        self.tag_counts = np.bincount(self.tag_place, counts, minlength=int(self.tag_starts[-1]))
        rare = RareWords(tagged, options.rare)
        self.word_counts, self.is_rare = rare.word_counts, rare.is_rare
        # In a text without rare words all of them train the unknown-word model.
        teachers = rare if len(rare.pairs) else RareWords(tagged, int(rare.word_counts.max()))
        first_tag = int(substates[:phrasal].sum())
        self.rare_counts = teachers.by_tag(counts, substates)[first_tag:]
        self.tokens = float(tagged.tokens.sum())
        self.counts = counts.copy()
        rare.tie(self.counts, substates)

    def vocabulary(self) -> LexiconNames:
        """Return words and signatures, and the signature ids of every rare pair (first, later)."""
        tagged, words = self.tagged, self.tagged.words
        known = frozenset(words)
        signatures = Signatures(self.options.profile)
        names = np.full((len(words), 2), UNKNOWN, dtype=object)
        for index in np.flatnonzero(self.is_rare).tolist():
            word = words[index]
            names[index] = (signatures(word, 0, known=known), signatures(word, 1, known=known))
        word_of = tagged.pairs[:, 0]
        rare = self.is_rare[word_of]
        totals: dict[str, int] = {}
        for column, tokens in enumerate((tagged.first_tokens, tagged.tokens - tagged.first_tokens)):
            for name, count in zip(
                names[word_of[rare], column], tokens[rare].tolist(), strict=True
            ):
                if count:
                    totals[name] = totals.get(name, 0) + count
        unknown = totals.pop(UNKNOWN, 0)
        vocabulary = Vocabulary.from_counts(
            dict(zip(words, self.word_counts.astype(np.int64).tolist(), strict=True)),
            signatures={name: count for name, count in totals.items() if name not in known},
            unknown=unknown,
            profile=self.options.profile,
            source={"name": "lexicon", "tokens": int(self.tokens)},
        )
        ids = {symbol: index for index, symbol in enumerate(vocabulary.symbols)}
        return vocabulary, np.array(
            [[ids.get(name, 0) for name in row] for row in names], dtype=np.uint32
        ).reshape(len(words), 2)

    def lexicon(
        self,
        vocabulary: Vocabulary,
        signature_of: npt.NDArray[np.uint32],
        groups: IntArray | None,
    ) -> Lexicon:
        """Return the scores of words and signatures."""
        options, tagged = self.options, self.tagged
        word_of = tagged.pairs[:, 0]
        rare_total = self.rare_counts.sum()
        rare_share = self.rare_counts / rare_total  # P(A_x|U)
        tag_share = self.tag_counts / self.tokens  # P(A_x)
        turn = np.where(tag_share > 0, 1 / np.where(tag_share > 0, tag_share, 1), 0.0)
        # Known words, in the order of the pairs.
        frequent = self.word_counts > options.smooth_up_to
        smoothing = np.where(frequent, 0.0, options.known_smoothing)
        weight = smoothing / (self.word_counts + smoothing)
        word_share = self.word_counts / self.tokens
        place, owner = self.tag_place, np.repeat(word_of, self.sizes)
        shares = (self.counts + smoothing[owner] * rare_share[place]) / (
            self.word_counts + smoothing
        )[owner]
        known = shares * word_share[owner] * turn[place]
        # Signatures: rare words at the beginning of sentences and elsewhere.
        first = tagged.first_tokens / tagged.tokens
        rows, values = [], []
        for column, part in enumerate((first, 1 - first)):
            chosen = np.repeat(self.is_rare[word_of] & (part > 0), self.sizes)
            values.append((self.counts * np.repeat(part, self.sizes))[chosen])
            rows.append(
                signature_of[owner[chosen], column].astype(np.int64) * len(turn) + place[chosen]
            )
        signature_ids, places, sums = _grouped(np.concatenate(rows), np.concatenate(values), turn)
        totals = np.bincount(signature_ids, sums, minlength=len(vocabulary))
        divisor = totals + options.unknown_smoothing
        divisor = np.where(divisor > 0, divisor, 1.0)
        unknown = (
            (sums + options.unknown_smoothing * rare_share[places])
            / divisor[signature_ids]
            / self.tokens
            * turn[places]
        )
        word_ids = vocabulary.ids_of(tagged.words)
        openness = (options.unknown_smoothing / divisor / self.tokens).astype(np.float64)
        openness[totals == 0] = 1 / self.tokens
        openness[word_ids] = weight * word_share
        # Words of the text that look like signatures keep their own scores; <unk> also covers
        # shapes never seen, so it is like rare words in general.
        own = signature_ids
        keep = ~np.isin(own, word_ids) & (own != 0)
        openness[0] = 1 / self.tokens
        return _assemble(
            vocabulary,
            self.phrasal,
            self.substates,
            np.concatenate([word_ids[owner].astype(np.int64), own[keep]]),
            np.concatenate([place, places[keep]]),
            np.concatenate([known, unknown[keep]]),
            openness,
            (rare_share * turn).astype(np.float64),
            alpha=options.alpha,
            groups=groups,
        )


def closed_lexicon(
    tagged: TaggedWords,
    counts: FloatArray,
    phrasal: int,
    substates: IntArray,
    *,
    vocabulary: Vocabulary,
    options: LexiconOptions | None = None,
) -> Lexicon:
    """Return a lexicon whose words sum to one: ``(1 - beta) e(A_x -> w) + beta p(w)``.

    Args:
        tagged: Pairs of word and tag; the words are symbols of the vocabulary, unknown words
            replaced.
        counts: Expected count of every subcategory of every pair.
        phrasal: The first symbol that is a tag.
        substates: Subcategories of all symbols.
        vocabulary: All words.
        options: Constants; `LexiconOptions.beta` must not be 0.
    """
    options = options or LexiconOptions()
    tagged.check_counts(counts, substates)
    if not options.beta:
        raise UsageError("beta is 0, so unseen words would have no probability under any tag.")
    starts = tagged.starts(substates)
    tag_starts = block_starts(substates[phrasal:])
    sizes = np.diff(starts)
    place = np.repeat(tag_starts[tagged.pairs[:, 1] - phrasal] - starts[:-1], sizes) + np.arange(
        len(counts)
    )
    totals = np.bincount(place, counts, minlength=int(tag_starts[-1]))
    own = counts / np.where(totals > 0, totals, 1)[place]
    word_ids = vocabulary.ids_of(tagged.words)
    tokens = np.bincount(
        word_ids[tagged.pairs[:, 0]], tagged.tokens, minlength=len(vocabulary)
    ).astype(np.float64)
    tokens[tokens == 0] = 1.0  # every symbol must have a probability
    unigram = tokens / tokens.sum()
    # A subcategory that explains nothing has only the unigram model.
    open_scores = np.where(totals > 0, 1.0, 1.0 / options.beta)
    owner = word_ids[np.repeat(tagged.pairs[:, 0], sizes)].astype(np.int64)
    scores = (1 - options.beta) * own + options.beta * unigram[owner] * open_scores[place]
    lexicon = _assemble(
        vocabulary,
        phrasal,
        substates,
        owner,
        place,
        scores,
        options.beta * unigram,
        open_scores,
        alpha=options.alpha,
        normalized=True,
    )
    lexicon.check_normalized()
    return lexicon


def _assemble(  # noqa: PLR0917 (the parts of a lexicon)
    vocabulary: Vocabulary,
    phrasal: int,
    substates: IntArray,
    ids: LongArray,
    places: LongArray,
    scores: FloatArray,
    openness: FloatArray,
    open_scores: FloatArray,
    *,
    alpha: float,
    normalized: bool = False,
    groups: IntArray | None = None,
) -> Lexicon:
    """Return a lexicon from scores with the id and the tag's subcategory of each."""
    tag_starts = block_starts(substates[phrasal:])
    tag_of = np.repeat(np.arange(len(tag_starts) - 1), np.diff(tag_starts))
    order = np.lexsort((places, ids))
    ids, places, scores = ids[order], places[order], scores[order]
    firsts = places == tag_starts[tag_of[places]]
    symbols = (phrasal + tag_of[places[firsts]]).astype(np.int32)
    entries = np.bincount(ids[firsts], minlength=len(vocabulary))
    entry_sizes = substates[symbols].astype(np.int64)
    if groups is None:
        scores = smooth_subcategories(scores, block_starts(entry_sizes), alpha)
        open_scores = smooth_subcategories(open_scores, tag_starts, alpha)
    else:
        own = groups[int(substates[:phrasal].sum()) :]
        begins = np.zeros(len(own), dtype=np.bool_)
        begins[tag_starts[:-1]] = True
        begins[1:] |= own[1:] != own[:-1]
        for_scores = np.append(np.flatnonzero(begins[places]), len(places))
        scores = smooth_subcategories(scores, for_scores, alpha, others=True)
        for_open = np.append(np.flatnonzero(begins), len(own))
        open_scores = smooth_subcategories(open_scores, for_open, alpha, others=True)
    return Lexicon(
        vocabulary,
        phrasal,
        substates,
        block_starts(entries),
        symbols,
        scores,
        openness,
        open_scores,
        normalized,
    )


def _grouped(
    keys: LongArray, values: FloatArray, width: FloatArray
) -> tuple[LongArray, LongArray, FloatArray]:
    """Return the distinct rows and columns of keys ``row * width + column``, and their sums."""
    found, inverse = np.unique(keys, return_inverse=True)
    sums = np.bincount(inverse, values, len(found)).astype(np.float64)
    return found // len(width), found % len(width), sums
