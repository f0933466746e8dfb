"""The tables of Pauls & Klein (2012) on open data: treelet models beside their baselines.

    python experiments/treelet/run.py --data FOLDER --parser PARSER --output FOLDER [--seed 1]

Writes a report folder; see README.md beside this file.
"""

from __future__ import annotations

import argparse
import math
import tempfile
import warnings
from collections.abc import Iterable, Sequence
from itertools import islice
from pathlib import Path

import numpy as np
from tree_scores import (
    FIVE_GRAM,
    MIXTURE,
    TREELET,
    Scores,
    Sentence,
    Training,
    score_all,
)

from published import MT, NOISY, PERPLEXITY, SOURCE, TRIGRAM
from treelm.corpus.corpus import TextCorpus, TreeCorpus, TreeSentences, split_words
from treelm.corpus.files import read_lines
from treelm.errors import TreelmWarning
from treelm.models.mixture_weights import fit_weights
from treelm.models.model import LanguageModel
from treelm.models.ngram.config import NgramConfig
from treelm.models.ngram.train import train_ngram
from treelm.models.tree_model import GivesTrees
from treelm.tasks.corrupt.lexicon import Lexicon
from treelm.tasks.corrupt.noisy import NoiseGenerator, NoisySentence, make_noisy
from treelm.tasks.corrupt.tagged_sentences import tagged_batches
from treelm.tasks.corrupt.trigram import TrigramNegatives
from treelm.tasks.evaluate.classification import classify, tune_threshold
from treelm.tasks.evaluate.comparison import compare_answers
from treelm.tasks.evaluate.pair_accuracy import pair_accuracy
from treelm.tasks.evaluate.significance import bootstrap_sums, paired_bootstrap_perplexity
from treelm.tasks.report.report import Report
from treelm.tasks.report.results import Published, Result
from treelm.tasks.sample import sample_sentences
from treelm.tasks.scoring_model import open_parser
from treelm.view.plots import Point, Series, draw_line_chart

DATA = Path(__file__).resolve().parents[3] / "shared/data"
TREEBANKS = ("wsj-sample", "masc", "gum", "craft")
PARTS = ("samples", "perplexity", "trigram", "noisy", "mt", "ablations", "curve")
LONGEST = 40  # words of a sentence that is judged; longer ones take the parser too long


