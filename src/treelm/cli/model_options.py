"""Options of every command that uses a model, and the lines it reads."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Annotated, Literal, TypeVar

from cyclopts import Parameter

from treelm.cli.options import thread_count
from treelm.cli.terminal import is_terminal
from treelm.corpus.files import read_lines
from treelm.errors import UsageError
from treelm.models.interface.model import LanguageModel

T = TypeVar("T")

#: A model folder.
ModelPath = Annotated[str, Parameter(name=["--model", "-m"])]


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class TextOptions:
    """Options of commands that go through text."""

    threads: int | None = None
    """Threads; default: the cores available. Results do not depend on it."""
    limit: int | None = None
    """Read only the first sentences."""

    @property
    def thread_count(self) -> int:
        """Threads asked for, or the cores available."""
        return thread_count(self.threads)

    def first(self, items: Iterable[T]) -> Iterator[T]:
        """Yield as many as --limit allows."""
        if self.limit is not None and self.limit < 0:
            raise UsageError("--limit must be 0 or more.")
        return islice(items, self.limit)

    def first_lines(self, files: Iterable[str]) -> Iterator[tuple[str, Iterator[str]]]:
        """Yield files with their lines, of all files together as many as --limit allows."""
        left = -1 if self.limit is None else self.limit
        if left < -1 or (left == -1 and self.limit is not None):
            raise UsageError("--limit must be 0 or more.")

        def lines(file: str) -> Iterator[str]:
            nonlocal left
            if left == 0:
                return
            for line in read_lines(file):
                left -= 1
                yield line
                if left == 0:
                    return

        for file in files:
            yield file, lines(file)


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class ScoringOptions:
    """How grammars, and models of trees, score sentences."""

    parser: str | None = None
    """For models of trees: a model folder that parses, or a file of parses, instead of its own."""
    k: Annotated[int | None, Parameter(name=["--k", "-k"])] = None
    """For models of trees: sum over so many trees of a sentence; default: what the model says."""
    pruning: Literal["none", "fast", "default", "accurate"] = "none"
    """For grammars: none is exact; anything else is faster and gives lower bounds."""
    floor: float | None = None
    """Share of a unigram model in the probability of every sentence, such as 0.001, so that those
    without a parse have one; default: none."""

    def model(self, folder: str) -> LanguageModel:
        """Return the model of a folder, made ready."""
        from treelm.models.registry import load
        from treelm.tasks.scoring_model import scoring_model

        return scoring_model(
            load(folder), parser=self.parser, k=self.k, pruning=self.pruning, floor=self.floor
        )


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class SearchOptions:
    """Options of models that keep a beam."""

    beam_width: int | None = None
    """Hypotheses that an hhmm keeps after a word; default: as it was trained, mostly 2000."""
    beam_ratio: float | None = None
    """Drop hypotheses lighter than this share of the heaviest; default: none are."""

    @property
    def given(self) -> dict[str, int | float]:
        """The options that were given."""
        options = {"beam_width": self.beam_width, "beam_ratio": self.beam_ratio}
        return {name: value for name, value in options.items() if value is not None}

    def apply(self, model: LanguageModel) -> LanguageModel:
        """Return the model with the search asked for."""
        return model.with_search(**self.given) if self.given else model


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class MeasureOptions:
    """Options of commands that measure with intervals."""

    seed: int = 0
    """Seed of the random numbers behind intervals and tests."""
    allow_overlap: bool = False
    """Go on if the model was trained on a file it is measured on."""
    threads: int | None = None
    """Threads; default: the cores available. Results do not depend on it."""

    @property
    def thread_count(self) -> int:
        """Threads asked for, or the cores available."""
        return thread_count(self.threads)


def at_once(output: str, *, line_buffered: bool) -> bool:
    """Return whether every record is wanted as soon as it is there."""
    return line_buffered or (output == "-" and is_terminal(sys.stdout))
