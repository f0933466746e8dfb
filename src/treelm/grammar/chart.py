"""The chart parser: from sentences to trees and probabilities, with a grammar and its lexicon."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from treelm import _native
from treelm.corpus.words import Words, sentences_of
from treelm.errors import UnsupportedTask, UsageError
from treelm.grammar.coarse_to_fine import ancestors, expected_subcategories, project
from treelm.grammar.grammar import FloatArray, Grammar
from treelm.grammar.lexicon import Lexicon
from treelm.grammar.long_sentences import joined, parse_with_long
from treelm.grammar.parser_options import ParserOptions
from treelm.grammar.scored_tree import ParseStatus, ScoredTree
from treelm.kernel_errors import kernel_errors
from treelm.transforms.unary_chains import TAG_MARK, undo_disambiguate_tags
from treelm.trees.tree import Tree

_DECODING = {
    "max_rule_product": _native.Decoding.MAX_RULE_PRODUCT,
    "max_rule_sum": _native.Decoding.MAX_RULE_SUM,
    "variational": _native.Decoding.VARIATIONAL,
    "viterbi": _native.Decoding.VITERBI,
}

#: Multiplications after which a chart is abandoned: about ten seconds; and no such limit.
WORK_LIMIT, UNLIMITED_WORK = 20_000_000_000, (1 << 64) - 1


class ChartParser:
    """Parses with a grammar, plain or latent.

    Args:
        grammar: The grammar.
        lexicon: Its lexicon.
        options: Parser options.

    Raises:
        EstimationError: ``E_ARGUMENT`` if chains of unary rules do not become less probable.
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
        """Return a parser of the same grammar with other options."""
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
        """Grammar and lexicon as exact kernels take them."""
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

    def parse(self, sentences: Sequence[Words], *, threads: int = 1) -> list[ScoredTree | None]:
        """Return the best tree of every sentence, None for one without words.

        Args:
            sentences: The words of each, or strings that are split at white space.
            threads: Number of threads.

        Raises:
            TooLongSentence: ``E_TOO_LONG`` if the options refuse sentences that are too long.
        """

        def parse(some: Sequence[Sequence[str]]) -> list[ScoredTree | None]:
            return self._parse(some, threads)

        return parse_with_long(
            list(sentences_of(sentences)),
            self.options,
            parse=parse,
            parse_pieces=parse,
            join=lambda _, pieces: joined_trees(pieces),
            flat=lambda words: self._flat(words, ParseStatus.TOO_LONG),
        )

    def _parse(self, sentences: Sequence[Sequence[str]], threads: int) -> list[ScoredTree | None]:
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
            found = ParseStatus(status[index])
            if found >= ParseStatus.FAILED:
                parses.append(self._flat(words, found))
                continue
            nodes = slice(begins[index], begins[index + 1])
            tree = self._tree(labels[nodes], counts[nodes], words)
            parses.append(ScoredTree(tree, float(score[index]), float(log_prob[index]), found))
        return parses

    def kernel_call(
        self, sentences: Sequence[Sequence[str]]
    ) -> tuple[_native.ChartParser, npt.NDArray[np.uint32], npt.NDArray[np.uint64], dict[str, Any]]:
        """Return the kernel, the words as it takes them, and its options."""
        ids, starts = self.encode(sentences)
        options = {
            "beam": self.options.thresholds.beam,
            "edges": self.options.thresholds.edges,
            "thresholds": self._thresholds,
            "max_unary": self.options.max_unary,
            "work_limit": WORK_LIMIT,
        }
        return self._kernel, ids, starts, options

    @property
    def decoding(self) -> _native.Decoding:
        """What the best tree maximizes, as the kernel knows it."""
        return _DECODING[self.options.decoding]

    def encode(
        self, sentences: Sequence[Words]
    ) -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.uint64]]:
        """Return the ids of all words, and where the sentences begin and the last ends."""
        encoded = list(map(self.lexicon.vocabulary.encode, sentences_of(sentences)))
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

    def _flat(self, words: Sequence[str], status: ParseStatus) -> ScoredTree:
        return ScoredTree(self.flat_tree(words), -np.inf, -np.inf, status)

    def flat_tree(self, words: Sequence[str]) -> Tree:
        """Return the tree used where there is no parse: each word below its most likely tag."""
        ids = self.lexicon.vocabulary.encode(words).tolist()
        tags = {word_id: self._likely_tag(word_id) for word_id in dict.fromkeys(ids)}
        leaves = [Tree(tags[word_id], word) for word, word_id in zip(words, ids, strict=True)]
        tree = Tree(self.grammar.symbols[0], leaves)
        return undo_disambiguate_tags(tree) if self._marked else tree

    def _likely_tag(self, word_id: int) -> str:
        starts = self.grammar.substate_starts
        tags = [
            (-float(scores @ self._counts[starts[tag] : starts[tag + 1]]), tag)
            for tag, scores in self.lexicon.scores(word_id)
        ]
        return self.grammar.symbols[min(tags)[1] if tags else self.grammar.phrasal]

    # -- probabilities ----------------------------------------------------------------------

    def log_probs(
        self,
        sentences: Sequence[Words],
        *,
        work_limit: int = WORK_LIMIT,
        threads: int = 1,
    ) -> npt.NDArray[np.float64]:
        """Return the exact natural log probability of every sentence, over all its trees.

        Args:
            sentences: Each a sequence of words.
            work_limit: Multiplications after which a chart is given up.
            threads: Number of threads.

        Returns:
            Minus infinity without a parse, and NaN where a chart is too large.
        """
        ids, starts = self.encode(sentences)
        with kernel_errors("scoring sentences"):
            return self.scorer.score(ids, starts, work_limit=work_limit, threads=threads)

    def lower_bounds(
        self, sentences: Sequence[Words], *, threads: int = 1
    ) -> npt.NDArray[np.float64]:
        """Return the natural log probability of every sentence in its pruned chart.

        It is minus infinity without a parse, and where even an unpruned chart would be too large.
        """
        ids, starts = self.encode(sentences)
        with kernel_errors("scoring sentences"):
            status, log_prob, *_ = self._kernel.parse(
                ids,
                starts,
                beam=self.options.thresholds.beam,
                edges=self.options.thresholds.edges,
                thresholds=self._thresholds,
                decoding=_native.Decoding.NONE,
                max_unary=self.options.max_unary,
                intermediate=self._intermediate,
                work_limit=WORK_LIMIT,
                threads=threads,
            )
        return np.where(status >= ParseStatus.FAILED, -np.inf, log_prob)

    def prefix_log_probs(self, words: Words) -> tuple[npt.NDArray[np.float64], float]:
        """Return the natural log probabilities of all prefixes, and of the whole sentence."""
        ids = self.lexicon.vocabulary.encode(words)
        starts = np.array([0, len(ids)], dtype=np.uint64)
        with kernel_errors("scoring prefixes"):
            found = self.prefixes.score(ids, starts, work_limit=WORK_LIMIT, threads=1)
        return found[:-1], float(found[-1])


def joined_trees(pieces: Sequence[ScoredTree]) -> ScoredTree:
    """Return the trees of the pieces of a sentence as one, whose probability nobody knows."""
    return ScoredTree(joined([piece.tree for piece in pieces]), np.nan, np.nan, ParseStatus.SPLIT)


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
