"""Lists of trees against the enumeration of all derivations."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from tests.grammar.small_grammars import (
    Pair,
    few_examples,
    grammars,
    make_grammar,
    make_lexicon,
    sentences,
)
from tests.reference.derivations import derivations, values_by_derivation, values_by_rules

from treelm.errors import UsageError
from treelm.grammar.chart import ChartParser
from treelm.grammar.grammar import Grammar
from treelm.grammar.k_best import KBest, KBestParser, text_of
from treelm.grammar.parser_options import ParserOptions
from treelm.grammar.scored_tree import ParseStatus
from treelm.trees.tree import Tree

QUICK = few_examples(25)
DECODINGS = ("max_rule_product", "max_rule_sum", "variational", "viterbi")


def list_of(pair: Pair, words: list[str], k: int, **options: object) -> KBest:
    chosen = ParserOptions(pruning="none", max_unary=6, **options)  # type: ignore[arg-type]
    found = KBestParser(ChartParser(*pair, chosen)).parse([words], k)[0]
    assert found is not None
    return found


def visible(grammar: Grammar, shape: tuple, words: list[str]) -> list[Tree]:
    """Return the trees that stand for a node: itself, or what is below if it is hidden."""
    symbol, first, _, children = shape
    name = grammar.symbols[symbol]
    if not children:
        return [Tree(name, words[first])]
    below = [tree for child in children for tree in visible(grammar, child, words)]
    return below if name.startswith("@") else [Tree(name, below)]


def all_values(pair: Pair, words: list[str], decoding: str) -> dict[str, float]:
    """Return the highest value of every visible tree."""
    found = derivations(*pair, pair[1].vocabulary.encode(words).tolist())
    assume(found and len(found) < 3000)
    assume(math.fsum(weight for weight, _ in found) > 1e-12)
    values = (
        values_by_derivation(found) if decoding == "viterbi" else values_by_rules(found, decoding)
    )
    best: dict[str, float] = {}
    for shape, value in values.items():
        (tree,) = visible(pair[0], shape, words)
        best[str(tree)] = max(best.get(str(tree), -math.inf), value)
    return best


def hide(pair: Pair, hidden: int) -> Pair:
    """Return a grammar some of whose symbols no tree shows."""
    names = tuple(
        f"@{name}" if 1 <= place < pair[0].phrasal and hidden >> place & 1 else name
        for place, name in enumerate(pair[0].symbols)
    )
    return replace(pair[0], symbols=names), pair[1]


@pytest.mark.parametrize("decoding", DECODINGS)
@given(grammars(), sentences, st.integers(0, 7))
@QUICK
def test_lists_hold_exactly_all_trees(
    decoding: str, pair: Pair, words: list[str], hidden: int
) -> None:
    pair = hide(pair, hidden)
    expected = all_values(pair, words, decoding)
    assume(len(expected) <= 100)
    found = list_of(pair, words, 100, decoding=decoding)
    got = {str(tree.tree): tree.score for tree in found}
    assert len(got) == len(found)
    assert got.keys() == expected.keys()
    for tree, score in got.items():
        assert score == pytest.approx(expected[tree], rel=1e-4, abs=1e-4)
    assert not found.is_limited
    assert (np.diff(found.scores) <= 0).all()
    for k in (1, 2, 5):
        assert text_of([list_of(pair, words, k, decoding=decoding)]) == text_of([found.first(k)])


@pytest.mark.parametrize("decoding", DECODINGS)
@given(grammars(most_substates=3), sentences)
@QUICK
def test_the_first_tree_is_the_best(decoding: str, pair: Pair, words: list[str]) -> None:
    options = ParserOptions(pruning="none", decoding=decoding)  # type: ignore[arg-type]
    parser = ChartParser(*pair, options)
    best, found = parser.parse([words])[0], KBestParser(parser).parse([words], 10)[0]
    assert best is not None
    assert found is not None
    assert (best.status, best.score, best.sentence_log_prob) == (
        found.status,
        found[0].score,
        found.log_prob,
    )
    if not best.is_fallback and (len(found) == 1 or found.scores[1] < found.scores[0]):
        assert str(best.tree) == str(found[0].tree)


def attachment() -> Pair:
    """Return a grammar in which every way to bracket a sentence is a tree."""
    grammar = make_grammar(
        ["ROOT", "P", "T"],
        2,
        {(0, 1): 1.0},
        {(1, 1, 1): 0.2, (1, 1, 2): 0.1, (1, 2, 2): 0.1, (1, 2, 1): 0.1},
    )
    return grammar, make_lexicon(grammar, {("a", 2): 0.5, ("b", 2): 0.25, ("c", 2): 0.25})


def cyclic() -> Pair:
    """Return a grammar whose unary rules go round in circles."""
    rules = {
        (0, 1): 0.9,
        (1, 2): 0.4,
        (2, 1): 0.4,
        (2, 3): 0.3,
        (1, 3): 0.2,
        (0, 2): 0.1,
        (3, 1): 0.1,
    }
    grammar = make_grammar(
        ["ROOT", "P", "Q", "R", "T"],
        4,
        {**rules, (3, 4): 0.5, (1, 4): 0.3},
        {(1, 1, 2): 0.1, (2, 1, 4): 0.1},
    )
    return grammar, make_lexicon(grammar, {("a", 4): 0.5, ("b", 4): 0.5})


def test_a_worked_example() -> None:
    grammar = make_grammar(
        ["ROOT", "S", "A", "B"], 2, {(0, 1): 1.0}, {(1, 2, 3): 0.6, (1, 3, 2): 0.4}
    )
    scores = {("a", 2): 0.7, ("b", 2): 0.3, ("a", 3): 0.5, ("b", 3): 0.5}
    found = list_of((grammar, make_lexicon(grammar, scores)), ["a", "b"], 3, decoding="viterbi")
    assert np.exp(found.scores) == pytest.approx([0.21, 0.06])
    assert [str(tree.tree) for tree in found] == [
        "(ROOT (S (A a) (B b)))",
        "(ROOT (S (B a) (A b)))",
    ]
    assert math.exp(found.log_prob) == pytest.approx(0.27)


@pytest.mark.parametrize("decoding", DECODINGS)
def test_chains_go_round_no_circle_and_stay_short(decoding: str) -> None:
    def chains(tree: Tree) -> Iterator[list[str]]:
        for node in tree.preorder():
            chain = [str(node.label)]
            while len(node.children) == 1:
                node = node.children[0]  # noqa: PLW2901
                chain.append(str(node.label))
            yield chain

    parser = ChartParser(
        *cyclic(),
        ParserOptions(pruning="none", decoding=decoding, max_unary=3),  # type: ignore[arg-type]
    )
    for words in (["a"], ["a", "b"], ["a", "b", "a"]):
        found = KBestParser(parser).parse([words], 2000)[0]
        assert found is not None
        assert not found.is_limited
        assert (np.diff(found.scores) <= 0).all()
        assert len({str(tree.tree) for tree in found}) == len(found) > 3
        for parsed in found:
            for chain in chains(parsed.tree):
                assert len(set(chain)) == len(chain)
                assert len(chain) - 1 <= 3 + (chain[0] == "ROOT")
        best = parser.parse([words])[0]
        assert best is not None
        assert best.score == found[0].score


def test_all_bracketings_are_counted() -> None:
    catalan = math.comb(14, 7) // 8
    found = list_of(attachment(), ["a"] * 8, 10_000, decoding="viterbi")
    assert len({str(tree.tree) for tree in found}) == len(found)
    # Of each pair of neighbours the left, the right or both may be phrases: at most 2 trees less.
    assert len(found) == catalan


def test_lists_do_not_depend_on_threads() -> None:
    words = [list("abcabcabc")[:length] for length in range(1, 10)] * 3
    parser = KBestParser(ChartParser(*attachment()))
    lists = [parser.parse(words, 200, threads=threads) for threads in (1, 2, 3)]
    assert text_of(lists[0]) == text_of(lists[1]) == text_of(lists[2])


def test_the_limit_on_steps_is_kept_and_told() -> None:
    found = list_of(attachment(), ["a"] * 10, 500, k_max_pops=50)
    assert found.is_limited
    assert 1 <= len(found) <= 50
    whole = list_of(attachment(), ["a"] * 10, 500)
    assert not whole.is_limited
    assert whole.first(len(found)).scores.tolist() == found.scores.tolist()


def test_long_sentences_are_safe() -> None:
    found = list_of(attachment(), ["a"] * 200, 300, decoding="viterbi")
    assert len(found) == 300
    assert found[299].tree.words == ("a",) * 200
    assert np.isfinite(found.scores).all()


def test_what_has_no_tree_gets_a_flat_one() -> None:
    options = ParserOptions(max_words=3, long="flat")
    none, flat, long = KBestParser(ChartParser(*attachment(), options)).parse(
        [[], ["d"], ["a"] * 4], 5
    )
    assert none is None
    assert flat is not None
    assert long is not None
    assert (flat.status, long.status) == (ParseStatus.FAILED, ParseStatus.TOO_LONG)
    assert text_of([none, flat, long]) == (
        b"\n-inf\t(ROOT (T d))\n\n-inf\t(ROOT (T a) (T a) (T a) (T a))\n\n"
    )
    assert text_of([none, flat], scores=False) == b"\n(ROOT (T d))\n"


def test_lists_are_sequences_and_batches() -> None:
    found = list_of(attachment(), ["a", "b", "a", "c"], 4)
    assert str(found[-1].tree) == str(found[3].tree) == str(list(found)[3].tree)
    assert [tree.score for tree in found[1:3]] == found.scores[1:3].tolist()
    with pytest.raises(IndexError):
        found[4]
    assert [str(tree) for tree in found.packed] == [str(tree.tree) for tree in found]
    assert found.packed.words == ("a", "b", "c")
    lines = text_of([found]).decode().split("\n")
    assert lines[:4] == [f"{tree.score!r}\t{tree.tree}" for tree in found]
    assert text_of([found[:]]) == text_of([found])
    assert text_of([], scores=True) == b""


@pytest.mark.parametrize("k", [0, -1, 1 << 24])
def test_impossible_numbers_of_trees_are_refused(k: int) -> None:
    with pytest.raises(UsageError):
        list_of(attachment(), ["a"], k)
    with pytest.raises(UsageError):
        ParserOptions(k_max_pops=0)
