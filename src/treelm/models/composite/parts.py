"""Predictor, tagger and constructor: the lattices, their events, and their search."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from treelm import _native
from treelm.corpus.lengths import check_starts
from treelm.errors import EstimationError
from treelm.estimation.lattice import Floats, Ids, Lattice, LatticeEvents, LatticeTables
from treelm.estimation.lattice_weights import CheckEvents, LatticeModel, LatticeWeights, fit_weights
from treelm.kernel_errors import kernel_errors
from treelm.models.composite.actions import ActionCodes
from treelm.models.composite.config import CompositeConfig
from treelm.models.composite.parsed_text import ParsedText, ParseLists
from treelm.parallel.progress import SILENT, Progress, kernel_report
from treelm.pickling import PickledFields

#: Number of sentences whose events are in memory at once.
SENTENCES_AT_ONCE = 4096
#: About how many shards a text is cut into, and the most sentences of one.
SHARDS = 1024
MOST_A_SHARD = 1024
#: Parses that a search which drops none may come to; their number grows with each word by a factor.
_MOST_PARSES = 10**6
#: Nats below the best at which hardly any parse of a few words is found.
_FAR_BELOW = 100.0
_LONGEST = 1000
#: Names of the parts, in the order in which kernels return their events.
PARTS = ("predictor", "tagger", "constructor")

Counts = npt.NDArray[np.int64]
#: Columns, outcomes and counts of events.
Rows = tuple[Ids, Ids, Counts]


@dataclass(frozen=True, eq=False)
class Mixtures:
    """The topics of sentences, any number for each; none at all for a model without topics.

    Args:
        starts: Where the topics of each sentence begin, and their number.
        topics: Numbers of topics, ascending within a sentence.
        shares: Their shares.
    """

    starts: npt.NDArray[np.uint64]
    topics: Ids
    shares: Floats

    @classmethod
    def none(cls) -> Mixtures:
        """Return no topics."""
        return cls(np.zeros(1, np.uint64), np.zeros(0, np.uint32), np.zeros(0))

    def part(self, first: int, last: int) -> Mixtures:
        """Return the topics of some sentences."""
        if not len(self.topics):
            return self
        starts = self.starts[first : last + 1]
        chosen = slice(int(starts[0]), int(starts[-1]))
        return Mixtures(starts - starts[0], self.topics[chosen], self.shares[chosen])

    @property
    def arrays(self) -> tuple[npt.NDArray[np.uint64], Ids, Floats]:
        """As kernels take them."""
        return self.starts, self.topics, self.shares


NO_TOPICS = Mixtures.none()


@dataclass(frozen=True)
class CompositeShape(PickledFields):
    """How large everything is.

    Args:
        config: Options.
        words: Number of symbols of the vocabulary.
        codes: Tags and moves.
    """

    config: CompositeConfig
    words: int
    codes: ActionCodes

    @cached_property
    def native(self) -> _native.SlmShape:
        """The shape as the kernel has it."""
        with kernel_errors("making a structured language model"):
            return _native.SlmShape(
                words=self.words,
                tags=len(self.codes.tags),
                phrases=len(self.codes.phrases),
                order=self.config.order,
                heads=self.config.heads,
                head_labels=self.config.head_labels,
                unary_moves=self.config.unary_moves,
            )

    @cached_property
    def lattices(self) -> dict[str, Lattice]:
        """The lattice of each part."""
        heads, topics = self.config.heads, self.config.topics > 0
        predictor = Lattice.grid(
            self.words + 1,
            words=self.config.order - 1,
            heads=heads,
            head_columns=1,
            topics=topics,
        )
        if not heads:
            return {"predictor": predictor}
        return {
            "predictor": predictor,
            "tagger": Lattice.chain(len(self.codes.tags), columns=1 + heads),
            "constructor": Lattice.chain(self.native.moves, columns=2 * heads),
        }

    def limits(self, part: str) -> list[int]:
        """Return, for each column of a part, the number that all its ids are below."""
        heads, words, labels = self.config.heads, self.words + 2, self.native.labels
        if part == "tagger":
            return [words, *[labels] * heads]
        if part == "constructor":
            return [*[labels] * heads, *[words] * heads]
        head = words * labels if self.config.head_labels else words
        topics = [self.config.topics] if self.config.topics else []
        return [*[words] * (self.config.order - 1), *[head] * heads, *topics]

    def collectors(self, threads: int) -> dict[str, LatticeEvents]:
        """Return the collectors of the events of each part."""
        return {
            part: LatticeEvents(lattice, self.limits(part), threads=threads)
            for part, lattice in self.lattices.items()
        }

    def events(
        self,
        text: ParsedText,
        lists: ParseLists,
        weights: Floats,
        mixtures: Mixtures = NO_TOPICS,
        word_shares: Floats | None = None,
        *,
        threads: int = 1,
    ) -> tuple[dict[str, Rows], Counts]:
        """Return the events of given parses, and the number of words of each topic of a mixture."""
        with kernel_errors("counting parses"):
            *rows, topics = self.native.events(
                text.ids,
                text.starts,
                *mixtures.arrays,
                lists.sentence_starts,
                lists.actions,
                lists.action_starts,
                weights,
                np.zeros(0) if word_shares is None else word_shares,
                threads=threads,
            )
        return dict(zip(PARTS, rows, strict=True)), topics


@dataclass(frozen=True, eq=False)
class CompositeParts(PickledFields):
    """The lattices of a model, and the search with them.

    Args:
        shape: The sizes of everything.
        models: The lattice of each part, with its weights.
    """

    shape: CompositeShape
    models: Mapping[str, LatticeModel]

    @cached_property
    def search(self) -> _native.SlmSearch:
        """The search of the kernel."""
        config = self.shape.config
        tagger, constructor = self.models.get("tagger"), self.models.get("constructor")
        with kernel_errors("preparing the search"):
            return _native.SlmSearch(
                self.shape.native,
                self.models["predictor"].native,
                None if tagger is None else tagger.native,
                None if constructor is None else constructor.native,
                stack_size=config.stack_size or 0,
                threshold=math.inf if config.threshold is None else config.threshold,
                beam=config.choice_beam,
                merge=config.merge,
                topics=config.topics,
            )

    @cached_property
    def longest(self) -> int | None:
        """Most words of a sentence whose parses can all be kept; None if the search drops some."""
        if self.drops_parses:
            return None
        words = 1
        while words < _LONGEST and self._parses(words + 1) <= _MOST_PARSES:
            words += 1
        return words

    @property
    def drops_parses(self) -> bool:
        """Whether the search keeps only some hypotheses, so that they do not multiply."""
        config = self.shape.config
        stacks = config.stack_size is not None and config.stack_size <= _MOST_PARSES
        threshold = config.threshold is not None and config.threshold <= _FAR_BELOW
        return not config.heads or stacks or threshold

    def _parses(self, words: int) -> int:
        """Return how many parses a sentence has: shapes of binary trees, and their labels."""
        codes = self.shape.codes
        shapes = math.comb(2 * words - 2, words - 1) // words
        unary = 1 + len(codes.phrases) if codes.unary_moves else 1
        labels = len(codes.tags) ** words * (2 * len(codes.phrases)) ** (words - 1)
        return int(shapes * labels * unary ** (2 * words - 1))

    def check_growth(self, hypotheses: int) -> None:
        """Refuse the next word where a search that drops nothing has too many hypotheses.

        Args:
            hypotheses: How many there are.

        Raises:
            EstimationError: ``E_TOO_LONG``.
        """
        if not self.drops_parses and hypotheses * self._parses(2) > _MOST_PARSES * self._parses(1):
            raise EstimationError(
                f"this search keeps all hypotheses, {hypotheses} by now, and the next word would "
                "multiply them beyond any memory. Give the model a stack_size or a threshold.",
                code="E_TOO_LONG",
            )

    def of_text(self, _: ParsedText) -> CompositeParts:
        """Return what a search of some sentences needs: everything there is."""
        return self

    def with_model(self, part: str, model: LatticeModel) -> CompositeParts:
        """Return the parts with one of them replaced."""
        return CompositeParts(self.shape, {**self.models, part: model})

    def best_parses(
        self,
        text: ParsedText,
        mixtures: Mixtures = NO_TOPICS,
        *,
        count: int,
        threads: int = 1,
        progress: Progress = SILENT,
    ) -> ParseLists:
        """Return the best parses of every sentence.

        Raises:
            TooLongSentence: ``E_TOO_LONG`` where the search keeps all of too many parses.
        """
        check_starts(text.starts, self.longest, "composite")
        with (
            kernel_errors("searching parses"),
            progress.step("searching parses", total=len(text), unit="sentences") as step,
        ):
            found = self.search.best_parses(
                text.ids,
                text.starts,
                *mixtures.arrays,
                count=count,
                threads=threads,
                progress=kernel_report(step),
            )
        return ParseLists(*found)

    def score_parses(
        self,
        text: ParsedText,
        lists: ParseLists,
        mixtures: Mixtures = NO_TOPICS,
        *,
        threads: int = 1,
    ) -> Floats:
        """Return ln P(words, parse) of every parse."""
        with kernel_errors("scoring parses"):
            return self.search.score_parses(
                text.ids,
                text.starts,
                *mixtures.arrays,
                lists.sentence_starts,
                lists.actions,
                lists.action_starts,
                threads=threads,
            )

    def events(
        self,
        text: ParsedText,
        lists: ParseLists,
        weights: Floats,
        mixtures: Mixtures = NO_TOPICS,
        *,
        threads: int = 1,
    ) -> tuple[dict[str, Rows], Counts]:
        """Return the events of parses; words are distributed over topics by these parts."""
        with kernel_errors("counting parses"):
            *rows, topics = self.search.events(
                text.ids,
                text.starts,
                *mixtures.arrays,
                lists.sentence_starts,
                lists.actions,
                lists.action_starts,
                weights,
                threads=threads,
            )
        return dict(zip(PARTS, rows, strict=True)), topics

    def to_tensors(self) -> dict[str, npt.NDArray[Any]]:
        """Return the arrays that a model folder stores."""
        return {
            name: array
            for part, model in self.models.items()
            for name, array in model.to_tensors(part).items()
        }

    @classmethod
    def from_tensors(
        cls, shape: CompositeShape, tensors: Mapping[str, npt.NDArray[Any]]
    ) -> CompositeParts:
        """Return the parts that `to_tensors` stored; nothing in them is trusted.

        Raises:
            ModelFileError: ``E_MODEL_TABLES`` if the arrays do not fit the shape.
        """
        models = {
            part: LatticeModel.from_tensors(lattice, tensors, part, topics=shape.config.topics)
            for part, lattice in shape.lattices.items()
        }
        return cls(shape, models)


def weighted(
    tables: Mapping[str, LatticeTables],
    check: Mapping[str, CheckEvents] | None,
    *,
    threads: int = 1,
    progress: Progress = SILENT,
) -> dict[str, LatticeModel]:
    """Return tables with the weights found on held-out events; equal weights without them."""
    models = {}
    for part, each in tables.items():
        if check is None:
            weights = LatticeWeights.equal(each.lattice)
        else:
            weights = fit_weights(each, check[part], threads=threads, progress=progress)
        models[part] = LatticeModel(each, weights)
    return models


def check_events(rows: Mapping[str, Rows]) -> dict[str, CheckEvents]:
    """Return events with fixed-point counts as held-out events for finding weights."""
    return {
        part: CheckEvents(columns, outcomes, counts / float(1 << 30))
        for part, (columns, outcomes, counts) in rows.items()
    }


def shard_sentences(sentences: int, least: int) -> int:
    """Return how many sentences of a text a worker searches at a time.

    Few of a small text, so that no worker waits long for the last one; more of a large one, so that
    there are not too many pieces.

    Args:
        sentences: Number of sentences.
        least: The least; the result is this times a power of two.

    Examples:
        >>> shard_sentences(4096, 32), shard_sentences(100_000, 32), shard_sentences(10**9, 32)
        (32, 128, 1024)
    """
    size = least
    while size < MOST_A_SHARD and sentences > SHARDS * size:
        size *= 2
    return size


def pieces(text: ParsedText, sentences: int = SENTENCES_AT_ONCE) -> Iterator[tuple[int, int]]:
    """Yield the first and the last sentence of pieces that fit into memory."""
    for first in range(0, len(text), sentences):
        yield first, min(first + sentences, len(text))
