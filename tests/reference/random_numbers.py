"""The random-number recipe of native/core/base/random.h, in Python."""

from __future__ import annotations

_MASK = (1 << 64) - 1


def _mix(value: int) -> int:
    value = (value + 0x9E3779B97F4A7C15) & _MASK
    value = ((value ^ (value >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    value = ((value ^ (value >> 27)) * 0x94D049BB133111EB) & _MASK
    return value ^ (value >> 31)


def random_bits(seed: int, stream: int, counter: int) -> int:
    """Return 64 bits for a place."""
    return _mix(_mix(_mix(seed & _MASK) ^ (stream & _MASK)) ^ (counter & _MASK))


def random_uniform(seed: int, stream: int, counter: int) -> float:
    """Return a number in [0, 1) for a place."""
    return (random_bits(seed, stream, counter) >> 11) * 2.0**-53
