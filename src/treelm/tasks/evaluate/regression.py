"""Ordinary least squares, and tests of additional predictors."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from treelm.errors import EstimationError

Numbers = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class LinearFit:
    """A linear model fitted to observations.

    Args:
        names: Names of the predictors, the constant first.
        coefficients: One each; predictors were scaled to mean 0 and standard deviation 1.
        errors: Their standard errors.
        log_likelihood: Natural log likelihood of all observations at the maximum.
        n: Number of observations.
        matrix: The constant and the scaled predictors, a column each.
        residuals: What they leave of each observation.
    """

    names: tuple[str, ...]
    coefficients: Numbers
    errors: Numbers
    log_likelihood: float
    n: int
    matrix: Numbers
    residuals: Numbers

    def coefficient(self, name: str) -> float:
        """Return the coefficient of a predictor."""
        return float(self.coefficients[self.names.index(name)])

    def t(self, name: str) -> float:
        """Return a coefficient in standard errors."""
        place = self.names.index(name)
        return float(self.coefficients[place] / self.errors[place])

    def robust_t(self, name: str, order: Order, lags: int | None = None) -> float:
        """Return a coefficient in errors that allow for autocorrelation (Newey and West 1987).

        Args:
            name: The predictor.
            order: Which observations follow each other.
            lags: How far residuals are correlated; by default 4 (n / 100)^(2/9), rounded down.
        """
        if lags is None:
            lags = int(4 * (self.n / 100) ** (2 / 9))
        scores = self.matrix * self.residuals[:, None]
        middle = scores.T @ scores
        for lag in range(1, lags + 1):
            first, second = order.pairs(lag)
            across = scores[first].T @ scores[second]
            middle += (1 - lag / (lags + 1)) * (across + across.T)
        bread = np.linalg.inv(self.matrix.T @ self.matrix)
        place = self.names.index(name)
        variance = float((bread @ middle @ bread)[place, place])
        return float(self.coefficients[place]) / math.sqrt(variance) if variance > 0 else math.nan


@dataclass(frozen=True, eq=False)
class Order:
    """Which observations follow each other.

    Args:
        series: The number of the series of each observation, such as a reader of a text.
        places: Its place there; none is there twice.
    """

    series: npt.NDArray[np.int64]
    places: npt.NDArray[np.int64]

    @cached_property
    def _keys(self) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """The observations in order, and numbers by which they are found."""
        width = int(self.places.max() - self.places.min()) * 2 + 3
        keys = self.series * width + (self.places - self.places.min())
        order = np.argsort(keys, kind="stable")
        return order, keys[order]

    def pairs(self, lag: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Return observations and those exactly so many places later in the same series."""
        if lag > int(self.places.max() - self.places.min()):
            return np.zeros(0, np.int64), np.zeros(0, np.int64)
        order, keys = self._keys
        found = np.minimum(np.searchsorted(keys, keys + lag), len(keys) - 1)
        hit = keys[found] == keys + lag
        return order[hit], order[found[hit]]

    def autocorrelation(self, values: Numbers, lag: int = 1) -> float:
        """Return the correlation of values with those `lag` places later; NaN without any."""
        first, second = self.pairs(lag)
        centred = values - values.mean()
        if not len(first):
            return math.nan
        scale = float((centred**2).mean())
        return float((centred[first] * centred[second]).mean()) / scale


