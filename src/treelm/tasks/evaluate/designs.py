"""Factorial designs: the surprisal of a region by condition, effects and the interaction.

Items are matched: every item is there in all conditions, an effect is a mean over items, and its
interval a bootstrap over items.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np

from treelm.characters import visible
from treelm.errors import CorpusFormatError, UsageError, option
from treelm.models.interface.model import LanguageModel
from treelm.tasks.evaluate.resampling import ROUNDS, Interval, Numbers
from treelm.tasks.evaluate.significance import bootstrap_mean_interval
from treelm.tasks.surprisal.stimuli import Stimuli, measure_stimuli
from treelm.view.bar_charts import draw_grouped_bars
from treelm.view.chart_data import Bar

_SURPRISAL, _OOV = "surprisal", "oov"


@dataclass(frozen=True)
class Factor:
    """A column that tells conditions apart.

    Args:
        column: Its name.
        levels: Its values, the one that is subtracted first; empty for all in the order of the
            table.
    """

    column: str
    levels: tuple[str, ...] = ()

    @classmethod
    def parse(cls, text: str) -> Factor:
        """Return the factor of ``COLUMN`` or ``COLUMN=LEVEL,LEVEL``.

        Examples:
            >>> Factor.parse("comma=yes,no")
            Factor(column='comma', levels=('yes', 'no'))
        """
        column, _, levels = text.partition("=")
        return cls(column, tuple(levels.split(",")) if levels else ())


@dataclass(frozen=True)
class Region:
    """Which words of a sentence are looked at.

    Args:
        value: Value of the column ``region``; None to go by `column`.
        column: A column with the number of the first of these words in its sentence, from 1.
        words: How many words, from there on.
    """

    value: str | None = None
    column: str | None = None
    words: int = 1


@dataclass(frozen=True, slots=True)
class Estimate:
    """A mean over items.

    Args:
        mean: In bits.
        interval: 95 % bootstrap interval over items.
        t: The mean in standard errors; NaN for one item or equal ones.
        n: Number of items.
    """

    mean: float
    interval: Interval
    t: float
    n: int

    @classmethod
    def of(cls, values: Numbers, *, seed: int, rounds: int) -> Estimate:
        """Return the mean of values, one of each item."""
        spread = float(values.std(ddof=1)) if len(values) > 1 else 0.0
        mean = float(values.mean())
        t = mean / (spread / math.sqrt(len(values))) if spread > 0 else math.nan
        return cls(mean, bootstrap_mean_interval(values, seed=seed, rounds=rounds), t, len(values))

    def to_record(self) -> dict[str, object]:
        """Return names and values in reading order."""
        t = self.t if math.isfinite(self.t) else None
        return {"mean": self.mean, "interval": list(self.interval), "t": t, "n": self.n}


@dataclass(frozen=True)
class DesignResult:
    """A model on a design.

    Args:
        conditions: Mean surprisal by levels of the factors.
        effects: Differences by name: ``factor`` or ``factor: level - level``, and
            ``interaction`` where there are two factors of two levels.
        items: The items that have all conditions.
        values: Items by conditions: surprisal in bits.
        unknown: The same shape: whether the region has an unknown word.
        left_out: Items without some condition.
    """

    conditions: Mapping[tuple[str, ...], Estimate]
    effects: Mapping[str, Estimate]
    items: tuple[str, ...]
    values: Numbers
    unknown: np.ndarray[tuple[int, ...], np.dtype[np.bool_]]
    left_out: tuple[str, ...]

    def to_record(self) -> dict[str, object]:
        """Return names and values in reading order."""
        named = {", ".join(key): each for key, each in self.conditions.items()}
        return {
            "n": len(self.items),
            "left_out": len(self.left_out),
            "items_with_unknown_words": int(self.unknown.any(axis=1).sum()),
            "conditions": {name: each.to_record() for name, each in named.items()},
            "effects": {name: each.to_record() for name, each in self.effects.items()},
        }


def evaluate_design(
    model: LanguageModel,
    stimuli: Stimuli,
    factors: Sequence[Factor],
    region: Region,
    *,
    item: str = "item",
    seed: int = 0,
    rounds: int = ROUNDS,
    threads: int = 1,
) -> DesignResult:
    """Return the surprisal of a region by condition, and the effects of the factors.

    Args:
        model: An incremental model.
        stimuli: The table.
        factors: One factor, or two with two levels each.
        region: Which words are looked at; their surprisal is summed.
        item: The column that tells items apart.
        seed: Seed of the intervals.
        rounds: Number of bootstrap samples.
        threads: Number of threads.

    Raises:
        UsageError: for columns or levels that do not exist.
        CorpusFormatError: ``E_NO_DATA`` if no item has all conditions.
    """
    for name in (item, *(factor.column for factor in factors)):
        if name not in stimuli.columns:
            raise UsageError(
                f'there is no column "{visible(name)}". Columns: {", ".join(stimuli.columns)}.'
            )
    levels = [_levels(stimuli, factor) for factor in factors]
    if not 1 <= len(factors) <= 2 or (len(factors) == 2 and any(len(each) != 2 for each in levels)):
        raise UsageError(
            "a design has one factor, or two with two levels each; "
            f"{option('factors')} COLUMN=LEVEL,LEVEL chooses two of several levels."
        )
    cells = _cells(model, stimuli, factors, region, item=item, threads=threads)
    keys = list(product(*levels))
    names = list(dict.fromkeys(name for name, _ in cells))
    whole = [name for name in names if all((name, key) in cells for key in keys)]
    if not whole:
        raise CorpusFormatError(
            "no item has the region in all conditions. Do the columns of items, conditions and "
            "regions fit together?",
            code="E_NO_DATA",
        )
    values = np.array([[cells[name, key][0] for key in keys] for name in whole])
    unknown = np.array([[cells[name, key][1] for key in keys] for name in whole], np.bool_)

    def estimate(numbers: Numbers) -> Estimate:
        return Estimate.of(numbers, seed=seed, rounds=rounds)

    return DesignResult(
        {key: estimate(values[:, place]) for place, key in enumerate(keys)},
        {name: estimate(values @ weights) for name, weights in _contrasts(factors, levels).items()},
        tuple(whole),
        values,
        unknown,
        tuple(name for name in names if name not in whole),
    )


def _levels(stimuli: Stimuli, factor: Factor) -> tuple[str, ...]:
    found = tuple(dict.fromkeys(stimuli.texts(factor.column)))
    for level in factor.levels:
        if level not in found:
            raise UsageError(
                f'the column "{factor.column}" has no "{visible(level)}". It has: '
                f"{', '.join(map(visible, found[:20]))}."
            )
    chosen = factor.levels or found
    if len(chosen) < 2 or len(set(chosen)) < len(chosen):
        raise UsageError(f'the factor "{factor.column}" needs two different levels or more.')
    return chosen


def _contrasts(factors: Sequence[Factor], levels: Sequence[tuple[str, ...]]) -> dict[str, Numbers]:
    """Return the weights of the conditions in each effect."""
    if len(factors) == 1:
        first, *others = levels[0]
        size = len(levels[0])
        return {
            f"{factors[0].column}: {level} - {first}": np.eye(size)[place] - np.eye(size)[0]
            for place, level in enumerate(others, 1)
        }
    a, b = factors[0].column, factors[1].column
    return {
        a: np.array([-0.5, -0.5, 0.5, 0.5]),
        b: np.array([-0.5, 0.5, -0.5, 0.5]),
        "interaction": np.array([1.0, -1.0, -1.0, 1.0]),
    }


def _cells(
    model: LanguageModel,
    stimuli: Stimuli,
    factors: Sequence[Factor],
    region: Region,
    *,
    item: str,
    threads: int,
) -> dict[tuple[str, tuple[str, ...]], tuple[float, bool]]:
    """Return by item and condition the surprisal of the region, and whether a word is unknown."""
    chosen = _chosen(stimuli, region)
    measured = measure_stimuli(model, stimuli, threads=threads)
    bits, oov = measured.columns.index(_SURPRISAL), measured.columns.index(_OOV)
    conditions = list(zip(*(stimuli.texts(factor.column) for factor in factors), strict=True))
    items = stimuli.texts(item)
    found: dict[tuple[str, tuple[str, ...]], tuple[float, bool]] = {}
    sentence_of: dict[tuple[str, tuple[str, ...]], int] = {}
    for place, cells in enumerate(measured.rows):
        if place not in chosen:
            continue
        key = items[place], conditions[place]
        if sentence_of.setdefault(key, stimuli.numbers[place]) != stimuli.numbers[place]:
            raise UsageError(
                f'item "{visible(key[0])}" has two sentences in the condition '
                f"{visible(', '.join(key[1]))}. Name all columns that tell conditions apart in "
                f"{option('factors')}, or choose levels: COLUMN=LEVEL,LEVEL."
            )
        before, was_unknown = found.get(key, (0.0, False))
        found[key] = before + float(str(cells[bits])), was_unknown or bool(cells[oov])
    return found


def _chosen(stimuli: Stimuli, region: Region) -> frozenset[int]:
    """Return the rows of the region."""
    if (region.value is None) == (region.column is None):
        raise UsageError(f"give either {option('region')} or {option('critical')}.")
    name = "region" if region.column is None else region.column
    if name not in stimuli.columns:
        raise UsageError(f'there is no column "{name}". Columns: {", ".join(stimuli.columns)}.')
    cells = stimuli.texts(name)
    if region.value is not None:
        rows = [number for number, cell in enumerate(cells) if cell == region.value]
        if not rows:
            raise UsageError(f'the column "{name}" never has the value "{visible(region.value)}".')
        return frozenset(rows)
    found: list[int] = []
    first, before = 0, -1
    for number, cell in enumerate(cells):
        if stimuli.numbers[number] != before:
            first, before = number, stimuli.numbers[number]
        wanted = cell.strip()
        if not wanted.isdecimal() or int(wanted) < 1:
            raise UsageError(
                f'the column "{name}" must have the number of a word, from 1; it has '
                f'"{visible(wanted)}".'
            )
        if int(wanted) <= number - first + 1 < int(wanted) + region.words:
            found.append(number)
    return frozenset(found)


def draw_design(results: Mapping[str, DesignResult], title: str) -> str:
    """Return a picture: the mean surprisal of each condition, by model.

    Args:
        results: By the name of the model.
        title: Shown above.
    """
    groups: dict[str, list[Bar]] = {}
    for name, result in results.items():
        for (first, *second), each in result.conditions.items():
            label = f"{name}: {first}" if len(results) > 1 and second else first
            group, series = (label, second[0]) if second else (name, first)
            groups.setdefault(group, []).append(Bar(series, each.mean, *each.interval))
    return draw_grouped_bars(groups, title=title, axis="surprisal of the region in bits")
