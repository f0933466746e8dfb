"""How a back-off chain comes to a probability: weights of contexts, then a stored value."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from treelm.estimation.backoff_table import BackoffTable
from treelm.models.interface.score_explanation import Arithmetic, ScoreTerm, log_of

#: Two probabilities are the same if their logarithms differ by no more than arithmetic does.
_SAME = 1e-9


def chain_arithmetic(
    table: BackoffTable,
    row: npt.NDArray[np.uint32],
    outcome: str,
    before: Sequence[str],
) -> Arithmetic:
    """Return the product that gives the probability of a word.

    Args:
        table: The chain.
        row: The word, and the words before it, the most recent first.
        outcome: The word as it is written.
        before: The words before it, the most recent last.
    """
    rows, terms = row[np.newaxis, :], []
    widths = table.widths
    for level, width in enumerate(widths):
        own = float(table.log_probabilities(rows, level=level)[0])
        seen = " ".join([*_last(before, width), outcome])
        if level == len(widths) - 1:
            terms.append(ScoreTerm(f"p({seen}), the shortest context", own))
            break
        lower = float(table.log_probabilities(rows, level=level + 1)[0])
        weight = log_of(float(table.backoff_weights(rows[:, 1:], level=level)[0]))
        if own == -math.inf or own > lower + weight + _SAME:
            terms.append(ScoreTerm(f"p({seen}), seen in training", own))
            break
        if weight != 0.0:  # a context that was never seen leaves everything to the next one
            terms.append(ScoreTerm(f"back-off weight of {' '.join(_last(before, width))}", weight))
    return Arithmetic("product", tuple(terms))


def _last(words: Sequence[str], count: int) -> Sequence[str]:
    return words[-count:] if count else ()
