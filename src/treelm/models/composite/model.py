"""The composite model: n-gram, structured language model and topics in one predictor."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any, ClassVar, Self, cast

import numpy as np
import numpy.typing as npt

from treelm import _native
from treelm.corpus.corpus import TextCorpus, TreeCorpus
from treelm.corpus.encoder import Ids, Places
from treelm.corpus.vocabulary import Vocabulary
from treelm.errors import UsageError
from treelm.kernel_errors import kernel_errors
from treelm.models.composite.config import SEARCH, CompositeConfig
from treelm.models.composite.files import read_files, write_files
from treelm.models.composite.parts import CompositeParts, CompositeShape, Mixtures
from treelm.models.composite.state import CompositeState, DocumentTopics, split_payload
from treelm.models.incremental import IncrementalModel
from treelm.models.model import Config, ModelInfo, Task
from treelm.models.scores import BatchScores
from treelm.models.states import (
    Context,
    State,
    Step,
    check_state_model,
    damaged_state,
    model_fingerprint,
    state_payload,
)
from treelm.models.trained_model import TrainedModel
from treelm.models.words import Word, Words, portable, words_of
from treelm.parallel.executor import SERIAL, Executor
from treelm.parallel.progress import SILENT, Progress
from treelm.store.folder import FolderWriter, ModelFolder
from treelm.store.manifest import Description, TrainingCorpus


class CompositeModel(TrainedModel[CompositeConfig], IncrementalModel):
    """Predicts each word from the words before, the heads of partial parses, and topics.

    Args:
        parts: Lattices of predictor, tagger and constructor.
        vocabulary: The words.
        unigram_counts: Count of each id in the training text, that of ``</s>`` last.
        topic_prior: Shares of topics with which a document begins; none without topics.
        corpora: What it was trained on.
    """

    system: ClassVar[str] = "composite"
    tasks: ClassVar[frozenset[Task]] = frozenset(
        {Task.SCORE, Task.SURPRISAL, Task.PERPLEXITY, Task.SAMPLE, Task.DECODE}
    )
    config_class: ClassVar[type[Config]] = CompositeConfig

    def __init__(
        self,
        parts: CompositeParts,
        vocabulary: Vocabulary,
        unigram_counts: npt.NDArray[np.uint64],
        topic_prior: Sequence[float] = (),
        corpora: Sequence[TrainingCorpus] = (),
    ) -> None:
        config = parts.shape.config
        if len(topic_prior) != config.topics or parts.shape.words != len(vocabulary):
            raise ValueError("parts, words and topics are those of different models")
        self.parts = parts
        self._config = config
        self._vocabulary = vocabulary
        self._unigram_counts = unigram_counts
        self._topics = DocumentTopics.checked(list(topic_prior), 0, config.topics)
        self._corpora = tuple(corpora)
        self._search: _native.SlmSearch = parts.search

    @classmethod
    def train(
        cls,
        corpus: TextCorpus | TreeCorpus,
        config: Config,
        *,
        executor: Executor = SERIAL,
        progress: Progress = SILENT,
        vocabulary: Vocabulary | None = None,
        held_out: TreeCorpus | None = None,
        threads: int = 1,
    ) -> Self:
        """Return the composite model of a treebank.

        Args:
            corpus: Trees; what their documents are stands beside them.
            config: Options, a `CompositeConfig`.
            executor: Not used.
            progress: Told how far it is.
            vocabulary: The words to know; by default those seen often enough.
            held_out: Other trees, on which weights are found.
            threads: Kernel threads; results do not depend on it.

        Raises:
            UsageError: if the options are not those of a composite model, or there are no trees.
        """
        from treelm.models.composite.train import train_composite

        del executor
        if not isinstance(config, CompositeConfig) or not isinstance(corpus, TreeCorpus):
            raise UsageError("a composite model needs trees and a CompositeConfig.")
        model = train_composite(
            corpus,
            config,
            vocabulary=vocabulary,
            held_out=held_out,
            threads=threads,
            progress=progress,
        )
        return cast("Self", model)

    def with_search(self, **options: object) -> CompositeModel:
        """Return the same model with another search; states of both can be exchanged.

        Args:
            options: Any of ``stack_size``, ``threshold``, ``choice_beam`` and ``merge``.

        Raises:
            UsageError: for another option, or an impossible value.
        """
        unknown = sorted(set(options) - {*SEARCH, "eta", "test_topics"})
        if unknown:
            raise UsageError(f'"{unknown[0]}" is no option of the search: {", ".join(SEARCH)}.')
        config = self.make_config({**self._config.model_dump(), **options})
        assert isinstance(config, CompositeConfig)  # what a CompositeModel makes of options
        shape = CompositeShape(config, self.parts.shape.words, self.parts.shape.codes)
        parts = CompositeParts(shape, self.parts.models)
        return type(self)(
            parts, self._vocabulary, self._unigram_counts, self._topics.shares, self._corpora
        )

    # -- properties -------------------------------------------------------------------------

    @cached_property
    def info(self) -> ModelInfo:
        """What kind of numbers it gives."""
        config = self._config
        pruned = config.stack_size is not None or config.threshold is not None
        searched = bool(config.heads) and (pruned or config.choice_beam > 0)
        return ModelInfo(
            exactness="beam" if searched else "exact",
            normalized=True,
            order=config.order,
            beam=config.stack_size if config.heads else None,
            vocabulary=self._vocabulary.fingerprint,
        )

    @cached_property
    def fingerprint(self) -> bytes:
        """8 bytes that tell the model from others; the search does not count."""
        codes = self.parts.shape.codes
        own = self._config.model_dump_json(exclude={*SEARCH, "eta", "test_topics"})
        labels = "\n".join((*codes.tags, "", *codes.phrases))
        return model_fingerprint(
            (self.system, own, self._vocabulary.fingerprint, labels, repr(self._topics.shares)),
            self.parts.to_tensors(),
        )

    @property
    def topic_prior(self) -> tuple[float, ...]:
        """Shares of topics with which a document begins."""
        return self._topics.shares

    def __repr__(self) -> str:
        types = self.parts.models["predictor"].tables.types()
        return f"CompositeModel({self._config.name}, types={types})"

    # -- word by word -----------------------------------------------------------------------

    def initial(self, context: Context | None = None) -> CompositeState:
        """Return the state before any word; a context carries the topics of its document."""
        topics = self._topics
        if context is not None and context.memory and self._config.topics:
            *shares, steps = context.memory
            topics = DocumentTopics.checked(shares, steps, self._config.topics)
        return CompositeState(self._search.initial(), self.fingerprint, topics)

    def advance(self, state: State, word: Word) -> Step:
        """Return the natural log probability of a word in a state, and the state after it."""
        own = self._own(state)
        word_id = self.word_ids.word(word, first=own.beam.initial)
        with kernel_errors("reading a word"):
            log_prob, beam = self._search.advance(own.beam, word_id, *self._mixture(own))
        return Step(log_prob, CompositeState(beam, own.model, self._adapted(own, word_id)))

    def finish(self, state: State) -> float:
        """Return the natural log probability that the sentence ends in this state."""
        own = self._own(state)
        with kernel_errors("ending a sentence"):
            return self._search.finish(own.beam, *self._mixture(own))

    def end_sentence(self, state: State) -> Context:
        """Return the topics of the document after the sentence."""
        own = self._own(state)
        if not self._config.topics:
            return Context()
        topics = self._adapted(own, self.word_ids.end)
        return Context(memory=(*topics.shares, float(topics.steps)))

    def key(self, state: State) -> bytes:
        """Return the key by which hypotheses may be merged: all that the future depends on."""
        own = self._own(state)
        return np.asarray(own.topics.shares).tobytes() + own.beam.to_bytes()

    def state_from_bytes(self, data: bytes) -> CompositeState:
        """Return the state whose `to_bytes` gave these bytes."""
        topics, beam = split_payload(state_payload(data, self.fingerprint))
        read = DocumentTopics.from_bytes(topics, self._config.topics)
        return CompositeState(self._beam(beam), self.fingerprint, read)

    def _beam(self, data: bytes) -> _native.SlmState:
        try:
            beam = _native.SlmState(data)
            self._search.check(beam)
        except _native.KernelError as error:
            raise damaged_state() from error
        return beam

    def _own(self, state: State) -> CompositeState:
        check_state_model(state.model, self.fingerprint)
        if not isinstance(state, CompositeState):
            raise damaged_state()
        return state

    def _mixture(self, state: CompositeState) -> tuple[Ids, npt.NDArray[np.float64]]:
        return state.topics.largest(self._config.test_topics)

    def _adapted(self, state: CompositeState, word_id: int) -> DocumentTopics:
        if not self._config.topics:
            return state.topics
        prior = np.asarray(state.topics.shares, np.float64)
        with kernel_errors("adapting topics"):
            responsible = self._search.topic_shares(state.beam, word_id, prior)
        return state.topics.after(responsible, self._config.eta)

    # -- distributions ----------------------------------------------------------------------

    def distribution(
        self, state: State, words: Sequence[Word] | None = None
    ) -> npt.NDArray[np.float64]:
        """Return the log probabilities of words in a state, all from one look at it."""
        own = self._own(state)
        with kernel_errors("predicting words"), np.errstate(divide="ignore"):
            probs = self._search.distribution(own.beam, *self._mixture(own))
            log_probs = np.minimum(np.log(probs), 0.0)
        if words is None:
            return log_probs
        first = own.beam.initial
        return log_probs[[self.word_ids.word(word, first=first) for word in words]]

    def estimate(self, words: Words) -> float:
        """Return the log probability of words by how often they were seen."""
        ids = self.word_ids.sentence(words_of(words))
        counts = self._unigram_counts.astype(np.float64)
        return float(np.log((counts[ids] + 1) / (counts.sum() + len(counts))).sum())

    # -- sentences --------------------------------------------------------------------------

    def score_ids(self, ids: Ids, starts: Places, *, threads: int = 1) -> BatchScores:
        """Return the log probability of every word and end of sentences that are ids already."""
        if self._config.topics:  # every word moves the topics
            return super().score_ids(ids, starts, threads=threads)
        with kernel_errors("scoring sentences"):
            log_probs = self._search.score(ids, starts, *Mixtures.none().arrays, threads=threads)
        self.count("words", len(ids))
        return self.batch_scores(log_probs, ids, starts)

    # -- files ------------------------------------------------------------------------------

    def description(self) -> Description:
        """Return what the manifest says about the model."""
        return Description(
            system=self.system,
            config=self._config.model_dump(mode="json"),
            exactness=self.info.exactness,
            vocabulary=self._vocabulary.fingerprint,
            corpora=self._corpora,
            transforms=self._config.pipeline().to_config(),
        )

    def write_files(self, writer: FolderWriter) -> None:
        """Write lattices, labels and words."""
        write_files(
            writer, self.parts, self._vocabulary, self._unigram_counts, self._topics.shares
        )

    @classmethod
    def from_folder(cls, folder: ModelFolder) -> Self:
        """Return the model in an opened folder."""
        return cls(*read_files(folder), folder.manifest.corpora)

    def __reduce__(self) -> tuple[Any, ...]:
        shape = self.parts.shape
        parts = (shape, self.parts.to_tensors(), portable(self._vocabulary))
        rest = (self._unigram_counts, self._topics.shares, self._corpora)
        return _unpickled, (type(self), *parts, *rest)


def _unpickled(
    kind: type[CompositeModel],
    shape: CompositeShape,
    tensors: dict[str, npt.NDArray[Any]],
    *rest: Any,
) -> CompositeModel:
    return kind(CompositeParts.from_tensors(shape, tensors), *rest)
