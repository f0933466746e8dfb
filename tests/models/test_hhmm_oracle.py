"""The HHMM against inside and prefix probabilities of the grammar it stands for."""

from __future__ import annotations

import math

import numpy as np
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from tests.grammar.small_grammars import WORDS, make_grammar, make_lexicon
from tests.models.hhmm_cases import exact_model

from treelm.errors import EstimationError
from treelm.grammar.chart import ChartParser
from treelm.models.hhmm.model import HhmmModel


@st.composite
def written_grammars(draw: st.DrawFn) -> list[str]:
    """Draw a binary grammar of a few phrases and tags over the words a, b and c."""
    phrases = [f"P{number}" for number in range(draw(st.integers(1, 4)))]
    tags = [f"t{number}" for number in range(draw(st.integers(1, 3)))]
    symbols = phrases + tags

    def shares(items: list[str]) -> list[str]:
        weights = [draw(st.integers(1, 5)) for _ in items]
        return [
            f"{item} {weight}/{sum(weights)}" for item, weight in zip(items, weights, strict=True)
        ]

    roots = draw(st.lists(st.sampled_from(symbols), min_size=1, max_size=2, unique=True))
    lines = [f"TOP -> {rest}" for rest in shares([f"{root} </s>" for root in roots])]
    for phrase in phrases:
        pairs = st.tuples(st.sampled_from(symbols), st.sampled_from(symbols))
        ends = (draw(st.sampled_from(tags)), draw(st.sampled_from(tags)))
        rights = dict.fromkeys([ends, *draw(st.lists(pairs, max_size=3))])
        lines += [f"{phrase} -> {rest}" for rest in shares([" ".join(pair) for pair in rights])]
    for tag in tags:
        words = draw(st.lists(st.sampled_from(WORDS), min_size=1, max_size=3, unique=True))
        lines += [f"{tag} -> {rest}" for rest in shares(words)]
    return lines


def annotated_parser(model: HhmmModel) -> ChartParser:
    """Return a chart parser for the grammar whose symbols know their side and depth."""
    tables = model.tables
    names, phrasal = tables.rules.symbols, tables.rules.phrasal
    places = [f"{side}{depth}" for side in "LR" for depth in range(tables.depth + 2)]
    symbols = ["ROOT", *(f"{name}{place}" for name in names[1:phrasal] for place in places)]
    symbols += names[phrasal:-1]
    ids = {symbol: number for number, symbol in enumerate(symbols)}

    def place(symbol: int, where: str) -> int:
        return ids[names[symbol] if symbol >= phrasal else f"{names[symbol]}{where}"]

    unary, binary = {}, {}
    for number, (parent, left, right) in enumerate(tables.rules.rules.tolist()):
        if parent == 0:
            if tables.right[0, number] > 0:
                unary[0, place(left, "L1")] = tables.right[0, number]
            continue
        for depth in range(tables.depth + 1):
            for side, table in (("L", tables.left), ("R", tables.right)):
                if table[depth, number] > 0:
                    below = depth + (side == "R")
                    rule = (
                        place(parent, f"{side}{depth}"),
                        place(left, f"L{below}"),
                        place(right, f"R{depth}"),
                    )
                    binary[rule] = table[depth, number]
    grammar = make_grammar(symbols, len(symbols) - len(names[phrasal:-1]), unary, binary)
    words, vocabulary = tables.words, model.vocabulary.symbols
    scores = {
        (vocabulary[word], place(int(tag), "")): value
        for word in range(len(vocabulary))
        for tag, value in zip(
            words.tag[words.start[word] : words.start[word + 1]],
            words.value[words.start[word] : words.start[word + 1]],
            strict=True,
        )
    }
    return ChartParser(grammar, make_lexicon(grammar, scores))


@settings(max_examples=60)
@given(written_grammars(), st.integers(1, 3), st.data())
def test_hhmm_equals_inside_and_prefix_probabilities(
    lines: list[str], depth: int, data: st.DataObject
) -> None:
    try:
        model = exact_model(lines, depth)
    except EstimationError:
        assume(False)
    parser = annotated_parser(model)
    known = model.vocabulary.symbols[1:]
    words = data.draw(st.lists(st.sampled_from(known), min_size=1, max_size=6))
    prefixes, whole = parser.prefix_log_probs(words)
    state = model.initial()
    for word, expected in zip(words, prefixes, strict=True):
        assert abs(np.exp(model.distribution(state)).sum() - 1) < 1e-9
        log_prob, state = model.advance(state, word)
        if log_prob == -math.inf:
            assert expected < -600
            return
        assert abs(state.prefix_mass - expected) <= 1e-12 * max(1, abs(expected))
    total = model.finish(state) + state.prefix_mass
    assert total == whole or abs(total - whole) <= 1e-12 * max(1, abs(whole))
    assert abs(model.score(words).log_prob - total) <= 1e-12 * abs(total) or total == -math.inf


@settings(max_examples=40)
@given(written_grammars(), st.integers(1, 3), st.integers(1, 4), st.data())
def test_hhmm_probabilities_add_up_under_every_beam(
    lines: list[str], depth: int, beam: int, data: st.DataObject
) -> None:
    try:
        model = exact_model(lines, depth, beam_width=beam)
    except EstimationError:
        assume(False)
    wide = exact_model(lines, depth)
    state = model.initial()
    for word in data.draw(st.lists(st.sampled_from(model.vocabulary.symbols[1:]), max_size=6)):
        log_prob, state = model.advance(state, word)
        if log_prob == -math.inf:
            return
        assert len(state) <= beam
        assert abs(np.exp(model.distribution(state)).sum() - 1) < 1e-9
        # The stacks kept are the heaviest, as a sort of all of them finds them.
        before = model.initial() if state is None else state
        step = wide.advance(before, word)
        if step.log_prob > -math.inf:
            everything = wide.stacks(step.state, 10_000)
            kept = model.stacks(model.advance(before, word).state, 10_000)
            mass = sum(stack.weight for stack in everything[: len(kept)])
            assert [str(stack) for stack in kept] == [str(s) for s in everything[: len(kept)]]
            assert all(
                abs(one.weight - two.weight / mass) < 1e-12
                for one, two in zip(kept, everything, strict=False)
            )
