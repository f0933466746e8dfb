"""How much of what came before a model remembers."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from treelm.models.interface.model import LanguageModel


def ngram_order(model: LanguageModel) -> int | None:
    """Return how many words count for the next one, itself included; None for the whole sentence.

    Args:
        model: N-gram models and mixtures of these look at few words, all others at all.
    """
    from treelm.models.mixture.model import InterpolatedModel
    from treelm.models.ngram.model import NgramModel

    if isinstance(model, NgramModel):
        return model.config.order
    if not isinstance(model, InterpolatedModel):
        return None
    orders = [ngram_order(part) for part in model.parts]
    known = [order for order in orders if order is not None]
    return max(known) if len(known) == len(orders) else None
