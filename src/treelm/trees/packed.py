"""Batches of trees: flat arrays that kernels and numpy read without a Python object per node."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from treelm import _native
from treelm.trees.label import Label
from treelm.trees.spelling import bracket_spelling
from treelm.trees.tree import Tree

Ids = npt.NDArray[np.uint32]
Positions = npt.NDArray[np.uint64]

#: Trees handed to a kernel in one call.
BATCH_TREES = 1000

#: Value of `node_word` for a phrase.
NO_WORD = 0xFFFFFFFF


class PackedTrees:
    """An immutable batch of trees, nodes in preorder, a preterminal and its word being one node.

    Args:
        native: The kernel's handle; use `PackedTrees.from_trees` to pack trees of your own.

    Examples:
        >>> batch = PackedTrees.from_trees([Tree("NP", [Tree("DT", "the"), Tree("NN", "dog")])])
        >>> batch.node_size.tolist(), batch.words
        ([3, 1, 1], ('the', 'dog'))
        >>> print(next(iter(batch)))
        (NP (DT the) (NN dog))
    """

    def __init__(self, native: _native.PackedTrees) -> None:
        self.native = native

    @classmethod
    def from_trees(cls, trees: Iterable[Tree]) -> PackedTrees:
        """Return the given trees as one batch."""
        labels: dict[tuple[str, str | None, bool, str | None], int] = {}
        words: dict[str, int] = {}
        node_label: list[int] = []
        node_word: list[int] = []
        node_size: list[int] = []
        start = [0]
        for tree in trees:
            nodes = list(tree.preorder())
            for node in nodes:
                label, word = node.label, node.word
                parts = (label.base, label.head, label.gap, label.parent)
                node_label.append(labels.setdefault(parts, len(labels)))
                node_word.append(NO_WORD if word is None else words.setdefault(word, len(words)))
            sizes: list[int] = []  # of the subtrees done, leftmost last
            backwards: list[int] = []
            for node in reversed(nodes):
                first_child = len(sizes) - len(node.children)
                size = 1 + sum(sizes[first_child:])
                del sizes[first_child:]
                sizes.append(size)
                backwards.append(size)
            node_size.extend(reversed(backwards))
            start.append(len(node_label))
        return cls(
            _native.PackedTrees(
                list(labels),
                list(words),
                np.array(node_label, dtype=np.uint32),
                np.array(node_size, dtype=np.uint32),
                np.array(node_word, dtype=np.uint32),
                np.array(start, dtype=np.uint32),
            )
        )

    @classmethod
    def joined(cls, batches: Sequence[PackedTrees]) -> PackedTrees:
        """Return the trees of several batches, at least one, as one batch.

        Examples:
            >>> one = PackedTrees.from_trees([Tree("NN", "rain")])
            >>> two = PackedTrees.from_trees([Tree("VBZ", "falls"), Tree("NN", "rain")])
            >>> [str(tree) for tree in PackedTrees.joined([one, two])]
            ['(NN rain)', '(VBZ falls)', '(NN rain)']
        """
        if len(batches) == 1:
            return batches[0]
        labels: dict[tuple[str, str | None, bool, str | None], int] = {}
        words: dict[str, int] = {}
        node_label: list[Ids] = []
        node_word: list[Ids] = []
        starts: list[Ids] = [np.zeros(1, np.uint32)]
        for batch in batches:
            own = [labels.setdefault(parts, len(labels)) for parts in batch.native.labels]
            node_label.append(np.array(own, np.uint32)[batch.node_label])
            # The last one stands for phrases, which have no word.
            ids = [words.setdefault(word, len(words)) for word in batch.words] + [NO_WORD]
            place = np.minimum(batch.node_word, len(batch.words))
            node_word.append(np.array(ids, np.uint32)[place])
            starts.append(batch.tree_start[1:] + starts[-1][-1])
        return cls(
            _native.PackedTrees(
                list(labels),
                list(words),
                np.concatenate(node_label),
                np.concatenate([batch.node_size for batch in batches]),
                np.concatenate(node_word),
                np.concatenate(starts),
            )
        )

    def __len__(self) -> int:
        return len(self.native)

    @cached_property
    def labels(self) -> tuple[Label, ...]:
        """The distinct labels; `node_label` indexes them."""
        return tuple(
            Label(base, head, gap=gap, parent=parent)
            for base, head, gap, parent in self.native.labels
        )

    @cached_property
    def words(self) -> tuple[str, ...]:
        """The distinct words; `node_word` indexes them."""
        return tuple(self.native.words)

    @property
    def node_label(self) -> Ids:
        """Per node, the index of its label."""
        return self.native.node_label

    @property
    def node_size(self) -> Ids:
        """Per node, the number of nodes of its subtree, itself included."""
        return self.native.node_size

    @property
    def node_word(self) -> Ids:
        """Per node, the index of its word, or `NO_WORD`."""
        return self.native.node_word

    @property
    def tree_start(self) -> Ids:
        """The first node of every tree, and the number of nodes at the end."""
        return self.native.tree_start

    @property
    def ordinal(self) -> Positions:
        """Per tree, its position in its file, counted from 1; empty without a file."""
        return self.native.ordinal

    @property
    def line(self) -> Positions:
        """Per tree, the line of its opening bracket."""
        return self.native.line

    @property
    def token_count(self) -> int:
        """Number of words in the batch."""
        return self.native.token_count

    def first_words(self) -> tuple[str, ...]:
        """Return the words of the first tree."""
        ids = self.node_word[: self.tree_start[1]]
        return tuple(self.words[word] for word in ids[ids != NO_WORD].tolist())

    def first_with_other_words(self) -> int | None:
        """Return the place of the first tree whose words are not those of the first; None if none.

        Examples:
            >>> trees = [Tree("NN", "rain"), Tree("VBZ", "rain"), Tree("NN", "sun")]
            >>> PackedTrees.from_trees(trees).first_with_other_words()
            2
        """
        is_word = self.node_word != NO_WORD
        ids = self.node_word[is_word]
        ends = np.concatenate([np.zeros(1, np.int64), np.cumsum(is_word)])[self.tree_start]
        sizes = np.diff(ends)
        other = np.flatnonzero(sizes != sizes[:1])
        same = int(other[0]) if len(other) else len(sizes)  # trees of as many words
        rows = ids[: ends[same]].reshape(same, -1)
        wrong = np.flatnonzero((rows != rows[:1]).any(axis=1))
        if len(wrong):
            return int(wrong[0])
        return same if same < len(sizes) else None

    def label_sets(self) -> tuple[frozenset[str], frozenset[str]]:
        """Return the labels used on preterminals and the labels used on phrases."""
        is_tag = self.node_word != NO_WORD
        tags = np.unique(self.node_label[is_tag])
        phrases = np.unique(self.node_label[~is_tag])
        labels = self.labels
        return (
            frozenset(str(labels[i]) for i in tags),
            frozenset(str(labels[i]) for i in phrases),
        )

    def to_brackets(self) -> bytes:
        """Return the trees as UTF-8 brackets, one per line, words in their `bracket_spelling`."""
        words = [bracket_spelling(word) for word in self.words]
        labels = [
            (
                bracket_spelling(base),
                head and bracket_spelling(head),
                gap,
                parent and bracket_spelling(parent),
            )
            for base, head, gap, parent in self.native.labels
        ]
        if words == list(self.words) and labels == self.native.labels:
            return self.native.to_brackets()
        return _native.PackedTrees(
            labels, words, self.node_label, self.node_size, self.node_word, self.tree_start
        ).to_brackets()

    def __iter__(self) -> Iterator[Tree]:
        return self.trees()

    def trees(self, heads: Ids | None = None) -> Iterator[Tree]:
        """Yield the trees as objects, with head children where `heads` gives them per node."""
        labels, words = self.labels, self.words
        node_label, node_word = self.node_label.tolist(), self.node_word.tolist()
        node_size, starts = self.node_size.tolist(), self.tree_start.tolist()
        head_of = None if heads is None else heads.tolist()
        for first, last in pairwise(starts):
            stack: list[tuple[int, Tree]] = []  # (first node, tree), leftmost on top
            for node in range(last - 1, first - 1, -1):
                label = labels[node_label[node]]
                word = node_word[node]
                if word != NO_WORD:
                    stack.append((node, Tree(label, words[word])))
                    continue
                end = node + node_size[node]
                children = []
                while stack and stack[-1][0] < end:
                    children.append(stack.pop()[1])
                head = None if head_of is None else head_of[node]
                stack.append((node, Tree(label, children, head=head)))
            yield stack[0][1]
