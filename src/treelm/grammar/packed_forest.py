"""Pruned forests: all trees of a sentence that survive a parser's pruning, as arrays.

A node is a symbol of the grammar on a span; an edge is a rule that builds a node from one or two
others. Both carry how often they are expected in a tree of the words, so max-rule decoding
maximizes the product over the edges and leaves of a tree.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from treelm import _native
from treelm.corpus.words import Words, sentences_of
from treelm.errors import UsageError
from treelm.grammar.chart import ChartParser
from treelm.grammar.grammar import FloatArray
from treelm.grammar.k_best import KBest, KBestParser, split_k_best
from treelm.grammar.long_sentences import without_long
from treelm.grammar.scored_tree import ParseStatus
from treelm.kernel_errors import kernel_errors

Ids = npt.NDArray[np.uint32]
Starts = npt.NDArray[np.uint64]
Expected = npt.NDArray[np.float32]

#: Forests one after the other: starts of words, nodes and edges; of nodes symbol, first word, word
#: after the last and expected number; of edges head, left and right tail and expected number.
Forests = tuple[Starts, Starts, Starts, Ids, Ids, Ids, FloatArray, Ids, Ids, Ids, Expected]

#: Value of `edge_right` for a unary rule.
NO_NODE = 0xFFFFFFFF


@dataclass(frozen=True)
class ForestSymbols:
    """The symbols that nodes of forests have.

    Args:
        names: Symbols of the grammar; number 0 is ROOT.
        phrasal: Number of symbols that are phrases; the others are tags.
        visible_start: Per symbol, where its labels begin in `visible_label`; and their number.
        visible_label: Labels that trees show for the symbols, as numbers of `labels`.
        labels: Labels of trees.
        max_unary: Longest chain of unary rules in a tree.
    """

    names: tuple[str, ...]
    phrasal: int
    visible_start: Ids
    visible_label: Ids
    labels: tuple[str, ...]
    max_unary: int

    @classmethod
    def of(cls, parser: KBestParser) -> ForestSymbols:
        """Return the symbols of a parser's grammar."""
        grammar, options = parser.parser.grammar, parser.parser.options
        return cls(
            grammar.symbols, grammar.phrasal, *parser.visible, parser.labels, options.max_unary
        )


@dataclass(frozen=True, eq=False)
class PackedForest:
    """The pruned forest of a sentence.

    Nodes are ordered by their last word, their first word and their symbol; the one of symbol 0
    that spans all words is the root, those with a tag are leaves. There are no nodes if no tree was
    found.

    Args:
        words: The sentence.
        symbols: What the numbers in `node_symbol` mean.
        node_symbol: Symbols.
        node_first: First words, counted from 0.
        node_last: The words after the last.
        node_expected: Expected numbers, given the words.
        edge_head: Nodes that rules build.
        edge_left: First, or only, node they build it from.
        edge_right: The second, or `NO_NODE`.
        edge_expected: Expected numbers, given the words.
        log_prob: Natural log probability of the words in the last chart.
        status: How it was found.
    """

    words: tuple[str, ...]
    symbols: ForestSymbols = field(repr=False)
    node_symbol: Ids = field(repr=False)
    node_first: Ids = field(repr=False)
    node_last: Ids = field(repr=False)
    node_expected: FloatArray = field(repr=False)
    edge_head: Ids = field(repr=False)
    edge_left: Ids = field(repr=False)
    edge_right: Ids = field(repr=False)
    edge_expected: Expected = field(repr=False)
    log_prob: float
    status: ParseStatus = ParseStatus.PARSED

    def check(self) -> None:
        """Check that the arrays are a forest.

        Raises:
            EstimationError: ``E_ARGUMENT`` with the reason.
        """
        check_forests([self])

    def k_best(self, k: int) -> KBest:
        """Return the best trees by the product of expected numbers."""
        found = k_best_of_forests([self], k)[0]
        assert found is not None
        return found


def parse_forests(
    parser: KBestParser,
    sentences: Sequence[Words],
    *,
    least: float = 0.0,
    threads: int = 1,
) -> list[PackedForest | None]:
    """Return the pruned forest of every sentence, None for one without words.

    Args:
        parser: The parser; its pruning decides what is left.
        sentences: The words of each, or strings that are split at white space.
        least: Rules expected less often than this are left out too.
        threads: Number of threads.

    Returns:
        Without nodes where no tree was found, and for a sentence that is too long: pieces of it
        have no forest together.

    Raises:
        UsageError: for Viterbi decoding, which has no expected numbers.
        TooLongSentence: ``E_TOO_LONG`` if the options refuse sentences that are too long.
    """
    if parser.parser.options.decoding == "viterbi":
        raise UsageError("a forest contains expected numbers of rules; choose a max-rule decoding.")
    given = list(sentences_of(sentences))
    long, short = without_long(given, parser.parser.options)
    kernel, ids, starts, options = parser.parser.kernel_call(short)
    with kernel_errors("parsing"):
        status, log_prob, arrays = _native.parse_forests(
            kernel, ids, starts, least=least, threads=threads, **options
        )
    statuses = [ParseStatus(own) for own in status.tolist()]
    for place in long:
        statuses[place] = ParseStatus.TOO_LONG
    return split_forests(given, ForestSymbols.of(parser), arrays, log_prob, statuses)


