"""Options of n-gram models."""

from __future__ import annotations

from itertools import pairwise
from typing import Annotated, Literal

from pydantic import Field, field_validator, model_validator

from treelm.estimation.layout import Layout, check_layout
from treelm.estimation.quantize import CodeBits
from treelm.limits import LARGEST_COUNT, LARGEST_SEED
from treelm.models.interface.config import WordModelConfig, no_option
from treelm.models.interface.reduction import ReductionLoss, Rounding

#: How counts become probabilities; ``arpa`` marks a model that was read from an ARPA file.
Smoothing = Literal["kn", "mkn", "jm", "berkeley", "arpa"]

#: How far from one the probabilities of an ARPA file may sum; some have only four decimals.
SUM_TOLERANCE = 0.01
#: Smallest count of the n-grams of an order.
LeastCount = Annotated[int, Field(ge=1, le=LARGEST_COUNT)]

#: What the columns of a table can hold; far beyond what text can fill.
LARGEST_ORDER = 31


class NgramConfig(WordModelConfig):
    """What an n-gram model looks at, and how its counts become probabilities.

    Examples:
        >>> NgramConfig(order=3).min_counts()
        (1, 1, 1)
        >>> NgramConfig(order=4, min_count=(1, 1, 2)).min_counts()
        (1, 1, 2, 2)
    """

    order: int = Field(default=5, ge=1, le=LARGEST_ORDER)
    """Words in an n-gram, the predicted one included."""
    smoothing: Smoothing = "mkn"
    """kn (Kneser-Ney), mkn (modified Kneser-Ney), jm (Jelinek-Mercer) or berkeley (Berkeley LM)."""
    min_count: tuple[LeastCount, ...] = Field(default=(1,), strict=False)
    """Smallest count of an n-gram that is kept, from unigrams up; the last value holds for all
    higher orders. What pruning costs is measured: see --measure."""
    lmplz: bool = False
    """Compute the same numbers as KenLM's lmplz."""
    seed: int = Field(default=0, ge=0, le=LARGEST_SEED)
    """Seed of random choices, where there are any."""
    bits: CodeBits | None = None
    """Store probabilities and back-off weights as codes of 8 or 16 bits; of 4 to 8 or 16 with
    layout compact. What that costs is measured: see --measure. Default: 32-bit floats."""
    layout: Layout = "hashed"
    """hashed (fast) or compact (smaller, slower); both give the same numbers."""
    rounding: Rounding | None = no_option()
    """How far values moved when they became codes; set by quantising."""
    loss: ReductionLoss | None = no_option()
    """What pruning and quantising cost on a text; set by training, where it was measured."""
    sums: tuple[float, float] | None = no_option(strict=False)
    """Smallest and largest sum of the probabilities of all words and the end in some contexts; set
    when an ARPA file is read."""
    oov_log_prob: Annotated[float, Field(lt=0, allow_inf_nan=False)] | None = no_option()
    """Natural log probability of unknown words, before back-off weights; set when an ARPA file
    without ``<unk>`` is read."""

    @field_validator("min_count")
    @classmethod
    def _grows(cls, counts: tuple[int, ...]) -> tuple[int, ...]:
        if not counts or counts[0] != 1:
            raise ValueError("unigrams are always kept, so the first smallest count is 1")
        if any(later < earlier for earlier, later in pairwise(counts)):
            raise ValueError("smallest counts must not fall from one order to the next")
        return counts

    @model_validator(mode="after")
    def _fits(self) -> NgramConfig:
        if len(self.min_count) > self.order:
            raise ValueError(
                f"there are {len(self.min_count)} smallest counts for {self.order} orders"
            )
        if self.lmplz and self.smoothing not in ("mkn", "arpa"):
            raise ValueError("lmplz uses modified Kneser-Ney; combine it with smoothing mkn only")
        check_layout(self.bits, self.layout)
        return self

    @property
    def normalized(self) -> bool:
        """Whether probabilities sum to one, as far as is known."""
        return self.sums is None or all(abs(total - 1) <= SUM_TOLERANCE for total in self.sums)

    @property
    def prunes(self) -> bool:
        """Whether n-grams are left out."""
        return max(self.min_count) > 1

    def min_counts(self) -> tuple[int, ...]:
        """Return the smallest count of every order, unigrams first."""
        missing = self.order - len(self.min_count)
        return self.min_count + (self.min_count[-1],) * missing
