"""Rule weights in a file: those of latent grammars are mostly zero, and zeros are not stored."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from treelm.errors import ModelFileError
from treelm.grammar.grammar import FloatArray, IntArray

#: A file may expand to at most this many times the weights it stores, to bound memory.
LARGEST_EXPANSION = 4096

_PLACES = "_places"


def stored_weights(name: str, weights: FloatArray) -> dict[str, npt.NDArray[Any]]:
    """Return the tables of an array of weights: all of them, or those that are not zero.

    Examples:
        >>> sorted(stored_weights("weights", np.array([0.0, 0.0, 0.0, 1.0])))
        ['weights', 'weights_places']
        >>> sorted(stored_weights("weights", np.array([0.5, 0.5])))
        ['weights']
    """
    places = np.flatnonzero(weights)
    if 2 * len(places) > len(weights):
        return {name: weights}
    return {name: weights[places], f"{name}{_PLACES}": places.astype(np.int64)}


def full_weights(
    tables: Mapping[str, npt.NDArray[Any]], name: str, rules: IntArray, substates: IntArray
) -> npt.NDArray[Any]:
    """Return all weights of some rules, zeros filled in; nothing in the tables is trusted.

    Raises:
        ModelFileError: ``E_GRAMMAR`` if the tables do not fit together.
    """
    weights, places = tables[name], tables.get(f"{name}{_PLACES}")
    if places is None:
        return weights
    if places.dtype != np.int64 or places.ndim != 1 or places.shape != weights.shape:
        raise _wrong(name, "have no places")
    if substates.ndim != 1 or rules.ndim != 2 or (substates < 1).any():
        raise _wrong(name, "have no rules")
    if rules.size and (rules.min() < 0 or rules.max() >= len(substates)):
        raise _wrong(name, "belong to symbols that do not exist")
    # In floating point nothing overflows, whatever the file claims.
    total = float(substates.astype(np.float64)[rules].prod(axis=1).sum())
    if total > LARGEST_EXPANSION * (len(places) + 1):
        raise _wrong(name, f"are {len(places)}, but are declared to expand to {total:.3g}")
    if len(places) and (places[0] < 0 or places[-1] >= total or (places[1:] <= places[:-1]).any()):
        raise _wrong(name, "are not in ascending order")
    full = np.zeros(int(total))
    full[places] = weights
    return full


def _wrong(name: str, what: str) -> ModelFileError:
    return ModelFileError(
        f'this is not a valid grammar: the weights "{name}" {what}. Is a model folder damaged? '
        "Train the model again.",
        code="E_GRAMMAR",
    )
