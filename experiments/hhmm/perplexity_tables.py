"""Perplexities of models and mixtures: figure 7 of Schwartz et al. (2011), and its claims."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path

from corpora import TestSet
from scored_text import (
    Scored,
    best_weight,
    crossed_weights,
    grid,
    sentence_oracle,
)
from study_models import BIG, HHMM, NGRAM

from treelm.corpus.vocabulary import Vocabulary
from treelm.tasks.evaluate.comparison import Comparison, compare_log_probs
from treelm.tasks.report.report import Report
from treelm.tasks.report.results import Published, Result
from treelm.view.plots import Point, Series, draw_line_chart

MIXTURES = ((NGRAM, HHMM), (BIG, HHMM), (BIG, NGRAM))
#: How far the weight found by EM may be from the best one of a grid.
GRID_TOLERANCE = 0.02


class PerplexityTables:
    """Collects single models and mixtures, set by set.

    Args:
        report: Where results go.
        vocabulary: The one vocabulary.
        dev: Scores of each model on the dev sentences of the treebanks; may be empty.
        seed: Seed of intervals.
        curves: Folder for tables of perplexity by weight, ``SET.csv``.
    """

    def __init__(
        self,
        report: Report,
        vocabulary: Vocabulary,
        dev: Mapping[str, Scored],
        *,
        seed: int,
        curves: Path,
    ) -> None:
        self._report, self._vocabulary, self._dev = report, vocabulary, dev
        self._seed, self._folder = seed, curves
        self._sets: list[tuple[object, ...]] = []
        self._weights: list[tuple[str, ...]] = []
        self._claims: dict[str, list[tuple[str, ...]]] = {"a": [], "b": []}
        self._grids: list[tuple[str, ...]] = []
        self._curves: list[Series] = []
        self._oracles: list[tuple[str, ...]] = []

    def add(self, data: TestSet, test: Mapping[str, Scored], tuning: Mapping[str, Scored]) -> None:
        """Add one set.

        Args:
            data: The set.
            test: Scores of each model on it.
            tuning: Scores on the dev sentences of the same treebank; empty out of domain.
        """
        words = [word for sentence in data.test for word in sentence]
        unknown = sum(word not in self._vocabulary for word in words)
        blocks = len(set(data.documents.tolist()))
        share = f"{unknown / len(words):.4f}"
        self._sets.append((data.name, len(data.test), len(words), blocks, share))
        for name, found in test.items():
            against = self._compared(data, found, test[NGRAM]) if name == HHMM else None
            self._result(data, name, found, against, NGRAM)
        found_a = self._compared(data, test[HHMM], test[NGRAM])
        self._claim("a", data, HHMM, NGRAM, found=found_a, shown=NGRAM)
        for one, two in MIXTURES:
            self._mixture(data, one, two, test, tuning)
        self._grid(data, test, tuning)

    def write(self) -> None:
        """Report everything but perplexities."""
        report = self._report
        sets = ("set", "sentences", "words", "blocks of the interval", "unknown words")
        report.add_table("Test sets", sets, self._sets)
        compared = ("model", "against", "set", "perplexity ratio", "95 % interval", "p", "lower")
        title = "Claim (a): the HHMM has a lower perplexity than the n-gram of the same trees"
        report.add_table(title, compared, self._claims["a"])
        title = "Claim (b): a mixture with the HHMM has a lower perplexity than its better part"
        report.add_table(title, compared, self._claims["b"])
        weights = ("mixture", "set", "weight of the first", "found on")
        report.add_table("Weights found by EM", weights, self._weights)
        grids = ("set", "text", "EM", "grid of 0.01", "difference", f"within {GRID_TOLERANCE}")
        report.add_table(f"Weight of the {NGRAM} beside the {HHMM}", grids, self._grids)
        oracles = ("set", NGRAM, HHMM, "EM on the set itself", "better model for each sentence")
        report.add_table("If the better model of each sentence were known", oracles, self._oracles)
        picture = draw_line_chart(
            self._curves,
            title=f"{NGRAM} + {HHMM} by the weight of the {NGRAM}",
            x_axis=f"weight of the {NGRAM}",
            y_axis="bits per word",
        )
        report.add_figure(picture, "Mixtures of the n-gram and the HHMM by weight")

    # -- parts of a set ---------------------------------------------------------------------

    def _mixture(
        self,
        data: TestSet,
        one: str,
        two: str,
        test: Mapping[str, Scored],
        tuning: Mapping[str, Scored],
    ) -> None:
        name = f"{one} + {two}"
        better = min((one, two), key=lambda each: test[each].perplexity)
        if data.in_domain:
            weight = best_weight(tuning[one], tuning[two])
            mixtures = {name: test[one].mixed(test[two], weight)}
            self._weights.append((name, data.name, f"{weight:.4f}", "dev set of the treebank"))
        else:
            weights, halves = crossed_weights(test[one], test[two], data.half)
            mixtures = {name: test[one].mixed(test[two], weights)}
            for half, found in zip(("first", "second"), halves, strict=True):
                self._weights.append((name, data.name, f"{found:.4f}", f"{half} half"))
            if self._dev:
                on_dev = best_weight(self._dev[one], self._dev[two])
                mixed = test[one].mixed(test[two], on_dev)
                mixtures[f"{name}, weight of the treebanks"] = mixed
                self._weights.append((name, data.name, f"{on_dev:.4f}", "dev sets of treebanks"))
        for title, mixed in mixtures.items():
            compared = self._compared(data, mixed, test[better])
            self._result(data, title, mixed, compared, better)
            if HHMM in (one, two):
                self._claim("b", data, title, better, found=compared, shown="better part")

    def _grid(
        self, data: TestSet, test: Mapping[str, Scored], tuning: Mapping[str, Scored]
    ) -> None:
        one, two = test[NGRAM], test[HHMM]
        texts = {"test": (one, two)}
        if data.in_domain:
            texts["dev"] = tuning[NGRAM], tuning[HHMM]
        else:
            texts["first half"] = one.part(~data.half), two.part(~data.half)
            texts["second half"] = one.part(data.half), two.part(data.half)
        for text, (first, second) in texts.items():
            weight = best_weight(first, second)
            best = min(grid(first, second, 0.01), key=lambda pair: pair[1])[0]
            passed = "yes" if abs(weight - best) <= GRID_TOLERANCE else "no"
            row = (data.name, text, f"{weight:.4f}", f"{best:.2f}", f"{weight - best:+.4f}", passed)
            self._grids.append(row)
        weight = best_weight(one, two)
        rows = [*grid(one, two), (weight, one.mixed(two, weight).perplexity)]
        self._folder.mkdir(parents=True, exist_ok=True)
        lines = [f"{place:.6g},{value:.6f}\n" for place, value in sorted(rows)]
        path = self._folder / f"{data.name}.csv"
        path.write_text("lambda,ppl\n" + "".join(lines), encoding="utf-8")
        points = [Point(place, math.log2(value)) for place, value in grid(one, two)]
        self._curves.append(Series(data.name, tuple(points)))
        known = (one.perplexity, two.perplexity, rows[-1][1], sentence_oracle(one, two))
        self._oracles.append((data.name, *(f"{value:.2f}" for value in known)))

    def _compared(self, data: TestSet, found: Scored, against: Scored) -> Comparison:
        return compare_log_probs(
            found.sentences,
            against.sentences,
            seed=self._seed,
            lengths=found.lengths - 1,
            documents=data.documents,
        )

    def _result(
        self, data: TestSet, name: str, found: Scored, against: Comparison | None, baseline: str
    ) -> None:
        result = Result(
            table=f"Perplexity, {'in' if data.in_domain else 'out of'} domain",
            model=name,
            metric="perplexity",
            data=data.name,
            value=found.perplexity,
            n=len(found.log_probs),
            interval=found.interval(data.documents, self._seed),
            p=None if against is None else against.p_value,
            baseline=None if against is None else baseline,
        )
        self._report.add_result(result)

    def _claim(
        self, claim: str, data: TestSet, name: str, against: str, *, found: Comparison, shown: str
    ) -> None:
        """Add a row to the table of a claim, and the ratio to the results.

        Args:
            claim: Which claim, a or b.
            data: The set.
            name: The model or mixture.
            against: What it is compared with.
            found: How it compares.
            shown: What the other one is called in the results, the same on every set.
        """
        interval = found.details["perplexity_ratio_interval"]
        assert isinstance(interval, list)  # comparisons of perplexities have one
        ratio = math.exp(-found.difference)
        row = (
            f"{ratio:.4f}",
            f"{interval[0]:.4f} to {interval[1]:.4f}",
            f"{found.p_value:.4f}",
            "yes" if found.difference > 0 else "no",
        )
        self._claims[claim].append((name, against, data.name, *row))
        self._report.add_result(
            Result(
                table="Ratios of perplexities",
                model=f"{name} / {shown}",
                metric="ratio of perplexities",
                data=data.name,
                value=ratio,
                n=int(found.n),
                interval=(interval[0], interval[1]),
                p=found.p_value,
                baseline=against,
                digits=3,
            )
        )


# -- the paper ------------------------------------------------------------------------------

_FIGURE_7 = {
    "1-gram": (1973.57, 3581.72),
    "2-gram": (349.18, 1312.61),
    "3-gram": (262.04, 1264.47),
    "4-gram": (244.12, 1261.37),
    "5-gram": (232.08, 1261.90),
    "HHMM": (384.66, 529.41),
    "5-gram + HHMM": (209.13, 225.48),
    "big 5-gram": (258.35, 312.28),
    "big 5-gram + HHMM": (222.39, 123.10),
    "big 5-gram + 5-gram": (174.88, 321.05),
}
#: Only these two rows are legible in our copy of the paper; the others are from memory.
_READABLE = {"5-gram + HHMM", "big 5-gram + HHMM"}


def figure_7() -> Sequence[Published]:
    """Return the perplexities of Schwartz et al. (2011)."""
    sets = (("in", "WSJ section 23"), ("out of", "Urdu-English dev set"))
    return [
        Published(
            table=f"Perplexity, {side} domain",
            model=model,
            metric="perplexity",
            data=data,
            value=values[place],
            source="Schwartz et al. 2011, figure 7",
            checked=model in _READABLE,
        )
        for model, values in _FIGURE_7.items()
        for place, (side, data) in enumerate(sets)
    ]
