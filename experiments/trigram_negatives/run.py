"""Telling sentences from those of a trigram model, by 5-gram models and a threshold.

    python experiments/trigram_negatives/run.py --data FOLDER --output FOLDER [--seed 1]

Writes a report folder; see README.md beside this file.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
import warnings
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import get_args

sys.path.append(str(Path(__file__).resolve().parents[1]))

from model_results import CONTROL, LARGE, SMALL, STANDS_FOR, report_classification
from recipe import recipe_options

from treelm.corpus.corpus import TextCorpus
from treelm.corpus.vocabulary_rules import RuleName, VocabularyRule, build_vocabulary
from treelm.errors import TreelmWarning
from treelm.models.ngram.config import NgramConfig
from treelm.models.ngram.model import NgramModel
from treelm.models.ngram.train import train_ngram
from treelm.models.run import Run
from treelm.tasks.corrupt.data_split import DataSplit, split_sentences
from treelm.tasks.corrupt.trigram import Part, TrigramNegatives
from treelm.tasks.evaluate.classification import Classification, curve_sizes
from treelm.tasks.evaluate.classify_texts import evaluate_classification
from treelm.tasks.evaluate.measured_text import MeasuredText, read_measured_text
from treelm.tasks.evaluate.slr import score_text
from treelm.tasks.report.report import Report
from treelm.tasks.report.results import Result
from treelm.view.plots import Point, Reference, Series, draw_line_chart

#: Names of the curves.
OWN_TEXT = "POS_TRAIN, then GEN_TEXT"
OTHER_TEXT = "POS_TRAIN, then other text"


class Experiment:
    """Files of one run and what all models share.

    Args:
        report: Report that collects everything.
        folder: Where the parts of the data are written.
        text: Name of the text.
        rule: Which words the models that judge know.
        order: Order of the models that judge.
        seed: Seed of everything random.
        threads: Number of threads.
    """

    def __init__(
        self,
        report: Report,
        folder: Path,
        *,
        text: str,
        rule: RuleName,
        order: int,
        seed: int,
        threads: int,
    ) -> None:
        self.report = report
        self.folder = folder
        self.text = text
        self.rule = rule
        self.order = order
        self.seed = seed
        self.threads = threads
        self.split = DataSplit({}, (), 0, 0, 0)

    def write(self, name: str, sentences: Iterable[str]) -> Path:
        """Write sentences to a file of the folder and return it."""
        path = self.folder / name
        with path.open("w", encoding="utf-8") as out:
            out.writelines(f"{sentence}\n" for sentence in sentences)
        return path

    def read(self, label: str, part: str) -> MeasuredText:
        """Return the positives or negatives of a part."""
        return read_measured_text(self.folder / f"{label}_{part}.txt")

    def make_data(self, text: TextCorpus, sizes: Mapping[str, int]) -> None:
        """Split the text and sample negatives; report all counts."""
        self.split = split_sentences(text, sizes, seed=self.seed)
        self.report.add_table("Sentences", ("part", "sentences"), self.split.summary().items())
        generating = self.write("gen.txt", self.split.parts["gen"])
        for part in get_args(Part):
            self.write(f"pos_{part}.txt", self.split.parts[part])
        start = time.perf_counter()
        corpus = TextCorpus((generating,))
        trigram = train_ngram(
            corpus, NgramConfig(order=3, smoothing="kn"), run=Run(threads=self.threads)
        )
        trained = time.perf_counter()
        rows = [self._draw_negatives(trigram, part, sizes[part], text) for part in get_args(Part)]
        self.report.add_model(
            "trigram of GEN_TEXT",
            system="ngram",
            order=3,
            smoothing="kn",
            vocabulary=trigram.vocabulary.fingerprint,
            seconds_of_training=round(trained - start, 1),
            seconds_of_drawing=round(time.perf_counter() - trained, 1),
        )
        self.report.add_input("GEN_TEXT", corpus, role="train", stands_for=STANDS_FOR)
        self.report.add_table("Negatives", tuple(rows[0]), [tuple(row.values()) for row in rows])
        examples = self.read("neg", "test").sentences[:10]
        self.report.add_table(
            "Some negatives", ("sentence",), [(" ".join(words),) for words in examples]
        )

    def _draw_negatives(
        self, trigram: NgramModel, part: Part, count: int, text: TextCorpus
    ) -> dict[str, object]:
        """Sample the negatives of one part and return a row of counts."""
        negatives = TrigramNegatives(trigram, seed=self.seed, part=part)
        self.write(f"neg_{part}.txt", negatives.draw(count))
        negatives.look_up(text)
        negatives.look_at_positives(self.read("pos", part).sentences)
        found = negatives.counts
        share = (found.positives_with_unknown or 0) / (found.positives or 1)
        return {
            "part": part,
            "negatives": found.sentences,
            **{f"redrawn: {reason.replace('_', ' ')}": n for reason, n in found.redraws.items()},
            "duplicates": found.duplicates,
            "in the corpus": found.in_corpus,
            "positives with a word outside GEN_TEXT": found.positives_with_unknown,
            "their share": f"{share:.4f}",
        }

    def train(self, sentences: Sequence[str], name: str) -> tuple[NgramModel, TextCorpus]:
        """Return a model of sentences, rare words replaced as in the publication."""
        corpus = TextCorpus((self.write(name, sentences),))
        vocabulary = build_vocabulary(corpus, VocabularyRule(name=self.rule, seed=self.seed))
        config = NgramConfig(order=self.order)
        with warnings.catch_warnings(record=True) as noted:
            warnings.simplefilter("always", TreelmWarning)
            model = train_ngram(
                corpus, config, vocabulary=vocabulary, run=Run(threads=self.threads)
            )
        for warning in noted:
            self.report.warn(f"5-gram on {len(sentences)} sentences: {warning.message}")
        return model, corpus

    def measure(self, model: NgramModel) -> Classification:
        """Return how well a model judges the test sentences, its threshold tuned on dev."""
        return evaluate_classification(
            model,
            self.read("pos", "test"),
            self.read("neg", "test"),
            tuning=(self.read("pos", "dev"), self.read("neg", "dev")),
            seed=self.seed,
            threads=self.threads,
        )

    def report_model(self, name: str, sentences: Sequence[str]) -> Classification:
        """Train and measure one of the models of the tables."""
        start = time.perf_counter()
        model, corpus = self.train(sentences, "train.txt")
        seconds = round(time.perf_counter() - start, 1)
        self.report.add_model(
            name,
            system="ngram",
            order=self.order,
            smoothing="mkn",
            vocabulary=model.vocabulary.fingerprint,
            seconds=seconds,
        )
        self.report.add_input(name, corpus, role="train", stands_for=STANDS_FOR)
        test = chain(self.read("pos", "test").sentences, self.read("neg", "test").sentences)
        self.report.check_overlap(corpus, test, name=f"test, {name}")
        for label in ("pos", "neg"):
            table = score_text(
                model, self.read(label, "test"), with_unigram=True, threads=self.threads
            )
            self.report.add_scores(name, table, data=f"{label}_test")
        return self.measure(model)

    def curve(
        self,
        sentences: Sequence[str],
        name: str,
        sizes: Sequence[int],
        measured: Mapping[int, Classification],
    ) -> Series:
        """Measure models of the first sentences, in several amounts; some are already measured."""
        points = []
        for size in sizes:
            if size in measured:
                found = measured[size]
            else:
                found = self.measure(self.train(sentences[:size], "curve.txt")[0])
            points.append(Point(size, found.accuracy, *found.interval))
            for metric, value, interval in (
                ("accuracy", found.accuracy, found.interval),
                ("average precision", found.average_precision, found.average_precision_interval),
            ):
                self.report.add_result(
                    Result(
                        table=f"Learning curve: {name}",
                        model=f"5-gram on {size} sentences",
                        metric=metric,
                        data=self.text,
                        value=value,
                        n=found.n,
                        interval=interval,
                        digits=3,
                    )
                )
        return Series(name, tuple(points))


def run(arguments: argparse.Namespace, folder: Path) -> Path:
    """Make the data, train and measure; return the folder of the report."""
    gen, train, test = arguments.sizes
    sizes = {"gen": gen, "train": train, "dev": test, "test": test}
    seed = arguments.seed
    report = Report(
        arguments.output,
        "Trigram pseudo-negatives, judged by 5-gram models",
        seeds={"split, negatives, vocabulary, bootstrap": seed},
        options={
            "text": arguments.text,
            "vocabulary": arguments.vocabulary,
            "order": arguments.order,
            **sizes,
        },
        recipe="E-TRIGRAM",
    )
    source = arguments.data / f"text/{arguments.text}.txt.xz"
    report.add_input(arguments.text, source, stands_for=STANDS_FOR)
    experiment = Experiment(
        report,
        folder,
        text=arguments.text,
        rule=arguments.vocabulary,
        order=arguments.order,
        seed=seed,
        threads=arguments.threads,
    )
    experiment.make_data(TextCorpus((source,)), sizes)
    for label in ("pos", "neg"):
        for part, role in (("dev", "tune"), ("test", "test")):
            corpus = TextCorpus((folder / f"{label}_{part}.txt",))
            report.add_input(
                f"{label}_{part}".upper(),
                corpus,
                role="tune" if role == "tune" else "test",
                stands_for=STANDS_FOR,
            )
    positives = list(experiment.split.parts["train"])
    own = positives + list(experiment.split.parts["gen"])
    other = positives + list(experiment.split.rest[:gen])
    models = {SMALL: positives, LARGE: own}
    curves = {OWN_TEXT: (own, LARGE)}
    if len(other) == len(own):  # as much other text as GEN_TEXT has
        models[CONTROL] = other
        curves[OTHER_TEXT] = (other, CONTROL)
    found = {name: experiment.report_model(name, text) for name, text in models.items()}
    report_classification(report, found, arguments.text, seed)
    amounts = curve_sizes(train, smallest=arguments.smallest, steps_per_decade=2)
    amounts += [size for size in (2 * train, 5 * train) if size < len(own)] + [len(own)]
    series = []
    for name, (sentences, largest) in curves.items():
        # Up to POS_TRAIN both curves are the same.
        sizes_here = [size for size in amounts if name == OWN_TEXT or size >= train]
        measured = {train: found[SMALL], len(own): found[largest]}
        series.append(experiment.curve(sentences, name, sizes_here, measured))
    report.add_figure(
        draw_line_chart(
            series,
            title="Accuracy on trigram pseudo-negatives by training size",
            x_axis="training sentences",
            y_axis="accuracy on test",
            log_x=True,
            reference=Reference(0.5, "chance"),
        ),
        "Lines are 95 % intervals. Negatives were sampled from a trigram model of GEN_TEXT; other "
        "text is of the same corpus, and the trigram model has not seen it.",
    )
    return report.write()


def main() -> None:
    """Read the options and run."""
    parser = recipe_options(__doc__)
    parser.add_argument("--text", default="un-debates", help="name of the text")
    parser.add_argument("--vocabulary", choices=get_args(RuleName), default="stream")
    parser.add_argument("--order", type=int, default=5)
    parser.add_argument(
        "--sizes",
        type=int,
        nargs=3,
        default=(450_000, 50_000, 3_000),
        metavar=("GEN", "TRAIN", "TEST"),
        help="sentences of GEN_TEXT, of POS_TRAIN and of each POS_DEV and POS_TEST",
    )
    parser.add_argument("--smallest", type=int, default=1000, help="first size of the curve")
    parser.add_argument("--keep", type=Path, help="existing folder to keep the data in")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        print(run(arguments, arguments.keep or Path(folder)))


if __name__ == "__main__":
    main()
