"""The state of a treebank grammar between words."""

from __future__ import annotations

from dataclasses import dataclass

from treelm.models.interface.states import pack_numbers, state_bytes


@dataclass(frozen=True, slots=True)
class PrefixState:
    """All words so far: any of them may matter later.

    Args:
        words: Their ids.
        model: The model it belongs to.
    """

    words: tuple[int, ...]
    model: bytes

    def to_bytes(self) -> bytes:
        """Return the state as bytes."""
        return state_bytes(self.model, pack_numbers(self.words))
