"""Section 10: exact sampling."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from tests.reference.backoff.model import BackoffModel, Row
from tests.reference.backoff.symbols import Context, Number, Outcome, Uniform


class Sampler:
    """Draws from a model exactly as section 10 says.

    Args:
        model: the model.
        uniform: the source of numbers u with 0 <= u < 1.
        number: `Fraction` for exact draws, `float` for fast ones.
    """

    def __init__(
        self,
        model: BackoffModel,
        uniform: Uniform,
        number: type[float] | type[Fraction] = Fraction,
    ) -> None:
        self._chain = model.chain
        self._uniform = uniform
        self._base = model.base.sampler(uniform, number)
        self._rows = [
            {key: _cumulative(row, number) for key, row in rows.items()} for rows in model.rows
        ]

    def draw(self, context: Context) -> Outcome:
        """One outcome: at each level either one of its own, or on to the next level.

        A level takes one number to decide, and one more to choose among its own outcomes; a level
        without counts takes none.
        """
        key = context
        for level, rows in enumerate(self._rows):
            self._chain.check(level, key)
            if key in rows:
                own, steps = rows[key]
                if self._uniform() < own:
                    return _choose(steps, self._uniform() * steps[-1][0])
            key = self._chain.below(level, key)
        return self._base(key)


def _cumulative(
    row: Row, number: type[float] | type[Fraction]
) -> tuple[Number, list[tuple[Number, Outcome]]]:
    """1 - gamma and the running sums of the masses, outcomes in the order of their repr."""
    steps: list[tuple[Number, Outcome]] = []
    total = Fraction(0)
    for outcome in sorted(row.mass, key=repr):
        total += row.mass[outcome]
        steps.append((number(total), outcome))
    return number(1 - row.gamma), steps


def _choose(steps: Sequence[tuple[Number, Outcome]], place: Number) -> Outcome:
    return next((outcome for limit, outcome in steps if place < limit), steps[-1][1])
