"""The HHMM: perplexities, mixtures, sweeps, unknown words, reading times, garden paths.

    python experiments/hhmm/run.py --output FOLDER [--data FOLDER] [--parts perplexity sweeps ...]

Writes a report folder for each part; see README.md beside this file. Models, scores and rows of
sweeps are kept in FOLDER/work, so that an interrupted run resumes.
"""

from __future__ import annotations

import argparse
import math
import sys
import warnings
from collections.abc import Callable
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1]))

from corpora import CAPTIONS_AND_TALKS, TEXTS, TREEBANKS, every_nth, spread, trees_of
from garden_paths import report_garden_paths
from perplexity import PerplexityStudy
from reading import report_reading_times
from recipe import recipe_options
from scored_text import ScoreFiles
from study_models import StudyModels
from sweeps import BEAMS, OPTIONS, KeptRows, Sweeps, option_choices
from unknown_words import UnknownWordStudy

from treelm.errors import TreelmWarning
from treelm.tasks.report.report import Report

SETS = (*TREEBANKS, *TEXTS, *CAPTIONS_AND_TALKS)


class Study:
    """All parts, each a method by its name.

    Args:
        arguments: Options of the command line.
    """

    def __init__(self, arguments: argparse.Namespace) -> None:
        self._arguments = arguments
        self._data: Path = arguments.data
        self._output: Path = arguments.output
        self._threads: int = arguments.threads
        self._models = StudyModels(
            arguments.data,
            arguments.output / "work",
            depth=arguments.depth,
            beam_width=arguments.beam_width,
            held_out_every=arguments.held_out_every,
            threads=arguments.threads,
        )

    def perplexity(self) -> Path | None:
        """Single models and mixtures on all sets: figure 7 of Schwartz et al. (2011)."""
        files = ScoreFiles(self._output / "work/scores", self._threads)
        study = PerplexityStudy(self._models, files, self._arguments.sets)
        study.score(self._arguments.minutes)
        if study.missing:
            print(f"no table of perplexities yet; not scored: {', '.join(study.missing)}")
            return None
        report = self._report("perplexity", "HHMM: perplexities")
        if len(study.names) < len(SETS):
            report.warn(f"Only these sets: {', '.join(study.names)}.")
        for name, make in self._models.makers().items():
            model = make()
            report.add_model(name, system=model.system, vocabulary=model.vocabulary.fingerprint)
        study.write(report, seed=self._arguments.seed, curves=self._output / "lambda")
        return report.write()

    def sweeps(self) -> Path:
        """Depth, beam, ratio and other options, on dev sentences."""
        report = self._report("sweeps", "HHMM: depth and beam")
        rows = KeptRows(self._output / "work/sweeps.json")
        sentences = every_nth(self._data, "dev", self._arguments.every)
        sweeps = Sweeps(report, rows, self._models.vocabulary, sentences, self._threads)
        wanted = self._arguments.sweeps
        if "widest" in wanted:
            sweeps.widest(self._models.hhmm, spread(self._data, "dev", 200))
        if "coverage" in wanted:
            sweeps.coverage({name: trees_of(self._data, "train", (name,)) for name in TREEBANKS})
        if "beams" in wanted:
            sweeps.beams(self._models.hhmm, self._arguments.beams)
        if "options" in wanted:
            sweeps.options(self._models.training_trees, option_choices(self._arguments.options))
        return report.write()

    def unknown(self) -> Path:
        """Claim (a) in an open vocabulary."""
        report = self._report("unknown", "HHMM: unknown words")
        files = ScoreFiles(self._output / "work/scores", self._threads)
        arguments = self._arguments
        study = UnknownWordStudy(self._models, files, arguments.sets, arguments.unknown_beam)
        study.write(report, seed=arguments.seed)
        return report.write()

    def reading(self) -> Path:
        """Reading times of Natural Stories."""
        report = self._report("reading", "HHMM: reading times")
        folder = self._data / "reading/naturalstories"
        report_reading_times(
            report, self._models.hhmm, self._models.ngram(5), folder, self._threads
        )
        return report.write()

    def garden(self) -> Path:
        """Sentences that lead readers astray."""
        report = self._report("garden", "HHMM: garden paths")
        models = self._models
        report_garden_paths(report, models.hhmm, models.ngram(5), models.training_trees)
        return report.write()

    def _report(self, part: str, title: str) -> Report:
        """Return a report of one part with its inputs."""
        arguments = self._arguments
        made = Report(
            self._output / part,
            title,
            seeds={"bootstrap": arguments.seed},
            options={
                "depth": arguments.depth,
                "beam_width": arguments.beam_width,
                "vocabulary": "min-count 2",
                "sweeps": f"every sentence number {arguments.every} of the dev sets",
            },
            recipe="hhmm",
        )
        for name in TREEBANKS:
            made.add_input(f"{name} train", trees_of(self._data, "train", (name,)), role="train")
        return made


PARTS = ("perplexity", "sweeps", "unknown", "reading", "garden")
SWEEPS = ("widest", "coverage", "beams", "options")


def main() -> None:
    """Read the options and run."""
    parser = recipe_options(
        __doc__, output="folder for the report folders", threads=1, seed="seed of the intervals"
    )
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument(
        "--sets", nargs="+", choices=SETS, default=list(SETS), help="sets to score and report"
    )
    parser.add_argument(
        "--minutes",
        type=float,
        default=math.inf,
        help="perplexity: start nothing new after this time",
    )
    parser.add_argument("--depth", type=int, default=4)
    parser.add_argument("--beam-width", type=int, default=2000)
    parser.add_argument(
        "--every", type=int, default=4, help="sweeps: every n-th sentence of the dev sets"
    )
    parser.add_argument("--beams", type=int, nargs="+", default=list(BEAMS))
    parser.add_argument(
        "--sweeps", nargs="+", choices=SWEEPS, default=list(SWEEPS), help="which sweeps to run"
    )
    parser.add_argument(
        "--options",
        nargs="+",
        choices=list(OPTIONS),
        default=list(OPTIONS),
        help="sweeps: options of the grammar to vary",
    )
    parser.add_argument(
        "--unknown-beam", type=int, default=500, help="unknown: stacks that the HHMM keeps"
    )
    parser.add_argument(
        "--held-out-every",
        type=int,
        help="hold out every n-th document of large texts; default: by text",
    )
    arguments = parser.parse_args()
    arguments.output.mkdir(parents=True, exist_ok=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TreelmWarning)  # deep trees and several roots are reported
        study = Study(arguments)
        for part in arguments.parts:
            run: Callable[[], Path | None] = getattr(study, part)
            print(run())


if __name__ == "__main__":
    main()
