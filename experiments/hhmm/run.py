"""The incremental right-corner model: perplexities, mixtures, sweeps, reading times, garden paths.

    python experiments/hhmm/run.py --data FOLDER --output FOLDER [--parts perplexity sweeps ...]

Writes a report folder for each part; see README.md beside this file.
"""

from __future__ import annotations

import argparse
import tempfile
import time
import warnings
from collections.abc import Callable, Mapping
from functools import cached_property
from pathlib import Path

from corpora import TEXTS, TREEBANKS, Sentences, split_text, test_sets, tree_sentences, trees_of
from perplexity_tables import PerplexityStudy
from sweeps import Sweeps, option_choices

from treelm.corpus.corpus import TextCorpus, TreeSentences
from treelm.corpus.vocabulary import Vocabulary
from treelm.corpus.vocabulary_rules import VocabularyRule, build_vocabulary
from treelm.errors import TreelmWarning
from treelm.models.hhmm.config import HhmmConfig
from treelm.models.hhmm.model import HhmmModel
from treelm.models.hhmm.train import train_hhmm
from treelm.models.incremental import IncrementalModel
from treelm.models.ngram.config import NgramConfig
from treelm.models.ngram.model import NgramModel
from treelm.models.ngram.train import train_ngram
from treelm.tasks.report.report import Report
from treelm.tasks.report.results import Published

DATA = Path(__file__).resolve().parents[3] / "shared/data"
STORE, NGRAM, BIG = "HHMM", "5-gram", "big 5-gram"


