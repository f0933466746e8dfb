"""How depth, beam and binarization matter to the store model."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from corpora import Sentences

from treelm.corpus.corpus import TreeCorpus
from treelm.corpus.vocabulary import Vocabulary
from treelm.models.hhmm.config import HhmmConfig
from treelm.models.hhmm.events import binary_trees, count_store_rules, depth_coverage
from treelm.models.hhmm.model import HhmmModel
from treelm.models.hhmm.train import train_hhmm
from treelm.tasks.report.report import Report
from treelm.view.plots import Point, Series, draw_line_chart

BEAMS = (1, 10, 50, 200, 500, 2000, 20000)
RATIOS = (1e-6, 1e-5, 1e-4, 1e-3)
DEPTHS = (1, 2, 3, 4, 5, 6)


@dataclass(frozen=True)
class Sweeps:
    """Variations of one model on one set of sentences."""

    report: Report
    vocabulary: Vocabulary
    sentences: Sentences
    threads: int

    def coverage(self, corpora: dict[str, TreeCorpus]) -> None:
        """Report which share of trees each depth holds, by treebank and binarization."""
        curves = []
        rows = []
        for direction in ("right", "left", "head"):
            config = HhmmConfig.model_validate({"binarization": direction})
            found = {}
            for name, corpus in corpora.items():
                depths = count_store_rules(binary_trees(corpus, config), 1).depth_of_tree
                found[name] = depths
                shares = depth_coverage(depths)
                rows.append(
                    (direction, name, *(f"{np.mean(depths <= d):.4f}" for d in range(1, 7)))
                )
                if direction == "right":
                    points = tuple(Point(depth, share) for depth, share in shares.items())
                    curves.append(Series(name, points))
            every = np.concatenate(list(found.values()))
            shown = (f"{np.mean(every <= d):.4f}" for d in range(1, 7))
            rows.append((direction, "all", *shown))
        columns = ("binarization", "treebank", *(f"depth {d}" for d in range(1, 7)))
        self.report.add_table("Share of trees that fit a store", columns, rows)
        picture = draw_line_chart(
            curves,
            title="Share of trees that fit a store, by its depth (right-branching)",
            x_axis="elements of the store",
            y_axis="share of trees",
        )
        self.report.add_figure(picture, "Depth coverage")

    def beams(self, model: HhmmModel, beams: Sequence[int] = BEAMS) -> None:
        """Report bits per word and time by beam width and ratio."""
        words = sum(map(len, self.sentences))
        rows, points = [], []
        searches: list[dict[str, object]] = [{"beam_width": beam} for beam in beams]
        searches += [{"beam_width": 2000, "beam_ratio": ratio} for ratio in RATIOS]
        for search in searches:
            other = model.with_search(**search)
            start = time.process_time()
            scores = other.score_batch(self.sentences)
            seconds = time.process_time() - start
            bits = float(scores.bits().mean())
            restarts = other.stats()["dead_restarts"]
            width, ratio = search["beam_width"], search.get("beam_ratio", 0)
            rows.append((width, ratio, f"{bits:.4f}", f"{1000 * seconds / words:.3f}", restarts))
            if not ratio:
                points.append(Point(float(str(width)), bits))
        columns = ("beam", "ratio", "bits per word", "ms a word, one core", "restarts")
        title = f"Beam and ratio, {len(self.sentences)} sentences"
        self.report.add_table(title, columns, rows)
        picture = draw_line_chart(
            [Series("store model", tuple(points))],
            title="Bits per word by beam width",
            x_axis="stores kept",
            y_axis="bits per word",
            log_x=True,
        )
        self.report.add_figure(picture, "Bits per word by beam width")

    def options(self, corpus: TreeCorpus, choices: Sequence[dict[str, object]]) -> None:
        """Report bits per word of models trained with other options."""
        rows = []
        for choice in choices:
            config = HhmmConfig.model_validate({"beam_width": 500, **choice})
            model = train_hhmm(corpus, config, vocabulary=self.vocabulary)
            scores = model.score_batch(self.sentences, threads=self.threads)
            shown = ", ".join(f"{name} {value}" for name, value in choice.items()) or "defaults"
            rows.append(
                (
                    shown,
                    len(model.tables.rules.rules),
                    f"{model.tables.fitting_share:.4f}",
                    f"{scores.bits().mean():.4f}",
                    model.stats()["dead_restarts"],
                )
            )
        columns = ("options", "rules", "fitting share", "bits per word", "restarts")
        self.report.add_table("Options of the grammar, beam 500", columns, rows)


def option_choices() -> list[dict[str, object]]:
    """Return the options that are compared: one changed at a time."""
    choices: list[dict[str, object]] = [{"depth": depth} for depth in DEPTHS]
    choices += [{"estimation": "counts"}, {"binarization": "left"}, {"binarization": "head"}]
    choices += [{"horizontal_order": order} for order in (0, 1, 3)]
    return [*choices, {"vertical_order": 2}, {"unary": "top"}]
