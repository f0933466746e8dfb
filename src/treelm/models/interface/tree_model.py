"""Models that give trees probabilities, and the sum over a parser's trees as that of a sentence."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, ClassVar, Protocol, Self, runtime_checkable

import numpy as np
from pydantic import Field

from treelm.errors import ModelFileError, UnsupportedTask, UsageError
from treelm.grammar.grammar import FloatArray
from treelm.grammar.scored_tree import ScoredTree
from treelm.models.interface.model import Config, LanguageModel, Task
from treelm.models.interface.parser import ListParser, Parser
from treelm.models.interface.scores import SentenceScore
from treelm.models.interface.words import Words, words_of
from treelm.models.registry import from_folder
from treelm.store.folder import FolderWriter, ModelFolder
from treelm.trees.tree import Tree

#: Where a model folder keeps the parser.
PARSER_PART = "parser"

#: Trees of a sentence that are summed over, unless told otherwise.
DEFAULT_K = 1000

#: Sentences that are parsed and scored at once.
_BATCH = 64


@runtime_checkable
class GivesTrees(Protocol):
    """The least that a parser must do; `k_best_lists` uses more where a parser has it."""

    def parse(self, sentence: Words, k: int = 1) -> list[ScoredTree]:
        """Return up to `k` trees of a sentence, the best first; none for no words."""


def k_best_lists(
    parser: GivesTrees, sentences: Sequence[Sequence[str]], k: int, *, threads: int = 1
) -> list[Sequence[ScoredTree]]:
    """Return up to `k` trees of every sentence, all sentences at once if the parser can.

    Lists that a parser has as arrays stay so.
    """
    if isinstance(parser, ListParser):
        lists = parser.k_best_many(sentences, k, threads=threads)
        return [[] if found is None else found for found in lists]
    if isinstance(parser, Parser):
        return list(parser.parse_k_best_many(sentences, k, threads=threads))
    return [parser.parse(words, k) if words else [] for words in sentences]


def log_sum(log_probs: FloatArray) -> float:
    """Return the logarithm of a sum of probabilities, minus infinity for none.

    Examples:
        >>> round(log_sum(np.log([0.25, 0.5])), 6) == round(math.log(0.75), 6)
        True
        >>> log_sum(np.zeros(0))
        -inf
    """
    largest = float(log_probs.max(initial=-math.inf))
    if largest == -math.inf:
        return -math.inf
    return largest + math.log(math.fsum(np.exp(log_probs - largest).tolist()))


class TreeScorer(LanguageModel):
    """A model that knows the probability of a tree together with its words."""

    @abstractmethod
    def tree_log_probs(self, trees: Sequence[Tree], *, threads: int = 1) -> FloatArray:
        """Return the joint natural log probability of each tree and its words.

        Args:
            trees: Trees below ROOT, as a reader or a parser gives them.
            threads: Kernel threads; results do not depend on it.

        Returns:
            One number a tree, minus infinity for what the model cannot make.
        """

    def distinct(self, trees: Sequence[Tree]) -> Sequence[Tree]:
        """Return trees that are different for the model, in order; each is then summed once.

        A model that changes trees before it looks at them returns the changed ones, which
        `tree_log_probs_of_distinct` then scores.
        """
        return list(dict.fromkeys(trees))

    def tree_log_probs_of_distinct(self, trees: Sequence[Tree], *, threads: int = 1) -> FloatArray:
        """Return `tree_log_probs` of what `distinct` has returned."""
        return self.tree_log_probs(trees, threads=threads)

    def score_lists(
        self, lists: Iterable[Sequence[ScoredTree]], *, threads: int = 1
    ) -> Iterator[SentenceScore]:
        """Yield the score of each sentence given trees of it: the sum over the distinct ones.

        Args:
            lists: Trees of one sentence after the other.
            threads: Kernel threads; results do not depend on it.

        Returns:
            Lower bounds, with the number of trees; `fallback` where a parser found none and
            something else stands in for it.
        """
        rest = iter(lists)
        while batch := list(islice(rest, _BATCH)):
            kept = [self.distinct([parse.tree for parse in parses]) for parses in batch]
            flat = [tree for trees in kept for tree in trees]
            values = self.tree_log_probs_of_distinct(flat, threads=threads)
            first = 0
            for parses, trees in zip(batch, kept, strict=True):
                own = values[first : first + len(trees)]
                first += len(trees)
                yield SentenceScore(
                    log_sum(own),
                    "lower_bound",
                    trees=len(trees),
                    fallback=not parses or any(parse.is_fallback for parse in parses),
                )


class TreeModelConfig(Config):
    """What the options of every model that needs a parser have in common."""

    k: int = Field(default=DEFAULT_K, ge=1, le=1_000_000)
    """Trees of a sentence that are asked of the parser and summed over."""


class TreeModel(TreeScorer):
    """A model of trees; sentences are scored by the sum over a parser's best trees.

    A system calls nothing here when it is made: it keeps its options in `_config`, a
    `TreeModelConfig`, and gives `description`, `write_files` and `from_folder` as any model does,
    calling `write_parser` and `read_parser` in the last two.
    """

    tasks: ClassVar[frozenset[Task]] = frozenset({Task.SCORE, Task.PERPLEXITY})
    _config: TreeModelConfig
    _parser: GivesTrees | None = None

    # -- the parser -------------------------------------------------------------------------

    @property
    def parser(self) -> GivesTrees | None:
        """What gives sentences their trees, if it has one."""
        return self._parser

    @property
    def k(self) -> int:
        """Trees of a sentence that are asked of the parser."""
        return self._config.k

    def with_parser(self, parser: GivesTrees, k: int | None = None) -> Self:
        """Return the model with a parser, so that it can score sentences.

        Args:
            parser: A model that parses, a list of parses, or anything else with such a `parse`.
            k: Trees of a sentence that are asked of it; by default as many as before.

        Raises:
            UsageError: for what is no parser, or less than one tree.
        """
        if not isinstance(parser, GivesTrees):
            raise UsageError(
                f"{type(parser).__name__} is no parser: it has no method `parse`. Give a model of "
                "the system pcfg or pcfg_la, or a list of parses."
            )
        if k is not None and k < 1:
            raise UsageError(f"k is {k}; at least one tree is needed.")
        return self._holding(parser, self.k if k is None else k)

    def without_parser(self) -> Self:
        """Return the model without its parser."""
        return self._holding(None, self.k)

    def _holding(self, parser: GivesTrees | None, k: int) -> Self:
        made = object.__new__(type(self))
        made.__dict__.update(self.__dict__)
        made._parser = parser
        made._config = self._config.model_copy(update={"k": k})
        return made

    def _needed_parser(self) -> GivesTrees:
        if self._parser is None:
            raise UnsupportedTask(
                f"this {self.system} model gives trees probabilities and has no parser to find "
                "those of a sentence. Give one, with `model.with_parser(parser)` or --parser, or "
                "score trees instead, with `tree_log_probs`, --trees or --k-best.",
                code="E_NO_PARSER",
            )
        return self._parser

    # -- scores -----------------------------------------------------------------------------

    def score(self, sentence: Words, *, eos: bool = True) -> SentenceScore:
        """Return the log of the summed probabilities of a sentence's best trees."""
        return next(self.score_many([sentence], eos=eos))

    def score_many(
        self, sentences: Iterable[Words], *, eos: bool = True, threads: int = 1
    ) -> Iterator[SentenceScore]:
        """Yield the scores of sentences, in order: lower bounds, from at most `k` trees each.

        Raises:
            UnsupportedTask: ``E_NO_PARSER`` without a parser; also without the end of the
                sentence, where there are only whole trees.
        """
        parser = self._needed_parser()
        if not eos:
            raise UnsupportedTask(
                f"a model of the system {self.system} scores whole sentences, their end included."
            )
        rest = iter(sentences)

        def lists() -> Iterator[Sequence[ScoredTree]]:
            while batch := [words_of(sentence) for sentence in islice(rest, _BATCH)]:
                yield from k_best_lists(parser, batch, self.k, threads=threads)

        return self.score_lists(lists(), threads=threads)

    # -- files ------------------------------------------------------------------------------

    def write_parser(self, writer: FolderWriter) -> None:
        """Save the parser, if there is one, below ``parts/parser``; `write_files` calls it.

        Raises:
            UsageError: if the parser is no model.
        """
        if self._parser is None:
            return
        if not isinstance(self._parser, LanguageModel):
            raise UsageError(
                f"the parser of this {self.system} model is no model itself and cannot be saved "
                "with it. Save `model.without_parser()`, and give the parses again when it is used."
            )
        self._parser.save(writer.part(PARSER_PART))

    @staticmethod
    def read_parser(folder: ModelFolder) -> GivesTrees | None:
        """Return the parser that a folder holds, if it holds one; `from_folder` calls it.

        Raises:
            ModelFileError: ``E_MODEL_FILE`` if the part is no model that parses.
        """
        if PARSER_PART not in folder.manifest.parts:
            return None
        parser: Any = from_folder(folder.part(PARSER_PART))
        if Task.PARSE not in parser.tasks or not isinstance(parser, GivesTrees):
            raise ModelFileError(
                f"{folder.path}: what stands in parts/{PARSER_PART} is a model of the system "
                f"{parser.system}, which does not parse. Give the model another parser and save "
                "it again."
            )
        return parser
