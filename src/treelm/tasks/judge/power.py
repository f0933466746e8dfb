"""How many pairs people must decide before a preference can be distinguished from chance."""

from __future__ import annotations

import math
from statistics import NormalDist

import numpy as np
import numpy.typing as npt

from treelm.errors import UsageError

#: The preference worth finding, the power, and the significance level.
PREFERENCE, POWER, LEVEL = 0.55, 0.8, 0.05

#: A preference closer to one half than this needs more pairs than anybody judges.
_LEAST_EFFECT = 0.02


def approximate_pairs(
    preference: float = PREFERENCE, power: float = POWER, level: float = LEVEL
) -> int:
    """Return the number of decided pairs a two-sided test needs, by the normal approximation.

    Args:
        preference: Share of the pairs in which the better system is preferred.
        power: Probability of finding the difference.
        level: Probability of finding one where there is none.

    Examples:
        >>> approximate_pairs()
        783
    """
    _check(preference, power, level)
    normal = NormalDist()
    deviation = math.sqrt(preference * (1 - preference))
    reach = normal.inv_cdf(1 - level / 2) * 0.5 + normal.inv_cdf(power) * deviation
    return math.ceil((reach / (preference - 0.5)) ** 2)


def sign_test_power(n: int, preference: float = PREFERENCE, level: float = LEVEL) -> float:
    """Return the probability that the exact two-sided sign test of `n` pairs finds a preference.

    Examples:
        >>> round(sign_test_power(783), 3)
        0.789
    """
    _check(preference, POWER, level)
    return _power(n, preference, level, _log_factorials(n))


def exact_pairs(preference: float = PREFERENCE, power: float = POWER, level: float = LEVEL) -> int:
    """Return the smallest number of pairs from which on the sign test never has less power.

    The power of an exact test rises with the number of pairs in a sawtooth, hence "from which on".

    Examples:
        >>> exact_pairs()
        820
    """
    about = approximate_pairs(preference, power, level)
    # Far beyond the last tooth that reaches down to the wanted power.
    largest = about + about // 2 + 200
    logs = _log_factorials(largest)
    for n in range(largest, 0, -1):
        if _power(n, preference, level, logs) < power:
            return n + 1
    return 1


def _power(n: int, preference: float, level: float, logs: npt.NDArray[np.float64]) -> float:
    heads = np.arange(n + 1)
    choose = logs[n] - logs[heads] - logs[n - heads]
    fair = np.cumsum(np.exp(choose - n * math.log(2.0)))
    critical = int(np.count_nonzero(2 * fair <= level)) - 1  # most losses that are significant
    if critical < 0:
        return 0.0
    chances = np.exp(choose + heads * math.log(preference) + (n - heads) * math.log1p(-preference))
    return float(chances[: critical + 1].sum() + chances[n - critical :].sum())


def _log_factorials(largest: int) -> npt.NDArray[np.float64]:
    return np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, largest + 1)))])


def _check(preference: float, power: float, level: float) -> None:
    if not 0.5 + _LEAST_EFFECT <= preference < 1:
        raise UsageError(
            f"a preference of {preference} cannot be planned for: it must be at least "
            f"{0.5 + _LEAST_EFFECT} and less than 1."
        )
    if not (0 < level < power < 1):
        raise UsageError("power and level must be between 0 and 1, and the power the larger one.")
