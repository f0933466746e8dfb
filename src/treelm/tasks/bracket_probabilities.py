"""How certain a parser is of each bracket of a tree: summed over all trees of the sentence."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

from treelm.grammar.packed_forest import PackedForest
from treelm.trees.constituents import Constituent
from treelm.trees.tree import Tree


def bracket_probabilities(forest: PackedForest) -> dict[Constituent, float]:
    """Return the probability of every bracket of a sentence, given its words.

    It is the summed probability of all trees that have the bracket, among those that pruning left.
    Tags are brackets over one word.

    Args:
        forest: The forest of the sentence.

    Examples:
        >>> import treelm
        >>> from treelm.corpus.sample_treebank import sample_path
        >>> model = treelm.train("pcfg", treelm.TreeCorpus((sample_path(),)))
        >>> found = bracket_probabilities(model.forests_many(["The old ferry left ."])[0])
        >>> round(found[Constituent("NP", 0, 3)], 3), round(found[Constituent("VBN", 3, 4)], 2)
        (1.0, 0.53)
    """
    symbols = forest.symbols
    starts, labels = symbols.visible_start.tolist(), symbols.visible_label.tolist()
    found: defaultdict[Constituent, float] = defaultdict(float)
    nodes = zip(
        forest.node_symbol.tolist(),
        forest.node_first.tolist(),
        forest.node_last.tolist(),
        forest.node_expected.tolist(),
        strict=True,
    )
    for symbol, first, last, expected in nodes:
        for label in labels[starts[symbol] : starts[symbol + 1]]:
            found[Constituent(symbols.labels[label], first, last)] += expected
    # A label twice in a chain is expected more than once; rounding may do the same.
    return {bracket: min(number, 1.0) for bracket, number in found.items()}


def tree_brackets(tree: Tree) -> list[Constituent]:
    """Return the brackets of a tree in preorder, tags included: one for each node.

    Examples:
        >>> tree_brackets(Tree.from_string("(S (NP (PRP I)) (VP (VBP sleep)))"))[1]
        Constituent(label='NP', start=0, end=1)
    """
    # A fold sees the nodes from the last one to the first.
    sizes: list[int] = []

    def count(node: Tree, below: list[int]) -> int:
        size = 1 if node.word is not None else sum(below)
        sizes.append(size)
        return size

    tree.fold(count)
    sizes.reverse()
    found, place = [], 0
    for node, size in zip(tree.preorder(), sizes, strict=True):
        found.append(Constituent(str(node.label), place, place + size))
        place += node.word is not None
    return found


def probabilities_of_nodes(
    tree: Tree, probabilities: Mapping[Constituent, float]
) -> list[float | None]:
    """Return the probability of each node of a tree, in preorder; None where it is not known."""
    return [probabilities.get(bracket) for bracket in tree_brackets(tree)]
