"""The back-off reference: sampling (section 10)."""

from __future__ import annotations

import math
import random
from collections import Counter
from fractions import Fraction

import pytest
from tests.reference.backoff import (
    NONE,
    UNKNOWN,
    USYM,
    Context,
    CountModel,
    Outcome,
    Sampler,
    YieldBase,
    nonterminal_chain,
    nonterminal_events,
    tree_rules,
)
from tests.reference.backoff_cases import (
    AT_ROOT,
    AT_S,
    CONTEXT_N,
    CONTEXT_V,
    TREES_74,
    fractions,
    halves,
)


def chi_square_tail(statistic: float, degrees: int) -> float:
    """P(X > statistic) for an even number of degrees of freedom."""
    assert degrees % 2 == 0
    half = statistic / 2
    return math.exp(-half) * sum(half**i / math.factorial(i) for i in range(degrees // 2))


def chi_square_p(drawn: Counter[Outcome], expected: dict[Outcome, Fraction]) -> float:
    total = drawn.total()
    assert set(drawn) <= set(expected)
    statistic = sum((drawn[x] - total * p) ** 2 / (total * p) for x, p in expected.items())
    return chi_square_tail(float(statistic), len(expected) - 1)


def test_chi_square_tail() -> None:
    assert chi_square_tail(18.467, 4) == pytest.approx(0.001, rel=1e-3)
    assert chi_square_tail(5.991, 2) == pytest.approx(0.05, rel=1e-3)


@pytest.mark.parametrize("context", [("VBD", "NP"), ("VBD", "SBAR"), ("NN", NONE)])
def test_sampling_72(chain_model: CountModel, context: Context) -> None:
    sampler = Sampler(chain_model, random.Random(72).random, float)
    drawn = Counter(sampler.draw(context) for _ in range(100_000))
    assert chi_square_p(drawn, chain_model.distribution(context)) > 0.001


def test_sampling_takes_the_numbers_in_order(chain_model: CountModel) -> None:
    def first(*numbers: str) -> Outcome:
        source = iter(fractions(" ".join(numbers)))
        outcome = Sampler(chain_model, lambda: next(source)).draw(("VBD", "NP"))
        assert next(source, None) is None
        return outcome

    assert first("0", "0") == "hit"  # masses: hit 1/6, saw 1/2; 1 - gamma = 2/3
    assert first("0", "249/1000") == "hit"
    assert first("665/1000", "1/4") == "saw"
    assert first("2/3", "0", "0") == "hit"  # level 1: hit 1/8, saw 3/8, slept 1/8
    assert first("2/3", "0", "4/5") == "slept"
    assert first("2/3", "5/8", "0", "0") == "dog"  # level 2
    assert first("2/3", "5/8", "1/2", "0") == UNKNOWN  # base, sorted: <unk> first
    assert first("2/3", "5/8", "1/2", "99/100") == "slept"


def test_sampling_skips_contexts_without_counts(chain_model: CountModel) -> None:
    source = iter(fractions("0 0"))
    assert Sampler(chain_model, lambda: next(source)).draw(("NN", "SBAR")) == "dog"


def test_sampling_exactly(chain_model: CountModel) -> None:
    """In Fractions throughout; every limit of this context is a multiple of 1/960."""
    source = random.Random(3)
    sampler = Sampler(chain_model, lambda: Fraction(source.randrange(960), 960), Fraction)
    drawn = Counter(sampler.draw(("VBD", "NP")) for _ in range(3000))
    assert chi_square_p(drawn, chain_model.distribution(("VBD", "NP"))) > 0.001


YIELDS_74: list[tuple[str, ...]] = [("N", "V"), ("S",), ("N",), ("N", "V", "V")]


def yield_chi_square(drawn: Counter[Outcome], expected: dict[Outcome, Fraction]) -> float:
    """Over some yields and all the others together."""
    rest = drawn.total() - sum(drawn[x] for x in expected)
    counted = Counter({x: drawn[x] for x in expected} | {"rest": rest})
    return chi_square_p(counted, expected | {"rest": 1 - sum(expected.values())})


@pytest.mark.parametrize("usym", [False, True])
def test_sampling_yields(nonterminals: CountModel, usym: bool) -> None:
    """`<usym>` is never drawn: the samples are those of the model without it."""
    base = YieldBase(tree_rules(TREES_74), halves, usym=usym)
    model = halves(nonterminal_events(TREES_74), nonterminal_chain(), base)
    sampler = Sampler(model, random.Random(74).random, float)
    drawn = Counter(sampler.draw(AT_S) for _ in range(40_000))
    assert yield_chi_square(drawn, nonterminals.distribution(AT_S, YIELDS_74)) > 0.001
    assert not any(USYM in outcome for outcome in drawn)


@pytest.mark.parametrize("parent", ["S", "ROOT", "X"])
def test_sampling_the_yield_base(yield_base: YieldBase, parent: str) -> None:
    draw = yield_base.sampler(random.Random(5).random, float)
    drawn = Counter(draw((parent,)) for _ in range(20_000))
    expected = {x: yield_base.probability((parent,), x) for x in YIELDS_74}
    assert yield_chi_square(drawn, expected) > 0.001


def test_sampling_trees(nonterminals: CountModel, terminals: CountModel) -> None:
    """TL 8, with fewer samples: the share of the first tree, within 4 standard errors."""
    source = random.Random(8)
    rules = Sampler(nonterminals, source.random, float)
    words = Sampler(terminals, source.random, float)
    number = 20_000
    hits = sum(draws_first_tree(rules, words) for _ in range(number))
    p = 40310304924443508647 / 86091760454860800000
    assert abs(hits / number - p) < 4 * math.sqrt(p * (1 - p) / number)


def draws_first_tree(rules: Sampler, words: Sampler) -> bool:
    return (
        rules.draw(AT_ROOT) == ("S",)
        and rules.draw(AT_S) == ("N", "V")
        and words.draw(CONTEXT_N) == "dogs"
        and words.draw(CONTEXT_V) == "bark"
    )
