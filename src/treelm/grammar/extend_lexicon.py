"""A lexicon with more words: their tags from a dictionary, or from the same word in lower case.

A word that the treebank does not know has only a signature, which many words share. Where trees of
a parser show its tags, or the lower-case form of a capitalised word is known, it gets entries of
its own: shares of tags, mixed with those of its signature. What nobody knows of such a word is
which subcategories of a tag it belongs to; they are shared out as those of rare words of the tag.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from treelm.corpus.vocabulary import RESERVED, Vocabulary, VocabularyEntry
from treelm.errors import UsageError
from treelm.grammar.coarse_to_fine import expected_subcategories
from treelm.grammar.grammar import FloatArray, Grammar
from treelm.grammar.lexicon import Lexicon, LongArray, block_starts
from treelm.grammar.tag_dictionary import TagDictionary
from treelm.grammar.tied_entries import with_tied_entries

#: Words whose shares of tags are computed at once.
_AT_ONCE = 4096
#: Rounds in which the weight of lower-case forms is found.
_ROUNDS = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class DictionaryOptions:
    """How words of a dictionary enter a lexicon.

    Args:
        min_count: Words that are rarer in the dictionary are left out.
        weight: Of a token of the dictionary, where one of the treebank has 1.
        signature_weight: Of the signature's shares of tags, in tokens.
        rare: Words of the treebank at or below this count are counted in the dictionary too.
        capitals: Capitalised forms of words that occur so often get entries; 0 for none.
        least: Tags with a smaller share of a word have no entry of their own.
    """

    min_count: int = 2
    weight: float = 0.3
    signature_weight: float = 0.5
    rare: int = 20
    capitals: int = 5
    least: float = 0.01

    def __post_init__(self) -> None:
        for name in ("min_count", "signature_weight", "rare", "capitals", "least"):
            if not getattr(self, name) >= 0:
                raise UsageError(f"{name} is {getattr(self, name)}; it must be 0 or more.")
        if not 0 < self.weight < math.inf:
            raise UsageError(f"weight is {self.weight}; it must be above 0.")


def extended_lexicon(
    grammar: Grammar,
    lexicon: Lexicon,
    dictionary: TagDictionary,
    options: DictionaryOptions | None = None,
) -> Lexicon:
    """Return a lexicon with the words of a dictionary; all ids keep their meaning.

    Args:
        grammar: The grammar of the lexicon.
        lexicon: A lexicon for parsing any text, whose words do not sum to one.
        dictionary: Words with their tags.
        options: Constants.

    Raises:
        UsageError: if the words of the lexicon sum to one.
    """
    if lexicon.normalized:
        raise UsageError(
            "the words of this lexicon sum to one, so it takes no others; a dictionary is for the "
            "berkeley lexicon."
        )
    shares = _TagShares(grammar, lexicon)
    return _Extension(shares, dictionary, options or DictionaryOptions()).lexicon()


class _TagShares:
    """What a lexicon says about the tags of its words and signatures: P(tag | word)."""

    def __init__(self, grammar: Grammar, lexicon: Lexicon) -> None:
        self.lexicon = lexicon
        first_tag = int(grammar.substate_starts[grammar.phrasal])
        expected = expected_subcategories(grammar)[first_tag:]
        #: P(subcategory of a tag).
        self.subcategories: FloatArray = expected / max(expected.sum(), np.finfo(float).tiny)
        #: P(tag) of a word about which nothing is known.
        self.of_no_word = self._by_tag(lexicon.open_scores * self.subcategories)

    def _by_tag(self, values: FloatArray) -> FloatArray:
        sums: FloatArray = np.add.reduceat(values, self.lexicon.tag_starts[:-1])
        return sums

    def __call__(self, ids: LongArray) -> FloatArray:
        """Return the shares of all tags, a row for each id."""
        lexicon = self.lexicon
        found: FloatArray = lexicon.openness[ids][:, None] * self.of_no_word[None, :]
        starts = lexicon.tag_starts
        for row, place in enumerate(ids.tolist()):
            for entry in range(*lexicon.entry_starts[place : place + 2].tolist()):
                tag = int(lexicon.entry_symbols[entry]) - lexicon.phrasal
                scores = lexicon.entry_scores[slice(*lexicon.score_starts[entry : entry + 2])]
                found[row, tag] = scores @ self.subcategories[starts[tag] : starts[tag + 1]]
        sums = found.sum(axis=1, keepdims=True)
        return found / np.where(sums > 0, sums, 1.0)


class _Extension:
    """Words on their way into a lexicon; the columns of tables are tags."""

    def __init__(
        self, shares: _TagShares, dictionary: TagDictionary, options: DictionaryOptions
    ) -> None:
        self.shares, self.dictionary, self.options = shares, dictionary, options
        self.old = shares.lexicon
        self.vocabulary = self.old.vocabulary
        self.known: dict[str, int] = {
            word: place
            for place, word in enumerate(self.vocabulary.symbols)
            if word in self.vocabulary and place
        }
        self.counts = self.vocabulary.counts
        self.tokens = float(sum(int(self.counts[place]) for place in self.known.values()) or 1)
        totals = np.bincount(dictionary.pairs[:, 0], dictionary.tokens, len(dictionary.words))
        #: Words of the dictionary that are frequent enough, by their numbers there.
        self.listed = {
            word: number
            for number, word in enumerate(dictionary.words)
            if totals[number] >= options.min_count and word not in RESERVED
        }
        self.pair_starts = np.searchsorted(
            dictionary.pairs[:, 0], np.arange(len(dictionary.words) + 1)
        )

    def lexicon(self) -> Lexicon:
        """Return the lexicon with all words."""
        options = self.options
        changed = [
            word
            for word in self.listed
            if word in self.known and self.counts[self.known[word]] <= options.rare
        ]
        new = [word for word in self.listed if word not in self.known]
        if options.capitals:
            new += self._capitals(new)
        vocabulary = self._vocabulary(new)
        place = {word: len(self.vocabulary) + number for number, word in enumerate(new)}
        place |= {word: self.known[word] for word in changed}
        rows = [
            self._entries(words, [place[word] for word in words])
            for words in _batches([*changed, *new])
        ]
        return self._assembled(vocabulary, rows)

    def _vocabulary(self, new: list[str]) -> Vocabulary:
        """Return the vocabulary with new words at its end: the treebank has none of them."""
        new.sort()
        old = self.vocabulary
        added = (VocabularyEntry(word, 0) for word in new)
        source = {**old.source, "dictionary": len(new)}
        return Vocabulary((*old.entries, *added), old.profile, old.style, source)

    # -- shares of tags ---------------------------------------------------------------------

    def _capitals(self, new: list[str]) -> list[str]:
        """Return capitalised forms of known words that are not known themselves."""
        have = self.known.keys() | set(new)
        bases = [
            word
            for word, place in self.known.items()
            if self.counts[place] >= self.options.capitals
        ]
        forms = {_capitalised(word) for word in bases}
        return sorted(forms - have)

    def _entries(
        self, words: Sequence[str], places: Sequence[int]
    ) -> tuple[LongArray, LongArray, FloatArray, LongArray, FloatArray]:
        """Return ids, tags and factors of entries; the ids again, and the openness of each."""
        prior = self._prior(words)
        own, before = self._counted(words), self._treebank(places)
        total = prior * self.options.signature_weight + own * self.options.weight + before
        # A word that nobody has seen is what its prior says.
        sums = total.sum(axis=1, keepdims=True)
        shares = np.where(sums > 0, total / np.where(sums > 0, sums, 1.0), prior)
        kept = shares >= self.options.least
        general = self.shares.of_no_word
        kept &= general > 0
        scale = np.maximum(before.sum(axis=1), 1.0) / self.tokens
        rest = np.where(kept, 0.0, shares).sum(axis=1)
        room = np.where(kept, 0.0, general[None, :]).sum(axis=1)
        openness = scale * rest / np.where(room > 0, room, 1.0)
        rows, tags = np.nonzero(kept)
        factors = scale[rows] * shares[rows, tags] / general[tags]
        ids = np.array(places, dtype=np.int64)
        return ids[rows], tags.astype(np.int64), factors, ids, openness

    def _counted(self, words: Sequence[str]) -> FloatArray:
        """Return the tokens of words under each tag in the dictionary."""
        table = np.zeros((len(words), len(self.old.tag_starts) - 1))
        pairs, tokens = self.dictionary.pairs, self.dictionary.tokens
        for row, word in enumerate(words):
            if word in self.listed:
                for pair in range(*self.pair_starts[self.listed[word] :][:2].tolist()):
                    table[row, pairs[pair, 1] - self.old.phrasal] = tokens[pair]
        return table

    def _treebank(self, places: Sequence[int]) -> FloatArray:
        """Return the tokens of words under each tag in the treebank."""
        table = np.zeros((len(places), len(self.old.tag_starts) - 1))
        ids = np.array(places, dtype=np.int64)
        known = np.flatnonzero(ids < len(self.vocabulary))
        counts = self.counts[ids[known]].astype(np.float64)
        table[known] = self.shares(ids[known]) * counts[:, None]
        return table

    def _prior(self, words: Sequence[str]) -> FloatArray:
        """Return what the shapes of words say about their tags, and their lower-case forms."""
        prior = self._signatures(words)
        rows = [row for row, word in enumerate(words) if self._lower(word) is not None]
        if rows and self.options.capitals:
            lower = self.shares(np.array([self._lower(words[row]) for row in rows]))
            weight = self.weight_of_lower_case
            prior[rows] = weight * lower + (1 - weight) * prior[rows]
        return prior

    def _signatures(self, words: Sequence[str]) -> FloatArray:
        names = [self.vocabulary.unknown_symbol(word, 1) for word in words]
        ids = self.vocabulary.ids_of(names).astype(np.int64)
        distinct, inverse = np.unique(ids, return_inverse=True)
        found: FloatArray = self.shares(distinct)[inverse]
        return found

    def _lower(self, word: str) -> int | None:
        """Return the id of the lower-case form of a capitalised word, if that is known."""
        lower = word.lower()
        return self.known.get(lower) if lower != word and _capitalised(lower) == word else None

    @cached_property
    def weight_of_lower_case(self) -> float:
        """The weight of lower-case forms that makes capitalised rare words most probable."""
        words = [
            word
            for word, place in self.known.items()
            if self.counts[place] <= self.options.rare and self._lower(word) is not None
        ]
        if not words:
            return 0.5
        seen = self._treebank([self.known[word] for word in words])
        lower = self.shares(np.array([self._lower(word) for word in words]))
        shape = self._signatures(words)
        weight = 0.5
        for _ in range(_ROUNDS):
            mixed = weight * lower + (1 - weight) * shape
            posterior = weight * lower / np.where(mixed > 0, mixed, 1.0)
            weight = float((seen * posterior).sum() / seen.sum())
        return weight

    # -- scores -----------------------------------------------------------------------------

    def _assembled(
        self,
        vocabulary: Vocabulary,
        rows: Sequence[tuple[LongArray, LongArray, FloatArray, LongArray, FloatArray]],
    ) -> Lexicon:
        """Return the old entries, those of changed words left out, and the new ones."""
        old = self.old
        if not rows:
            return old
        ids, tags, factors, owners, opened = (
            np.concatenate(part) for part in zip(*rows, strict=True)
        )
        openness = np.zeros(len(vocabulary))
        openness[: len(old.openness)] = old.openness
        openness[owners] = opened
        old_ids = np.repeat(np.arange(len(self.vocabulary)), np.diff(old.entry_starts))
        stays = ~np.isin(old_ids, owners)
        all_ids = np.concatenate([old_ids[stays], ids])
        all_tags = np.concatenate([old.entry_symbols[stays] - old.phrasal, tags])
        order = np.lexsort((all_tags, all_ids))
        blocks = [
            old.entry_scores[slice(*old.score_starts[entry : entry + 2])]
            for entry in np.flatnonzero(stays).tolist()
        ]
        blocks += [
            factor * old.open_scores[slice(*old.tag_starts[tag : tag + 2])]
            for tag, factor in zip(tags.tolist(), factors.tolist(), strict=True)
        ]
        entries = np.bincount(all_ids, minlength=len(vocabulary))
        made = replace(
            old,
            vocabulary=vocabulary,
            entry_starts=block_starts(entries),
            entry_symbols=(old.phrasal + all_tags[order]).astype(np.int32),
            entry_scores=np.concatenate([blocks[place] for place in order.tolist()]),
            openness=openness,
            codes=None,
            tied=None,
        )
        return with_tied_entries(made)


def _capitalised(word: str) -> str:
    return word[:1].upper() + word[1:]


def _batches(words: list[str]) -> list[list[str]]:
    return [words[first : first + _AT_ONCE] for first in range(0, len(words), _AT_ONCE)]