def split_forests(
    sentences: Sequence[Sequence[str]],
    symbols: ForestSymbols,
    arrays: Sequence[npt.NDArray[Any]],
    log_prob: FloatArray,
    statuses: Sequence[ParseStatus],
) -> list[PackedForest | None]:
    """Return the forest of every sentence, None for one without words."""
    _, node_start, edge_start = (array.tolist() for array in arrays[:3])
    found: list[PackedForest | None] = []
    for index, words in enumerate(sentences):
        if not words:
            found.append(None)
            continue
        nodes = slice(node_start[index], node_start[index + 1])
        edges = slice(edge_start[index], edge_start[index + 1])
        found.append(
            PackedForest(
                tuple(words),
                symbols,
                node_symbol=arrays[3][nodes],
                node_first=arrays[4][nodes],
                node_last=arrays[5][nodes],
                node_expected=arrays[6][nodes],
                edge_head=arrays[7][edges],
                edge_left=arrays[8][edges],
                edge_right=arrays[9][edges],
                edge_expected=arrays[10][edges],
                log_prob=float(log_prob[index]),
                status=statuses[index],
            )
        )
    return found


def join_forests(forests: Sequence[PackedForest | None]) -> Forests:
    """Return the arrays of forests as kernels take them, one sentence after the other."""
    shown = [forest for forest in forests if forest is not None]

    def starts(sizes: list[int]) -> npt.NDArray[np.uint64]:
        return np.cumsum([0, *sizes], dtype=np.uint64)

    def joined(name: str, dtype: type[np.generic]) -> npt.NDArray[Any]:
        pieces = (getattr(forest, name) for forest in shown)
        return np.concatenate([np.zeros(0, dtype), *pieces]).astype(dtype, copy=False)

    return (
        # A forest without nodes is a sentence that was not parsed.
        starts([len(forest.words) if forest else 0 for forest in forests]),
        starts([len(forest.node_symbol) if forest else 0 for forest in forests]),
        starts([len(forest.edge_head) if forest else 0 for forest in forests]),
        joined("node_symbol", np.uint32),
        joined("node_first", np.uint32),
        joined("node_last", np.uint32),
        joined("node_expected", np.float64),
        joined("edge_head", np.uint32),
        joined("edge_left", np.uint32),
        joined("edge_right", np.uint32),
        joined("edge_expected", np.float32),
    )


def check_forests(forests: Sequence[PackedForest | None]) -> None:
    """Check that arrays are forests of one grammar.

    Raises:
        EstimationError: ``E_ARGUMENT`` with the reason.
    """
    for forest in forests:
        if forest is not None:
            symbols = forest.symbols
            with kernel_errors("checking forests"):
                _native.check_forests(
                    join_forests(forests), symbols=len(symbols.names), phrasal=symbols.phrasal
                )
            return


def k_best_of_forests(
    forests: Sequence[PackedForest | None], k: int, *, threads: int = 1
) -> list[KBest | None]:
    """Return the best trees of forests of one parser; None for no words.

    They are those that max-rule-product decoding finds; a list is empty where no tree was found.

    Raises:
        UsageError: if `k` is less than one.
        EstimationError: ``E_ARGUMENT`` for anything but a forest.
    """
    if not 1 <= k < 1 << 24:
        raise UsageError(f"{k} trees cannot be listed; choose a number from 1 to {1 << 24}.")
    known = next((forest for forest in forests if forest is not None), None)
    if known is None:
        return [None] * len(forests)
    symbols = known.symbols
    with kernel_errors("listing trees"):
        arrays = _native.forest_k_best(
            join_forests(forests),
            phrasal=symbols.phrasal,
            visible_start=symbols.visible_start,
            visible_label=symbols.visible_label,
            max_unary=symbols.max_unary,
            k=k,
            k_max_pops=20 * k,
            threads=threads,
        )
    return split_k_best(
        [() if forest is None else forest.words for forest in forests],
        symbols.labels,
        arrays,
        np.array([-np.inf if forest is None else forest.log_prob for forest in forests]),
        [ParseStatus.FAILED if forest is None else forest.status for forest in forests],
    )


def forest_log_probs(
    forests: Sequence[PackedForest | None], parser: ChartParser, *, threads: int = 1
) -> FloatArray:
    """Return the log of the summed probabilities of all trees of each forest, with their words.

    Only sums of doubles are rounded, and all subcategories count, pruned or not. Chains of unary
    rules may be cyclic, which they never are in a list of trees. It is minus infinity where there
    is no tree.

    Args:
        forests: Forests of a grammar of the same symbols: the parser's own, or another one trained
            on trees binarized in the same way.
        parser: Its grammar gives the probabilities.
        threads: Number of threads.

    Raises:
        UsageError: for a grammar with different symbols.
    """
    for forest in forests:
        if forest is not None and forest.symbols.names != parser.grammar.symbols:
            raise UsageError("the forest was made by a grammar with different symbols.")
    ids, _ = parser.encode([() if forest is None else forest.words for forest in forests])
    with kernel_errors("summing over forests"):
        return _native.forest_log_probs(join_forests(forests), *parser.exact, ids, threads=threads)
