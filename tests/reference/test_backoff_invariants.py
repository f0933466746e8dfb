"""The back-off reference against the invariants of section 8."""

from __future__ import annotations

import random
from collections import Counter
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.reference.backoff import (
    BEGIN,
    BackoffModel,
    Chain,
    Context,
    Event,
    event_counts,
    fixed_discounts,
    kneser_ney,
    level_counts,
    merge_counts,
    modified_kneser_ney,
    ngram_chain,
    ngram_events,
)
from tests.reference.backoff_cases import (
    ESTIMATORS,
    PLAIN,
    PLAIN_EVENTS,
    SENTENCES,
    WORDS,
    check_distribution,
    observed,
    unsmoothed,
)


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