class Study:
    """The models, each trained when it is first asked for, all over the same words."""

    def __init__(self, arguments: argparse.Namespace, folder: Path) -> None:
        self.arguments, self.folder = arguments, folder
        self.data: Path = arguments.data
        self.threads: int = arguments.threads

    @cached_property
    def vocabulary(self) -> Vocabulary:
        """Words seen at least twice in the training trees."""
        rule = VocabularyRule(name="min-count", min_count=2, signatures=False)
        return build_vocabulary(TreeSentences(trees_of(self.data, "train")), rule)

    @cached_property
    def store(self) -> HhmmModel:
        """The incremental right-corner model."""
        config = HhmmConfig(depth=self.arguments.depth, beam_width=self.arguments.beam_width)
        return train_hhmm(trees_of(self.data, "train"), config, vocabulary=self.vocabulary)

    @cached_property
    def yields(self) -> TextCorpus:
        """The words of the training trees."""
        path = self.folder / "trees.txt"
        with path.open("w", encoding="utf-8") as text:
            for words in TreeSentences(trees_of(self.data, "train")):
                text.write(" ".join(words) + "\n")
        return TextCorpus((path,))

    def ngram(self, order: int) -> NgramModel:
        """Return an n-gram model of the words of the training trees."""
        config = NgramConfig(order=order)
        return train_ngram(self.yields, config, vocabulary=self.vocabulary, threads=self.threads)

    @cached_property
    def texts(self) -> dict[str, tuple[Path, Sentences]]:
        """Large texts: what is trained on, and sentences of documents held out."""
        return {
            name: split_text(
                self.data / f"text/{name}.txt.xz", self.folder, 50, self.arguments.sentences
            )
            for name in TEXTS
        }

    @cached_property
    def big(self) -> NgramModel:
        """A 5-gram model of the large texts."""
        corpus = TextCorpus(tuple(path for path, _ in self.texts.values()))
        config = NgramConfig(order=5)
        return train_ngram(corpus, config, vocabulary=self.vocabulary, threads=self.threads)

    def report(self, part: str, title: str) -> Report:
        """Return a report of one part with its inputs."""
        arguments = self.arguments
        made = Report(
            arguments.output / part,
            title,
            seeds={"bootstrap": arguments.seed},
            options={
                "depth": arguments.depth,
                "beam_width": arguments.beam_width,
                "sentences": arguments.sentences,
                "vocabulary": "min-count 2",
            },
            recipe="hhmm",
        )
        for name in TREEBANKS:
            made.add_input(f"{name} train", trees_of(self.data, "train", (name,)), role="train")
        return made

    # -- parts ------------------------------------------------------------------------------

    def perplexity(self) -> Path:
        """Single models and mixtures on all sets: figure 7 of Schwartz et al. (2011)."""
        report = self.report("perplexity", "Incremental right-corner model: perplexities")
        models: dict[str, IncrementalModel] = {}
        makers: Mapping[str, Callable[[], IncrementalModel]] = {
            **{f"{order}-gram": lambda order=order: self.ngram(order) for order in range(1, 6)},
            STORE: lambda: self.store,
            BIG: lambda: self.big,
        }
        for name, make in makers.items():
            start = time.perf_counter()
            models[name] = make()
            report.add_model(
                name,
                system=models[name].system,
                vocabulary=models[name].vocabulary.fingerprint,
                seconds=round(time.perf_counter() - start, 1),
            )
        for published in figure_7():
            report.add_published(published)
        study = PerplexityStudy(
            report,
            models,
            [(NGRAM, STORE), (BIG, STORE), (BIG, NGRAM)],
            store=STORE,
            ngram=NGRAM,
            seed=self.arguments.seed,
            threads=self.threads,
        )
        held_out = {name: sentences for name, (_, sentences) in self.texts.items()}
        study.run(list(test_sets(self.data, held_out, self.arguments.sentences)))
        study.write_weights()
        restarts = self.store.stats()
        report.add_table(
            "Restarts of the store model",
            ("words", "restarts"),
            [(restarts["words"], restarts["dead_restarts"])],
        )
        return report.write()

    def sweeps(self) -> Path:
        """Depth, beam, binarization and estimation."""
        report = self.report("sweeps", "Incremental right-corner model: depth, beam, options")
        each = max(1, self.arguments.sweep_sentences // len(TREEBANKS))
        sentences = [s for n in TREEBANKS for s in tree_sentences(self.data, n, "dev", each)]
        sweeps = Sweeps(report, self.vocabulary, sentences, self.threads)
        sweeps.coverage({name: trees_of(self.data, "train", (name,)) for name in TREEBANKS})
        sweeps.beams(self.store, self.arguments.beams)
        choices = option_choices()[: self.arguments.options]
        sweeps.options(trees_of(self.data, "train"), choices)
        return report.write()

    def reading(self) -> Path:
        """Reading times of Natural Stories."""
        from reading import report_reading_times

        report = self.report("reading", "Incremental right-corner model: reading times")
        report_reading_times(
            report, self.store, self.ngram(5), self.data / "reading/naturalstories", self.threads
        )
        return report.write()

    def garden(self) -> Path:
        """Sentences that lead readers astray."""
        from garden_paths import report_garden_paths

        report = self.report("garden", "Incremental right-corner model: garden paths")
        report_garden_paths(report, self.store, self.ngram(5), trees_of(self.data, "train"))
        return report.write()


PARTS = ("perplexity", "sweeps", "reading", "garden")

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
#: Only these two rows can be read in the text of the paper we have; the others are from memory.
_READABLE = {"5-gram + HHMM", "big 5-gram + HHMM"}


def figure_7() -> list[Published]:
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


def main() -> None:
    """Read the options and run."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("--data", type=Path, default=DATA, help="folder of the data")
    parser.add_argument("--output", type=Path, required=True, help="folder of report folders")
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seed", type=int, default=1, help="seed of the intervals")
    parser.add_argument("--depth", type=int, default=4)
    parser.add_argument("--beam-width", type=int, default=2000)
    parser.add_argument("--sentences", type=int, default=500, help="most sentences of a set")
    parser.add_argument("--sweep-sentences", type=int, default=200)
    parser.add_argument("--options", type=int, help="try only the first options of the grammar")
    parser.add_argument("--beams", type=int, nargs="+", default=[1, 10, 50, 200, 500, 2000, 20000])
    arguments = parser.parse_args()
    arguments.output.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore", TreelmWarning)  # deep trees and several roots are reported
        study = Study(arguments, Path(folder))
        for part in arguments.parts:
            print(getattr(study, part)())


if __name__ == "__main__":
    main()
