"""Why a sentence was judged good or bad: its tree, each production coloured by its weight."""

from __future__ import annotations

from collections.abc import Sequence

from treelm.trees.tree import Tree
from treelm.view.svg import draw_svg

#: Red and green for weights as large as the largest of a tree, grey for none at all.
_BAD, _NEUTRAL, _GOOD = (185, 28, 28), (120, 120, 120), (21, 128, 61)


def weight_colour(weight: float, largest: float) -> str:
    """Return the colour of a weight among weights up to a size.

    Examples:
        >>> weight_colour(2.0, 2.0), weight_colour(-2.0, 2.0), weight_colour(0.0, 2.0)
        ('#15803d', '#b91c1c', '#787878')
    """
    share = min(abs(weight) / largest, 1.0) if largest > 0 else 0.0
    end = _GOOD if weight > 0 else _BAD
    mixed = (round(a + share * (b - a)) for a, b in zip(_NEUTRAL, end, strict=True))
    return "#" + "".join(f"{value:02x}" for value in mixed)


def draw_weighted_tree(tree: Tree, weights: Sequence[float], *, title: str | None = None) -> str:
    """Return a picture of a tree, each label with the weight of the production below it.

    Args:
        tree: The tree.
        weights: One per node, in preorder.
        title: Read by screen readers; by default the sentence.

    Examples:
        >>> picture = draw_weighted_tree(Tree("NP", [Tree("DT", "the")]), [0.5, -1.0])
        >>> "NP +0.50" in picture, "DT -1.00" in picture
        (True, True)
    """
    values = list(weights)
    largest = max((abs(value) for value in values), default=0.0)
    colours = [weight_colour(value, largest) for value in values]
    return draw_svg(with_weights(tree, values), title=title, colours=colours)


def with_weights(tree: Tree, weights: Sequence[float]) -> Tree:
    r"""Return a tree whose labels say what they weigh.

    Args:
        tree: The tree.
        weights: One per node, in preorder.

    Examples:
        >>> print(with_weights(Tree("NP", [Tree("DT", "the")]), [0.5, -1.0]))
        (NP_+0.50 (DT_-1.00 the))
    """
    nodes = zip(tree.preorder(), weights, strict=True)
    labels = [f"{node.label} {value:+.2f}" for node, value in nodes]
    # A fold goes through the nodes from the last one to the first.
    return tree.fold(lambda node, below: Tree(labels.pop(), node.word or below))
