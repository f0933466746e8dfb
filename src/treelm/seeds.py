"""Random numbers that depend on (seed, stream, counter) and on nothing else.

The recipe is fixed: three rounds of SplitMix64 finalisation over the three numbers, the top 53 bits
as a fraction. A result is the same for any number of threads, processes or machines.
"""

from __future__ import annotations

import secrets

import numpy as np

from treelm import _native

_MASK = (1 << 64) - 1


def given_or_fresh(seed: int | None) -> int:
    """Return a seed, a new one that nobody can foresee if none is given.

    Examples:
        >>> given_or_fresh(7), given_or_fresh(None) < 1 << 32
        (7, True)
    """
    return secrets.randbits(32) if seed is None else seed  # short enough to be typed again


def random_bits(seed: int, stream: int, counter: int = 0) -> int:
    """Return 64 random bits for the given place.

    Examples:
        >>> random_bits(1, 2, 3) == random_bits(1, 2, 3) != random_bits(1, 2, 4)
        True
    """
    return _native.random_bits(seed & _MASK, stream & _MASK, counter & _MASK)


def random_uniform(seed: int, stream: int, counter: int = 0) -> float:
    """Return a uniform number in [0, 1) for the given place."""
    return _native.random_uniform(seed & _MASK, stream & _MASK, counter & _MASK)


def generator(seed: int, stream: int) -> np.random.Generator:
    """Return a numpy generator for item `stream` (a sentence, a shard) of a run with `seed`."""
    return np.random.Generator(np.random.Philox(key=random_bits(seed, stream)))
