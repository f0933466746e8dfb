"""The state of the HHMM between words, and the stacks in it by name."""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from treelm import _native
from treelm.models.interface.states import damaged_state, state_bytes

_MASS = struct.Struct("<d")


@dataclass(frozen=True, slots=True)
class StackElement:
    """An incomplete constituent: the active category, and the one it still awaits.

    Args:
        active: What is being built.
        awaited: What must still come to complete it; None if nothing is missing.
    """

    active: str
    awaited: str | None = None

    def __str__(self) -> str:
        return self.active if self.awaited is None else f"{self.active}/{self.awaited}"


@dataclass(frozen=True, slots=True)
class WeightedStack:
    """One analysis of the words so far, as far as the future can tell.

    Args:
        elements: From the outermost constituent to the innermost, which is complete.
        weight: Its probability given the words so far, among the stacks that were kept.
    """

    elements: tuple[StackElement, ...]
    weight: float

    def __str__(self) -> str:
        return "; ".join(map(str, self.elements))

    def _repr_html_(self) -> str:
        from treelm.view.notebook import html_table

        rows = [(place, each.active, each.awaited or "complete")
                for place, each in enumerate(self.elements, start=1)]  # fmt: skip
        return html_table(f"A stack of weight {self.weight:.4g}", ["", "builds", "awaits"], rows)


@dataclass(frozen=True, slots=True, eq=False)
class HhmmState:
    """A beam of stacks with weights; equal states have equal futures.

    Args:
        beam: The stacks, held by the kernel.
        model: The model it belongs to.
        prefix_mass: Natural logarithm of the mass of all stacks kept so far; it has no influence on
            the future and is no part of what the state is.
    """

    beam: _native.HhmmState
    model: bytes
    prefix_mass: float = field(default=0.0)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, HhmmState):
            return NotImplemented
        return self.model == other.model and self.beam.same(other.beam)

    def __hash__(self) -> int:
        return hash((self.model, self.beam.hash))

    def __len__(self) -> int:
        return len(self.beam)

    def __reduce__(self) -> tuple[Any, ...]:
        return _unpickle, (self.beam.to_bytes(), self.model, self.prefix_mass)

    def __repr__(self) -> str:
        return f"HhmmState(stacks={len(self.beam)}, prefix_mass={self.prefix_mass:.6g})"

    def _repr_html_(self) -> str:
        from treelm.view.notebook import html_table

        entropy, mean_depth, best_depth, stacks = self.beam.measures()
        rows = [
            ("stacks", int(stacks)),
            ("entropy in bits", entropy),
            ("mean depth", mean_depth),
            ("depth of the heaviest", best_depth),
            ("log of the mass of the words so far", self.prefix_mass),
        ]
        note = "model.stacks(state) lists the stacks."
        return html_table("State of an HHMM", ["", ""], rows, note=note)

    @property
    def initial(self) -> bool:
        """Whether no word has been read yet."""
        return self.beam.initial

    def to_bytes(self) -> bytes:
        """Return the state as bytes."""
        return state_bytes(self.model, _MASS.pack(self.prefix_mass) + self.beam.to_bytes())


class ParserMeasures(NamedTuple):
    """The parser state after each word and end of sentences, in flat arrays.

    All are 0 at ends, where nothing is open any more.
    """

    entropy: npt.NDArray[np.float64]
    """Of the distribution over stacks, in bits."""
    mean_depth: npt.NDArray[np.float64]
    """Elements of the stack in use, the weighted mean."""
    best_depth: npt.NDArray[np.float64]
    """Elements in use in the heaviest stack."""
    beam_mass: npt.NDArray[np.float64]
    """Share of the mass that pruning left."""
    stacks: npt.NDArray[np.float64]
    """Stacks kept."""


def state_from_payload(payload: bytes, model: bytes) -> HhmmState:
    """Return the state whose bytes these are, without version and model.

    Raises:
        UsageError: ``E_STATE_BYTES``.
    """
    if len(payload) <= _MASS.size:
        raise damaged_state()
    (mass,) = _MASS.unpack_from(payload)
    if math.isnan(mass):
        raise damaged_state()
    return _unpickle(payload[_MASS.size :], model, mass)


def _unpickle(data: bytes, model: bytes, prefix_mass: float) -> HhmmState:
    try:
        beam = _native.HhmmState(data)
    except _native.KernelError as error:
        raise damaged_state() from error
    return HhmmState(beam, model, prefix_mass)
