"""Charts against the enumeration of all derivations."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from tests.grammar.small_grammars import WORDS, Pair, few_examples, grammars, sentences
from tests.reference.derivations import (
    best_by_rules,
    derivations,
    expected_items,
    without_subcategories,
)

from treelm.grammar.chart import ChartParser
from treelm.grammar.grammar import Grammar
from treelm.grammar.parser_options import ParserOptions
from treelm.grammar.scored_tree import ParseStatus
from treelm.trees.tree import Tree

pytestmark = pytest.mark.slow

QUICK = few_examples(40)


def enumerate_all(pair: Pair, words: list[str]) -> list[tuple[float, tuple]]:
    """Return all derivations, unless there are none or too many."""
    found = derivations(*pair, pair[1].vocabulary.encode(words).tolist())
    assume(found and len(found) < 5000)
    assume(math.fsum(weight for weight, _ in found) > 1e-12)
    return found


def tree_of(grammar: Grammar, shape: tuple, words: list[str]) -> Tree:
    symbol, first, _, children = shape
    if not children:
        return Tree(grammar.symbols[symbol], words[first])
    return Tree(grammar.symbols[symbol], [tree_of(grammar, child, words) for child in children])


@given(grammars(), sentences)
@QUICK
def test_inside_is_the_sum_over_all_derivations(pair: Pair, words: list[str]) -> None:
    found = derivations(*pair, pair[1].vocabulary.encode(words).tolist())
    assume(len(found) < 5000)
    total = math.fsum(weight for weight, _ in found)
    expected = math.log(total) if total > 0 else -math.inf
    assert ChartParser(*pair).log_probs([words])[0] == pytest.approx(expected, rel=1e-9, abs=1e-9)


@given(grammars(), sentences)
@QUICK
def test_expected_numbers_are_those_of_all_derivations(pair: Pair, words: list[str]) -> None:
    expected = expected_items(enumerate_all(pair, words))
    ids = pair[1].vocabulary.encode(words)
    log_prob, rows, inside, numbers = ChartParser(*pair).scorer.items(ids)
    got = {tuple(row): number for row, number in zip(rows.tolist(), numbers.tolist(), strict=True)}
    assert set(expected) <= set(got)
    for item, number in got.items():
        assert number == pytest.approx(expected.get(item, 0.0), rel=1e-9, abs=1e-12)
    top = [value for row, value in zip(rows.tolist(), inside.tolist(), strict=True) if not row[2]]
    assert top == [pytest.approx(log_prob)]


@given(
    grammars(most_substates=3),
    st.lists(st.lists(st.sampled_from(WORDS), min_size=1, max_size=7), min_size=2, max_size=4),
    st.sampled_from([10, 50, 10**9]),
)
@QUICK
def test_sentences_that_share_spans_score_as_they_do_alone(
    pair: Pair, texts: list[list[str]], work_limit: int
) -> None:
    # Each begins and ends like each other, and stands there more than once, as in an n-best list.
    shared = [[*one, *other] for one in texts for other in texts] * 2
    parser = ChartParser(*pair)
    alone = [parser.log_probs([words], work_limit=work_limit)[0] for words in shared]
    for threads in (1, 2):
        together = parser.log_probs(shared, work_limit=work_limit, threads=threads)
        assert together.tobytes() == np.array(alone).tobytes()


@given(grammars(), sentences)
@QUICK
def test_viterbi_is_the_best_derivation(pair: Pair, words: list[str]) -> None:
    found = enumerate_all(pair, words)
    best = max(weight for weight, _ in found)
    options = ParserOptions(pruning="none", decoding="viterbi")
    parse = ChartParser(*pair, options).parse([words])[0]
    assert parse is not None
    assert parse.status == ParseStatus.PARSED
    assert parse.score == pytest.approx(math.log(best), abs=1e-5)
    near = {
        str(tree_of(pair[0], without_subcategories(derivation), words))
        for weight, derivation in found
        if weight > best * (1 - 1e-5)
    }
    assert str(parse.tree) in near


@pytest.mark.parametrize("decoding", ["max_rule_product", "max_rule_sum", "variational"])
@given(grammars(), sentences)
@QUICK
def test_max_rule_trees_are_the_best(decoding: str, pair: Pair, words: list[str]) -> None:
    found = enumerate_all(pair, words)
    best, trees = best_by_rules(found, decoding)
    options = ParserOptions(pruning="none", decoding=decoding, max_unary=6)  # type: ignore[arg-type]
    parse = ChartParser(*pair, options).parse([words])[0]
    assert parse is not None
    assert parse.score == pytest.approx(best, rel=1e-4, abs=1e-4)
    total = math.log(math.fsum(weight for weight, _ in found))
    assert parse.sentence_log_prob == pytest.approx(total, rel=1e-5, abs=1e-5)
    assert str(parse.tree) in {str(tree_of(pair[0], tree, words)) for tree in trees}


@given(grammars(most_substates=3), sentences)
@QUICK
def test_pruning_never_raises_a_probability(pair: Pair, words: list[str]) -> None:
    exact = ChartParser(*pair).log_probs([words])[0]
    for pruning in ("fast", "accurate"):
        parse = ChartParser(*pair, ParserOptions(pruning=pruning)).parse([words])[0]  # type: ignore[arg-type]
        assert parse is not None
        assert parse.tree.words == tuple(words)
        assert parse.is_fallback == bool(np.isneginf(exact))
        if not parse.is_fallback:
            assert parse.sentence_log_prob <= exact + 1e-5 * max(1.0, abs(exact))
