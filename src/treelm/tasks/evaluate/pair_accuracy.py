"""Minimal pairs: how often a model prefers the good sentence.

A pair is correct if the good sentence has the higher score. Equal scores are a tie, which counts as
wrong (or half correct) in accuracy, interval and p-value alike, and is reported; so are two
sentences that are both impossible.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import numpy.typing as npt

from treelm.corpus.files import Source, source_name, write_atomically
from treelm.corpus.score_files import ScoreTable, align_pairs, write_outcomes
from treelm.errors import CorpusFormatError
from treelm.models.interface.model import LanguageModel
from treelm.models.interface.perplexity import model_signature
from treelm.signature import signature
from treelm.tasks.evaluate.measured_text import check_not_trained_on
from treelm.tasks.evaluate.pair_files import MinimalPairs
from treelm.tasks.evaluate.resampling import ROUNDS, Interval, Numbers, checked_scores
from treelm.tasks.evaluate.significance import bootstrap_mean_interval, sign_test
from treelm.tasks.evaluate.slr import Measure, measured_scores, score_text

#: What a tie counts as.
Ties = Literal["wrong", "half"]

#: Name of a grouping in results -> the key that gives it, first choice first.
_GROUPINGS = {
    "per_field": ("field",),
    "per_phenomenon": ("linguistics_term", "UID"),
    "per_paradigm": ("UID",),
}


@dataclass(frozen=True, slots=True)
class PairAccuracy:
    """How often the good sentence of a pair was preferred.

    Args:
        accuracy: Share of correct pairs.
        n: Number of pairs.
        ties: Number of pairs with equal scores.
        interval: 95 % bootstrap interval of the accuracy.
        p_value: Exact two-sided binomial test of the accuracy against 1/2, with the same ties.
        infinite: Number of pairs with an impossible sentence.
        ties_count: What a tie counts as, in all of these: ``wrong`` or ``half``.
        unknown_share: Share of pairs with a word that is unknown to the model; None if it was not
            looked at.
    """

    accuracy: float
    n: int
    ties: int
    interval: Interval
    p_value: float
    infinite: int
    ties_count: Ties = "wrong"
    unknown_share: float | None = None

    def to_record(self) -> dict[str, object]:
        """Return names and values in reading order."""
        record: dict[str, object] = {
            "accuracy": self.accuracy,
            "n": self.n,
            "ties": self.ties,
            "ties_count": self.ties_count,
            "interval": list(self.interval),
            "p_value": self.p_value,
            "infinite": self.infinite,
        }
        if self.unknown_share is not None:
            record["unknown_share"] = self.unknown_share
        return record


@dataclass(frozen=True, slots=True, eq=False)
class PairItems:
    """The scores of every pair.

    Args:
        ids: Names of the pairs.
        good: Scores of the good sentences.
        bad: Those of the bad ones.
        groups: Names of groups -> the group of each pair.
        unknown: Which pairs have an unknown word; None if it was not looked at.
    """

    ids: tuple[str, ...]
    good: Numbers
    bad: Numbers
    groups: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    unknown: npt.NDArray[np.bool_] | None = None

    def to_table(self) -> str:
        """Return a table with a row for each pair; ``right`` is what `treelm compare` reads."""
        columns: dict[str, Iterable[object]] = {
            "id": self.ids,
            "good": self.good.tolist(),
            "bad": self.bad.tolist(),
            "right": (self.good > self.bad).astype(int).tolist(),
        }
        if self.unknown is not None:
            columns["unknown"] = self.unknown.astype(int).tolist()
        columns |= self.groups
        rows = zip(*columns.values(), strict=True)
        lines = ["\t".join(columns), *("\t".join(map(str, row)) for row in rows)]
        return "\n".join(lines) + "\n"


@dataclass(frozen=True, slots=True)
class PairResults:
    """The accuracy over all pairs and over groups of them.

    Args:
        overall: Over all pairs.
        groupings: Such as ``per_phenomenon`` -> names of groups -> their accuracy.
        right: For each pair, whether it is correct.
        measure: The measure by which sentences were compared.
        identical: Number of pairs whose sentences are the same.
        signature: What made the numbers.
        items: The scores of every pair.
    """

    overall: PairAccuracy
    groupings: Mapping[str, Mapping[str, PairAccuracy]]
    right: npt.NDArray[np.bool_]
    measure: str
    identical: int = 0
    signature: str | None = None
    settings: Mapping[str, object] = field(default_factory=dict)
    items: PairItems | None = None

    def to_record(self) -> dict[str, object]:
        """Return names and values in reading order."""
        groupings = {
            name: {group: found.to_record() for group, found in groups.items()}
            for name, groups in self.groupings.items()
        }
        record = self.overall.to_record() | {"identical": self.identical, "measure": self.measure}
        return record | dict(self.settings) | groupings | {"signature": self.signature}


def pair_accuracy(
    good: Numbers,
    bad: Numbers,
    *,
    seed: int,
    half_ties: bool = False,
    rounds: int = ROUNDS,
    unknown: npt.NDArray[np.bool_] | None = None,
) -> PairAccuracy:
    """Return how often the good sentences have the higher scores.

    Args:
        good: Scores of the good sentences.
        bad: Scores of the bad ones, in the same order.
        seed: Seed of the interval.
        half_ties: Count a tie as half correct instead of wrong; in the test each second one is then
            a success and the odd one is left out.
        rounds: Number of bootstrap samples.
        unknown: Which pairs have a word that is unknown to the model.

    Examples:
        >>> found = pair_accuracy(np.array([2.0, 1.0, 1.0]), np.array([1.0, 1.0, 0.0]), seed=1)
        >>> found.accuracy, found.ties, found.p_value
        (0.6666666666666666, 1, 1.0)
    """
    first, second = checked_scores(good, "good sentences"), checked_scores(bad, "bad sentences")
    if len(first) != len(second):
        raise CorpusFormatError(
            f"there are {len(first)} good sentences and {len(second)} bad ones; they must come in "
            "pairs.",
            code="E_LENGTH_MISMATCH",
        )
    wins = int(np.count_nonzero(first > second))
    ties = int(np.count_nonzero(first == second))
    losses = len(first) - wins - ties
    successes, failures = (
        (wins + ties // 2, losses + ties // 2) if half_ties else (wins, losses + ties)
    )
    values = (first > second) + (0.5 if half_ties else 0.0) * (first == second)
    return PairAccuracy(
        accuracy=float(values.sum()) / len(values),
        n=len(values),
        ties=ties,
        interval=bootstrap_mean_interval(values, seed=seed, rounds=rounds),
        p_value=sign_test(successes, failures, alternative="two-sided"),
        infinite=int(np.count_nonzero(np.isinf(first) | np.isinf(second))),
        ties_count="half" if half_ties else "wrong",
        unknown_share=None if unknown is None else float(unknown.mean()),
    )


def grouped_pair_accuracy(
    good: Numbers,
    bad: Numbers,
    groups: Mapping[str, tuple[str, ...]],
    *,
    seed: int,
    half_ties: bool = False,
    rounds: int = ROUNDS,
    unknown: npt.NDArray[np.bool_] | None = None,
) -> dict[str, dict[str, PairAccuracy]]:
    """Return the accuracy for every group of every grouping, in order of appearance."""
    found: dict[str, dict[str, PairAccuracy]] = {}
    used: set[str] = set()
    for name, keys in _GROUPINGS.items():
        key = next((key for key in keys if key in groups and key not in used), None)
        if key is None:
            continue
        used.add(key)
        labels = np.array(groups[key])
        found[name] = {
            group: pair_accuracy(
                good[labels == group],
                bad[labels == group],
                seed=seed,
                half_ties=half_ties,
                rounds=rounds,
                unknown=None if unknown is None else unknown[labels == group],
            )
            for group in dict.fromkeys(groups[key])
        }
    return found


def evaluate_pairs(
    model: LanguageModel,
    pairs: MinimalPairs,
    *,
    seed: int,
    measure: Measure = "log_prob",
    half_ties: bool = False,
    drop_identical: bool = False,
    allow_overlap: bool = False,
    rounds: int = ROUNDS,
    threads: int = 1,
) -> PairResults:
    """Return how often a model prefers the good sentence of a pair.

    Args:
        model: Any model that scores.
        pairs: The pairs.
        seed: Seed of the intervals.
        measure: Compare log probabilities, or syntactic log-odds ratios.
        half_ties: Count a tie as half correct instead of wrong.
        drop_identical: Leave out pairs whose sentences are the same, as with translations.
        allow_overlap: Continue if the model was trained on one of the files.
        rounds: Number of bootstrap samples.
        threads: Number of threads.
    """
    if not allow_overlap:
        check_not_trained_on(model, (pairs.good, pairs.bad))
    identical = pairs.identical
    kept = pairs.without_identical() if drop_identical else pairs
    good, bad = (
        measured_scores(
            score_text(model, text, with_unigram=measure == "slr", threads=threads), measure
        )
        for text in (kept.good, kept.bad)
    )
    unknown = kept.with_unknown_words(model.vocabulary)
    return PairResults(
        overall=pair_accuracy(
            good, bad, seed=seed, half_ties=half_ties, rounds=rounds, unknown=unknown
        ),
        groupings=grouped_pair_accuracy(
            good, bad, kept.groups, seed=seed, half_ties=half_ties, rounds=rounds, unknown=unknown
        ),
        right=good > bad,
        items=PairItems(kept.names(), good, bad, kept.groups, unknown),
        measure=measure,
        identical=identical,
        settings={"allow_overlap": True} if allow_overlap else {},
        signature=model_signature(
            model,
            task="pairs",
            measure=measure,
            ties="half" if half_ties else "wrong",
            seed=seed,
            n=len(kept),
        ),
    )


def evaluate_scored_pairs(
    good: ScoreTable,
    bad: ScoreTable,
    *,
    seed: int,
    measure: Measure = "log_prob",
    half_ties: bool = False,
    rounds: int = ROUNDS,
) -> PairResults:
    """Return the accuracy on pairs that were already scored, matched by their ids."""
    tables = align_pairs(good, bad)
    first, second = (measured_scores(table, measure) for table in tables)
    return PairResults(
        overall=pair_accuracy(first, second, seed=seed, half_ties=half_ties, rounds=rounds),
        groupings={},
        right=first > second,
        items=PairItems(tables[0].ids, first, second),
        measure=measure if measure == "slr" else "score",
        signature=signature(
            task="pairs",
            measure=measure,
            ties="half" if half_ties else "wrong",
            seed=seed,
            n=len(first),
        ),
    )


def write_pairs(target: Source, found: PairResults) -> None:
    """Write which pairs are right: 1 or 0 per line, or named ``.tsv`` a table with their scores."""
    if found.items is None or not source_name(target).endswith(".tsv"):
        write_outcomes(target, found.right.tolist())
        return
    with write_atomically(target) as out:
        out.write(found.items.to_table().encode())
