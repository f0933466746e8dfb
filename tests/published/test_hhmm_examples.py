"""The worked examples of the HHMM, each number to the last digits.

Grammars and values were computed with exact rational arithmetic from the equations of Schwartz et
al. (2011) and checked there against inside and prefix probabilities.
"""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from tests.models.hhmm_cases import PRESIDENT, RECURSIVE, ROOTS, exact_model

from treelm.models.hhmm.bounded import bound
from treelm.models.hhmm.model import HhmmModel
from treelm.models.hhmm.progeny import left_progeny
from treelm.models.hhmm.rules import grammar_from_lines

Stacks = dict[str, Fraction]


def close(value: float, expected: Fraction) -> bool:
    return abs(value - float(expected)) <= 1e-12 * float(expected)


def walk(model: HhmmModel, text: str) -> list[tuple[float, dict[str, float]]]:
    """Return the prefix probability after each word, and the stacks with their forward weights."""
    state = model.initial()
    found = []
    for word in text.split():
        state = model.advance(state, word).state  # type: ignore[assignment]
        mass = math.exp(state.prefix_mass)
        found.append((mass, {str(s): s.weight * mass for s in model.stacks(state, 100)}))
    return found


PRESIDENT_STACKS: list[tuple[Fraction, Stacks]] = [
    (Fraction(1, 2), {"DT": Fraction(1, 2)}),
    (Fraction(1, 4), {"NP": Fraction(1, 4)}),
    (Fraction(1, 4), {"S/VP; VB": Fraction(1, 4)}),
    (Fraction(1, 8), {"S/NP; DT": Fraction(1, 16), "S/VP; VP/NP; DT": Fraction(1, 16)}),
    (Fraction(1, 16), {"S": Fraction(1, 32), "S/VP; VP": Fraction(1, 32)}),
    (Fraction(1, 32), {"S/PP; IN": Fraction(1, 64), "S/VP; VP/PP; IN": Fraction(1, 64)}),
    (Fraction(1, 32), {"S": Fraction(1, 64), "S/VP; VP": Fraction(1, 64)}),
]


@pytest.mark.parametrize("depth", [2, 3, 4, 6])
def test_president_has_the_stores_and_prefixes_of_the_table(depth: int) -> None:
    model = exact_model(PRESIDENT, depth)
    found = walk(model, "The president meets the board on Friday")
    for (mass, stacks), (expected, expected_stacks) in zip(found, PRESIDENT_STACKS, strict=True):
        assert close(mass, expected)
        assert stacks.keys() == expected_stacks.keys()
        assert all(close(stacks[name], value) for name, value in expected_stacks.items())
    rows = model.surprisal("The president meets the board on Friday", eos=True)
    assert [round(row.surprisal, 12) for row in rows] == [1, 1, 0, 1, 1, 1, 0, 1]
    assert close(math.exp(model.score("The president meets the board").log_prob), Fraction(1, 32))
    state = model.score_phrase(model.initial(), "The president meets the board").state
    assert close(math.exp(model.finish(state)), Fraction(1, 2))


def test_president_needs_two_elements() -> None:
    model = exact_model(PRESIDENT, 1)
    assert close(math.exp(model.score("The president meets the board").log_prob), Fraction(1, 16))
    words = model.score("The president meets the board on Friday").words or ()
    assert [math.isinf(row.log_prob) for row in words] == [False] * 5 + [True, True]


def test_president_states_recombine() -> None:
    model = exact_model(PRESIDENT, 2)
    start = model.initial()

    def after(text: str) -> bytes:
        return model.key(model.score_phrase(start, text).state)

    assert after("The president") == after("the president")
    assert after("The president meets the board") == after("The president meets the president")
    assert after("The president") != after("The president meets")


RECURSIVE_TABLE = {
    1: {
        "L1 NP": Fraction(12, 13),
        "TOP": Fraction(27, 52),
        "rule": Fraction(3, 16),
        "E1 NP": Fraction(16, 13),
        "the dog saw": Fraction(13, 32),
        "the dog saw the cat </s>": Fraction(13, 64),
        "the dog near the cat saw the cat </s>": Fraction(39, 2048),
        "the dog saw the cat near the dog </s>": Fraction(0),
    },
    2: {
        "L1 NP": Fraction(120, 121),
        "TOP": Fraction(108, 121),
        "rule": Fraction(39, 160),
        "E1 NP": Fraction(160, 121),
        "the dog saw": Fraction(121, 320),
        "the dog saw the cat </s>": Fraction(121, 1024),
        "the dog near the cat saw the cat </s>": Fraction(363, 32768),
        "the dog saw the cat near the dog </s>": Fraction(363, 16384),
    },
    3: {
        "L1 NP": Fraction(1092, 1093),
        "TOP": Fraction(1080, 1093),
        "rule": Fraction(363, 1456),
        "E1 NP": Fraction(1456, 1093),
        "the dog saw": Fraction(1093, 2912),
        "the dog saw the cat </s>": Fraction(1093, 10240),
        "the dog near the cat saw the cat </s>": Fraction(3279, 327680),
        "the dog saw the cat near the dog </s>": Fraction(3279, 163840),
    },
    4: {
        "L1 NP": Fraction(9840, 9841),
        "TOP": Fraction(756, 757),
        "rule": Fraction(3279, 13120),
        "E1 NP": Fraction(13120, 9841),
        "the dog saw": Fraction(9841, 26240),
        "the dog saw the cat </s>": Fraction(757, 7168),
        "the dog near the cat saw the cat </s>": Fraction(2271, 229376),
        "the dog saw the cat near the dog </s>": Fraction(2271, 114688),
    },
}


