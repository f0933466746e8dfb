"""Small random grammars and lexicons, as hypothesis strategies and by hand."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from treelm.corpus.vocabulary import Vocabulary
from treelm.grammar.grammar import Grammar
from treelm.grammar.lexicon import Lexicon

Pair = tuple[Grammar, Lexicon]
WORDS = ("a", "b", "c")
VOCABULARY = Vocabulary.from_counts(dict.fromkeys(WORDS, 1))


def few_examples(number: int) -> settings:
    """Return settings for grammars, most of which have no tree of a sentence."""
    unimportant = [HealthCheck.too_slow, HealthCheck.filter_too_much]
    return settings(max_examples=number, suppress_health_check=unimportant)


def make_grammar(  # noqa: PLR0917 (the parts of a grammar)
    symbols: Sequence[str],
    phrasal: int,
    unary: dict[tuple[int, int], object],
    binary: dict[tuple[int, int, int], object],
    substates: Sequence[int] | None = None,
    split_tree: Sequence[Sequence[int]] = (),
) -> Grammar:
    """Return a grammar from dictionaries of rules; weights are numbers or nested lists."""
    counts = np.array(substates or [1] * len(symbols), dtype=np.int32)
    one, two = sorted(unary), sorted(binary)
    return Grammar(
        tuple(symbols),
        phrasal,
        counts,
        np.array(one, dtype=np.int32).reshape(-1, 2),
        np.array(two, dtype=np.int32).reshape(-1, 3),
        np.concatenate([np.zeros(0), *(np.ravel(unary[rule]) for rule in one)]).astype(float),
        np.concatenate([np.zeros(0), *(np.ravel(binary[rule]) for rule in two)]).astype(float),
        tuple(np.array(level, dtype=np.int32) for level in split_tree),
    )


def make_lexicon(
    grammar: Grammar, scores: dict[tuple[str, int], object], *, normalized: bool = False
) -> Lexicon:
    """Return a lexicon from scores of (word, tag)."""
    ids = {symbol: index for index, symbol in enumerate(VOCABULARY.symbols)}
    entries = sorted((ids[word], tag, np.ravel(value)) for (word, tag), value in scores.items())
    counts = np.bincount([entry[0] for entry in entries], minlength=len(VOCABULARY))
    return Lexicon(
        VOCABULARY,
        grammar.phrasal,
        grammar.substates,
        np.concatenate([[0], np.cumsum(counts)]).astype(np.int64),
        np.array([entry[1] for entry in entries], dtype=np.int32),
        np.concatenate([np.zeros(0), *(entry[2] for entry in entries)]).astype(float),
        np.zeros(len(VOCABULARY)),
        np.zeros(int(grammar.substates[grammar.phrasal :].sum())),
        normalized,
    )


@st.composite
def grammars(
    draw: st.DrawFn, *, most_substates: int = 2, recursive: bool = True
) -> tuple[Grammar, Lexicon]:
    """Draw a grammar without unary cycles and a lexicon of the words a, b and c."""
    phrasal = draw(st.integers(2, 3))
    tags = draw(st.integers(1, 2))
    size = phrasal + tags
    substates = [1] + [draw(st.integers(1, most_substates)) for _ in range(size - 1)]
    weights = st.sampled_from([0.0, 0.1, 0.25, 0.5, 0.9])

    def block(*members: int) -> object:
        shape = [substates[member] for member in members]
        number = int(np.prod(shape))
        return draw(st.lists(weights, min_size=number, max_size=number))

    unary, binary = {}, {}
    for parent in range(phrasal):
        for child in range(parent + 1, size):
            if draw(st.integers(0, 3)) == 0:
                unary[parent, child] = block(parent, child)
        least = 1 if recursive else parent + 1
        for _ in range(draw(st.integers(1, 3))):
            left, right = draw(st.integers(least, size - 1)), draw(st.integers(least, size - 1))
            if (parent, left, right) not in binary:
                binary[parent, left, right] = block(parent, left, right)
    names = ["ROOT", *(f"P{i}" for i in range(1, phrasal)), *(f"T{i}" for i in range(tags))]
    splits = ()
    if most_substates > 1:
        splits = (np.repeat(np.arange(size), substates).tolist(),)
    grammar = make_grammar(names, phrasal, unary, binary, substates, splits)
    scores = {
        (word, tag): block(tag)
        for word in WORDS
        for tag in range(phrasal, size)
        if draw(st.booleans())
    }
    return grammar, make_lexicon(grammar, scores)


sentences = st.lists(st.sampled_from(WORDS), min_size=1, max_size=4)
