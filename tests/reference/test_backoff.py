"""The back-off oracle against every worked example and invariant of backoff-estimation.md."""

from __future__ import annotations

import math
import random
import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.reference.backoff import (
    BEGIN,
    END,
    NONE,
    START,
    STOP,
    TOP,
    UNKNOWN,
    USYM,
    BackoffError,
    BackoffModel,
    Chain,
    Context,
    CountModel,
    Event,
    Outcome,
    Sampler,
    Tree,
    TreeletEvent,
    UniformBase,
    YieldBase,
    all_yields,
    berkeley,
    bucket,
    count_of_counts,
    deleted_interpolation,
    discount,
    em_step,
    em_weights,
    event_counts,
    fixed_discounts,
    jelinek_mercer,
    kneser_ney,
    level_counts,
    log_likelihood,
    merge_buckets,
    merge_counts,
    modified_discount,
    modified_discounts,
    modified_kneser_ney,
    ngram_chain,
    ngram_events,
    nonterminal_chain,
    nonterminal_events,
    pruning_threshold,
    terminal_chain,
    terminal_events,
    token_counts,
    tree_rules,
    treelet_events,
    yield_chain,
    yield_events,
)

HALF = Fraction(1, 2)


def fractions(text: str) -> list[Fraction]:
    return [Fraction(part) for part in text.split()]


def values(
    model: BackoffModel, level: int, key: Context, outcomes: Sequence[str]
) -> list[Fraction]:
    return list(model.level_distribution(level, key, outcomes).values())


def halves(events, chain: Chain, base) -> CountModel:
    return fixed_discounts(events, chain, base, [HALF] * len(chain.levels))


def unsmoothed(events, chain: Chain, base) -> CountModel:
    return fixed_discounts(events, chain, base, [Fraction(0)] * len(chain.levels))


def quiet_modified(events, chain: Chain, base, **options) -> CountModel:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return modified_kneser_ney(events, chain, base, **options)


def code_of(call: Callable[[], object]) -> str:
    with pytest.raises(BackoffError) as caught:
        call()
    return caught.value.code


# --- 7.1 ------------------------------------------------------------------------------------------

CORPUS_71 = [["a", "b"], ["a", "b"], ["a", "c"]]
V_71 = ["a", "b", "c", END, UNKNOWN]


@pytest.fixture(scope="module")
def bigram() -> CountModel:
    return kneser_ney(ngram_events(CORPUS_71, 2), ngram_chain(2), UniformBase(V_71))


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


# --- 7.2 ------------------------------------------------------------------------------------------

CHAIN_72 = Chain(((0, 1), (0,), ()))
EVENTS_72: dict[Event, int] = {
    (("VBD", "NP"), "saw"): 2,
    (("VBD", "NP"), "hit"): 1,
    (("VBD", "PP"), "saw"): 1,
    (("VBD", NONE), "slept"): 1,
    (("NN", NONE), "dog"): 1,
}
V_72 = ["saw", "hit", "slept", "dog", UNKNOWN]


@pytest.fixture(scope="module")
def chain_model() -> CountModel:
    return halves(EVENTS_72, CHAIN_72, UniformBase(V_72))


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


# --- 7.3 ------------------------------------------------------------------------------------------

RULES_73 = [("NP", ("DT", "NN"))] * 2 + [("NP", ("NN",)), ("PP", ("IN", "NN"))]


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


# --- 7.4 ------------------------------------------------------------------------------------------

TREES_74: list[Tree] = [
    ("ROOT", ("S", ("N", "dogs"), ("V", "bark"))),
    ("ROOT", ("S", ("N", "cats"), ("V", "bark"))),
]
V_74 = ["dogs", "cats", "bark", UNKNOWN]
RULE_74 = "S -> N V"
CONTEXT_N = ("N", "V", RULE_74, BEGIN, BEGIN)
CONTEXT_V = ("V", NONE, RULE_74, "dogs", BEGIN)
AT_ROOT = ("ROOT", TOP, TOP)
AT_S = ("S", "ROOT", "ROOT -> S")


@pytest.fixture(scope="module")
def terminals() -> CountModel:
    return halves(terminal_events(TREES_74), terminal_chain(), UniformBase(V_74))


