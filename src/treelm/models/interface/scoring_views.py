"""Views of models: scored faster by lower bounds, or with a floor so that nothing is impossible."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import islice, pairwise
from typing import TYPE_CHECKING, Any, ClassVar, Self, cast, get_args

import numpy as np
import numpy.typing as npt

from treelm.characters import visible
from treelm.corpus.encoder import encode_sentences
from treelm.corpus.lengths import after_sentences, check_lengths
from treelm.corpus.sentence_filter import SentenceFilter
from treelm.corpus.vocabulary import Vocabulary
from treelm.corpus.words import Words, sentences_of
from treelm.errors import UnsupportedTask, UsageError
from treelm.grammar.grammar import FloatArray
from treelm.grammar.parser_options import ParserOptions, Pruning
from treelm.models.interface.config import Config
from treelm.models.interface.model import LanguageModel, ModelInfo, Task
from treelm.models.interface.scores import SentenceScore
from treelm.store.folder import FolderWriter, ModelFolder
from treelm.store.manifest import Description, TrainingCorpus

if TYPE_CHECKING:
    from treelm.models.interface.spelling import Spelling
    from treelm.models.pcfg.grammar_model import GrammarModel

#: Number of sentences scored at once.
_BATCH = 256


def whole_scores(
    model: LanguageModel, sentences: Sequence[Words], *, eos: bool = True, threads: int = 1
) -> Iterator[SentenceScore]:
    """Return what `score_many` gives, quicker where those of words need not be there.

    Args:
        model: The model.
        sentences: The sentences.
        eos: Whether the ends of sentences count.
        threads: Kernel threads; results do not depend on it.
    """
    if model.incremental is None or model.most_trees == 0:  # others need no words for their charts
        return model.score_many(sentences, eos=eos, threads=threads)
    values = model.sentence_log_probs(sentences, eos=eos, threads=threads).tolist()
    exactness = model.info.exactness
    return (SentenceScore(each, exactness, eos, fallback=each == -math.inf) for each in values)


class ScoringView(LanguageModel):
    """Another way to score with a model; it is described and saved as that model.

    Args:
        model: The model.
    """

    tasks: ClassVar[frozenset[Task]] = frozenset({Task.SCORE, Task.PERPLEXITY})
    config_class: ClassVar[type[Config]] = Config

    def __init__(self, model: LanguageModel) -> None:
        self.model = model
        self._training_sentences = model._training_sentences
        self._spelling_model = model._spelling_model
        self.system = model.system  # type: ignore[misc]  # what messages call it

    def obstacle(self, task: Task) -> str | None:
        """Return what keeps it from a task: perhaps what keeps the model from it."""
        return super().obstacle(task) or self.model.obstacle(task)

    @property
    def spelling(self) -> Spelling | None:
        """How the model spells unknown words."""
        return self.model.spelling

    @property
    def scoring_parts(self) -> dict[str, object]:
        """How the model is asked for scores, as parts of a signature."""
        return self.model.scoring_parts

    @property
    def sums_over_trees(self) -> bool:
        """Whether the scores of the model come from lists of trees."""
        return self.model.sums_over_trees

    @property
    def sentences_at_once(self) -> int:
        """Sentences that the model takes at once."""
        return self.model.sentences_at_once

    @property
    def max_words(self) -> int | None:
        """Most words of a sentence that the model scores."""
        return self.model.max_words

    def with_max_words(self, max_words: int) -> Self:
        """Return the same view of the model with another limit."""
        made = super().with_max_words(max_words)
        made.model = self.model.with_max_words(max_words)
        return made

    @property
    def config(self) -> Config:
        """The options the model was trained with."""
        return self.model.config

    @property
    def vocabulary(self) -> Vocabulary:
        """The words it knows, and what replaces the others."""
        return self.model.vocabulary

    @property
    def info(self) -> ModelInfo:
        """What kind of numbers it returns."""
        return self.model.info

    @property
    def corpora(self) -> tuple[TrainingCorpus, ...]:
        """What it was trained on."""
        return self.model.corpora

    @property
    def training_sentences(self) -> tuple[SentenceFilter, ...]:
        """Hashes of what the model was trained on."""
        return self.model.training_sentences

    @property
    def unigram_counts(self) -> npt.NDArray[np.uint64] | None:
        """Counts of the training text by word id, that of the sentence end last, if known."""
        return self.model.unigram_counts

    def score(self, sentence: Words, *, eos: bool = True) -> SentenceScore:
        """Return the score of a sentence."""
        return next(self.score_many([sentence], eos=eos))

    def score_many(
        self, sentences: Iterable[Words], *, eos: bool = True, threads: int = 1
    ) -> Iterator[SentenceScore]:
        """Yield the scores of sentences, in order.

        Raises:
            UnsupportedTask: without the end of the sentence.
        """
        if not eos:
            raise UnsupportedTask(
                "pruned and floored scores are for whole sentences, their end included."
            )
        rest, done = sentences_of(sentences), 0
        while batch := list(islice(rest, _BATCH)):
            with after_sentences(done):
                check_lengths(map(len, batch), self.max_words, self.system)
                scores = list(self._scores(batch, threads))
            done += len(batch)
            yield from scores

    def _scores(self, batch: Sequence[Sequence[str]], threads: int) -> Iterable[SentenceScore]:
        return self.model.score_many(batch, threads=threads)

    def description(self) -> Description:
        """Return what the manifest says about the model."""
        return self.model.description()

    def write_files(self, writer: FolderWriter) -> None:
        """Write everything but the manifest."""
        self.model.write_files(writer)

    @classmethod
    def from_folder(cls, folder: ModelFolder) -> Self:
        """Refuse: a folder contains the model, from which this view is made."""
        raise UsageError(
            f"{visible(str(folder.path))}: load the model itself, then make this view of it."
        )


class PrunedScores(ScoringView):
    """Sentences scored in charts pruned coarse-to-fine: lower bounds.

    Args:
        model: A grammar.
        pruning: How much is dropped.
    """

    def __init__(self, model: GrammarModel[Any], pruning: Pruning = "default") -> None:
        super().__init__(model)
        if pruning == "none" or pruning not in get_args(Pruning):
            raise UsageError(f'there is no pruning "{pruning}"; choose fast, default or accurate.')
        self._options = ParserOptions(pruning=pruning)

    @property
    def scoring_parts(self) -> dict[str, object]:
        """How the model is asked for scores, as parts of a signature."""
        return {"pruning": self._options.pruning} | super().scoring_parts

    @cached_property
    def info(self) -> ModelInfo:
        """What kind of numbers it returns."""
        return replace(self.model.info, exactness="lower_bound")

    @property
    def closed(self) -> LanguageModel:
        """The same view of the model over the symbols of unknown words."""
        if self.spelling is None:
            return self
        pruning = cast("Pruning", self._options.pruning)
        return PrunedScores(cast("GrammarModel[Any]", self.model.closed), pruning)

    def _scores(self, batch: Sequence[Sequence[str]], threads: int) -> Iterator[SentenceScore]:
        grammar = cast("GrammarModel[Any]", self.model)
        for value in grammar.lower_bounds(batch, self._options, threads=threads).tolist():
            yield SentenceScore(value, "lower_bound", fallback=value == -math.inf)


class FlooredScores(ScoringView):
    """A mixture of a model with the unigram model of its training text, sentence by sentence.

    No sentence is then impossible. The probabilities still sum to 1 if those of the model do.

    Args:
        model: The model.
        share: Share of the unigram model in the mixture.

    Raises:
        UsageError: for a share outside 0 to 1.
        UnsupportedTask: ``E_NO_COUNTS`` if the model has no word counts.
    """

    def __init__(self, model: LanguageModel, share: float = 0.001) -> None:
        super().__init__(model)
        if not 0.0 < share < 1.0:
            raise UsageError(f"the floor's share is {share}; it must be between 0 and 1.")
        self.share = share
        counts = model.unigram_counts
        if counts is None or not counts.any():
            raise UnsupportedTask(
                f"this {model.system} model has no counts of its training words, so "
                "there is no unigram model to put below it. Train the model with treelm.",
                code="E_NO_COUNTS",
            )
        weights = counts.astype(np.float64) + 1.0  # every word must have a probability
        self._unigram: FloatArray = np.log(weights / weights.sum())

    @property
    def scoring_parts(self) -> dict[str, object]:
        """How the model is asked for scores, as parts of a signature."""
        return {"floor": self.share} | super().scoring_parts

    def _scores(self, batch: Sequence[Sequence[str]], threads: int) -> Iterator[SentenceScore]:
        text = encode_sentences(batch, self.vocabulary)
        alone = self._unigram[text.ids]
        bounds = pairwise(text.starts.astype(np.int64).tolist())
        scores = whole_scores(self.model, batch, threads=threads)
        spellings = self._spellings(batch)
        for score, (first, last), spelled in zip(scores, bounds, spellings, strict=True):
            own = float(alone[first:last].sum() + self._unigram[-1])
            floor = math.log(self.share) + own + spelled
            value = float(np.logaddexp(math.log1p(-self.share) + score.log_prob, floor))
            yield SentenceScore(
                value,
                score.exactness,
                trees=score.trees,
                fallback=score.fallback or score.log_prob == -math.inf,
            )

    def _spellings(self, batch: Sequence[Words]) -> list[float]:
        """Return how likely the unknown words of sentences are spelled so, where that counts."""
        if self.spelling is None:
            return [0.0] * len(batch)
        from treelm.models.interface.spelled import spelling_sums

        sums: list[float] = spelling_sums(self.spelling, batch).tolist()
        return sums

    @property
    def closed(self) -> LanguageModel:
        """The same view of the model over the symbols of unknown words."""
        if self.spelling is None:
            return self
        return FlooredScores(self.model.closed, self.share)
