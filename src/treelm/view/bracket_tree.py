"""A tree whose labels say how certain the parser is of them."""

from __future__ import annotations

from collections.abc import Sequence

from treelm.trees.tree import Tree
from treelm.view.svg import draw_svg

#: A bracket that is at least so probable is certain.
_CERTAIN = 0.995


def draw_bracket_tree(
    tree: Tree, probabilities: Sequence[float | None], *, title: str | None = None
) -> str:
    """Return a picture of a tree with the probability beside each label that is not certain.

    Args:
        tree: The tree.
        probabilities: One per node, in preorder; None where it is not known.
        title: Read by screen readers; by default the sentence.

    Examples:
        >>> picture = draw_bracket_tree(Tree("NP", [Tree("DT", "the")]), [0.25, 1.0])
        >>> "NP .25" in picture, "DT<" in picture
        (True, True)
    """
    nodes = zip(tree.preorder(), probabilities, strict=True)
    labels = [f"{node.label}{_shown(probability)}" for node, probability in nodes]
    # A fold goes through the nodes from the last one to the first.
    named = tree.fold(lambda node, below: Tree(labels.pop(), node.word or below))
    said = f"Syntax tree: {' '.join(tree.words)}" if title is None else title
    return draw_svg(named, title=said)


def _shown(probability: float | None) -> str:
    if probability is None or probability >= _CERTAIN:
        return ""
    return f" {probability:.2f}".replace("0.", ".", 1) if probability >= 0.005 else " <.01"