def fit_linear(
    response: Numbers, predictors: dict[str, Numbers], *, absorbed: int = 0
) -> LinearFit:
    """Return the least-squares fit of a response by predictors and a constant.

    Args:
        response: The observations.
        predictors: Columns by name.
        absorbed: Number of means that were subtracted before, such as those of readers.

    Raises:
        EstimationError: ``E_NO_DATA`` with fewer observations than predictors, ``E_REGRESSION`` if
            a predictor is constant or a combination of the others.

    Examples:
        >>> x = np.array([0.0, 1.0, 2.0, 3.0])
        >>> fit = fit_linear(2 * x + np.array([0.1, -0.1, 0.1, -0.1]), {"x": x})
        >>> round(fit.coefficient("x") / float(x.std()), 2)
        1.96
    """
    n, width = len(response), len(predictors) + 1
    if n <= width + absorbed:
        raise EstimationError(
            f"there are {n} observations for {width} coefficients.", code="E_NO_DATA"
        )
    columns = []
    for name, values in predictors.items():
        deviation = float(values.std())
        if not math.isfinite(deviation) or deviation == 0:
            raise EstimationError(
                f'the predictor "{name}" is constant, or NaN or infinite somewhere.',
                code="E_REGRESSION",
            )
        columns.append((values - values.mean()) / deviation)
    matrix = np.column_stack([np.ones(n), *columns])
    q, r = np.linalg.qr(matrix)
    diagonal = np.abs(np.diag(r))
    if diagonal.min() < 1e-8 * diagonal.max():
        raise EstimationError(
            _dependence(tuple(predictors), columns, int(diagonal.argmin()) - 1), code="E_REGRESSION"
        )
    coefficients = np.linalg.solve(r, q.T @ response)
    residuals = response - matrix @ coefficients
    squares = float(residuals @ residuals)
    if squares <= 0:
        raise EstimationError("the predictors leave nothing to explain.", code="E_REGRESSION")
    inverse = np.linalg.inv(r)
    errors = np.sqrt(squares / (n - width - absorbed) * (inverse**2).sum(axis=1))
    likelihood = -0.5 * n * (math.log(2 * math.pi * squares / n) + 1)
    names = ("constant", *predictors)
    return LinearFit(names, coefficients, errors, likelihood, n, matrix, residuals)


def _dependence(names: tuple[str, ...], columns: list[Numbers], place: int) -> str:
    """Return what is wrong with a predictor that the others determine."""
    for other in range(place):
        if np.allclose(columns[other], columns[place], rtol=0, atol=1e-6):
            return (
                f'the predictors "{names[other]}" and "{names[place]}" are the same for every '
                "word, so nothing can be said about the one beside the other. Is the same model "
                "or measure given twice?"
            )
    return (
        f'the predictor "{names[place]}" can be computed from the others, so nothing can be said '
        "about it beside them. Leave it out."
    )


@dataclass(frozen=True, slots=True)
class LikelihoodRatio:
    """The gain of additional predictors over a model.

    Args:
        delta_log_likelihood: Natural log likelihood gained, over all observations.
        predictors: Number of added predictors.
        p_value: Probability of such a gain by chance: likelihood-ratio test.
        n: Number of observations.
    """

    delta_log_likelihood: float
    predictors: int
    p_value: float
    n: int

    @property
    def per_observation(self) -> float:
        """Gain per observation."""
        return self.delta_log_likelihood / self.n


def likelihood_ratio(smaller: LinearFit, larger: LinearFit) -> LikelihoodRatio:
    """Return the gain of the larger of two nested fits."""
    delta = max(0.0, larger.log_likelihood - smaller.log_likelihood)
    added = len(larger.names) - len(smaller.names)
    return LikelihoodRatio(delta, added, chi_squared_tail(2 * delta, added), larger.n)


def chi_squared_tail(value: float, degrees: int) -> float:
    """Return the probability that a chi-squared variable is at least this large.

    Examples:
        >>> round(chi_squared_tail(3.841459, 1), 4), round(chi_squared_tail(5.991465, 2), 4)
        (0.05, 0.05)
    """
    half = value / 2
    if half <= 0:
        return 1.0
    # Q(a + 1, x) = Q(a, x) + x^a e^-x / Gamma(a + 1), from Q(1/2, x) or Q(1, x).
    order, tail = (0.5, math.erfc(math.sqrt(half))) if degrees % 2 else (1.0, math.exp(-half))
    while order < degrees / 2:
        tail += math.exp(order * math.log(half) - half - math.lgamma(order + 1))
        order += 1
    return min(1.0, tail)
