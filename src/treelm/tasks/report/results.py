"""The content of a report: our numbers and published ones, which are never mixed."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from treelm.characters import visible
from treelm.errors import CorpusFormatError, UsageError, VocabularyError
from treelm.tasks.evaluate.resampling import Interval
from treelm.tasks.evaluate.significance import LEVEL

#: Shown where no people were asked. Nothing automatic may replace it.
NOT_RUN = "NOT RUN"


@dataclass(frozen=True, kw_only=True)
class Result:
    """A number that was measured.

    Args:
        table: Title of the table it belongs to.
        model: What was measured.
        metric: Name of the metric.
        data: What it was measured on, by its own name; never that of the data it replaces.
        value: The number; may be infinite.
        n: Number of items it was computed from.
        interval: 95 % interval.
        p: Two-sided p-value of the difference to `baseline`.
        baseline: Model it is compared with.
        digits: Decimal places shown to people; machine-readable files have all of them.

    Raises:
        CorpusFormatError: ``E_NAN`` for NaN.
        UsageError: for a p-value without a baseline, or impossible numbers.
    """

    table: str
    model: str
    metric: str
    data: str
    value: float
    n: int
    interval: Interval | tuple[float, float] | None = None
    p: float | None = None
    baseline: str | None = None
    digits: int = 2

    def __post_init__(self) -> None:
        place = f"{visible(self.metric)} of {visible(self.model)}"
        numbers = (self.value, *(self.interval or ()), self.p or 0.0)
        if any(map(math.isnan, numbers)):
            raise CorpusFormatError(
                f"{place}: the result is NaN. Something went wrong when it was computed.",
                code="E_NAN",
            )
        if (self.p is None) != (self.baseline is None):
            raise UsageError(f"{place}: a p-value needs a baseline, and a baseline a p-value.")
        if self.p is not None and not 0 <= self.p <= 1:
            raise UsageError(f"{place}: the p-value is {self.p}; it must be between 0 and 1.")
        if self.n < 0 or (self.interval is not None and self.interval[0] > self.interval[1]):
            raise UsageError(f"{place}: the number of items or the interval is impossible.")

    @property
    def is_significant(self) -> bool | None:
        """Whether the difference to the baseline is significant; None without a baseline."""
        return None if self.p is None else self.p <= LEVEL

    @property
    def shown_value(self) -> str:
        """The value, formatted for people."""
        return shown_number(self.value, self.digits)

    @property
    def shown_interval(self) -> str:
        """The interval, formatted for people."""
        if self.interval is None:
            return "-"
        low, high = (shown_number(end, self.digits) for end in self.interval)
        return f"{low} to {high}"

    @property
    def shown_p(self) -> str:
        """The p-value, its baseline, and a mark where it is not significant."""
        if self.p is None or self.baseline is None:
            return "-"
        value = "< 0.001" if self.p < 0.001 else f"{self.p:.3f}"
        mark = "" if self.is_significant else ", not significant"
        return f"{value} against {self.baseline}{mark}"

    def to_record(self) -> dict[str, object]:
        """Return it as a JSON object."""
        return {
            "table": self.table,
            "model": self.model,
            "metric": self.metric,
            "data": self.data,
            "value": json_number(self.value),
            "n": self.n,
            "interval": None if self.interval is None else [json_number(e) for e in self.interval],
            "p": self.p,
            "baseline": self.baseline,
            "significant": self.is_significant,
        }


@dataclass(frozen=True, kw_only=True)
class Published:
    """A published number of others; only for comparison, never a threshold.

    Args:
        table: Title of the table it belongs to.
        model: Name of the model in our results.
        metric: Name of the metric in our results.
        data: What it was measured on.
        value: The number.
        source: Where it was published.
        checked: Whether it was compared with the publication; if not, it is marked.
        digits: Decimal places shown.
    """

    table: str
    model: str
    metric: str
    data: str
    value: float
    source: str
    checked: bool = True
    digits: int = 2

    def __post_init__(self) -> None:
        if not math.isfinite(self.value):
            raise UsageError(f"{visible(self.source)}: a published value must be a finite number.")

    @property
    def shown_value(self) -> str:
        """The value, formatted for people."""
        return shown_number(self.value, self.digits) + ("" if self.checked else " †")

    def to_record(self) -> dict[str, object]:
        """Return it as a JSON object."""
        return {
            "table": self.table,
            "model": self.model,
            "metric": self.metric,
            "data": self.data,
            "value": self.value,
            "source": self.source,
            "checked": self.checked,
        }


def check_vocabularies(results: Iterable[Result], vocabularies: Mapping[str, object]) -> None:
    """Refuse to show perplexities over different vocabularies side by side.

    Args:
        results: All results; those of one table and one text whose metric is called perplexity
            are compared.
        vocabularies: Fingerprint of the vocabulary of each model; None where it is not known.

    Raises:
        VocabularyError: ``E_VOCABULARY_MISMATCH``.
    """
    first: dict[tuple[str, str, str], Result] = {}
    for result in results:
        ours = vocabularies.get(result.model)
        if ours is None or not result.metric.lower().startswith(("perplexity", "ppl")):
            continue
        other = first.setdefault((result.table, result.metric, result.data), result)
        if vocabularies[other.model] != ours:
            raise VocabularyError(
                f"{visible(other.model)} and {visible(result.model)} have different vocabularies, "
                "so their perplexities cannot be compared. Build one vocabulary and give it to "
                "both, or put them into different tables.",
                code="E_VOCABULARY_MISMATCH",
            )


def shown_number(value: float, digits: int) -> str:
    """Return a number, formatted for people.

    Examples:
        >>> shown_number(1234.567, 2), shown_number(float("-inf"), 2)
        ('1234.57', '-inf')
    """
    return f"{value:.{digits}f}" if math.isfinite(value) else str(value)


def json_number(value: float) -> float | str:
    """Return a number as JSON can represent it: infinities are the strings ``inf`` and ``-inf``."""
    return value if math.isfinite(value) else str(value)
