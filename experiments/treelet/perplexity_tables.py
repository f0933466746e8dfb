"""Perplexity (Table 2), what makes the difference, and training size."""

from __future__ import annotations

import math

import numpy as np
from experiment import TREEBANKS, Experiment
from tree_scores import (
    FIVE_GRAM,
    MIXTURE,
    TREELET,
    Scores,
)

from published import PERPLEXITY
from treelm.corpus.corpus import TreeCorpus
from treelm.models.mixture_weights import fit_weights
from treelm.models.model import LanguageModel
from treelm.tasks.evaluate.significance import bootstrap_sums, paired_bootstrap_perplexity
from treelm.tasks.report.results import Result
from treelm.view.plots import Point, Series, draw_line_chart


class PerplexityTables(Experiment):
    """How well words are predicted."""

    # -- Table 2 ----------------------------------------------------------------------------

    def perplexity(self) -> None:
        """Measure perplexity on every test set, and that of the mixture."""
        for treebank in TREEBANKS:
            dev = self.score(self.sentences(treebank, "dev"), ks=(max(self.ks),))
            test = self.score(self.sentences(treebank, "test"))
            self._perplexities(treebank, dev, test)

    def _perplexities(self, treebank: str, dev: Scores, test: Scores) -> None:
        table, k = f"Perplexity on {treebank} (Table 2)", max(self.ks)
        tokens = test.lengths + 1
        five = test.by_model[FIVE_GRAM, k]
        weights = fit_weights(
            np.stack([dev.by_model[name, k] for name in (TREELET, FIVE_GRAM)], axis=1)
        ).weights
        mixed = np.logaddexp(
            math.log(weights[0]) + test.by_model[TREELET, k], math.log(weights[1]) + five
        )
        for name, values in {
            **{n: test.by_model[n, k] for n in self.models},
            MIXTURE: mixed,
        }.items():
            difference = paired_bootstrap_perplexity(values, five, tokens, seed=self.seed)
            own = name == FIVE_GRAM
            self.report.add_result(
                Result(
                    table=table,
                    model=name,
                    metric="perplexity with ends",
                    data=treebank,
                    value=math.exp(-values.sum() / tokens.sum()),
                    n=len(values),
                    interval=_perplexity_interval(values, tokens, self.seed),
                    p=None if own else difference.p_value,
                    baseline=None if own else FIVE_GRAM,
                    digits=1,
                )
            )
        self.report.add_table(
            f"Perplexity on {treebank} by trees of a sentence",
            ("model", *(f"k = {each}" for each in self.ks)),
            [
                (
                    name,
                    *(
                        f"{math.exp(-test.by_model[name, each].sum() / tokens.sum()):.1f}"
                        for each in self.ks
                    ),
                )
                for name in self.models
            ],
        )
        known = ~np.isnan(test.repeated)
        over = (test.repeated - test.by_model[TREELET, k])[known]
        self.report.add_table(
            f"About {treebank}",
            ("what", "value"),
            [
                ("sentences of at most 40 words", len(tokens)),
                ("with a tree", test.parsed),
                ("trees of a sentence", f"{test.trees:.0f}"),
                ("weight of TREELET in the mixture", f"{weights[0]:.3f}"),
                (
                    "nats a sentence if equal trees were counted twice",
                    f"{over.mean():.3f}" if known.any() else "-",
                ),
                ("seconds of parsing", test.seconds["parsing"]),
                ("seconds of scoring, all models and lengths", test.seconds["scoring"]),
            ],
        )
        for name, value in PERPLEXITY.items():
            self.published(table, name, "perplexity with ends", value, 2)

    # -- what makes the difference ----------------------------------------------------------

    def ablations(self) -> None:
        """Measure perplexity with one thing changed each, on all development sets."""
        models = {
            TREELET: self.models[TREELET],
            FIVE_GRAM: self.models[FIVE_GRAM],
            **self.training.ablations(),
        }
        k = min(100, max(self.ks))
        sentences = [s for treebank in TREEBANKS for s in self.sentences(treebank, "dev")]
        found = self.score(sentences, models=models, ks=(k,))
        tokens = found.lengths + 1
        base = found.by_model[TREELET, k]
        for name in models:
            values = found.by_model[name, k]
            own = name == TREELET
            difference = paired_bootstrap_perplexity(values, base, tokens, seed=self.seed)
            self.report.add_result(
                Result(
                    table="One thing changed",
                    model=name,
                    metric="perplexity with ends",
                    data="development sets",
                    value=math.exp(-values.sum() / tokens.sum()),
                    n=len(values),
                    interval=_perplexity_interval(values, tokens, self.seed),
                    p=None if own else difference.p_value,
                    baseline=None if own else TREELET,
                    digits=1,
                )
            )

    def curve(self) -> None:
        """Measure perplexity by training size, and where the two curves would cross."""
        trees = [
            line for batch in self.corpus.batches() for line in batch.to_brackets().splitlines()
        ]
        order = np.random.default_rng(self.seed).permutation(len(trees))
        sentences = [s for treebank in TREEBANKS for s in self.sentences(treebank, "dev")]
        k = min(100, max(self.ks))
        models: dict[str, LanguageModel] = {FIVE_GRAM: self.models[FIVE_GRAM]}
        sizes_of = {}
        for share in (64, 16, 4, 1):
            path = self.folder / f"part{share}.mrg"
            with path.open("wb") as out:
                out.writelines(trees[i] + b"\n" for i in order[: max(1, len(trees) // share)])
            corpus = TreeCorpus((path,), threads=self.threads)
            sizes_of[share] = corpus.fingerprint.tokens
            models[f"{TREELET} {share}"] = self.training.treelet(f"1/{share}", corpus)
            models[f"{FIVE_GRAM} {share}"] = self.training.five_gram(corpus)
        found = self.score(sentences, models=models, ks=(k,))
        tokens = found.lengths + 1
        points: dict[str, list[Point]] = {TREELET: [], FIVE_GRAM: []}
        for share, size in sizes_of.items():
            for name, own in points.items():
                values = found.by_model[f"{name} {share}", k]
                low, high = _perplexity_interval(values, tokens, self.seed)
                own.append(Point(size, math.exp(-values.sum() / tokens.sum()), low, high))
        gap = np.log([a.y / b.y for a, b in zip(points[TREELET], points[FIVE_GRAM], strict=True)])
        sizes = np.log([point.x for point in points[TREELET]])
        slope, intercept = np.polyfit(sizes[-3:], gap[-3:], 1)
        crossing = math.exp(-intercept / slope) if slope < 0 else math.inf
        self.report.add_table(
            "Perplexity by training size",
            ("words", TREELET, FIVE_GRAM, "ratio"),
            [
                (int(a.x), f"{a.y:.1f}", f"{b.y:.1f}", f"{a.y / b.y:.3f}")
                for a, b in zip(points[TREELET], points[FIVE_GRAM], strict=True)
            ],
        )
        self.report.add_figure(
            draw_line_chart(
                [Series(name, tuple(own)) for name, own in points.items()],
                title="Perplexity by training size",
                x_axis="training words",
                y_axis="perplexity with ends, development sets",
                log_x=True,
            ),
            f"Straight on from the last three sizes the curves cross at {crossing:.2g} words; the "
            "publication has a tie at 1.3e9.",
        )


def _perplexity_interval(values: np.ndarray, tokens: np.ndarray, seed: int) -> tuple[float, float]:
    found = bootstrap_sums(
        np.stack([values, tokens], axis=1),
        lambda sums: sums[:, 0] / sums[:, 1],
        statistic="log_perplexity",
        seed=seed,
    )
    low, high = found.interval
    return math.exp(-high), math.exp(-low)
