"""The back-off reference against the worked examples 7.1 to 7.4."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from tests.reference.backoff import (
    BEGIN,
    END,
    NONE,
    START,
    STOP,
    Context,
    CountModel,
    UniformBase,
    YieldBase,
    berkeley,
    count_of_counts,
    ngram_chain,
    ngram_events,
    treelet_events,
)
from tests.reference.backoff_cases import (
    AT_ROOT,
    AT_S,
    CONTEXT_N,
    CONTEXT_V,
    CORPUS_71,
    HALF,
    RULE_74,
    RULES_73,
    TERMINALS_AT_N,
    TREES_74,
    V_71,
    V_72,
    V_74,
    fractions,
    unsmoothed,
    values,
)


def test_71_counts_and_discounts(bigram: CountModel) -> None:
    top, last = bigram.counts
    assert top == {(BEGIN,): {"a": 3}, ("a",): {"b": 2, "c": 1}, ("b",): {END: 2}, ("c",): {END: 1}}
    assert last == {(): {"a": 1, "b": 1, "c": 1, END: 2}}
    assert [count_of_counts(top, r) for r in (1, 2)] == [2, 2]
    assert [count_of_counts(last, r) for r in (1, 2)] == [3, 1]
    assert bigram.discounts == [Fraction(1, 3), Fraction(3, 5)]
    assert (bigram.total(1, ()), bigram.types(1, ())) == (5, 4)


@pytest.mark.parametrize(
    ("context", "row"),
    [
        (BEGIN, "1022/1125 22/1125 22/1125 47/1125 4/375"),
        ("a", "44/1125 223/375 98/375 94/1125 8/375"),
        ("b", "11/375 11/375 11/375 112/125 2/125"),
        ("c", "22/375 22/375 22/375 99/125 4/125"),
        ("unseen", "22/125 22/125 22/125 47/125 12/125"),
    ],
)
def test_71_table(bigram: CountModel, context: str, row: str) -> None:
    assert values(bigram, 0, (context,), V_71) == fractions(row)
    assert sum(bigram.distribution((context,)).values()) == 1


def test_71_lower_level(bigram: CountModel) -> None:
    expected = fractions("22/125 22/125 22/125 47/125 12/125")
    assert values(bigram, 1, (), V_71) == expected
    assert expected[0] == Fraction(2, 5) / 5 + Fraction(3, 5) * 4 / 5 / 5
    assert [float(x) for x in expected] == [0.176, 0.176, 0.176, 0.376, 0.096]


def test_71_gamma(bigram: CountModel) -> None:
    assert bigram.gamma(1, ()) == Fraction(3, 5) * 4 / 5
    assert bigram.gamma(0, ("a",)) == Fraction(1, 3) * 2 / 3
    assert bigram.gamma(0, ("unseen",)) == 1


def test_71_sentence(bigram: CountModel) -> None:
    events = ngram_events([["a", "c"]], 2)
    factors = [bigram.probability(context, word) for context, word in events]
    assert factors == fractions("1022/1125 98/375 99/125")
    assert math.prod(factors) == Fraction(1101716, 5859375)
    assert float(math.prod(factors)) == pytest.approx(0.188026197, abs=5e-10)


def test_71_berkeley() -> None:
    events = ngram_events(CORPUS_71, 2)
    model = berkeley(events, ngram_chain(2), UniformBase(V_71))
    assert model.probability(("a",), "b") == Fraction(3, 5)
    assert Fraction(5, 9) + Fraction(2, 9) * Fraction(1, 5) == Fraction(3, 5)
    assert values(model, 1, (), V_71) == fractions("1/5 1/5 1/5 2/5 0")
    assert model.gamma(1, ()) == 0


def test_72_counts(chain_model: CountModel) -> None:
    assert chain_model.counts[1] == {
        ("VBD",): {"saw": 2, "hit": 1, "slept": 1},
        ("NN",): {"dog": 1},
    }
    assert chain_model.counts[2] == {(): {"saw": 1, "hit": 1, "slept": 1, "dog": 1}}


@pytest.mark.parametrize(
    ("level", "key", "row"),
    [
        (2, (), "9/40 9/40 9/40 9/40 1/10"),
        (1, ("VBD",), "147/320 67/320 67/320 27/320 3/80"),
        (0, ("VBD", "NP"), "209/320 227/960 67/960 9/320 1/80"),
        (0, ("VBD", "SBAR"), "147/320 67/320 67/320 27/320 3/80"),
        (0, ("NN", NONE), "9/160 9/160 9/160 129/160 1/40"),
    ],
)
def test_72_table(chain_model: CountModel, level: int, key: Context, row: str) -> None:
    assert values(chain_model, level, key, V_72) == fractions(row)
    assert sum(fractions(row)) == 1


def test_72_by_hand(chain_model: CountModel) -> None:
    by_hand = (2 - HALF) / 3 + HALF * Fraction(2, 3) * Fraction(147, 320)
    assert by_hand == HALF + Fraction(49, 320) == Fraction(209, 320)
    assert chain_model.probability(("VBD", "NP"), "saw") == by_hand


def test_73_mixture() -> None:
    base = YieldBase(RULES_73, unsmoothed)
    yields = [("DT", "NN"), ("NN",), ("IN", "NN")]
    assert [base.product("NP", x) for x in yields] == fractions("2/3 1/3 0")
    assert [base.product(None, x) for x in yields] == fractions("1/2 1/4 1/4")
    mixed = [base.probability(("NP",), x) for x in yields]
    assert mixed == fractions("0.65 0.325 0.025")
    assert sum(mixed) == 1


def test_73_first_symbol_and_the_rest() -> None:
    model = YieldBase(RULES_73, unsmoothed).unconditional
    first = model.distribution((START, START, START), ["DT", "NN", "IN"])
    assert list(first.values()) == fractions("1/2 1/4 1/4")
    for context, symbol in [
        ((START, START, "DT"), "NN"),
        ((START, START, "IN"), "NN"),
        ((START, START, "NN"), STOP),
        ((START, "DT", "NN"), STOP),
        ((START, "IN", "NN"), STOP),
    ]:
        assert model.probability(context, symbol) == 1


@pytest.mark.parametrize(("level", "row"), TERMINALS_AT_N)
def test_74_terminals_at_n(terminals: CountModel, level: int, row: str) -> None:
    key = terminals.chain.project(CONTEXT_N, level)
    assert values(terminals, level, key, V_74) == fractions(row)
    assert sum(fractions(row)) == 1


def test_74_boundary(terminals: CountModel) -> None:
    assert CONTEXT_N not in terminals.counts[0]
    assert terminals.counts[1][CONTEXT_N[:4]] == {"dogs": 1, "cats": 1}
    assert terminals.chain.raw(1, CONTEXT_N[:4])
    assert terminals.chain.discarded(0, CONTEXT_N)
    assert terminals.gamma(0, CONTEXT_N) == 1
    assert terminals.total(0, CONTEXT_N) == 0


def test_74_terminals_at_v(terminals: CountModel) -> None:
    expected = {2: "367/384", 1: "751/768", 0: "1519/1536"}
    for level, value in expected.items():
        key = terminals.chain.project(CONTEXT_V, level)
        assert terminals.level_probability(level, key, "bark") == Fraction(value)
    assert terminals.counts[2]["V", NONE, RULE_74] == {"bark": 2}
    assert float(terminals.probability(CONTEXT_V, "bark")) == pytest.approx(0.988932, abs=5e-7)


@pytest.mark.parametrize(
    ("parent", "row"),
    [
        ("S", "1/32 79/96 7/96 7/96"),
        ("ROOT", "27/32 1/32 1/32 3/32"),
        (None, "17/40 17/40 1/20 1/10"),
    ],
)
def test_74_first_symbols(yield_base: YieldBase, parent: str | None, row: str) -> None:
    model = yield_base.unconditional if parent is None else yield_base.conditional
    context = (START, START, START) + (() if parent is None else (parent,))
    assert values(model, 0, context, ["S", "N", "V", STOP]) == fractions(row)
    assert sum(fractions(row)) == 1


@pytest.mark.parametrize(
    ("parent", "outcome", "products", "decimals"),
    [
        (
            "S",
            ("N", "V"),
            "5073775/6561792 1309/3200 134300439/182272000",
            (0.773230087, 0.409062500, 0.736813328),
        ),
        (
            "ROOT",
            ("S",),
            "1593/1856 629/1440 681647/835200",
            (0.858297414, 0.436805556, 0.816148228),
        ),
    ],
)
def test_74_yields(
    yield_base: YieldBase, parent: str, outcome: tuple[str, ...], products: str, decimals: tuple
) -> None:
    found = [
        yield_base.product(parent, outcome),
        yield_base.product(None, outcome),
        yield_base.probability((parent,), outcome),
    ]
    assert found == fractions(products)
    assert [float(x) for x in found] == pytest.approx(decimals, abs=5e-10)


def test_74_rules(nonterminals: CountModel) -> None:
    top = nonterminals.probability(AT_ROOT, ("S",))
    inner = nonterminals.probability(AT_S, ("N", "V"))
    assert (top, inner) == (
        Fraction(13209647, 13363200),
        Fraction(2868380439, 2916352000),
    )
    assert [float(top), float(inner)] == pytest.approx([0.988509264, 0.983550833], abs=5e-10)


def test_74_tree(nonterminals: CountModel, terminals: CountModel) -> None:
    factors = [
        (nonterminals if event.kind == "N" else terminals).probability(event.context, event.outcome)
        for event in treelet_events(TREES_74[0])
    ]
    assert factors[2:] == fractions("187/384 1519/1536")
    result = math.prod(factors)
    assert result == Fraction(40310304924443508647, 86091760454860800000)
    assert float(result) == pytest.approx(0.468224888, abs=5e-10)
    assert math.log(result) == pytest.approx(-0.758806568, abs=5e-10)
