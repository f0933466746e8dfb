"""Bootstrap, exact tests, randomisation and corrections."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from treelm.errors import CorpusFormatError, UsageError
from treelm.tasks.evaluate import significance
from treelm.tasks.evaluate.resampling import percentile_interval, resampled_sums
from treelm.tasks.evaluate.significance import (
    approximate_randomization,
    bootstrap_mean_interval,
    holm,
    mcnemar,
    paired_bootstrap,
    paired_bootstrap_average_precision,
    paired_bootstrap_perplexity,
    sign_test,
)

INF = math.inf


def noise(number: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=number)


# -- paired bootstrap -----------------------------------------------------------------------


def test_the_seed_has_no_default() -> None:
    with pytest.raises(TypeError, match="seed"):
        paired_bootstrap([1.0], [0.0])  # type: ignore[call-arg]


@pytest.mark.parametrize("statistic", ["accuracy", "log_likelihood"])
def test_a_system_does_not_differ_from_itself(statistic: str) -> None:
    for values in ([1.0, 0.0, 1.0], noise(200)):
        found = paired_bootstrap(values, values, statistic=statistic, seed=3)  # type: ignore[arg-type]
        assert (found.difference, found.p_value, found.p_one_sided) == (0.0, 1.0, 1.0)
        assert found.interval == (0.0, 0.0)
        assert not found.significant


def test_always_right_against_always_wrong() -> None:
    ones, zeros = np.ones(30), np.zeros(30)
    found = paired_bootstrap(ones, zeros, seed=1)
    assert found.p_one_sided == 1 / 10_001
    assert found.p_value == 2 / 10_001
    exchanged = paired_bootstrap(zeros, ones, seed=1)
    assert (exchanged.p_value, exchanged.difference) == (2 / 10_001, -1.0)


@pytest.mark.parametrize("number", [40, 400])  # few different differences, and many
def test_order_of_items_does_not_matter(number: int) -> None:
    a, b = noise(number, 1), noise(number, 2) - 0.1
    order = np.random.default_rng(3).permutation(number)
    once = paired_bootstrap(a, b, statistic="log_likelihood", seed=5, rounds=500)
    again = paired_bootstrap(a[order], b[order], statistic="log_likelihood", seed=5, rounds=500)
    assert (once.interval, once.p_value) == (again.interval, again.p_value)
    assert once.difference == pytest.approx(again.difference, abs=1e-12)
    other = paired_bootstrap(a, b, statistic="log_likelihood", seed=6, rounds=500)
    assert other.interval != once.interval


@pytest.mark.parametrize("number", [30, 300])
def test_drawn_sums_have_the_right_mean_and_spread(number: int) -> None:
    values = noise(number, 4)
    sums = resampled_sums(
        values[:, None], rounds=20_000, generator=np.random.Generator(np.random.Philox(1))
    )[:, 0]
    spread = math.sqrt(number) * values.std()
    assert abs(sums.mean() - values.sum()) < 5 * spread / math.sqrt(20_000)
    assert sums.std() == pytest.approx(spread, rel=0.03)


def test_interval_of_an_accuracy_is_that_of_the_binomial() -> None:
    low, high = bootstrap_mean_interval([1.0] * 700 + [0.0] * 300, seed=1)
    spread = 1.96 * math.sqrt(0.7 * 0.3 / 1000)
    assert low == pytest.approx(0.7 - spread, abs=0.003)
    assert high == pytest.approx(0.7 + spread, abs=0.003)


def test_percentiles_interpolate_between_order_statistics() -> None:
    values = noise(1000, 9)
    low, high = percentile_interval(values)
    assert low == pytest.approx(np.percentile(values, 2.5), abs=1e-15)
    assert high == pytest.approx(np.percentile(values, 97.5), abs=1e-15)
    assert percentile_interval(np.array([2.0])) == (2.0, 2.0)
    assert percentile_interval(np.array([-INF, 0.0, INF])) == (-INF, INF)
    assert percentile_interval(np.array([-INF] * 3)) == (-INF, -INF)


def test_impossible_items_are_not_dropped() -> None:
    a, b = noise(100), noise(100)
    a[7] = -INF
    found = paired_bootstrap(a, b, statistic="log_likelihood", seed=1)
    assert found.difference == -INF
    assert found.interval[0] == -INF
    # One item of a hundred is not drawn in about 37 of 100 rounds.
    assert 0.1 < found.p_one_sided < 0.45
    b[7] = -INF
    with pytest.raises(CorpusFormatError) as caught:
        paired_bootstrap(a, b, statistic="log_likelihood", seed=1)
    assert caught.value.code == "E_UNDEFINED"
    b[7], b[8] = 0.0, -INF
    with pytest.raises(CorpusFormatError, match="not defined"):
        paired_bootstrap(a, b, statistic="log_likelihood", seed=1)


def test_perplexity_is_a_ratio_of_sums() -> None:
    a, b = -np.arange(10.0, 40.0), -np.arange(11.0, 41.0)
    tokens = np.arange(3.0, 33.0)
    found = paired_bootstrap_perplexity(a, b, tokens, seed=1)
    assert found.difference == pytest.approx(30 / tokens.sum())
    assert found.p_value == 2 / 10_001
    assert 0 < found.interval[0] < found.difference < found.interval[1]
    doubled = paired_bootstrap_perplexity(2 * a, 2 * b, 2 * tokens, seed=1)
    assert doubled.difference == pytest.approx(found.difference)
    with pytest.raises(CorpusFormatError):
        paired_bootstrap_perplexity(a, b, tokens * 0, seed=1)


def test_average_precision_is_drawn_within_classes() -> None:
    good, bad = noise(60, 1) + 1.0, noise(40, 2)
    worse = noise(60, 3), noise(40, 4)
    found = paired_bootstrap_average_precision((good, bad), worse, seed=1, rounds=500)
    assert found.n == 100
    assert found.difference > 0
    assert found.interval[0] <= found.difference <= found.interval[1]
    same = paired_bootstrap_average_precision(worse, worse, seed=1, rounds=50)
    assert same.p_value == 1.0
    order = np.random.default_rng(5).permutation(60)
    again = paired_bootstrap_average_precision(
        (good[order], bad), (worse[0][order], worse[1]), seed=1, rounds=500
    )
    assert again.interval == found.interval


@pytest.mark.parametrize(
    ("a", "b", "code"),
    [
        ([1.0], [1.0, 2.0], "E_LENGTH_MISMATCH"),
        ([math.nan], [1.0], "E_NAN"),
        ([1.0], [INF], "E_NAN"),
        ([], [], "E_NO_DATA"),
    ],
)
def test_what_is_no_score_is_refused(a: list[float], b: list[float], code: str) -> None:
    with pytest.raises(CorpusFormatError) as caught:
        paired_bootstrap(a, b, seed=1)
    assert caught.value.code == code


def test_rounds_must_be_positive() -> None:
    with pytest.raises(UsageError):
        paired_bootstrap([1.0], [0.0], seed=1, rounds=0)


def test_record_is_flat() -> None:
    record = paired_bootstrap([1.0, 1.0], [0.0, 1.0], seed=1, rounds=9).to_record()
    assert record["difference"] == 0.5
    assert isinstance(record["interval"], list)
    assert record["significant"] is False


# -- exact tests ----------------------------------------------------------------------------


def test_mcnemar_oracles() -> None:
    assert mcnemar(1, 8) == mcnemar(8, 1) == 0.0390625
    assert mcnemar(0, 0) == mcnemar(4, 4) == 1.0
    assert mcnemar(0, 1) == 1.0
    assert mcnemar(0, 5) == 2 / 32


@given(st.integers(0, 300), st.integers(0, 300))
def test_sign_test_is_the_binomial_sum(wins: int, losses: int) -> None:
    number = wins + losses
    tail = sum(math.comb(number, k) for k in range(min(wins, losses) + 1))
    expected = min(1.0, float(Fraction(2 * tail, 2**number)))
    assert sign_test(wins, losses, alternative="two-sided") == expected
    upper = Fraction(sum(math.comb(number, k) for k in range(wins, number + 1)), 2**number)
    assert sign_test(wins, losses, alternative="greater") == pytest.approx(float(upper), rel=1e-14)


@pytest.mark.parametrize("losses", [0, 3, 900, 1000])
def test_large_numbers_agree_with_whole_number_arithmetic(
    monkeypatch: pytest.MonkeyPatch, losses: int
) -> None:
    exact = sign_test(1000, losses, alternative="two-sided")
    monkeypatch.setattr(significance, "_EXACT_UP_TO", 0)
    assert sign_test(1000, losses, alternative="two-sided") == pytest.approx(exact, rel=1e-10)


def test_sign_test_refuses_negative_numbers() -> None:
    with pytest.raises(UsageError):
        sign_test(-1, 2, alternative="greater")


def test_randomisation() -> None:
    a, b = noise(200, 1) + 0.3, noise(200, 2)
    p = approximate_randomization(a, b, seed=1)
    assert p == pytest.approx(paired_bootstrap(a, b, seed=1).p_value, abs=0.02)
    order = np.random.default_rng(1).permutation(200)
    assert approximate_randomization(a[order], b[order], seed=1) == p
    assert approximate_randomization(a, a, seed=1) == 1.0
    assert approximate_randomization(np.ones(40), np.zeros(40), seed=1) == 1 / 10_001
    # With 5 items that all differ by one, 2 of 32 ways are as extreme.
    five = approximate_randomization(np.ones(5), np.zeros(5), seed=1)
    assert five == pytest.approx(2 / 32, abs=0.01)
    with pytest.raises(CorpusFormatError):
        approximate_randomization([-INF, 1.0], [0.0, 1.0], seed=1)


def test_holm() -> None:
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert holm([0.5, 0.9]) == [1.0, 1.0]
    assert holm([]) == []
    with pytest.raises(UsageError):
        holm([1.2])


@given(st.lists(st.floats(0, 1), min_size=1, max_size=12))
def test_holm_only_raises_and_keeps_the_order(p_values: list[float]) -> None:
    corrected = holm(p_values)
    pairs = list(zip(p_values, corrected, strict=True))
    assert all(p <= c <= 1 for p, c in pairs)
    ordered = sorted(pairs)
    assert [c for _, c in ordered] == sorted(c for _, c in ordered)


@settings(max_examples=30)
@given(st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=40))
def test_exchanging_systems_turns_the_sign(answers: list[tuple[bool, bool]]) -> None:
    a, b = np.array(answers, dtype=np.float64).T
    one = paired_bootstrap(a, b, seed=1, rounds=200)
    two = paired_bootstrap(b, a, seed=1, rounds=200)
    assert one.difference == -two.difference
    assert 0 < one.p_one_sided <= one.p_value <= 1
    assert one.interval[0] <= one.interval[1]
