"""The back-off reference: Jelinek-Mercer (section 4, I10)."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.reference.backoff import (
    BEGIN,
    UNKNOWN,
    Chain,
    UniformBase,
    bucket,
    deleted_interpolation,
    em_step,
    em_weights,
    jelinek_mercer,
    level_counts,
    log_likelihood,
    merge_buckets,
    merge_counts,
    ngram_chain,
    ngram_events,
)
from tests.reference.backoff_cases import (
    CORPUS_71,
    HALF,
    SENTENCES,
    WORDS,
    check_distribution,
    fractions,
    observed,
)


def test_em_step_oracle() -> None:
    pairs = [(HALF, Fraction(1, 5)), (Fraction(0), Fraction(1, 10)), (Fraction(1), HALF)]
    responsibilities = [em_step(HALF, [pair]) for pair in pairs]
    assert responsibilities == fractions("5/7 0 2/3")
    assert em_step(HALF, pairs) == Fraction(29, 63)
    assert em_weights(pairs)[:2] == pytest.approx([0.5, 0.460317], abs=5e-7)


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
