"""The back-off reference: yields (section 5, I6)."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.reference.backoff import (
    START,
    STOP,
    TOP,
    USYM,
    Chain,
    Context,
    CountModel,
    YieldBase,
    all_yields,
    kneser_ney,
    level_counts,
    nonterminal_chain,
    nonterminal_events,
    tree_rules,
    yield_chain,
    yield_events,
)
from tests.reference.backoff_cases import (
    AT_ROOT,
    AT_S,
    HALF,
    RULES_73,
    TREES_74,
    code_of,
    halves,
    random_rules,
    unsmoothed,
)


def test_unknown_labels_are_scored_as_usym() -> None:
    base = YieldBase(tree_rules(TREES_74), halves)
    assert base.symbols == {"S", "N", "V", USYM}
    assert base.resolve(("N", "X")) == ("N", USYM)
    model = halves(nonterminal_events(TREES_74), nonterminal_chain(), base)
    assert model.probability(AT_S, ("N", "X")) == model.probability(AT_S, ("N", USYM)) > 0
    assert model.probability(AT_S, ("X", "Y", "V")) == model.probability(AT_S, (USYM, USYM, "V"))


def test_unknown_labels_can_be_refused() -> None:
    strict = YieldBase(tree_rules(TREES_74), halves, on_unknown="error")
    assert code_of(lambda: strict.resolve(("N", "X"))) == "E_UNKNOWN_SYMBOL"
    without = YieldBase(tree_rules(TREES_74), halves, usym=False)
    assert code_of(lambda: without.resolve(("N", "X"))) == "E_UNKNOWN_SYMBOL"


def test_unseen_parent_takes_the_unconditional_product(yield_base: YieldBase) -> None:
    for outcome in all_yields(["S", "N", "V"], 2):
        assert yield_base.probability(("X",), outcome) == yield_base.product(None, outcome)


def test_rule_types_count_once() -> None:
    by_type = YieldBase(RULES_73, unsmoothed, base_counts="types")
    assert by_type.product("NP", ("DT", "NN")) == HALF
    assert by_type.product(None, ("DT", "NN")) == Fraction(1, 3)


def test_renormalisation_leaves_one(yield_base: YieldBase) -> None:
    """(5.2): the first symbols other than STOP share the whole mass."""
    context = (START, START, START, "S")
    first = yield_base.conditional.distribution(context)
    assert sum(p for x, p in first.items() if x != STOP) / (1 - first[STOP]) == 1


def test_yield_events() -> None:
    events = yield_events([("S", ("N", "V"))], given_parent=True)
    assert events == {
        ((START, START, START, "S"), "N"): 1,
        ((START, START, "N", "S"), "V"): 1,
        ((START, "N", "V", "S"), STOP): 1,
    }
    assert ((START, "N", "V"), STOP) in yield_events([("S", ("N", "V"))], given_parent=False)


def test_the_first_child_is_predicted_from_one_start() -> None:
    counts = level_counts(yield_events(RULES_73, given_parent=True), yield_chain(given_parent=True))
    assert (START, START, START, "NP") not in counts[0]
    assert (START, START, "NP") not in counts[1]
    assert counts[2][START, "NP"] == {"DT": 2, "NN": 1}


@pytest.mark.parametrize(
    ("key", "base_mass", "full_mass"),
    [(AT_S, 0.989335, 0.999333), (AT_ROOT, 0.995931, 0.999746)],
)
def test_i6_worked_numbers(
    nonterminals: CountModel,
    yield_base: YieldBase,
    key: Context,
    base_mass: float,
    full_mass: float,
) -> None:
    masses = []
    full = base = Fraction(0)
    known = 0
    for length in range(1, 6):
        outcomes = list(all_yields(["S", "N", "V"], length))[known:]
        known += len(outcomes)
        base += sum(yield_base.probability(key[:1], x) for x in outcomes)
        full += sum(nonterminals.distribution(key, outcomes).values())
        masses.append((base, full))
    assert known == 3 + 9 + 27 + 81 + 243
    assert masses == sorted(masses)
    assert all(lower < 1 and upper < 1 for lower, upper in masses)
    assert float(base) == pytest.approx(base_mass, abs=1e-6)
    assert float(full) == pytest.approx(full_mass, abs=1e-6)


RULES = random_rules(4, 6)


@given(RULES, st.sampled_from([halves, kneser_ney]))
@settings(max_examples=15)
def test_i6_random_rules(rules: list, estimate: Callable[..., CountModel]) -> None:
    base = YieldBase(rules, estimate, usym=False)
    chain = Chain(((0, 1), (0,)))
    events = [((parent, TOP), outcome) for parent, outcome in rules]
    model = estimate(events, chain, base)
    for parent in ("X", "Z"):
        lengths = [Fraction(0)] * 4
        for outcome in all_yields(base.symbols, 3):
            p = model.probability((parent, TOP), outcome)
            assert p > 0
            assert base.probability((parent,), outcome) > 0
            lengths[len(outcome)] += p
        assert all(p > 0 for p in lengths[1:])
        assert sum(lengths) < 1


@given(RULES)
@settings(max_examples=15)
def test_i6_mass_of_lengths_and_of_going_on(rules: list) -> None:
    """What has not stopped after m symbols is exactly what is missing to 1."""
    base = YieldBase([*rules, ("X", ("A",))], kneser_ney)
    stopped = sum(base.product("X", x) for x in all_yields(base.symbols, 2))
    q = base.conditional
    going = Fraction(0)
    scale = 1 - q.probability((START, START, START, "X"), STOP)
    for one, two in (x for x in all_yields(base.symbols, 2) if len(x) == 2):
        first = q.probability((START, START, START, "X"), one) / scale
        second = q.probability((START, START, one, "X"), two)
        going += first * second * (1 - q.probability((START, one, two, "X"), STOP))
    assert stopped + going == 1
