"""How a vocabulary is chosen from a corpus: the streaming rule of Pauls & Klein, and others."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import Literal, Protocol

from treelm.corpus.corpus import TextCorpus, TreeSentences
from treelm.corpus.encoder import no_words, open_batches, open_encoder
from treelm.corpus.stream_rule import PAPER_START_AFTER, StreamPass
from treelm.corpus.unknown_words import UNKNOWN, Signatures, SignatureStyle
from treelm.corpus.vocabulary import RESERVED, Entry, Vocabulary
from treelm.errors import CorpusFormatError, TreelmWarning, UsageError
from treelm.seeds import random_uniform
from treelm.trees.profile import ProfileSource, load_profile

RuleName = Literal["stream", "min-count", "top", "all"]

Sentence = tuple[str, ...]


class Sentences(Protocol):
    """A corpus of sentences that can be read more than once."""

    def __iter__(self) -> Iterator[Sentence]:
        """Yield the sentences from the start."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class VocabularyRule:
    """Which words are known.

    Args:
        name: ``stream`` (a new word after the first sentences is replaced by its signature with a
            small probability each time until it is kept), ``min-count``, ``top`` or ``all``.
        size: ``top``: how many words.
        min_count: ``min-count``: smallest count of a word.
        start_after: ``stream``: sentences in which every word is kept; None for the smaller of
            10,000 and half the sentences.
        probability: ``stream``: probability that a new word is replaced.
        seed: ``stream``: seed of the random numbers.
        signatures: Whether rare words become signatures; None for yes with ``stream`` only. The
            others become ``<unk>``.
    """

    name: RuleName = "stream"
    size: int = 60_000
    min_count: int = 2
    start_after: int | None = None
    probability: float = 0.10
    seed: int = 0
    signatures: bool | None = None

    def __post_init__(self) -> None:
        if self.name not in ("stream", "min-count", "top", "all"):
            raise UsageError(
                f'no vocabulary rule "{self.name}"; choose stream, min-count, top or all.'
            )
        if self.size < 1 or self.min_count < 1 or not 0 <= self.probability <= 1:
            raise UsageError("size and min_count must be at least 1, probability between 0 and 1.")
        if self.start_after is not None and self.start_after < 0:
            raise UsageError("start_after must be 0 or more.")

    @property
    def makes_signatures(self) -> bool:
        """Whether words outside the vocabulary become signatures."""
        return self.name == "stream" if self.signatures is None else self.signatures


def build_vocabulary(
    sentences: Sentences,
    rule: VocabularyRule,
    *,
    profile: ProfileSource | None = None,
    style: SignatureStyle = "full",
) -> Vocabulary:
    """Return the vocabulary of a corpus.

    Args:
        sentences: The corpus; a `TextCorpus` or `TreeSentences` is read once and by the kernel,
            others two or three times.
        rule: Which words are known.
        profile: Language profile of the signatures; by default that by which trees are read, and
            english for other text.
        style: How signatures are written.

    Raises:
        VocabularyError: ``E_NO_DATA`` for an empty corpus.
        CorpusFormatError: ``E_RESERVED_SYMBOL`` if the text contains ``<s>`` or ``</s>``.

    Examples:
        >>> corpus = [("a", "b"), ("a", "c")]
        >>> build_vocabulary(corpus, VocabularyRule(name="min-count")).symbols
        ('<unk>', 'a')
    """
    if profile is None:
        profile = "english"
        if isinstance(sentences, TreeSentences):
            profile = sentences.corpus.options.profile
    make_signature = Signatures(profile, style=style)
    if isinstance(sentences, (TextCorpus, TreeSentences)):
        counted = _count_by_kernel(sentences, rule, make_signature)
    else:
        counted = _count_by_definition(sentences, rule, make_signature)
    source: dict[str, object] = {
        "sentences": counted.sentences,
        "tokens": counted.tokens,
        **asdict(rule),
    }
    return Vocabulary.from_counts(
        counted.words,
        signatures=counted.signatures,
        unknown=counted.unknown,
        late=counted.late,
        profile=load_profile(profile),
        style=style,
        source=source,
    )