@pytest.mark.parametrize("depth", RECURSIVE_TABLE)
def test_left_recursion_has_the_values_of_the_table(depth: int) -> None:
    expected = RECURSIVE_TABLE[depth]
    bounded = bound(grammar_from_lines(RECURSIVE).rules, depth)
    ids = {name: number for number, name in enumerate(bounded.rules.symbols)}
    assert close(bounded.fits_right[depth, ids["NP"]], Fraction(3, 4))
    assert close(bounded.fits_right[depth, ids["VP"]], Fraction(9, 16))
    assert close(bounded.fits_left[1, ids["NP"]], expected["L1 NP"])
    assert close(bounded.fits_left[1, ids["S"]], expected["TOP"])
    assert close(bounded.fitting_share, expected["TOP"])
    rule = [ids["NP"], ids["NP"], ids["PP"]]
    place = bounded.rules.rules.tolist().index(rule)
    assert close(bounded.left[1, place], expected["rule"])
    assert close(left_progeny(bounded).expected(1, 0, ids["NP"]), expected["E1 NP"])
    model = exact_model(RECURSIVE, depth)
    for text, probability in expected.items():
        if text.startswith("the"):
            words = text.removesuffix(" </s>")
            score = model.score(words, eos=text.endswith("</s>"))
            if probability:
                assert close(math.exp(score.log_prob), probability)
            else:
                assert score.log_prob == -math.inf


def test_left_recursion_has_the_stores_of_the_text() -> None:
    found = walk(exact_model(RECURSIVE, 2), "the dog saw the cat")
    expected = {"S/NP; D": Fraction(1573, 5120), "S/VP; VP/NP; D": Fraction(363, 5120)}
    assert found[3][1].keys() == expected.keys()
    assert all(close(found[3][1][name], value) for name, value in expected.items())
    expected = {
        "S": Fraction(121, 1024),
        "S/NP; NP": Fraction(363, 10240),
        "S/VP; VP": Fraction(363, 10240),
    }
    assert found[4][1].keys() == expected.keys()
    assert all(close(found[4][1][name], value) for name, value in expected.items())


def test_left_recursion_has_the_progeny_of_the_text() -> None:
    bounded = bound(grammar_from_lines(RECURSIVE).rules, 2)
    ids = {name: number for number, name in enumerate(bounded.rules.symbols)}
    progeny = left_progeny(bounded)
    assert close(progeny.expected(2, ids["VP"], ids["V"]), Fraction(1))
    assert close(progeny.expected(2, ids["VP"], ids["VP"]), Fraction(3, 13))
    rules = bounded.rules.rules.tolist()
    for left, right, expected in (("V", "NP", Fraction(13, 16)), ("VP", "PP", Fraction(3, 16))):
        place = rules.index([ids["VP"], ids[left], ids[right]])
        assert close(bounded.right[1, place], expected)


def test_a_beam_of_one_can_lose_the_sentence() -> None:
    model = exact_model(RECURSIVE, 2, beam_width=1)
    masses = [mass for mass, _ in walk(model, "the dog saw the cat")]
    expected = [
        Fraction(1),
        Fraction(1, 2),
        Fraction(121, 320),
        Fraction(1573, 5120),
        Fraction(121, 1024),
    ]
    assert all(close(mass, value) for mass, value in zip(masses, expected, strict=True))
    assert model.score("the dog saw the cat near", eos=False).log_prob == -math.inf


def test_the_best_tree_of_a_tie_is_the_first_by_its_brackets() -> None:
    (parse,) = exact_model(RECURSIVE, 2).parse("the dog saw the cat near the dog")
    assert str(parse.tree) == (
        "(ROOT (S (NP (D the) (N dog)) (VP (V saw) (NP (NP (D the) (N cat)) "
        "(PP (P near) (NP (D the) (N dog)))))))"
    )
    assert close(math.exp(parse.score), Fraction(363, 32768))
    assert close(math.exp(parse.sentence_log_prob), Fraction(363, 16384))


@pytest.mark.parametrize(
    ("text", "whole", "prefix"),
    [
        ("p", Fraction(200, 1191), None),
        ("q", Fraction(100, 1191), None),
        ("p q", Fraction(75, 397), Fraction(116, 397)),
        ("p p q", Fraction(475, 9528), Fraction(413, 4764)),
        ("q p q p", Fraction(11075, 4116096), None),
    ],
)
def test_several_roots(text: str, whole: Fraction, prefix: Fraction | None) -> None:
    model = exact_model(ROOTS, 2)
    assert close(math.exp(model.score(text).log_prob), whole)
    if prefix is not None:
        assert close(math.exp(model.score(text, eos=False).log_prob), prefix)


def test_a_lost_parser_starts_anew() -> None:
    model = exact_model(PRESIDENT, 2, robust_epsilon=1e-5)
    log_prob, state = model.advance(model.initial(), "president")
    assert [(str(stack), stack.weight) for stack in model.stacks(state)] == [("DT", 1.0)]
    assert log_prob == pytest.approx(math.log(1e-5 * 0.5 * (0.5 / 5)))
    assert state.prefix_mass == log_prob  # type: ignore[attr-defined]
    assert model.stats()["dead_restarts"] == 1
