"""Random numbers that depend on (seed, stream, counter) and on nothing else.

The recipe is fixed: three rounds of SplitMix64 finalisation over the three numbers, the top 53 bits
as a fraction. The kernels use the same one, so a result is the same for any number of threads,
processes or machines.
"""

from __future__ import annotations

import numpy as np

_MASK = (1 << 64) - 1


def _mix(value: int) -> int:
    value = (value + 0x9E3779B97F4A7C15) & _MASK
    value = ((value ^ (value >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    value = ((value ^ (value >> 27)) * 0x94D049BB133111EB) & _MASK
    return value ^ (value >> 31)


def random_bits(seed: int, stream: int, counter: int = 0) -> int:
    """Return 64 random bits for the given place.

    Examples:
        >>> random_bits(1, 2, 3) == random_bits(1, 2, 3) != random_bits(1, 2, 4)
        True
    """
    return _mix(_mix(_mix(seed & _MASK) ^ (stream & _MASK)) ^ (counter & _MASK))


def random_uniform(seed: int, stream: int, counter: int = 0) -> float:
    """Return a uniform number in [0, 1) for the given place."""
    return (random_bits(seed, stream, counter) >> 11) * 2.0**-53


def generator(seed: int, stream: int) -> np.random.Generator:
    """Return a numpy generator for item `stream` (a sentence, a shard) of a run with `seed`."""
    return np.random.Generator(np.random.Philox(key=random_bits(seed, stream)))
