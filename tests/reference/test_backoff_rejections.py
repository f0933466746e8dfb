"""The back-off reference: what is rejected (section 11)."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from fractions import Fraction

import pytest
from tests.reference.backoff import (
    END,
    START,
    STOP,
    UNKNOWN,
    Chain,
    Context,
    CountModel,
    Outcome,
    Sampler,
    Tree,
    UniformBase,
    YieldBase,
    berkeley,
    deleted_interpolation,
    event_counts,
    fixed_discounts,
    jelinek_mercer,
    kneser_ney,
    level_counts,
    modified_kneser_ney,
    ngram_chain,
    ngram_events,
    treelet_events,
)
from tests.reference.backoff_cases import AT_S, CORPUS_71, HALF, WORDS, code_of, halves


@pytest.mark.parametrize("estimate", [kneser_ney, halves, berkeley, modified_kneser_ney])
@pytest.mark.parametrize("events", [[], {}, {(("a",), "a"): 0}])
def test_no_data(estimate: Callable[..., CountModel], events) -> None:
    assert code_of(lambda: estimate(events, ngram_chain(2), WORDS)) == "E_NO_DATA"


def test_no_data_elsewhere() -> None:
    assert code_of(lambda: YieldBase([])) == "E_NO_DATA"
    assert code_of(lambda: jelinek_mercer([], [], ngram_chain(2), WORDS)) == "E_NO_DATA"
    only = [ngram_events(CORPUS_71, 2)]
    assert code_of(lambda: deleted_interpolation(only, ngram_chain(2), WORDS)) == "E_NO_DATA"


@pytest.mark.parametrize("count", [-1, 1.5, 2.0, True, Fraction(2)])
def test_bad_counts(count: object) -> None:
    assert code_of(lambda: event_counts({(("a",), "a"): count})) == "E_COUNT"


@pytest.mark.parametrize(
    "discounts", [[HALF], [HALF, 2], [-HALF, HALF], [HALF, Fraction(101, 100)]]
)
def test_bad_discounts(discounts: list[Fraction]) -> None:
    events = ngram_events(CORPUS_71, 2)
    found = code_of(lambda: fixed_discounts(events, ngram_chain(2), WORDS, discounts))
    assert found == "E_DISCOUNT"


def test_extreme_discounts_are_used_as_given() -> None:
    events = ngram_events(CORPUS_71, 2)
    nothing = fixed_discounts(events, ngram_chain(2), WORDS, [Fraction(0), Fraction(0)])
    assert nothing.probability(("a",), "b") == Fraction(2, 3)
    everything = fixed_discounts(events, ngram_chain(2), WORDS, [Fraction(1), Fraction(1)])
    assert everything.gamma(0, ("c",)) == 1
    assert nothing.discounts == [0, 0]


def test_arity(bigram: CountModel, chain_model: CountModel) -> None:
    for context in [(), ("a", "b")]:
        assert code_of(lambda context=context: bigram.probability(context, "a")) == "E_ARITY"
        assert code_of(lambda context=context: bigram.gamma(0, context)) == "E_ARITY"
    sampler = Sampler(chain_model, random.Random(1).random, float)
    assert code_of(lambda: sampler.draw(("VBD",))) == "E_ARITY"
    assert code_of(lambda: level_counts([(("a", "b"), "c")], ngram_chain(2))) == "E_ARITY"


def test_out_of_vocabulary() -> None:
    events = ngram_events(CORPUS_71, 2)
    closed = kneser_ney(events, ngram_chain(2), UniformBase(["a", "b", "c", END]))
    assert code_of(lambda: closed.probability(("a",), "new")) == "E_OOV"
    opened = kneser_ney(events, ngram_chain(2), WORDS)
    assert opened.probability(("a",), "new") == opened.probability(("a",), UNKNOWN) > 0
    small = UniformBase(["a", UNKNOWN])
    assert code_of(lambda: kneser_ney(events, ngram_chain(2), small)) == "E_OOV"


class Poor(UniformBase):
    """A base with no probability for b, or none at all."""

    def __init__(self, value: object) -> None:
        super().__init__(["a", "b"])
        self._value = value

    def probability(self, _key: Context, outcome: Outcome):
        return self._value if outcome == "b" else Fraction(1)


def test_zero_base() -> None:
    train, held = [((), "a")], [((), "b")]
    call = jelinek_mercer
    assert code_of(lambda: call(train, held, Chain(((),)), Poor(Fraction(0)))) == "E_ZERO_BASE"
    assert code_of(lambda: call(train, held, Chain(((),)), Poor(math.nan))) == "E_NAN"


@pytest.mark.parametrize("outcome", [(), "NN", 3])
def test_bad_yields(yield_base: YieldBase, outcome: Outcome) -> None:
    assert code_of(lambda: yield_base.probability(("S",), outcome)) == "E_YIELD"


def test_start_and_stop_are_no_symbols_of_a_yield(nonterminals: CountModel) -> None:
    for label in (START, STOP):
        call = nonterminals.probability
        assert (
            code_of(lambda label=label, call=call: call(AT_S, ("N", label))) == "E_RESERVED_SYMBOL"
        )


@pytest.mark.parametrize(
    "tree", [("ROOT", "a"), ("ROOT",), ("ROOT", ("N", "a"), "b"), ("ROOT", ("N",))]
)
def test_bad_trees(tree: Tree) -> None:
    assert code_of(lambda: treelet_events(tree)) == "E_TREE"
