"""Binary trees made by the kernel against the transform that does the same."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from treelm.corpus.corpus import TreeCorpus
from treelm.errors import EstimationError
from treelm.grammar.binary_trees import (
    NONE,
    BinaryTrees,
    Branching,
    build_binary_trees,
    transformed_batches,
)
from treelm.grammar.extract import extract_grammar
from treelm.transforms.binarize import binarize
from treelm.transforms.pipelines import PipelineOptions, named_pipeline
from treelm.transforms.unary_chains import disambiguate_tags
from treelm.trees.packed import PackedTrees
from treelm.trees.tree import Tree


def unpacked(trees: BinaryTrees) -> list[Tree]:
    """Return flat trees as objects."""
    built: dict[int, Tree] = {}
    for node in range(len(trees.node_symbol) - 1, -1, -1):
        label = trees.symbols[trees.node_symbol[node]]
        if trees.node_word[node] != NONE:
            built[node] = Tree(label, trees.words[trees.node_word[node]])
            continue
        children = [trees.node_left[node], trees.node_right[node]]
        built[node] = Tree(label, [built[int(child)] for child in children if child != NONE])
    return [built[int(start)] for start in trees.tree_start[:-1]]


labels = st.sampled_from(["A", "B", "C", "D"])
trees_below = st.recursive(
    st.builds(Tree, st.sampled_from(["A", "t", "u"]), st.sampled_from(["x", "y"])),
    lambda below: st.builds(Tree, labels, st.lists(below, min_size=1, max_size=5)),
    max_leaves=12,
)


def has_cycle(tree: Tree) -> bool:
    """Whether a phrase stands above a phrase of the same label on the same words."""
    for node in tree.preorder():
        seen = {node.label}
        while len(node.children) == 1 and node.children[0].is_phrasal:
            node = node.children[0]  # noqa: PLW2901 (walking down)
            if node.label in seen:
                return True
            seen.add(node.label)
    return False


@pytest.mark.parametrize("branching", ["left", "right"])
@given(st.lists(st.builds(lambda tree: Tree("ROOT", [tree]), trees_below), max_size=4))
def test_kernel_does_what_binarize_does(branching: Branching, trees: list[Tree]) -> None:
    found = build_binary_trees([PackedTrees.from_trees(trees)], branching=branching)
    kept = [tree for tree in trees if not has_cycle(tree)]
    phrases = {str(node.label) for tree in kept for node in tree.preorder() if node.is_phrasal}
    expected = [
        disambiguate_tags(binarize(tree, direction=branching, horizontal_order=0), phrases)
        for tree in kept
    ]
    assert unpacked(found) == expected
    assert found.cycles == len(trees) - len(kept)
    assert [trees[place] for place in found.tree_source] == kept
    assert list(found.symbols[: found.phrasal]) == sorted(
        found.symbols[: found.phrasal], key=lambda label: (label != "ROOT", label)
    )


def test_other_roots_are_left_out_and_counted() -> None:
    trees = [
        Tree("S", [Tree("t", "x")]),
        Tree("ROOT", "x"),
        Tree("ROOT", [Tree("S", [Tree("ROOT", [Tree("t", "x")]), Tree("t", "y")])]),
        Tree("ROOT", [Tree("t", "x")]),
    ]
    found = build_binary_trees([PackedTrees.from_trees(trees)])
    assert (len(found), found.bad_roots, found.cycles) == (1, 3, 0)
    assert found.symbols == ("ROOT", "t")
    assert found.words == ("x",)
    with pytest.raises(EstimationError) as caught:
        extract_grammar(build_binary_trees([PackedTrees.from_trees(trees[:3])]))
    assert caught.value.code == "E_NO_DATA"


def test_tag_marks_stand_before_annotations() -> None:
    tree = Tree("ROOT", [Tree("NP^ROOT", [Tree("NP^ROOT", "x"), Tree("NN^NP", "y")])])
    assert "NP~T^ROOT" in build_binary_trees([PackedTrees.from_trees([tree])]).symbols


@pytest.mark.parametrize("name", ["markovize", "unary-chains"])
def test_pipelines_come_first(name: str, sample_file: Path) -> None:
    corpus = TreeCorpus((sample_file,))
    pipeline = named_pipeline(name, PipelineOptions(vertical_order=2))
    found = build_binary_trees(transformed_batches(corpus, pipeline))
    grammar = extract_grammar(found)
    assert grammar.is_normalized()
    chains = grammar.unary_rules[grammar.unary_rules[:, 0] != 0]
    assert len(chains) == 0, "merged chains leave no unary rule but those of ROOT"
    assert len(found) == sum(1 for _ in corpus)


def test_relative_frequencies_are_those_of_the_trees(sample_file: Path) -> None:
    corpus = TreeCorpus((sample_file,))
    grammar = extract_grammar(build_binary_trees(corpus.batches()))
    counts: dict[tuple[str, ...], int] = {}
    for tree in corpus:
        for node in binarize(tree, direction="left", horizontal_order=0).preorder():
            if node.is_phrasal:
                rule = (str(node.label), *(str(child.label) for child in node.children))
                counts[rule] = counts.get(rule, 0) + 1
    totals: dict[str, int] = {}
    for rule, count in counts.items():
        totals[rule[0]] = totals.get(rule[0], 0) + count
    found = {
        tuple(grammar.symbols[symbol].removesuffix("~T") for symbol in rule): weight
        for rules, weights in (
            (grammar.unary_rules.tolist(), grammar.unary_weights),
            (grammar.binary_rules.tolist(), grammar.binary_weights),
        )
        for rule, weight in zip(rules, np.asarray(weights).tolist(), strict=True)
    }
    assert found == pytest.approx({rule: n / totals[rule[0]] for rule, n in counts.items()})
