"""Kneser-Ney tables of the kernel against the exact reference, at every level."""

from __future__ import annotations

import random
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.estimation.kernel_models import (
    Data,
    any_data,
    as_fractions,
    count_rows,
    fallbacks_allowed,
    kernel_table,
    ngram_data,
    reference_base,
    reference_chain,
    reference_events,
)
from tests.reference import backoff as reference

from treelm.errors import EstimationError, TreelmWarning
from treelm.estimation.backoff_table import BackoffTable
from treelm.estimation.chain import Chain, ChainCounts
from treelm.estimation.estimate import NoBase, UniformBase, estimate
from treelm.estimation.kneser_ney import (
    berkeley,
    fixed_discounts,
    kneser_ney,
    kneser_ney_discounts,
    modified_discounts,
    modified_kneser_ney,
)
from treelm.estimation.smoothing import Smoothing
from treelm.events.counts import EventCounter


def check_table(
    data: Data, table: BackoffTable, model: reference.BackoffModel, tolerance: float = 1e-12
) -> None:
    """Every outcome after every observed context and 100 unseen ones, at every level."""
    source = random.Random(len(data.rows))
    chain, size = data.chain, data.outcomes
    width = len(chain.columns)
    unseen = [
        tuple(source.choice([0, 1, 2, 3, 6, 2**31, 2**32 - 1]) for _ in range(width))
        for _ in range(100)
    ]
    for level, rows in enumerate(model.rows):
        known = [(*key, *[0] * (width - len(key))) for key in rows]
        contexts = list(dict.fromkeys(known + (unseen if level == 0 else unseen[:5])))
        queries = [(x, *context) for context in contexts for x in range(size)]
        logs = table.log_probabilities(queries, level=level)
        found = np.exp(logs).reshape(-1, size)
        keys = [model.chain.project(context, level) for context in contexts]
        expected = [list(model.level_distribution(level, key).values()) for key in keys]
        np.testing.assert_allclose(
            found, np.array(expected, dtype=float), rtol=tolerance, atol=1e-300
        )
        np.testing.assert_allclose(found.sum(axis=1), 1, atol=max(tolerance, 1e-12))
        gammas = np.array([float(model.gamma(level, key)) for key in keys])
        weights = table.backoff_weights(np.array(contexts, dtype=np.uint32), level=level)
        np.testing.assert_allclose(weights, gammas, rtol=tolerance, atol=tolerance)


def kernel_and_reference(
    data: Data, smoothing: Callable, estimator: Callable, **options
) -> tuple[BackoffTable, reference.BackoffModel]:
    kind = options.pop("kind", "types")
    with fallbacks_allowed():
        counts = count_rows(data.rows, data.chain, kind=kind)
        table = kernel_table(counts, smoothing, data.outcomes, **options)
        model = estimator(
            reference_events(data.rows), reference_chain(data.chain), reference_base(data.outcomes)
        )
    return table, model


ESTIMATORS: dict[str, tuple[Callable, Callable, str]] = {
    "kneser-ney": (kneser_ney, reference.kneser_ney, "types"),
    "tokens": (
        kneser_ney,
        lambda e, c, b: reference.kneser_ney(e, c, b, counts="tokens"),
        "tokens",
    ),
    "fallback": (
        lambda counts: kneser_ney(counts, fallback=0.25),
        lambda e, c, b: reference.kneser_ney(e, c, b, fallback_discount=Fraction(1, 4)),
        "types",
    ),
    "modified": (modified_kneser_ney, reference.modified_kneser_ney, "types"),
    "lmplz": (
        lambda counts: modified_kneser_ney(counts, lmplz=True),
        lambda e, c, b: reference.modified_kneser_ney(e, c, b, lmplz=True),
        "types",
    ),
}


@pytest.mark.parametrize("name", ESTIMATORS)
@given(data=any_data())
@settings(max_examples=25)
def test_probabilities(name: str, data: Data) -> None:
    smoothing, estimator, kind = ESTIMATORS[name]
    check_table(data, *kernel_and_reference(data, smoothing, estimator, kind=kind))


@given(any_data(), st.sampled_from(["kneser-ney", "modified"]))
@settings(max_examples=20)
def test_single_precision(data: Data, name: str) -> None:
    smoothing, estimator, kind = ESTIMATORS[name]
    found = kernel_and_reference(data, smoothing, estimator, kind=kind, precision="single")
    check_table(data, *found, tolerance=1e-6)


@given(any_data(), st.lists(st.floats(0, 1), min_size=6, max_size=6))
@settings(max_examples=40)
def test_fixed_discounts(data: Data, discounts: list[float]) -> None:
    """Discounts of 0 and 1 included, which are used as they are."""
    fixed = discounts[: len(data.chain.widths)]
    found = kernel_and_reference(
        data,
        lambda counts: kneser_ney(counts, fixed=fixed),
        lambda e, c, b: reference.fixed_discounts(e, c, b, as_fractions(fixed)),
    )
    check_table(data, *found)


