"""Thresholds, accuracy and average precision."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.models.ngram_models import small_ngram
from tests.models.toy_model import SENTENCES, ToyModel

from treelm.errors import CorpusFormatError, UsageError
from treelm.models.interface.model import ModelInfo
from treelm.tasks.evaluate.average_precision import average_precision, resampled_average_precision
from treelm.tasks.evaluate.classification import (
    Threshold,
    classify,
    curve_sizes,
    is_called_good,
    learning_curve,
    tune_threshold,
)
from treelm.tasks.evaluate.classify_texts import evaluate_classification
from treelm.tasks.evaluate.measured_text import MeasuredText, text_of_lines

INF = math.inf
SCORES = st.one_of(st.integers(-4, 4).map(float), st.just(-INF))
SOME = st.lists(SCORES, min_size=1, max_size=12)


def array(*values: float) -> np.ndarray:
    return np.array(values, dtype=np.float64)


def slow_threshold(good: list[float], bad: list[float]) -> float:
    """The rule of the specification, word by word."""
    finite = sorted({score for score in good + bad if score > -INF})
    candidates = [-INF, *((a + b) / 2 for a, b in pairwise(finite)), INF]

    def key(tau: float) -> tuple[int, float, float]:
        right = sum(s >= tau and s > -INF for s in good) + sum(s < tau or s == -INF for s in bad)
        rank = sum(s < tau for s in good + bad)
        return -right, abs(rank - len(good + bad) / 2), tau

    return min(candidates, key=key)


@given(SOME, SOME)
def test_threshold_follows_the_rule(good: list[float], bad: list[float]) -> None:
    found = tune_threshold(array(*good), array(*bad))
    assert found.value == slow_threshold(good, bad)
    right = [s >= found.value and s > -INF for s in good]
    right += [s < found.value or s == -INF for s in bad]
    assert found.accuracy == pytest.approx(sum(right) / len(right))


def test_threshold_ties() -> None:
    assert tune_threshold(array(1, 2), array(1, 2)).value == 1.5  # the middle rank
    assert tune_threshold(array(1), array(1)).value == -INF  # both ends as far; the smaller
    assert tune_threshold(array(-INF), array(-INF)).value == -INF
    assert tune_threshold(array(0, 1), array(5, 6)).value == -INF
    low = 1.0
    high = math.nextafter(low, 2)  # nothing lies between
    assert tune_threshold(array(high), array(low)) == Threshold(high, 1.0, 2)
    assert tune_threshold(array(1e308, 1.7e308), array(-1.7e308)).accuracy == 1.0


def test_impossible_sentences_are_always_bad() -> None:
    assert is_called_good(array(-INF, 0, 1), -INF).tolist() == [False, True, True]
    assert is_called_good(array(0, 1), 0.0, strict=True).tolist() == [False, True]
    found = classify(array(-INF, 1), array(-INF, -1), -INF, seed=1, rounds=50)
    assert found.accuracy == 0.5
    assert found.infinite == 2


def slow_precision(good: list[float], bad: list[float]) -> float:
    points = []
    for cut in set(good + bad):
        hits = sum(s >= cut for s in good)
        points.append((hits, hits / (hits + sum(s >= cut for s in bad))))
    return (
        sum(max(p for hits, p in points if 10 * hits >= level * len(good)) for level in range(11))
        / 11
    )


@given(SOME, SOME)
def test_average_precision_follows_the_rule(good: list[float], bad: list[float]) -> None:
    found = average_precision(array(*good), array(*bad))
    assert found == pytest.approx(slow_precision(good, bad), abs=1e-12)


@given(SOME, SOME)
def test_resampled_average_precision_is_that_of_what_was_drawn(
    good: list[float], bad: list[float]
) -> None:
    drawn = resampled_average_precision(
        [(array(*good), array(*bad))],
        rounds=20,
        generator=np.random.Generator(np.random.Philox(3)),
    )[0]
    assert ((drawn > 0) & (drawn <= 1)).all()
    if len(set(good)) == len(set(bad)) == 1:
        assert drawn == pytest.approx(slow_precision(good, bad))


def test_average_precision_needs_good_sentences() -> None:
    with pytest.raises(CorpusFormatError):
        average_precision(array(), array(1))
    assert average_precision(array(1), array()) == 1.0


def test_pairs_are_drawn_together() -> None:
    good, bad = array(*([1] * 50 + [-1] * 50)), array(*([-1] * 50 + [1] * 50))
    alone = classify(good, bad, 0.0, seed=1)
    paired = classify(good, bad, 0.0, seed=1, paired=True)
    assert alone.accuracy == paired.accuracy == paired.pairwise_accuracy == 0.5
    # A pair is right or wrong as a whole here, so there are half as many items.
    ratio = np.ptp(paired.interval) / np.ptp(alone.interval)
    assert ratio == pytest.approx(math.sqrt(2), rel=0.1)
    with pytest.raises(CorpusFormatError) as caught:
        classify(good, bad[1:], 0.0, seed=1, paired=True)
    assert caught.value.code == "E_LENGTH_MISMATCH"


def test_thresholds_are_no_nan() -> None:
    with pytest.raises(UsageError):
        classify(array(1), array(0), math.nan, seed=1)


def test_record_names_infinite_thresholds() -> None:
    found = classify(array(1), array(0), -INF, seed=1, rounds=10)
    assert found.to_record()["threshold"] == "-inf"
    assert "pairwise_accuracy" not in found.to_record()


# -- models ---------------------------------------------------------------------------------

GOOD = ("the boat left", "the old boat came", "a boat left")
BAD = ("left the boat", "old the came boat", "boat a left")


def text(lines: tuple[str, ...], name: str = "text", sha256: str | None = None) -> MeasuredText:
    return text_of_lines(lines, name, sha256)


def test_models_tell_sentences_apart() -> None:
    model = small_ngram(SENTENCES * 3, order=3)
    found = evaluate_classification(
        model, text(GOOD[:2]), text(BAD[:2]), tuning=(text(GOOD[2:]), text(BAD[2:])), seed=1
    )
    assert (found.accuracy, found.average_precision, found.n) == (1.0, 1.0, 4)
    assert found.measure == "slr"
    assert found.tuning_accuracy == 1.0
    assert found.right.all()
    assert "|task:classification|sys:ngram|" in (found.signature or "")
    plain = evaluate_classification(
        model,
        text(GOOD[:2]),
        text(BAD[:2]),
        tuning=(text(GOOD[2:]), text(BAD[2:])),
        score="log_prob",
        seed=1,
    )
    assert plain.measure == "log_prob"
    assert plain.threshold != found.threshold


def test_same_bytes_in_tuning_and_test_are_refused() -> None:
    model = ToyModel.of()
    test = text(GOOD, "test.txt", "aa"), text(BAD, "bad.txt", "bb")
    for tuning in (
        (text(GOOD, "dev.txt", "aa"), text(BAD, "x", "cc")),
        (text(GOOD, "x", "cc"), text(BAD, "dev.txt", "aa")),
        (text(GOOD, "x", "cc"), text(BAD, "dev.txt", "bb")),
    ):
        with pytest.raises(UsageError, match=r"dev\.txt and .* have the same content") as caught:
            evaluate_classification(model, *test, tuning=tuning, seed=1)
        assert caught.value.code == "E_TUNED_ON_TEST"


def test_training_text_is_refused() -> None:
    model = small_ngram(SENTENCES)
    mine = text(GOOD, "mine.txt", model.corpora[0].sha256)
    tuning = text(GOOD), text(BAD)
    with pytest.raises(UsageError, match=r"mine\.txt") as caught:
        evaluate_classification(model, mine, text(BAD), tuning=tuning, seed=1)
    assert caught.value.code == "E_TEST_IN_TRAINING"
    found = evaluate_classification(
        model, mine, text(BAD), tuning=tuning, seed=1, allow_overlap=True
    )
    assert "|overlap:allowed|" in (found.signature or "")


def test_only_classifiers_need_no_threshold() -> None:
    with pytest.raises(UsageError, match="tune_good"):
        evaluate_classification(small_ngram(SENTENCES), text(GOOD), text(BAD), tuning=None, seed=1)

    class Margin(ToyModel):
        @property
        def info(self) -> ModelInfo:
            return ModelInfo(exactness="margin", normalized=False, vocabulary="x" * 64)

    found = evaluate_classification(Margin.of(), text(GOOD), text(BAD), tuning=None, seed=1)
    assert (found.threshold, found.accuracy, found.measure) == (0.0, 0.5, "score")


def test_learning_curves() -> None:
    assert learning_curve([1, 2], lambda size: 1 / size) == [(1, 1.0), (2, 0.5)]
    with pytest.raises(UsageError):
        learning_curve([2, 1], float)
    assert curve_sizes(500) == [500]
    assert curve_sizes(10, smallest=1, steps_per_decade=1) == [1, 10]
    with pytest.raises(UsageError):
        curve_sizes(0)