@dataclass(slots=True)
class _Counted:
    """What a rule makes of a corpus."""

    sentences: int
    tokens: int
    words: dict[str, int]
    signatures: Mapping[str, int] = field(default_factory=dict)
    unknown: int = 0
    late: dict[str, Entry] = field(default_factory=dict)


def _count_by_definition(
    sentences: Sentences, rule: VocabularyRule, make_signature: Signatures
) -> _Counted:
    """Read the sentences two or three times and follow the rule word by word."""
    counts, total = _count(sentences)
    if rule.name == "stream":
        start_after = _start_after(rule, total)
        entries = merge_entries([stream_entries(sentences, rule, start_after)])
        known = frozenset(entries)
        late = {word: entry for word, entry in entries.items() if entry[0] > start_after}
    else:
        known, late = _choose(counts, rule), {}
    replaced = _replaced_counts(sentences, counts, known, late, rule, make_signature)
    words = {word: counts[word] - replaced.before_entry[word] for word in known}
    return _Counted(
        total, counts.total(), words, replaced.signatures, unknown=replaced.unknown, late=late
    )


def _count_by_kernel(
    corpus: TextCorpus | TreeSentences, rule: VocabularyRule, make_signature: Signatures
) -> _Counted:
    """Do the same in one reading of a corpus."""
    encoder = open_encoder()
    stream = StreamPass(
        encoder,
        seed=rule.seed,
        probability=rule.probability,
        start_after=rule.start_after,
        signatures=make_signature.rules if rule.makes_signatures else None,
    )
    for ids, starts, _ in open_batches(corpus, encoder):
        if rule.name == "stream":
            stream.add(ids, starts)
    counts = Counter(dict(zip(encoder.words(), encoder.counts().tolist(), strict=True)))
    if not counts:
        raise no_words(corpus.paths if isinstance(corpus, TextCorpus) else corpus.corpus.paths)
    counted = _Counted(encoder.sentences, encoder.tokens, {})
    if rule.name == "stream":
        return _streamed(stream, counts, _start_after(rule, counted.sentences), counted)
    known = _choose(counts, rule)
    counted.words = {word: counts[word] for word in known}
    signatures: Counter[str] = Counter()
    for (word, count), first in zip(counts.items(), encoder.first_counts().tolist(), strict=True):
        if word in known:
            continue
        if not rule.makes_signatures:
            signatures[UNKNOWN] += count
            continue
        # A signature depends on the place by one thing only: whether it is the first.
        for position, there in ((0, first), (1, count - first)):
            if there:
                signatures[make_signature(word, position, known=known)] += there
    counted.unknown = signatures.pop(UNKNOWN, 0)
    counted.signatures = signatures
    return counted


def _streamed(
    stream: StreamPass, counts: Counter[str], start_after: int, counted: _Counted
) -> _Counted:
    """Fill in what the streaming rule kept and replaced; `counts` is in the order of ids."""
    kernel = stream.finish(start_after)
    signatures = dict(zip(kernel.signatures(), kernel.signature_counts().tolist(), strict=True))
    for (word, count), replaced, sentence, position in zip(
        counts.items(),
        kernel.replaced().tolist(),
        kernel.entry_sentence().tolist(),
        kernel.entry_position().tolist(),
        strict=True,
    ):
        if sentence == 0:  # never kept
            counted.unknown += 0 if stream.makes_signatures else count
            continue
        counted.words[word] = count - replaced if stream.makes_signatures else count
        if sentence > start_after:
            counted.late[word] = (sentence, position)
    counted.unknown += signatures.pop(UNKNOWN, 0)
    counted.signatures = signatures
    return counted


def stream_entries(
    sentences: Iterable[Sentence], rule: VocabularyRule, start_after: int, first_sentence: int = 1
) -> dict[str, Entry]:
    """Return for every word the first place at which a stretch of the corpus keeps it.

    The place is the smallest (sentence, position) whose sentence is within `start_after` or whose
    random number keeps it. The random numbers depend on the place alone, so stretches can be
    processed in any order and anywhere: `merge_entries` takes the smallest place of each word.

    Args:
        sentences: A stretch of the corpus.
        rule: The streaming rule.
        start_after: Sentences in which every word is kept.
        first_sentence: Number of the first sentence of the stretch in the corpus, from 1.
    """
    entries: dict[str, Entry] = {}
    for number, sentence in enumerate(sentences, first_sentence):
        for position, word in enumerate(sentence):
            if word in entries:
                continue
            if (
                number <= start_after
                or random_uniform(rule.seed, number, position) >= rule.probability
            ):
                entries[word] = (number, position)
    return entries


