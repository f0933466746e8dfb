"""The chart parser: sentences in, trees and probabilities out, by a grammar and its lexicon."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from functools import cached_property
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from treelm import _native
from treelm.errors import UnsupportedTask, UsageError
from treelm.grammar.coarse_to_fine import ancestors, expected_subcategories, project
from treelm.grammar.grammar import FloatArray, Grammar
from treelm.grammar.lexicon import Lexicon
from treelm.kernel_errors import kernel_errors
from treelm.transforms.transform import check_choice
from treelm.transforms.unary_chains import TAG_MARK, undo_disambiguate_tags
from treelm.trees.tree import Tree

Pruning = Literal["fast", "default", "accurate", "none"]
Decoding = Literal["max_rule_product", "max_rule_sum", "variational", "viterbi"]


class Thresholds(NamedTuple):
    """How much pruning leaves, as natural logarithms."""

    beam: float
    """Of the share of the likeliest item of a span that others need in the coarsest chart."""
    levels: tuple[float, ...]
    """Per level, of the smallest expected number of an item that survives."""


THRESHOLDS: dict[str, Thresholds] = {
    "fast": Thresholds(-6.0, (-6.5, -6.5, -6.0, -6.0, -7.0)),
    "default": Thresholds(-9.0, (-8.0, -8.0, -7.0, -7.0, -8.0)),
    "accurate": Thresholds(-np.inf, (-12.0, -12.0, -11.0, -12.0, -12.0, -14.0, -14.0)),
    "none": Thresholds(-np.inf, (-np.inf,)),
}

_DECODING = {
    "max_rule_product": _native.Decoding.MAX_RULE_PRODUCT,
    "max_rule_sum": _native.Decoding.MAX_RULE_SUM,
    "variational": _native.Decoding.VARIATIONAL,
    "viterbi": _native.Decoding.VITERBI,
}

#: Multiplications after which a chart is given up: some ten seconds.
WORK_LIMIT = 20_000_000_000


class ParseStatus(IntEnum):
    """How a tree was found."""

    PARSED = 0
    """With the pruning asked for."""
    LOOSENED = 1
    """After nothing was left, with looser pruning."""
    UNPRUNED = 2
    """After nothing was left again, without pruning."""
    FAILED = 3
    """Not at all: the tree is a flat one with the most probable tags."""
    TOO_LONG = 4
    """Not tried, because the sentence is too long; the tree is a flat one."""


class ScoredTree(NamedTuple):
    """A tree and what the parser thinks of it."""

    tree: Tree
    score: float
    """Natural logarithm of what the decoding maximizes (for max_rule_sum the sum itself)."""
    log_prob: float
    """Natural log probability of the words in the last chart; a lower bound if it was pruned."""
    status: ParseStatus = ParseStatus.PARSED

    @property
    def is_fallback(self) -> bool:
        """Whether the grammar has no tree for the words, and this one stands in for it."""
        return self.status >= ParseStatus.FAILED


@dataclass(frozen=True, slots=True, kw_only=True)
class ParserOptions:
    """How a chart parser works.

    Args:
        pruning: fast, default, accurate, none, or thresholds of one's own; where there are more
            levels than thresholds, the last holds for the rest.
        decoding: What the best tree makes as large as it can.
        max_unary: Longest chain of unary rules in a tree, the one below ROOT not counted.
        max_words: Sentences longer than this are not tried.
        levels: Cycles of splitting whose grammars prune; None for every other one, which costs less
            than all of them and loses nothing. The coarsest and the finest are always used.
        k_max_pops: Steps after which a list of trees ends; None for 20 times the trees asked for.
    """

    pruning: Pruning | Thresholds = "default"
    decoding: Decoding = "max_rule_product"
    max_unary: int = 4
    max_words: int = 200
    levels: tuple[int, ...] | None = None
    k_max_pops: int | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.pruning, Thresholds):
            check_choice("pruning", self.pruning, THRESHOLDS)
        elif not self.pruning.levels or np.isnan([self.pruning.beam, *self.pruning.levels]).any():
            raise UsageError(
                "thresholds of pruning need a beam and at least one level, all numbers."
            )
        check_choice("decoding", self.decoding, _DECODING)
        if self.max_unary < 0:
            raise UsageError(f"max_unary is {self.max_unary}; it must be 0 or more.")
        if self.k_max_pops is not None and self.k_max_pops < 1:
            raise UsageError(f"k_max_pops is {self.k_max_pops}; it must be 1 or more.")

    @property
    def thresholds(self) -> Thresholds:
        """What is pruned."""
        pruning = self.pruning
        return pruning if isinstance(pruning, Thresholds) else THRESHOLDS[pruning]


class ChartParser:
    """Parses with a grammar, plain or latent.

    Args:
        grammar: The grammar.
        lexicon: Its lexicon.
        options: How it works.

    Raises:
        EstimationError: ``E_ARGUMENT`` if chains of unary rules do not grow less probable.
    """

    def __init__(
        self, grammar: Grammar, lexicon: Lexicon, options: ParserOptions | None = None
    ) -> None:
        self.grammar, self.lexicon = grammar, lexicon
        self.options = options or ParserOptions()
        symbols = grammar.symbols
        self._intermediate = np.array(
            [symbol.startswith("@") for symbol in symbols], dtype=np.uint8
        )
        self._marked = any(TAG_MARK in symbol for symbol in symbols[grammar.phrasal :])

    def with_options(self, options: ParserOptions) -> ChartParser:
        """Return a parser of the same grammar that works otherwise."""
        return ChartParser(self.grammar, self.lexicon, options)

    # -- the kernels ------------------------------------------------------------------------

    @cached_property
    def _counts(self) -> FloatArray:
        return expected_subcategories(self.grammar)

    @cached_property
    def _levels(self) -> tuple[int, ...]:
        cycles = len(self.grammar.split_tree)
        chosen = range(0, cycles, 2) if self.options.levels is None else self.options.levels
        return tuple(sorted({0, cycles, *(level for level in chosen if 0 <= level <= cycles)}))

    @cached_property
    def _coarsest(self) -> tuple[Grammar, Lexicon]:
        if not self.grammar.is_latent:
            return self.grammar, self.lexicon
        if not self.grammar.split_tree:
            raise UsageError("the grammar has subcategories, but no history of splits to prune by.")
        return project(self.grammar, self.lexicon, 0, self._counts)

    @cached_property
    def _kernel(self) -> _native.ChartParser:
        pairs: list[tuple[Grammar, Lexicon, list[int]]] = []
        if not self.grammar.is_latent:
            pairs.append((self.grammar, self.lexicon, []))
        else:
            for place, level in enumerate(self._levels):
                last = level == len(self.grammar.split_tree)
                made = (
                    (self.grammar, self.lexicon)
                    if last
                    else self._coarsest
                    if level == 0
                    else project(self.grammar, self.lexicon, level, self._counts)
                )
                above: list[int] = []
                if place:
                    here = ancestors(self.grammar, level)
                    parent = np.zeros(int(here.max()) + 1, dtype=np.int64)
                    parent[here] = ancestors(self.grammar, self._levels[place - 1])
                    above = parent.tolist()
                pairs.append((*made, above))
        with kernel_errors("preparing a parser"):
            return _native.ChartParser(
                [
                    (_native.ChartGrammar(**_rules(grammar)), _scores(lexicon), above)
                    for grammar, lexicon, above in pairs
                ]
            )

    @cached_property
    def exact(self) -> tuple[_native.ExactGrammar, _native.ChartLexicon]:
        """Grammar and lexicon as kernels take them that do not round."""
        return _native.ExactGrammar(**_rules(self.grammar)), _scores(self.lexicon)

    @cached_property
    def scorer(self) -> _native.InsideScorer:
        """The kernel of exact probabilities."""
        with kernel_errors("preparing a grammar"):
            if not self.grammar.is_latent:
                return _native.InsideScorer(*self.exact, None, None)
            plain, words = self._coarsest
            return _native.InsideScorer(
                *self.exact, _native.ExactGrammar(**_rules(plain)), _scores(words)
            )

    @cached_property
    def prefixes(self) -> _native.PrefixScorer:
        """The kernel of prefix probabilities.

        Raises:
            UnsupportedTask: for a grammar with subcategories.
        """
        if self.grammar.is_latent:
            raise UnsupportedTask("prefix probabilities need a grammar without subcategories.")
        with kernel_errors("preparing prefix probabilities"):
            return _native.PrefixScorer(*self.exact)

    @property
    def _thresholds(self) -> list[float]:
        given = self.options.thresholds.levels
        levels = self._levels if self.grammar.is_latent else (0,)
        return [given[min(level, len(given) - 1)] for level in levels]

    # -- parsing ----------------------------------------------------------------------------

    def parse(
        self, sentences: Sequence[Sequence[str]], *, threads: int = 1
    ) -> list[ScoredTree | None]:
        """Return the best tree of every sentence, None for one without words.

        Args:
            sentences: Each a sequence of words.
            threads: Kernel threads; results do not depend on it.
        """
        longest = self.options.max_words
        kernel, ids, starts, options = self.kernel_call(sentences)
        with kernel_errors("parsing"):
            status, log_prob, score, symbols, children, node_starts = kernel.parse(
                ids,
                starts,
                decoding=self.decoding,
                intermediate=self._intermediate,
                threads=threads,
                **options,
            )
        labels, counts, begins = symbols.tolist(), children.tolist(), node_starts.tolist()
        parses: list[ScoredTree | None] = []
        for index, words in enumerate(sentences):
            if not words:
                parses.append(None)
                continue
            found = ParseStatus.TOO_LONG if len(words) > longest else ParseStatus(status[index])
            if found >= ParseStatus.FAILED:
                parses.append(ScoredTree(self.flat_tree(words), -np.inf, -np.inf, found))
                continue
            nodes = slice(begins[index], begins[index + 1])
            tree = self._tree(labels[nodes], counts[nodes], words)
            parses.append(ScoredTree(tree, float(score[index]), float(log_prob[index]), found))
        return parses

    def kernel_call(
        self, sentences: Sequence[Sequence[str]]
    ) -> tuple[_native.ChartParser, npt.NDArray[np.uint32], npt.NDArray[np.uint64], dict[str, Any]]:
        """Return the kernel, the words as it takes them, and how it is to work.

        Sentences that are too long are handed over without words.
        """
        longest = self.options.max_words
        ids, starts = self.encode([() if len(s) > longest else s for s in sentences])
        options = {
            "beam": self.options.thresholds.beam,
            "thresholds": self._thresholds,
            "max_unary": self.options.max_unary,
            "work_limit": WORK_LIMIT,
        }
        return self._kernel, ids, starts, options

    @property
    def decoding(self) -> _native.Decoding:
        """What trees make as large as they can, as the kernel knows it."""
        return _DECODING[self.options.decoding]

    def encode(
        self, sentences: Sequence[Sequence[str]]
    ) -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.uint64]]:
        """Return the ids of all words, and where the sentences begin and the last ends."""
        encoded = [self.lexicon.vocabulary.encode(words) for words in sentences]
        starts = np.zeros(len(encoded) + 1, dtype=np.uint64)
        np.cumsum([len(ids) for ids in encoded], out=starts[1:])
        return np.concatenate([*encoded, np.zeros(0, dtype=np.uint32)]), starts

    def _tree(self, symbols: list[int], children: list[int], words: Sequence[str]) -> Tree:
        names = self.grammar.symbols
        stack: list[Tree] = []
        word = len(words)
        for symbol, count in zip(reversed(symbols), reversed(children), strict=True):
            if count:
                below = stack[len(stack) - count :][::-1]
                del stack[len(stack) - count :]
                stack.append(Tree(names[symbol], below))
            else:
                word -= 1
                stack.append(Tree(names[symbol], words[word]))
        return undo_disambiguate_tags(stack[0]) if self._marked else stack[0]

    def flat_tree(self, words: Sequence[str]) -> Tree:
        """Return the tree that stands in where there is none: each word below its likeliest tag."""
        starts = self.grammar.substate_starts
        ids = self.lexicon.vocabulary.encode(words).tolist()
        leaves = []
        for word, word_id in zip(words, ids, strict=True):
            tags = [
                (-float(scores @ self._counts[starts[tag] : starts[tag + 1]]), tag)
                for tag, scores in self.lexicon.scores(word_id)
            ]
            tag = min(tags)[1] if tags else self.grammar.phrasal
            leaves.append(Tree(self.grammar.symbols[tag], word))
        tree = Tree(self.grammar.symbols[0], leaves)
        return undo_disambiguate_tags(tree) if self._marked else tree

    # -- probabilities ----------------------------------------------------------------------

    def log_probs(
        self, sentences: Sequence[Sequence[str]], *, threads: int = 1
    ) -> npt.NDArray[np.float64]:
        """Return the exact natural log probability of every sentence, over all its trees.

        It is minus infinity without a parse, and not a number where a chart is too large.
        """
        ids, starts = self.encode(sentences)
        with kernel_errors("scoring sentences"):
            return self.scorer.score(ids, starts, work_limit=WORK_LIMIT, threads=threads)

    def lower_bounds(
        self, sentences: Sequence[Sequence[str]], *, threads: int = 1
    ) -> npt.NDArray[np.float64]:
        """Return the natural log probability of every sentence in what pruning leaves of its chart.

        It is minus infinity without a parse, and where even an unpruned chart would be too large.
        """
        ids, starts = self.encode(sentences)
        with kernel_errors("scoring sentences"):
            status, log_prob, *_ = self._kernel.parse(
                ids,
                starts,
                beam=self.options.thresholds.beam,
                thresholds=self._thresholds,
                decoding=_native.Decoding.NONE,
                max_unary=self.options.max_unary,
                intermediate=self._intermediate,
                work_limit=WORK_LIMIT,
                threads=threads,
            )
        return np.where(status >= ParseStatus.FAILED, -np.inf, log_prob)

    def prefix_log_probs(self, words: Sequence[str]) -> tuple[npt.NDArray[np.float64], float]:
        """Return the natural log probabilities of all prefixes, and of the whole sentence."""
        ids = self.lexicon.vocabulary.encode(words)
        starts = np.array([0, len(ids)], dtype=np.uint64)
        with kernel_errors("scoring prefixes"):
            found = self.prefixes.score(ids, starts, work_limit=WORK_LIMIT, threads=1)
        return found[:-1], float(found[-1])


def _rules(grammar: Grammar) -> dict[str, Any]:
    return {
        "phrasal": grammar.phrasal,
        "substates": grammar.substates,
        "unary_rules": np.ascontiguousarray(grammar.unary_rules),
        "binary_rules": np.ascontiguousarray(grammar.binary_rules),
        "unary_weights": np.ascontiguousarray(grammar.unary_weights),
        "binary_weights": np.ascontiguousarray(grammar.binary_weights),
    }


def _scores(lexicon: Lexicon) -> _native.ChartLexicon:
    return _native.ChartLexicon(
        phrasal=lexicon.phrasal,
        substates=lexicon.substates,
        entry_starts=lexicon.entry_starts,
        entry_symbols=lexicon.entry_symbols,
        entry_scores=lexicon.entry_scores,
        openness=lexicon.openness,
        open_scores=lexicon.open_scores,
    )
