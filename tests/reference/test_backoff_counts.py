"""The back-off reference: chains, counts, discounts and Berkeley mode."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction

import pytest
from hypothesis import given, settings
from tests.reference.backoff import (
    BEGIN,
    END,
    START,
    TOP,
    Chain,
    Event,
    UniformBase,
    YieldBase,
    berkeley,
    discount,
    level_counts,
    modified_discount,
    modified_discounts,
    ngram_chain,
    ngram_events,
    nonterminal_chain,
    nonterminal_events,
    pruning_threshold,
    terminal_chain,
    token_counts,
    yield_chain,
)
from tests.reference.backoff_cases import (
    AT_ROOT,
    CORPUS_71,
    SENTENCES,
    TREES_74,
    WORDS,
    code_of,
    fractions,
    observed,
)


def test_discount() -> None:
    assert discount(2, 2) == Fraction(1, 3)
    assert discount(3, 1) == Fraction(3, 5)
    assert discount(0, 3) == discount(3, 0) == Fraction(3, 4)
    assert discount(0, 3, Fraction(1, 1000)) == Fraction(1, 1000)
    assert discount(1, 1000) == Fraction(1, 100)
    assert discount(1000, 1) == Fraction(99, 100)


def test_modified_discount_oracle() -> None:
    for lmplz in (False, True):
        assert modified_discounts(10, 5, 3, 2, lmplz=lmplz) == tuple(fractions("1/2 11/10 5/3"))
    triple = modified_discounts(10, 5, 3, 2)
    assert [modified_discount(triple, n) for n in range(6)] == fractions("0 1/2 11/10 5/3 5/3 5/3")


def test_modified_discounts_without_fours() -> None:
    assert modified_discounts(10, 5, 3, 0)[2] == 3


@pytest.mark.parametrize(
    "counts", [(0, 5, 3, 2), (10, 0, 3, 2), (10, 5, 0, 2), (10, 5, 10, 2), (10, 5, 3, 10)]
)
@pytest.mark.parametrize("lmplz", [False, True])
def test_modified_fallback(counts: tuple[int, int, int, int], lmplz: bool) -> None:
    with pytest.warns(UserWarning, match="fallback"):
        assert modified_discounts(*counts, lmplz=lmplz) == tuple(fractions("0.5 1 1.5"))


def test_modified_clamp_only_by_default() -> None:
    """Y = 1/2, so D_2 = 2 - 3/2 * 4/3 = 0."""
    assert modified_discounts(6, 3, 4, 1, lmplz=True)[1] == 0
    assert modified_discounts(6, 3, 4, 1)[1] == Fraction(1, 10**6)


@pytest.mark.parametrize(
    ("levels", "pads"),
    [
        ((), {}),  # J < 0
        (((0,), (0, 1)), {}),  # phi_1 not computable
        (((0, 1), (2,)), {}),
        (((0, 1), (0,), (1,)), {}),
        (((0, 1), (0, 1)), {}),  # identical levels
        (((0, 1), (1, 0)), {}),
        (((1, 0), (0,)), {}),  # phi_0(c) is not c
        (((0, 1, 2), (0, 0)), {}),
        (((0, 1), (0,)), {2: BEGIN}),  # pad slot outside
        (((0, 1, 2), (0,)), {1: BEGIN, 2: BEGIN}),  # two pad slots in one step
        (((0, 1), ()), {0: START, 1: BEGIN}),
    ],
)
def test_illegal_chains(levels: tuple[tuple[int, ...], ...], pads: dict[int, str]) -> None:
    assert code_of(lambda: Chain(levels, pads)) == "E_CHAIN"


def test_legal_chains() -> None:
    assert ngram_chain(3).levels == ((0, 1), (1,), ())
    assert ngram_chain(1).levels == ((),)
    assert [len(kept) for kept in terminal_chain().levels] == [5, 4, 3, 2, 1, 0]
    assert nonterminal_chain().levels == ((0, 1, 2), (0, 1), (0,))
    assert yield_chain(given_parent=True).levels == ((0, 1, 2, 3), (1, 2, 3), (2, 3), (3,))
    assert yield_chain(given_parent=False).levels == ((0, 1, 2), (1, 2), (2,), ())
    Chain(((0, 1, 2), (0,)), {1: START})  # a step may drop one pad slot and more besides


def test_a_pad_symbol_counts_only_in_its_slot() -> None:
    chain = Chain(((0, 1), (0,)), {1: BEGIN})
    assert [chain.pad_count(0, key) for key in [(BEGIN, "a"), ("a", BEGIN), ("a", START)]] == [
        0,
        1,
        0,
    ]


def test_top_and_none_are_not_pads() -> None:
    counts = level_counts(nonterminal_events(TREES_74), nonterminal_chain())
    assert counts[0][AT_ROOT] == {("S",): 2}
    assert counts[1]["ROOT", TOP] == {("S",): 1}
    assert counts[2]["ROOT",] == {("S",): 1}


def test_token_counts_keep_discarded_contexts() -> None:
    events = ngram_events(CORPUS_71, 3)
    assert token_counts(events, ngram_chain(3))[0][BEGIN, BEGIN] == {"a": 3}
    for kind in ("types", "tokens"):
        counts = level_counts(events, ngram_chain(3), kind)
        assert (BEGIN, BEGIN) not in counts[0]
        assert counts[1][BEGIN,] == {"a": 3}
    assert level_counts(events, ngram_chain(3), "tokens")[2][()] == {"a": 3, "b": 2, "c": 1, END: 3}
    assert level_counts(events, ngram_chain(3), "types")[2][()] == {"a": 1, "b": 1, "c": 1, END: 2}


@given(SENTENCES)
def test_trigram_counts_are_continuation_counts(sentences: list[list[str]]) -> None:
    padded = [(BEGIN, BEGIN, *words, END) for words in sentences]
    trigrams = Counter(p[i : i + 3] for p in padded for i in range(len(p) - 2))
    bigrams = {(v, x) for _, v, x in trigrams}
    top, middle, last = level_counts(ngram_events(sentences, 3), ngram_chain(3))
    assert flat(top) == {((u, v), x): n for (u, v, x), n in trigrams.items() if v != BEGIN}
    expected = {((v,), x): len({t[0] for t in trigrams if t[1:] == (v, x)}) for v, x in bigrams}
    for v, x in bigrams:
        if v == BEGIN:
            expected[(v,), x] = trigrams[BEGIN, BEGIN, x]
    assert flat(middle) == expected
    assert flat(last) == {((), x): n for x, n in Counter(x for _, x in bigrams).items()}


def flat(table) -> dict[Event, int]:
    return {(key, x): n for key, row in table.items() for x, n in row.items()}


def test_berkeley_needs_a_uniform_base(yield_base: YieldBase) -> None:
    events = nonterminal_events(TREES_74)
    assert code_of(lambda: berkeley(events, nonterminal_chain(), yield_base)) == "E_CHAIN"


def test_pruning_thresholds() -> None:
    assert [pruning_threshold(order) for order in range(1, 7)] == [1, 1, 1, 2, 2, 2]


def test_pruning_by_hand() -> None:
    """Only 4-grams are long enough to be pruned; `a b c y` and `b c y </s>` are seen once."""
    sentences = [["a", "b", "c", "x"]] * 3 + [["a", "b", "c", "y"]]
    events = ngram_events(sentences, 4)
    base = UniformBase(["a", "b", "c", "x", "y", END])
    full = berkeley(events, ngram_chain(4), base)
    pruned = berkeley(events, ngram_chain(4), base, prune=True)
    key = ("a", "b", "c")
    d = full.discounts[0]
    assert full.row(0, key).mass == {"x": (3 - d) / 4, "y": (1 - d) / 4}
    assert pruned.row(0, key).mass == {"x": (3 - d) / 4}
    assert pruned.gamma(0, key) == 1 - (3 - d) / 4
    assert pruned.rows[1:] == full.rows[1:]
    assert pruned.discounts == full.discounts
    lost = ("b", "c", "y")
    assert full.gamma(0, lost) < 1
    assert pruned.row(0, lost) == ({}, 1)


@given(SENTENCES)
@settings(max_examples=40)
def test_berkeley_sums_to_one(sentences: list[list[str]]) -> None:
    for prune in (False, True):
        model = berkeley(ngram_events(sentences, 5), ngram_chain(5), WORDS, prune=prune)
        for level, key in observed(model):
            assert sum(model.level_distribution(level, key).values()) == 1
    tokens = token_counts(ngram_events(sentences, 5), ngram_chain(5))
    for level in (0, 1):
        for key, row in model.rows[level].items():
            assert set(row.mass) == {
                x for x in model.counts[level][key] if tokens[level][key][x] > 1
            }
