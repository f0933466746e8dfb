"""Prefix probabilities against the sum over all completions, in finite and infinite languages."""

from __future__ import annotations

import math
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import assume, given
from tests.grammar.small_grammars import WORDS, grammars, make_grammar, make_lexicon, sentences

from treelm.errors import EstimationError, UnsupportedTask
from treelm.grammar.chart import ChartParser
from treelm.grammar.grammar import Grammar
from treelm.grammar.lexicon import Lexicon
from treelm.grammar.prefix import PrefixCharts

Strings = dict[tuple[str, ...], float]


def normalized(pair: tuple[Grammar, Lexicon]) -> tuple[Grammar, Lexicon]:
    """Return the grammar with rules and words that add up to one; what has none gets a word."""
    old, words = pair
    sums = old.rule_sums()
    unary = {
        tuple(rule): weight / sums[rule[0]]
        for rule, weight in zip(old.unary_rules.tolist(), old.unary_weights, strict=True)
        if weight > 0
    }
    binary = {
        tuple(rule): weight / sums[rule[0]]
        for rule, weight in zip(old.binary_rules.tolist(), old.binary_weights, strict=True)
        if weight > 0
    }
    for parent in range(old.phrasal):
        if not sums[parent] > 0:
            unary[parent, old.phrasal] = 1.0
    grammar = make_grammar(old.symbols, old.phrasal, unary, binary)
    ids = words.vocabulary.encode(WORDS).tolist()
    scores = {}
    for tag in range(old.phrasal, len(old.symbols)):
        own = [float(dict(words.scores(word)).get(tag, [0.0])[0]) for word in ids]
        own = own if sum(own) > 0 else [1.0, 0.0, 0.0]
        scores |= {(word, tag): value / sum(own) for word, value in zip(WORDS, own, strict=True)}
    return grammar, make_lexicon(grammar, scores)


def strings(grammar: Grammar, lexicon: Lexicon) -> Strings:
    """Return every string of a language without recursion, with its probability."""
    found: list[Strings] = [{} for _ in grammar.symbols]
    ids = dict(zip(WORDS, lexicon.vocabulary.encode(WORDS).tolist(), strict=True))
    for symbol in reversed(range(len(grammar.symbols))):
        own: Strings = {}
        if symbol >= grammar.phrasal:
            for word, index in ids.items():
                score = dict(lexicon.scores(index)).get(symbol)
                if score is not None:
                    own[word,] = float(score[0])
        for (parent, child), weight in zip(
            grammar.unary_rules.tolist(), grammar.unary_weights, strict=True
        ):
            for string, value in found[child].items() if parent == symbol else ():
                own[string] = own.get(string, 0.0) + weight * value
        for (parent, left, right), weight in zip(
            grammar.binary_rules.tolist(), grammar.binary_weights, strict=True
        ):
            for one, first in found[left].items() if parent == symbol else ():
                for two, second in found[right].items():
                    own[one + two] = own.get(one + two, 0.0) + weight * first * second
        found[symbol] = own
    return found[0]


@given(grammars(most_substates=1, recursive=False), sentences)
def test_prefix_is_the_sum_over_completions(
    pair: tuple[Grammar, Lexicon], words: list[str]
) -> None:
    grammar, lexicon = normalized(pair)
    language = strings(grammar, lexicon)
    assume(len(language) < 20000)
    assert math.fsum(language.values()) == pytest.approx(1.0)
    prefixes, whole = ChartParser(grammar, lexicon).prefix_log_probs(words)
    assert len(prefixes) == len(words)
    for end, value in enumerate(prefixes.tolist(), 1):
        begin = tuple(words[:end])
        total = math.fsum(p for string, p in language.items() if string[:end] == begin)
        expected = math.log(total) if total > 0 else -math.inf
        assert value == pytest.approx(expected, rel=1e-9, abs=1e-9)
    exact = language.get(tuple(words), 0.0)
    assert whole == pytest.approx(math.log(exact) if exact > 0 else -math.inf, rel=1e-9, abs=1e-9)