@pytest.fixture(scope="module")
def yield_base() -> YieldBase:
    return YieldBase(tree_rules(TREES_74), halves, usym=False)


@pytest.fixture(scope="module")
def nonterminals(yield_base: YieldBase) -> CountModel:
    return halves(nonterminal_events(TREES_74), nonterminal_chain(), yield_base)


@pytest.mark.parametrize(
    ("level", "row"),
    [
        (5, "7/24 7/24 7/24 1/8"),
        (4, "19/48 19/48 7/48 1/16"),
        (3, "43/96 43/96 7/96 1/32"),
        (2, "91/192 91/192 7/192 1/64"),
        (1, "187/384 187/384 7/384 1/128"),
        (0, "187/384 187/384 7/384 1/128"),
    ],
)
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


# --- 5 Yields -------------------------------------------------------------------------------------


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


# --- 2.3, 3 and 4: the oracles inside the text ----------------------------------------------------


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


def test_em_step_oracle() -> None:
    pairs = [(HALF, Fraction(1, 5)), (Fraction(0), Fraction(1, 10)), (Fraction(1), HALF)]
    responsibilities = [em_step(HALF, [pair]) for pair in pairs]
    assert responsibilities == fractions("5/7 0 2/3")
    assert em_step(HALF, pairs) == Fraction(29, 63)
    assert em_weights(pairs)[:2] == pytest.approx([0.5, 0.460317], abs=5e-7)


# --- 1 and 2.1: chains and counts -----------------------------------------------------------------


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


SENTENCES = st.lists(st.lists(st.sampled_from("abc"), max_size=5), min_size=1, max_size=7)


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


# --- 2.2: Berkeley mode ---------------------------------------------------------------------------


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


# --- 8: invariants --------------------------------------------------------------------------------

WORDS = UniformBase(["a", "b", "c", END, UNKNOWN])
PLAIN = Chain(((0, 1, 2), (0, 1), (0,), ()))
PLAIN_EVENTS = st.lists(
    st.tuples(
        st.tuples(st.sampled_from("PQ"), st.sampled_from("RST"), st.sampled_from("uvw")),
        st.sampled_from("abc"),
    ),
    min_size=1,
    max_size=25,
)
ESTIMATORS: dict[str, Callable[..., BackoffModel]] = {
    "kneser-ney": kneser_ney,
    "tokens": lambda e, c, b: kneser_ney(e, c, b, counts="tokens"),
    "modified": quiet_modified,
    "halves": halves,
    "jelinek-mercer": lambda e, c, b: jelinek_mercer(e, e[::2], c, b, min_heldout=3),
    "ratio": lambda e, c, b: jelinek_mercer(e, e[::2], c, b, min_heldout=3, buckets="ratio"),
}


def observed(model: BackoffModel) -> list[tuple[int, Context]]:
    return [(level, key) for level, rows in enumerate(model.rows) for key in rows]


def unseen(model: BackoffModel, number: int = 100) -> list[tuple[int, Context]]:
    """Random contexts of random levels without counts, parts of them known symbols."""
    source = random.Random(number)
    found: list[tuple[int, Context]] = []
    while len(found) < number:
        level = source.randrange(len(model.rows))
        key = tuple(
            source.choice(["a", "P", "R", BEGIN, "new", "newer"]) for _ in model.chain.levels[level]
        )
        found += [(level, key)] if key and key not in model.rows[level] else []
    return found


def check_distribution(model: BackoffModel, level: int, key: Context) -> None:
    """I1 and I2."""
    upper = model.level_distribution(level, key)
    lower = model.level_distribution(level + 1, model.chain.below(level, key))
    assert sum(upper.values()) == 1
    assert model.gamma(level, key) >= 0
    for x, p in upper.items():
        assert p >= model.gamma(level, key) * lower[x] >= 0
        assert p > 0


@pytest.mark.parametrize("name", ESTIMATORS)
@given(events=PLAIN_EVENTS)
@settings(max_examples=20)
def test_i1_i2_plain(name: str, events: list[Event]) -> None:
    model = ESTIMATORS[name](events, PLAIN, WORDS)
    for level, key in observed(model):
        check_distribution(model, level, key)


