"""Rule weights in a file: those of latent grammars are mostly zero, and zeros are not stored."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from treelm.errors import ModelFileError
from treelm.grammar.coded_weights import decoded, has_codes
from treelm.grammar.grammar import FloatArray, IntArray
from treelm.store.schema import Tensor, Tensors, ascending

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


def weight_tensors(name: str) -> tuple[Tensor, Tensor]:
    """Return the schema of an array of weights as `stored_weights` gives it."""
    stored = f"stored {name}"
    return (
        Tensor(name, np.float64, (stored,), optional=True),
        Tensor(f"{name}{_PLACES}", np.int64, (stored,), _places, optional=True),
    )


def _places(array: npt.NDArray[Any], _: Tensors) -> str | None:
    if len(array) and array[0] < 0:
        return "contains negative places"
    return ascending(array)


def full_weights(
    tables: Mapping[str, npt.NDArray[Any]], name: str, rules: IntArray, substates: IntArray
) -> npt.NDArray[Any]:
    """Return all weights of some rules, zeros filled in.

    Args:
        tables: Tensors that fit `weight_tensors`.
        name: Name of the weights.
        rules: Rows of symbols, all below the number of `substates`.
        substates: Subcategories of each symbol, at least one.

    Raises:
        ModelFileError: ``E_GRAMMAR`` if the tables do not fit together.
    """
    coded = has_codes(tables, name)
    if not coded and name not in tables:
        raise ModelFileError(f'the tensor "{name}" is missing', code="E_MODEL_TABLES")
    places = tables.get(f"{name}{_PLACES}")
    if places is None and not coded:
        return tables[name]
    # In floating point nothing overflows, whatever the file claims.
    total = float(substates.astype(np.float64)[rules].prod(axis=1).sum())
    known = len(tables[f"{name}_codes"] if places is None else places)
    if total > LARGEST_EXPANSION * (known + 1):
        raise ModelFileError(
            f'the tensor "{name}" holds {known} weights, too few to stand for {total:.3g}',
            code="E_GRAMMAR",
        )
    if coded:
        return decoded(tables, name, int(total))
    assert places is not None  # else all weights are stored
    if len(places) and places[-1] >= total:
        raise ModelFileError(
            f'the tensor "{name}{_PLACES}" contains places beyond {total:.0f}', code="E_GRAMMAR"
        )
    full = np.zeros(int(total))
    full[places] = tables[name]
    return full
