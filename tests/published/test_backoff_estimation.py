"""The kernel against the worked examples of the estimation specification."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from tests.estimation.kernel_models import count_rows, kernel_table, ngram_rows
from tests.estimation.rule_models import RuleModel, unsmoothed, yield_base
from tests.reference import backoff as reference
from tests.reference.backoff_cases import AT_ROOT, AT_S, RULES_73, TERMINALS_AT_N, TREES_74

from treelm.estimation.backoff_table import BackoffTable
from treelm.estimation.chain import Chain
from treelm.estimation.estimate import NoBase
from treelm.estimation.jelinek_mercer import em_weight
from treelm.estimation.kneser_ney import berkeley, kneser_ney, modified_discounts
from treelm.estimation.yields import YieldBase


def close(found: object, text: str) -> None:
    expected = [float(Fraction(part)) for part in text.split()]
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-15)


# 7.1: a b c </s> <unk>, then <s>; 6 is a word that was never seen.
A, B, C, END, UNKNOWN, BEGIN, UNSEEN = range(7)
CORPUS_71 = [[A, B], [A, B], [A, C]]


@pytest.fixture(scope="module")
def bigram() -> BackoffTable:
    chain = Chain.words(2, pad=BEGIN)
    return kernel_table(count_rows(ngram_rows(CORPUS_71, 2, END, BEGIN), chain), kneser_ney, 5)


def test_71_counts_and_discounts() -> None:
    counts = count_rows(ngram_rows(CORPUS_71, 2, END, BEGIN), Chain.words(2, pad=BEGIN))
    assert counts.counts_of_counts(0)[:2] == (2, 2)
    assert counts.counts_of_counts(1)[:2] == (3, 1)
    discounts = kneser_ney(counts).discounts
    close([discount[0] for discount in discounts], "1/3 3/5")
    rows, types, _ = counts.entries(1)
    assert (rows[:, 0].tolist(), types.tolist()) == ([A, B, C, END], [1, 1, 1, 2])


@pytest.mark.parametrize(
    ("context", "row"),
    [
        (BEGIN, "1022/1125 22/1125 22/1125 47/1125 4/375"),
        (A, "44/1125 223/375 98/375 94/1125 8/375"),
        (B, "11/375 11/375 11/375 112/125 2/125"),
        (C, "22/375 22/375 22/375 99/125 4/125"),
        (UNSEEN, "22/125 22/125 22/125 47/125 12/125"),
    ],
)
def test_71_table(bigram: BackoffTable, context: int, row: str) -> None:
    close(np.exp(bigram.distribution([context])), row)


def test_71_sentence(bigram: BackoffTable) -> None:
    ids, starts = np.array([A, C], dtype=np.uint32), np.array([0, 2], dtype=np.uint64)
    factors = np.exp(bigram.score_sequences(ids, starts, BEGIN, END))
    close(factors, "1022/1125 98/375 99/125")
    close(factors.prod(), "1101716/5859375")
    assert factors.prod() == pytest.approx(0.188026197, abs=5e-10)


def test_71_berkeley() -> None:
    counts = count_rows(ngram_rows(CORPUS_71, 2, END, BEGIN), Chain.words(2, pad=BEGIN))
    table = kernel_table(counts, berkeley, 5, base=NoBase())
    close(np.exp(table.log_probabilities([(B, A)])), "3/5")
    rows = [(x, UNSEEN) for x in range(5)]
    close(np.exp(table.log_probabilities(rows)), "1/5 1/5 1/5 2/5 0")


# 7.2: saw hit slept dog <unk>; P: VBD NN; R: NP PP <none> SBAR.
VBD, NN = range(2)
NP, PP, NONE, SBAR = range(4)
ROWS_72 = [(0, VBD, NP)] * 2 + [(1, VBD, NP), (0, VBD, PP), (2, VBD, NONE), (3, NN, NONE)]


@pytest.mark.parametrize(
    ("level", "context", "row"),
    [
        (2, (NN, SBAR), "9/40 9/40 9/40 9/40 1/10"),
        (1, (VBD, NP), "147/320 67/320 67/320 27/320 3/80"),
        (0, (VBD, NP), "209/320 227/960 67/960 9/320 1/80"),
        (0, (VBD, SBAR), "147/320 67/320 67/320 27/320 3/80"),
        (0, (NN, NONE), "9/160 9/160 9/160 129/160 1/40"),
    ],
)
def test_72_table(level: int, context: tuple[int, int], row: str) -> None:
    counts = count_rows(ROWS_72, Chain(("P", "R"), (2, 1, 0), (None, None)))
    table = kernel_table(counts, kneser_ney(counts, fixed=[0.5] * 3), 5)
    close(np.exp(table.log_probabilities([(x, *context) for x in range(5)], level=level)), row)


def test_73_mixture() -> None:
    """Unsmoothed, so that the base itself is 0 nowhere but where the text says."""
    base, labels = yield_base(RULES_73, unsmoothed)
    rules = labels.rules(("NP", right) for right in [("DT", "NN"), ("NN",), ("IN", "NN")])
    with np.errstate(divide="ignore"):
        found = base.probabilities(rules)
        close(found, "0.65 0.325 0.025")
        assert found.sum() == pytest.approx(1, abs=1e-12)
        for weight, row in ((1.0, "2/3 1/3 0"), (0.0, "1/2 1/4 1/4")):
            one, _ = yield_base(RULES_73, unsmoothed, weight=weight)
            close(one.probabilities(rules), row)


# 7.4
WORDS_74 = ["dogs", "cats", "bark", reference.UNKNOWN]


class Terminals:
    """The chain (P,R,r',w-1,w-2) with D = 1/2 over the words of 7.4."""

    def __init__(self) -> None:
        events = reference.terminal_events(TREES_74)
        symbols = {str(x) for context, _ in events for x in context} | {reference.BEGIN}
        self.ids = {symbol: i for i, symbol in enumerate(sorted(symbols))}
        begin = self.ids[reference.BEGIN]
        chain = Chain(
            ("P", "R", "r'", "w-1", "w-2"),
            (5, 4, 3, 2, 1, 0),
            (None, None, None, begin, begin),
        )
        rows = [self.row(context, str(word)) for context, word in events]
        counts = count_rows(rows, chain)
        self.table = kernel_table(counts, kneser_ney(counts, fixed=[0.5] * 6), 4)

    def row(self, context: tuple, word: str) -> tuple[int, ...]:
        return (WORDS_74.index(word), *(self.ids[str(x)] for x in context))

    def probabilities(self, level: int, context: tuple, words: list[str]) -> np.ndarray:
        rows = [self.row(context, word) for word in words]
        return np.exp(self.table.log_probabilities(rows, level=level))


RULE = "S -> N V"
AT_N = ("N", "V", RULE, reference.BEGIN, reference.BEGIN)
AT_V = ("V", reference.NONE, RULE, "dogs", reference.BEGIN)


@pytest.fixture(scope="module")
def terminals() -> Terminals:
    return Terminals()


@pytest.fixture(scope="module")
def rules() -> RuleModel:
    return RuleModel.of(TREES_74, unknown=False)


@pytest.mark.parametrize(("level", "row"), TERMINALS_AT_N)
def test_74_terminals_at_n(terminals: Terminals, level: int, row: str) -> None:
    close(terminals.probabilities(level, AT_N, WORDS_74), row)


def test_74_terminals_at_v(terminals: Terminals) -> None:
    for level, value in ((2, "367/384"), (1, "751/768"), (0, "1519/1536")):
        close(terminals.probabilities(level, AT_V, ["bark"]), value)


@pytest.mark.parametrize(
    ("parent", "row"),
    [
        ("S", "1/32 79/96 7/96 7/96"),
        ("ROOT", "27/32 1/32 1/32 3/32"),
        (None, "17/40 17/40 1/20 1/10"),
    ],
)
def test_74_first_symbols(rules: RuleModel, parent: str | None, row: str) -> None:
    symbols = rules.base.symbols
    table = rules.base.unconditional if parent is None else rules.base.conditional
    context = [symbols.start] * 3
    if parent is not None:
        context = [rules.labels[parent], *context]
    found = np.exp(table.distribution(context))
    order = [*(int(symbols.of_label[rules.labels[x]]) for x in ("S", "N", "V")), symbols.stop]
    close(found[order], row)


@pytest.mark.parametrize(
    ("parent", "right", "values"),
    [
        ("S", ("N", "V"), "5073775/6561792 1309/3200 134300439/182272000"),
        ("ROOT", ("S",), "1593/1856 629/1440 681647/835200"),
    ],
)
def test_74_yields(rules: RuleModel, parent: str, right: tuple[str, ...], values: str) -> None:
    base, one = rules.base, rules.labels.rules([(parent, right)])
    found = [
        YieldBase(
            base.conditional, base.unconditional, base.symbols, base.parents, weight=weight
        ).probabilities(one)[0]
        for weight in (1.0, 0.0, 0.9)
    ]
    close(found, values)


def test_74_rules_and_tree(rules: RuleModel, terminals: Terminals) -> None:
    top = rules.probabilities(AT_ROOT, [("S",)])[0]
    inner = rules.probabilities(AT_S, [("N", "V")])[0]
    close([top, inner], "13209647/13363200 2868380439/2916352000")
    first = terminals.probabilities(0, AT_N, ["dogs"])[0]
    second = terminals.probabilities(0, AT_V, ["bark"])[0]
    whole = top * inner * first * second
    close(whole, "40310304924443508647/86091760454860800000")
    assert whole == pytest.approx(0.468224888, abs=5e-10)
    assert math.log(whole) == pytest.approx(-0.758806568, abs=5e-10)


def test_3_discounts() -> None:
    for lmplz in (False, True):
        close(modified_discounts([(10, 5, 3, 2)], lmplz=lmplz)[0], "1/2 11/10 5/3")


def test_4_em_step() -> None:
    frequency, below = np.array([0.5, 0.0, 1.0]), np.array([0.2, 0.1, 0.5])
    close(em_weight(frequency, below, np.ones(3), rounds=1)[0], "29/63")
    for i, responsibility in enumerate(["5/7", "0", "2/3"]):
        one = slice(i, i + 1)
        close(em_weight(frequency[one], below[one], np.ones(1), rounds=1)[0], responsibility)
