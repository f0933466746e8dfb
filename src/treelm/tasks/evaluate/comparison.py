"""Comparisons of two systems: the values, their difference, and a suitable test."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from treelm.errors import CorpusFormatError
from treelm.signature import signature
from treelm.tasks.evaluate.average_precision import average_precision
from treelm.tasks.evaluate.parse_accuracy import ParseAccuracy
from treelm.tasks.evaluate.parse_intervals import bracket_shares
from treelm.tasks.evaluate.resampling import ROUNDS, Numbers
from treelm.tasks.evaluate.significance import (
    FEWEST_ITEMS,
    LEVEL,
    Difference,
    approximate_randomization,
    bootstrap_sums,
    mcnemar,
    paired_bootstrap,
    paired_bootstrap_average_precision,
    paired_bootstrap_perplexity,
)

#: Number of sentences in a block, for a text without documents.
BLOCK = 50
#: With fewer items than this, intervals and p-values are rough.
ENOUGH_ITEMS = 10

Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Comparison:
    """The result of a comparison.

    Args:
        compared: What was compared, such as ``log_likelihood``.
        test: The test that gave `p_value`.
        a: The value of system A.
        b: The value of system B.
        difference: Of what was compared, A minus B; more is better.
        interval: 95 % interval of the difference.
        p_value: Two-sided.
        n: Number of items.
        items: What the items are.
        details: Further results.
        signature: What made the numbers.
    """

    compared: str
    test: str
    a: float
    b: float
    difference: float
    interval: tuple[float, float]
    p_value: float
    n: int
    items: str
    signature: str
    details: dict[str, object] = field(default_factory=dict)

    @property
    def significant(self) -> bool:
        """Whether the p-value is at most 0.05; never so with fewer than six items."""
        return self.p_value <= LEVEL and self.n >= FEWEST_ITEMS

    @property
    def better(self) -> str:
        """``A`` or ``B`` if the difference is significant, else ``neither``."""
        if not self.significant:
            return "neither"
        return "A" if self.difference > 0 else "B"

    def to_record(self) -> dict[str, object]:
        """Return names and values in reading order."""
        return {
            "compared": self.compared,
            "test": self.test,
            "a": self.a,
            "b": self.b,
            "difference": self.difference,
            "interval": [_json(value) for value in self.interval],
            "p_value": self.p_value,
            "significant": self.significant,
            "better": self.better,
            "n": self.n,
            "items": self.items,
            **self.details,
            "note": _note(self.n),
            "signature": self.signature,
        }


def _note(items: int) -> str | None:
    if items >= ENOUGH_ITEMS:
        return None
    if items < FEWEST_ITEMS:
        return f"only {items} items: too few to call a difference significant"
    return f"only {items} items: interval and p-value are rough"


def _json(value: float) -> float | None:
    return value if math.isfinite(value) else None


# -- log probabilities ----------------------------------------------------------------------


def compare_log_probs(
    a: Numbers,
    b: Numbers,
    *,
    seed: int,
    lengths: npt.NDArray[np.int64] | None = None,
    documents: npt.NDArray[np.int64] | None = None,
    rounds: int = ROUNDS,
) -> Comparison:
    """Compare the log probabilities of sentences by a paired bootstrap over documents.

    Args:
        a: Natural log probabilities by model A, sentence ends included.
        b: The same by model B.
        seed: Seed of the random numbers.
        lengths: Number of words of each sentence; without them there are no perplexities.
        documents: Number of each sentence's document. A text of one document is cut into blocks of
            50 sentences; a text of a single block is cut into sentences.
        rounds: Number of bootstrap samples.
    """
    groups, items = _items(len(a), documents)
    first, second = (_group_sums(values, groups) for values in (a, b))
    sums = [float(values.sum()) for values in (a, b)]
    details: dict[str, object] = {"sentences": len(a)}
    if lengths is None:
        found = paired_bootstrap(
            first, second, statistic="log_likelihood", seed=seed, rounds=rounds
        )
        values = sums
    else:
        tokens = _group_sums(lengths.astype(np.float64) + 1.0, groups)
        found = paired_bootstrap_perplexity(first, second, tokens, seed=seed, rounds=rounds)
        total = float(tokens.sum())
        values = [_exp(-value / total) for value in sums]
        low, high = found.interval
        details |= {
            "tokens": int(lengths.sum()),
            "perplexity_a": values[0],
            "perplexity_b": values[1],
            "perplexity_ratio": _exp(-found.difference),
            "perplexity_ratio_interval": [_json(_exp(-high)), _json(_exp(-low))],
            "log_prob_a": sums[0],
            "log_prob_b": sums[1],
        }
    if np.isfinite(first).all() and np.isfinite(second).all():
        details["p_value_randomization"] = approximate_randomization(
            first, second, seed=seed, rounds=rounds
        )
    return _comparison(found, "paired bootstrap", values, items, details)


def _items(
    number: int, documents: npt.NDArray[np.int64] | None
) -> tuple[npt.NDArray[np.int64], str]:
    if documents is not None and len(documents) != number:
        raise CorpusFormatError(
            f"there are {number} scores and {len(documents)} sentences.", code="E_LENGTH_MISMATCH"
        )
    if documents is not None and len(np.unique(documents)) > 1:
        return np.unique(documents, return_inverse=True)[1].astype(np.int64), "documents"
    if number > BLOCK:
        return np.arange(number) // BLOCK, f"blocks of {BLOCK} sentences"
    return np.arange(number), "sentences"


def _group_sums(values: Numbers, groups: npt.NDArray[np.int64]) -> Numbers:
    weights = np.where(np.isinf(values), 0.0, values)
    sums: Numbers = np.bincount(groups, weights=weights).astype(np.float64)
    sums[groups[np.isinf(values)]] = -np.inf
    return sums


def _exp(value: float) -> float:
    return math.exp(value) if value < 709 else math.inf


# -- answers --------------------------------------------------------------------------------


def compare_answers(
    a: Flags,
    b: Flags,
    *,
    seed: int,
    items: str = "answers",
    rounds: int = ROUNDS,
) -> Comparison:
    """Compare right and wrong answers to the same questions by the exact McNemar test.

    Args:
        a: Whether each answer of system A is correct.
        b: The same for system B.
        seed: Seed of the interval.
        items: What the questions are.
        rounds: Number of bootstrap samples.
    """
    found = paired_bootstrap(
        a.astype(np.float64), b.astype(np.float64), statistic="accuracy", seed=seed, rounds=rounds
    )
    only_a, only_b = int((a & ~b).sum()), int((b & ~a).sum())
    details: dict[str, object] = {
        "accuracy_a": float(a.mean()),
        "accuracy_b": float(b.mean()),
        "only_a_right": only_a,
        "only_b_right": only_b,
        "p_value_bootstrap": found.p_value,
    }
    values = [float(a.mean()), float(b.mean())]
    return _comparison(
        found, "exact McNemar", values, items, details, p_value=mcnemar(only_a, only_b)
    )


def compare_rankings(
    a: tuple[Numbers, Numbers], b: tuple[Numbers, Numbers], *, seed: int, rounds: int = ROUNDS
) -> Comparison:
    """Compare the average precision of scores of good and bad sentences by a paired bootstrap."""
    found = paired_bootstrap_average_precision(a, b, seed=seed, rounds=rounds)
    values = [average_precision(*a), average_precision(*b)]
    details: dict[str, object] = {
        "average_precision_a": values[0],
        "average_precision_b": values[1],
    }
    return _comparison(found, "paired bootstrap within classes", values, "sentences", details)


# -- parses ---------------------------------------------------------------------------------


def compare_parses(
    a: ParseAccuracy, b: ParseAccuracy, *, seed: int, rounds: int = ROUNDS
) -> Comparison:
    """Compare the labelled F1 of two parsers by a paired bootstrap over sentences.

    Args:
        a: Scores of parser A.
        b: Scores of parser B, on the same gold trees in the same order.
        seed: Seed of the random numbers.
        rounds: Number of bootstrap samples.

    Raises:
        CorpusFormatError: ``E_LENGTH_MISMATCH`` if the sentences are not the same, ``E_NO_DATA``
            if there are none.
    """
    counts = [
        np.array([(each.matched, each.guessed, each.gold) for each in scores.per_sentence])
        for scores in (a, b)
    ]
    if not len(counts[0]):
        raise CorpusFormatError("parses: there is nothing to compare.", code="E_NO_DATA")
    if len(counts[0]) != len(counts[1]) or (counts[0][:, 2] != counts[1][:, 2]).any():
        raise CorpusFormatError(
            f"the scores of {len(counts[0])} and {len(counts[1])} sentences are not about the same "
            "gold trees in the same order.",
            code="E_LENGTH_MISMATCH",
        )

    def difference(sums: Numbers) -> Numbers:
        matched_a, guessed_a, matched_b, guessed_b, gold = sums.T
        f1_a = bracket_shares(matched_a, guessed_a, gold)[2]
        return f1_a - bracket_shares(matched_b, guessed_b, gold)[2]

    found = bootstrap_sums(
        np.concatenate([counts[0][:, :2], counts[1]], axis=1).astype(np.float64),
        difference,
        statistic="labelled_f1",
        seed=seed,
        rounds=rounds,
    )
    details: dict[str, object] = {
        f"{name}_{system}": getattr(scores, name)
        for name in ("labelled_precision", "labelled_recall", "exact_match", "tagging_accuracy")
        for system, scores in (("a", a), ("b", b))
    }
    values = [a.labelled_f1, b.labelled_f1]
    return _comparison(found, "paired bootstrap", values, "sentences", details)


def _comparison(
    found: Difference,
    test: str,
    values: Sequence[float],
    items: str,
    details: dict[str, object],
    *,
    p_value: float | None = None,
) -> Comparison:
    return Comparison(
        compared=found.statistic,
        test=test,
        a=values[0],
        b=values[1],
        difference=found.difference,
        interval=found.interval,
        p_value=found.p_value if p_value is None else p_value,
        n=found.n,
        items=items,
        details=details,
        signature=signature(
            task="compare", test=test, rounds=found.rounds, seed=found.seed, n=found.n, items=items
        ).replace(" ", "_"),
    )
