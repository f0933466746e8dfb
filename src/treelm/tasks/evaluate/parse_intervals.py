"""Uncertainty of the bracket scores of a corpus: 95 % intervals by resampling its sentences."""

from __future__ import annotations

import numpy as np

from treelm.errors import CorpusFormatError
from treelm.seeds import generator
from treelm.tasks.evaluate.parse_accuracy import ParseAccuracy
from treelm.tasks.evaluate.resampling import (
    ROUNDS,
    Interval,
    Numbers,
    check_rounds,
    percentile_interval,
    resampled_sums,
)

#: The shares that have an interval, as `ParseAccuracy` calls them.
SHARES = (
    "labelled_precision",
    "labelled_recall",
    "labelled_f1",
    "unlabelled_precision",
    "unlabelled_recall",
    "unlabelled_f1",
    "exact_match",
    "tagging_accuracy",
)

# A stream of random numbers that no test of significance.py uses.
_SENTENCES = 4


def parse_intervals(
    accuracy: ParseAccuracy, *, seed: int, rounds: int = ROUNDS
) -> dict[str, Interval]:
    """Return the 95 % interval of every share of a corpus score.

    The sentences are resampled with replacement `rounds` times, and the shares computed from the
    counts of each sample. The order of the sentences does not matter.

    Args:
        accuracy: The scores.
        seed: Seed of the random numbers.
        rounds: Number of bootstrap samples.

    Raises:
        CorpusFormatError: ``E_NO_DATA`` if there are no sentences.

    Examples:
        >>> from treelm.tasks.evaluate.parse_accuracy import evaluate_parses
        >>> from treelm.trees.tree import Tree
        >>> tree = Tree.from_string("(S (NP (PRP I)) (VP (VBP sleep)))")
        >>> parse_intervals(evaluate_parses([tree], [tree]), seed=1)["labelled_f1"]
        Interval(low=1.0, high=1.0)
    """
    check_rounds(rounds)
    counts = _sentence_counts(accuracy)
    sums = resampled_sums(counts, rounds=rounds, generator=generator(seed, _SENTENCES))
    drawn = _shares_of_sums(sums, len(counts))
    return {name: percentile_interval(drawn[:, at]) for at, name in enumerate(SHARES)}


def bracket_shares(
    matched: Numbers, guessed: Numbers, gold: Numbers
) -> tuple[Numbers, Numbers, Numbers]:
    """Return precision, recall and F1 of many corpora at once.

    The operations are those of `precision_recall_f1` in the same order, so that both give the same
    bits: an interval of equal values must contain the score itself.
    """
    precision, recall = _share(matched, guessed), _share(matched, gold)
    return precision, recall, _share(2 * precision * recall, precision + recall)


def _sentence_counts(accuracy: ParseAccuracy) -> Numbers:
    """Return the counts that are summed over sentences, one row per sentence."""
    if not accuracy.per_sentence:
        raise CorpusFormatError("parses: there is nothing to measure.", code="E_NO_DATA")
    return np.array(
        [
            (
                score.matched,
                score.unlabelled_matched,
                score.guessed,
                score.gold,
                score.exact,
                score.correct_tags,
                score.tokens,
            )
            for score in accuracy.per_sentence
        ],
        dtype=np.float64,
    )


def _shares_of_sums(sums: Numbers, sentences: int) -> Numbers:
    """Return the shares that follow from sums of the counts, in the order of `SHARES`."""
    matched, unlabelled, guessed, gold, exact, correct, tokens = sums.T
    labelled_shares = bracket_shares(matched, guessed, gold)
    unlabelled_shares = bracket_shares(unlabelled, guessed, gold)
    others = exact / sentences, _share(correct, tokens)
    return np.stack([*labelled_shares, *unlabelled_shares, *others], axis=1)


def _share(part: Numbers, whole: Numbers) -> Numbers:
    return np.divide(part, whole, out=np.zeros_like(part), where=whole > 0)
