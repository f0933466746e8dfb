"""Bracket scores of parses against gold trees, by evalb's conventions.

Tokens whose gold tag is punctuation and the label ROOT do not count; labels that the profile treats
as equal are one; spans are multisets; precision, recall and F1 are those of the whole corpus. A
sentence without a parse counts against recall. Trees are scored as they are: read them with
`EVALUATION_OPTIONS`, because evalb counts phrases that other readings simplify away. Which tokens
do not count is decided by the gold tags in both trees, whereas evalb uses each tree's own tags and
leaves the sentence out when they differ, as `treelm.tasks.evaluate.evalb` does.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from treelm.characters import visible
from treelm.errors import CorpusFormatError
from treelm.signature import signature
from treelm.trees.constituents import Constituent
from treelm.trees.counted_brackets import bracket_spans, ignored_positions
from treelm.trees.profile import Profile, ProfileSource, load_profile
from treelm.trees.tree import Tree

#: Spellings of quotes as words: treebanks and the tokenizer differ in them.
_QUOTES = frozenset({'"', "``", "''", "`", "'", "“", "”", "‘", "’"})


class LabelCounts(NamedTuple):
    """Counts of the constituents of one label."""

    label: str
    gold: int
    guessed: int
    matched: int


@dataclass(frozen=True, slots=True)
class SentenceParseScore:
    """Counts of one sentence; sums of them give the corpus score.

    Args:
        gold: Number of constituents of the gold tree.
        guessed: Number of constituents of the parse.
        matched: Number in both.
        unlabelled_matched: Number in both, ignoring labels.
        tokens: Number of words that count.
        correct_tags: Number of these with the correct tag.
        parsed: Whether there is a parse.
        labels: The first three numbers for each label that occurs, sorted by label.
        unknown: Number of words that count and are not known to a model.
        correct_unknown_tags: Number of these with the correct tag.
    """

    gold: int
    guessed: int
    matched: int
    unlabelled_matched: int
    tokens: int
    correct_tags: int
    parsed: bool
    labels: tuple[LabelCounts, ...] = field(default=(), repr=False)
    unknown: int = 0
    correct_unknown_tags: int = 0

    @property
    def exact(self) -> bool:
        """Whether the labelled constituents are the same."""
        return self.parsed and self.gold == self.guessed == self.matched


@dataclass(frozen=True, slots=True)
class ParseAccuracy:
    """Scores of a corpus; the shares are between 0 and 1."""

    labelled_precision: float
    labelled_recall: float
    labelled_f1: float
    unlabelled_precision: float
    unlabelled_recall: float
    unlabelled_f1: float
    exact_match: float
    tagging_accuracy: float
    sentences: int
    unparsed: int
    signature: str
    per_sentence: tuple[SentenceParseScore, ...]

    @property
    def unknown_words(self) -> int:
        """Number of words that count and are not known to the model asked about."""
        return sum(score.unknown for score in self.per_sentence)

    @property
    def unknown_tagging_accuracy(self) -> float:
        """Share of these with the correct tag; NaN if there are none."""
        correct = sum(score.correct_unknown_tags for score in self.per_sentence)
        return correct / self.unknown_words if self.unknown_words else math.nan

    @property
    def known_tagging_accuracy(self) -> float:
        """Share of the other words with the correct tag; NaN if there are none."""
        scores = self.per_sentence
        words = sum(score.tokens - score.unknown for score in scores)
        correct = sum(score.correct_tags - score.correct_unknown_tags for score in scores)
        return correct / words if words else math.nan


def score_parse(
    gold: Tree,
    guess: Tree | None,
    profile: ProfileSource = "english",
    *,
    known: Container[str] | None = None,
) -> SentenceParseScore:
    """Return the counts of one sentence.

    Args:
        gold: The gold tree.
        guess: The parser's tree, or None where it found none.
        profile: Says which tokens and labels do not count and which labels are equal.
        known: The words that a model knows, such as its vocabulary; by default all are.

    Raises:
        CorpusFormatError: ``E_YIELD_MISMATCH`` if the two trees have different words.

    Examples:
        >>> gold = Tree.from_string("(S (NP (X a) (X b)) (VP (X c) (NP (X d) (X e))))")
        >>> guess = Tree.from_string("(S (X a) (Z (X b) (VP (X c) (NP (X d) (X e)))))")
        >>> score = score_parse(gold, guess)
        >>> score.matched, score.gold, score.guessed
        (3, 4, 4)
    """
    rules = load_profile(profile)
    ignored = ignored_positions(gold, rules)
    gold_spans = bracket_spans(gold, ignored, rules)
    total = gold_spans.total()
    kept = [i for i in range(len(gold.words)) if i not in ignored]
    words = gold.words
    unknown = [i for i in kept if words[i] not in known] if known is not None else []
    if guess is None:
        labels = _label_counts(gold_spans, Counter())
        return SentenceParseScore(
            total, 0, 0, 0, len(kept), 0, parsed=False, labels=labels, unknown=len(unknown)
        )
    _check_words(gold, guess, rules)
    spans = bracket_spans(guess, ignored, rules)
    gold_tags, tags = gold.tags, guess.tags
    return SentenceParseScore(
        gold=total,
        guessed=spans.total(),
        matched=(gold_spans & spans).total(),
        unlabelled_matched=(_unlabelled(gold_spans) & _unlabelled(spans)).total(),
        tokens=len(kept),
        correct_tags=sum(gold_tags[i].base == tags[i].base for i in kept),
        parsed=True,
        labels=_label_counts(gold_spans, spans),
        unknown=len(unknown),
        correct_unknown_tags=sum(gold_tags[i].base == tags[i].base for i in unknown),
    )


def evaluate_parses(
    gold: Iterable[Tree], guesses: Iterable[Tree | None], profile: ProfileSource = "english"
) -> ParseAccuracy:
    """Return the bracket scores of parses.

    Args:
        gold: The gold trees.
        guesses: The parser's trees in the same order, None where it found none.
        profile: Language profile.
    """
    rules = load_profile(profile)
    pairs = zip(gold, guesses, strict=True)
    scores = tuple(score_parse(right, guess, rules) for right, guess in pairs)
    return summarize(scores, rules)


def summarize(scores: Sequence[SentenceParseScore], profile: Profile) -> ParseAccuracy:
    """Return the corpus scores of sentences already counted."""
    gold = sum(score.gold for score in scores)
    guessed = sum(score.guessed for score in scores)
    labelled = precision_recall_f1(sum(score.matched for score in scores), guessed, gold)
    unlabelled = precision_recall_f1(
        sum(score.unlabelled_matched for score in scores), guessed, gold
    )
    tokens = sum(score.tokens for score in scores)
    return ParseAccuracy(
        *labelled,
        *unlabelled,
        exact_match=_share(sum(score.exact for score in scores), len(scores)),
        tagging_accuracy=_share(sum(score.correct_tags for score in scores), tokens),
        sentences=len(scores),
        unparsed=sum(not score.parsed for score in scores),
        signature=signature(task="parses", profile=profile.short_name, n=len(scores)),
        per_sentence=tuple(scores),
    )


def precision_recall_f1(matched: int, guessed: int, gold: int) -> tuple[float, float, float]:
    """Return precision, recall and their harmonic mean; each is 0 where it is undefined.

    Examples:
        >>> precision_recall_f1(3, 4, 4)
        (0.75, 0.75, 0.75)
    """
    precision, recall = _share(matched, guessed), _share(matched, gold)
    total = precision + recall
    return precision, recall, 2 * precision * recall / total if total else 0.0


def _share(part: int, whole: int) -> float:
    return part / whole if whole else 0.0


def _unlabelled(spans: Counter[Constituent]) -> Counter[tuple[int, int]]:
    bare: Counter[tuple[int, int]] = Counter()
    for (_, start, end), count in spans.items():
        bare[start, end] += count
    return bare


def _label_counts(
    gold: Counter[Constituent], guessed: Counter[Constituent]
) -> tuple[LabelCounts, ...]:
    sums: list[Counter[str]] = []
    for spans in (gold, guessed, gold & guessed):
        sums.append(Counter())
        for (label, _, _), count in spans.items():
            sums[-1][label] += count
    labels = sorted(sums[0].keys() | sums[1].keys())
    return tuple(LabelCounts(label, *(each[label] for each in sums)) for label in labels)


def _is_same_word(word: str, other: str, profile: Profile) -> bool:
    """Return whether words are equal but for how they are spelled, which reading may change."""
    if word == other or (word in _QUOTES and other in _QUOTES):
        return True
    return any(
        spellings.get(word, word) == spellings.get(other, other)
        for spellings in profile.reading.spellings.values()
    )


def _check_words(gold: Tree, guess: Tree, profile: Profile) -> None:
    if gold.words == guess.words:
        return
    pairs = enumerate(zip(gold.words, guess.words, strict=False))
    shorter, longer = sorted((len(gold.words), len(guess.words)))
    differ = next((i for i, pair in pairs if not _is_same_word(*pair, profile)), shorter)
    if differ == longer:
        return
    raise CorpusFormatError(
        f"gold tree and parse have different words from word {differ + 1} on: "
        f'"{visible(" ".join(gold.words[differ : differ + 5]))}" against '
        f'"{visible(" ".join(guess.words[differ : differ + 5]))}". '
        "Are the files in the same order, and was the parser given the gold tokens?",
        code="E_YIELD_MISMATCH",
    )
