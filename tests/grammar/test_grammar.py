"""Grammars: what fits together, what adds up, what is refused."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from tests.grammar.small_grammars import grammars, make_grammar, make_lexicon

from treelm.errors import EstimationError, ModelFileError, UsageError
from treelm.grammar.chart import ChartParser
from treelm.grammar.coarse_to_fine import ancestors, expected_subcategories, project
from treelm.grammar.grammar import Grammar
from treelm.grammar.lexicon import Lexicon
from treelm.grammar.parser_options import ParserOptions
from treelm.grammar.scored_tree import ParseStatus


def latent() -> Grammar:
    """Return the grammar of one rule with which the worked examples of training begin."""
    return make_grammar(
        ["ROOT", "A"], 1, {}, {(0, 1, 1): [0.1, 0.4, 0.3, 0.2]}, [1, 2], [[0, 1, 1]]
    )


def test_blocks_have_the_shape_of_their_rule() -> None:
    grammar = latent()
    assert grammar.binary_block(0).shape == (1, 2, 2)
    assert grammar.binary_block(0)[0, 0, 1] == 0.4
    assert grammar.total_substates == 3
    assert grammar.is_latent
    assert grammar.is_normalized()


@given(grammars())
def test_rule_sums_are_those_of_the_blocks(pair: tuple[Grammar, Lexicon]) -> None:
    grammar = pair[0]
    sums = np.zeros(int(grammar.substate_starts[grammar.phrasal]))
    for rule, (parent, _) in enumerate(grammar.unary_rules.tolist()):
        first = grammar.substate_starts[parent]
        block = grammar.unary_block(rule).sum(axis=1)
        sums[first : first + len(block)] += block
    for rule, (parent, _, _) in enumerate(grammar.binary_rules.tolist()):
        first = grammar.substate_starts[parent]
        block = grammar.binary_block(rule).sum(axis=(1, 2))
        sums[first : first + len(block)] += block
    assert grammar.rule_sums() == pytest.approx(sums)


def test_what_does_not_add_up_is_named() -> None:
    grammar = make_grammar(["ROOT", "A"], 1, {(0, 1): 0.5}, {})
    with pytest.raises(EstimationError, match=r"ROOT, subcategory 0, sum to 0\.5") as caught:
        grammar.check_normalized()
    assert caught.value.code == "E_NOT_NORMALIZED"


@pytest.mark.parametrize(
    "parts",
    [
        {"symbols": ("S", "A")},
        {"symbols": ("ROOT", "ROOT")},
        {"symbols": ("ROOT", "")},
        {"phrasal": 0},
        {"phrasal": 3},
        {"substates": np.array([2, 2], dtype=np.int32)},
        {"substates": np.array([1, 0], dtype=np.int32)},
        {"substates": np.array([1, 2], dtype=np.int64)},
        {"binary_rules": np.array([[0, 1, 2]], dtype=np.int32)},
        {"binary_rules": np.array([[0, 0, 1]], dtype=np.int32)},
        {"binary_rules": np.array([[1, 1, 1]], dtype=np.int32)},
        {"binary_rules": np.array([[0, 1]], dtype=np.int32)},
        {"binary_weights": np.ones(3)},
        {"binary_weights": np.array([0.1, 0.4, 0.3, np.nan])},
        {"binary_weights": np.array([0.1, 0.4, 0.3, -0.2])},
        {"unary_rules": np.array([[0, 1], [0, 1]], dtype=np.int32), "unary_weights": np.ones(4)},
        {"split_tree": (np.array([0, 1], dtype=np.int32),)},
        {"split_tree": (np.array([0, 1, 0], dtype=np.int32),)},
        {"split_tree": (np.array([0, 1, 9], dtype=np.int32),)},
    ],
)
def test_parts_that_do_not_fit_are_refused(parts: dict[str, object]) -> None:
    good = latent()
    fields = {name: getattr(good, name) for name in Grammar.__dataclass_fields__}
    with pytest.raises(ModelFileError) as caught:
        Grammar(**{**fields, **parts})
    assert caught.value.code == "E_GRAMMAR"


def test_expected_subcategories_solve_their_equation() -> None:
    grammar = make_grammar(["ROOT", "S", "T"], 2, {(0, 1): 1.0, (1, 2): 0.75}, {(1, 1, 2): 0.25})
    counts = expected_subcategories(grammar)
    assert counts == pytest.approx([1.0, 4 / 3, 4 / 3])


def test_projection_weighs_parents_and_adds_children() -> None:
    """Two halves of N: ROOT -> N_0 (.75), N_1 (.25); they differ in their words."""
    grammar = make_grammar(["ROOT", "N"], 1, {(0, 1): [0.75, 0.25]}, {}, [1, 2], [[0, 1, 1]])
    lexicon = make_lexicon(grammar, {("a", 1): [1.0, 0.2], ("b", 1): [0.0, 0.8]})
    plain, words = project(grammar, lexicon, 0)
    assert plain.unary_weights == pytest.approx([1.0])
    assert plain.split_tree == ()
    a, b = words.vocabulary.encode(["a", "b"]).tolist()
    assert words.scores(a)[0][1] == pytest.approx([0.8])
    assert words.scores(b)[0][1] == pytest.approx([0.2])
    same, _ = project(grammar, lexicon, 1)
    assert same.unary_weights == pytest.approx(grammar.unary_weights)
    with pytest.raises(UsageError, match="no level 2"):
        ancestors(grammar, 2)


def test_unary_cycles_are_summed_and_endless_ones_refused() -> None:
    """ROOT -> X, X -> Y (.5) | T (.5), Y -> X (.4) | T (.6): the sum over all chains is 1."""
    rules = {(0, 1): 1.0, (1, 2): 0.5, (1, 3): 0.5, (2, 1): 0.4, (2, 3): 0.6}
    grammar = make_grammar(["ROOT", "X", "Y", "T"], 3, rules, {})
    parser = ChartParser(grammar, make_lexicon(grammar, {("a", 3): 1.0}))
    assert parser.log_probs([["a"]])[0] == pytest.approx(0.0, abs=1e-12)
    parse = parser.parse([["a"]])[0]
    assert parse is not None
    assert str(parse.tree) == "(ROOT (X (T a)))"
    rules |= {(1, 2): 1.0, (2, 1): 1.0}
    grammar = make_grammar(["ROOT", "X", "Y", "T"], 3, rules, {})
    with pytest.raises(EstimationError, match="do not grow less probable"):
        ChartParser(grammar, make_lexicon(grammar, {("a", 3): 1.0})).log_probs([["a"]])


def test_worked_example_of_two_parses() -> None:
    """S -> A B (.6) | B A (.4); x y: .21 + .06 = .27."""
    grammar = make_grammar(
        ["ROOT", "S", "A", "B"], 2, {(0, 1): 1.0}, {(1, 2, 3): 0.6, (1, 3, 2): 0.4}
    )
    lexicon = make_lexicon(grammar, {("a", 2): 0.7, ("b", 2): 0.3, ("a", 3): 0.5, ("b", 3): 0.5})
    parser = ChartParser(grammar, lexicon, ParserOptions(decoding="viterbi"))
    assert parser.log_probs([["a", "b"]])[0] == pytest.approx(math.log(0.27))
    parse = parser.parse([["a", "b"]])[0]
    assert parse is not None
    assert parse.score == pytest.approx(math.log(0.21), abs=1e-6)
    assert str(parse.tree) == "(ROOT (S (A a) (B b)))"


def test_latent_worked_example() -> None:
    """One tree (ROOT (A a) (A b)): P = .335, left A_0 .8865672, right A_1 .9552239."""
    grammar = latent()
    lexicon = make_lexicon(grammar, {("a", 1): [0.9, 0.2], ("b", 1): [0.1, 0.8]})
    log_prob, rows, _, expected = ChartParser(grammar, lexicon).scorer.items(
        lexicon.vocabulary.encode(["a", "b"])
    )
    assert math.exp(log_prob) == pytest.approx(0.335)
    found = dict(zip(map(tuple, rows.tolist()), expected.tolist(), strict=True))
    assert found[0, 1, 1, 0] == pytest.approx(0.8865672, abs=1e-7)
    assert found[1, 2, 1, 1] == pytest.approx(0.9552239, abs=1e-7)


def test_sentences_without_a_tree_get_a_flat_one() -> None:
    grammar = make_grammar(["ROOT", "T", "U"], 1, {(0, 1): 1.0}, {})
    lexicon = make_lexicon(grammar, {("a", 1): 1.0, ("a", 2): 0.5})
    parser = ChartParser(grammar, lexicon, ParserOptions(max_words=3, long="flat"))
    empty, one, two, unknown, long = parser.parse([[], ["a"], ["a", "a"], ["zz"], ["a"] * 4])
    assert empty is None
    assert one is not None
    assert one.status == ParseStatus.PARSED
    assert two is not None
    assert two.status == ParseStatus.FAILED
    assert two.is_fallback
    assert str(two.tree) == "(ROOT (T a) (T a))"
    assert unknown is not None
    assert unknown.tree.words == ("zz",)
    assert long is not None
    assert long.status == ParseStatus.TOO_LONG
    assert long.tree.words == ("a",) * 4
