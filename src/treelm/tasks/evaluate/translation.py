"""Translations against references: BLEU, chrF and TER as sacreBLEU computes them, and differences.

Every figure has the signature of sacreBLEU, and the systems are compared by a paired bootstrap over
sentences. A system may have several runs, such as those of several tuning seeds: then its figures
are means over them, and a bootstrap sample takes the same sentences of all.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import ModuleType
from typing import Literal, NamedTuple

import numpy as np

from treelm.characters import visible
from treelm.corpus.file_kinds import Wanted
from treelm.corpus.files import Source, read_lines, source_name
from treelm.corpus.words import split_words
from treelm.errors import CorpusFormatError, UsageError
from treelm.extras import import_extra
from treelm.tasks.evaluate.resampling import Numbers
from treelm.tasks.evaluate.significance import Difference, bootstrap_sums, holm
from treelm.translation.bleu import bleu, text_statistics

#: Bootstrap samples of a test set; those of BLEU take longer than those of right and wrong answers.
ROUNDS = 1000
#: How sacreBLEU separates the words for BLEU.
Tokenizing = Literal["13a", "none", "intl", "char", "zh"]

_CHRF_BETA = 2


@dataclass(frozen=True, slots=True)
class Translations:
    """The lines of a file of translations, or of references.

    Args:
        name: What messages call it.
        lines: One per sentence.
    """

    name: str
    lines: tuple[str, ...]

    @classmethod
    def read(cls, source: Source) -> Translations:
        """Return those of a file."""
        return cls(source_name(source), tuple(read_lines(source, Wanted.RAW_TEXT)))

    def kept(self, places: Sequence[int]) -> Translations:
        """Return some of the lines."""
        return Translations(self.name, tuple(self.lines[place] for place in places))


@dataclass(frozen=True, slots=True)
class Score:
    """A figure of one system.

    Args:
        metric: ``BLEU``, ``chrF`` or ``TER``; less TER is better.
        runs: The figure of each run.
        signature: What sacreBLEU calls the way it was computed.
        details: Of the first run, such as the precisions of BLEU.
    """

    metric: str
    runs: tuple[float, ...]
    signature: str
    details: dict[str, object] = field(default_factory=dict)

    @property
    def mean(self) -> float:
        """The mean over the runs."""
        return statistics.fmean(self.runs)

    @property
    def deviation(self) -> float | None:
        """The sample standard deviation over the runs; None for one run."""
        return statistics.stdev(self.runs) if len(self.runs) > 1 else None

    def to_record(self) -> dict[str, object]:
        """Return names and values in reading order."""
        record: dict[str, object] = {"score": self.mean}
        if len(self.runs) > 1:
            record |= {"deviation": self.deviation, "runs": list(self.runs)}
        return {**record, **self.details, "signature": self.signature}


@dataclass(frozen=True, slots=True)
class TranslationScores:
    """Figures of systems that translated the same sentences.

    Args:
        sentences: Number of sentences.
        systems: Name of each system -> its figures by metric.
        differences: Name of each system but the first -> what it has more than the first, by
            metric. The p-values of one metric are corrected by Holm's method if there are several.
    """

    sentences: int
    systems: dict[str, dict[str, Score]]
    differences: dict[str, dict[str, Difference]]

    def to_record(self) -> dict[str, object]:
        """Return names and values in reading order."""
        return {
            "sentences": self.sentences,
            "systems": {
                name: {metric: score.to_record() for metric, score in scores.items()}
                for name, scores in self.systems.items()
            },
            "differences": {
                name: {metric: found.to_record() for metric, found in each.items()}
                for name, each in self.differences.items()
            },
        }


class _Metric(NamedTuple):
    """A metric of sacreBLEU.

    Args:
        name: What it is called here.
        scorer: The object that computes it.
        statistics: Returns additive statistics of translations, a row per sentence.
        measure: Returns the figure of each row of sums.
    """

    name: str
    scorer: object
    statistics: Callable[[Sequence[str], Sequence[Sequence[str]]], Numbers]
    measure: Callable[[Numbers], Numbers]


def evaluate_translations(
    systems: Sequence[Translations],
    references: Sequence[Translations],
    *,
    seed: int,
    runs: int = 1,
    tokenize: Tokenizing = "13a",
    rounds: int = ROUNDS,
) -> TranslationScores:
    """Measure systems against references, and compare the others with the first.

    Args:
        systems: What each made of the same sentences; the runs of one system follow each other.
        references: One or more translations by people.
        seed: Seed of the bootstrap.
        runs: Number of runs of every system.
        tokenize: How the words are separated for BLEU; ``none`` for text that is tokenized.
        rounds: Number of bootstrap samples.

    Raises:
        CorpusFormatError: ``E_LENGTH_MISMATCH`` for different numbers of lines, with both.
        MissingExtra: if sacreBLEU is not installed.
    """
    if not systems or len(systems) % runs:
        raise UsageError(
            f"there are {len(systems)} files of translations, which is no multiple of {runs} runs. "
            "Name the runs of each system one after the other."
        )
    check_lines(systems, references)
    right = [each.lines for each in references]
    groups = [systems[first : first + runs] for first in range(0, len(systems), runs)]
    names = _distinct_names(groups)
    scores: dict[str, dict[str, Score]] = {name: {} for name in names}
    differences: dict[str, dict[str, Difference]] = {name: {} for name in names[1:]}
    for metric in _metrics(tokenize):
        parts = []
        for name, group in zip(names, groups, strict=True):
            scores[name][metric.name] = _score(metric, group, right)
            if len(groups) > 1:
                found = [metric.statistics(each.lines, right) for each in group]
                parts.append(np.concatenate(found, axis=1))
        for name, part in zip(names[1:], parts[1:], strict=False):
            differences[name][metric.name] = _difference(
                metric, part, parts[0], runs, seed=seed, rounds=rounds
            )
        _correct(differences, metric.name)
    return TranslationScores(len(right[0]), scores, differences)


def lines_of_source_length(
    source: Source, least: int, most: int | None, *, lines: int
) -> list[int]:
    """Return the places of the source sentences with so many words, the first being 0.

    Args:
        source: File of the source sentences.
        least: Smallest number of words.
        most: Largest number, None for any.
        lines: Number of sentences that were translated.

    Raises:
        CorpusFormatError: ``E_LENGTH_MISMATCH`` if the source has another number of lines.
    """
    lengths = [len(split_words(line)) for line in read_lines(source, Wanted.TEXT)]
    if len(lengths) != lines:
        raise CorpusFormatError(
            f"{source_name(source)} has {len(lengths)} lines, but the references have {lines}; "
            "line n of the one belongs to line n of the other.",
            code="E_LENGTH_MISMATCH",
        )
    highest = max(lengths, default=0) if most is None else most
    return [place for place, length in enumerate(lengths) if least <= length <= highest]


def check_lines(systems: Sequence[Translations], references: Sequence[Translations]) -> None:
    """Refuse files of different lengths.

    Raises:
        CorpusFormatError: ``E_LENGTH_MISMATCH``, with both; ``E_NO_DATA`` if there are no lines.
    """
    if not references:
        raise UsageError("name a file of references.")
    first = references[0]
    for other in (*references[1:], *systems):
        if len(other.lines) != len(first.lines):
            raise CorpusFormatError(
                f"{first.name} has {len(first.lines)} lines, but {other.name} has "
                f"{len(other.lines)}; line n of the one belongs to line n of the other.",
                code="E_LENGTH_MISMATCH",
            )
    if not first.lines:
        raise CorpusFormatError(f"{first.name}: there is nothing to measure.", code="E_NO_DATA")


def _distinct_names(groups: Sequence[Sequence[Translations]]) -> list[str]:
    """Return a name for each system, the numbered ones where files have the same name."""
    names = [Path(group[0].name).name for group in groups]
    if len(set(names)) < len(names):
        names = [group[0].name for group in groups]
    if len(set(names)) < len(names):
        names = [f"{name} ({number})" for number, name in enumerate(names, 1)]
    return [visible(name) for name in names]


def _metrics(tokenize: Tokenizing) -> list[_Metric]:
    """Return the metrics; sacreBLEU warns about tokenized text unless it is forced."""
    metrics = import_extra("sacrebleu.metrics", "Measuring translations")
    own = metrics.BLEU(tokenize=tokenize, force=True)

    def bleu_statistics(lines: Sequence[str], references: Sequence[Sequence[str]]) -> Numbers:
        texts = [[own.tokenizer(line.rstrip()) for line in text] for text in (lines, *references)]
        return text_statistics(texts[0], texts[1:]).astype(np.float64)

    return [
        _Metric("BLEU", own, bleu_statistics, lambda sums: bleu(sums, smoothing="exp")),
        _sentence_metric("chrF", metrics, "CHRF", _chrf),
        _sentence_metric("TER", metrics, "TER", _ter),
    ]


def _sentence_metric(
    name: str, metrics: ModuleType, kind: str, measure: Callable[[Numbers], Numbers]
) -> _Metric:
    """Return a metric whose statistics are those that sacreBLEU resamples itself."""
    scorer = getattr(metrics, kind)()

    def rows(lines: Sequence[str], references: Sequence[Sequence[str]]) -> Numbers:
        found = scorer._extract_corpus_statistics(lines, references)
        return np.array(found, dtype=np.float64)

    return _Metric(name, scorer, rows, measure)


def _chrf(sums: Numbers) -> Numbers:
    """Return chrF from the numbers of n-grams of translation, of reference, and of both."""
    ours, theirs, both = (sums[:, place::3] for place in range(3))
    seen = (ours > 0) & (theirs > 0)
    orders = np.maximum(seen.sum(axis=1), 1)
    with np.errstate(divide="ignore", invalid="ignore"):
        precision = np.where(seen, both / ours, 0.0).sum(axis=1) / orders
        recall = np.where(seen, both / theirs, 0.0).sum(axis=1) / orders
        squared = _CHRF_BETA**2
        found = (1 + squared) * precision * recall / (squared * precision + recall)
    return 100 * np.where(precision + recall > 0, found, 0.0)


def _ter(sums: Numbers) -> Numbers:
    """Return TER from numbers of edits and lengths of references."""
    edits, length = sums[:, 0], sums[:, 1]
    with np.errstate(divide="ignore", invalid="ignore"):
        return 100 * np.where(length > 0, edits / length, np.where(edits > 0, 1.0, 0.0))


def _score(
    metric: _Metric, group: Sequence[Translations], references: Sequence[Sequence[str]]
) -> Score:
    """Return the figure of a system, computed by sacreBLEU."""
    scorer = metric.scorer
    found = [scorer.corpus_score(each.lines, references) for each in group]  # type: ignore[attr-defined]
    details: dict[str, object] = {}
    if metric.name == "BLEU":
        details = {
            "precisions": list(found[0].precisions),
            "brevity_penalty": found[0].bp,
            "length": found[0].sys_len,
            "reference_length": found[0].ref_len,
        }
    signature = str(scorer.get_signature())  # type: ignore[attr-defined]
    return Score(metric.name, tuple(float(each.score) for each in found), signature, details)


def _difference(
    metric: _Metric, ours: Numbers, theirs: Numbers, runs: int, *, seed: int, rounds: int
) -> Difference:
    """Return how much more the one has than the other, in the mean over runs."""
    width = ours.shape[1] // runs

    def measure(sums: Numbers) -> Numbers:
        figures = [
            metric.measure(sums[:, first : first + width])
            for first in range(0, sums.shape[1], width)
        ]
        more: Numbers = np.mean(figures[:runs], axis=0) - np.mean(figures[runs:], axis=0)
        return more

    items = np.concatenate([ours, theirs], axis=1)
    return bootstrap_sums(items, measure, statistic=metric.name, seed=seed, rounds=rounds)


def _correct(differences: dict[str, dict[str, Difference]], metric: str) -> None:
    """Correct the two-sided p-values of one metric for the number of comparisons."""
    found = [each[metric] for each in differences.values()]
    corrected = holm([one.p_value for one in found])
    for each, p_value in zip(differences.values(), corrected, strict=True):
        each[metric] = replace(each[metric], p_value=p_value)
