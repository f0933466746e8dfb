"""Events of trees: the kernel's templates against the slow oracle, and against each other."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import numpy as np
import pytest
from tests.reference import backoff as oracle

from treelm.corpus.corpus import TreeCorpus, TreeSentences
from treelm.corpus.sample_treebank import sample_path, sample_treebank
from treelm.corpus.vocabulary import Vocabulary
from treelm.corpus.vocabulary_rules import VocabularyRule, build_vocabulary
from treelm.errors import CorpusFormatError, TreelmError, UsageError
from treelm.events.extract import TreeEvents, count_tree_events
from treelm.events.template import (
    ATTRIBUTES,
    TREELET_NONTERMINAL,
    TREELET_TERMINAL,
    EventTemplate,
)
from treelm.trees.packed import PackedTrees
from treelm.trees.tree import Tree

CHILD = EventTemplate("symbols", "child", "symbol", ("label", "symbol-1", "symbol-2", "symbol-3"))


def as_tuple(tree: Tree) -> oracle.Tree:
    """Return a tree as the oracle wants it."""
    if tree.word is not None:
        return (str(tree.label), tree.word)
    return (str(tree.label), *(as_tuple(child) for child in tree.children))


def packed(trees: Iterable[str | Tree]) -> PackedTrees:
    """Return trees, perhaps written as brackets, as one batch."""
    return PackedTrees.from_trees(
        tree if isinstance(tree, Tree) else Tree.from_string(tree) for tree in trees
    )


def texts(events: TreeEvents, template: EventTemplate, rows: np.ndarray) -> list[tuple[str, ...]]:
    """Return rows in words: outcome first, then the context."""
    symbols = events.symbols
    words = [*events.words, "</s>", "<s>"] if events.vocabulary else list(events.words)

    def text(attribute: str, value: int) -> str:
        name = attribute.partition("-")[0]
        if name == "word":
            return words[value]
        if name == "yield":
            return symbols.yield_text(value)
        if name in ("rule", "parent_rule"):
            return symbols.rule_text(value)
        return symbols.labels[value]

    columns = (template.outcome, *template.context)
    return [
        tuple(text(column, value) for column, value in zip(columns, row, strict=True))
        for row in rows.tolist()
    ]


@pytest.fixture(scope="module")
def trees() -> list[Tree]:
    return list(sample_treebank())


def test_treelet_events_are_those_of_the_oracle(trees: list[Tree]) -> None:
    events = TreeEvents([TREELET_TERMINAL, TREELET_NONTERMINAL])
    terminal, nonterminal = events.extract(packed(trees))
    expected: dict[str, list[tuple[object, ...]]] = {"T": [], "N": []}
    for tree in trees:
        for event in oracle.treelet_events(as_tuple(tree)):
            outcome = event.outcome if event.kind == "T" else " ".join(event.outcome)  # type: ignore[arg-type]
            expected[event.kind].append((outcome, *event.context))
    assert Counter(texts(events, TREELET_TERMINAL, terminal)) == Counter(expected["T"])
    assert Counter(texts(events, TREELET_NONTERMINAL, nonterminal)) == Counter(expected["N"])


def test_a_tree_gives_one_event_a_phrase_and_one_a_word(trees: list[Tree]) -> None:
    events = TreeEvents([TREELET_TERMINAL, TREELET_NONTERMINAL])
    for tree in trees[:50]:
        terminal, nonterminal = events.extract(packed([tree]))
        assert len(terminal) == len(tree.words)
        assert len(nonterminal) == sum(node.word is None for node in tree.preorder())


def test_symbols_of_right_hand_sides_are_those_of_the_oracle(trees: list[Tree]) -> None:
    [counts], events = count_tree_events([packed(trees)], [CHILD])
    rules = oracle.tree_rules(as_tuple(tree) for tree in trees)
    expected = {
        (outcome, context[3], *reversed(context[:3])): count
        for (context, outcome), count in oracle.yield_events(rules, given_parent=True).items()
    }
    found = dict(zip(texts(events, CHILD, counts.rows), counts.counts.tolist(), strict=True))
    assert found == expected


def test_words_of_sentences_are_n_grams(trees: list[Tree]) -> None:
    trigram = EventTemplate("trigram", "word", "word", ("word-1", "word-2"))
    events = TreeEvents([trigram])
    [rows] = events.extract(packed(trees))
    expected = oracle.ngram_events([tree.words for tree in trees], 3)
    assert texts(events, trigram, rows) == [
        (outcome, *reversed(context)) for context, outcome in expected
    ]


def test_batches_share_ids_and_order_does_not_matter(trees: list[Tree]) -> None:
    templates = [TREELET_TERMINAL, TREELET_NONTERMINAL, CHILD]
    whole, _ = count_tree_events([packed(trees)], templates)
    pieces, _ = count_tree_events(
        [packed(trees[start : start + 7]) for start in range(0, len(trees), 7)], templates
    )
    for one, other in zip(whole, pieces, strict=True):
        np.testing.assert_array_equal(one.rows, other.rows)
        np.testing.assert_array_equal(one.counts, other.counts)


def test_unknown_words_are_replaced_as_the_streaming_rule_did(trees: list[Tree]) -> None:
    corpus = TreeCorpus((sample_path(),))
    vocabulary = build_vocabulary(TreeSentences(corpus), VocabularyRule(start_after=50, seed=3))
    words = EventTemplate("unigram", "tag", "word", ())
    for training in (True, False):
        events = TreeEvents([words], vocabulary, training=training)
        rows = np.concatenate([events.extract(batch)[0] for batch in corpus.batches()])
        expected = [
            symbol
            for number, sentence in enumerate(TreeSentences(corpus), 1)
            for symbol in vocabulary.replace(sentence, sentence=number if training else None)
        ]
        assert list(vocabulary.decode(rows[:, 0].tolist())) == expected
    assert events.sentences == len(trees)
    assert events.tokens == sum(len(tree.words) for tree in trees)


def test_every_attribute_of_a_node() -> None:
    tree = "(ROOT (S (NP (D the) (N dog)) (VP (V barks))))"
    phrase = EventTemplate(
        "p", "phrase", "rule", ("label", "parent", "grandparent", "left", "right", "parent_rule")
    )
    tag = EventTemplate("t", "tag", "word", ("word-1", "left", "right", "parent", "grandparent"))
    events = TreeEvents([phrase, tag])
    phrases, tags = events.extract(packed([tree]))
    assert texts(events, phrase, phrases)[2:] == [
        ("NP -> D N", "NP", "S", "ROOT", "<none>", "VP", "S -> NP VP"),
        ("VP -> V", "VP", "S", "ROOT", "NP", "<none>", "S -> NP VP"),
    ]
    assert texts(events, phrase, phrases)[0] == (
        ("ROOT -> S", "ROOT", "<top>", "<top>", "<none>", "<none>", "<top>")
    )
    assert texts(events, tag, tags) == [
        ("the", "<s>", "<none>", "N", "NP", "S"),
        ("dog", "the", "D", "<none>", "NP", "S"),
        ("barks", "dog", "<none>", "<none>", "VP", "S"),
    ]


def test_a_context_that_templates_cannot_express_is_a_function() -> None:
    def lengths(batch: PackedTrees) -> np.ndarray:
        return np.array([[len(tree.words)] for tree in batch], dtype=np.uint32)

    batch = packed(["(S (A a) (B b))", "(S (A a))", "(S (B b))"])
    counts, _ = count_tree_events([batch], [], extractors=[(1, lengths)])
    assert counts[0].rows.tolist() == [[1], [2]]
    assert counts[0].counts.tolist() == [2, 1]


@pytest.mark.parametrize("label", ["<none>", "<top>", "START", "STOP", "<usym>"])
def test_reserved_labels_are_refused(label: str) -> None:
    events = TreeEvents([TREELET_NONTERMINAL])
    with pytest.raises(CorpusFormatError) as caught:
        events.extract(packed([Tree("ROOT", [Tree(label, [Tree("N", "dogs")])])]))
    assert caught.value.code == "E_RESERVED_SYMBOL"


@pytest.mark.parametrize("word", ["<s>", "</s>"])
@pytest.mark.parametrize("known", [None, Vocabulary.from_counts({"dogs": 1})])
def test_reserved_words_are_refused(word: str, known: Vocabulary | None) -> None:
    events = TreeEvents([TREELET_TERMINAL], known)
    with pytest.raises(TreelmError) as caught:
        events.extract(packed([Tree("ROOT", [Tree("N", word)])]))
    assert caught.value.code == "E_RESERVED_SYMBOL"


@pytest.mark.parametrize(
    ("site", "outcome", "context"),
    [
        ("word", "yield", ()),
        ("tag", "yield", ()),
        ("phrase", "word", ()),
        ("child", "word", ()),
        ("tag", "word", ("symbol-1",)),
        ("tag", "word", ("label-1",)),
        ("tag", "word", ("word-0",)),
        ("tag", "word", ("word-1000",)),
        ("tag", "word", ("word-x",)),
        ("tag", "word", ("colour",)),
        ("nowhere", "word", ()),
    ],
)
def test_templates_that_make_no_sense_are_refused(
    site: str, outcome: str, context: tuple[str, ...]
) -> None:
    with pytest.raises(UsageError) as caught:
        EventTemplate("wrong", site, outcome, context)  # type: ignore[arg-type]
    assert caught.value.code == "E_TEMPLATE"


def test_attributes_are_those_of_the_kernel() -> None:
    from treelm import _native

    assert {name.upper() for name in ATTRIBUTES} == set(_native.EventAttribute.__members__)
