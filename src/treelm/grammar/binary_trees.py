"""Trees whose nodes have one or two children, as flat arrays: what grammars are made from."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import Literal, get_args

import numpy as np
import numpy.typing as npt

from treelm import _native
from treelm.corpus.corpus import TreeCorpus
from treelm.kernel_errors import kernel_errors
from treelm.transforms.transform import Pipeline, check_choice
from treelm.trees.packed import BATCH_TREES, PackedTrees
from treelm.trees.profile import load_profile
from treelm.trees.tree import Tree

Ids = npt.NDArray[np.uint32]
Branching = Literal["left", "right"]

#: Means "no such child" and "no word".
NONE = 0xFFFFFFFF


@dataclass(frozen=True, eq=False)
class BinaryTrees:
    """Trees in preorder: parents come before their children.

    Args:
        symbols: ROOT, the other phrases by name, then the tags by name; a tag that shares its name
            with a phrase is written ``X~T``.
        phrasal: Number of symbols that are phrases.
        words: The words.
        node_symbol: Per node, its symbol.
        node_left: Per node, its left or only child, or `NONE`.
        node_right: Per node, its right child, or `NONE`.
        node_word: Per node, its word, or `NONE`.
        tree_start: The first node of every tree, and the number of nodes at the end.
        tree_source: Per tree, its place among all given trees.
        cycles: Trees left out because a unary chain repeats a symbol.
        bad_roots: Trees left out because ROOT is missing or not at the top.

    Examples:
        >>> tree = Tree("ROOT", [Tree("X", [Tree(tag, tag) for tag in "abc"])])
        >>> trees = build_binary_trees([PackedTrees.from_trees([tree])])
        >>> trees.symbols, trees.phrasal, trees.words
        (('ROOT', '@X', 'X', 'a', 'b', 'c'), 3, ('a', 'b', 'c'))
        >>> [trees.symbols[symbol] for symbol in trees.node_symbol]
        ['ROOT', 'X', '@X', 'a', 'b', 'c']
    """

    symbols: tuple[str, ...]
    phrasal: int
    words: tuple[str, ...]
    node_symbol: Ids
    node_left: Ids
    node_right: Ids
    node_word: Ids
    tree_start: Ids
    tree_source: Ids
    cycles: int = 0
    bad_roots: int = 0

    def __len__(self) -> int:
        return len(self.tree_start) - 1

    @cached_property
    def leaves(self) -> npt.NDArray[np.int64]:
        """The nodes that have words, in the order of the text."""
        return np.flatnonzero(self.node_word != NONE)

    @cached_property
    def leaf_starts(self) -> npt.NDArray[np.int64]:
        """Where the words of every tree begin among `leaves`, and their number at the end."""
        return np.searchsorted(self.leaves, self.tree_start)


def build_binary_trees(
    batches: Iterable[PackedTrees], *, branching: Branching = "left", keep_cycles: bool = False
) -> BinaryTrees:
    """Return trees with nodes of more than two children as nested binary nodes ``@X``.

    Args:
        batches: Trees below ROOT, as a reader or a transform returns them.
        branching: ``left`` for ``(X (@X (@X a b) c) d)``, ``right`` for ``(X a (@X b (@X c d)))``.
        keep_cycles: Whether trees in which a unary chain repeats a symbol are kept.
    """
    check_choice("branching", branching, get_args(Branching))
    builder = _native.BinaryTreeBuilder(left_branching=branching == "left", keep_cycles=keep_cycles)
    with kernel_errors("binarizing trees"):
        for batch in batches:
            builder.add(batch.native)
        made = builder.finish()
    return BinaryTrees(
        tuple(made.symbols),
        made.phrasal,
        tuple(made.words),
        made.node_symbol,
        made.node_left,
        made.node_right,
        made.node_word,
        made.tree_start,
        made.tree_source,
        made.cycles,
        made.bad_roots,
    )


def transformed_batches(corpus: TreeCorpus, pipeline: Pipeline) -> Iterator[PackedTrees]:
    """Yield the trees of a corpus after a pipeline, in batches; heads are filled in if needed."""
    if not pipeline.steps:
        yield from corpus.batches()
        return
    profile = load_profile(corpus.options.profile).native

    def trees() -> Iterator[Tree]:
        for batch in corpus.batches():
            yield from pipeline.apply_all(batch.trees(batch.native.find_heads(profile)))

    rest = trees()
    while batch := list(islice(rest, BATCH_TREES)):
        yield PackedTrees.from_trees(batch)