@given(any_data(), st.floats(0, 1))
@settings(max_examples=20)
def test_modified_with_one_discount(data: Data, discount: float) -> None:
    """I9."""
    counts = count_rows(data.rows, data.chain)
    triple = (discount, discount, discount)
    plain = kernel_table(counts, kneser_ney(counts, fixed=[discount] * len(counts)), data.outcomes)
    modified = kernel_table(counts, Smoothing((triple,) * len(counts)), data.outcomes)
    assert np.array_equal(plain.native.slots, modified.native.slots)


@given(any_data())
@settings(max_examples=30)
def test_relative_frequency(data: Data) -> None:
    """I8: one level, nothing discounted."""
    chain = data.chain
    widths = chain.widths[:1]
    top = type(chain)(chain.columns, widths, chain.pads)
    one = Data(top, data.rows, data.outcomes)
    table, model = kernel_and_reference(
        one,
        lambda counts: kneser_ney(counts, fixed=[0.0]),
        lambda e, c, b: reference.fixed_discounts(e, c, b, [Fraction(0)]),
    )
    contexts = [row[1:] for row in data.rows]
    padded = [model.chain.discarded(0, context) for context in contexts]
    for row, out in zip(data.rows, padded, strict=True):
        expected = data.rows.count(row) / contexts.count(row[1:])
        found = float(np.exp(table.log_probabilities([row])[0]))
        assert found == pytest.approx(1 / data.outcomes if out else expected, rel=1e-15)


@given(any_data())
@settings(max_examples=30)
def test_no_less_than_the_share_of_the_level_below(data: Data) -> None:
    """I2."""
    with fallbacks_allowed():
        table = kernel_table(count_rows(data.rows, data.chain), kneser_ney, data.outcomes)
    rows = [(x, *row[1:]) for row in data.rows for x in range(data.outcomes)]
    contexts = np.array([row[1:] for row in rows], dtype=np.uint32).reshape(len(rows), -1)
    for level in range(len(data.chain.widths)):
        here = np.exp(table.log_probabilities(rows, level=level))
        lower = np.full(len(rows), 1 / data.outcomes)
        if level + 1 < len(data.chain.widths):
            lower = np.exp(table.log_probabilities(rows, level=level + 1))
        share = table.backoff_weights(contexts, level=level) * lower
        assert (here >= share * (1 - 1e-15)).all()
        assert (here > 0).all()


@pytest.mark.parametrize("prune", [False, True])
@given(data=st.one_of(ngram_data(5), any_data()))
@settings(max_examples=30)
def test_berkeley(data: Data, prune: bool) -> None:
    table, model = kernel_and_reference(
        data,
        lambda counts: berkeley(counts, min_counts=None if prune else [1] * len(counts)),
        lambda e, c, b: reference.berkeley(e, c, b, prune=prune),
        base=NoBase(),
    )
    with np.errstate(divide="ignore"):
        if model.chain.levels[-1] == ():
            check_table(data, table, model)
        else:  # below a context that was not seen there is nothing
            rows = [(x, *row[1:]) for row in data.rows for x in range(data.outcomes)]
            found = np.exp(table.log_probabilities(rows))
            expected = [reference_without_base(model, row) for row in rows]
            np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-300)


def reference_without_base(model: reference.BackoffModel, row: tuple[int, ...]) -> float:
    key, p, scale = row[1:], Fraction(0), Fraction(1)
    for level in range(model.chain.last + 1):
        found = model.row(level, key)
        p += scale * found.mass.get(row[0], Fraction(0))
        scale *= found.gamma
        key = model.chain.below(level, key)
    return float(p)


@given(any_data(), st.data())
@settings(max_examples=40)
def test_pruning(data: Data, more: st.DataObject) -> None:
    """Any smallest counts that do not rise on the way down; what is left out goes below."""
    levels = len(data.chain.widths)
    drawn = more.draw(st.lists(st.integers(1, 3), min_size=levels, max_size=levels))
    least = sorted(drawn, reverse=True)
    counts = count_rows(data.rows, data.chain)
    smoothing = kneser_ney(counts, fixed=[0.5] * levels, min_counts=least)
    table = kernel_table(counts, smoothing, data.outcomes)
    events, chain = reference_events(data.rows), reference_chain(data.chain)
    base = reference_base(data.outcomes)
    whole_model = reference.fixed_discounts(events, chain, base, [Fraction(1, 2)] * levels)
    tokens = reference.token_counts(events, chain)
    rows = []
    for level, found in enumerate(whole_model.rows):
        kept = {}
        for key, row in found.items():
            mass = {x: m for x, m in row.mass.items() if tokens[level][key][x] >= least[level]}
            kept[key] = reference.Row(mass, 1 - sum(mass.values(), Fraction(0)))
        rows.append(kept)
    check_table(data, table, reference.BackoffModel(chain, base, rows))


