"""Options of treelet models."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, model_validator

from treelm.estimation.chain import Chain, ChainCounts
from treelm.estimation.estimate import Precision
from treelm.estimation.kneser_ney import kneser_ney, modified_kneser_ney
from treelm.estimation.layout import Layout, check_layout
from treelm.estimation.quantize import CodeBits
from treelm.estimation.smoothing import Smoothing
from treelm.events.template import TREELET_NONTERMINAL, TREELET_TERMINAL, EventTemplate
from treelm.limits import LARGEST_COUNT
from treelm.models.interface.config import no_option
from treelm.models.interface.packed_tree_model import PackedTreeConfig
from treelm.transforms.treelet import TREELET_TRANSFORMS, VerbLabel

#: What a word or a phrase is predicted from.
Variant = Literal["full", "rule", "trans", "pcfg"]

#: Context columns of phrases and of words that each variant looks at.
WIDTHS: dict[str, tuple[int, int]] = {
    "full": (3, 5),
    "rule": (3, 3),
    "trans": (1, 1),
    "pcfg": (1, 1),
}

#: Entries with so many context columns are those that `min_count` leaves out.
PRUNED_WIDTH = 3


class TreeletConfig(PackedTreeConfig):
    """What a treelet model looks at, and how its counts become probabilities.

    Examples:
        >>> TreeletConfig(variant="rule").terminal_template.context
        ('label', 'right', 'parent_rule')
        >>> TreeletConfig(variant="pcfg").applied
        ()
    """

    variant: Variant = "full"
    """full, rule (no words before), trans (labels alone), or pcfg (labels of plain trees)."""
    transforms: tuple[str, ...] | None = Field(default=None, strict=False)
    """Transforms of the trees. Default: all nine, and none with the variant pcfg."""
    vp_label: VerbLabel = "lowest"
    """Whether a flattened verb phrase keeps the annotation of its lowest or its highest node."""
    temporal: tuple[str, ...] = no_option((), strict=False)
    """Temporal nouns of the first transform; found by training."""
    marked_tags: tuple[str, ...] = no_option((), strict=False)
    """Tags that are written with ~T behind them, because phrases have the same label; found by
    training."""
    smoothing: Literal["kn", "mkn", "jm", "none"] = "kn"
    """kn (Kneser-Ney), mkn (modified Kneser-Ney), jm (Jelinek-Mercer), or none for relative
    frequencies."""
    discount: float | None = Field(default=None, ge=0, le=1)
    """With kn: discount of every count at every level. Default: estimated."""
    yield_weight: float = Field(default=0.9, ge=0, le=1)
    """Weight of the parent's own 4-grams below unseen rules."""
    base_counts: Literal["tokens", "types"] = "tokens"
    """Whether those 4-grams count a rule as often as it was seen (tokens), or once (types),
    which lowers perplexity."""
    unknown_symbol: bool = True
    """Give labels never seen as a child some probability."""
    precision: Precision = "single"
    """How probabilities are stored."""
    min_count: int = Field(default=1, ge=1, le=LARGEST_COUNT)
    """Smallest count of an event with three or more columns of context that is kept."""
    bits: CodeBits | None = None
    """Store probabilities and back-off weights as codes of 8 or 16 bits; of 4 to 8 or 16 with
    layout compact. Default: floats."""
    layout: Layout = "hashed"
    """hashed (fast) or compact (smaller, slower); both give the same numbers."""

    @model_validator(mode="after")
    def _fits(self) -> TreeletConfig:
        check_layout(self.bits, self.layout)
        for name in self.transforms or ():
            if name not in TREELET_TRANSFORMS:
                raise ValueError(
                    f'there is no treelet transform "{name}"; there are: '
                    f"{', '.join(TREELET_TRANSFORMS)}"
                )
        if self.discount is not None and self.smoothing != "kn":
            raise ValueError("a fixed discount goes with smoothing kn only")
        if self.smoothing == "none" and self.min_count > 1:
            raise ValueError("without smoothing nothing can be left out")
        return self

    @property
    def applied(self) -> tuple[str, ...]:
        """The transforms of the trees, in order."""
        if self.transforms is None:
            return () if self.variant == "pcfg" else TREELET_TRANSFORMS
        return tuple(name for name in TREELET_TRANSFORMS if name in self.transforms)

    @property
    def nonterminal_template(self) -> EventTemplate:
        """What is counted at phrases."""
        return narrowed(TREELET_NONTERMINAL, WIDTHS[self.variant][0])

    @property
    def terminal_template(self) -> EventTemplate:
        """What is counted at words."""
        return narrowed(TREELET_TERMINAL, WIDTHS[self.variant][1])

    def nonterminal_chain(self) -> Chain:
        """Return how phrases back off."""
        context = self.nonterminal_template.context
        return Chain(context, tuple(range(len(context), 0, -1)), (None,) * len(context))

    def terminal_chain(self, start: int) -> Chain:
        """Return how words back off; `start` is the id that stands before the first word."""
        context = self.terminal_template.context
        pads = tuple(start if name.startswith("word") else None for name in context)
        return Chain(context, tuple(range(len(context), -1, -1)), pads)

    def smooth(self, counts: ChainCounts) -> Smoothing:
        """Return what is done to the counts of a chain; for jm that of the chains below rules."""
        if self.smoothing == "none" or self.discount is not None:
            fixed = [self.discount or 0.0] * len(counts)
            return kneser_ney(counts, fixed=fixed, min_counts=self._least(counts))
        if self.smoothing == "mkn":
            return modified_kneser_ney(counts, min_counts=self._least(counts))
        return kneser_ney(counts, min_counts=self._least(counts))

    def least(self, chain: Chain) -> tuple[int, ...]:
        """Return the smallest token count that is kept at every level of a chain."""
        return tuple(self.min_count if width >= PRUNED_WIDTH else 1 for width in chain.widths)

    def _least(self, counts: ChainCounts) -> tuple[int, ...]:
        # The chains of right-hand sides are small and kept whole.
        return self.least(counts.chain) if "label" in counts.chain.columns else ()


def narrowed(template: EventTemplate, columns: int) -> EventTemplate:
    """Return a template with the first columns of its context only."""
    return EventTemplate(template.name, template.site, template.outcome, template.context[:columns])
