"""Exact draws from tables, against their probabilities."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from tests.estimation.kernel_models import (
    Data,
    any_data,
    count_rows,
    fallbacks_allowed,
    kernel_table,
    ngram_rows,
)
from tests.estimation.rule_models import RuleModel
from tests.reference.backoff_cases import AT_ROOT, AT_S, TREES_74

from treelm.estimation.backoff_table import NO_ID, BackoffTable
from treelm.estimation.chain import Chain
from treelm.estimation.estimate import GivenBase, NoBase
from treelm.estimation.kneser_ney import berkeley, kneser_ney, modified_kneser_ney
from treelm.estimation.smoothing import Smoothing

CHAIN_72 = Chain(("P", "R"), (2, 1, 0), (None, None))
# P: VBD 0, NN 1. R: NP 0, PP 1, <none> 2. Words: saw, hit, slept, dog, <unk>.
ROWS_72 = [(0, 0, 0)] * 2 + [(1, 0, 0), (0, 0, 1), (2, 0, 2), (3, 1, 2)]


def draws(table: BackoffTable, context: tuple[int, ...], number: int, seed: int = 1) -> np.ndarray:
    contexts = np.tile(np.array(context, dtype=np.uint32), (number, 1)).reshape(number, -1)
    streams = np.arange(number, dtype=np.uint64)
    return table.sample(contexts, seed, streams, np.zeros(number, dtype=np.uint64))


def chi_square_p(drawn: np.ndarray, expected: np.ndarray) -> float:
    """Wilson and Hilferty's approximation; outcomes of small expectation are put together."""
    found = np.bincount(drawn, minlength=len(expected)).astype(float)
    assert len(found) == len(expected)
    assert (found[expected == 0] == 0).all()
    wanted = expected * len(drawn)
    small = wanted < 8
    if small.any():
        found = np.append(found[~small], found[small].sum())
        wanted = np.append(wanted[~small], wanted[small].sum())
    found, wanted = found[wanted > 0], wanted[wanted > 0]
    degrees = len(found) - 1
    if degrees == 0:
        return 1.0
    statistic = float(((found - wanted) ** 2 / wanted).sum())
    spread = 2 / (9 * degrees)
    normal = ((statistic / degrees) ** (1 / 3) - (1 - spread)) / math.sqrt(spread)
    return 0.5 * math.erfc(normal / math.sqrt(2))


def test_the_approximation() -> None:
    expected = np.array([0.5, 0.25, 0.25])
    exact = np.repeat([0, 1, 2], [500, 250, 250])
    assert chi_square_p(exact, expected) > 0.99
    assert chi_square_p(np.repeat([0, 1, 2], [600, 200, 200]), expected) < 1e-6


@pytest.mark.parametrize("precision", ["single", "double"])
@pytest.mark.parametrize("context", [(0, 0), (0, 9), (1, 2), (9, 9)])
def test_draws_of_72(context: tuple[int, int], precision: str) -> None:
    counts = count_rows(ROWS_72, CHAIN_72)
    table = kernel_table(counts, kneser_ney(counts, fixed=[0.5] * 3), 5, precision=precision)
    expected = np.exp(table.distribution(context))
    assert chi_square_p(draws(table, context, 100_000), expected) > 0.001


