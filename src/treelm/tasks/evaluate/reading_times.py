"""Does a model's surprisal predict reading times beyond what another model's does?

The recipe of reading-time studies: logarithms of mean times per word, regressed on word length,
frequency, position and the surprisal of a baseline model, each for the word and the one before it
(spill-over); then the surprisal of the model is added, and the gain in log likelihood tested.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from treelm.corpus.reading_times import TimedWord, Zone, ZonedSentence
from treelm.errors import EstimationError, UnsupportedTask
from treelm.models.interface.incremental import IncrementalModel
from treelm.tasks.evaluate.regression import (
    LikelihoodRatio,
    LinearFit,
    Numbers,
    fit_linear,
    likelihood_ratio,
)

#: Number of preceding words with spill-over, besides the word itself.
SPILL_OVER = 1


@dataclass(frozen=True, eq=False)
class ReadingTable:
    """One row per word: time and predictors, of the word and of those before it.

    Args:
        words: The words.
        log_times: Natural logarithms of their times.
        predictors: Columns by name; ``x_before`` is that of the word before.
        left_out: Number of words without a time, without a sentence, or at the edge of one.
    """

    words: tuple[str, ...]
    log_times: Numbers
    predictors: Mapping[str, Numbers]
    left_out: int


@dataclass(frozen=True, slots=True)
class ReadingResult:
    """The gain of a model over a baseline.

    Args:
        model: Name of the predictor that was added.
        over: Names of the predictors in the baseline.
        shift: Number of words by which times were shifted against the text; 0 for none.
        coefficient: Coefficient of the word's own surprisal, in log time per standard deviation.
        t: The coefficient in standard errors.
        before: Coefficient of the surprisal of the word before.
        ratio: The gain and its test.
        baseline_log_likelihood: Log likelihood of the baseline.
    """

    model: str
    over: tuple[str, ...]
    shift: int
    coefficient: float
    t: float
    before: float
    ratio: LikelihoodRatio
    baseline_log_likelihood: float

    def to_record(self) -> dict[str, object]:
        """Return names and values in reading order."""
        return {
            "model": self.model,
            "over": list(self.over),
            "shift": self.shift,
            "n": self.ratio.n,
            "coefficient": self.coefficient,
            "t": self.t,
            "coefficient_before": self.before,
            "delta_log_likelihood": self.ratio.delta_log_likelihood,
            "per_observation": self.ratio.per_observation,
            "predictors_added": self.ratio.predictors,
            "p_value": self.ratio.p_value,
            "baseline_log_likelihood": self.baseline_log_likelihood,
        }


def zone_surprisal(
    model: IncrementalModel, sentences: Sequence[ZonedSentence], *, threads: int = 1
) -> dict[Zone, float]:
    """Return the surprisal of every zone in bits: the sum over its tokens."""
    scores = model.score_batch([each.words for each in sentences], threads=threads)
    bits = scores.bits()
    found: dict[Zone, float] = {}
    for sentence, start in zip(sentences, scores.starts.tolist(), strict=False):
        for place, zone in enumerate(sentence.zones):
            found[zone] = found.get(zone, 0.0) + float(bits[start + place])
    return found


def unigram_surprisal(
    model: IncrementalModel, sentences: Iterable[ZonedSentence]
) -> dict[Zone, float]:
    """Return how rare the words of every zone are, in bits, by the training text of a model."""
    counts = model.unigram_counts
    if counts is None:
        raise UnsupportedTask(f"{model.system} models know no word frequencies.")
    total = float(counts[:-1].sum())
    found: dict[Zone, float] = {}
    for sentence in sentences:
        ids = model.vocabulary.encode(sentence.words).tolist()
        for zone, word in zip(sentence.zones, ids, strict=True):
            rarity = -math.log2(max(float(counts[word]), 1.0) / total)
            found[zone] = found.get(zone, 0.0) + rarity
    return found


def reading_table(
    times: Sequence[TimedWord],
    sentences: Sequence[ZonedSentence],
    columns: Mapping[str, Mapping[Zone, float]],
    *,
    shift: int = 0,
) -> ReadingTable:
    """Return words with their times and predictors.

    Times at the beginning and end of a sentence are left out, because people pause there, and those
    of words whose preceding words are not known. The times are the same for every shift, so that
    likelihoods can be compared.

    Args:
        times: Words with times.
        sentences: The sentences they occur in.
        columns: Predictors of zones, such as surprisal; length and position are added.
        shift: A word gets the time of this many words later, to detect a misaligned table.

    Raises:
        EstimationError: ``E_NO_DATA`` if no word is left.
    """
    position: dict[Zone, int] = {}
    inner: set[Zone] = set()
    for sentence in sentences:
        zones = list(dict.fromkeys(sentence.zones))
        position |= {zone: place for place, zone in enumerate(zones, 1)}
        inner |= set(zones[1 + SPILL_OVER : -1])
    word_of = {(each.item, each.zone): each.word for each in times}
    names = ("length", "position", *columns)
    rows: list[list[float]] = []
    words, log_times = [], []
    for each in times:
        read, earlier = ((each.item, each.zone - shift - back) for back in range(1 + SPILL_OVER))
        if (each.item, each.zone) not in inner or each.time is None:
            continue
        if any(
            zone not in known for zone in (read, earlier) for known in (word_of, *columns.values())
        ):
            continue
        row = []
        for place in (read, earlier):
            row += [float(len(word_of[place])), float(position.get(place, 0))]
            row += [column[place] for column in columns.values()]
        rows.append(row)
        words.append(word_of[read])
        log_times.append(math.log(each.time))
    if not rows:
        raise EstimationError(
            "no word has both a time and a place in a sentence. Do the items and zones of the "
            "table and of the trees match?",
            code="E_NO_DATA",
        )
    table = np.array(rows)
    labels = [*names, *(f"{name}_before" for name in names)]
    predictors = dict(zip(labels, table.T, strict=True))
    del predictors["position_before"]
    return ReadingTable(tuple(words), np.array(log_times), predictors, len(times) - len(rows))


def added_value(
    table: ReadingTable, model: str, over: Sequence[str], *, shift: int = 0
) -> ReadingResult:
    """Return what a model's surprisal, of the word and the one before, adds to a baseline.

    Args:
        table: Words with times and predictors.
        model: Column of the surprisal that is added.
        over: Columns of surprisal that are already in the baseline, besides length, frequency
            and position.
        shift: For the record: the shift of `table`.
    """
    base = ["length", "position", "frequency", *over]
    smaller = _fit(table, base)
    larger = _fit(table, [*base, model])
    return ReadingResult(
        model,
        tuple(over),
        shift,
        larger.coefficient(model),
        larger.t(model),
        larger.coefficient(f"{model}_before"),
        likelihood_ratio(smaller, larger),
        smaller.log_likelihood,
    )


def alignment_likelihood(table: ReadingTable) -> float:
    """Return the log likelihood of times given length and frequency of the word itself.

    The alignment of times and words is the shift at which it is largest.
    """
    own = {name: table.predictors[name] for name in ("length", "frequency")}
    return fit_linear(table.log_times, own).log_likelihood


def _fit(table: ReadingTable, names: Iterable[str]) -> LinearFit:
    chosen = {}
    for name in names:
        for label in (name, f"{name}_before"):
            if label in table.predictors:
                chosen[label] = table.predictors[label]
    return fit_linear(table.log_times, chosen)
