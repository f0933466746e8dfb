"""The state of the composite model between words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from treelm import _native
from treelm.models.interface.states import damaged_state, pack_pieces, state_bytes, unpack_pieces
from treelm.models.plsa.state import TopicMixture


@dataclass(frozen=True, slots=True, eq=False)
class CompositeState:
    """Weighted partial parses, the words before, and the topics of the document.

    Args:
        beam: Parses and words, held by the kernel.
        model: The model it belongs to.
        mixture: The topics of the document; none without topics.
    """

    beam: _native.SlmState
    model: bytes
    mixture: TopicMixture

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, CompositeState):
            return NotImplemented
        same = self.model == other.model and self.mixture == other.mixture
        return same and self.beam.same(other.beam)

    def __hash__(self) -> int:
        return hash((self.model, self.mixture, self.beam.hash))

    def __len__(self) -> int:
        return len(self.beam)

    def __reduce__(self) -> tuple[Any, ...]:
        return _unpickled, (self.beam.to_bytes(), self.model, self.mixture)

    def __repr__(self) -> str:
        return f"CompositeState(hypotheses={len(self.beam)})"

    def to_bytes(self) -> bytes:
        """Return the state as bytes."""
        payload = pack_pieces([self.mixture.to_bytes(), self.beam.to_bytes()])
        return state_bytes(self.model, payload)


def _unpickled(beam: bytes, model: bytes, mixture: TopicMixture) -> CompositeState:
    return CompositeState(_native.SlmState(beam), model, mixture)


def split_payload(payload: bytes) -> tuple[bytes, bytes]:
    """Return the topics and the beam of a state as bytes.

    Raises:
        UsageError: ``E_STATE_BYTES``.
    """
    pieces = unpack_pieces(payload)
    if len(pieces) != 2:
        raise damaged_state()
    return pieces[0], pieces[1]
