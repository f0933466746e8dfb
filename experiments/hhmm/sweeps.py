"""How depth, beam and binarization matter to the HHMM."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np
from corpora import Sentences

from treelm.corpus.corpus import TreeCorpus
from treelm.corpus.vocabulary import Vocabulary
from treelm.models.hhmm.config import HhmmConfig
from treelm.models.hhmm.events import binary_trees, count_rules_by_depth
from treelm.models.hhmm.model import HhmmModel
from treelm.models.hhmm.train import train_hhmm
from treelm.tasks.report.report import Report
from treelm.view.plots import Point, Series, draw_line_chart

BEAMS = (1, 10, 50, 200, 500, 2000)
#: The beam that counts as no beam.
WIDEST = 20000
RATIOS = (1e-6, 1e-5, 1e-4, 1e-3)
DEPTHS = (1, 2, 3, 4, 5, 6)
DIRECTIONS = ("right", "left", "head")
#: Options of the grammar that are varied, and their values.
OPTIONS: dict[str, tuple[object, ...]] = {
    "depth": DEPTHS,
    "estimation": ("counts",),
    "binarization": DIRECTIONS,
    "horizontal_order": (0, 1, 2, 3),
    "vertical_order": (2,),
    "unary": ("top",),
}

Row = list[float]


class KeptRows:
    """Rows of numbers in a file, each computed once, so that an interrupted run resumes."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._rows: dict[str, Row] = {}
        if path.exists():
            self._rows = json.loads(path.read_text(encoding="utf-8"))

    def row(self, name: str, make: Callable[[], Row]) -> Row:
        """Return a row, computed if missing."""
        if name not in self._rows:
            self._rows[name] = make()
            self._path.write_text(json.dumps(self._rows, indent=1) + "\n", encoding="utf-8")
            print(f"{name}: {self._rows[name]}", flush=True)
        return self._rows[name]


