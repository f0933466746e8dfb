"""The worked example of the structured language model, in all its variants."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from tests.models.slm_cases import (
    Example,
    as_fractions,
    example_model,
    example_parts,
    shares,
    text_of,
    trusting,
)
from tests.reference.slm import posteriors as slow_posteriors

from treelm.models.composite.em import Data, n_best_step, posteriors

T1, T2 = ("bark S",), ("bark V", "dogs N")
T3, T4 = ("bark NP",), ("bark N", "dogs N")
WORDS = ("dogs", "bark")


def test_partial_parses_and_their_shares() -> None:
    model = example_model()
    assert as_fractions(shares(model, "dogs bark")) == {
        T1: Fraction(1, 2),
        T2: Fraction(1, 4),
        T3: Fraction(1, 8),
        T4: Fraction(1, 8),
    }
    log_probs = [row.log_prob for row in model.surprisal("dogs bark", eos=True)]
    assert np.exp(log_probs) == pytest.approx([1 / 2, 1 / 2, 1 / 2])
    assert math.exp(-sum(log_probs) / 3) == pytest.approx(2.0)


def test_slow_version_agrees() -> None:
    slow = Example().slow()
    assert np.exp(slow.log_probs(WORDS)) == pytest.approx([1 / 2, 1 / 2, 1 / 2])
    parses = slow.parses(WORDS, 4)
    assert [math.exp(parse.score) for parse in parses] == pytest.approx(
        [3 / 32, 1 / 64, 1 / 128, 1 / 128]
    )
    assert slow_posteriors(parses) == pytest.approx([3 / 4, 1 / 8, 1 / 16, 1 / 16])


def test_sum_of_parses_is_the_probability_of_the_sentence() -> None:
    lists = example_parts().best_parses(text_of(["dogs bark"]), count=10)
    assert np.exp(lists.log_probs) == pytest.approx([3 / 32, 1 / 64, 1 / 128, 1 / 128])
    assert np.exp(lists.log_probs).sum() == pytest.approx(1 / 8)
    weights, log_likelihoods = posteriors(lists)
    assert weights == pytest.approx([3 / 4, 1 / 8, 1 / 16, 1 / 16])
    assert math.exp(log_likelihoods[0]) == pytest.approx(1 / 8)


def test_stack_size_1() -> None:
    model = example_model(stack_size=1)
    assert as_fractions(shares(model, "dogs bark")) == {T2: Fraction(1, 3), T1: Fraction(2, 3)}
    assert math.exp(model.surprisal("dogs bark", eos=True)[-1].log_prob) == pytest.approx(7 / 12)
    slow = Example().slow(stack_size=1)
    assert math.exp(slow.log_probs(WORDS)[-1]) == pytest.approx(7 / 12)


def test_threshold() -> None:
    model = example_model(threshold=math.log(3.5))
    assert as_fractions(shares(model, "dogs bark")) == {
        T1: Fraction(4, 7),
        T2: Fraction(2, 7),
        T4: Fraction(1, 7),
    }
    assert math.exp(model.surprisal("dogs bark", eos=True)[-1].log_prob) == pytest.approx(15 / 28)
    slow = Example().slow(threshold=math.log(3.5))
    assert math.exp(slow.log_probs(WORDS)[-1]) == pytest.approx(15 / 28)


def test_one_round_of_n_best_em() -> None:
    parts = example_parts(n_best=4)
    made = n_best_step(
        parts,
        Data(text_of(["dogs bark"])),
        None,
        None,
        fit=lambda tables, check, threads: {name: trusting(t) for name, t in tables.items()},
    )
    assert math.exp(made.log_likelihood) == pytest.approx(1 / 8)
    dogs, bark, start = 1, 2, 4
    tag_n, tag_v, boundary = 0, 1, 4
    adjoin = made.parts.models["constructor"].probs([[tag_v, tag_n, bark, dogs]], [4])
    assert made.parts.shape.codes.moves[4] == "adjoin-right S"
    assert adjoin == pytest.approx([6 / 7])
    tag = made.parts.models["tagger"].probs([[bark, tag_n, boundary]], [tag_v])
    assert tag == pytest.approx([7 / 8])
    assert start == made.parts.shape.words + 1


def test_list_of_2() -> None:
    lists = example_parts().best_parses(text_of(["dogs bark"]), count=2)
    assert posteriors(lists)[0] == pytest.approx([6 / 7, 1 / 7])