@pytest.mark.parametrize("name", ESTIMATORS)
@given(sentences=SENTENCES)
@settings(max_examples=20)
def test_i1_i2_ngrams(name: str, sentences: list[list[str]]) -> None:
    model = ESTIMATORS[name](ngram_events(sentences, 3), ngram_chain(3), WORDS)
    for level, key in observed(model):
        check_distribution(model, level, key)


@pytest.mark.parametrize("name", ESTIMATORS)
def test_i1_i2_unseen(name: str) -> None:
    source = random.Random(1)
    events = [
        (tuple(source.choice("PQR") for _ in range(3)), source.choice("abc")) for _ in range(30)
    ]
    model = ESTIMATORS[name](events, PLAIN, WORDS)
    for level, key in unseen(model):
        check_distribution(model, level, key)
    sentences = [[source.choice("abc") for _ in range(4)] for _ in range(10)]
    ngrams = ESTIMATORS[name](ngram_events(sentences, 4), ngram_chain(4), WORDS)
    for level, key in unseen(ngrams):
        check_distribution(ngrams, level, key)


@given(PLAIN_EVENTS)
def test_i3_totals(events: list[Event]) -> None:
    model = kneser_ney(events, PLAIN, WORDS)
    for level, table in enumerate(model.counts):
        for key, row in table.items():
            assert sum(row.values()) == model.total(level, key)
            assert len(row) == model.types(level, key)
        if level > 0:
            pairs = {(PLAIN.project(context, level - 1), x) for context, x in events}
            assert sum(model.total(level, key) for key in table) == len(pairs)


@given(SENTENCES, st.randoms(use_true_random=False))
def test_i4_order(sentences: list[list[str]], source: random.Random) -> None:
    events = ngram_events(sentences, 3)
    shuffled = source.sample(events, len(events))
    for kind in ("types", "tokens"):
        assert level_counts(events, ngram_chain(3), kind) == level_counts(
            shuffled, ngram_chain(3), kind
        )


@given(SENTENCES, SENTENCES)
@settings(max_examples=40)
def test_i5_shards(left: list[list[str]], right: list[list[str]]) -> None:
    chain = ngram_chain(3)
    merged = merge_counts(ngram_events(left, 3), event_counts(ngram_events(right, 3)))
    whole = ngram_events(left + right, 3)
    assert level_counts(merged, chain) == level_counts(whole, chain)
    assert kneser_ney(merged, chain, WORDS).rows == kneser_ney(whole, chain, WORDS).rows


def test_i5_continuation_counts_do_not_add_up() -> None:
    shard = [(("x", "a"), "b")]
    chain = Chain(((0, 1), (1,)))
    assert level_counts(shard, chain)[1] == level_counts(shard * 2, chain)[1] == {("a",): {"b": 1}}


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


RULES = st.lists(
    st.tuples(
        st.sampled_from(["X", "Y"]),
        st.lists(st.sampled_from(["A", "B", "X"]), min_size=1, max_size=4).map(tuple),
    ),
    min_size=1,
    max_size=6,
)


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


@given(SENTENCES, st.integers(1, 3))
def test_i8_relative_frequency(sentences: list[list[str]], order: int) -> None:
    length = order - 1
    chain = Chain((tuple(range(length)),), dict.fromkeys(range(length), BEGIN))
    events = ngram_events(sentences, order)
    model = unsmoothed(events, chain, WORDS)
    contexts = Counter(context for context, _ in events)
    for (context, x), n in Counter(events).items():
        if context.count(BEGIN) <= 1:
            assert model.probability(context, x) == Fraction(n, contexts[context])
        else:
            assert model.probability(context, x) == Fraction(1, 5)


@given(SENTENCES, st.fractions(0, 1, max_denominator=20))
@settings(max_examples=40)
def test_i9_modified_with_one_discount(sentences: list[list[str]], d: Fraction) -> None:
    events = ngram_events(sentences, 3)
    chain = ngram_chain(3)
    plain = fixed_discounts(events, chain, WORDS, [d] * 3)
    assert modified_kneser_ney(events, chain, WORDS, discounts=[(d, d, d)] * 3).rows == plain.rows


