"""Good sentences against bad ones: pseudo-negatives, noise, translations (Tables 3 to 6)."""

from __future__ import annotations

from collections.abc import Sequence

from experiment import LONGEST, TREEBANKS, Experiment
from tree_scores import (
    FIVE_GRAM,
    TREELET,
    Scores,
)

from published import MT, NOISY, TRIGRAM
from treelm.corpus.corpus import TextCorpus, TreeCorpus, TreeSentences, split_words
from treelm.corpus.files import read_lines
from treelm.models.ngram.config import NgramConfig
from treelm.models.ngram.train import train_ngram
from treelm.tasks.corrupt.lexicon import Lexicon
from treelm.tasks.corrupt.noisy import NoiseGenerator, NoisySentence, make_noisy
from treelm.tasks.corrupt.tagged_sentences import tagged_batches
from treelm.tasks.corrupt.trigram import TrigramNegatives
from treelm.tasks.evaluate.classification import classify, tune_threshold
from treelm.tasks.evaluate.comparison import compare_answers
from treelm.tasks.evaluate.pair_accuracy import pair_accuracy
from treelm.tasks.report.results import Result


class JudgementTables(Experiment):
    """How well sentences are judged."""

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
