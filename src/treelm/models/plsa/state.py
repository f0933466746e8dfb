"""The topics of a document that is read word by word, and the state of a model that has them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from treelm import _native
from treelm.errors import UsageError
from treelm.kernel_errors import kernel_errors
from treelm.models.interface.states import (
    Context,
    damaged_state,
    pack_numbers,
    pack_pieces,
    state_bytes,
    unpack_numbers,
    unpack_pieces,
)

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class TopicMixture:
    """p(g|d) after some words of a document; immutable.

    Args:
        data: The shares of all topics, as the bytes of float64 numbers.
        steps: Number of words and sentence ends of the document so far.

    Examples:
        >>> mixture = TopicMixture.of([0.75, 0.25])
        >>> prob, after = mixture.step(np.array([1 / 3, 1.0]), keep=2, rate=0.1)
        >>> round(prob, 9), after.shares.round(9).tolist(), after.steps
        (0.5, [0.725, 0.275], 1)
    """

    data: bytes
    steps: int = 0

    @classmethod
    def of(cls, shares: npt.ArrayLike, steps: int = 0) -> TopicMixture:
        """Return a mixture with these shares."""
        return cls(np.asarray(shares, dtype="<f8").tobytes(), steps)

    @property
    def shares(self) -> Floats:
        """The shares of all topics."""
        return np.frombuffer(self.data, dtype=np.float64)

    def __len__(self) -> int:
        return len(self.data) // 8

    def largest(self, keep: int) -> npt.NDArray[np.int64]:
        """Return the topics with the largest shares, ascending; of equal ones the first."""
        return np.sort(np.argsort(-self.shares, kind="stable")[:keep])

    def step(self, probs: Floats, *, keep: int, rate: float) -> tuple[float, TopicMixture]:
        """Return the probability of a word, and the mixture after it.

        Args:
            probs: Probability of the word under each topic; with several parses, their weighted
                sum.
            keep: The topics that predict it.
            rate: eta; 0 if the topics of the document stay the same.
        """
        with kernel_errors("updating topics"):
            prob, shares = _native.topic_step(self.shares, probs, keep=keep, rate=rate)
        return prob, TopicMixture(shares.tobytes(), self.steps + 1)

    def to_context(self) -> Context:
        """Return what the next sentence of the document needs."""
        return Context(memory=(float(self.steps), *self.shares.tolist()))

    @classmethod
    def from_context(cls, context: Context | None, prior: Floats) -> TopicMixture:
        """Return the mixture at the start of a sentence.

        Args:
            context: What `to_context` returned for the sentence before, or a new document.
            prior: Topics of an unknown document.

        Raises:
            UsageError: ``E_STATE_MODEL`` for the context of another model.
        """
        if context is None or not context.memory:
            return cls.of(prior)
        steps, *shares = context.memory
        if len(shares) != len(prior):
            raise UsageError(
                f"this context has {len(shares)} topics, but the model has {len(prior)}. "
                "Contexts belong to the model that made them.",
                code="E_STATE_MODEL",
            )
        return cls.of(shares, int(steps))

    def to_bytes(self) -> bytes:
        """Return the mixture as bytes."""
        return pack_pieces((pack_numbers((self.steps,)), self.data))

    @classmethod
    def from_bytes(cls, packed: bytes, topics: int) -> TopicMixture:
        """Return the mixture whose `to_bytes` gave these bytes.

        Raises:
            UsageError: ``E_STATE_BYTES`` if they are not a mixture.
        """
        pieces = unpack_pieces(packed)
        if len(pieces) != 2 or len(pieces[1]) != 8 * topics:
            raise damaged_state()
        numbers = unpack_numbers(pieces[0])
        shares = np.frombuffer(pieces[1], dtype=np.float64)
        if len(numbers) != 1 or not np.all((shares >= 0) & (shares <= 1.001)):
            raise damaged_state()
        if topics and not abs(float(shares.sum()) - 1) < 1e-3:
            raise damaged_state()
        return cls(pieces[1], numbers[0])


@dataclass(frozen=True, slots=True)
class TopicState:
    """The state of a topic model: the last words, and the topics of the document.

    Args:
        context: Ids of the last words, the latest first.
        first: Whether no word of the sentence has been seen, where that changes a symbol.
        mixture: The topics.
        model: The model it belongs to.
    """

    context: tuple[int, ...]
    first: bool
    mixture: TopicMixture
    model: bytes

    def to_bytes(self) -> bytes:
        """Return the state as bytes."""
        return state_bytes(self.model, self.payload())

    def payload(self) -> bytes:
        """Return the content of the state as bytes, without the model."""
        words = pack_numbers((int(self.first), *self.context))
        return pack_pieces((words, self.mixture.to_bytes()))

    @classmethod
    def from_payload(
        cls, packed: bytes, *, width: int, symbols: int, topics: int, model: bytes
    ) -> TopicState:
        """Return the state whose `payload` gave these bytes.

        Args:
            packed: The bytes.
            width: Number of words of a context.
            symbols: Ids of a context are below this number.
            topics: Number of topics.
            model: The model it belongs to.

        Raises:
            UsageError: ``E_STATE_BYTES`` if they are not a state of such a model.
        """
        pieces = unpack_pieces(packed)
        if len(pieces) != 2:
            raise damaged_state()
        numbers = unpack_numbers(pieces[0])
        if (
            len(numbers) != width + 1
            or numbers[0] not in (0, 1)
            or any(number >= symbols for number in numbers[1:])
        ):
            raise damaged_state()
        mixture = TopicMixture.from_bytes(pieces[1], topics)
        return cls(tuple(numbers[1:]), bool(numbers[0]), mixture, model)
