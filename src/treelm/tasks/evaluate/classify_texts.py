"""Models as judges of sentences: from texts to a threshold and its accuracy."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import replace

from treelm.corpus.corpus import hashed_blocks
from treelm.corpus.file_kinds import Wanted
from treelm.corpus.files import Source, lines_of, source_name
from treelm.corpus.score_files import ScoreTable, align_pairs, parse_scores
from treelm.errors import UsageError, option
from treelm.models.interface.model import LanguageModel
from treelm.models.interface.perplexity import model_signature
from treelm.signature import signature
from treelm.tasks.evaluate.classification import (
    Classification,
    ScoreChoice,
    classify,
    tune_threshold,
)
from treelm.tasks.evaluate.measured_text import MeasuredText, check_apart, check_not_trained_on
from treelm.tasks.evaluate.resampling import ROUNDS, Numbers
from treelm.tasks.evaluate.slr import Measure, measured_scores, score_text


def evaluate_classification(
    model: LanguageModel,
    good: MeasuredText,
    bad: MeasuredText,
    *,
    seed: int,
    tuning: tuple[MeasuredText, MeasuredText] | None,
    score: ScoreChoice = "auto",
    paired: bool = False,
    allow_overlap: bool = False,
    rounds: int = ROUNDS,
    threads: int = 1,
) -> Classification:
    """Return how well a model separates good and bad sentences.

    Args:
        model: A probability model, or a classifier.
        good: Good sentences.
        bad: Bad ones.
        seed: Seed of the intervals.
        tuning: Good and bad sentences on which the threshold is tuned; None only for classifiers,
            which decide by the sign of their score.
        score: What the threshold is about: the log-odds ratio, the log probability, or by default
            the ratio for probability models and the score itself for classifiers.
        paired: Whether they are pairs in the same order.
        allow_overlap: Continue if the model was trained on one of the files.
        rounds: Number of bootstrap samples.
        threads: Number of threads.

    Raises:
        UsageError: ``E_TUNED_ON_TEST`` if a tuning file is a test file,
            ``E_TEST_IN_TRAINING`` if the model was trained on a file.
    """
    texts = (good, bad) if tuning is None else (good, bad, *tuning)
    if tuning is not None:
        check_apart(_named(tuning), _named((good, bad)))
    if not allow_overlap:
        check_not_trained_on(model, texts)
    decides_itself = model.info.exactness == "margin"
    if tuning is None and not decides_itself:
        raise UsageError(
            f"{model.system} models need a threshold: give good and bad sentences "
            f"to tune it on, with {option('tune_good')} and {option('tune_bad')}."
        )
    measure: Measure = "log_prob" if decides_itself else "slr"
    if score != "auto":
        measure = score
    scored: list[Numbers] = [
        measured_scores(
            score_text(model, text, with_unigram=measure == "slr", threads=threads), measure
        )
        for text in texts
    ]
    found = classify(
        scored[0],
        scored[1],
        tune_threshold(scored[2], scored[3]) if tuning is not None else 0.0,
        seed=seed,
        paired=paired,
        strict=tuning is None,
        rounds=rounds,
    )
    name = "score" if decides_itself and measure == "log_prob" else measure
    return replace(
        found,
        measure=name,
        signature=model_signature(
            model,
            task="classification",
            measure=name,
            tuned=tuning is not None,
            paired=paired,
            overlap="allowed" if allow_overlap else None,
            seed=seed,
            n=found.n,
        ),
    )


def _named(texts: Sequence[MeasuredText]) -> list[tuple[str, str | None]]:
    return [(text.name, text.sha256) for text in texts]


def evaluate_scored_classification(
    good: Source,
    bad: Source,
    *,
    seed: int,
    tuning: tuple[Source, Source] | None,
    score: ScoreChoice = "auto",
    paired: bool = False,
    rounds: int = ROUNDS,
) -> Classification:
    """Return how well scores in files separate good and bad sentences.

    Args:
        good: File of the scores of good sentences.
        bad: File of the scores of bad ones.
        seed: Seed of the intervals.
        tuning: Score files on which the threshold is tuned; None only for classifiers.
        score: As for `evaluate_classification`; ``auto`` is the ratio where the files have it.
        paired: Whether sentences with the same id are pairs.
        rounds: Number of bootstrap samples.

    Raises:
        UsageError: ``E_TUNED_ON_TEST`` if a tuning file is a test file.
        CorpusFormatError: for anything but a score file.
    """
    sources = (good, bad) if tuning is None else (good, bad, *tuning)
    read = [_hashed_scores(source) for source in sources]
    tables = [table for table, _ in read]
    named = [(table.name, checksum) for table, checksum in read]
    check_apart(named[2:], named[:2])
    if tuning is None and not all(table.is_classifier for table in tables):
        raise UsageError(
            "these scores need a threshold: give scores to tune it on, with "
            f"{option('tune_good')} and {option('tune_bad')}. Only tables of classifiers (id len "
            "score) decide by their sign."
        )
    if paired:
        tables[:2] = align_pairs(tables[0], tables[1])
    has_ratio = all(table.unigram is not None for table in tables)
    measure: Measure = "slr" if score == "auto" and has_ratio else "log_prob"
    if score != "auto":
        measure = score
    scored = [measured_scores(table, measure) for table in tables]
    found = classify(
        scored[0],
        scored[1],
        tune_threshold(scored[2], scored[3]) if tuning is not None else 0.0,
        seed=seed,
        paired=paired,
        strict=tuning is None,
        rounds=rounds,
    )
    name = measure if has_ratio else "score"
    return replace(
        found,
        measure=name,
        signature=signature(
            task="classification",
            measure=name,
            tuned=tuning is not None,
            paired=paired,
            seed=seed,
            n=found.n,
        ),
    )


def _hashed_scores(source: Source) -> tuple[ScoreTable, str]:
    digest = hashlib.sha256()
    table = parse_scores(lines_of(hashed_blocks(source, digest, Wanted.SCORES), source), source)
    return replace(table, name=source_name(source)), digest.hexdigest()
