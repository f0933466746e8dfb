"""Perplexity (Table 2), the number of trees, and training size."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import numpy.typing as npt
from experiment import Experiment, perplexity
from model_store import (
    FIVE_GRAM,
    MIXTURE,
    MODELS,
    PCFG,
    PLAIN,
    RULE,
    TRANS,
    TREELET,
    Key,
    main_keys,
)
from training_sets import ALL, TREEBANKS
from tree_scores import Numbers, Scores

from published import PERPLEXITY
from treelm.corpus.corpus import TreeSentences
from treelm.models.mixture.weights import fit_weights
from treelm.tasks.evaluate.comparison import compare_log_probs
from treelm.view.plots import Point, Series, draw_line_chart

#: Every model should be better than the one before it.
ORDER = (PCFG, TRANS, RULE, TREELET)
#: What is plotted over training size.
CURVES = (TREELET, PLAIN, FIVE_GRAM)
CURVE_K = 100


class PerplexityTables(Experiment):
    """How well words are predicted."""

    # -- Table 2 ----------------------------------------------------------------------------

    def perplexity(self) -> None:
        """Measure perplexity on every test set, and that of the mixture."""
        mixed = [Key(ALL, name) for name in (TREELET, PLAIN, FIVE_GRAM)]
        for treebank in TREEBANKS:
            dev = self.score(f"{treebank}.dev", self.sentences(treebank, "dev"), mixed, self.dev_ks)
            test = self.score(f"{treebank}.test", self.sentences(treebank, "test"), main_keys())
            self._perplexities(treebank, dev, test)
        self.report.check_overlap(
            TreeSentences(self.sets.corpus(ALL)),
            [words for treebank in TREEBANKS for words in self.sentences(treebank, "test")],
            name="all test sets",
            allow_overlap=self.allow_overlap,
        )

    def _perplexities(self, treebank: str, dev: Scores, test: Scores) -> None:
        table, k = f"Perplexity on {treebank} (Table 2)", max(self.ks)
        documents = self.documents(treebank, "test")
        values = {name: test.values[Key(ALL, name), k] for name in MODELS}
        weights = {}
        for tree_model, name in (
            (TREELET, MIXTURE),
            (PLAIN, f"{PLAIN} + 5-GRAM"),
        ):
            both = (Key(ALL, tree_model), Key(ALL, FIVE_GRAM))
            fitted = fit_weights(np.stack([dev.values[key, k] for key in both], axis=1)).weights
            weights[name] = fitted[0]
            values[name] = np.logaddexp(
                *(math.log(w) + test.values[key, k] for w, key in zip(fitted, both, strict=True))
            )
        for name, own in values.items():
            baseline = None if name == FIVE_GRAM else (FIVE_GRAM, values[FIVE_GRAM])
            self.add_perplexity(
                table,
                name,
                treebank,
                values=own,
                lengths=test.lengths,
                documents=documents,
                baseline=baseline,
            )
        self._ratios(treebank, values, test.lengths, documents)
        self._by_trees(treebank, test)
        self._about(treebank, test, weights)
        for name, value in PERPLEXITY.items():
            self.published(table, name, "perplexity with ends", value, 2)

    def _ratios(
        self,
        treebank: str,
        values: dict[str, Numbers],
        lengths: npt.NDArray[np.int64],
        documents: npt.NDArray[np.int64],
    ) -> None:
        """Show by how much each model is better than the one before it."""
        rows = []
        for worse, better in pairwise(ORDER):
            found = compare_log_probs(
                values[better], values[worse], seed=self.seed, lengths=lengths, documents=documents
            )
            low, high = found.interval
            rows.append(
                (
                    f"{better} / {worse}",
                    f"{math.exp(-found.difference):.3f}",
                    f"{math.exp(-high):.3f} to {math.exp(-low):.3f}",
                    f"{found.p_value:.4f}",
                )
            )
        self.report.add_table(
            f"Perplexity on {treebank}: ratios",
            ("models", "ratio", "95 % interval", "p"),
            rows,
        )

    def _by_trees(self, treebank: str, test: Scores) -> None:
        self.report.add_table(
            f"Perplexity on {treebank} by trees of a sentence",
            ("model", *(f"k = {k}" for k in self.ks)),
            [
                (
                    name,
                    *(
                        f"{perplexity(test.values[Key(ALL, name), k], test.lengths):.1f}"
                        for k in self.ks
                    ),
                )
                for name in MODELS
            ],
        )

    def _about(self, treebank: str, test: Scores, weights: dict[str, float]) -> None:
        k = max(self.ks)
        words = int(test.lengths.sum())
        vocabulary = self.sets.vocabulary()
        outside = sum(
            word not in vocabulary for s in self.sentences(treebank, "test") for word in s
        )
        known = ~np.isnan(test.repeated)
        over = (test.repeated - test.values[Key(ALL, TREELET), k])[known]
        per_word = [
            (f"{name}, ends not counted", f"{math.exp(-test.values[key, k].sum() / words):.1f}")
            for name in MODELS
            for key in (Key(ALL, name),)
        ]
        self.report.add_table(
            f"About {treebank}",
            ("what", "value"),
            [
                ("sentences, all lengths", len(test.lengths)),
                ("words", words),
                ("words outside the vocabulary", f"{outside / words:.2%}"),
                ("sentences without a tree", test.fallbacks),
                ("trees of a sentence", f"{test.trees.mean():.0f}"),
                *(
                    (f"weight of the tree model in {name}", f"{w:.3f}")
                    for name, w in weights.items()
                ),
                (
                    "nats per sentence if equal trees were counted twice",
                    f"{over.mean():.3f}" if known.any() else "-",
                ),
                ("seconds of parsing", test.seconds["parsing"]),
                ("seconds of scoring, all models and lengths", test.seconds["scoring"]),
                *per_word,
            ],
        )

    # -- training size ----------------------------------------------------------------------

    def curve(self) -> None:
        """Measure perplexity by training size, and where the two curves would cross."""
        k = min(CURVE_K, max(self.ks))
        keys = [Key(training, name) for training in self.sets.names for name in CURVES]
        sets = [
            self.score(f"{treebank}.test", self.sentences(treebank, "test"), keys, (k,))
            for treebank in TREEBANKS
        ]
        documents = [self.documents(treebank, "test") for treebank in TREEBANKS]
        crossings = []
        for name, scores, own in (
            *zip(TREEBANKS, ([each] for each in sets), ([each] for each in documents), strict=True),
            ("all test sets", sets, documents),
        ):
            points = self._points(scores, joined_documents(own), k)
            self.report.add_table(
                f"Perplexity by training size, {name}, k = {k}",
                ("words", *CURVES, f"{TREELET} / {FIVE_GRAM}", f"{PLAIN} / {FIVE_GRAM}"),
                [
                    (
                        int(row[0].x),
                        *(f"{point.y:.1f}" for point in row),
                        *(f"{row[i].y / row[-1].y:.3f}" for i in (0, 1)),
                    )
                    for row in zip(*points.values(), strict=True)
                ],
            )
            found = (_crossing(points[model], points[FIVE_GRAM]) for model in (TREELET, PLAIN))
            crossings.append((name, *found))
            self.report.add_figure(
                draw_line_chart(
                    [Series(model, tuple(curve)) for model, curve in points.items()],
                    title=f"Perplexity by training size, {name}",
                    x_axis="training words",
                    y_axis="perplexity with ends",
                    log_x=True,
                ),
                f"Perplexity of {name}. The publication has a tie at 1.3e9 words.",
            )
        self.report.add_table(
            f"Where {TREELET} would meet the 5-gram model, extrapolated from the last three sizes",
            ("test set", TREELET, PLAIN),
            crossings,
        )

    def _points(
        self, scores: Sequence[Scores], documents: npt.NDArray[np.int64], k: int
    ) -> dict[str, list[Point]]:
        """Return the perplexities of test sets together, with intervals, by training size."""
        lengths = np.concatenate([each.lengths for each in scores])
        points: dict[str, list[Point]] = {name: [] for name in CURVES}
        for training in self.sets.names:
            for name, own in points.items():
                values = np.concatenate([each.values[Key(training, name), k] for each in scores])
                low, high = self.perplexity_interval(values, lengths, documents)
                size = self.sets.tokens(training)
                own.append(Point(size, perplexity(values, lengths), low, high))
        return points


def _crossing(ours: Sequence[Point], theirs: Sequence[Point]) -> str:
    """Return where the ratio of two curves, extrapolated linearly in logarithms, reaches one."""
    gap = np.log([a.y / b.y for a, b in zip(ours, theirs, strict=True)])[-3:]
    sizes = np.log([point.x for point in ours])[-3:]
    if len(gap) < 2:
        return "two points are needed"
    slope, intercept = np.polyfit(sizes, gap, 1)
    if slope >= 0:
        return "never: the gap does not shrink"
    where = -intercept / slope
    return "beyond 1e12 words" if where > math.log(1e12) else f"{math.exp(where):.2g} words"


def joined_documents(numbers: Sequence[npt.NDArray[np.int64]]) -> npt.NDArray[np.int64]:
    """Return documents of several texts with distinct numbers."""
    found = []
    first = 0
    for each in numbers:
        found.append(each + first)
        first += int(each.max(initial=0)) + 1
    return np.concatenate(found)
