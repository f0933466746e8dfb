"""k-best lists of trees, as arrays; trees are made on demand."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import overload

import numpy as np
import numpy.typing as npt

from treelm import _native
from treelm.corpus.words import Words, sentences_of
from treelm.errors import UsageError
from treelm.grammar.chart import ChartParser
from treelm.grammar.long_sentences import joined, parse_with_long
from treelm.grammar.scored_tree import ParseStatus, ScoredTree
from treelm.kernel_errors import kernel_errors
from treelm.transforms.unary_chains import undo_disambiguate_tags
from treelm.trees.packed import NO_WORD, PackedTrees
from treelm.trees.spelling import bracket_spelling
from treelm.trees.tree import Tree

Ids = npt.NDArray[np.uint32]
Positions = npt.NDArray[np.uint64]


@dataclass(frozen=True, eq=False)
class KBest(Sequence[ScoredTree]):
    """The best trees of a sentence, distinct, the best first.

    Nodes are in preorder; a subtree of one node is a tag with its word. Among trees with the same
    score, the one whose topmost different choice has fewer unary rules comes first, or else the
    earlier rule of the grammar, or else the earlier split.

    Args:
        words: The sentence.
        labels: What the numbers in `node_label` mean.
        scores: Scores of the trees, as in `ScoredTree.score`; they never increase.
        tree_start: The first node of every tree, and the number of nodes at the end.
        node_label: Per node, the number of its label.
        node_size: Per node, the number of nodes in its subtree, itself included.
        log_prob: Natural log probability of the words in the last chart.
        status: How the trees were found.
        is_limited: Whether the search reached its limit on steps before it had as many trees as
            requested; there may be more.
        tree_log_probs: Gives the log probabilities of trees, when trees are asked for; it stays
            behind when the list goes to another process.
    """

    words: tuple[str, ...]
    labels: tuple[str, ...] = field(repr=False)
    scores: npt.NDArray[np.float64] = field(repr=False)
    tree_start: Positions = field(repr=False)
    node_label: Ids = field(repr=False)
    node_size: Ids = field(repr=False)
    log_prob: float
    status: ParseStatus = ParseStatus.PARSED
    is_limited: bool = False
    tree_log_probs: Callable[[Sequence[Tree]], npt.NDArray[np.float64]] | None = field(
        default=None, repr=False
    )

    def __getstate__(self) -> dict[str, object]:
        return {**self.__dict__, "tree_log_probs": None}

    def __len__(self) -> int:
        return len(self.scores)

    @overload
    def __getitem__(self, index: int) -> ScoredTree: ...
    @overload
    def __getitem__(self, index: slice) -> list[ScoredTree]: ...

    def __getitem__(self, index: int | slice) -> ScoredTree | list[ScoredTree]:
        if isinstance(index, slice):
            return self._trees(range(*index.indices(len(self))))
        place = index + len(self) if index < 0 else index
        if not 0 <= place < len(self):
            raise IndexError(f"there is no tree {index} in a list of {len(self)}.")
        return self._trees(range(place, place + 1))[0]

    def __iter__(self) -> Iterator[ScoredTree]:
        return iter(self._trees(range(len(self))))

    def _trees(self, places: range) -> list[ScoredTree]:
        found = [self._tree(place) for place in places]
        if self.is_fallback:
            return [each._replace(tree_log_prob=-np.inf) for each in found]
        if self.tree_log_probs is None or not found:
            return found
        own = self.tree_log_probs([each.tree for each in found]).tolist()
        return [each._replace(tree_log_prob=value) for each, value in zip(found, own, strict=True)]

    def _tree(self, place: int) -> ScoredTree:
        first, last = int(self.tree_start[place]), int(self.tree_start[place + 1])
        tree = tree_from_nodes(
            self.node_label[first:last].tolist(),
            self.node_size[first:last].tolist(),
            self.labels,
            self.words,
        )
        return ScoredTree(tree, float(self.scores[place]), self.log_prob, self.status)

    @property
    def is_fallback(self) -> bool:
        """Whether the grammar has no tree for the words, and a flat one replaces it."""
        return self.status >= ParseStatus.FAILED

    def first(self, k: int) -> KBest:
        """Return the list cut after `k` trees."""
        if k >= len(self):
            return self
        end = int(self.tree_start[k])
        return KBest(
            self.words,
            self.labels,
            self.scores[:k],
            self.tree_start[: k + 1],
            self.node_label[:end],
            self.node_size[:end],
            self.log_prob,
            self.status,
            tree_log_probs=self.tree_log_probs,
        )

    @cached_property
    def packed(self) -> PackedTrees:
        """The trees as one batch for kernels."""
        return packed_together([self])


def is_fallback(found: Sequence[ScoredTree]) -> bool:
    """Return whether a flat tree replaces those of a sentence; no tree of a list is made for it."""
    return found.is_fallback if isinstance(found, KBest) else found[0].is_fallback


def packed_together(k_best: Sequence[KBest]) -> PackedTrees:
    """Return the trees of k-best lists as one batch for kernels."""
    labels = _one_numbering(k_best)
    distinct: dict[str, int] = {}
    ids = [
        np.tile([distinct.setdefault(word, len(distinct)) for word in found.words], len(found))
        for found in k_best
    ]
    node_size = _joined(found.node_size for found in k_best)
    node_word = np.full(len(node_size), NO_WORD, dtype=np.uint32)
    node_word[node_size == 1] = np.concatenate([np.zeros(0), *ids])
    nodes = _starts(len(found.node_label) for found in k_best)
    begins = [found.tree_start[1:] + first for found, first in zip(k_best, nodes, strict=False)]
    return PackedTrees(
        _native.PackedTrees(
            [(label, None, False, None) for label in labels],
            list(distinct),
            _joined(_renumbered(found, labels) for found in k_best),
            node_size,
            node_word,
            np.concatenate([np.zeros(1, dtype=np.uint64), *begins]).astype(np.uint32),
        )
    )


TreeArrays = tuple[
    npt.NDArray[np.uint8],
    Positions,
    npt.NDArray[np.float64],
    Positions,
    Ids,
    Ids,
]


def split_k_best(
    sentences: Sequence[Sequence[str]],
    labels: tuple[str, ...],
    arrays: TreeArrays,
    log_prob: npt.NDArray[np.float64],
    statuses: Sequence[ParseStatus],
) -> list[KBest | None]:
    """Return the list of every sentence, None for one without words.

    Args:
        sentences: The sentences.
        labels: What label numbers mean.
        arrays: As kernels return them: whether each list was cut short, starts of lists; scores and
            starts of trees; labels and sizes of nodes.
        log_prob: Log probability of every sentence.
        statuses: How each was parsed.
    """
    limited, list_starts, scores, starts, label, size = arrays
    ends = list_starts.tolist()
    found: list[KBest | None] = []
    for index, words in enumerate(sentences):
        if not words:
            found.append(None)
            continue
        first, last = ends[index], ends[index + 1]
        node, end = int(starts[first]), int(starts[last])
        found.append(
            KBest(
                tuple(words),
                labels,
                scores[first:last],
                starts[first : last + 1] - starts[first],
                label[node:end],
                size[node:end],
                float(log_prob[index]),
                statuses[index],
                bool(limited[index]),
            )
        )
    return found


def tree_from_nodes(
    labels: Sequence[int], sizes: Sequence[int], names: Sequence[str], words: Sequence[str]
) -> Tree:
    """Return the tree of nodes in preorder, given the labels' numbers and the subtrees' sizes."""
    stack: list[tuple[int, Tree]] = []  # (first node, tree), leftmost on top
    word = len(words)
    for node in range(len(labels) - 1, -1, -1):
        name = names[labels[node]]
        if sizes[node] == 1:
            word -= 1
            stack.append((node, Tree(name, words[word])))
            continue
        end = node + sizes[node]
        children = []
        while stack and stack[-1][0] < end:
            children.append(stack.pop()[1])
        stack.append((node, Tree(name, children)))
    return stack[0][1]


class KBestParser:
    """Finds the best trees of sentences with a chart parser.

    Args:
        parser: The parser.
        restore: Turns a tree of the grammar, without intermediate nodes, into one of the treebank.
            It must treat every node by its label alone.
    """

    def __init__(self, parser: ChartParser, restore: Callable[[Tree], Tree] | None = None) -> None:
        self.parser = parser
        self._restore = restore or (lambda tree: tree)
        numbers: dict[str, int] = {}
        starts, labels = [0], []
        for symbol, name in enumerate(parser.grammar.symbols):
            shown = self._labels(symbol, name)
            labels += [numbers.setdefault(label, len(numbers)) for label in shown]
            starts.append(len(labels))
        self.labels = tuple(numbers)
        self.visible = np.array(starts, dtype=np.uint32), np.array(labels, dtype=np.uint32)

    def _labels(self, symbol: int, name: str) -> list[str]:
        """Return the labels that a treebank tree shows for a symbol, from the top."""
        if symbol >= self.parser.grammar.phrasal:
            tree = self._restore(undo_disambiguate_tags(Tree(name, "word")))
            return [str(node.label) for node in tree.preorder()]
        if name.startswith("@"):
            return []
        tree = self._restore(Tree(name, [Tree("X", "word")]))
        return [str(node.label) for node in tree.preorder() if node.word is None]

    def parse(self, sentences: Sequence[Words], k: int, *, threads: int = 1) -> list[KBest | None]:
        """Return the best trees of every sentence, None for one without words.

        Args:
            sentences: The words of each, or strings that are split at white space.
            k: Maximum number of trees per sentence.
            threads: Number of threads.

        Returns:
            For a sentence that is too long, a list of one tree.

        Raises:
            UsageError: if `k` is less than one.
            TooLongSentence: ``E_TOO_LONG`` if the options refuse sentences that are too long.
        """
        if not 1 <= k < 1 << 24:
            raise UsageError(f"{k} trees cannot be listed; choose a number from 1 to {1 << 24}.")
        return parse_with_long(
            list(sentences_of(sentences)),
            self.parser.options,
            parse=lambda some: self._parse(some, k, threads),
            parse_pieces=lambda some: self._parse(some, 1, threads),
            join=self._joined,
            flat=lambda words: self.stand_in(words, ParseStatus.TOO_LONG),
        )

    def _parse(
        self, sentences: Sequence[Sequence[str]], k: int, threads: int
    ) -> list[KBest | None]:
        kernel, ids, starts, options = self.parser.kernel_call(sentences)
        with kernel_errors("parsing"):
            status, log_prob, arrays = _native.parse_k_best(
                kernel,
                ids,
                starts,
                decoding=self.parser.decoding,
                visible_start=self.visible[0],
                visible_label=self.visible[1],
                k=k,
                k_max_pops=self.parser.options.k_max_pops or 20 * k,
                threads=threads,
                **options,
            )
        statuses = [ParseStatus(own) for own in status.tolist()]
        found = split_k_best(sentences, self.labels, arrays, log_prob, statuses)
        for index, words in enumerate(sentences):
            own = found[index]
            if own is not None and own.is_fallback:
                found[index] = self.stand_in(words, own.status)
        return found

    def stand_in(self, words: Sequence[str], status: ParseStatus) -> KBest:
        """Return the list of one flat tree."""
        tree = self._restore(self.parser.flat_tree(words))
        return _single(words, tree, -np.inf, status)

    @staticmethod
    def _joined(words: Sequence[str], pieces: Sequence[KBest]) -> KBest:
        """Return the list of one tree, which joins the best ones of the pieces of a sentence."""
        tree = joined([piece[0].tree for piece in pieces])
        return _single(words, tree, np.nan, ParseStatus.SPLIT)


def _single(words: Sequence[str], tree: Tree, value: float, status: ParseStatus) -> KBest:
    """Return the list of one tree, with one value as its score and log probability."""
    packed = PackedTrees.from_trees([tree])
    return KBest(
        tuple(words),
        tuple(map(str, packed.labels)),
        np.array([value]),
        packed.tree_start.astype(np.uint64),
        packed.node_label,
        packed.node_size,
        value,
        status,
    )


def text_of(
    k_best: Sequence[KBest | None] | Sequence[Sequence[ScoredTree]], *, scores: bool = True
) -> bytes:
    """Return k-best lists as text: a line ``score TAB tree`` each, a blank line behind every list.

    Words are in their `bracket_spelling`.

    Args:
        k_best: The k-best lists, as arrays or not; None is an empty one.
        scores: False for lines of trees alone, and a blank line for an empty list.
    """
    arrays = [found for found in k_best if isinstance(found, KBest)]
    if len(arrays) < sum(map(bool, k_best)):
        return "".join(_plain_text(found or (), scores=scores) for found in k_best).encode()
    labels = _one_numbering(arrays)
    nodes = _starts(len(found.node_label) for found in arrays)
    begins = [found.tree_start[1:] + first for found, first in zip(arrays, nodes, strict=False)]
    with kernel_errors("writing trees"):
        return _native.write_tree_lists(
            labels=[bracket_spelling(label) for label in labels],
            words=[bracket_spelling(word) for found in arrays for word in found.words],
            word_start=_starts(
                len(found.words) if isinstance(found, KBest) else 0 for found in k_best
            ),
            list_start=_starts(len(found or ()) for found in k_best),
            score=np.concatenate([np.zeros(0), *(found.scores for found in arrays)]),
            tree_start=np.concatenate([np.zeros(1, dtype=np.uint64), *begins]),
            label=_joined(_renumbered(found, labels) for found in arrays),
            size=_joined(found.node_size for found in arrays),
            scores=scores,
        )


def _plain_text(trees: Sequence[ScoredTree], *, scores: bool) -> str:
    if not scores:
        return "".join(f"{found.tree}\n" for found in trees) or "\n"
    return "".join(f"{float(found.score)!r}\t{found.tree}\n" for found in trees) + "\n"


def _one_numbering(k_best: Iterable[KBest]) -> dict[str, int]:
    labels: dict[str, int] = {}
    for found in k_best:
        for label in found.labels:
            labels.setdefault(label, len(labels))
    return labels


def _renumbered(found: KBest, labels: Mapping[str, int]) -> Ids:
    numbers = np.array([labels[name] for name in found.labels], dtype=np.uint32)
    return numbers[found.node_label]


def _starts(sizes: Iterable[int]) -> Positions:
    return np.cumsum([0, *sizes], dtype=np.uint64)


def _joined(arrays: Iterable[Ids]) -> Ids:
    return np.concatenate([np.zeros(0, dtype=np.uint32), *arrays])
