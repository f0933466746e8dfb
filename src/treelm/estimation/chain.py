"""Back-off chains: which part of a context is kept when the whole was seen too rarely."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from treelm import _native
from treelm.errors import EstimationError, option
from treelm.events.counts import EventCounts, Ids, as_rows
from treelm.kernel_errors import kernel_errors
from treelm.parallel.memory import MemoryLimit

CountKind = Literal["types", "tokens"]


@dataclass(frozen=True, slots=True)
class Chain:
    """The columns of a context in order of retention, and how many each level keeps.

    Args:
        columns: Names of the context columns, beginning with the one that is dropped last.
        widths: Number of columns that each level keeps, beginning with all of them.
        pads: Per column the id used for padding (``<s>`` before a sentence), or None. A
            context with one pad keeps token counts, one with more has no counts.
        sequence: Whether the context is the sequence of the last outcomes (n-grams): its contexts
            are then stored together with its events.

    Raises:
        EstimationError: ``E_CHAIN`` if a level does not follow from the one above.

    Examples:
        >>> Chain.words(order=3, pad=99).widths
        (2, 1, 0)
        >>> Chain(("P", "R"), (2, 1, 1), (None, None))
        Traceback (most recent call last):
        ...
        treelm.errors.EstimationError: level 2 of a chain must drop a column: widths are (2, 1, 1).
    """

    columns: tuple[str, ...]
    widths: tuple[int, ...]
    pads: tuple[int | None, ...]
    sequence: bool = False

    def __post_init__(self) -> None:
        if len(self.pads) != len(self.columns):
            raise EstimationError("every column of a chain needs a pad or None.", code="E_CHAIN")
        if not self.widths or self.widths[0] != len(self.columns) or min(self.widths) < 0:
            raise EstimationError(
                f"the first level of a chain must keep all {len(self.columns)} columns: widths are "
                f"{self.widths}.",
                code="E_CHAIN",
            )
        for level, (above, here) in enumerate(zip(self.widths, self.widths[1:], strict=False), 1):
            if here >= above:
                raise EstimationError(
                    f"level {level} of a chain must drop a column: widths are {self.widths}.",
                    code="E_CHAIN",
                )
            if sum(pad is not None for pad in self.pads[here:above]) > 1:
                raise EstimationError(
                    f"level {level} of a chain drops more than one padded column.", code="E_CHAIN"
                )

    @classmethod
    def words(cls, order: int, pad: int) -> Chain:
        """Return the chain of n-grams: one word fewer at each level."""
        if order < 1:
            raise EstimationError(
                f"the order of an n-gram must be at least 1, not {order}.", code="E_CHAIN"
            )
        return cls(
            tuple(f"word-{back}" for back in range(1, order)),
            tuple(range(order - 1, -1, -1)),
            (pad,) * (order - 1),
            sequence=True,
        )

    @property
    def levels(self) -> int:
        """Number of levels above the base."""
        return len(self.widths)


class ChainCounts:
    """The counts N_j of every level of a chain.

    Args:
        events: What was counted.
        chain: The chain.
        counts: ``types`` for Kneser-Ney's continuation counts below the first level, ``tokens``
            for frequencies at every level.
        keep_tokens: Whether token counts are kept beside continuation counts; leaving out rare
            entries needs them.
        threads: Number of threads.
        memory: Memory limit; where more is needed, levels are read from the events whenever
            they are needed, and only their sizes are kept.
        outcomes: For a chain of words, all of whose ids are below this number: the counts are kept
            in a fifth of the memory, and a table can be estimated from them, but single counts
            cannot be looked up.
        use_up: With `outcomes`: the events are not needed any more; those that are in memory are
            empty afterwards.

    Raises:
        EstimationError: ``E_NO_DATA`` if there are no events.
    """

    native: _native.ChainCounts | _native.SequenceCounts | _native.StreamedCounts

    def __init__(
        self,
        events: EventCounts,
        chain: Chain,
        *,
        counts: CountKind = "types",
        keep_tokens: bool = True,
        threads: int = 1,
        memory: MemoryLimit | None = None,
        outcomes: int | None = None,
        use_up: bool = False,
    ) -> None:
        self.chain = chain
        self.kind: CountKind = counts
        self.threads = threads
        widths = list(chain.widths)
        pads = [_native.NO_ID if pad is None else pad for pad in chain.pads]

        def needed() -> int:
            if outcomes is None:
                return _native.memory_to_estimate(
                    events.native, widths=widths, pads=pads, keep_tokens=keep_tokens
                )
            return _native.memory_of_sequences(
                events.native, widths=widths, pads=pads, keep_tokens=keep_tokens, use_up=use_up
            )

        with kernel_errors("counting the levels of a back-off chain"):
            if memory is not None and (events.spilled or needed() > memory.share + events.bytes):
                self.native = _native.StreamedCounts(
                    events.native,
                    widths=widths,
                    pads=pads,
                    token_counts=counts == "tokens",
                    threads=threads,
                    memory=memory.share,
                    folder=str(memory.folder),
                    progress=None,
                )
                return
            if outcomes is not None:
                self.native = _native.SequenceCounts(
                    events.native,
                    widths=widths,
                    pads=pads,
                    outcomes=outcomes,
                    token_counts=counts == "tokens",
                    keep_tokens=keep_tokens,
                    threads=threads,
                    use_up=use_up,
                )
                return
            self.native = _native.ChainCounts(
                events.native,
                widths=widths,
                pads=pads,
                token_counts=counts == "tokens",
                keep_tokens=keep_tokens,
                threads=threads,
            )

    def __len__(self) -> int:
        """Return the number of levels."""
        return self.native.levels

    def size(self, level: int) -> int:
        """Return the number of entries (context, outcome) of a level."""
        with kernel_errors("reading a level"):
            return self.native.size(level)

    def counts_of_counts(self, level: int) -> tuple[int, int, int, int]:
        """Return n_1..n_4: entries of a level counted once, twice, three and four times."""
        with kernel_errors("reading a level"):
            one, two, three, four = self.native.counts_of_counts(level)
        return one, two, three, four

    def entries(self, level: int) -> tuple[Ids, Ids, Ids]:
        """Return the entries of a level: rows, counts N_j, and token counts."""
        with kernel_errors("reading a level"):
            return self._in_memory.entries(level)

    def contexts(self, level: int) -> tuple[Ids, npt.NDArray[np.uint64], npt.NDArray[np.uint64]]:
        """Return the contexts of a level: columns, S_j (sum of counts), and T_j (types)."""
        with kernel_errors("reading a level"):
            columns, totals, types = self._in_memory.contexts(level)
        # The empty context has no columns, but it is still a row.
        return columns.reshape(len(totals), self.chain.widths[level]), totals, types

    def look_up(self, level: int, rows: npt.ArrayLike) -> tuple[npt.NDArray[np.uint64], ...]:
        """Return, for every row, the count of (context, outcome), and S_j and T_j of the context.

        Args:
            level: The level; only the columns it keeps matter.
            rows: Outcomes with whole contexts.
        """
        matrix = as_rows(rows, len(self.chain.columns) + 1)
        with kernel_errors("looking up counts"):
            return self._in_memory.look_up(level, matrix)

    @property
    def _in_memory(self) -> _native.ChainCounts:
        if isinstance(self.native, _native.ChainCounts):
            return self.native
        if isinstance(self.native, _native.SequenceCounts):
            raise EstimationError(
                "counts that were made with `outcomes` cannot be looked up one by one.",
                code="E_ARGUMENT",
            )
        raise EstimationError(
            "Jelinek-Mercer smoothing looks up single counts in memory, and they do not fit into "
            f"the memory limit. Allow more {option('memory')}, or smooth with mkn.",
            code="E_MEMORY",
        )
