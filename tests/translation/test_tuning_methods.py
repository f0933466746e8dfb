"""MERT and MIRA: exact line search, never worse than the start, oracles of small lists."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from treelm import _native
from treelm.corpus.nbest import NBestColumns
from treelm.errors import CorpusFormatError, EstimationError
from treelm.seeds import random_bits
from treelm.translation.bleu import bleu
from treelm.translation.hypothesis_pool import HypothesisPool, PoolBuilder
from treelm.translation.mert import line_search, mert, normalized, upper_envelopes
from treelm.translation.metrics import BLEU, WER, Metric, WordErrorRate
from treelm.translation.mira import mira


class Errors(WordErrorRate):
    """Errors as they are, not by the word."""

    def value(self, sums: np.ndarray) -> np.ndarray:
        return -np.asarray(sums, dtype=np.float64)[..., 0]


def line_pool(groups: list[list[tuple[float, float, int]]]) -> HypothesisPool:
    """Return hypotheses (offset, slope, errors) of sentences."""
    rows = [row for group in groups for row in group]
    return HypothesisPool(
        (("a", 1), ("b", 1)),
        np.cumsum([0, *map(len, groups)]),
        np.array([row[:2] for row in rows], dtype=np.float64),
        np.array([[row[2]] for row in rows], dtype=np.int64),
        Errors(),
    )


def on_line(pool: HypothesisPool) -> tuple[np.ndarray, np.ndarray]:
    return pool.features[:, 0], pool.features[:, 1]


def test_the_worked_line() -> None:
    pool = line_pool([[(0, 1, 0), (2, -1, 1)], [(0, 0, 0), (-6, 2, 1)]])
    bends = upper_envelopes(*on_line(pool), pool.starts)
    assert sorted(bends.gammas.tolist()) == [1.0, 3.0]
    assert bends.first.tolist() == [1, 2]
    assert line_search(pool, *on_line(pool)) == (2.0, 0.0)


def test_a_line_below_the_others_is_not_in_the_envelope() -> None:
    pool = line_pool([[(0, 1, 0), (1, 0, 0), (0.4, 0.5, 0)]])
    bends = upper_envelopes(*on_line(pool), pool.starts)
    assert (bends.first.tolist(), bends.gammas.tolist()) == ([1], [1.0])
    assert (bends.old.tolist(), bends.new.tolist()) == ([1], [0])


@pytest.mark.parametrize("starts", [[], [1, 2], [0, 1], [0, 2, 2], [0, 3, 2], [0, -1, 2]])
def test_groups_that_do_not_cover_the_lines_are_refused(starts: list[int]) -> None:
    lines = np.array([0.0, 1.0])
    with pytest.raises(EstimationError, match="group") as caught:
        upper_envelopes(lines, lines, np.array(starts, dtype=np.int64))
    assert caught.value.code == "E_ARGUMENT"


def test_scores_that_are_no_numbers_are_refused() -> None:
    lines = np.array([np.nan, 1.0, 2.0])
    with pytest.raises(EstimationError, match="not a number"):
        upper_envelopes(lines[::-1].copy(), lines, np.array([0, 3]))


def test_open_ends_equal_values_and_no_bends() -> None:
    left = line_pool([[(0, 1, 1), (0, -1, 0)]])
    assert line_search(left, *on_line(left)) == (-0.1, 0.0)
    right = line_pool([[(4, 1, 0), (0, -1, 1)]])
    assert line_search(right, *on_line(right)).gamma == pytest.approx(-2 + 0.1)
    flat = line_pool([[(1, 2, 3), (0, 2, 0)]])
    assert line_search(flat, *on_line(flat)) == (0.0, -3.0)
    # Equally good everywhere: both ends are infinitely wide, the one nearer to the start is taken.
    equal = line_pool([[(0, 0, 1), (-5, 1, 1)]])
    assert line_search(equal, *on_line(equal)).gamma == pytest.approx(4.9)
    # Two finite intervals are equally good: the wider one.
    wide = line_pool([[(0, -9, 5), (-1, -1, 0), (-2.5, 0, 5), (-5, 1, 0), (-20, 4, 5)]])
    bends = upper_envelopes(*on_line(wide), wide.starts)
    edges = sorted(bends.gammas.tolist())
    assert edges == pytest.approx([0.125, 1.5, 2.5, 5.0])
    assert line_search(wide, *on_line(wide)).gamma == pytest.approx(3.75)


LINES = st.lists(
    st.lists(
        st.tuples(st.integers(-8, 8), st.integers(-4, 4), st.integers(0, 5)),
        min_size=1,
        max_size=12,
    ),
    min_size=1,
    max_size=5,
)


@given(LINES)
def test_the_sweep_equals_brute_force(groups: list[list[tuple[int, int, int]]]) -> None:
    pool = line_pool([[(float(a), float(b), e) for a, b, e in group] for group in groups])
    offsets, slopes = on_line(pool)
    bends = upper_envelopes(offsets, slopes, pool.starts)
    found = line_search(pool, offsets, slopes)
    best = -np.inf
    for gamma in np.linspace(-20.03, 20.01, 201):
        right = pool.best(offsets + gamma * slopes)
        before = bends.gammas < gamma
        sums = pool.statistics[bends.first].sum()
        sums += (pool.statistics[bends.new] - pool.statistics[bends.old])[before].sum()
        assert sums == pool.statistics[right].sum()
        best = max(best, pool.value(right))
    assert found.value >= best
    assert pool.value(pool.best(offsets + found.gamma * slopes)) == found.value


def test_the_sweep_equals_brute_force_on_random_features() -> None:
    source = np.random.default_rng(3)
    sizes = source.integers(1, 200, size=20)
    pool = HypothesisPool(
        (("x", 5),),
        np.cumsum([0, *sizes]),
        source.normal(size=(sizes.sum(), 5)),
        source.integers(0, 9, size=(sizes.sum(), 10)),
    )
    offsets, slopes = (pool.features @ source.normal(size=5) for _ in range(2))
    found = line_search(pool, offsets, slopes)
    bends = upper_envelopes(offsets, slopes, pool.starts)
    for gamma in source.normal(scale=3, size=10_000):
        before = bends.gammas < gamma
        sums = pool.statistics[bends.first].sum(axis=0)
        sums = sums + (pool.statistics[bends.new] - pool.statistics[bends.old])[before].sum(axis=0)
        right = pool.statistics[pool.best(offsets + gamma * slopes)].sum(axis=0)
        assert sums.tolist() == right.tolist()
        assert found.value >= bleu(right)


REFERENCES = [
    "the cat sat on a mat .",
    "two dogs run over the green grass .",
    "a man is reading a newspaper .",
]


def listed(number: int, rows: list[tuple[str, str]]) -> NBestColumns:
    texts, features = zip(*rows, strict=True)
    size = len(rows)
    return NBestColumns(
        str(number), texts, features, ["0"] * size, [()] * size, range(1, size + 1), "lists"
    )


def small_lists() -> list[NBestColumns]:
    """Return lists in which the feature Good is higher the better the hypothesis."""
    source = np.random.default_rng(5)
    lists = []
    for number, reference in enumerate(REFERENCES):
        words = reference.split()
        rows = []
        for wrong in range(5):
            text = " ".join(words[: len(words) - wrong] + ["x"] * wrong)
            noise = source.normal(size=2).round(3)
            rows.append((text, f"Good= {-wrong} Noise= {noise[0]} {noise[1]}"))
        lists.append(listed(number, rows))
    return lists


def small_pool() -> HypothesisPool:
    builder = PoolBuilder([REFERENCES])
    assert builder.add(small_lists()) == 15
    return builder.pool()


@pytest.mark.parametrize("method", [mert, mira])
def test_a_feature_that_is_right_everywhere_is_trusted(method: object) -> None:
    pool = small_pool()
    start = np.array([-1.0, 1.0, 1.0])
    found = method(pool, start, seed=1)  # type: ignore[operator]
    assert found.value == pytest.approx(100.0)
    assert found.weights[0] > 0
    assert np.abs(found.weights).sum() == pytest.approx(1)
    again = method(pool, start, seed=1)  # type: ignore[operator]
    assert again.weights.tolist() == found.weights.tolist()


@pytest.mark.parametrize("method", [mert, mira])
@settings(deadline=None, max_examples=10)
@given(seed=st.integers(0, 1000))
def test_tuning_is_never_worse_than_its_start(method: object, seed: int) -> None:
    source = np.random.default_rng(seed)
    pool = small_pool()
    start = source.normal(size=3)
    few = {"restarts": 2} if method is mert else {"epochs": 5}
    found = method(pool, start, seed=seed, **few)  # type: ignore[operator]
    assert found.value >= pool.value(pool.chosen(start))
    assert found.value == pool.value(pool.chosen(found.weights))


@pytest.mark.parametrize("method", [mert, mira])
def test_fixed_weights_stay(method: object) -> None:
    free = np.array([True, True, False])
    found = method(small_pool(), np.array([-1.0, 1.0, 0.25]), seed=1, free=free)  # type: ignore[operator]
    assert found.weights[2] == 0.25
    assert np.abs(found.weights[:2]).sum() == pytest.approx(1)


def test_duplicates_change_nothing() -> None:
    builder = PoolBuilder([REFERENCES])
    builder.add(small_lists())
    assert builder.add(small_lists()) == 0
    once = mert(small_pool(), np.array([-1.0, 1.0, 1.0]), seed=2)
    twice = mert(builder.pool(), np.array([-1.0, 1.0, 1.0]), seed=2)
    assert once.weights.tolist() == twice.weights.tolist()


@settings(deadline=None, max_examples=10)
@given(seed=st.integers(0, 1000), threads=st.integers(2, 4))
def test_threads_of_mert_change_nothing(seed: int, threads: int) -> None:
    start = np.random.default_rng(seed).normal(size=3)
    alone = mert(small_pool(), start, seed=seed, restarts=3)
    together = mert(small_pool(), start, seed=seed, restarts=3, threads=threads)
    assert together.weights.tolist() == alone.weights.tolist()
    assert together.value == alone.value


def test_lists_of_other_features_or_sentences_are_refused() -> None:
    builder = PoolBuilder([REFERENCES])
    builder.add(small_lists()[:1])
    with pytest.raises(CorpusFormatError, match="lists:1: sentence 1 has other features"):
        builder.add([listed(1, [("a", "Good= 1")])])
    with pytest.raises(CorpusFormatError, match="there is no sentence 3: there are 3"):
        builder.add([listed(3, [("a", "Good= 1 Noise= 1 2")])])
    with pytest.raises(CorpusFormatError, match="sentence 1 has no hypothesis"):
        builder.pool()


def test_nothing_to_move_is_left_alone() -> None:
    weights = np.array([0.0, 0.0])
    assert normalized(weights, np.array([True, True])).tolist() == [0.0, 0.0]


def worth(pool: HypothesisPool, statistics: np.ndarray, background: np.ndarray) -> np.ndarray:
    """Return how good hypotheses are, in words."""
    if pool.metric.name == "wer":
        return -statistics[:, 0].astype(float)
    together = background + statistics
    return bleu(together) / 100 * together[:, -1]


def slow_mira(pool: HypothesisPool, start: np.ndarray, epochs: int, seed: int) -> np.ndarray:
    """Return weights by the definition, list by list."""
    first = normalized(start, np.ones(len(start), dtype=bool))
    best, value = first, pool.value(pool.chosen(first))
    lists = [slice(*pool.starts[place : place + 2]) for place in range(pool.sentences)]
    mobility = np.mean(
        np.concatenate(
            [(rows - rows.mean(axis=0)) ** 2 for rows in (pool.features[each] for each in lists)]
        ),
        axis=0,
    )
    mobility = np.array([1 / each if each else 0.0 for each in mobility])
    background = np.ones(pool.metric.columns)
    for epoch in range(epochs):
        if epoch in (0, (epochs + 1) // 2):
            weights = best * (1.0 if epoch == 0 else 3.0)
        total = np.zeros(len(weights))
        for place in sorted(range(len(lists)), key=lambda each: random_bits(seed, epoch, each)):
            rows, statistics = pool.features[lists[place]], pool.statistics[lists[place]]
            scores, good = rows @ weights, worth(pool, statistics, background)
            hope, fear = int(np.argmax(scores + good)), int(np.argmax(scores - good))
            apart = rows[hope] - rows[fear]
            lacking = (good[hope] - good[fear]) - (scores[hope] - scores[fear])
            size = float(apart @ (apart * mobility))
            if lacking > 0 and size > 0:
                weights = weights + min(10.0 / len(lists), lacking / size) * apart * mobility
            background = 0.999 * (background + statistics[int(np.argmax(scores))])
            total += weights
        mean = normalized(total, np.ones(len(start), dtype=bool))
        found = pool.value(pool.chosen(mean))
        if found > value:
            best, value = mean, found
    return best


@pytest.mark.parametrize("metric", [BLEU, WER])
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_mira_is_that_of_the_definition(metric: Metric, seed: int) -> None:
    random = np.random.default_rng(seed)
    sizes = random.integers(1, 30, 40)
    rows = int(sizes.sum())
    statistics = np.sort(random.integers(0, 12, (rows, metric.columns)), axis=1)
    statistics[: rows // 2] = statistics[rows // 2 : 2 * (rows // 2)]  # many are equally good
    features = random.normal(size=(rows, 3)) * [1.0, 10.0, 0.1]
    features[:, 0] += statistics[:, 0]
    pool = HypothesisPool(
        (("a", 2), ("b", 1)), np.cumsum([0, *sizes]), features, statistics, metric
    )
    start = np.array([0.1, 0.2, -0.3])
    found = mira(pool, start, seed=seed, epochs=7)
    expected = slow_mira(pool, start, epochs=7, seed=seed)
    assert found.weights == pytest.approx(expected, rel=1e-9)
    assert not np.allclose(found.weights, normalized(start, np.ones(3, dtype=bool)))


@pytest.mark.parametrize(
    ("starts", "columns", "metric"),
    [([0, 2], 1, "bleu"), ([0, 1, 1, 2], 1, "wer"), ([0, 3], 1, "wer"), ([0], 1, "wer")],
)
def test_lists_that_do_not_fit_their_hypotheses_are_refused(
    starts: list[int], columns: int, metric: str
) -> None:
    statistics = np.zeros(2 * columns, dtype=np.int64)
    with pytest.raises(_native.KernelError):
        _native.MiraLists(np.ones(2), np.array(starts), statistics, metric=metric)


def test_a_pass_needs_a_weight_for_every_feature_and_lists_that_exist() -> None:
    lists = _native.MiraLists(np.ones(4), np.array([0, 2]), np.zeros(2, np.int64), metric="wer")
    given = {"most_step": 1.0, "decay": 0.9}
    one, two = np.ones(1), np.ones(2)
    with pytest.raises(_native.KernelError, match="weight"):
        lists.run_pass(one, one, order=np.array([0]), mobility=two, **given)
    with pytest.raises(_native.KernelError, match="no such list"):
        lists.run_pass(two, one, order=np.array([1]), mobility=two, **given)
