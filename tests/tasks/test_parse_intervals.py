"""Intervals of bracket scores, and the comparison of two parsers."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from treelm.errors import CorpusFormatError, UsageError
from treelm.tasks.evaluate.comparison import compare_parses
from treelm.tasks.evaluate.parse_accuracy import (
    ParseAccuracy,
    SentenceParseScore,
    evaluate_parses,
    summarize,
)
from treelm.tasks.evaluate.parse_intervals import SHARES, bracket_shares, parse_intervals
from treelm.trees.profile import load_profile
from treelm.trees.tree import Tree

RIGHT = SentenceParseScore(3, 3, 3, 3, 4, 4, parsed=True)
WRONG = SentenceParseScore(3, 3, 0, 1, 4, 2, parsed=True)
NO_PARSE = SentenceParseScore(3, 0, 0, 0, 4, 0, parsed=False)


def corpus(*scores: SentenceParseScore) -> ParseAccuracy:
    return summarize(scores, load_profile("english"))


def random_corpus(seed: int, sentences: int) -> ParseAccuracy:
    random = np.random.default_rng(seed)
    scores = []
    for _ in range(sentences):
        tokens = int(random.integers(1, 50))
        gold, guessed = (int(number) for number in random.integers(1, tokens + 2, size=2))
        unlabelled = int(random.integers(0, min(gold, guessed) + 1))
        matched = int(random.integers(0, unlabelled + 1))
        tags = int(random.integers(0, tokens + 1))
        scores.append(
            SentenceParseScore(gold, guessed, matched, unlabelled, tokens, tags, parsed=True)
        )
    return corpus(*scores)


def test_every_share_has_an_interval() -> None:
    assert set(parse_intervals(random_corpus(1, 20), seed=0, rounds=10)) == set(SHARES)


def test_intervals_are_those_of_all_drawings() -> None:
    """Four sentences can be drawn in 256 ways; the percentiles of these are known."""
    sentences = [
        SentenceParseScore(10, 9, 7, 8, 12, 11, parsed=True),
        SentenceParseScore(5, 8, 2, 3, 7, 5, parsed=True),
        RIGHT,
        NO_PARSE,
    ]
    drawn = [corpus(*chosen) for chosen in product(sentences, repeat=4)]
    found = parse_intervals(corpus(*sentences), seed=3, rounds=200_000)
    for name in SHARES:
        values = np.sort([getattr(accuracy, name) for accuracy in drawn])
        for share, bound in zip((0.025, 0.975), found[name], strict=True):
            # The share of drawings seen differs from the true one by less than this.
            low, high = (values[int((share + off) * 255)] for off in (-0.003, 0.003))
            assert low - 1e-12 <= bound <= high + 1e-12, name


def test_interval_of_a_share_of_sentences_is_binomial() -> None:
    # 50 of 100: the 2.5 and 97.5 percentiles of the binomial distribution are 40 and 60.
    found = parse_intervals(corpus(*[RIGHT] * 50, *[WRONG] * 50), seed=0)
    for name in ("exact_match", "labelled_precision", "labelled_recall", "labelled_f1"):
        assert found[name] == pytest.approx((0.40, 0.60), abs=0.011)
    assert found["tagging_accuracy"] == pytest.approx((0.70, 0.80), abs=0.006)


@pytest.mark.parametrize("sentences", [1, 2, 5, 100])
@pytest.mark.parametrize("seed", range(5))
def test_intervals_hold_the_score(sentences: int, seed: int) -> None:
    accuracy = random_corpus(seed, sentences)
    for name, (low, high) in parse_intervals(accuracy, seed=seed, rounds=2000).items():
        assert 0.0 <= low <= getattr(accuracy, name) <= high <= 1.0


def test_equal_sentences_leave_nothing_to_chance() -> None:
    accuracy = corpus(*[SentenceParseScore(7, 6, 5, 6, 11, 10, parsed=True)] * 9)
    for name, interval in parse_intervals(accuracy, seed=0, rounds=50).items():
        assert interval == (getattr(accuracy, name),) * 2


def test_intervals_depend_on_sentences_rounds_and_seed_only() -> None:
    accuracy = random_corpus(1, 200)
    found = parse_intervals(accuracy, seed=5, rounds=500)
    assert found == parse_intervals(accuracy, seed=5, rounds=500)
    assert found == parse_intervals(corpus(*reversed(accuracy.per_sentence)), seed=5, rounds=500)
    assert found != parse_intervals(accuracy, seed=6, rounds=500)
    assert found != parse_intervals(accuracy, seed=5, rounds=501)


def test_undefined_shares_are_zero() -> None:
    shares = bracket_shares(np.zeros(1), np.zeros(1), np.ones(1))
    assert [float(share[0]) for share in shares] == [0.0, 0.0, 0.0]
    punctuation = Tree.from_string("(ROOT (S (. .)))")
    found = parse_intervals(evaluate_parses([punctuation], [punctuation]), seed=0, rounds=5)
    assert found["labelled_f1"] == found["tagging_accuracy"] == (0.0, 0.0)
    assert found["exact_match"] == (1.0, 1.0)


def test_nothing_to_draw_is_an_error() -> None:
    with pytest.raises(CorpusFormatError) as caught:
        parse_intervals(corpus(), seed=0)
    assert caught.value.code == "E_NO_DATA"
    with pytest.raises(UsageError, match="rounds"):
        parse_intervals(corpus(RIGHT), seed=0, rounds=0)


# -- two parsers ----------------------------------------------------------------------------


def test_compare_parses_by_hand() -> None:
    # A has all of 20 sentences right, B every second one: F1 is 1 and 1/2.
    a, b = corpus(*[RIGHT] * 20), corpus(*[RIGHT, WRONG] * 10)
    found = compare_parses(a, b, seed=0, rounds=999)
    assert (found.a, found.b, found.difference) == (1.0, 0.5, 0.5)
    assert found.interval == pytest.approx((0.3, 0.7), abs=0.06)
    assert found.p_value == 0.002
    assert (found.better, found.n, found.items) == ("A", 20, "sentences")
    assert found.details["exact_match_b"] == 0.5


def test_compare_parses_turns_round() -> None:
    a, b = corpus(*[RIGHT] * 7, *[WRONG] * 5), corpus(*[WRONG] * 2, *[RIGHT] * 4, *[NO_PARSE] * 6)
    there, back = compare_parses(a, b, seed=1), compare_parses(b, a, seed=2)
    assert there.difference == -back.difference > 0
    assert there.interval == pytest.approx((-back.interval[1], -back.interval[0]), abs=0.03)
    assert there.difference == a.labelled_f1 - b.labelled_f1


def test_compare_parses_of_one_parser_with_itself() -> None:
    a = random_corpus(4, 30)
    found = compare_parses(a, a, seed=0, rounds=100)
    assert (found.difference, found.interval, found.p_value) == (0.0, (0.0, 0.0), 1.0)
    assert found.better == "neither"


def test_compare_parses_of_other_sentences_is_an_error() -> None:
    other = SentenceParseScore(4, 3, 3, 3, 4, 4, parsed=True)
    for b in (corpus(RIGHT), corpus(RIGHT, other)):
        with pytest.raises(CorpusFormatError, match="same gold trees") as caught:
            compare_parses(corpus(RIGHT, RIGHT), b, seed=0)
        assert caught.value.code == "E_LENGTH_MISMATCH"
    with pytest.raises(CorpusFormatError) as caught:
        compare_parses(corpus(), corpus(), seed=0)
    assert caught.value.code == "E_NO_DATA"