@given(SENTENCES, SENTENCES, st.sampled_from(["count", "ratio"]))
@settings(max_examples=40)
def test_i10_likelihood_never_decreases(train: list, held: list, buckets) -> None:
    model = jelinek_mercer(
        ngram_events(train, 3),
        ngram_events(held, 3),
        ngram_chain(3),
        WORDS,
        buckets=buckets,
        min_heldout=4,
    )
    for traces, pairs in zip(model.traces, model.pairs, strict=True):
        for group, trace in traces.items():
            likelihoods = [log_likelihood(weight, pairs[group]) for weight in trace]
            assert all(after >= before - 1e-10 for before, after in pairwise(likelihoods))


# --- 4: Jelinek-Mercer ----------------------------------------------------------------------------


def test_buckets() -> None:
    assert [bucket(n) for n in (1, 2, 3, 4, 5, 8, 9, 16, 17)] == [0, 1, 2, 2, 3, 3, 4, 4, 5]
    assert [bucket(*pair) for pair in [(4, 4), (5, 4), (8, 4), (9, 4)]] == [0, 1, 1, 2]


@pytest.mark.parametrize(
    ("heldout", "groups"),
    [
        ([100, 100, 100], [0, 1, 2]),
        ([100, 100, 99], [0, 1, 1]),
        ([100, 99, 100], [0, 0, 2]),
        ([99, 100, 100], [0, 0, 2]),
        ([100, 60, 60], [0, 1, 1]),
        ([10, 20, 200, 5], [0, 0, 0, 0]),
        ([10, 95, 200, 5], [0, 0, 2, 2]),
        ([0, 0, 0], [0, 0, 0]),
        ([7], [0]),
    ],
)
def test_merging_of_buckets(heldout: list[int], groups: list[int]) -> None:
    merged = merge_buckets(dict(enumerate(heldout)), len(heldout) - 1)
    assert [merged[number] for number in range(len(heldout))] == groups


def test_em_finds_the_maximum() -> None:
    pairs = [(0.5, 0.2), (0.0, 0.1), (1.0, 0.5), (0.25, 0.4), (0.6, 0.2)]
    weight = em_weights(pairs, tolerance=1e-12, rounds=10_000)[-1]
    best = max((step / 1000 for step in range(1, 1000)), key=lambda x: log_likelihood(x, pairs))
    assert weight == pytest.approx(best, abs=1e-3)
    assert len(em_weights(pairs)) <= 101


def test_jelinek_mercer_by_hand() -> None:
    """One level, f = 3/4, 1/4 and 0 against 1/3: one bucket, one weight."""
    base = UniformBase(["a", "b", UNKNOWN])
    train = [((), "a")] * 3 + [((), "b")]
    held = [((), "a")] * 5 + [((), "new")]
    model = jelinek_mercer(train, held, Chain(((),)), base)
    third = Fraction(1, 3)
    assert Counter(model.pairs[0][0]) == {(Fraction(3, 4), third): 5, (Fraction(0), third): 1}
    weight = model.weights[0][2]
    assert float(weight) == em_weights(model.pairs[0][0])[-1]
    assert model.probability((), "a") == weight * Fraction(3, 4) + (1 - weight) * third
    assert model.probability((), "new") == (1 - weight) * third
    assert model.gamma(0, ()) == 1 - weight


def test_jelinek_mercer_lower_levels_first() -> None:
    """The pairs of a level hold the finished model of the level below."""
    train, held = ngram_events(CORPUS_71, 3), ngram_events([["a", "b"], ["c"]], 3)
    model = jelinek_mercer(train, held, ngram_chain(3), WORDS, min_heldout=1)
    for level in range(3):
        expected: Counter[tuple[Fraction, Fraction]] = Counter()
        for context, x in held:
            key = model.chain.project(context, level)
            row = model.counts[level].get(key, {})
            if row:
                lower = model.level_probability(level + 1, model.chain.below(level, key), x)
                expected[Fraction(row.get(x, 0), sum(row.values())), lower] += 1
        assert sum((Counter(pairs) for pairs in model.pairs[level].values()), Counter()) == expected
    assert (BEGIN, BEGIN) not in model.rows[0]


