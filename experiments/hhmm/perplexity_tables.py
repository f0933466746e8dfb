"""Perplexities of single models and mixtures, from the log probabilities of words."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from corpora import Sentences, TestSet

from treelm.models.incremental import IncrementalModel
from treelm.models.mixture_weights import fit_weights
from treelm.tasks.evaluate.comparison import compare_log_probs
from treelm.tasks.report.report import Report
from treelm.tasks.report.results import Result
from treelm.view.plots import Point, Series, draw_line_chart

Numbers = npt.NDArray[np.float64]

ROUNDS = 1000


@dataclass(frozen=True)
class Scored:
    """What a model says about the words and ends of sentences."""

    log_probs: Numbers
    starts: npt.NDArray[np.int64]

    @property
    def sentences(self) -> Numbers:
        """Log probability of every sentence."""
        return np.add.reduceat(self.log_probs, self.starts[:-1])

    @property
    def perplexity(self) -> float:
        """Per word and sentence end."""
        return math.exp(-self.log_probs.mean())

    def mixed(self, other: Scored, weight: float) -> Scored:
        """Return the mixture with another model, which has the rest of the weight."""
        with np.errstate(divide="ignore"):
            logs = np.log([weight, 1 - weight])
        return Scored(
            np.logaddexp(self.log_probs + logs[0], other.log_probs + logs[1]), self.starts
        )

    @property
    def blocks(self) -> npt.NDArray[np.int64]:
        """The block of every sentence: 50 of them, fewer where that makes less than 20 blocks."""
        count = len(self.starts) - 1
        return np.arange(count) // max(1, min(50, count // 20))

    def interval(self, seed: int) -> tuple[float, float]:
        """Return the 95 % interval of the perplexity: a bootstrap over blocks of sentences."""
        sums = self.sentences
        lengths = np.diff(self.starts)
        blocks = self.blocks
        total, size = np.bincount(blocks, sums), np.bincount(blocks, lengths)
        drawn = np.random.default_rng(seed).integers(0, len(total), (ROUNDS, len(total)))
        values = np.exp(-total[drawn].sum(axis=1) / size[drawn].sum(axis=1))
        low, high = np.percentile(values, [2.5, 97.5])
        return float(low), float(high)


def score(model: IncrementalModel, sentences: Sentences, threads: int) -> Scored:
    """Return what a model says about sentences."""
    found = model.score_batch(sentences, threads=threads)
    return Scored(found.log_probs, found.starts)


def best_weight(one: Scored, two: Scored) -> float:
    """Return the weight of the first of two models that makes a text most likely, by EM."""
    return fit_weights(np.stack([one.log_probs, two.log_probs], axis=1)).weights[0]


def grid(one: Scored, two: Scored, step: float = 0.1) -> list[tuple[float, float]]:
    """Return the perplexities of mixtures by the weight of the first model."""
    weights = np.linspace(0.0, 1.0, round(1 / step) + 1)
    return [(round(float(w), 3), one.mixed(two, float(w)).perplexity) for w in weights]


@dataclass
class PerplexityStudy:
    """Adds up single models and mixtures on one set after the other."""

    report: Report
    models: Mapping[str, IncrementalModel]
    mixtures: Sequence[tuple[str, str]]
    store: str
    ngram: str
    seed: int
    threads: int

    def run(self, sets: Sequence[TestSet]) -> None:
        """Score every set and report it."""
        unknown = []
        lowered = []
        for data in sets:
            tuning, test = (
                {n: score(m, sentences, self.threads) for n, m in self.models.items()}
                for sentences in (data.tuning, data.test)
            )
            table = f"Perplexity, {'in' if data.in_domain else 'out of'} domain"
            for name, found in test.items():
                self._add(
                    table, name, data, found, test[self.ngram] if name == self.store else None
                )
            for one, two in self.mixtures:
                weight = best_weight(tuning[one], tuning[two])
                mixed = test[one].mixed(test[two], weight)
                better = min((one, two), key=lambda name: test[name].perplexity)
                self._add(table, f"{one} + {two}", data, mixed, test[better], better, weight)
                if self.store in (one, two):
                    lowered.append((f"{one} + {two}", data.name, mixed, test[better]))
            vocabulary = self.models[self.store].vocabulary
            words = [word for sentence in data.test for word in sentence]
            oov = sum(word not in vocabulary for word in words)
            unknown.append((data.name, len(data.test), len(words), f"{oov / len(words):.4f}"))
            self._grid(data, tuning, test)
        columns = ("set", "sentences", "words", "unknown words")
        self.report.add_table("Test sets", columns, unknown)
        self.report.add_table(
            "Does the mixture with the store model lower perplexity?",
            ("mixture", "set", "better part", "mixture perplexity", "lower"),
            [
                (n, d, f"{p.perplexity:.2f}", f"{m.perplexity:.2f}", m.perplexity < p.perplexity)
                for n, d, m, p in lowered
            ],
        )

    def _add(  # noqa: PLR0917 (a row of the table)
        self,
        table: str,
        name: str,
        data: TestSet,
        found: Scored,
        against: Scored | None = None,
        baseline: str | None = None,
        weight: float | None = None,
    ) -> None:
        p = None
        if against is not None:
            lengths = np.diff(found.starts) - 1
            p = compare_log_probs(
                found.sentences,
                against.sentences,
                seed=self.seed,
                lengths=lengths,
                documents=found.blocks,
            ).p_value
            baseline = baseline or self.ngram
        result = Result(
            table=table,
            model=name,
            metric="perplexity",
            data=data.name,
            value=found.perplexity,
            n=len(found.log_probs),
            interval=found.interval(self.seed),
            p=p,
            baseline=baseline,
        )
        self.report.add_result(result)
        if weight is not None:
            self._weights.append((name, data.name, f"{weight:.4f}"))

    def __post_init__(self) -> None:
        self._weights: list[tuple[str, str, str]] = []
        self._grids: list[tuple[str, float, float, float, float]] = []
        self._curves: list[Series] = []

    def _grid(
        self, data: TestSet, tuning: Mapping[str, Scored], test: Mapping[str, Scored]
    ) -> None:
        one, two = self.ngram, self.store
        weight = best_weight(tuning[one], tuning[two])
        fine = min(grid(tuning[one], tuning[two], 0.01), key=lambda pair: pair[1])
        best = min(grid(test[one], test[two], 0.01), key=lambda pair: pair[1])
        found = test[one].mixed(test[two], weight).perplexity
        self._grids.append(
            (data.name, round(weight, 4), fine[0], round(found, 2), round(best[1], 2))
        )
        points = [Point(w, math.log2(value)) for w, value in grid(test[one], test[two])]
        self._curves.append(Series(data.name, tuple(points)))

    def write_weights(self) -> None:
        """Report the weights of mixtures and how perplexity depends on them."""
        self.report.add_table("Weights found by EM", ("mixture", "set", "weight"), self._weights)
        self.report.add_table(
            f"Weight of the {self.ngram} in the mixture with the {self.store}",
            ("set", "EM on tuning text", "grid on tuning text", "perplexity", "best on test text"),
            self._grids,
        )
        picture = draw_line_chart(
            self._curves,
            title=f"{self.ngram} + {self.store} by the weight of the {self.ngram}",
            x_axis=f"weight of the {self.ngram}",
            y_axis="bits per word",
        )
        self.report.add_figure(picture, "Mixtures of the n-gram and the store model by weight")
