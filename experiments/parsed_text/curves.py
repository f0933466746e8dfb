"""How models get better with more parsed text."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import numpy.typing as npt
from pair_results import add_anchors, preferences, report_accuracy
from recipe import perplexity
from syntactic import Pairs, Sentences, read_blimp, read_zorro

from treelm.corpus.corpus import TreeCorpus, TreeSentences
from treelm.corpus.vocabulary import Vocabulary
from treelm.corpus.vocabulary_file import load_vocabulary, save_vocabulary
from treelm.corpus.vocabulary_rules import VocabularyRule, build_vocabulary
from treelm.grammar.forest_file import ForestFile
from treelm.grammar.parser_options import ParserOptions
from treelm.models.interface.cached_parser import CachedParser
from treelm.models.interface.model import LanguageModel
from treelm.models.interface.tree_model import TreeScorer
from treelm.models.registry import load, train
from treelm.tasks.evaluate.slr import score_sentences
from treelm.tasks.parse_file import parse_into_file
from treelm.tasks.report.report import Report
from treelm.tasks.report.results import Result
from treelm.view.plots import Point, Series, draw_line_chart

Numbers = npt.NDArray[np.float64]

TREEBANKS = ("gum", "masc", "craft", "wsj-sample")
#: Development sets that perplexity is measured on.
DEV = ("gum", "masc")
TREELET, RULE, FIVE_GRAM = "TREELET", "TREELET-RULE", "5-gram"
#: Words that occur so often in all of the text are known.
_FEWEST = 3


@dataclass
class Curves:
    """Trains models of growing amounts of text and measures them; everything is kept.

    Args:
        data: Folder of the data.
        work: Where models and scores are kept.
        parser: What parses the sentences that are scored.
        forests: Parsed text.
        k: Trees of a sentence that is scored.
        threads: Number of threads.
    """

    data: Path
    work: Path
    parser: LanguageModel
    forests: Sequence[Path]
    k: int
    threads: int

    # -- models -----------------------------------------------------------------------------

    def corpus(self, parts: int) -> TreeCorpus:
        """Return the treebanks and the first parts of the parsed text."""
        banks = [self.data / f"treebanks/{name}/train.mrg" for name in TREEBANKS]
        files = (*banks, *self.forests[:parts])
        return TreeCorpus(tuple(map(str, files)), on_error="skip")

    @cached_property
    def vocabulary(self) -> Vocabulary:
        """The words that all models know, by all of the parsed text."""
        path = self.work / f"words-{len(self.forests)}.vocabulary"
        if not path.exists():
            rule = VocabularyRule(name="min-count", min_count=_FEWEST)
            save_vocabulary(
                build_vocabulary(TreeSentences(self.corpus(len(self.forests))), rule), path
            )
        return load_vocabulary(path)

    def model(self, name: str, parts: int) -> LanguageModel:
        """Return a model of so many parts, trained now or before."""
        path = self.work / "models" / self._kept(name, parts)
        if not path.exists():
            start = time.process_time()
            path.parent.mkdir(parents=True, exist_ok=True)
            corpus, words = self.corpus(parts), self.vocabulary
            how = {"vocabulary": words, "threads": self.threads}
            trained: dict[str, Callable[[], LanguageModel]] = {
                TREELET: lambda: train("treelet", corpus, base_counts="types", **how),
                RULE: lambda: train("treelet", corpus, variant="rule", base_counts="types", **how),
                FIVE_GRAM: lambda: train("ngram", corpus, order=5, **how),
            }
            trained[name]().save(path)
            seconds = time.process_time() - start
            path.with_suffix(".seconds").write_text(f"{seconds:.1f}\n", encoding="utf-8")
        return load(path)

    def _kept(self, model: str, parts: int) -> str:
        """Return the name of a model, which knows the words of all of the parsed text."""
        return f"{model}-{parts}-of-{len(self.forests)}"

    # -- scores -----------------------------------------------------------------------------

    def parses(self, name: str, sentences: Sentences) -> ForestFile:
        """Return the best trees of sentences that are scored, parsed now or before."""
        path = self.work / "scored" / f"{name}.{self.k}.forest"
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            begun = path.with_name(f"begun-{path.name}")
            lines = (" ".join(words) for words in dict.fromkeys(sentences))
            parse_into_file(
                self.parser,
                [(name, lines)],
                begun,
                fingerprint=f"{name}, {self.k} trees",
                k=self.k,
                options=ParserOptions(),
                threads=self.threads,
            )
            begun.replace(path)
        return ForestFile(path)

    def scores(self, model: str, parts: int, name: str, sentences: Sentences) -> Numbers:
        """Return the log probabilities of sentences, found now or before."""
        path = self.work / "scored" / f"{name}.{self._kept(model, parts)}.{self.k}.npy"
        if not path.exists():
            found = self.model(model, parts)
            if isinstance(found, TreeScorer):
                found = found.with_parser(CachedParser(self.parses(name, sentences)), self.k)
            scores = score_sentences(found, sentences, threads=self.threads).scores
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.with_suffix(".part").open("wb") as file:
                np.save(file, scores)
            path.with_suffix(".part").replace(path)
        kept: Numbers = np.load(path)
        return kept

    def differences(self, model: str, parts: int, pairs: Pairs) -> Numbers:
        """Return the log probabilities of good sentences minus those of bad ones."""
        both = self.scores(model, parts, pairs.name, (*pairs.good, *pairs.bad))
        return preferences(*np.split(both, 2))

    # -- the report -------------------------------------------------------------------------

    def report(self, report: Report, sizes: Sequence[int], seed: int) -> None:
        """Report perplexity and accuracy of every model and size."""
        words = {parts: self._words(parts) for parts in sizes}
        dev = {name: self.sentences(name) for name in DEV}
        collections = [read(self.data) for read in (read_blimp, read_zorro)]
        curves: dict[str, list[Point]] = {}
        rows = []
        for model in (TREELET, RULE, FIVE_GRAM):
            for parts in sizes:
                name = f"{model}, {amount(parts)}"
                shown = []
                for treebank, sentences in dev.items():
                    value, interval = perplexity(
                        self.scores(model, parts, treebank, sentences),
                        np.array([len(words) for words in sentences]),
                        seed,
                    )
                    report.add_result(
                        Result(
                            table="Perplexity",
                            model=name,
                            metric="perplexity",
                            data=f"{treebank} dev",
                            value=value,
                            n=sum(len(words) + 1 for words in sentences),
                            interval=interval,
                            digits=1,
                        )
                    )
                    shown.append(f"{value:.1f}")
                for pairs in collections:
                    differences = self.differences(model, parts, pairs)
                    found = report_accuracy(report, name, pairs.name, differences, seed)
                    point = Point(words[parts], found.accuracy, *found.interval)
                    curves.setdefault(f"{model}, {pairs.name}", []).append(point)
                    shown.append(f"{found.accuracy:.3f}")
                rows.append((model, parts, f"{words[parts]:,}", *shown))
        heading = ("model", "parts", "words", *(f"{name} dev" for name in DEV))
        report.add_table("Curves", (*heading, *(pairs.name for pairs in collections)), rows)
        for pairs in collections:
            self._phenomena(report, pairs, sizes)
        report.add_figure(
            draw_line_chart(
                [Series(name, tuple(points)) for name, points in curves.items()],
                title="Minimal pairs by the amount of parsed text",
                x_axis="words",
                y_axis="accuracy",
                log_x=True,
            ),
            "Accuracy by the amount of text",
        )
        add_anchors(report, "Accuracy")

    def _phenomena(self, report: Report, pairs: Pairs, sizes: Sequence[int]) -> None:
        kinds = sorted(set(pairs.phenomena))
        columns = [
            (model, parts) for model in (TREELET, RULE, FIVE_GRAM) for parts in (0, sizes[-1])
        ]
        found = {key: self.differences(*key, pairs) > 0 for key in columns}
        report.add_table(
            f"{pairs.name} by phenomenon",
            ("phenomenon", "n", *(f"{model}, {amount(parts)}" for model, parts in columns)),
            [
                (
                    kind,
                    int(pairs.of_phenomenon(kind).sum()),
                    *(f"{found[key][pairs.of_phenomenon(kind)].mean():.3f}" for key in columns),
                )
                for kind in kinds
            ],
        )

    def _words(self, parts: int) -> int:
        """Return how many words a model was trained on."""
        path = self.work / f"size-{parts}.txt"
        if not path.exists():
            total = sum(len(words) for words in TreeSentences(self.corpus(parts)))
            path.write_text(f"{total}\n", encoding="utf-8")
        return int(path.read_text(encoding="utf-8"))

    def sentences(self, treebank: str) -> Sentences:
        """Return the sentences of the development part of a treebank."""
        path = str(self.data / f"treebanks/{treebank}/dev.mrg")
        corpus = TreeCorpus((path,), on_error="skip")
        return tuple(words for words in TreeSentences(corpus) if words)


def amount(parts: int) -> str:
    """Return how much a model was trained on.

    Examples:
        >>> [amount(parts) for parts in (0, 1, 8)]
        ['treebanks', '1 part', '8 parts']
    """
    return f"{parts} part{'s' * (parts > 1)}" if parts else "treebanks"
