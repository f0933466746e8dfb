"""The numbers of a treelet model, and their files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from treelm import _native
from treelm.corpus.vocabulary import Vocabulary
from treelm.errors import ModelFileError
from treelm.estimation.backoff_table import BackoffTable
from treelm.estimation.layout import make_compact
from treelm.estimation.quantize import CodeBits, quantize
from treelm.estimation.yields import SymbolTable, YieldBase
from treelm.events.extract import EventSymbols
from treelm.kernel_errors import kernel_errors
from treelm.models.treelet.config import WIDTHS, TreeletConfig
from treelm.parallel.memory import MemoryLimit
from treelm.parallel.progress import SILENT, Progress
from treelm.store.schema import ANY, Tensor, Tensors, ids, read_tensors
from treelm.transforms.treelet import Treelet

_NONTERMINAL, _TERMINAL = "nonterminal", "terminal"
_CONDITIONAL, _UNCONDITIONAL = "yields_given_parent", "yields"
_BASE = "yield_base"
#: Labels and lengths below this are stored in 16 bits.
_SHORT = 1 << 16
_SCHEMA = (
    Tensor("yield_labels", np.uint32, (ANY,), optional=True),
    Tensor("yield_starts", np.uint64, (ANY,), optional=True),
    # The same in compact models, where labels and lengths fit into 16 bits.
    Tensor("yield_short_labels", np.uint16, (ANY,), optional=True),
    Tensor("yield_lengths", np.uint16, (ANY,), optional=True),
    Tensor("rules", np.uint32, (ANY, 2)),
    Tensor("is_tag", np.uint8, ("labels",)),
    Tensor("symbol_of_label", np.uint32, ("labels",)),
    Tensor("seen_parents", np.uint8, ("labels",)),
    Tensor("word_tags", np.uint32, ("words",), ids("tags")),
    Tensor(_BASE, np.float64, (2,)),
)


@dataclass(frozen=True, eq=False)
class TreeletTables:
    """Everything in a treelet model but its words.

    Args:
        symbols: Labels, right-hand sides and rules by id.
        nonterminal: Right-hand sides given label, parent and the parent's rule.
        terminal: Words given tag, sibling to the right, rule and two words before.
        base: Right-hand sides never seen below a label.
        is_tag: Whether each label is over words.
        tags: Categories of words before any transform.
        word_tags: For every word the place of its most frequent category in `tags`.
    """

    symbols: EventSymbols
    nonterminal: BackoffTable
    terminal: BackoffTable
    base: YieldBase
    is_tag: npt.NDArray[np.bool_]
    tags: tuple[str, ...]
    word_tags: npt.NDArray[np.uint32]

    def kernel(
        self, vocabulary: Vocabulary, transform: Treelet, marked_tags: Sequence[str] = ()
    ) -> _native.TreeletModel:
        """Return the kernel that scores trees.

        Raises:
            ModelFileError: ``E_MODEL_TABLES`` if the parts do not fit together.
        """
        with kernel_errors("opening a treelet model"):
            return _native.TreeletModel(
                labels=list(self.symbols.labels),
                yield_labels=np.ascontiguousarray(self.symbols.yield_labels),
                yield_starts=np.ascontiguousarray(self.symbols.yield_starts),
                rules=np.ascontiguousarray(self.symbols.rules),
                nonterminal=self.nonterminal.native,
                terminal=self.terminal.native,
                base=self.base.native,
                encoder=vocabulary.encoder,
                recipe=transform.recipe,
                marked_tags=list(marked_tags),
            )

    @cached_property
    def value_bits(self) -> int:
        """Number of bits per stored probability of the two large tables."""
        return self.terminal.shape.value_bits

    def check(self, config: TreeletConfig) -> None:
        """Refuse tables that do not fit a configuration.

        Raises:
            ModelFileError: ``E_MODEL_TABLES``.
        """
        widths = (self.nonterminal.context_columns, self.terminal.context_columns)
        bits = self.value_bits if self.value_bits < 32 else None
        compact = [table.shape.compact for table in (self.nonterminal, self.terminal)]
        if (
            widths != WIDTHS[config.variant]
            or bits != config.bits
            or compact != [config.layout == "compact"] * 2
        ):
            raise _damaged(
                "the tables have another variant, precision or layout than the manifest says"
            )

    def quantized(
        self, bits: CodeBits, *, threads: int = 1, progress: Progress = SILENT
    ) -> TreeletTables:
        """Return the tables with codes instead of floats.

        Those of right-hand sides stay, unless the tables are made compact afterwards.
        """
        small = (
            quantize(table, bits, threads=threads, progress=progress).table
            for table in (self.nonterminal, self.terminal)
        )
        nonterminal, terminal = small
        return replace(self, nonterminal=nonterminal, terminal=terminal)

    def compacted(
        self,
        bits: CodeBits | None,
        *,
        memory: MemoryLimit | None = None,
        progress: Progress = SILENT,
    ) -> TreeletTables:
        """Return the tables as compact ones, with codes for right-hand sides too if there are."""

        def smaller(table: BackoffTable) -> BackoffTable:
            if bits is not None and table.shape.value_bits == 32:
                table = quantize(table, bits, progress=progress).table
            return make_compact(table, bits, memory=memory, progress=progress)

        base = YieldBase(
            smaller(self.base.conditional),
            smaller(self.base.unconditional),
            self.base.symbols,
            self.base.parents,
            weight=self.base.weight,
        )
        return replace(
            self, nonterminal=smaller(self.nonterminal), terminal=smaller(self.terminal), base=base
        )

    def to_tensors(self) -> dict[str, npt.NDArray[Any]]:
        """Return the arrays that a model folder stores; labels and tags have their own files."""
        return {
            **self.nonterminal.to_tensors(_NONTERMINAL),
            **self.terminal.to_tensors(_TERMINAL),
            **self.base.conditional.to_tensors(_CONDITIONAL),
            **self.base.unconditional.to_tensors(_UNCONDITIONAL),
            **self._right_hand_sides(),
            "rules": self.symbols.rules,
            "is_tag": self.is_tag.astype(np.uint8),
            "symbol_of_label": self.base.symbols.of_label,
            "seen_parents": self.base.parents.astype(np.uint8),
            "word_tags": self.word_tags,
            _BASE: np.array([self.base.weight, self.base.symbols.unknown], dtype=np.float64),
        }

    def _right_hand_sides(self) -> dict[str, npt.NDArray[Any]]:
        labels, starts = self.symbols.yield_labels, self.symbols.yield_starts
        lengths = np.diff(starts.astype(np.int64))
        short = len(self.symbols.labels) <= _SHORT and (lengths < _SHORT).all()
        if self.terminal.shape.compact and short:
            return {
                "yield_short_labels": labels.astype(np.uint16),
                "yield_lengths": lengths.astype(np.uint16),
            }
        return {"yield_labels": labels, "yield_starts": starts}

    @classmethod
    def from_tensors(
        cls,
        tensors: Mapping[str, npt.NDArray[Any]],
        labels: tuple[str, ...],
        tags: tuple[str, ...],
        words: int,
    ) -> TreeletTables:
        """Return the tables that `to_tensors` stored.

        Args:
            tensors: The arrays; the kernel looks at labels, right-hand sides and rules.
            labels: Labels by id.
            tags: Categories of words.
            words: How many words there are.

        Raises:
            ModelFileError: ``E_MODEL_TABLES`` if something is missing, or does not fit.
            EstimationError: ``E_WEIGHTS`` for an impossible weight.
        """
        found = read_tensors(tensors, _SCHEMA, labels=len(labels), tags=len(tags), words=words)
        tables = {
            name: BackoffTable.from_tensors(tensors, name)
            for name in (_NONTERMINAL, _TERMINAL, _CONDITIONAL, _UNCONDITIONAL)
        }
        if tables[_TERMINAL].shape.base_size != words:
            raise _damaged(f'the table "{_TERMINAL}" has another number of words')
        of_label = found["symbol_of_label"]
        weight, unknown = found[_BASE].tolist()
        seen = int(np.count_nonzero(of_label != _native.NO_ID))
        base = YieldBase(
            tables[_CONDITIONAL],
            tables[_UNCONDITIONAL],
            SymbolTable(of_label, seen, bool(unknown)),
            found["seen_parents"].astype(np.bool_),
            weight=weight,
        )
        rows = (*_right_hand_sides(found), found["rules"])
        return cls(
            EventSymbols(labels, *rows, words, words, words + 1),
            tables[_NONTERMINAL],
            tables[_TERMINAL],
            base,
            found["is_tag"].astype(np.bool_),
            tags,
            found["word_tags"],
        )

    def __reduce__(self) -> tuple[Any, ...]:
        tensors = {name: np.array(array) for name, array in self.to_tensors().items()}
        names = (self.symbols.labels, self.tags)
        return type(self).from_tensors, (tensors, *names, self.symbols.words)


def _right_hand_sides(
    found: Tensors,
) -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.uint64]]:
    """Return the labels of right-hand sides, and where each begins."""
    for labels, places in (
        ("yield_labels", "yield_starts"),
        ("yield_short_labels", "yield_lengths"),
    ):
        if labels in found and places in found:
            rows = found[places]
            if places == "yield_lengths":
                rows = np.concatenate([[0], np.cumsum(rows, dtype=np.uint64)]).astype(np.uint64)
            return found[labels].astype(np.uint32, copy=False), rows
    raise _damaged('the tensor "yield_labels" or "yield_starts" is missing')


def _damaged(what: str) -> ModelFileError:
    return ModelFileError(what, code="E_MODEL_TABLES")
