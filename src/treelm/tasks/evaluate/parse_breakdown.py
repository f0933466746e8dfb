"""Bracket scores by label and by length of the sentence."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise

from treelm.errors import UsageError
from treelm.tasks.evaluate.parse_accuracy import (
    ParseAccuracy,
    SentenceParseScore,
    precision_recall_f1,
)

#: Longest sentences of all bins but the last, which is open-ended.
LONGEST = (10, 20, 30, 40)


@dataclass(frozen=True, slots=True)
class LabelScore:
    """Scores of the constituents of one label.

    Args:
        label: The label; of labels that the profile treats as equal, the first.
        gold: Number of constituents of the gold trees.
        guessed: Number of constituents of the parses.
        matched: Number in both.
        precision: Share of the guessed ones that match.
        recall: Share of the gold ones that match.
        f1: Harmonic mean of the two.
    """

    label: str
    gold: int
    guessed: int
    matched: int
    precision: float
    recall: float
    f1: float

    def to_record(self) -> dict[str, object]:
        """Return names and values in reading order."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class LengthScore:
    """Scores of the sentences in a bin of lengths.

    Args:
        words: The bin, such as ``11-20`` or ``41+``.
        sentences: Number of sentences in it.
        gold: Number of constituents of their gold trees.
        guessed: Number of constituents of their parses.
        matched: Number in both.
        precision: Share of the guessed ones that match.
        recall: Share of the gold ones that match.
        f1: Harmonic mean of the two.
        exact_match: Share of the sentences whose parse is completely correct.
    """

    words: str
    sentences: int
    gold: int
    guessed: int
    matched: int
    precision: float
    recall: float
    f1: float
    exact_match: float

    def to_record(self) -> dict[str, object]:
        """Return names and values in reading order."""
        return asdict(self)


def by_label(accuracy: ParseAccuracy) -> list[LabelScore]:
    """Return the scores of every label in the gold trees or the parses.

    Those with the most gold constituents come first, then those guessed most often, then by name.

    Examples:
        >>> from treelm.tasks.evaluate.parse_accuracy import evaluate_parses
        >>> from treelm.trees.tree import Tree
        >>> gold = Tree.from_string("(S (NP (X a)) (VP (X b) (NP (X c))))")
        >>> guess = Tree.from_string("(S (NP (X a)) (X b) (NP (X c)))")
        >>> for score in by_label(evaluate_parses([gold], [guess])):
        ...     print(score.label, score.gold, score.guessed, score.matched)
        NP 2 2 2
        S 1 1 1
        VP 1 0 0
    """
    sums: defaultdict[str, list[int]] = defaultdict(lambda: [0, 0, 0])
    for sentence in accuracy.per_sentence:
        for label, *counts in sentence.labels:
            sums[label] = [sum(pair) for pair in zip(sums[label], counts, strict=True)]
    scores = [
        LabelScore(label, gold, guessed, matched, *precision_recall_f1(matched, guessed, gold))
        for label, (gold, guessed, matched) in sums.items()
    ]
    return sorted(scores, key=lambda score: (-score.gold, -score.guessed, score.label))


def by_length(accuracy: ParseAccuracy, longest: Sequence[int] = LONGEST) -> list[LengthScore]:
    """Return the scores of short and long sentences; bins without a sentence are left out.

    The words of a sentence are those that count, so without punctuation. Sentences without any word
    that counts are in their own bin ``0``.

    Args:
        accuracy: The scores.
        longest: Largest number of words in each bin; longer sentences are in one more bin.

    Examples:
        >>> from treelm.tasks.evaluate.parse_accuracy import evaluate_parses
        >>> from treelm.trees.tree import Tree
        >>> tree = Tree.from_string("(S (NP (PRP I)) (VP (VBP sleep)) (. .))")
        >>> [(score.words, score.sentences) for score in by_length(evaluate_parses([tree], [tree]))]
        [('1-10', 1)]
    """
    ends = [0, *longest]
    if any(low >= high for low, high in pairwise(ends)):
        raise UsageError(
            "the longest sentences of bins must have 1 or more words, in increasing order."
        )
    bins: list[list[SentenceParseScore]] = [[] for _ in range(len(ends) + 1)]
    for sentence in accuracy.per_sentence:
        bins[bisect_left(ends, sentence.tokens)].append(sentence)
    names = ["0", *(_bin_name(low + 1, high) for low, high in pairwise(ends)), f"{ends[-1] + 1}+"]
    return [_length_score(name, found) for name, found in zip(names, bins, strict=True) if found]


def _bin_name(shortest: int, longest: int) -> str:
    return str(shortest) if shortest == longest else f"{shortest}-{longest}"


def _length_score(words: str, scores: Sequence[SentenceParseScore]) -> LengthScore:
    gold = sum(score.gold for score in scores)
    guessed = sum(score.guessed for score in scores)
    matched = sum(score.matched for score in scores)
    return LengthScore(
        words,
        len(scores),
        gold,
        guessed,
        matched,
        *precision_recall_f1(matched, guessed, gold),
        exact_match=sum(score.exact for score in scores) / len(scores),
    )
