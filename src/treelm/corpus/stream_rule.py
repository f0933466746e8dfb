"""The streaming rule of Pauls & Klein in the kernel, while a corpus is being read."""

from __future__ import annotations

from treelm import _native
from treelm.corpus.encoder import Ids, Places

#: Sentences after which the streaming rule begins to replace words, as in the paper.
PAPER_START_AFTER = 10_000

_MASK = (1 << 64) - 1


class StreamPass:
    """Applies the rule to the batches of an open encoder, in order.

    Where replacement begins may depend on the number of sentences, so batches wait until that is
    settled: a small part of a large corpus.

    Args:
        encoder: What the batches come from; it knows the words of their ids.
        seed: Seed of the random numbers.
        probability: Probability that a new word is replaced.
        start_after: Sentences in which every word is kept; None for the smaller of 10,000 and half
            the sentences.
        signatures: How replaced words are written; None if they are not to be counted.
    """

    def __init__(
        self,
        encoder: _native.TextEncoder,
        *,
        seed: int,
        probability: float,
        start_after: int | None,
        signatures: _native.SignatureRules | None,
    ) -> None:
        self.makes_signatures = signatures is not None
        self._encoder = encoder
        self._seed = seed & _MASK
        self._probability = probability
        self._start_after = start_after
        self._signatures = signatures
        self._waiting: list[tuple[Ids, Places]] = []
        self._kernel: _native.StreamRule | None = None

    def add(self, ids: Ids, starts: Places) -> None:
        """Take the next batch."""
        self._waiting.append((ids, starts))
        if self._start_after is not None:
            self.finish(self._start_after)
        elif self._encoder.sentences // 2 >= PAPER_START_AFTER:
            self.finish(PAPER_START_AFTER)

    def finish(self, start_after: int) -> _native.StreamRule:
        """Apply the rule to all waiting batches, and return the result so far."""
        if self._kernel is None:
            self._kernel = _native.StreamRule(
                seed=self._seed,
                probability=self._probability,
                start_after=min(start_after, _MASK),
                signatures=self._signatures,
            )
        for ids, starts in self._waiting:
            self._kernel.feed(self._encoder, ids, starts)
        self._waiting.clear()
        return self._kernel
