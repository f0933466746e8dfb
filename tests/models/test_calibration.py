"""Probabilities of classifiers: they rise with the margin and agree with the label."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from treelm.errors import TreelmWarning
from treelm.models.interface.calibration import Calibration, fit_calibration

MARGINS = arrays(np.float64, st.integers(1, 20), elements=st.floats(-50, 50))


def labels(*numbers: int) -> np.ndarray[tuple[int], np.dtype[np.int8]]:
    return np.array(numbers, dtype=np.int8)


@given(MARGINS, st.floats(-3, 3))
def test_label_margin_and_probability_agree(margins: np.ndarray, slope: float) -> None:  # type: ignore[type-arg]
    """Whatever the slope, also that of models trained when it could be negative."""
    chances = Calibration(slope).probabilities(margins)
    assert (chances[margins > 0] >= 0.5).all()
    assert (chances[margins <= 0] <= 0.5).all()
    assert (np.diff(chances[np.argsort(margins)]) >= 0).all()


def test_the_slope_is_that_of_the_likelihood() -> None:
    # Margin 1: three of four are good, and margin -1 the other way round: p(good | 1) = 3/4.
    margins = np.array([1.0] * 4 + [-1.0] * 4)
    found = fit_calibration(margins, labels(1, 1, 1, 0, 0, 0, 0, 1))
    assert found.slope == pytest.approx(math.log(3), rel=1e-3)
    assert found.offset == 0
    assert found.probabilities(np.array([1.0, 0.0])) == pytest.approx([0.75, 0.5], rel=1e-3)


def test_margins_that_mislead_cannot_be_calibrated() -> None:
    margins = np.array([0.4, 0.3, -0.2, -0.5, -np.inf])
    with pytest.warns(TreelmWarning, match="could not be calibrated"):
        found = fit_calibration(margins, labels(0, 0, 1, 1, 1))
    assert found == Calibration(0.0)
    assert not found.is_calibrated
    assert found.probabilities(margins).tolist() == [0.5] * 4 + [0.0]


def test_an_older_model_with_a_negative_slope_is_not_calibrated() -> None:
    found = Calibration(-0.2, 0.05).probabilities(np.array([0.381, -0.216]))
    assert found.tolist() == [0.5, 0.5]