def merge_entries(parts: Iterable[dict[str, Entry]]) -> dict[str, Entry]:
    """Return the smallest place of every word over stretches of a corpus.

    Examples:
        >>> merge_entries([{"a": (2, 0)}, {"a": (1, 5), "b": (3, 1)}])
        {'a': (1, 5), 'b': (3, 1)}
    """
    merged: dict[str, Entry] = {}
    for part in parts:
        for word, entry in part.items():
            merged[word] = min(entry, merged.get(word, entry))
    return merged


def _count(sentences: Iterable[Sentence]) -> tuple[Counter[str], int]:
    counts: Counter[str] = Counter()
    total = 0
    for sentence in sentences:
        counts.update(sentence)
        total += 1
    if not counts:
        raise no_words()
    for symbol in RESERVED & counts.keys():
        raise CorpusFormatError(
            f'the text contains "{symbol}" as a word, which is reserved for sentence boundaries. '
            "Remove it: the models add boundaries themselves.",
            code="E_RESERVED_SYMBOL",
        )
    return counts, total


def _start_after(rule: VocabularyRule, total: int) -> int:
    if rule.start_after is None:
        return min(PAPER_START_AFTER, total // 2)
    if rule.start_after >= total:
        warnings.warn(
            f"the corpus has {total} sentences and words are replaced only after "
            f"{rule.start_after}, so none is. Try a start_after of {total // 2}.",
            TreelmWarning,
            stacklevel=4,
        )
    return rule.start_after


def _choose(counts: Counter[str], rule: VocabularyRule) -> frozenset[str]:
    ranked = sorted(counts, key=lambda word: (-counts[word], word.encode()))
    if rule.name == "top":
        return frozenset(ranked[: rule.size])
    least = rule.min_count if rule.name == "min-count" else 1
    return frozenset(word for word in ranked if counts[word] >= least)


@dataclass(slots=True)
class _Replaced:
    """What the replaced occurrences became, and how many each known word lost."""

    signatures: Counter[str]
    before_entry: Counter[str]
    unknown: int = 0


def _replaced_counts(  # noqa: PLR0917 (one caller)
    sentences: Iterable[Sentence],
    counts: Counter[str],
    known: frozenset[str],
    late: dict[str, Entry],
    rule: VocabularyRule,
    make_signature: Signatures,
) -> _Replaced:
    result = _Replaced(Counter(), Counter())
    if not rule.makes_signatures:
        result.unknown = sum(count for word, count in counts.items() if word not in known)
        return result
    always = known - late.keys()  # never replaced: the common case, checked first
    for number, sentence in enumerate(sentences, 1):
        for position, word in enumerate(sentence):
            if word in always:
                continue
            here = (number, position)
            if word in late:
                if late[word] <= here:
                    continue
                result.before_entry[word] += 1
            lower = word.lower()
            # Words are replaced only after start_after, so a word that is not late is known by now.
            is_known = lower in always or (lower in late and late[lower] < here)
            signature = make_signature(word, position, known={lower} if is_known else ())
            if signature == UNKNOWN:
                result.unknown += 1
            else:
                result.signatures[signature] += 1
    return result


def vocabulary_summary(vocabulary: Vocabulary) -> dict[str, object]:
    """Return how many words and signatures there are, and how many tokens fall on them."""
    kinds = [item.is_signature for item in vocabulary.entries]
    return {
        "words": kinds.count(False) - 1,
        "signatures": kinds.count(True),
        "tokens": int(vocabulary.counts.sum()),
        "unknown": int(vocabulary.counts[0]),
        "in_signatures": sum(item.count for item in vocabulary.entries if item.is_signature),
        "fingerprint": vocabulary.fingerprint,
    }
