"""What the HHMM counts: binary rules, by side and depth of the stack, and tagged words."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

import numpy as np
import numpy.typing as npt

from treelm.corpus.corpus import TreeCorpus
from treelm.errors import EstimationError, option
from treelm.grammar.binary_trees import NONE, BinaryTrees, build_binary_trees
from treelm.models.hhmm.config import HhmmConfig
from treelm.models.hhmm.rules import END, BinaryRules, Floats
from treelm.trees.packed import BATCH_TREES, PackedTrees
from treelm.trees.profile import load_profile
from treelm.trees.tree import Tree

#: What a tree with several nodes at its top becomes below ROOT.
FRAGMENT = "FRAG"


def whole_sentence(tree: Tree) -> Tree:
    """Return a tree below ROOT with one node there; several become the children of ``FRAG``.

    Examples:
        >>> print(whole_sentence(Tree("ROOT", [Tree("UH", "Yes"), Tree("NP", "John")])))
        (ROOT (FRAG (UH Yes) (NP John)))
    """
    if len(tree.children) < 2:
        return tree
    fragment = Tree(FRAGMENT, tree.children, head=tree.head)
    return Tree(tree.label, [fragment], head=0)


def binary_trees(corpus: TreeCorpus, config: HhmmConfig) -> BinaryTrees:
    """Return the trees of a corpus as the model sees them: binary below ROOT."""
    pipeline = config.pipeline()
    profile = load_profile(corpus.options.profile).native

    def trees() -> Iterator[Tree]:
        for batch in corpus.batches():
            whole = map(whole_sentence, batch.trees(batch.native.find_heads(profile)))
            yield from pipeline.apply_all(whole)

    def batches() -> Iterator[PackedTrees]:
        rest = trees()
        while batch := list(islice(rest, BATCH_TREES)):
            yield PackedTrees.from_trees(batch)

    return build_binary_trees(batches(), branching="right")


@dataclass(frozen=True, eq=False)
class DepthCounts:
    """Counts of a treebank.

    Args:
        rules: Rules with their relative frequencies.
        left: How often each rule stands on a left branch, rows by depth of the stack; only trees
            that fit are counted.
        right: The same on right branches.
        depth_of_tree: Elements of the stack that each tree needs.
    """

    rules: BinaryRules
    left: Floats
    right: Floats
    depth_of_tree: npt.NDArray[np.int64]


def count_rules_by_depth(trees: BinaryTrees, depth: int, min_count: int = 1) -> DepthCounts:
    """Return the rules of trees, counted by side and depth.

    Args:
        trees: The trees.
        depth: Elements of the stack.
        min_count: Rules seen less often are left out, and phrases that are then of no use.

    Raises:
        EstimationError: ``E_NO_DATA`` if there are no trees, or if no rules are left.
    """
    if not len(trees):
        raise EstimationError("there are no trees to read a grammar from.", code="E_NO_DATA")
    symbols = (*trees.symbols, END)
    symbol = trees.node_symbol.astype(np.int64)
    roots = trees.tree_start[:-1].astype(np.int64)
    top = trees.node_left[roots].astype(np.int64)
    on_left, level = branch_sides(trees)
    tree_of = np.searchsorted(trees.tree_start, np.arange(len(trees.node_symbol)), "right") - 1
    inner = np.flatnonzero((trees.node_right != NONE) & (level >= 0))
    depths = np.zeros(len(trees), np.int64)
    np.maximum.at(depths, tree_of[inner], np.where(on_left[inner], level[inner], 0))
    parent = np.concatenate([symbol[inner], symbol[roots]])
    left = np.concatenate([symbol[trees.node_left[inner]], symbol[top]])
    right = np.concatenate([symbol[trees.node_right[inner]], np.full(len(trees), len(symbols) - 1)])
    size = len(symbols)
    keys, which = np.unique((parent * size + left) * size + right, return_inverse=True)
    counts = np.bincount(which)
    rows = np.stack([keys // size // size, keys // size % size, keys % size], axis=1)
    kept = np.ones(len(rows), np.bool_)
    if min_count > 1:
        kept = useful_rules(rows, counts >= min_count, phrasal=trees.phrasal, size=size)
        if not kept.any():
            raise EstimationError(
                f"no sentence can be made of rules that were seen {min_count} times. Choose a "
                f"smaller {option('rule_min_count')}, or train on more trees.",
                code="E_NO_DATA",
            )
    rules = _as_rules(rows[kept], counts[kept], symbols, trees.phrasal)
    fits = depths <= depth
    side = np.concatenate([on_left[inner], np.zeros(len(trees), np.bool_)])
    at = np.concatenate([level[inner], np.zeros(len(trees), np.int64)])
    counted = np.concatenate([fits[tree_of[inner]], fits]) & kept[which]
    which = (np.cumsum(kept) - 1)[which]

    def by_depth(chosen: npt.NDArray[np.bool_]) -> Floats:
        places = at[chosen] * len(rules.rules) + which[chosen]
        found = np.bincount(places, minlength=(depth + 1) * len(rules.rules)).astype(np.float64)
        return found.reshape(depth + 1, -1)

    return DepthCounts(rules, by_depth(counted & side), by_depth(counted & ~side), depths)


def _as_rules(
    rows: npt.NDArray[np.int64],
    counts: npt.NDArray[np.int64],
    symbols: tuple[str, ...],
    phrasal: int,
) -> BinaryRules:
    """Return rules with their relative frequencies; phrases without rules are left out."""
    used = np.ones(len(symbols), np.bool_)
    used[:phrasal] = np.bincount(rows[:, 0], minlength=phrasal) > 0
    number = np.cumsum(used) - 1
    rows = number[rows]
    totals = np.bincount(rows[:, 0], counts)
    names = tuple(name for name, is_used in zip(symbols, used.tolist(), strict=True) if is_used)
    shares = counts / totals[rows[:, 0]]
    return BinaryRules(names, int(used[:phrasal].sum()), rows.astype(np.int32), shares)


def useful_rules(
    rows: npt.NDArray[np.int64], kept: npt.NDArray[np.bool_], *, phrasal: int, size: int
) -> npt.NDArray[np.bool_]:
    """Return which of the rules that are kept can be part of a tree.

    Args:
        rows: Rules as parent, left and right child; the top is 0.
        kept: Which of them are kept.
        phrasal: Symbols below this are phrases.
        size: Number of symbols.

    Examples:
        >>> rows = np.array([[0, 1, 4], [1, 3, 3], [1, 2, 3], [2, 2, 3]])
        >>> useful_rules(rows, np.array([True] * 4), phrasal=3, size=5).tolist()
        [True, True, False, False]
    """
    parent, left, right = rows.T
    ends = np.arange(size) >= phrasal
    while True:
        made = ends.copy()
        made[parent[kept & ends[left] & ends[right]]] = True
        if (made == ends).all():
            break
        ends = made
    kept = kept & ends[left] & ends[right]
    reached = np.zeros(size, np.bool_)
    reached[0] = True
    while True:
        used = rows[kept & reached[parent]]
        grown = reached.copy()
        grown[used[:, 1:].ravel()] = True
        if (grown == reached).all():
            return np.asarray(kept & reached[parent])
        reached = grown


def branch_sides(trees: BinaryTrees) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.int64]]:
    """Return whether each node stands on a left branch, and its depth; -1 for ROOT.

    The sentence is at (L, 1); under (R, d) the left child is at (L, d + 1), under (L, d) at (L, d);
    a right child is at (R, d).
    """
    size = len(trees.node_symbol)
    on_left = np.zeros(size, np.bool_)
    level = np.full(size, -1, np.int64)
    now = trees.node_left[trees.tree_start[:-1]].astype(np.int64)
    on_left[now], level[now] = True, 1
    while len(now):
        now = now[trees.node_right[now] != NONE]
        left, right = trees.node_left[now].astype(np.int64), trees.node_right[now].astype(np.int64)
        on_left[left] = True
        level[left] = level[now] + ~on_left[now]
        level[right] = level[now]
        now = np.concatenate([left, right])
    return on_left, level


def depth_coverage(depths: npt.NDArray[np.int64]) -> dict[int, float]:
    """Return the share of trees that a stack of each depth holds, from 1 to the deepest.

    Examples:
        >>> depth_coverage(np.array([1, 1, 2, 4]))
        {1: 0.5, 2: 0.75, 3: 0.75, 4: 1.0}
    """
    deepest = max(1, int(depths.max(initial=1)))
    return {depth: float(np.mean(depths <= depth)) for depth in range(1, deepest + 1)}
