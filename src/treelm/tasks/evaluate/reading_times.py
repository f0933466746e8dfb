"""Does a model's surprisal predict reading times beyond what another model's does?

The recipe of reading-time studies: logarithms of mean times per word, regressed on word length,
frequency, position and the surprisal of a baseline model, each for the word and the one before it
(spill-over); then the surprisal of the model is added, and the gain in log likelihood tested.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain

import numpy as np
import numpy.typing as npt

from treelm.corpus.encoder import encode_sentences
from treelm.corpus.reading_times import TimedWord, Zone, ZonedSentence
from treelm.errors import EstimationError, UnsupportedTask
from treelm.models.interface.incremental import IncrementalModel
from treelm.tasks.evaluate.regression import (
    LikelihoodRatio,
    LinearFit,
    Numbers,
    Order,
    fit_linear,
    likelihood_ratio,
)

Integers = npt.NDArray[np.int64]

#: Default number of preceding words with spill-over, besides the word itself.
SPILL_OVER = 1


@dataclass(frozen=True, eq=False)
class ReadingTable:
    """One row per word, or per word and reader: keys, time and predictors.

    Args:
        words: The words.
        log_times: Natural logarithms of their times.
        predictors: Columns by name; ``x_before`` is that of the word before, ``x_before_2`` that of
            the one before it.
        left_out: Number of words without a time, without a sentence, or at the edge of one.
        items: The text of each row.
        zones: Its place there.
        sentences: The number of its sentence.
        readers: Who read it; empty for means.
        unknown: Whether it, or a word before it that counts, is unknown to a model.
        spill_over: Number of preceding words whose predictors count.
        texts: What the table of times calls the text of each row.
    """

    words: tuple[str, ...]
    log_times: Numbers
    predictors: Mapping[str, Numbers]
    left_out: int
    items: Integers
    zones: Integers
    sentences: Integers
    readers: tuple[str, ...]
    unknown: npt.NDArray[np.bool_]
    spill_over: int = SPILL_OVER
    texts: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.words)

    @cached_property
    def reader_numbers(self) -> Integers:
        """A number for the reader of each row; all 0 for means."""
        return np.unique(np.array(self.readers), return_inverse=True)[1].astype(np.int64)

    @property
    def has_readers(self) -> bool:
        """Whether rows are those of single readers."""
        return bool(self.reader_numbers.max(initial=0) > 0)

    @cached_property
    def order(self) -> Order:
        """Which rows follow each other: those of one reader in one text."""
        series = self.reader_numbers * (int(self.items.max()) + 1) + self.items
        return Order(series, self.zones)

    def known(self) -> ReadingTable:
        """Return the rows whose words all models know.

        Raises:
            EstimationError: ``E_NO_DATA`` if there are none.
        """
        kept = np.flatnonzero(~self.unknown)
        if not len(kept):
            raise EstimationError(
                "every word is unknown to one of the models. Is the text tokenized as theirs was?",
                code="E_NO_DATA",
            )
        return replace(
            self,
            words=tuple(self.words[place] for place in kept),
            log_times=self.log_times[kept],
            predictors={name: values[kept] for name, values in self.predictors.items()},
            left_out=self.left_out + len(self) - len(kept),
            items=self.items[kept],
            zones=self.zones[kept],
            sentences=self.sentences[kept],
            readers=tuple(self.readers[place] for place in kept),
            unknown=self.unknown[kept],
            texts=tuple(self.texts[place] for place in kept) if self.texts else (),
        )

    def labels(self, names: Iterable[str]) -> list[str]:
        """Return the columns of predictors: of the word itself and of those before it."""
        wanted = [label for name in names for label in (name, *_earlier(name, self.spill_over))]
        return [label for label in wanted if label in self.predictors]


def _earlier(name: str, spill_over: int) -> list[str]:
    """Return what a predictor is called for the words before."""
    return [
        f"{name}_before" + (f"_{back}" if back > 1 else "") for back in range(1, spill_over + 1)
    ]


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


@dataclass(frozen=True, eq=False)
class ZoneScores:
    """What a model says about a text.

    Args:
        surprisal: Of every zone, in bits: the sum over its tokens.
        unknown: Zones with a word that the model does not know.
        perplexity: Of the text, per word with ``</s>`` counted.
    """

    surprisal: Mapping[Zone, float]
    unknown: frozenset[Zone]
    perplexity: float


def zone_scores(
    model: IncrementalModel, sentences: Sequence[ZonedSentence], *, threads: int = 1
) -> ZoneScores:
    """Return the surprisal of every zone; models that remember documents read each item as one."""
    if model.remembers_documents:
        text = encode_sentences([each.words for each in sentences], model.vocabulary)
        documents = np.array([each.zones[0][0] for each in sentences], np.uint32)
        scores = model.score_documents(replace(text, documents=documents), threads=threads)
    else:
        scores = model.score_batch([each.words for each in sentences], threads=threads)
    bits, oov = scores.bits(), scores.oov
    found: dict[Zone, float] = {}
    unknown = set()
    for sentence, start in zip(sentences, scores.starts.tolist(), strict=False):
        for place, zone in enumerate(sentence.zones, start):
            found[zone] = found.get(zone, 0.0) + float(bits[place])
            if oov[place]:
                unknown.add(zone)
    return ZoneScores(found, frozenset(unknown), math.exp(-float(scores.log_probs.mean())))


def zone_surprisal(
    model: IncrementalModel, sentences: Sequence[ZonedSentence], *, threads: int = 1
) -> Mapping[Zone, float]:
    """Return the surprisal of every zone in bits: the sum over its tokens."""
    return zone_scores(model, sentences, threads=threads).surprisal


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
    spill_over: int = SPILL_OVER,
    previous_time: bool = False,
    unknown: Collection[Zone] = (),
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
        spill_over: Number of preceding words whose predictors count too.
        previous_time: Whether the log time of the word before is a predictor, ``previous_time``.
        unknown: Zones with a word that is unknown to a model.

    Raises:
        EstimationError: ``E_NO_DATA`` if no word is left.
    """
    position: dict[Zone, int] = {}
    sentence_of: dict[Zone, int] = {}
    inner: set[Zone] = set()
    for number, sentence in enumerate(sentences):
        zones = list(dict.fromkeys(sentence.zones))
        position |= {zone: place for place, zone in enumerate(zones, 1)}
        sentence_of |= dict.fromkeys(zones, number)
        inner |= set(zones[1 + spill_over : -1])
    word_of = {each.key: each.word for each in times}
    time_of = {(each.reader, each.key): each.time for each in times} if previous_time else {}
    rows: list[list[float]] = []
    kept: list[TimedWord] = []
    words, is_unknown = [], []
    for each in times:
        places = [(each.item, each.zone - shift - back) for back in range(1 + spill_over)]
        before = time_of.get((each.reader, (each.item, each.zone - 1)))
        if each.key not in inner or each.time is None or (previous_time and before is None):
            continue
        if any(zone not in known for zone in places for known in (word_of, *columns.values())):
            continue
        row = [] if before is None else [math.log(before)]
        for place in places:
            row += [float(len(word_of[place])), float(position.get(place, 0))]
            row += [column[place] for column in columns.values()]
        rows.append(row)
        kept.append(each)
        words.append(word_of[places[0]])
        is_unknown.append(any(place in unknown for place in places))
    if not rows:
        raise EstimationError(
            "no word has both a time and a place in a sentence. Do the items and zones of the "
            "table and of the trees match?",
            code="E_NO_DATA",
        )
    own = ("length", "position", *columns)
    earlier = zip(*(_earlier(name, spill_over) for name in own), strict=True)
    labels = [*(["previous_time"] if previous_time else []), *own, *chain.from_iterable(earlier)]
    predictors = dict(zip(labels, np.array(rows).T, strict=True))
    for label in _earlier("position", spill_over):
        del predictors[label]
    return ReadingTable(
        words=tuple(words),
        log_times=np.array([math.log(each.time or 1.0) for each in kept]),
        predictors=predictors,
        left_out=len(times) - len(rows),
        items=np.array([each.item for each in kept], np.int64),
        zones=np.array([each.zone for each in kept], np.int64),
        sentences=np.array([sentence_of[each.key] for each in kept], np.int64),
        readers=tuple(each.reader for each in kept),
        unknown=np.array(is_unknown, np.bool_),
        spill_over=spill_over,
        texts=tuple(each.text or str(each.item) for each in kept),
    )


def base_predictors(table: ReadingTable, over: Sequence[str] = ()) -> list[str]:
    """Return the predictors that every model is added to, and those of other models."""
    first = [name for name in ("previous_time",) if name in table.predictors]
    return [*first, "length", "position", "frequency", *over]


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
    base = base_predictors(table, over)
    smaller = fit_reading(table, base)
    larger = fit_reading(table, [*base, model])
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


def fit_reading(table: ReadingTable, names: Iterable[str]) -> LinearFit:
    """Return the fit of log times by predictors; the mean of each reader is taken out before."""
    chosen = {label: table.predictors[label] for label in table.labels(names)}
    if not table.has_readers:
        return fit_linear(table.log_times, chosen)
    numbers = table.reader_numbers

    def without_means(values: Numbers) -> Numbers:
        means = np.bincount(numbers, values) / np.bincount(numbers)
        return values - means[numbers]

    within = {label: without_means(values) for label, values in chosen.items()}
    return fit_linear(without_means(table.log_times), within, absorbed=int(numbers.max()))
