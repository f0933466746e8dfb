"""What is lost when a model is made smaller: pruned n-grams, and codes instead of floats."""

from __future__ import annotations

import math

import numpy as np
from pydantic import Field

from treelm.corpus.encoder import EncodedText
from treelm.models.interface.config import Config
from treelm.models.interface.incremental import IncrementalModel

#: Number of sentences scored at a time, so that a long text needs little memory.
_PIECE = 1 << 16

_LONGEST_NAME = 1000


class Rounding(Config):
    """How far the values of a table moved when they became codes, in bits."""

    mean_probability: float
    """Mean change of the binary logarithm of a stored probability."""
    largest_probability: float
    """Largest change of one."""
    mean_weight: float
    """Mean change of the binary logarithm of a stored back-off weight."""
    largest_weight: float
    """Largest change of one."""

    def __str__(self) -> str:
        return (
            f"stored log2 probabilities moved by {self.mean_probability:.4f} on average and "
            f"{self.largest_probability:.4f} at most, back-off weights by {self.mean_weight:.4f} "
            f"and {self.largest_weight:.4f}"
        )


class ReductionLoss(Config):
    """What a smaller model lost on a text; the ends of sentences count as words.

    Examples:
        >>> loss = ReductionLoss(
        ...     text="dev.txt", sentences=2, tokens=9, full_bits_per_word=6.0, bits_per_word=6.25
        ... )
        >>> loss.full_perplexity, round(loss.perplexity, 1)
        (64.0, 76.1)
        >>> str(loss)
        'on dev.txt (9 words, 2 ends): 6.0000 bits per word (perplexity 64.00) in full, 6.2500 (76.11) as saved, 0.2500 more'
    """  # noqa: E501

    text: str
    """Name of the text."""
    sentences: int = Field(ge=0)
    """Its sentences."""
    tokens: int = Field(ge=0)
    """Its words."""
    full_bits_per_word: float | None
    """Under the original model; None if the text has no probability."""
    bits_per_word: float | None
    """Under the smaller model."""

    @property
    def full_perplexity(self) -> float:
        """Perplexity under the original model."""
        return _perplexity(self.full_bits_per_word)

    @property
    def perplexity(self) -> float:
        """Perplexity under the smaller model."""
        return _perplexity(self.bits_per_word)

    def to_record(self) -> dict[str, object]:
        """Return names and values for a summary."""
        return {
            **self.model_dump(),
            "full_perplexity": _known(self.full_perplexity),
            "perplexity": _known(self.perplexity),
        }

    def __str__(self) -> str:
        full, own = (
            math.inf if bits is None else bits
            for bits in (self.full_bits_per_word, self.bits_per_word)
        )
        if math.isinf(full) or math.isinf(own):
            difference = ""
        else:
            difference = f", {abs(own - full):.4f} {'less' if own < full else 'more'}"
        return (
            f"on {self.text} ({self.tokens:,} words, {self.sentences:,} ends): {full:.4f} bits per "
            f"word (perplexity {self.full_perplexity:.2f}) in full, {own:.4f} "
            f"({self.perplexity:.2f}) as saved{difference}"
        )


def text_bits_per_word(
    model: IncrementalModel, text: EncodedText, *, threads: int = 1
) -> float | None:
    """Return the bits per word and sentence end of a text, or None if it is impossible.

    Args:
        model: The model.
        text: Ids of its vocabulary; at least one sentence.
        threads: Number of threads.
    """
    sums = []
    for first in range(0, len(text), _PIECE):
        starts = text.starts[first : first + _PIECE + 1]
        ids = text.ids[int(starts[0]) : int(starts[-1])]
        scores = model.score_ids(ids, starts - starts[0], threads=threads)
        sums.append(float(np.sum(scores.log_probs)))
    total = math.fsum(sums)
    return _known(-total / (len(text.ids) + len(text)) / math.log(2.0))


def reduction_loss(
    name: str, text: EncodedText, full_bits_per_word: float | None, bits_per_word: float | None
) -> ReductionLoss:
    """Return what was lost on a text, given its bits under both models."""
    return ReductionLoss(
        text=name[:_LONGEST_NAME],
        sentences=len(text),
        tokens=len(text.ids),
        full_bits_per_word=full_bits_per_word,
        bits_per_word=bits_per_word,
    )


def _perplexity(bits: float | None) -> float:
    try:
        return math.inf if bits is None else 2.0**bits
    except OverflowError:
        return math.inf


def _known(value: float) -> float | None:
    return value if math.isfinite(value) else None
