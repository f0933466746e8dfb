"""The same model asked in another way: with a parser, another search, pruned, floored, smaller."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Self, cast

from treelm.errors import UnsupportedTask, UsageError, spelled
from treelm.models.interface.abilities import systems_that
from treelm.parallel.memory import MemoryLimit
from treelm.parallel.progress import SILENT, Progress

if TYPE_CHECKING:
    from collections.abc import Sequence

    from treelm.estimation.layout import Layout
    from treelm.estimation.quantize import CodeBits
    from treelm.grammar.coded_weights import WeightChange
    from treelm.grammar.parser_options import Pruning
    from treelm.models.interface.consensus import ConsensusParser
    from treelm.models.interface.model import LanguageModel
    from treelm.models.interface.parser import Parser
    from treelm.models.interface.reduction import ReductionLoss, Rounding
    from treelm.models.interface.reranked import RerankedParser
    from treelm.models.interface.scoring_views import FlooredScores, PrunedScores

#: Sentences that most models score at once.
SENTENCES_AT_ONCE = 4096


class ModelVariants:
    """Variants that every model can be asked for, and what decides how it is used.

    A variant that makes no sense for a system is refused with the systems that have it.
    """

    system: ClassVar[str]
    #: Whether `with_parser` gives it the trees of sentences.
    takes_parser: ClassVar[bool] = False
    #: Names that `with_search` takes.
    search_options: tuple[str, ...] = ()
    #: What `max_words` is unless `with_max_words` was asked for.
    usual_max_words: ClassVar[int | None] = None
    _max_words: int | None = None

    @property
    def mixed_models(self) -> tuple[LanguageModel, ...]:
        """The models that a mixture is made of; none for all other models."""
        return ()

    @property
    def sums_over_trees(self) -> bool:
        """Whether scores come from lists of trees: then `SentenceScore.trees` counts them."""
        return False

    @property
    def sentences_at_once(self) -> int:
        """Sentences that are best scored together: fewer where each is parsed."""
        return SENTENCES_AT_ONCE

    @property
    def scoring_parts(self) -> dict[str, object]:
        """How it is asked for scores, as parts of a signature; nothing if as it was trained."""
        return {}

    @property
    def max_words(self) -> int | None:
        """Most words of a sentence that it scores; None for any number, in linear time.

        Where time or memory grow faster than the words, longer sentences raise ``E_TOO_LONG`` at
        once. At the usual limit a sentence takes about ten seconds at most.
        """
        return self._max_words or self.usual_max_words

    def with_max_words(self, max_words: int) -> Self:
        """Return the model with another limit on the words of a sentence.

        Args:
            max_words: Most words; a system without a limit of its own keeps none.

        Raises:
            UsageError: for less than one word.
        """
        if max_words < 1:
            raise UsageError(f"max_words is {max_words}; it must be 1 or more.")
        made = object.__new__(type(self))
        made.__dict__.update(self.__dict__)
        made._max_words = max_words if self.max_words is not None else None
        return made

    @property
    def parser(self) -> Parser | None:
        """What gives it the trees of sentences, if it holds such a parser."""
        return None

    def with_parser(self, parser: Parser, k: int | None = None) -> LanguageModel:
        """Return the model with a parser that gives it the trees of sentences.

        Args:
            parser: A model that parses, a list of parses, or anything else with such a `parse`.
            k: Trees of a sentence that are asked of it; by default as many as before.

        Raises:
            UsageError: if the model needs no parser; for what is no parser, and for a parser that
                cannot give so many trees.
        """
        del parser, k
        raise self.needs_no_parser()

    def needs_no_parser(self) -> UsageError:
        """Return the error for a parser that the model has no use for."""
        able = ", ".join(systems_that(lambda kind: kind.takes_parser))
        what = spelled(command_line="--parser and -k are", python="`with_parser` is")
        return UsageError(
            f"{self.system} models need no parser: they score sentences by themselves. {what} for "
            f"models of trees: {able}."
        )

    def pruned(self, pruning: Pruning = "default") -> PrunedScores:
        """Return the model as one that scores sentences faster, by lower bounds.

        Args:
            pruning: fast, default or accurate, as in parsing.

        Raises:
            UsageError: if the model has no charts to prune.
        """
        del pruning
        able = systems_that(lambda kind: kind.pruned is not ModelVariants.pruned)
        what = spelled(command_line="--pruning", python="`pruned`")
        raise UsageError(
            f"{self.system} models have no charts to prune; {what} is for grammars: "
            f"{', '.join(able)}."
        )

    def floored(self, share: float = 0.001) -> FlooredScores:
        """Return the model mixed with the unigram model of its training text, by sentences.

        No sentence is impossible then, so that those without a parse have a probability.

        Args:
            share: What the unigram model has of the mixture.

        Raises:
            UsageError: for a share that is not between 0 and 1.
            UnsupportedTask: ``E_NO_COUNTS`` if the model does not know how often words occur.
        """
        from treelm.models.interface.scoring_views import FlooredScores

        own = cast("LanguageModel", self)
        return FlooredScores(own, share).with_tokenizer(own.tokenizer)

    def with_reranker(
        self,
        *reranker: LanguageModel,
        weight: float | Sequence[float] | None = None,
        k: int | None = None,
    ) -> RerankedParser:
        """Return the parser as one whose best trees other models put in order.

        The score of a tree is then that of the parser plus, for each of the others, `weight` times
        the natural log probability of the tree in it.

        Args:
            reranker: Models that give trees probabilities, such as a treelet model, or grammars of
                other seeds; or rankers of trees.
            weight: Of the log probability; of each, or one for all. Default: 0.75, and 1 for
                rankers.
            k: Trees of a sentence among which they choose. Default: 50.

        Raises:
            UsageError: for an impossible weight, or a parser that does not give so many trees.
            UnsupportedTask: if the model does not parse, or another one does not score trees.
        """
        from treelm.models.interface.reranked import RERANKED, RerankedParser

        own = cast("LanguageModel", self)
        made = RerankedParser(
            own.with_tokenizer(None),
            [each.with_tokenizer(None) for each in reranker],
            weight,
            RERANKED if k is None else k,
        )
        return made.with_tokenizer(own.tokenizer)

    def with_consensus(
        self,
        *others: LanguageModel,
        weight: float | Sequence[float] | None = None,
        k: int | None = None,
    ) -> ConsensusParser:
        """Return the parser and others as one that is slower and more accurate.

        All that parse propose trees, all score them, and the tree with the largest expected F1 is
        the best.

        Args:
            others: Models that give trees probabilities: grammars of other seeds, a treelet model;
                or rankers of trees.
            weight: Of their log probabilities, where the parser's has 1; of each, or one for all.
                Default: 1.
            k: Trees of a sentence that each proposes. Default: 50.

        Raises:
            UsageError: for an impossible weight, or a parser that does not give so many trees.
            UnsupportedTask: if the model does not parse, or one does not score trees.
        """
        from treelm.models.interface.consensus import (
            CONSENSUS_WEIGHT,
            PROPOSED,
            ConsensusParser,
        )

        own = cast("LanguageModel", self)
        made = ConsensusParser(
            own.with_tokenizer(None),
            [each.with_tokenizer(None) for each in others],
            CONSENSUS_WEIGHT if weight is None else weight,
            PROPOSED if k is None else k,
        )
        return made.with_tokenizer(own.tokenizer)

    def with_search(self, **options: object) -> LanguageModel:
        """Return the same model with another search.

        Args:
            options: Any of `search_options`.

        Raises:
            UsageError: for another option, or an impossible value.
        """
        able = systems_that(lambda kind: set(options) <= set(kind.search_options))
        raise UsageError(
            f"{self.system} models have no search with {', '.join(sorted(options))}. Systems that "
            f"have: {', '.join(able)}; and mixtures with one of these."
        )

    def quantized(
        self, bits: CodeBits, *, threads: int = 1, progress: Progress = SILENT
    ) -> LanguageModel:
        """Return the model with codes of 4 to 8 or 16 bits instead of floats in its tables.

        Args:
            bits: Of a code; fewer than 8 make the tables compact.
            threads: Kernel threads; results do not depend on it.
            progress: Told how far it is.

        Raises:
            UnsupportedTask: if the system has no such tables.
        """
        del bits, threads, progress
        able = systems_that(lambda kind: kind.quantized is not ModelVariants.quantized)
        raise UnsupportedTask(
            f"{self.system} models have no tables that can be quantised. Systems that have: "
            f"{', '.join(able)}."
        )

    @property
    def layout(self) -> Layout:
        """How its tables lie in memory: one that is not compact throughout is hashed."""
        return "hashed"

    def compacted(
        self, *, memory: MemoryLimit | None = None, progress: Progress = SILENT
    ) -> LanguageModel:
        """Return the model with compact tables: smaller, slower, and with the same numbers.

        Args:
            memory: Where tables that are in temporary files go: to others.
            progress: Told how far it is.

        Raises:
            UnsupportedTask: if the system has no such tables.
        """
        del memory, progress
        able = systems_that(lambda kind: kind.compacted is not ModelVariants.compacted)
        raise UnsupportedTask(
            f"{self.system} models have no tables that can be made compact. Systems that have: "
            f"{', '.join(able)}."
        )

    def with_loss(self, loss: ReductionLoss) -> Self:
        """Return the model with what its reduction lost, where its options keep such a record."""
        del loss
        return self

    @property
    def roundings(self) -> tuple[tuple[str, Rounding | WeightChange], ...]:
        """How far stored values moved when it was quantised: by part, in a mixture."""
        return ()
