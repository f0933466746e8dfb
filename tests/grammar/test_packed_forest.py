"""Pruned forests: sums and lists against those of charts and of all derivations."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given
from tests.grammar.small_grammars import (
    Pair,
    few_examples,
    grammars,
    make_grammar,
    make_lexicon,
    sentences,
)
from tests.grammar.test_k_best import attachment, cyclic
from tests.reference.derivations import derivations, rules_of, without_subcategories

from treelm import _native
from treelm.errors import EstimationError, UsageError
from treelm.grammar.chart import ChartParser
from treelm.grammar.k_best import KBestParser, text_of
from treelm.grammar.packed_forest import (
    NO_NODE,
    ForestSymbols,
    PackedForest,
    forest_log_probs,
    join_forests,
    k_best_of_forests,
    parse_forests,
)
from treelm.grammar.parser_options import ParserOptions
from treelm.grammar.scored_tree import ParseStatus

QUICK = few_examples(25)


def parser_of(pair: Pair, **options: object) -> KBestParser:
    return KBestParser(ChartParser(*pair, ParserOptions(**options)))  # type: ignore[arg-type]


def forest_of(pair: Pair, words: list[str], least: float = 0.0) -> PackedForest:
    found = parse_forests(parser_of(pair, pruning="none"), [words], least=least)[0]
    assert found is not None
    return found


@pytest.mark.parametrize("least", [0.0, 0.05, 0.3])
@given(grammars(), sentences)
@QUICK
def test_sums_are_over_the_trees_of_the_forest(least: float, pair: Pair, words: list[str]) -> None:
    found = derivations(*pair, pair[1].vocabulary.encode(words).tolist())
    assume(found and len(found) < 3000)
    assume(math.fsum(weight for weight, _ in found) > 1e-12)
    forest = forest_of(pair, words, least)
    if len(forest.node_symbol):
        forest.check()
    nodes = list(
        zip(
            forest.node_symbol.tolist(),
            forest.node_first.tolist(),
            forest.node_last.tolist(),
            strict=True,
        )
    )
    edges = {
        (*nodes[head], tuple(nodes[tail] for tail in tails if tail != NO_NODE))
        for head, *tails in zip(
            forest.edge_head.tolist(),
            forest.edge_left.tolist(),
            forest.edge_right.tolist(),
            strict=True,
        )
    }
    total = math.fsum(
        weight
        for weight, derivation in found
        if all(
            rule in edges if rule[3] else rule[:3] in nodes
            for rule in rules_of(without_subcategories(derivation))
        )
    )
    expected = math.log(total) if total else -math.inf
    got = forest_log_probs([forest], ChartParser(*pair))[0]
    assert got == pytest.approx(expected, rel=1e-9, abs=1e-9)
    if not least:
        assert got == pytest.approx(ChartParser(*pair).log_probs([words])[0], rel=1e-9, abs=1e-9)


@given(grammars(), sentences)
@QUICK
def test_lists_of_forests_are_those_of_charts(pair: Pair, words: list[str]) -> None:
    parser = parser_of(pair)
    forests = parse_forests(parser, [words, []])
    assert forests[1] is None
    from_chart = parser.parse([words], 30)[0]
    assert from_chart is not None
    if from_chart.is_fallback:
        return
    assert text_of(k_best_of_forests(forests, 30)) == text_of([from_chart, None])


def test_chains_that_go_round_are_summed() -> None:
    pair = cyclic()
    for words in (["a"], ["a", "b", "a"], ["a"] * 60):
        forest = forest_of(pair, words)
        forest.check()
        exact = ChartParser(*pair).log_probs([words])[0]
        assert forest_log_probs([forest], ChartParser(*pair))[0] == pytest.approx(exact, rel=1e-9)


def test_a_list_of_all_trees_has_all_the_mass() -> None:
    pair = attachment()
    words = ["a", "b", "c", "a", "b"]
    options = ParserOptions(pruning="none", decoding="viterbi")
    found = KBestParser(ChartParser(*pair, options)).parse([words], 1000)[0]
    assert found is not None
    sums = [np.logaddexp.reduce(found.scores[:k]) for k in (1, 3, len(found))]
    whole = forest_log_probs([forest_of(pair, words)], ChartParser(*pair), threads=2)[0]
    assert sums[0] < sums[1] < sums[2]
    assert sums[2] == pytest.approx(whole, abs=1e-6)


def test_another_grammar_sums_over_the_same_forest() -> None:
    pair = attachment()
    other = replace(pair[0], binary_weights=pair[0].binary_weights / 2)
    forest = forest_of(pair, ["a", "b", "c"])
    own, half = (forest_log_probs([forest], ChartParser(g, pair[1]))[0] for g in (pair[0], other))
    assert own - half == pytest.approx(2 * math.log(2))
    stranger = make_grammar(["ROOT", "Q", "T"], 2, {(0, 1): 1.0}, {(1, 2, 2): 0.1})
    with pytest.raises(UsageError, match="different symbols"):
        forest_log_probs([forest], ChartParser(stranger, make_lexicon(stranger, {("a", 2): 1.0})))


def test_what_has_no_tree_has_no_nodes() -> None:
    parser = parser_of(attachment(), max_words=3)
    none, failed, long = parse_forests(parser, [[], ["d"], ["a"] * 4])
    assert none is None
    assert failed is not None
    assert long is not None
    assert (failed.status, long.status) == (ParseStatus.FAILED, ParseStatus.TOO_LONG)
    assert len(failed.node_symbol) == len(long.node_symbol) == 0
    assert forest_log_probs([none, failed, long], parser.parser).tolist() == [-math.inf] * 3
    assert len(failed.k_best(3)) == 0
    assert k_best_of_forests([None], 3) == [None]


def test_forged_forests_are_refused() -> None:
    forest = forest_of(attachment(), ["a", "b", "c"])
    for name, change in (
        ("node_symbol", 99),
        ("node_first", 7),
        ("node_last", 99),
        ("node_expected", np.nan),
        ("edge_head", 0),
        ("edge_head", 99),
        ("edge_left", 99),
        ("edge_right", 0),
        ("edge_expected", -1.0),
    ):
        array = getattr(forest, name).copy()
        array[-1] = change
        forged = replace(forest, **{name: array})
        for use in (
            forged.check,
            lambda forged=forged: forged.k_best(3),
            lambda forged=forged: forest_log_probs([forged], ChartParser(*attachment())),
        ):
            with pytest.raises(EstimationError) as caught:
                use()
            assert caught.value.code == "E_ARGUMENT"
    for wrong in (
        replace(forest, edge_left=forest.edge_left[1:]),
        replace(forest, node_first=forest.node_first[1:]),
        replace(forest, words=("a",)),
    ):
        with pytest.raises(EstimationError):
            wrong.check()
    with pytest.raises(UsageError):
        forest.k_best(0)
    with pytest.raises(UsageError, match="max-rule"):
        parse_forests(parser_of(attachment(), decoding="viterbi"), [["a"]])


def test_a_forest_of_more_words_than_places_can_name_is_refused() -> None:
    parser = parser_of(attachment())
    (forest,) = parse_forests(parser, [["a", "d", "b"]])
    arrays = list(join_forests([forest]))
    symbols = ForestSymbols.of(parser)
    for words in (1 << 32, (1 << 32) + 3, (1 << 64) - 1):
        arrays[0] = np.array([0, words], np.uint64)
        with pytest.raises(_native.KernelError, match=r"more than 2\^32 - 1 words"):
            _native.check_forests(
                tuple(arrays), symbols=len(symbols.names), phrasal=symbols.phrasal
            )