def test_weights_are_clamped() -> None:
    base = UniformBase(["a", "b"])
    sure = jelinek_mercer([((), "a")], [((), "a")] * 200, Chain(((),)), base)
    never = jelinek_mercer([((), "a")], [((), "b")] * 200, Chain(((),)), base)
    assert never.weights[0][0] == Fraction(1e-6)
    assert Fraction(1, 2) < sure.weights[0][0] <= Fraction(1 - 1e-6)


def test_deleted_interpolation_by_hand() -> None:
    folds = [[((), x) for x in "aab"], [((), x) for x in "abb"]]
    model = deleted_interpolation(folds, Chain(((),)), UniformBase(["a", "b", UNKNOWN]))
    low, high = Fraction(1, 3), Fraction(2, 3)
    assert Counter(model.pairs[0][0]) == {(low, low): 4, (high, low): 2}
    assert model.counts == [{(): {"a": 3, "b": 3}}]
    weight = model.weights[0][bucket(6)]
    assert model.probability((), "a") == weight / 2 + (1 - weight) / 3


def test_deleted_interpolation_leaves_the_fold_out_at_every_level() -> None:
    texts = [[["a", "b"], ["a"]], [["a", "c"], ["b", "b"]]]
    folds = [ngram_events(text, 2) for text in texts]
    model = deleted_interpolation(folds, ngram_chain(2), WORDS)
    weight = model.weights[1][0]
    expected: Counter[tuple[Fraction, Fraction]] = Counter()
    for held, rest in [folds, folds[::-1]]:
        for context, x in held:
            seen = [y for other, y in rest if other == context]
            if seen:
                words = [y for _, y in rest]
                lower = weight * Fraction(words.count(x), len(words)) + (1 - weight) / 5
                expected[Fraction(seen.count(x), len(seen)), lower] += 1
    assert Counter(model.pairs[0][0]) == expected


@pytest.mark.parametrize(("kind", "numbers"), [("count", (2, 2)), ("ratio", (2, 1))])
def test_kinds_of_buckets(kind, numbers: tuple[int, int]) -> None:
    """Both contexts are seen four times, one with a single outcome, the other with three."""
    train = [(("x",), y) for y in "aaaa"] + [(("y",), y) for y in "aabc"]
    held = [(("x",), "a")] * 3 + [(("x",), "b"), (("y",), "a"), (("y",), "b")]
    chain = Chain(((0,), ()))
    model = jelinek_mercer(train, held, chain, WORDS, buckets=kind, min_heldout=1)
    gammas = model.gamma(0, ("x",)), model.gamma(0, ("y",))
    assert gammas == tuple(1 - model.weights[0][number] for number in numbers)
    assert (gammas[0] == gammas[1]) == (kind == "count")


@given(SENTENCES, SENTENCES, SENTENCES)
@settings(max_examples=15)
def test_deleted_interpolation_sums_to_one(one: list, two: list, three: list) -> None:
    folds = [ngram_events(part, 2) for part in (one, two, three)]
    model = deleted_interpolation(folds, ngram_chain(2), WORDS, min_heldout=5)
    assert model.counts == level_counts(merge_counts(*folds), ngram_chain(2), "tokens")
    for level, key in observed(model):
        check_distribution(model, level, key)


# --- 10: sampling ---------------------------------------------------------------------------------


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


# --- 6 and TL 2: events ---------------------------------------------------------------------------

RULE_2 = "S-VBD^ROOT -> NP-NN VP-VBD^S ."
RULE_NP = "NP-NN -> DT-the NN"
RULE_VP = "VP-VBD^S -> VBD CD-DC NNTP"
F1: Tree = (
    "ROOT",
    (
        "S-VBD^ROOT",
        ("NP-NN", ("DT-the", "The"), ("NN", "index")),
        ("VP-VBD^S", ("VBD", "fell"), ("CD-DC", "109.85"), ("NNTP", "Monday")),
        (".", "."),
    ),
)


