"""What stays the same for all tables: data, models, parser, scores, report."""

from __future__ import annotations

import argparse
import math
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from model_store import Clock, Key, ModelStore
from recipe import add_published
from training_sets import TREEBANKS_ONLY, TrainingSets
from tree_scores import Numbers, Scores, ScoreStore, Sentence

from published import SOURCE
from treelm.corpus.corpus import TreeCorpus, TreeSentences
from treelm.grammar.k_best import KBest
from treelm.grammar.parser_options import ParserOptions, Pruning
from treelm.models.interface.parser import ArrayParser, Parser
from treelm.models.open_parser import open_parser
from treelm.tasks.evaluate.classification import Classification
from treelm.tasks.evaluate.comparison import compare_answers, compare_log_probs
from treelm.tasks.evaluate.resampling import Interval
from treelm.tasks.evaluate.significance import bootstrap_sums
from treelm.tasks.report.report import Report
from treelm.tasks.report.results import Result

Flags = npt.NDArray[np.bool_]
#: Number of trees per judged sentence; the publication found one as good as a thousand.
JUDGED_K = 10


class Answers(NamedTuple):
    """How often something was right, and where."""

    accuracy: float
    interval: Interval
    right: Flags


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
        self.latent_cycles: int = arguments.latent_cycles
        self.models = ModelStore(
            self.sets, self.work / "models", self.clock, cycles=self.latent_cycles
        )
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
        """Return the models' scores of sentences, from the work folder where they exist."""
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
        """Return the 95 % interval of a perplexity; documents are resampled."""
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
        found: Answers | Classification,
        baseline: tuple[str, Flags],
    ) -> None:
        """Add an accuracy, and whether it differs from that of a baseline."""
        name, its_right = baseline
        own = key.model == name
        p = None if own else compare_answers(found.right, its_right, seed=self.seed).p_value
        self.report.add_result(
            Result(
                table=table,
                model=key.model,
                metric=metric,
                data=data,
                value=found.accuracy,
                n=len(found.right),
                interval=found.interval,
                p=p,
                baseline=None if own else name,
                digits=3,
            )
        )

    def training_name(self, training: str) -> str:
        """Return the name of a training set with its size."""
        return f"{training}, {self.sets.tokens(training) / 1e6:.2f}M words"

    def published(self, table: str, model: str, metric: str, value: float, number: int) -> None:
        """Add a published number of a numbered table."""
        source, digits = f"{SOURCE}, Table {number}", 3 if value < 1 else 0
        add_published(self.report, table, model, metric, value=value, source=source, digits=digits)


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
        """Return up to `k` trees of every sentence, with the given pruning."""
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
