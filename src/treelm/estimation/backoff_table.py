"""Back-off tables: the probabilities of a chain, looked up in place in memory.

A table is immutable. It is made by `treelm.estimation.estimate`, saved as a few arrays, and used
straight from the mapped file when loaded.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from treelm import _native
from treelm.errors import EstimationError, ModelFileError
from treelm.events.counts import Ids, Places, as_rows
from treelm.kernel_errors import kernel_errors
from treelm.store.schema import ANY, Tensor, read_tensors

if TYPE_CHECKING:
    from treelm.estimation.quantize import CodeBits

Floats = npt.NDArray[np.float64]

#: Means "no id".
NO_ID: int = _native.NO_ID

#: Versions of the arrays, in the order of hashes and compact; a change of the one layout or of the
#: hash, or of the other, takes the next number.
TABLE_VERSION, COMPACT_VERSION = 2, 3

#: The tensors of a table; their values are checked where they are used, by the kernel.
_STORED: dict[str, type[np.generic]] = {
    "slots": np.uint8,
    "index": np.uint32,
    "codebooks": np.float32,
    "shape": np.uint64,
}
_PICKLED = "table"

#: No table has a longer description.
_MAX_SHAPE = 1000


class SpilledArray(np.ndarray[Any, np.dtype[Any]]):
    """An array in a temporary file: what was read of it may leave memory again."""

    forget: Callable[[], None] = staticmethod(lambda: None)

    @classmethod
    def over(cls, array: npt.NDArray[Any], forget: Callable[[], None]) -> SpilledArray:
        """Return the same array, with a way to release its memory."""
        spilled = array.view(cls)
        spilled.forget = forget
        return spilled


class BackoffTable:
    """Probabilities and back-off weights of a chain.

    Rows are an outcome and its context, in the chain's order of columns. A context column that
    was never seen may be any id, `NO_ID` for instance.
    """

    def __init__(self, native: _native.BackoffTable) -> None:
        self.native = native

    @property
    def shape(self) -> _native.TableShape:
        """Levels, regions and the other values that describe the table."""
        return self.native.shape

    @property
    def widths(self) -> tuple[int, ...]:
        """Number of context columns that each level keeps."""
        return tuple(self.shape.widths)

    @property
    def context_columns(self) -> int:
        """Number of columns of a whole context."""
        return self.widths[0]

    @property
    def bytes(self) -> int:
        """Size of the table in memory and in its file."""
        arrays = (self.native.slots, self.native.index, self.native.codebooks)
        return sum(array.nbytes for array in arrays)

    def log_probabilities(
        self, rows: npt.ArrayLike, *, level: int = 0, base: Floats | None = None
    ) -> Floats:
        """Return ln p(outcome | context) of rows.

        Args:
            rows: Outcomes with whole contexts.
            level: Use this level and those below it only.
            base: Base probability of every row, where the base is not uniform.
        """
        matrix = as_rows(rows, self.context_columns + 1)
        with kernel_errors("looking up probabilities"):
            return self.native.log_probabilities(level, matrix, base)

    def distribution(self, context: Sequence[int]) -> Floats:
        """Return ln p of all outcomes after a context, by their id."""
        if len(context) != self.context_columns:
            raise EstimationError(
                f"a context of {self.context_columns} columns was expected, but one of "
                f"{len(context)} was given.",
                code="E_ARITY",
            )
        with kernel_errors("looking up a distribution"):
            return self.native.distribution(list(context))

    def backoff_weights(self, contexts: npt.ArrayLike, *, level: int = 0) -> Floats:
        """Return the weight that the contexts of a level give to the level below."""
        matrix = as_rows(contexts, self.context_columns)
        with kernel_errors("looking up back-off weights"):
            return self.native.backoffs(level, matrix)

    def rows(self, level: int, *, with_carriers: bool = False) -> tuple[Ids, Floats, Floats]:
        """Return the stored rows of a level: columns, p, and weight as a context.

        A negative p marks a row that exists only because longer ones do; a negative weight marks
        a row that is not a stored context.

        Args:
            level: The level.
            with_carriers: Also rows that exist only because longer ones do.
        """
        with kernel_errors("listing a table"):
            return self.native.rows(level, with_carriers=with_carriers)

    def advance(self, contexts: npt.ArrayLike, words: npt.ArrayLike) -> tuple[Floats, Ids]:
        """Return ln p of words after contexts, and the contexts that come next.

        Args:
            contexts: The words before, most recent first, `NO_ID` beyond the known ones.
            words: One word per context.

        Returns:
            Log probabilities, and contexts shortened to what the table can distinguish.
        """
        matrix = as_rows(contexts, self.context_columns)
        with kernel_errors("scoring words"):
            logs, following = self.native.advance(
                matrix, np.ascontiguousarray(words, dtype=np.uint32)
            )
        # Unigrams have contexts without columns, still one per word.
        return logs, following.reshape(len(logs), self.context_columns)

    def score_sequences(
        self, ids: Ids, starts: Places, start: int, end: int | None, threads: int = 1
    ) -> Floats:
        """Return ln p of every word of sequences, and of the end of each.

        Args:
            ids: The words of all sequences.
            starts: Where each sequence begins in `ids`, and where the last one ends.
            start: Id of the padding before the first word.
            end: Id scored after the last word of each sequence; None to leave it out.
            threads: Number of threads.
        """
        with kernel_errors("scoring sentences"):
            return self.native.score_sequences(
                ids, starts, start=start, end=NO_ID if end is None else end, threads=threads
            )

    def sample(self, contexts: npt.ArrayLike, seed: int, streams: Places, counters: Places) -> Ids:
        """Return one outcome for every context, sampled exactly from the chain.

        Args:
            contexts: Whole contexts.
            seed: Seed of the random numbers.
            streams: Random stream of each sample, such as the number of its sentence.
            counters: Number of the sample in its stream; below 2**56.

        Returns:
            Outcomes; `NO_ID` where the outcome comes from a base that is not uniform.
        """
        matrix = as_rows(contexts, self.context_columns)
        with kernel_errors("sampling"):
            return self._sampler.draw(matrix, seed & ((1 << 64) - 1), streams, counters)

    def sampler(self, base: Floats | None = None, *, never: int = NO_ID) -> _native.ChainSampler:
        """Return a sampler for the table.

        Args:
            base: Where the base is not uniform, its probability for every row of the last level,
                in the order of `rows`.
            never: An outcome that a uniform base never produces.
        """
        shape = self.shape
        if base is None and not shape.base_size and self._leaves_something_for_the_base():
            raise EstimationError(
                "the base of this table is not stored with it: sampling needs its probabilities.",
                code="E_ARGUMENT",
            )
        with kernel_errors("preparing to sample"):
            return _native.ChainSampler(self.native, base, never=never)

    def _leaves_something_for_the_base(self) -> bool:
        last = len(self.widths) - 1
        empty = [[NO_ID] * self.context_columns]
        return self.widths[last] > 0 or bool(self.backoff_weights(empty, level=last)[0])

    @cached_property
    def _sampler(self) -> _native.ChainSampler:
        return self.sampler()

    def quantized(self, bits: CodeBits, *, threads: int = 1) -> BackoffTable:
        """Return the table with codes of 4 to 8 or 16 bits instead of floats.

        Args:
            bits: Number of bits per code.
            threads: Number of threads.
        """
        from treelm.estimation.quantize import quantize

        return quantize(self, bits, threads=threads).table

    def to_tensors(self, prefix: str) -> dict[str, npt.NDArray[Any]]:
        """Return the arrays that a model folder stores, named after `prefix`."""
        shape = self.shape
        numbers = [
            COMPACT_VERSION if shape.compact else TABLE_VERSION,
            shape.sequence,
            shape.value_bits,
            shape.outcomes,
            shape.first_contexts,
            shape.base_size,
            shape.pad,
            int(np.float64(shape.empty_weight).view(np.uint64)),
            len(shape.widths),
            *shape.widths,
            len(shape.entries),
            len(shape.contexts),
            *(
                number
                for region in (*shape.entries, *shape.contexts)
                for number in region[: _region_numbers(compact=shape.compact)]
            ),
        ]
        slots, index = self.native.slots, self.native.index
        if self.native.spilled:
            slots = SpilledArray.over(slots, self.native.forget)
        return {
            f"{prefix}.slots": slots,
            f"{prefix}.index": index,
            f"{prefix}.codebooks": self.native.codebooks,
            f"{prefix}.shape": np.array(numbers, dtype=np.uint64),
        }

    @classmethod
    def from_tensors(cls, tensors: Mapping[str, npt.NDArray[Any]], prefix: str) -> BackoffTable:
        """Return the table that `to_tensors` stored; its slots are not copied.

        Raises:
            ModelFileError: ``E_MODEL_TABLES`` if the arrays are not a valid table.
        """
        schema = [Tensor(f"{prefix}.{name}", dtype, (ANY,)) for name, dtype in _STORED.items()]
        found = read_tensors(tensors, schema)
        arrays = {name: np.ascontiguousarray(found[f"{prefix}.{name}"]) for name in _STORED}
        numbers = arrays.pop("shape")
        try:
            if len(numbers) > _MAX_SHAPE:
                raise ValueError("is too long")
            shape = _read_shape(numbers.tolist())
        except (ValueError, OverflowError) as error:
            raise ModelFileError(
                f'the tensor "{prefix}.shape" {error}', code="E_MODEL_TABLES"
            ) from error
        with kernel_errors(f'opening the table "{prefix}"'):
            return cls(_native.BackoffTable(shape, **arrays))

    def __reduce__(self) -> tuple[Any, ...]:
        tensors = {name: np.array(array) for name, array in self.to_tensors(_PICKLED).items()}
        return type(self).from_tensors, (tensors, _PICKLED)


def _region_numbers(*, compact: bool) -> int:
    """Return how many numbers describe a region: rows, buckets and bits of the last column.

    Of a compact table the bits of probabilities and of weights are among them.
    """
    return 5 if compact else 3


def _read_shape(numbers: list[int]) -> _native.TableShape:
    stream = iter(numbers)

    def take(count: int) -> list[int]:
        found = [number for _, number in zip(range(count), stream, strict=False)]
        if len(found) != count:
            raise ValueError("is too short")
        return found

    version, sequence, value_bits, outcomes, first_contexts, base_size, pad, weight = take(8)
    if version not in (TABLE_VERSION, COMPACT_VERSION):
        raise ValueError(
            f"has version {version}; this treelm reads versions {TABLE_VERSION} and "
            f"{COMPACT_VERSION}"
        )
    compact = version == COMPACT_VERSION
    described = _region_numbers(compact=compact)
    widths = take(min(take(1)[0], _MAX_SHAPE))
    entry_count, context_count = take(2)
    regions = [
        take(described) + [0] * (5 - described)
        for _ in range(min(entry_count + context_count, _MAX_SHAPE))
    ]
    if next(stream, None) is not None or sequence > 1:
        raise ValueError("is too long")
    for number in (pad, value_bits, *widths):
        if number > NO_ID:
            raise ValueError("contains an id that is too large")
    return _native.TableShape(
        widths=widths,
        outcomes=outcomes,
        first_contexts=first_contexts,
        entries=regions[:entry_count],
        contexts=regions[entry_count:],
        sequence=bool(sequence),
        value_bits=value_bits,
        base_size=base_size,
        pad=pad,
        empty_weight=float(np.uint64(weight).view(np.float64)),
        compact=compact,
    )
