"""Corpora, chains and strategies that the tests of the back-off reference share."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from fractions import Fraction

import pytest
from hypothesis import strategies as st
from tests.reference.backoff import (
    BEGIN,
    END,
    NONE,
    TOP,
    UNKNOWN,
    BackoffError,
    BackoffModel,
    Chain,
    Context,
    CountModel,
    Event,
    Tree,
    UniformBase,
    fixed_discounts,
    jelinek_mercer,
    kneser_ney,
    modified_kneser_ney,
)

HALF = Fraction(1, 2)
#: 7.4: the words of the terminals at N, by level.
TERMINALS_AT_N = [
    (5, "7/24 7/24 7/24 1/8"),
    (4, "19/48 19/48 7/48 1/16"),
    (3, "43/96 43/96 7/96 1/32"),
    (2, "91/192 91/192 7/192 1/64"),
    (1, "187/384 187/384 7/384 1/128"),
    (0, "187/384 187/384 7/384 1/128"),
]


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


CORPUS_71 = [["a", "b"], ["a", "b"], ["a", "c"]]
V_71 = ["a", "b", "c", END, UNKNOWN]
CHAIN_72 = Chain(((0, 1), (0,), ()))
EVENTS_72: dict[Event, int] = {
    (("VBD", "NP"), "saw"): 2,
    (("VBD", "NP"), "hit"): 1,
    (("VBD", "PP"), "saw"): 1,
    (("VBD", NONE), "slept"): 1,
    (("NN", NONE), "dog"): 1,
}
V_72 = ["saw", "hit", "slept", "dog", UNKNOWN]
RULES_73 = [("NP", ("DT", "NN"))] * 2 + [("NP", ("NN",)), ("PP", ("IN", "NN"))]
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
SENTENCES = st.lists(st.lists(st.sampled_from("abc"), max_size=5), min_size=1, max_size=7)
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


def check_distribution(model: BackoffModel, level: int, key: Context) -> None:
    """I1 and I2."""
    upper = model.level_distribution(level, key)
    lower = model.level_distribution(level + 1, model.chain.below(level, key))
    assert sum(upper.values()) == 1
    assert model.gamma(level, key) >= 0
    for x, p in upper.items():
        assert p >= model.gamma(level, key) * lower[x] >= 0
        assert p > 0


def random_rules(longest: int, most: int) -> st.SearchStrategy[list[tuple[str, tuple[str, ...]]]]:
    """Return a few rules of two parents, as many and as long as told."""
    children = st.lists(st.sampled_from(["A", "B", "X"]), min_size=1, max_size=longest)
    rule = st.tuples(st.sampled_from(["X", "Y"]), children.map(tuple))
    return st.lists(rule, min_size=1, max_size=most)
