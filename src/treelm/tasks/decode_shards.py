"""Translating cut into shards, which may be done by anybody who can read the files."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import NamedTuple

from treelm.corpus.files import Source
from treelm.errors import TreelmWarning
from treelm.models.interface.model import LanguageModel
from treelm.parallel.executor import Executor
from treelm.parallel.progress import SILENT, Progress
from treelm.pickling import PickledFields
from treelm.tasks.decode import make_decoder
from treelm.translation.decoder import Decoder, DecoderConfig, Translation

#: Sentences that a worker translates at a time.
SENTENCES_A_SHARD = 32


class _Shard(NamedTuple):
    """Sentences that are translated together."""

    first: int
    """Number of those before."""
    lines: list[str]


@dataclass(frozen=True, kw_only=True, eq=False)
class Translating(PickledFields):
    """Translates shards; every worker reads the tables for itself.

    Args:
        phrase_table: Phrase table.
        models: Language models.
        weights: File of weights; None for the defaults.
        config: How it searches.
        reordering: Table of orientations.
        allow_deletion: Whether target phrases may be empty.
        n_best: Translations of a sentence that are given at most.
        distinct: Give each string of words once.
        alignments: Give word alignments.
        graph: Give the search graph.
        threads: Number of threads.
    """

    phrase_table: Source
    models: Sequence[LanguageModel]
    weights: Source | None
    config: DecoderConfig
    reordering: Source | None = None
    allow_deletion: bool = False
    n_best: int = 1
    distinct: bool = False
    alignments: bool = False
    graph: bool = False
    threads: int = 1

    @cached_property
    def _decoder(self) -> Decoder:
        with warnings.catch_warnings():
            # Whoever gives the work has read the same files, and said what there is to say.
            warnings.simplefilter("ignore", TreelmWarning)
            return make_decoder(
                self.phrase_table,
                self.models,
                self.weights,
                self.config,
                reordering=self.reordering,
                allow_deletion=self.allow_deletion,
            )

    def __call__(self, shard: _Shard) -> list[Translation]:
        """Translate a shard."""
        found = self._decoder.translate(
            shard.lines,
            n_best=self.n_best,
            distinct=self.distinct,
            alignments=self.alignments,
            graph=self.graph,
            threads=self.threads,
            first=shard.first,
        )
        return list(found)


def translate_in_shards(
    translating: Translating,
    lines: Iterable[str],
    executor: Executor,
    progress: Progress = SILENT,
) -> Iterator[Translation]:
    """Yield the translations of lines, in order, made by many workers.

    Args:
        translating: How shards are translated.
        lines: The sentences.
        executor: Does the work.
        progress: Shows how many sentences are done.
    """

    def shards() -> Iterator[_Shard]:
        rest, first = iter(lines), 0
        while some := list(islice(rest, SENTENCES_A_SHARD)):
            yield _Shard(first, some)
            first += len(some)

    with progress.step("translating", unit="sentences") as step:
        for found in executor.map(translating, shards()):
            step.advance(len(found))
            yield from found