@pytest.mark.parametrize("name", ["kneser-ney", "modified", "jelinek-mercer", "pruned", "berkeley"])
def test_draws_of_every_smoothing(name: str) -> None:
    sentences = [[int(i * i / 3) % 4, i % 4, (i // 3) % 4, i % 3] for i in range(30)]
    data = Data(Chain.words(3, pad=6), ngram_rows(sentences, 3, 4, 6), 6)
    kind = "tokens" if name == "jelinek-mercer" else "types"
    counts = count_rows(data.rows, data.chain, kind=kind)
    zeros = ((0.0,) * 3,) * 3
    with fallbacks_allowed():
        smoothing = {
            "kneser-ney": lambda: kneser_ney(counts),
            "modified": lambda: modified_kneser_ney(counts),
            "jelinek-mercer": lambda: Smoothing(zeros, weights=((0.3, 0.5, 0.8),) * 3),
            "pruned": lambda: kneser_ney(counts, min_counts=(3, 2, 1)),
            "berkeley": lambda: berkeley(counts, min_counts=(2, 1, 1)),
        }[name]()
    options = {"base": NoBase()} if name == "berkeley" else {}
    table = kernel_table(counts, smoothing, data.outcomes, **options)
    for context in [(6, 6), (0, 6), (1, 2), (3, 3), (5, 1), (0, 0)]:
        with np.errstate(divide="ignore"):
            expected = np.exp(table.distribution(context))
        assert chi_square_p(draws(table, context, 20_000), expected) > 0.001


@given(any_data())
@settings(max_examples=15)
def test_draws_are_outcomes_and_repeatable(data: Data) -> None:
    with fallbacks_allowed():
        table = kernel_table(count_rows(data.rows, data.chain), kneser_ney, data.outcomes)
    context = data.rows[0][1:]
    drawn = draws(table, context, 3000)
    assert np.array_equal(drawn, draws(table, context, 3000))
    assert not np.array_equal(drawn, draws(table, context, 3000, seed=2))
    assert chi_square_p(drawn, np.exp(table.distribution(context))) > 1e-5


def test_a_draw_depends_on_its_place_only() -> None:
    counts = count_rows(ROWS_72, CHAIN_72)
    table = kernel_table(counts, kneser_ney(counts, fixed=[0.5] * 3), 5)
    contexts = np.array([(0, 0), (1, 2), (9, 9)] * 50, dtype=np.uint32)
    streams, counters = np.arange(150, dtype=np.uint64) % 7, np.arange(150, dtype=np.uint64)
    together = table.sample(contexts, 5, streams, counters)
    for i in range(150):
        alone = table.sample(contexts[i : i + 1], 5, streams[i : i + 1], counters[i : i + 1])
        assert alone[0] == together[i]


def test_one_outcome_can_be_left_out_of_the_base() -> None:
    counts = count_rows(ROWS_72, CHAIN_72)
    table = kernel_table(counts, kneser_ney(counts, fixed=[0.5] * 3), 5)
    number = 20_000
    streams = np.arange(number, dtype=np.uint64)
    contexts = np.full((number, 2), 9, dtype=np.uint32)
    drawn = table.sampler(never=4).draw(contexts, 1, streams, streams)
    # 7.2 over four words: (1/2)/4 each, and the rest from the base over four
    assert chi_square_p(drawn, np.array([0.25, 0.25, 0.25, 0.25, 0])) > 0.001


def test_outcomes_over_a_given_base() -> None:
    """Three outcomes whose shares of the base differ much; their own masses are drawn."""
    rows = [(0, 0)] * 5 + [(1, 0)] * 3 + [(2, 0)] * 2
    counts = count_rows(rows, Chain(("P",), (1,), (None,)))
    base = {0: 0.1, 1: 0.6, 2: 0.2}
    entries = counts.entries(0)[0][:, 0].tolist()
    table = kernel_table(
        counts,
        kneser_ney(counts, fixed=[1.0]),
        3,
        base=GivenBase(np.array([base[x] for x in entries])),
    )
    stored = table.rows(0)[0][:, 0].tolist()
    sampler = table.sampler(np.array([base[x] for x in stored]))
    number = 50_000
    streams = np.arange(number, dtype=np.uint64)
    drawn = sampler.draw(np.zeros((number, 1), dtype=np.uint32), 1, streams, streams)
    drawn = np.where(drawn == NO_ID, 3, drawn)
    assert chi_square_p(drawn, np.array([0.4, 0.2, 0.1, 0.3])) > 0.001


@pytest.mark.parametrize("context", [AT_S, AT_ROOT])
def test_rules_over_their_base(context: tuple[str, ...]) -> None:
    """A draw that falls to the base is NO_ID, and exactly as often as the weights say."""
    model = RuleModel.of(TREES_74, unknown=False)
    rows = model.table.rows(2)[0]
    names, rights = list(model.contexts), list(model.yields)
    given_base = model.base.probabilities(
        model.labels.rules((names[row[1]], rights[row[0]]) for row in rows.tolist())
    )
    sampler = model.table.sampler(given_base)
    number = 20_000
    streams = np.arange(number, dtype=np.uint64)
    key = model.row(context, ("S",))[1:]
    contexts = np.tile(np.array(key, dtype=np.uint32), (number, 1))
    drawn = Counter(sampler.draw(contexts, 1, streams, streams).tolist())
    weights = [model.table.backoff_weights(contexts[:1], level=j)[0] for j in range(3)]
    falls = math.prod(weights)
    assert abs(drawn[NO_ID] / number - falls) < 4 * math.sqrt(falls * (1 - falls) / number)
    right = ("N", "V") if context == AT_S else ("S",)
    assert set(drawn) == {NO_ID, model.yields[right]}
