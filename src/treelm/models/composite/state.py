"""The state of the composite model between words."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Any

import numpy as np

from treelm import _native
from treelm.models.states import damaged_state, pack_pieces, state_bytes, unpack_pieces

#: Natural numbers before the shares of topics: how many words the document had so far.
_STEPS = struct.Struct("<Q")
#: Largest number of words a document may have had.
_MOST_STEPS = 1 << 62
_SUM_TOLERANCE = 1e-6


@dataclass(frozen=True, slots=True)
class DocumentTopics:
    """What a document is about so far.

    Args:
        shares: Shares of all topics, which add up to 1; none without topics.
        steps: Words and sentence ends of the document so far.
    """

    shares: tuple[float, ...] = ()
    steps: int = 0

    def after(self, responsible: np.ndarray[Any, np.dtype[np.float64]], eta: float) -> DocumentTopics:
        """Return the topics after one more word.

        Args:
            responsible: Shares of the topics in that word.
            eta: How much of the old shares it replaces.
        """
        mixed = (1 - eta) * np.asarray(self.shares) + eta * responsible
        return DocumentTopics(tuple(mixed.tolist()), self.steps + 1)

    def largest(
        self, count: int | None
    ) -> tuple[np.ndarray[Any, np.dtype[np.uint32]], np.ndarray[Any, np.dtype[np.float64]]]:
        """Return the largest topics in ascending order, with shares that add up to 1 again."""
        shares = np.asarray(self.shares)
        if not len(shares):
            return np.zeros(0, np.uint32), np.zeros(0)
        chosen = np.arange(len(shares))
        if count is not None and count < len(shares):
            chosen = np.sort(np.argsort(-shares, kind="stable")[:count])
        kept = shares[chosen]
        return chosen.astype(np.uint32), kept / kept.sum()

    def to_bytes(self) -> bytes:
        """Return them as bytes."""
        return _STEPS.pack(self.steps) + np.asarray(self.shares, "<f8").tobytes()

    @classmethod
    def from_bytes(cls, data: bytes, topics: int) -> DocumentTopics:
        """Return what `to_bytes` wrote.

        Raises:
            UsageError: ``E_STATE_BYTES``.
        """
        if len(data) != _STEPS.size + 8 * topics:
            raise damaged_state()
        (steps,) = _STEPS.unpack_from(data)
        return cls.checked(np.frombuffer(data[_STEPS.size :], "<f8").tolist(), steps, topics)

    @classmethod
    def checked(cls, shares: list[float], steps: float, topics: int) -> DocumentTopics:
        """Return topics after a look at them.

        Raises:
            UsageError: ``E_STATE_BYTES`` if they are no shares of so many topics.
        """
        values = np.asarray(shares, np.float64)
        good = len(values) == topics and bool(np.all((values >= 0) & (values <= 1)))
        if not good or (topics and abs(float(values.sum()) - 1) > _SUM_TOLERANCE):
            raise damaged_state()
        if not 0 <= steps <= _MOST_STEPS or steps != int(steps):
            raise damaged_state()
        return cls(tuple(values.tolist()), int(steps))


@dataclass(frozen=True, slots=True, eq=False)
class CompositeState:
    """Partial parses with weights, the words before, and what the document is about.

    Args:
        beam: Parses and words, held by the kernel.
        model: The model it belongs to.
        topics: Shares of topics.
    """

    beam: _native.SlmState
    model: bytes
    topics: DocumentTopics = DocumentTopics()

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, CompositeState):
            return NotImplemented
        same = self.model == other.model and self.topics == other.topics
        return same and self.beam.same(other.beam)

    def __hash__(self) -> int:
        return hash((self.model, self.topics, self.beam.hash))

    def __len__(self) -> int:
        return len(self.beam)

    def __reduce__(self) -> tuple[Any, ...]:
        return _unpickled, (self.beam.to_bytes(), self.model, self.topics)

    def __repr__(self) -> str:
        return f"CompositeState(hypotheses={len(self.beam)})"

    def to_bytes(self) -> bytes:
        """Return the state as bytes."""
        payload = pack_pieces([self.topics.to_bytes(), self.beam.to_bytes()])
        return state_bytes(self.model, payload)


def _unpickled(beam: bytes, model: bytes, topics: DocumentTopics) -> CompositeState:
    return CompositeState(_native.SlmState(beam), model, topics)


def split_payload(payload: bytes) -> tuple[bytes, bytes]:
    """Return the topics and the beam of a state as bytes.

    Raises:
        UsageError: ``E_STATE_BYTES``.
    """
    pieces = unpack_pieces(payload)
    if len(pieces) != 2:
        raise damaged_state()
    return pieces[0], pieces[1]
