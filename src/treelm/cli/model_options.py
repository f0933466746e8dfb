"""Options of every command that uses a model, and the lines it reads."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Annotated, TypeVar

from cyclopts import Parameter

from treelm.cli.options import thread_count
from treelm.cli.terminal import is_terminal
from treelm.errors import UsageError
from treelm.models.model import LanguageModel
from treelm.tasks.search import with_search

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


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class SearchOptions:
    """Options of models that keep a beam."""

    beam_width: int | None = None
    """Hypotheses that an hhmm keeps after a word; default: as it was trained, mostly 2000."""
    beam_ratio: float | None = None
    """Drop hypotheses lighter than this share of the heaviest; default: none are."""

    def apply(self, model: LanguageModel) -> LanguageModel:
        """Return the model with the search asked for."""
        given = {"beam_width": self.beam_width, "beam_ratio": self.beam_ratio}
        options = {name: value for name, value in given.items() if value is not None}
        return with_search(model, options) if options else model


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