def test_left_recursion_is_summed_without_end() -> None:
    """S -> S a (q) | a (1 - q): a prefix of n words has probability q^(n-1)."""
    q = 0.3
    grammar = make_grammar(["ROOT", "S", "T"], 2, {(0, 1): 1.0, (1, 2): 1 - q}, {(1, 1, 2): q})
    parser = ChartParser(grammar, make_lexicon(grammar, {("a", 2): 1.0}))
    prefixes, whole = parser.prefix_log_probs(["a"] * 60)
    assert prefixes == pytest.approx(np.arange(60) * math.log(q))
    assert whole == pytest.approx(59 * math.log(q) + math.log(1 - q))


def test_prefixes_of_endless_derivations_are_refused() -> None:
    grammar = make_grammar(["ROOT", "S", "T"], 2, {(0, 1): 1.0}, {(1, 1, 2): 1.0})
    parser = ChartParser(grammar, make_lexicon(grammar, {("a", 2): 1.0}))
    with pytest.raises(EstimationError) as caught:
        parser.prefix_log_probs(["a"])
    assert caught.value.code == "E_ARGUMENT"


def test_prefixes_need_a_plain_grammar() -> None:
    grammar = make_grammar(["ROOT", "T"], 1, {(0, 1): [0.5, 0.5]}, {}, [1, 2], [[0, 1, 1]])
    parser = ChartParser(grammar, make_lexicon(grammar, {("a", 1): [1.0, 1.0]}))
    with pytest.raises(UnsupportedTask):
        parser.prefix_log_probs(["a"])


# -- charts that grow -----------------------------------------------------------------------


def growing(most_bytes: int) -> PrefixCharts:
    grammar = make_grammar(["ROOT", "X", "A"], 2, {(0, 1): 1.0, (1, 2): 0.6}, {(1, 1, 1): 0.4})
    lexicon = make_lexicon(grammar, {("a", 2): 0.5, ("b", 2): 0.5}, normalized=True)
    return PrefixCharts(ChartParser(grammar, lexicon).prefixes, most_bytes)


def test_charts_that_were_dropped_are_made_again() -> None:
    plenty, little = growing(1 << 20), growing(1)
    ids = np.arange(3, dtype=np.uint32)
    words = (1, 2, 1, 1, 2)
    for end in (5, 2, 4, 0, 3, 5):
        prefix = words[:end]
        found = plenty.next_log_probs(prefix, ids)
        assert found.tolist() == little.next_log_probs(prefix, ids).tolist()
        assert plenty.end_log_prob(prefix) == little.end_log_prob(prefix)
        total = float(np.exp(found).sum()) + math.exp(plenty.end_log_prob(prefix))
        assert total == pytest.approx(1.0)
    assert 0 < little.kept_bytes < plenty.kept_bytes


def test_many_threads_may_ask_at_once() -> None:
    charts = growing(1 << 12)
    prefixes = [tuple(1 + (number >> bit) % 2 for bit in range(6)) for number in range(64)]
    expected = [growing(1 << 20).end_log_prob(prefix) for prefix in prefixes]
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(charts.end_log_prob, prefixes * 4)) == expected * 4


def test_grammars_of_many_phrases_have_prefixes() -> None:
    """Every phrase has the next one as its left corner."""
    count = 5000
    names = ["ROOT", *(f"X{number}" for number in range(count)), "A"]
    tag = count + 1
    binary = {(number, number + 1, tag): 1.0 for number in range(count)}
    grammar = make_grammar(names, tag, {(count, tag): 1.0}, binary)
    lexicon = make_lexicon(grammar, {("a", tag): 1.0}, normalized=True)
    prefixes, whole = ChartParser(grammar, lexicon).prefix_log_probs(["a", "a"])
    assert (prefixes.tolist(), whole) == ([0.0, 0.0], -math.inf)
