"""Which of several shards holds the counts of a key, for any number of workers and machines.

Keys are words that contexts have in common. A frequent word would overload its shard, so the events
of frequent words are divided further by what they predict. Where a count stands never changes it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Keys = npt.NDArray[np.uint64]

#: Keys that are divided further: so many words, those with the lowest ids, are the most frequent.
HEAVY_KEYS = 1000
#: Into how many parts the events of a frequent word are divided.
HEAVY_PARTS = 16


def mix64(numbers: npt.ArrayLike) -> Keys:
    """Return well-mixed numbers: the finalizer of splitmix64.

    Examples:
        >>> [hex(number) for number in mix64([0, 1]).tolist()]
        ['0xe220a8397b1dcdaf', '0x910a2dec89025cc1']
    """
    mixed = np.array(numbers, dtype=np.uint64)
    with np.errstate(over="ignore"):
        mixed += np.uint64(0x9E3779B97F4A7C15)
        mixed ^= mixed >> np.uint64(30)
        mixed *= np.uint64(0xBF58476D1CE4E5B9)
        mixed ^= mixed >> np.uint64(27)
        mixed *= np.uint64(0x94D049BB133111EB)
        mixed ^= mixed >> np.uint64(31)
    return mixed


@dataclass(frozen=True)
class KeyShards:
    """Places of keys.

    Args:
        count: Number of shards.
        heavy: Keys below this number are divided by what they predict; 0 for none.

    Examples:
        >>> KeyShards(2, heavy=0).places(np.array([0, 1, 2]), np.array([5, 5, 5])).tolist()
        [1, 1, 0]
    """

    count: int
    heavy: int = HEAVY_KEYS

    def places(
        self, keys: npt.NDArray[np.integer], outcomes: npt.NDArray[np.integer]
    ) -> npt.NDArray[np.int64]:
        """Return the shard of every event.

        Args:
            keys: The key of each.
            outcomes: What each predicts.
        """
        mixed = mix64(keys)
        is_heavy = keys < self.heavy
        if is_heavy.any():
            parts = outcomes[is_heavy].astype(np.uint64) % np.uint64(HEAVY_PARTS)
            mixed[is_heavy] = mix64(mixed[is_heavy] ^ parts)
        return (mixed % np.uint64(self.count)).astype(np.int64)
