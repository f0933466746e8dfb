"""Inputs from inputs: changed bytes, and changed values of JSON.

Every number comes from `treelm.seeds`, so an input depends on the seed, the number of its execution
and the corpus, and on nothing else.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any, TypeVar

from treelm.seeds import random_bits

T = TypeVar("T")

#: Numbers at which something often ends.
EDGES = tuple(
    sorted(
        {sign * (1 << bits) + step for bits in (0, 7, 8, 15, 16, 31, 32, 53, 62, 63, 64, 65, 127)
         for sign in (1, -1) for step in (-1, 0, 1)}
    )
)  # fmt: skip
STRINGS = (
    "", " ", "\0", "\n", "\r", "\u2028", "\x1b[31m", "\ud800", "\udfff\ud800", "\ufeff", "\U0010ffff", "..",
    "/", "a" * 101, "x" * 1000, "__metadata__", "__class__", "%s", "{}", "é", "ß", "İ", "\u202e",
)  # fmt: skip
NUMBERS = (0.0, -0.0, 0.5, 1e22, 1.7976931348623157e308, 5e-324, 10**400)


class Random:
    """The random numbers of one execution."""

    __slots__ = ("_drawn", "_execution", "_pool", "_seed")

    def __init__(self, seed: int, execution: int) -> None:
        self._seed = seed
        self._execution = execution
        self._drawn = 0
        self._pool = 0

    def below(self, count: int) -> int:
        """Return a number from 0 to `count` - 1."""
        if self._pool < count << 16:  # several numbers from one draw
            self._pool = random_bits(self._seed, self._execution, self._drawn)
            self._drawn += 1
        self._pool, number = divmod(self._pool, count)
        return number

    def chance(self, one_in: int) -> bool:
        """Return True once in so many calls."""
        return not self.below(one_in)

    def pick(self, items: Sequence[T]) -> T:
        """Return one of the items."""
        return items[self.below(len(items))]


def mutate_bytes(
    data: bytes, random: Random, tokens: Sequence[bytes], corpus: Sequence[bytes], max_length: int
) -> bytes:
    """Return bytes with one to four changes: flips, edges, tokens, blocks copied, cut or spliced."""
    made = bytearray(data)
    for _ in range(1 + random.below(4)):
        at = random.below(len(made) + 1)
        length = 1 + random.below(random.pick((1, 4, 16, 64, 512)))
        move = random.below(9)
        if move == 0 and made:
            made[at % len(made)] ^= 1 << random.below(8)
        elif move == 1 and made:
            made[at % len(made)] = random.below(256)
        elif move == 2:
            token = random.pick(tokens)
            made[at : at + (len(token) if random.chance(2) else 0)] = token
        elif move == 3:
            del made[at : at + length]
        elif move == 4:
            source = random.below(len(made) + 1)
            block = made[source : source + length]
            made[at : at + (len(block) if random.chance(2) else 0)] = block
        elif move == 5:
            other = random.pick(corpus)
            made[at:] = other[random.below(len(other) + 1) :]
        elif move == 6:
            size = random.pick((1, 2, 4, 8))
            number = random.pick(EDGES) & ((1 << (8 * size)) - 1)
            made[at : at + size] = number.to_bytes(size, "little")
        elif move == 7:
            made[at:at] = str(random.pick(EDGES)).encode()
        else:
            block = made[at : at + length]
            made[at:at] = block * (1 + random.below(40))
        del made[max_length:]
    return bytes(made)


def mutate_json(value: Any, random: Random) -> Any:
    """Return a value with one change somewhere inside; `value` itself stays as it is."""
    if isinstance(value, dict) and value and not random.chance(6):
        return _mutate_object(value, random)
    if isinstance(value, list) and value and not random.chance(6):
        at = random.below(len(value))
        move = random.below(5)
        if move == 0:
            return value[:at] + value[at + 1 :]
        if move == 1:
            return value[:at] + [value[at]] * (1 + random.below(30)) + value[at:]
        return [*value[:at], mutate_json(value[at], random), *value[at + 1 :]]
    if type(value) is int and random.chance(2):
        return random.pick((value + 1, value - 1, -value, value * 2, f"{value}", [value]))
    if isinstance(value, str) and random.chance(2):
        at = random.below(len(value) + 1)
        return value[:at] + random.pick(STRINGS) + value[at + random.below(2) :]
    return any_value(random, 3)


def _mutate_object(value: dict[str, Any], random: Random) -> dict[str, Any]:
    key = random.pick(list(value))
    made = dict(value)
    move = random.below(8)
    if move == 0:
        del made[key]
    elif move == 1:
        made[random.pick((key + random.pick(STRINGS), random.pick(STRINGS)))] = made.pop(key)
    elif move == 2:
        made[random.pick(STRINGS) + key.swapcase()] = mutate_json(value[key], random)
    elif move == 3:
        made[key] = value[random.pick(list(value))]
    else:
        made[key] = mutate_json(value[key], random)
    return made


def any_value(random: Random, depth: int) -> Any:
    """Return any value of JSON, seldom a large one."""
    kind = random.below(9 if depth else 7)
    if kind <= 1:
        return random.pick(EDGES)
    if kind == 2:
        return random.pick(NUMBERS)
    if kind == 3:
        return random.pick((True, False, None))
    if kind == 4:
        return random.pick(STRINGS)
    if kind == 5:
        return [] if random.chance(2) else {}
    if kind == 6:
        nested: Any = random.pick(EDGES)
        for _ in range(random.pick((2, 3, 30, 31, 32, 40))):
            nested = [nested] if random.chance(2) else {"x": nested}
        return nested
    items = [any_value(random, depth - 1) for _ in range(random.below(4))]
    if kind == 7:
        return items * (1 if random.below(20) else 100)
    return {random.pick(STRINGS): item for item in items}


def length_prefix(length: int) -> bytes:
    """Return a length as the first eight bytes of a file of tables."""
    return struct.pack("<Q", length & ((1 << 64) - 1))