class Experiment:
    """What stays the same for all tables."""

    def __init__(self, arguments: argparse.Namespace, report: Report, folder: Path) -> None:
        self.report = report
        self.folder = folder
        self.data: Path = arguments.data
        self.seed: int = arguments.seed
        self.threads: int = arguments.threads
        self.limit: int = arguments.limit
        self.ks: tuple[int, ...] = tuple(k for k in (1, 10, 100, 1000) if k <= arguments.k)
        self.parser: GivesTrees = open_parser(arguments.parser)
        paths = [self.data / f"treebanks/{name}/train.mrg" for name in TREEBANKS]
        self.corpus = TreeCorpus((*paths, *arguments.auto), on_error="skip", threads=self.threads)
        self.training = Training(self.corpus, self.seed, self.threads)
        self.models: dict[str, LanguageModel] = self.training.models()
        report.add_input(
            "training trees", self.corpus, role="train", stands_for="WSJ, Brown, Gigaword"
        )
        for name, seconds in self.training.seconds.items():
            report.add_model(name, seconds=seconds, vocabulary=self.training.vocabulary.fingerprint)

    def sentences(self, treebank: str, part: str) -> list[Sentence]:
        """Return sentences of a treebank."""
        corpus = TreeCorpus((self.data / f"treebanks/{treebank}/{part}.mrg",), on_error="skip")
        return self._short(TreeSentences(corpus))

    def _short(self, sentences: Iterable[Sentence]) -> list[Sentence]:
        return list(islice((s for s in sentences if 0 < len(s) <= LONGEST), self.limit))

    def score(
        self,
        sentences: Sequence[Sentence],
        *,
        models: dict[str, LanguageModel] | None = None,
        ks: Sequence[int] = (),
    ) -> Scores:
        """Return what all models say; the time it took goes into the report."""
        return score_all(
            models or self.models, sentences, self.parser, ks or self.ks, threads=self.threads
        )

    def published(self, table: str, model: str, metric: str, value: float, number: int) -> None:
        """Add a published number of a numbered table."""
        self.report.add_published(
            Published(
                table=table,
                model=model,
                metric=metric,
                data="the publication's own data",
                value=value,
                source=f"{SOURCE}, Table {number}",
                digits=3 if value < 1 else 0,
            )
        )

    # -- Table 1 ----------------------------------------------------------------------------

    def samples(self) -> None:
        """Draw four sentences of 15 to 20 words from TREELET and the 5-gram."""
        rows = []
        for name in (TREELET, FIVE_GRAM):
            drawn = sample_sentences(
                self.models[name], 4, seed=self.seed, min_words=15, max_words=20, reject=True
            )
            rows += [(name, " ".join(sample.words)) for sample in drawn]
        self.report.add_table("Samples (Table 1)", ("model", "sentence"), rows)

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

    # -- Tables 3 and 4 ---------------------------------------------------------------------

    def trigram(self) -> None:
        """Tell sentences from those of a trigram model of the training words."""
        text = self.folder / "train.txt"
        with text.open("w") as out:
            out.writelines(" ".join(words) + "\n" for words in TreeSentences(self.corpus))
        trigram = train_ngram(TextCorpus((text,)), NgramConfig(order=3, smoothing="kn"))
        scores = {}
        examples = []
        for part in ("dev", "test"):
            good = [
                words
                for treebank in TREEBANKS
                for words in self.sentences(treebank, part)
                if 10 <= len(words) <= 30
            ]
            negatives = TrigramNegatives(
                trigram,
                seed=self.seed,
                part="dev" if part == "dev" else "test",
                min_words=10,
                max_words=30,
            )
            bad = [split_words(line) for line in negatives.draw(len(good))]
            examples = bad[:5]
            scores[part] = [self.score(each, ks=(min(100, max(self.ks)),)) for each in (good, bad)]
        self._examples("trigram model", examples)
        k = min(100, max(self.ks))
        answers = {}
        for name in self.models:
            dev, test = (tuple(each.slr(name, k) for each in scores[p]) for p in ("dev", "test"))
            answers[name] = classify(*test, tune_threshold(*dev), seed=self.seed)
        for name, found in answers.items():
            p = None
            if name != FIVE_GRAM:
                five = answers[FIVE_GRAM].right
                p = compare_answers(found.right, five, seed=self.seed).p_value
            self.report.add_result(
                Result(
                    table="Trigram pseudo-negatives (Table 4)",
                    model=name,
                    metric="accuracy",
                    data="test sets, 10 to 30 words",
                    value=found.accuracy,
                    n=found.n,
                    interval=found.interval,
                    p=p,
                    baseline=None if p is None else FIVE_GRAM,
                    digits=3,
                )
            )
        for name, value in TRIGRAM.items():
            self.published("Trigram pseudo-negatives (Table 4)", name, "accuracy", value, 4)
        self._normalisation(scores["dev"], scores["test"], k)

    def _examples(self, kind: str, sentences: Sequence[Sequence[str]]) -> None:
        self.report.add_table(
            f"Negatives (Table 3): {kind}", ("sentence",), [(" ".join(s),) for s in sentences]
        )

    def _normalisation(self, dev: Sequence[Scores], test: Sequence[Scores], k: int) -> None:
        """Show what the length and the words alone are for."""
        measures = {
            "SLR": lambda s: s.slr(TREELET, k),
            "without the words alone": lambda s: s.by_model[TREELET, k] / s.lengths,
            "without the length": lambda s: s.by_model[TREELET, k] - s.unigram,
            "log probability": lambda s: s.by_model[TREELET, k],
        }
        rows = []
        for name, measure in measures.items():
            found = classify(
                measure(test[0]),
                measure(test[1]),
                tune_threshold(measure(dev[0]), measure(dev[1])),
                seed=self.seed,
            )
            low, high = found.interval
            rows.append((name, f"{found.accuracy:.3f}", f"{low:.3f} to {high:.3f}"))
        self.report.add_table(
            "Trigram pseudo-negatives: what TREELET is normalised by",
            ("measure", "accuracy", "95 % interval"),
            rows,
        )

    # -- Table 5 ----------------------------------------------------------------------------

    def noisy(self) -> None:
        """Tell sentences from those with one error."""
        k = min(100, max(self.ks))
        scores = {}
        for part in ("dev", "test"):
            pairs = self._noisy_pairs(part)
            if part == "test":
                self._examples("one error", [pair.words for pair in pairs[:5]])
            good, bad = [pair.original for pair in pairs], [pair.words for pair in pairs]
            scores[part] = [self.score(each, ks=(k,)) for each in (good, bad)]
        for name in self.models:
            dev, test = (tuple(each.slr(name, k) for each in scores[p]) for p in ("dev", "test"))
            pairwise = pair_accuracy(*test, seed=self.seed)
            single = classify(*test, tune_threshold(*dev), seed=self.seed, paired=True)
            p = None
            if name != FIVE_GRAM:
                five = tuple(each.slr(FIVE_GRAM, k) for each in scores["test"])
                p = compare_answers(test[0] > test[1], five[0] > five[1], seed=self.seed).p_value
            for metric, value, interval, own_p in (
                ("pairwise accuracy", pairwise.accuracy, pairwise.interval, p),
                ("independent accuracy", single.accuracy, single.interval, None),
            ):
                self.report.add_result(
                    Result(
                        table="Noisy sentences (Table 5)",
                        model=name,
                        metric=metric,
                        data="test sets",
                        value=value,
                        n=pairwise.n,
                        interval=interval,
                        p=own_p,
                        baseline=None if own_p is None else FIVE_GRAM,
                        digits=3,
                    )
                )
        for name, (pairwise_value, single_value) in NOISY.items():
            table = "Noisy sentences (Table 5)"
            self.published(table, name, "pairwise accuracy", pairwise_value, 5)
            self.published(table, name, "independent accuracy", single_value, 5)

    def _noisy_pairs(self, part: str) -> list[NoisySentence]:
        files = tuple(self.data / f"treebanks/{name}/{part}.mrg" for name in TREEBANKS)
        corpus = TreeCorpus(files, on_error="skip")
        tagged = [one for one in tagged_batches(corpus.batches()) if 2 <= len(one.words) <= LONGEST]
        lexicon = Lexicon(tagged)
        # One error each, from all over the treebanks.
        chosen = tagged[:: max(1, len(tagged) // (self.limit or len(tagged)))]
        return list(
            make_noisy(
                lambda: chosen, NoiseGenerator(lexicon), lexicon, seed=self.seed, count=len(chosen)
            )
        )

    # -- Table 6 ----------------------------------------------------------------------------

    def mt(self) -> None:
        """Tell references from the output of translation systems."""
        k = min(100, max(self.ks))
        sources = {
            "multi30k, Moses": (
                "multi30k/test_2016_flickr.en",
                "multi30k/test_2016_flickr.moses.en",
            ),
            "ted, system 1": ("ted/ref.en", "ted/sys1.en"),
            "ted, system 2": ("ted/ref.en", "ted/sys2.en"),
        }
        for name, files in sources.items():
            paths = [self.data / "mt" / file for file in files]
            if not all(path.is_file() for path in paths):
                self.report.warn(f"{name}: the files are not there.")
                continue
            lines = [[split_words(line) for line in read_lines(path)] for path in paths]
            pairs = [
                pair
                for pair in zip(*lines, strict=True)
                if pair[0] != pair[1] and all(0 < len(s) <= LONGEST for s in pair)
            ][: self.limit]
            scores = [self.score([pair[i] for pair in pairs], ks=(k,)) for i in (0, 1)]
            five = [each.slr(FIVE_GRAM, k) for each in scores]
            for model in self.models:
                good, bad = (each.slr(model, k) for each in scores)
                found = pair_accuracy(good, bad, seed=self.seed)
                own = model == FIVE_GRAM
                test = compare_answers(good > bad, five[0] > five[1], seed=self.seed)
                self.report.add_result(
                    Result(
                        table="References against translations (Table 6)",
                        model=model,
                        metric="pairwise accuracy",
                        data=name,
                        value=found.accuracy,
                        n=found.n,
                        interval=found.interval,
                        p=None if own else test.p_value,
                        baseline=None if own else FIVE_GRAM,
                        digits=3,
                    )
                )
        for name, value in MT.items():
            table = "References against translations (Table 6)"
            self.published(table, name, "pairwise accuracy", value, 6)

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


def run(arguments: argparse.Namespace, folder: Path) -> Path:
    """Train, measure, and return the folder of the report."""
    report = Report(
        arguments.output,
        "Treelet models beside their baselines",
        seeds={"vocabulary, noise, negatives, bootstrap": arguments.seed},
        options={"k": arguments.k, "limit": arguments.limit, "parts": ",".join(arguments.parts)},
        recipe="E-SAMPLE, E-PPL, E-TRIGRAM, E-NOISY, E-MTPAIR",
    )
    experiment = Experiment(arguments, report, folder)
    for part in PARTS:
        if part in arguments.parts:
            getattr(experiment, part)()
    report.add_table("Training", ("model", "seconds"), list(experiment.training.seconds.items()))
    return report.write()


def main() -> None:
    """Read the options and run."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("--data", type=Path, default=DATA, help="folder of the data")
    parser.add_argument("--output", type=Path, required=True, help="report folder to write")
    parser.add_argument(
        "--parser", required=True, help="model folder of a parser, or a file of parses (cache)"
    )
    parser.add_argument("--auto", type=Path, nargs="*", default=[], help="more trees to train on")
    parser.add_argument("--k", type=int, default=1000, help="trees of a sentence")
    parser.add_argument("--limit", type=int, default=200, help="sentences of each set")
    parser.add_argument("--parts", nargs="*", choices=PARTS, default=list(PARTS))
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    with warnings.catch_warnings(), tempfile.TemporaryDirectory() as folder:
        # What is strange in the trees is counted in the report.
        warnings.simplefilter("ignore", TreelmWarning)
        print(run(arguments, Path(folder)))


if __name__ == "__main__":
    main()