@pytest.mark.parametrize("precision", ["single", "double"])
@pytest.mark.parametrize(
    "chain",
    [Chain.words(3, pad=3001), Chain(("a", "b"), (2, 0), (None, 3))],
    ids=["words", "plain"],
)
def test_threads_build_the_same_table(chain: Chain, precision: str) -> None:
    """Bit by bit, with enough rows that the threads share the work."""
    ids = np.random.default_rng(5).zipf(1.3, (150_000, 3))
    counter = EventCounter(3)
    ids = np.minimum(ids, 3000).astype(np.uint32)
    if chain.sequence:
        starts = np.arange(0, ids.size + 1, 15).astype(np.uint64)
        counter.add_sequences(ids.ravel(), starts, end=0, pad=3001)
    else:
        counter.add(ids)
    events = counter.finish()
    one, two = (
        kernel_table(ChainCounts(events, chain, threads=n), kneser_ney, 3001, precision=precision)
        for n in (1, 2)
    )
    assert np.array_equal(one.native.slots, two.native.slots)
    assert np.array_equal(one.native.index, two.native.index)
    assert one.shape.entries == two.shape.entries
    assert one.shape.contexts == two.shape.contexts


# --- discounts ------------------------------------------------------------------------------------

NUMBERS = st.tuples(*[st.integers(0, 12)] * 4)


@given(NUMBERS, st.booleans())
def test_discounts_are_those_of_the_reference(
    numbers: tuple[int, int, int, int], lmplz: bool
) -> None:
    with fallbacks_allowed():
        (one, *_), *_ = kneser_ney_discounts([numbers])
        assert one == pytest.approx(float(reference.discount(*numbers[:2])), rel=1e-15)
        found = modified_discounts([numbers], lmplz=lmplz)[0]
        expected = reference.modified_discounts(*numbers, lmplz=lmplz)
    assert found == pytest.approx([float(d) for d in expected], rel=1e-12, abs=1e-15)


@pytest.mark.parametrize("numbers", [(0, 3, 1, 1), (3, 0, 1, 1)])
def test_fallback_discounts_warn(numbers: tuple[int, int, int, int]) -> None:
    with pytest.warns(TreelmWarning, match="level 1"):
        found = kneser_ney_discounts([(2, 2, 1, 0), numbers])
    assert found[1] == (0.75, 0.75, 0.75)


@pytest.mark.parametrize(
    "numbers", [(0, 5, 3, 2), (10, 0, 3, 2), (10, 5, 0, 2), (10, 5, 10, 2), (10, 5, 3, 10)]
)
def test_modified_fallback_warns(numbers: tuple[int, int, int, int]) -> None:
    for lmplz in (False, True):
        with pytest.warns(TreelmWarning, match="0.5, 1 and 1.5"):
            assert modified_discounts([numbers], lmplz=lmplz) == [(0.5, 1.0, 1.5)]


def test_clamps() -> None:
    assert kneser_ney_discounts([(1, 1000, 0, 0), (1000, 1, 0, 0)]) == [(0.01,) * 3, (0.99,) * 3]
    assert modified_discounts([(6, 3, 4, 1)], lmplz=True)[0][1] == 0
    assert modified_discounts([(6, 3, 4, 1)])[0][1] == 1e-6
    assert modified_discounts([(10, 5, 3, 0)])[0][2] == 3


def code_of(call) -> str:
    with pytest.raises(EstimationError) as caught:
        call()
    return caught.value.code


@pytest.mark.parametrize("values", [[-0.1], [1.01], [float("nan")], [0.5, 2]])
def test_bad_discounts(values: list[float]) -> None:
    assert code_of(lambda: fixed_discounts(values)) == "E_DISCOUNT"


def some_counts() -> ChainCounts:
    return count_rows([(0, 1), (1, 0)], Chain.words(2, pad=3))


def test_wrong_numbers_of_levels() -> None:
    counts = some_counts()
    assert code_of(lambda: kneser_ney(counts, fixed=[0.5])) == "E_DISCOUNT"
    assert code_of(lambda: berkeley(counts, fixed=[0.5, 0.5])) == "E_DISCOUNT"
    short = Smoothing(((0.5,) * 3,))
    assert code_of(lambda: estimate(counts, short, UniformBase(3), outcomes=4)) == "E_ARGUMENT"


@pytest.mark.parametrize(
    "smoothing",
    [
        Smoothing(((1.5, 1, 1), (1, 1, 1))),
        Smoothing(((1, 2.5, 1), (1, 1, 1))),
        Smoothing(((1, 1, float("nan")), (1, 1, 1))),
        Smoothing(((0.5,) * 3,) * 2, weights=((1.5,), ())),
        Smoothing(((0.5,) * 3,) * 2, min_counts=(1, 2)),
        Smoothing(((0.5,) * 3,) * 2, min_counts=(1,)),
    ],
)
def test_smoothing_that_does_not_fit(smoothing: Smoothing) -> None:
    counts = some_counts()
    assert code_of(lambda: estimate(counts, smoothing, UniformBase(3), outcomes=4)) == "E_ARGUMENT"


def test_outcomes_outside_the_table() -> None:
    counts = some_counts()
    smoothing = kneser_ney(counts, fixed=[0.5, 0.5])
    assert code_of(lambda: estimate(counts, smoothing, UniformBase(1), outcomes=1)) == "E_ARGUMENT"
