"""What stays the same for all tables: data, models, parser, report."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Sequence
from itertools import islice
from pathlib import Path

from tree_scores import (
    Scores,
    Sentence,
    Training,
    score_all,
)

from published import SOURCE
from treelm.corpus.corpus import TreeCorpus, TreeSentences
from treelm.models.model import LanguageModel
from treelm.models.tree_model import GivesTrees
from treelm.tasks.report.report import Report
from treelm.tasks.report.results import Published
from treelm.tasks.scoring_model import open_parser

TREEBANKS = ("wsj-sample", "masc", "gum", "craft")
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
