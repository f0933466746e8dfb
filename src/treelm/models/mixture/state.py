"""States of mixtures."""

from __future__ import annotations

from dataclasses import dataclass

from treelm.models.interface.states import State, pack_pieces, state_bytes


@dataclass(frozen=True, slots=True)
class MixtureState:
    """The states of the parts."""

    states: tuple[State, ...]
    model: bytes

    def to_bytes(self) -> bytes:
        """Return the state as bytes: each part with its length before it."""
        return state_bytes(self.model, pack_pieces(state.to_bytes() for state in self.states))
