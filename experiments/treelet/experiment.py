"""What stays the same for all tables: data, models, parser, scores, report."""

from __future__ import annotations

import argparse
import math
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path

import numpy as np
import numpy.typing as npt
from model_store import FIVE_GRAM, Clock, Key, ModelStore
from training_sets import TREEBANKS_ONLY, TrainingSets
from tree_scores import Numbers, Scores, ScoreStore, Sentence

from published import SOURCE
from treelm.corpus.corpus import TreeCorpus, TreeSentences
from treelm.grammar.k_best import KBest
from treelm.grammar.parser_options import ParserOptions, Pruning
from treelm.models.interface.parser import ArrayParser, Parser
from treelm.tasks.evaluate.comparison import compare_answers, compare_log_probs
from treelm.tasks.evaluate.resampling import Interval
from treelm.tasks.evaluate.significance import bootstrap_sums
from treelm.tasks.report.report import Report
from treelm.tasks.report.results import Published, Result
from treelm.tasks.scoring_model import open_parser

#: Trees of a sentence that is judged; the publication found one to be as good as a thousand.
JUDGED_K = 10


class Experiment:
    """What stays the same for all tables."""

    def __init__(self, arguments: argparse.Namespace, report: Report) -> None:
        self.report = report
        self.work: Path = arguments.work
        self.data: Path = arguments.data
        self.seed: int = arguments.seed
        self.threads: int = arguments.threads
        self.limit: int | None = arguments.limit
        self.allow_overlap: bool = arguments.allow_overlap
        self.negatives_text: Path = self.data / f"text/{arguments.negatives}.txt.xz"
        self.ks: tuple[int, ...] = tuple(k for k in (1, 10, 100, 1000) if k <= arguments.k)
        self.judged_k = min(JUDGED_K, max(self.ks))
        self.dev_ks: tuple[int, ...] = tuple({self.judged_k, max(self.ks)})
        self.clock = Clock(arguments.minutes)
        self.sets = TrainingSets(
            self.data, self.work / "training", arguments.auto, self.seed, self.threads
        )
        self.models = ModelStore(self.sets, self.work / "models", self.clock)
        parser = pruned_parser(open_parser(arguments.parser), arguments.pruning)
        self.store = ScoreStore(self.models, parser, self.work / "scores", self.clock, self.threads)
        report.add_input(
            "training trees",
            self.sets.fingerprint,
            role="train",
            stands_for="WSJ, Brown, Gigaword",
        )

    def score(
        self, name: str, sentences: Sequence[Sentence], keys: Sequence[Key], ks: Sequence[int] = ()
    ) -> Scores:
        """Return what models say about sentences, from the store where it was said before."""
        return self.store.scores(name, sentences, keys, ks or self.ks)

    # -- treebanks --------------------------------------------------------------------------

    def sentences(self, treebank: str, part: str) -> list[Sentence]:
        """Return the sentences of a treebank, all of them unless there is a limit."""
        corpus = TreeCorpus((self.data / f"treebanks/{treebank}/{part}.mrg",), on_error="skip")
        return [words for words in TreeSentences(corpus) if words][: self.limit]

    def documents(self, treebank: str, part: str) -> npt.NDArray[np.int64]:
        """Return the number of the document of each sentence."""
        corpus = TreeCorpus((self.data / f"treebanks/{treebank}/{part}.mrg",), on_error="skip")
        names: dict[str | None, int] = {}
        numbers = [
            names.setdefault(one.document, len(names))
            for one in corpus.with_documents()
            if one.tree.words
        ]
        return np.array(numbers[: self.limit], dtype=np.int64)

    @cached_property
    def small(self) -> str:
        """The training set of treebanks alone; where there is nothing else, all trees."""
        return self.sets.named_or_all(TREEBANKS_ONLY)

    # -- results ----------------------------------------------------------------------------

    def add_perplexity(
        self,
        table: str,
        model: str,
        data: str,
        *,
        values: Numbers,
        lengths: npt.NDArray[np.int64],
        documents: npt.NDArray[np.int64],
        baseline: tuple[str, Numbers] | None,
    ) -> None:
        """Add a perplexity with its interval, and whether it differs from a baseline."""
        p = None
        if baseline is not None:
            p = compare_log_probs(
                values, baseline[1], seed=self.seed, lengths=lengths, documents=documents
            ).p_value
        self.report.add_result(
            Result(
                table=table,
                model=model,
                metric="perplexity with ends",
                data=data,
                value=perplexity(values, lengths),
                n=len(values),
                interval=self.perplexity_interval(values, lengths, documents),
                p=p,
                baseline=None if baseline is None else baseline[0],
                digits=1,
            )
        )

    def perplexity_interval(
        self,
        values: Numbers,
        lengths: npt.NDArray[np.int64],
        documents: npt.NDArray[np.int64],
    ) -> tuple[float, float]:
        """Return the 95 % interval of a perplexity; documents are drawn."""
        columns = [np.bincount(documents, weights=each) for each in (values, lengths + 1.0)]
        items = np.stack(columns, axis=1).astype(np.float64)
        found = bootstrap_sums(
            items[items[:, 1] > 0],
            lambda sums: sums[:, 0] / sums[:, 1],
            statistic="log_perplexity",
            seed=self.seed,
        )
        low, high = found.interval
        return math.exp(-high), math.exp(-low)

    def add_accuracy(
        self,
        table: str,
        key: Key,
        metric: str,
        data: str,
        *,
        value: float,
        interval: Interval,
        right: npt.NDArray[np.bool_],
        five_right: npt.NDArray[np.bool_],
    ) -> None:
        """Add an accuracy, and whether it differs from that of the 5-gram model."""
        own = key.model == FIVE_GRAM
        p = None if own else compare_answers(right, five_right, seed=self.seed).p_value
        self.report.add_result(
            Result(
                table=table,
                model=key.model,
                metric=metric,
                data=data,
                value=value,
                n=len(right),
                interval=interval,
                p=p,
                baseline=None if own else FIVE_GRAM,
                digits=3,
            )
        )

    def training_name(self, training: str) -> str:
        """Return a training set with its size, as people read it."""
        return f"{training}, {self.sets.tokens(training) / 1e6:.2f}M words"

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


class _PrunedParser(ArrayParser):
    def __init__(self, parser: ArrayParser, options: ParserOptions) -> None:
        self._parser = parser
        self._options = options

    def k_best_many(
        self,
        sentences: Sequence[Sequence[str]],
        k: int,
        *,
        options: ParserOptions | None = None,
        threads: int = 1,
    ) -> list[KBest | None]:
        """Return up to `k` trees of every sentence, pruned as told."""
        given = options or self._options
        return self._parser.k_best_many(sentences, k, options=given, threads=threads)


def pruned_parser(parser: Parser, pruning: Pruning) -> Parser:
    """Return a parser that prunes as told; one that lists stored trees as it is."""
    if not isinstance(parser, ArrayParser):
        return parser
    return _PrunedParser(parser, ParserOptions(pruning=pruning))


def perplexity(values: Numbers, lengths: npt.NDArray[np.int64]) -> float:
    """Return the perplexity with sentence ends of log probabilities."""
    return math.exp(-float(values.sum()) / float((lengths + 1).sum()))
