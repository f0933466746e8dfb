"""Mixed models of reading times: readers, or texts, differ by chance (statsmodels)."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from treelm.errors import EstimationError
from treelm.extras import import_extra
from treelm.tasks.evaluate.reading_times import Integers, ReadingTable, base_predictors
from treelm.tasks.evaluate.regression import Numbers, chi_squared_tail


@dataclass(frozen=True, slots=True)
class MixedFit:
    """A linear mixed model, fitted by maximum likelihood.

    Args:
        names: Names of the fixed effects, the constant first.
        coefficients: One each; predictors were scaled to mean 0 and standard deviation 1.
        errors: Their standard errors.
        log_likelihood: Natural log likelihood at the maximum.
        covariance: Of the random effects: the constant, then the slopes.
        residual_variance: What is left.
        converged: Whether the search for the maximum ended well.
    """

    names: tuple[str, ...]
    coefficients: Numbers
    errors: Numbers
    log_likelihood: float
    covariance: Numbers
    residual_variance: float
    converged: bool


@dataclass(frozen=True, slots=True)
class MixedGain:
    """What a model's surprisal adds to a mixed model.

    Args:
        groups: What differs by chance: ``reader`` or ``item``.
        number: How many there are.
        formula: The larger model, as lme4 writes it.
        coefficient: Of the word's own surprisal: log time per standard deviation.
        error: Its standard error.
        delta_log_likelihood: Natural log likelihood gained.
        p_value: Likelihood-ratio test.
        larger: The larger model.
        converged: Whether both models were fitted well; if not, do not trust the test.
    """

    groups: str
    number: int
    formula: str
    coefficient: float
    error: float
    delta_log_likelihood: float
    p_value: float
    larger: MixedFit
    converged: bool

    def to_record(self) -> dict[str, object]:
        """Return names and values in reading order."""
        return {
            "groups": self.groups,
            "number": self.number,
            "formula": self.formula,
            "coefficient": self.coefficient,
            "error": self.error,
            "t": self.coefficient / self.error,
            "delta_log_likelihood": self.delta_log_likelihood,
            "p_value": self.p_value,
            "log_likelihood": self.larger.log_likelihood,
            "random_variances": np.diag(self.larger.covariance).tolist(),
            "residual_variance": self.larger.residual_variance,
            "converged": self.converged,
        }


def fit_mixed(table: ReadingTable, names: Sequence[str], *, slope: str | None = None) -> MixedFit:
    """Return the mixed model of log times with a constant for each reader, or for each text.

    Args:
        table: Words with times and predictors.
        names: Predictors, each of the word and of those before it.
        slope: A column whose effect differs between readers, one of the predictors or not.

    Raises:
        MissingExtra: without statsmodels, which the extra ``mixed`` brings.
        EstimationError: ``E_REGRESSION`` if there is no answer.
    """
    module = import_extra("statsmodels.regression.mixed_linear_model", "A mixed model")
    labels = table.labels(names)
    columns = {label: _scaled(table.predictors[label], label) for label in labels}
    constant = np.ones(len(table))
    matrix = np.column_stack([constant, *columns.values()])
    slopes = [] if slope is None else [_scaled(table.predictors[slope], slope)]
    random = np.column_stack([constant, *slopes])
    groups = table.reader_numbers if table.has_readers else table.items
    found = _best(module, table.log_times, matrix, groups, random)
    fixed = len(labels) + 1
    return MixedFit(
        ("constant", *labels),
        np.asarray(found.fe_params, np.float64),
        np.asarray(found.bse, np.float64)[:fixed],
        float(found.llf),
        np.asarray(found.cov_re, np.float64),
        float(found.scale),
        bool(found.converged),
    )


def _best(module: Any, times: Numbers, matrix: Numbers, groups: Integers, random: Numbers) -> Any:
    """Return the best of what several optimizers find; each of them gets lost now and then.

    Some end at a singular covariance with an infinite likelihood, which is no answer.
    """
    found, problem = [], "no optimizer found a maximum"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # whether it converged is in the result
        for method in ("powell", "lbfgs", "bfgs"):
            try:
                made = module.MixedLM(times, matrix, groups, exog_re=random)
                each = made.fit(reml=False, method=[method])
            except (np.linalg.LinAlgError, ValueError) as error:
                problem = str(error)
                continue
            if math.isfinite(each.llf) and np.isfinite(each.fe_params).all():
                found.append(each)
    if not found:
        raise EstimationError(
            f"the mixed model has no answer ({problem}). Are there too few readers or texts, or "
            "predictors that say the same?",
            code="E_REGRESSION",
        )
    return max(found, key=lambda each: float(each.llf))


def _scaled(values: Numbers, label: str) -> Numbers:
    deviation = float(values.std())
    if not (math.isfinite(deviation) and deviation > 0):
        raise EstimationError(
            f'the predictor "{label}" is constant, or NaN or infinite somewhere.',
            code="E_REGRESSION",
        )
    return np.asarray((values - values.mean()) / deviation)


def mixed_gain(table: ReadingTable, model: str, over: Sequence[str] = ()) -> MixedGain:
    """Return what a model's surprisal adds to a mixed model.

    Where there are readers, the effect of the word's own surprisal differs between them, in the
    smaller model too.

    Args:
        table: Words with times and predictors.
        model: Column of its surprisal.
        over: Columns of other models' surprisal that are in the baseline.
    """
    base = base_predictors(table, over)
    slope = model if table.has_readers else None
    larger = fit_mixed(table, [*base, model], slope=slope)
    smaller = fit_mixed(table, base, slope=slope)
    delta = max(0.0, larger.log_likelihood - smaller.log_likelihood)
    added = len(larger.names) - len(smaller.names)
    place = larger.names.index(model)
    groups = "reader" if table.has_readers else "item"
    numbers = table.reader_numbers if table.has_readers else table.items
    terms = " + ".join(larger.names[1:])
    return MixedGain(
        groups,
        len(np.unique(numbers)),
        f"log_time ~ {terms} + ({'1 + ' + slope if slope else '1'} | {groups})",
        float(larger.coefficients[place]),
        float(larger.errors[place]),
        delta,
        chi_squared_tail(2 * delta, added),
        larger,
        # More predictors cannot fit worse.
        converged=larger.converged
        and smaller.converged
        and larger.log_likelihood > smaller.log_likelihood - 1e-3,
    )
