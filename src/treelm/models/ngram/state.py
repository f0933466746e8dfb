"""The state of an n-gram model between words."""

from __future__ import annotations

from dataclasses import dataclass

from treelm.models.interface.states import pack_numbers, state_bytes

#: Means "no word" in a context.
NONE = 0xFFFFFFFF


@dataclass(frozen=True, slots=True)
class NgramState:
    """The words that matter for the next one.

    Args:
        context: Their ids, the latest first, no more than the table has a context for.
        first: Whether no word has been seen yet, where that changes the symbol of a word.
        model: The model it belongs to.
    """

    context: tuple[int, ...]
    first: bool
    model: bytes

    def to_bytes(self) -> bytes:
        """Return the state as bytes."""
        return state_bytes(self.model, self.payload())

    def payload(self) -> bytes:
        """Return the content of the state as bytes, without the model."""
        return pack_numbers((int(self.first), *self.context))
