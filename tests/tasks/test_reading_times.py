"""Reading times: tables, alignment, regression, and what a model adds."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.models.ngram_models import small_ngram
from tests.models.reading import write_reading_data
from tests.tasks.refused_files import assert_content_refused

from treelm.corpus.reading_times import TimedWord, read_times, read_zoned_trees
from treelm.errors import CorpusFormatError, EstimationError
from treelm.tasks.evaluate.reading_times import (
    added_value,
    alignment_likelihood,
    reading_table,
    unigram_surprisal,
    zone_surprisal,
)
from treelm.tasks.evaluate.regression import chi_squared_tail, fit_linear, likelihood_ratio


def test_regression_is_least_squares() -> None:
    random = np.random.default_rng(5)
    x, z = random.normal(size=(2, 200))
    y = 3 + 2 * x - z + random.normal(size=200)
    fit = fit_linear(y, {"x": x, "z": z})
    matrix = np.column_stack([np.ones(200), (x - x.mean()) / x.std(), (z - z.mean()) / z.std()])
    expected, squares, *_ = np.linalg.lstsq(matrix, y, rcond=None)
    assert fit.coefficients == pytest.approx(expected)
    assert fit.log_likelihood == pytest.approx(
        -100 * (math.log(2 * math.pi * squares[0] / 200) + 1)
    )
    covariance = np.linalg.inv(matrix.T @ matrix) * squares[0] / 197
    assert fit.t("x") == pytest.approx(expected[1] / math.sqrt(covariance[1, 1]))
    gain = likelihood_ratio(fit_linear(y, {"x": x}), fit)
    assert gain.p_value < 1e-10
    assert gain.per_observation == pytest.approx(gain.delta_log_likelihood / 200)


@pytest.mark.parametrize(
    ("value", "degrees", "expected"),
    [
        (0.0, 3, 1.0),
        (10.0, 3, 0.018566),
        (2.5, 4, 0.644636),
        (20.0, 5, 0.001250),
        (1.0, 1, 0.317311),
    ],
)
def test_chi_squared_tails(value: float, degrees: int, expected: float) -> None:
    assert chi_squared_tail(value, degrees) == pytest.approx(expected, abs=1e-6)


@given(st.floats(0, 200), st.integers(1, 12))
def test_chi_squared_tails_fall_with_the_value(value: float, degrees: int) -> None:
    tail = chi_squared_tail(value, degrees)
    assert 0 <= chi_squared_tail(value + 1, degrees) <= tail <= 1
    assert tail <= chi_squared_tail(value, degrees + 1) + 1e-12


def test_regression_refuses_what_has_no_answer() -> None:
    x = np.arange(10.0)
    noise = np.sin(x)
    for predictors in ({"x": np.ones(10)}, {"x": x, "y": 2 * x + 1}):
        with pytest.raises(EstimationError) as caught:
            fit_linear(noise, predictors)
        assert caught.value.code == "E_REGRESSION"
    with pytest.raises(EstimationError) as caught:
        fit_linear(noise[:2], {"x": x[:2]})
    assert caught.value.code == "E_NO_DATA"


def test_reading_study_finds_what_was_put_in(tmp_path: Path) -> None:
    model = small_ngram(order=3)
    times, trees = write_reading_data(tmp_path, model, shift=0)
    sentences = list(read_zoned_trees(trees))
    assert sentences[0].zones[:2] == ((1, 1), (1, 2))
    unigram = small_ngram(order=1, vocabulary=model.vocabulary)
    columns = {
        "frequency": unigram_surprisal(model, sentences),
        "model": zone_surprisal(model, sentences),
        "baseline": zone_surprisal(unigram, sentences),
    }
    tables = {s: reading_table(read_times(times), sentences, columns, shift=s) for s in (-1, 0, 1)}
    found = added_value(tables[0], "model", ["baseline"])
    assert found.coefficient > 0
    assert found.ratio.p_value < 1e-6
    assert found.ratio.predictors == 2
    reverse = added_value(tables[0], "baseline", ["model"])
    assert reverse.ratio.delta_log_likelihood < found.ratio.delta_log_likelihood
    best = max(tables, key=lambda shift: alignment_likelihood(tables[shift]))
    assert best == 0
    assert len({len(table.words) for table in tables.values()}) == 1


def test_reading_study_finds_times_that_are_shifted(tmp_path: Path) -> None:
    model = small_ngram(order=3)
    times, trees = write_reading_data(tmp_path, model, shift=1)
    sentences = list(read_zoned_trees(trees))
    columns = {"frequency": unigram_surprisal(model, sentences)}
    found = {
        shift: alignment_likelihood(
            reading_table(read_times(times), sentences, columns, shift=shift)
        )
        for shift in (-1, 0, 1)
    }
    assert max(found, key=lambda shift: found[shift]) == 1


def test_zones_of_several_tokens_add_up(tmp_path: Path) -> None:
    trees = tmp_path / "trees.mrg"
    trees.write_text("(S (NN the/1.1) (NN boat/1.2.1) (. ./1.2.word))\n")
    model = small_ngram(order=2)
    sentences = list(read_zoned_trees(trees))
    assert sentences[0].words == ("the", "boat", ".")
    rows = model.surprisal("the boat .")
    expected = {(1, 1): rows[0].surprisal, (1, 2): rows[1].surprisal + rows[2].surprisal}
    assert zone_surprisal(model, sentences) == pytest.approx(expected)


@pytest.mark.parametrize(
    "content",
    [
        "",
        "item\tzone\tword\n",
        "item\tzone\tword\tmean_rt\n1\t1\tthe\tfast\n",
        "item\tzone\tword\tmean_rt\n1\t1\tthe\t-3\n",
    ],
)
def test_tables_of_times_that_are_none_are_refused(tmp_path: Path, content: str) -> None:
    assert_content_refused(read_times, tmp_path / "words.tsv", content, "E_TIMES")


def test_words_without_times_are_left_out(tmp_path: Path) -> None:
    path = tmp_path / "words.tsv"
    path.write_text("item\tzone\tword\tmean_rt\n1\t1\tthe\tNA\n1\t2\tboat\t300.5\n")
    assert read_times(path) == [TimedWord(1, 1, "the", None), TimedWord(1, 2, "boat", 300.5)]
    trees = tmp_path / "trees.mrg"
    trees.write_text("(S (DT the/1.1) (NN boat))\n")
    with pytest.raises(CorpusFormatError) as caught:
        list(read_zoned_trees(trees))
    assert caught.value.code == "E_ZONES"
    with pytest.raises(EstimationError) as none:
        reading_table(read_times(path), [], {})
    assert none.value.code == "E_NO_DATA"