class Sweeps:
    """Variations of one model on one set of sentences.

    Args:
        report: Where tables go.
        rows: Earlier measurements.
        vocabulary: The one vocabulary.
        sentences: What is scored.
        threads: Number of threads.
    """

    def __init__(
        self,
        report: Report,
        rows: KeptRows,
        vocabulary: Vocabulary,
        sentences: Sentences,
        threads: int,
    ) -> None:
        self._report, self._rows, self._vocabulary = report, rows, vocabulary
        self._sentences, self._threads = sentences, threads

    def coverage(self, corpora: Mapping[str, TreeCorpus]) -> None:
        """Report which share of trees fits each depth, by treebank and binarization."""
        curves, rows = [], []
        for direction in DIRECTIONS:
            config = HhmmConfig.model_validate({"binarization": direction})
            numbers = []
            for name, corpus in corpora.items():
                counts = self._rows.row(
                    f"trees by depth, {direction}, {name}", _depth_counter(corpus, config)
                )
                numbers.append(np.array(counts))
                rows.append((direction, name, *_shares(numbers[-1])))
            every = np.sum(numbers, axis=0)
            rows.append((direction, "all", *_shares(every)))
            points = np.cumsum(every) / np.sum(every)
            curve = [Point(depth, float(points[depth])) for depth in DEPTHS]
            curves.append(Series(direction, tuple(curve)))
        columns = ("binarization", "treebank", *(f"depth {depth}" for depth in DEPTHS))
        self._report.add_table("Share of trees that fit a stack", columns, rows)
        picture = draw_line_chart(
            curves,
            title="Share of the trees of all treebanks that fit a stack, by its depth",
            x_axis="elements of the stack",
            y_axis="share of trees",
        )
        self._report.add_figure(picture, "Depth coverage")

    def beams(self, model: HhmmModel, beams: Sequence[int] = BEAMS) -> None:
        """Report bits per word and time by beam width, and by ratio for the widest beam."""
        widest = max(beams)
        searches = [(width, 0.0) for width in beams] + [(widest, ratio) for ratio in RATIOS]
        found = {
            search: self._rows.row(
                f"beam {search[0]}, ratio {search[1]:g}, {len(self._sentences)} sentences",
                self._searcher(model, *search, self._sentences),
            )
            for search in searches
        }
        exact = found[widest, 0.0][0]
        rows = [
            (width, f"{ratio:g}", f"{bits:.4f}", f"{bits - exact:+.4f}", f"{ms:.3f}", int(restarts))
            for (width, ratio), (bits, ms, restarts) in found.items()
        ]
        columns = ("beam", "ratio", "bits per word", f"to beam {widest}", "ms per word", "restarts")
        words = sum(map(len, self._sentences))
        title = f"Beam and ratio, {len(self._sentences)} dev sentences, {words} words, one core"
        self._report.add_table(title, columns, rows)
        picture = draw_line_chart(
            [Series("HHMM", tuple(Point(w, found[w, 0.0][0]) for w in beams))],
            title="Bits per word by beam width",
            x_axis="stacks kept",
            y_axis="bits per word",
            log_x=True,
        )
        self._report.add_figure(picture, "Bits per word by beam width")

    def widest(self, model: HhmmModel, sentences: Sentences) -> None:
        """Report what the usual beam loses compared with one ten times as wide."""
        rows: list[tuple[object, ...]] = []
        bits: list[float] = []
        for width in (2000, WIDEST):
            name = f"beam {width}, {len(sentences)} sentences"
            found = self._rows.row(name, self._searcher(model, width, 0.0, sentences))
            bits.append(found[0])
            rows.append((width, f"{found[0]:.4f}", f"{found[1]:.3f}", int(found[2])))
        rows.append(("difference", f"{bits[0] - bits[1]:.4f}", "", ""))
        title = f"A beam ten times as wide, {len(sentences)} dev sentences"
        self._report.add_table(title, ("beam", "bits per word", "ms per word", "restarts"), rows)

    def options(self, corpus: TreeCorpus, choices: Sequence[dict[str, object]]) -> None:
        """Report bits per word of models trained with other options."""
        rows, depths = [], []
        for choice in choices:
            shown = ", ".join(f"{name} {value}" for name, value in choice.items())
            name = f"{shown}, {len(self._sentences)} sentences"
            rules, share, bits, restarts = self._rows.row(name, self._trainer(corpus, choice))
            rows.append((shown, int(rules), f"{share:.4f}", f"{bits:.4f}", int(restarts)))
            if "depth" in choice:
                depths.append(Point(float(str(choice["depth"])), bits))
        columns = ("options", "rules", "fitting share", "bits per word", "restarts")
        self._report.add_table("Options of the grammar, beam 500", columns, rows)
        depths.sort()
        picture = draw_line_chart(
            [Series("HHMM", tuple(depths))],
            title="Bits per word by the depth of the stack, beam 500",
            x_axis="elements of the stack",
            y_axis="bits per word",
        )
        self._report.add_figure(picture, "Bits per word by depth")

    def _searcher(
        self, model: HhmmModel, width: int, ratio: float, sentences: Sentences
    ) -> Callable[[], Row]:
        def measure() -> Row:
            other = model.with_search(beam_width=width, beam_ratio=ratio)
            start = time.process_time()
            scores = other.score_batch(sentences, threads=self._threads)
            seconds = time.process_time() - start
            words = sum(map(len, sentences))
            restarts = other.stats()["dead_restarts"]
            return [float(scores.bits().mean()), 1000 * seconds / words, restarts]

        return measure

    def _trainer(self, corpus: TreeCorpus, choice: Mapping[str, object]) -> Callable[[], Row]:
        def measure() -> Row:
            config = HhmmConfig.model_validate({"beam_width": 500, **choice})
            model = train_hhmm(corpus, config, vocabulary=self._vocabulary)
            scores = model.score_batch(self._sentences, threads=self._threads)
            rules = len(model.tables.rules.rules)
            restarts = model.stats()["dead_restarts"]
            return [rules, model.tables.fitting_share, float(scores.bits().mean()), restarts]

        return measure


def _depth_counter(corpus: TreeCorpus, config: HhmmConfig) -> Callable[[], Row]:
    def count() -> Row:
        depths = count_rules_by_depth(binary_trees(corpus, config), 1).depth_of_tree
        found: list[float] = np.bincount(depths, minlength=40).astype(float).tolist()
        return found

    return count


def _shares(trees: np.ndarray[tuple[int], np.dtype[np.float64]]) -> list[str]:
    return [f"{trees[: depth + 1].sum() / trees.sum():.4f}" for depth in DEPTHS]


def option_choices(names: Sequence[str]) -> list[dict[str, object]]:
    """Return the options that are compared: the usual ones, and one changed at a time.

    Args:
        names: Which options to vary.
    """
    usual = HhmmConfig()
    changed: list[dict[str, object]] = [
        {name: value} for name in names for value in OPTIONS[name] if value != getattr(usual, name)
    ]
    return [{"depth": usual.depth}, *changed]
