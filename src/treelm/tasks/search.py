"""The same model with other search options."""

from __future__ import annotations

from collections.abc import Mapping

from treelm.errors import UsageError
from treelm.models.hhmm.model import HhmmModel
from treelm.models.interface.model import LanguageModel
from treelm.models.mixture.model import InterpolatedModel, interpolate


def with_search(model: LanguageModel, options: Mapping[str, object]) -> LanguageModel:
    """Return a model, or a mixture, with the given beams.

    Args:
        model: The model.
        options: ``beam_width`` and ``beam_ratio``.

    Raises:
        UsageError: if nothing in the model uses a beam.
    """
    found = _changed(model, options)
    if found is None:
        raise UsageError(
            f"{model.system} models use no beam; --beam-width and --beam-ratio "
            "are for hhmm models and mixtures with one."
        )
    return found


def _changed(model: LanguageModel, options: Mapping[str, object]) -> LanguageModel | None:
    if isinstance(model, HhmmModel):
        return model.with_search(**options)
    if isinstance(model, InterpolatedModel):
        parts = [_changed(part, options) for part in model.parts]
        if any(part is not None for part in parts):
            kept = [new or old for new, old in zip(parts, model.parts, strict=True)]
            return interpolate(kept, model.weights)
    return None
