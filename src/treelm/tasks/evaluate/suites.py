"""Test suites in the format of SyntaxGym: items in several conditions, predictions as formulae.

An item is right if all predictions of its suite hold for it (Hu et al. 2020). The value of a region
is the sum of the surprisals of its words, in bits, or what the suite's ``metric`` names.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from treelm.characters import visible
from treelm.corpus.corpus import SentenceInDocument
from treelm.corpus.file_kinds import Wanted
from treelm.corpus.files import Source, read_lines, source_name
from treelm.corpus.tokenize import tokenize_words
from treelm.corpus.tokenizers import Tokenizing
from treelm.corpus.words import split_words
from treelm.errors import CorpusFormatError
from treelm.models.interface.model import LanguageModel
from treelm.models.interface.perplexity import model_signature
from treelm.tasks.evaluate.formulae import Formula, Region
from treelm.tasks.evaluate.resampling import Interval
from treelm.tasks.evaluate.significance import bootstrap_mean_interval
from treelm.tasks.surprisal.stimuli import tokenized_regions
from treelm.tasks.surprisal.surprisal import surprisal_rows

Numbers = npt.NDArray[np.float64]
#: Region of the whole sentence in formulae.
_WHOLE = "*"
#: What is computed from the surprisals of a region's words.
_METRICS: dict[str, Callable[[Numbers], float]] = {
    "sum": np.sum,
    "mean": np.mean,
    "median": np.median,
    "min": np.min,
    "max": np.max,
    "range": np.ptp,
}


@dataclass(frozen=True, slots=True)
class Condition:
    """A sentence of an item.

    Args:
        name: Of the condition.
        regions: Number of each region, and its words.
    """

    name: str
    regions: tuple[tuple[str, tuple[str, ...]], ...]

    @property
    def words(self) -> tuple[str, ...]:
        """The words of the sentence."""
        return tuple(word for _, words in self.regions for word in words)


@dataclass(frozen=True, slots=True)
class Item:
    """One item, in all conditions.

    Args:
        number: As the suite numbers it.
        conditions: Its sentences.
    """

    number: str
    conditions: tuple[Condition, ...]


@dataclass(frozen=True, slots=True)
class Suite:
    """A test suite.

    Args:
        name: Its name.
        metric: What is computed from the words of a region.
        predictions: What should hold for every item.
        items: The items.
        source: Name of the file.
    """

    name: str
    metric: str
    predictions: tuple[Formula, ...]
    items: tuple[Item, ...]
    source: str

    def sentences(self) -> Iterator[tuple[str, ...]]:
        """Yield the words of every condition of every item."""
        return (condition.words for item in self.items for condition in item.conditions)


@dataclass(frozen=True, slots=True)
class SuiteAccuracy:
    """How often the predictions of a suite hold.

    Args:
        accuracy: Share of the items for which all of them hold.
        n: Number of items.
        interval: 95 % bootstrap interval of the accuracy, over items.
        predictions: Formulae -> share of the items for which they hold.
        items_with_unknown_words: Number of items that have words that are out of vocabulary.
        holds: Items by predictions: whether they hold.
        items: Numbers of the items.
    """

    accuracy: float
    n: int
    interval: Interval
    predictions: Mapping[str, float]
    items_with_unknown_words: int
    holds: npt.NDArray[np.bool_]
    items: tuple[str, ...]

    def to_record(self) -> dict[str, object]:
        """Return names and values in reading order."""
        return {
            "accuracy": self.accuracy,
            "n": self.n,
            "interval": list(self.interval),
            "items_with_unknown_words": self.items_with_unknown_words,
            "predictions": dict(self.predictions),
        }


@dataclass(frozen=True, slots=True)
class SuiteResults:
    """The accuracy of a model on some suites.

    Args:
        accuracy: Mean over the suites.
        suites: By their names.
        signature: What made the numbers.
    """

    accuracy: float
    suites: Mapping[str, SuiteAccuracy]
    signature: str

    def to_record(self) -> dict[str, object]:
        """Return names and values in reading order."""
        return {
            "accuracy": self.accuracy,
            "suites": {name: found.to_record() for name, found in self.suites.items()},
            "signature": self.signature,
        }


def read_suite(
    source: Source, *, tokenizing: bool = True, tokenize: Tokenizing = tokenize_words
) -> Suite:
    """Return a suite of SyntaxGym's JSON format.

    Args:
        source: The file.
        tokenizing: Whether the regions are raw text, as they are in SyntaxGym: each sentence is
            tokenized as a whole.
        tokenize: What takes a sentence of raw text apart.

    Raises:
        CorpusFormatError: ``E_SUITE``, naming the item, if it is malformed.
    """
    name = source_name(source)
    try:
        given = json.loads("\n".join(read_lines(source, Wanted.JSON)))
    except json.JSONDecodeError as error:
        raise CorpusFormatError(
            f"{name}:{error.lineno}: this is no JSON ({error.msg}). A suite of SyntaxGym is one "
            "JSON object.",
            code="E_SUITE",
            path=name,
            line=error.lineno,
        ) from error
    try:
        return _suite_of(given, name, tokenize if tokenizing else None)
    except CorpusFormatError as error:
        raise CorpusFormatError(f"{name}: {error}", code="E_SUITE", path=name) from error


def _suite_of(given: Any, source: str, tokenize: Tokenizing | None) -> Suite:
    """Return the suite of what a file contains."""
    meta = _field(given, "meta", dict, "the suite")
    metric = meta.get("metric", "sum")
    if metric not in _METRICS:
        raise _malformed(f'the metric is "{metric}"; known are {", ".join(_METRICS)}')
    predictions = tuple(
        Formula.parse(_field(each, "formula", str, "a prediction"))
        for each in _field(given, "predictions", list, "the suite")
    )
    items = tuple(_item_of(each, tokenize) for each in _field(given, "items", list, "the suite"))
    if not items or not predictions:
        raise _malformed("there are no items, or no predictions")
    for item in items:
        known = {Region(_WHOLE, each.name) for each in item.conditions}
        known |= {
            Region(number, each.name) for each in item.conditions for number, _ in each.regions
        }
        for formula in predictions:
            for region in sorted(formula.regions - known):
                raise _malformed(
                    f"item {item.number} has no region {region.number} in the condition "
                    f'"{region.condition}", which the formula "{formula.text}" is about'
                )
    return Suite(_field(meta, "name", str, "meta"), metric, predictions, items, source)


def _item_of(given: Any, tokenize: Tokenizing | None) -> Item:
    number = str(_field(given, "item_number", (int, str), "an item"))
    where = f"item {number}"
    conditions = []
    for each in _field(given, "conditions", list, where):
        name = _field(each, "condition_name", str, where).strip()
        numbers, regions = [], []
        for region in _field(each, "regions", list, where):
            numbers.append(str(_field(region, "region_number", (int, str), where)))
            regions.append(split_words(_field(region, "content", str, where)))
        words = regions if tokenize is None else tokenized_regions(regions, tokenize)
        if not any(words) or len(set(numbers)) < len(numbers):
            raise _malformed(f'{where}, "{name}": there are no words, or two regions of one number')
        conditions.append(Condition(name, tuple(zip(numbers, words, strict=True))))
    if len({each.name for each in conditions}) < len(conditions):
        raise _malformed(f"{where}: two conditions have the same name")
    return Item(number, tuple(conditions))


def _field(given: Any, name: str, kind: type | tuple[type, ...], where: str) -> Any:
    """Return a field of a JSON object."""
    if not isinstance(given, dict) or not isinstance(given.get(name), kind):
        raise _malformed(f'{where} has no "{name}" of the right kind')
    return given[name]


def _malformed(what: str) -> CorpusFormatError:
    return CorpusFormatError(f"{visible(what)}.", code="E_SUITE")


def evaluate_suites(
    model: LanguageModel, suites: Sequence[Suite], *, seed: int, threads: int = 1
) -> SuiteResults:
    """Return for how many items of suites the predictions hold.

    Args:
        model: An incremental model.
        suites: The suites, of different names.
        seed: Seed of the intervals.
        threads: Number of threads; results do not depend on it.

    Raises:
        UnsupportedTask: ``E_NOT_INCREMENTAL`` if the model scores whole sentences only.
        CorpusFormatError: ``E_SUITE`` if two suites have the same name.
    """
    found: dict[str, SuiteAccuracy] = {}
    for suite in suites:
        if suite.name in found:
            raise _malformed(f'two suites are called "{suite.name}"')
        found[suite.name] = _accuracy(model, suite, seed=seed, threads=threads)
    return SuiteResults(
        float(np.mean([each.accuracy for each in found.values()])),
        found,
        model_signature(model, task="suites", seed=seed),
    )


def _accuracy(model: LanguageModel, suite: Suite, *, seed: int, threads: int) -> SuiteAccuracy:
    sentences = (SentenceInDocument(place, words) for place, words in enumerate(suite.sentences()))
    scored = surprisal_rows(model, sentences, threads=threads)
    metric = _METRICS[suite.metric]
    holds, unknown = [], 0
    for item in suite.items:
        values: dict[Region, float] = {}
        has_unknown = False
        for condition in item.conditions:
            rows = next(scored)
            has_unknown |= bool(rows.oov.any())
            values[Region(_WHOLE, condition.name)] = float(metric(rows.surprisal))
            place = 0
            for number, words in condition.regions:
                part = rows.surprisal[place : place + len(words)]
                place += len(words)
                values[Region(number, condition.name)] = float(metric(part)) if words else 0.0
        unknown += has_unknown
        holds.append([formula.holds(values) for formula in suite.predictions])
    table = np.array(holds, dtype=np.bool_)
    right: Numbers = np.array([all(each) for each in holds], dtype=np.float64)
    return SuiteAccuracy(
        float(right.mean()),
        len(right),
        bootstrap_mean_interval(right, seed=seed),
        {
            formula.text: float(share)
            for formula, share in zip(suite.predictions, table.mean(axis=0), strict=True)
        },
        unknown,
        table,
        tuple(item.number for item in suite.items),
    )