def test_treelet_events_of_figure_1() -> None:
    assert treelet_events(F1) == [
        TreeletEvent("N", ("ROOT", TOP, TOP), ("S-VBD^ROOT",)),
        TreeletEvent("N", ("S-VBD^ROOT", "ROOT", "ROOT -> S-VBD^ROOT"), ("NP-NN", "VP-VBD^S", ".")),
        TreeletEvent("N", ("NP-NN", "S-VBD^ROOT", RULE_2), ("DT-the", "NN")),
        TreeletEvent("T", ("DT-the", "NN", RULE_NP, BEGIN, BEGIN), "The"),
        TreeletEvent("T", ("NN", NONE, RULE_NP, "The", BEGIN), "index"),
        TreeletEvent("N", ("VP-VBD^S", "S-VBD^ROOT", RULE_2), ("VBD", "CD-DC", "NNTP")),
        TreeletEvent("T", ("VBD", "CD-DC", RULE_VP, "index", "The"), "fell"),
        TreeletEvent("T", ("CD-DC", "NNTP", RULE_VP, "fell", "index"), "109.85"),
        TreeletEvent("T", ("NNTP", NONE, RULE_VP, "109.85", "fell"), "Monday"),
        TreeletEvent("T", (".", NONE, RULE_2, "Monday", "109.85"), "."),
    ]


def test_events_by_kind() -> None:
    events = treelet_events(F1)
    assert terminal_events([F1]) == [(e.context, e.outcome) for e in events if e.kind == "T"]
    assert nonterminal_events([F1]) == [(e.context, e.outcome) for e in events if e.kind == "N"]
    assert tree_rules([F1]) == [(e.context[0], e.outcome) for e in events if e.kind == "N"]


PRETERMINALS = st.tuples(st.sampled_from(["N", "V"]), st.sampled_from(["x", "y"]))
PHRASES = st.recursive(
    PRETERMINALS,
    lambda inner: st.tuples(
        st.sampled_from(["A", "B"]), st.lists(inner, min_size=1, max_size=3)
    ).map(lambda pair: (pair[0], *pair[1])),
    max_leaves=6,
)


@given(PHRASES)
def test_number_of_events(tree: Tree) -> None:
    """TL 2.1: n phrasal nodes give n N-events, l words l T-events, words in order."""

    def walk(node: Tree) -> tuple[int, list[str]]:
        if isinstance(node[1], str):
            return 0, [node[1]]
        inner = [walk(child) for child in node[1:]]
        return 1 + sum(n for n, _ in inner), [word for _, words in inner for word in words]

    whole = ("ROOT", tree)
    phrasal, words = walk(whole)
    events = treelet_events(whole)
    assert sum(event.kind == "N" for event in events) == phrasal
    assert [event.outcome for event in events if event.kind == "T"] == words
    padded = [BEGIN, BEGIN, *words]
    before = [event.context[3:] for event in events if event.kind == "T"]
    assert before == [(padded[i + 1], padded[i]) for i in range(len(words))]


def test_ngram_events() -> None:
    assert ngram_events([["a", "b"]], 3) == [
        ((BEGIN, BEGIN), "a"),
        ((BEGIN, "a"), "b"),
        (("a", "b"), END),
    ]
    assert ngram_events([["a"]], 1) == [((), "a"), ((), END)]
    assert ngram_events([[]], 2) == [((BEGIN,), END)]


@pytest.mark.parametrize("word", [BEGIN, START, TOP, NONE, USYM, END])
def test_reserved_words(word: str) -> None:
    assert code_of(lambda: ngram_events([["a", word]], 2)) == "E_RESERVED_SYMBOL"
    assert code_of(lambda: treelet_events(("ROOT", ("N", word)))) == "E_RESERVED_SYMBOL"


@pytest.mark.parametrize("label", [BEGIN, START, STOP, TOP, NONE, USYM])
def test_reserved_labels(label: str) -> None:
    for tree in [("ROOT", (label, "a")), ("ROOT", (label, ("N", "a"))), (label, ("N", "a"))]:
        assert code_of(lambda tree=tree: treelet_events(tree)) == "E_RESERVED_SYMBOL"
    assert code_of(lambda: YieldBase([("S", ("N", label))])) == "E_RESERVED_SYMBOL"
    assert code_of(lambda: YieldBase([(label, ("N",))])) == "E_RESERVED_SYMBOL"


def test_unknown_word_is_legal() -> None:
    assert ngram_events([[UNKNOWN]], 2)[0] == ((BEGIN,), UNKNOWN)
    assert code_of(lambda: UniformBase(["a", BEGIN])) == "E_RESERVED_SYMBOL"


# --- 11: what is rejected -------------------------------------------------------------------------


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
