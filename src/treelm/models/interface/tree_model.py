"""Models of trees; a sentence is scored by the sum over a parser's trees."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import ClassVar, Self

import numpy as np
from pydantic import Field

from treelm.characters import visible
from treelm.corpus.words import Words, sentences_of
from treelm.errors import ModelFileError, UnsupportedTask, UsageError
from treelm.grammar.grammar import FloatArray
from treelm.grammar.scored_tree import ScoredTree
from treelm.models.interface.config import WordModelConfig
from treelm.models.interface.model import LanguageModel, Task
from treelm.models.interface.parser import Parser, check_parser, k_best_lists
from treelm.models.interface.score_explanation import ScoreExplanation, ScoreStep
from treelm.models.interface.scores import SentenceScore
from treelm.models.registry import from_folder
from treelm.store.folder import FolderWriter, ModelFolder
from treelm.trees.packed import PackedTrees
from treelm.trees.tree import Tree

#: Name of the parser's part in a model folder.
PARSER_PART = "parser"

#: Default number of trees per sentence to sum over.
DEFAULT_K = 1000

#: Sentences that are parsed and scored at once.
PARSED_AT_ONCE = 64


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
    """A model that knows the probability of a tree together with its words.

    Where it samples, every sentence comes with its tree, and none is cut.
    """

    #: Whether the trees of samples are as `distinct` gives them, and not as a treebank has them.
    samples_own_trees: ClassVar[bool] = False

    @abstractmethod
    def tree_log_probs(self, trees: Sequence[Tree], *, threads: int = 1) -> FloatArray:
        """Return the joint natural log probability of each tree and its words.

        Args:
            trees: Trees below ROOT, as a reader or a parser returns them.
            threads: Number of threads.

        Returns:
            One number per tree, minus infinity for trees that the model cannot derive.
        """

    def packed_log_probs(self, batches: Sequence[PackedTrees], *, threads: int = 1) -> FloatArray:
        """Return `tree_log_probs` of the trees of batches, one batch after the other."""
        trees = [tree for batch in batches for tree in batch]
        return self.tree_log_probs(trees, threads=threads)

    def distinct(self, trees: Sequence[Tree]) -> Sequence[Tree]:
        """Return trees that are different for the model, in order; each is then summed once.

        A model that transforms trees first returns the transformed ones, which
        `tree_log_probs_of_distinct` then scores.
        """
        return list(dict.fromkeys(trees))

    def tree_log_probs_of_distinct(self, trees: Sequence[Tree], *, threads: int = 1) -> FloatArray:
        """Return `tree_log_probs` of the result of `distinct`."""
        return self.tree_log_probs(trees, threads=threads)

    def score_lists(
        self, lists: Iterable[Sequence[ScoredTree]], *, threads: int = 1
    ) -> Iterator[SentenceScore]:
        """Yield the score of each sentence given trees of it: the sum over the distinct ones.

        Args:
            lists: The trees of each sentence in turn.
            threads: Number of threads.

        Returns:
            Lower bounds, with the number of trees; `fallback` where a parser found none and
            a replacement was scored.
        """
        rest = iter(lists)
        while batch := [list(parses) for parses in islice(rest, PARSED_AT_ONCE)]:
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

    # -- explanation ------------------------------------------------------------------------

    #: Where the equations are, for `explain_score`.
    tree_reference: ClassVar[str] = "the page of the system in the documentation"

    def tree_steps(self, tree: Tree) -> list[ScoreStep]:
        """Return the parts of the log probability of a tree; by default there is only one."""
        value = float(self.tree_log_probs([tree])[0])
        return [ScoreStep("P(tree and words)", value)]

    def explained_by_trees(
        self, words: tuple[str, ...], score: float, trees: Sequence[Tree]
    ) -> ScoreExplanation:
        """Return a score as the steps of the best tree, and what the other trees add to it.

        Args:
            words: The sentence.
            score: Its log probability.
            trees: Trees of it, among them the best.
        """
        values = self.tree_log_probs(trees) if trees else np.zeros(0)
        steps: list[ScoreStep] = []
        if len(values) and float(values.max()) > -math.inf:
            place = int(values.argmax())
            best, value = trees[place], float(values[place])
            steps = self.tree_steps(best)
            rest = score - math.fsum(step.value for step in steps)
            share = f"the best tree has {math.exp(min(0.0, value - score)):.6g} of the probability"
            steps.append(ScoreStep(f"divided by its share: {share}", rest))
        else:
            steps.append(ScoreStep("the model has no tree for the sentence", score))
        return ScoreExplanation(
            self.system,
            words,
            "log probability",
            score,
            tuple(steps),
            "The probability of a sentence is the sum over its trees: the best tree, step by step, "
            "and what all others add.",
            self.tree_reference,
        )


class RanksTrees(LanguageModel):
    """A model that says how much better some trees of a sentence are than others.

    Its numbers are no probabilities: they are added to those of a parser.
    """

    @abstractmethod
    def packed_ranks(self, batches: Sequence[PackedTrees], *, threads: int = 1) -> FloatArray:
        """Return `tree_ranks` of the trees of batches, one batch after the other."""

    def tree_ranks(self, trees: Sequence[Tree], *, threads: int = 1) -> FloatArray:
        """Return how much better trees are than their parser says, in nats.

        Only differences between trees of the same sentence mean anything.

        Args:
            trees: Trees below ROOT, as a reader or a parser returns them.
            threads: Number of threads.
        """
        return self.packed_ranks([PackedTrees.from_trees(trees)], threads=threads)


class TreeModelConfig(WordModelConfig):
    """What the options of every model that needs a parser have in common."""

    k: int = Field(default=DEFAULT_K, ge=1, le=1_000_000)
    """Number of trees per sentence to request from the parser and sum over."""


class TreeModel(TreeScorer):
    """A tree model; sentences are scored by the sum over a parser's best trees.

    A system need not call a constructor here: it keeps its options in `_config`, a
    `TreeModelConfig`, and defines `description`, `write_files` and `from_folder` like any model,
    calling `write_parser` and `read_parser` in the last two.
    """

    tasks: ClassVar[frozenset[Task]] = frozenset({Task.SCORE, Task.PERPLEXITY})
    takes_parser: ClassVar[bool] = True
    _config: TreeModelConfig
    _parser: Parser | None = None

    # -- the parser -------------------------------------------------------------------------

    @property
    def parser(self) -> Parser | None:
        """What gives sentences their trees, if it has one."""
        return self._parser

    @property
    def k(self) -> int:
        """Number of trees per sentence to request from the parser."""
        return self._config.k

    def with_parser(self, parser: Parser, k: int | None = None) -> Self:
        """Return the model with a parser, so that it can score sentences."""
        wanted = self.k if k is None else k
        check_parser(parser, wanted)
        return self._holding(parser, wanted)

    def without_parser(self) -> Self:
        """Return the model without its parser."""
        return self._holding(None, self.k)

    def _holding(self, parser: Parser | None, k: int) -> Self:
        made = object.__new__(type(self))
        made.__dict__.update(self.__dict__)
        made._parser = parser
        made._config = self._config.model_copy(update={"k": k})
        return made

    def obstacle(self, task: Task) -> str | None:
        """Return what keeps this model from a task: perhaps that it has no parser."""
        found = super().obstacle(task)
        if found is None and self._parser is None and task in (Task.SCORE, Task.PERPLEXITY):
            return "E_NO_PARSER"
        return found

    def _needed_parser(self) -> Parser:
        if self._parser is None:
            raise self.unable(Task.SCORE)
        return self._parser

    @property
    def sums_over_trees(self) -> bool:
        """Scores come from the lists of its parser."""
        return True

    @property
    def sentences_at_once(self) -> int:
        """Few: each is parsed."""
        return PARSED_AT_ONCE

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
                f"{self.system} models score whole sentences, their end included."
            )
        rest = sentences_of(sentences)

        def lists() -> Iterator[Sequence[ScoredTree]]:
            while batch := list(islice(rest, PARSED_AT_ONCE)):
                yield from k_best_lists(parser, batch, self.k, threads=threads)

        return self.score_lists(lists(), threads=threads)

    def explain_score(self, sentence: Words) -> ScoreExplanation:
        """Return the arithmetic of the score of a sentence: its best tree, and the others."""
        [words] = sentences_of([sentence])
        [parses] = k_best_lists(self._needed_parser(), [words], self.k, threads=1)
        trees = [parse.tree for parse in parses or ()]
        return self.explained_by_trees(tuple(words), self.score(words).log_prob, trees)

    # -- files ------------------------------------------------------------------------------

    def write_parser(self, writer: FolderWriter) -> None:
        """Save the parser, if there is one, below ``parts/parser``; `write_files` calls it.

        Raises:
            UsageError: if the parser is not a model.
        """
        if self._parser is None:
            return
        if not isinstance(self._parser, LanguageModel):
            raise UsageError(
                f"the parser of this {self.system} model is not a model and cannot be saved "
                "with it. Save `model.without_parser()`, and give the parses again when it is used."
            )
        self._parser.save(writer.part(PARSER_PART))

    @staticmethod
    def read_parser(folder: ModelFolder) -> Parser | None:
        """Return the parser that a folder holds, if it holds one; `from_folder` calls it.

        Raises:
            ModelFileError: ``E_MODEL_FILE`` if the part is not a model that parses.
        """
        if PARSER_PART not in folder.part_names:
            return None
        parser = from_folder(folder.part(PARSER_PART))
        if not parser.can(Task.PARSE):
            raise ModelFileError(
                f"{visible(str(folder.path))}: parts/{PARSER_PART} contains a {parser.system} "
                "model, which does not parse. Give the model another parser and save it again."
            )
        return parser
