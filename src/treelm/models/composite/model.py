"""The composite model: n-gram, structured language model and topics in one predictor."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from treelm import _native
from treelm.corpus.encoder import EncodedText, Ids, Places
from treelm.corpus.lengths import check_starts
from treelm.corpus.vocabulary import Vocabulary
from treelm.corpus.words import Word, Words, words_of
from treelm.errors import UsageError
from treelm.estimation.lattice import Floats
from treelm.estimation.lattice_weights import LatticeModel
from treelm.kernel_errors import kernel_errors
from treelm.models.composite.arithmetic import composite_arithmetic
from treelm.models.composite.config import SEARCH, CompositeConfig
from treelm.models.composite.files import read_files, write_files
from treelm.models.composite.parts import CompositeParts, CompositeShape, Mixtures
from treelm.models.composite.state import CompositeState, split_payload
from treelm.models.interface.abilities import TopicTable
from treelm.models.interface.config import Config
from treelm.models.interface.incremental import IncrementalModel
from treelm.models.interface.model import ModelInfo, Task
from treelm.models.interface.score_explanation import Arithmetic
from treelm.models.interface.scores import BatchScores
from treelm.models.interface.states import (
    Context,
    State,
    Step,
    check_state_model,
    damaged_state,
    state_payload,
)
from treelm.models.interface.trained_model import TrainedModel
from treelm.models.plsa.state import TopicMixture
from treelm.models.plsa.word_topics import word_topic_counts
from treelm.store.folder import FolderWriter, ModelFolder
from treelm.store.manifest import TrainingCorpus
from treelm.store.schema import distribution


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
    search_options: tuple[str, ...] = SEARCH
    usual_max_words: ClassVar[int | None] = 1000

    def __init__(
        self,
        parts: CompositeParts,
        vocabulary: Vocabulary,
        unigram_counts: npt.NDArray[np.uint64],
        topic_prior: Floats | None = None,
        corpora: Sequence[TrainingCorpus] = (),
    ) -> None:
        config = parts.shape.config
        prior = np.zeros(0) if topic_prior is None else topic_prior
        if len(prior) != config.topics or distribution(prior) is not None:
            raise ValueError("parts and topics are those of different models")
        if parts.shape.words != len(vocabulary):
            raise ValueError("parts and words are those of different models")
        self.parts = parts
        self._config = config
        self._vocabulary = vocabulary
        self._unigram_counts = unigram_counts
        self.prior = prior
        self._corpora = tuple(corpora)
        self._search: _native.SlmSearch = parts.search

    def with_search(self, **options: object) -> CompositeModel:
        """Return the same model with another search; states of both can be exchanged.

        Args:
            options: Any of ``stack_size``, ``threshold``, ``choice_beam``, ``merge``, ``eta``,
                ``adapt`` and ``test_topics``.

        Raises:
            UsageError: for another option, or an impossible value.
        """
        unknown = sorted(set(options) - set(SEARCH))
        if unknown:
            raise UsageError(f'"{unknown[0]}" is no option of the search: {", ".join(SEARCH)}.')
        config = self.make_config({**self._config.model_dump(), **options})
        assert isinstance(config, CompositeConfig)  # what a CompositeModel makes of options
        shape = CompositeShape(config, self.parts.shape.words, self.parts.shape.codes)
        return self._changed(parts=CompositeParts(shape, self.parts.models))

    # -- properties -------------------------------------------------------------------------

    @property
    def max_words(self) -> int | None:
        """Most words of a sentence that it scores; without heads there are no parses, and no limit.

        With heads the time grows faster than the square of the words, and exponentially if neither
        stack size nor threshold drops hypotheses.
        """
        if not self._config.heads:
            return None
        return self._max_words or self.parts.longest or self.usual_max_words

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
        labels = "\n".join((*codes.tags, "", *codes.phrases))
        tensors = {**self.parts.to_tensors(), "topic_prior": self.prior}
        return self._fingerprint(tensors, labels, without=SEARCH)

    @property
    def predictor(self) -> LatticeModel:
        """Probabilities of words by words before, heads and topic."""
        return self.parts.models["predictor"]

    @property
    def remembers_documents(self) -> bool:
        """Whether a sentence depends on those before it in its document."""
        return self._config.topics > 0 and self._config.adapt

    def __repr__(self) -> str:
        types = self.predictor.tables.types()
        return f"CompositeModel({self._config.name}, types={types})"

    def details(self) -> dict[str, object]:
        """Return the few numbers that tell it from others."""
        codes = self.parts.shape.codes
        return {
            "model": self._config.name,
            "tags": len(codes.tags),
            "phrases": len(codes.phrases),
            "moves": len(codes.moves) if codes.phrases else 0,
            "types": self.parts.models["predictor"].tables.types(),
        }

    @property
    def has_fixed_states(self) -> bool:
        """Whether a kernel can go from word to word alone: topics stay, and parses are dropped."""
        return not self.remembers_documents and self.parts.drops_parses

    @property
    def first_topics(self) -> tuple[Ids, Floats]:
        """The topics that predict the first word of a document, and their shares."""
        return self._mixture(self.initial())

    @cached_property
    def unigram_log_probs(self) -> Floats:
        """Log probability of each word, and of the end, by how often it was seen."""
        counts = self._unigram_counts.astype(np.float64)
        found: Floats = np.log((counts + 1) / (counts.sum() + len(counts)))
        return found

    # -- word by word -----------------------------------------------------------------------

    def initial(self, context: Context | None = None) -> CompositeState:
        """Return the state before any word; a context carries the topics of its document."""
        mixture = TopicMixture.from_context(context, self.prior)
        return CompositeState(self._search.initial(), self.fingerprint, mixture)

    def advance(self, state: State, word: Word) -> Step:
        """Return the natural log probability of a word in a state, and the state after it."""
        own = self._own(state)
        word_id = self.word_ids.word(word, first=own.beam.initial)
        if self._max_words is None:
            self.parts.check_growth(len(own.beam))
        with kernel_errors("reading a word"):
            log_prob, beam = self._search.advance(own.beam, word_id, *self._mixture(own))
        return Step(log_prob, CompositeState(beam, own.model, self._adapted(own, word_id)))

    def is_at_start(self, state: State) -> bool:
        """Return whether no word of the sentence has been read."""
        return bool(self._own(state).beam.initial)

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
        return self._adapted(own, self.word_ids.end).to_context()

    def key(self, state: State) -> bytes:
        """Return the key by which hypotheses may be merged: all that the future depends on."""
        own = self._own(state)
        return own.mixture.data + own.beam.to_bytes()

    def state_from_bytes(self, data: bytes) -> CompositeState:
        """Return the state whose `to_bytes` gave these bytes."""
        topics, beam = split_payload(state_payload(data, self.fingerprint))
        mixture = TopicMixture.from_bytes(topics, self._config.topics)
        return CompositeState(self._beam(beam), self.fingerprint, mixture)

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

    def _mixture(self, state: CompositeState) -> tuple[Ids, Floats]:
        """Return the topics that predict the next word, and their shares."""
        if not self._config.topics:
            return np.zeros(0, np.uint32), np.zeros(0)
        chosen = state.mixture.largest(self._config.predicting)
        shares = state.mixture.shares[chosen]
        return chosen.astype(np.uint32), shares / shares.sum()

    def _adapted(self, state: CompositeState, word_id: int) -> TopicMixture:
        if not self._config.topics:
            return state.mixture
        with kernel_errors("adapting topics"):
            probs = self._search.topic_probs(state.beam, word_id)
        rate = self._config.rate
        return state.mixture.step(probs, keep=self._config.predicting, rate=rate)[1]

    score_story: ClassVar[str] = (
        "Each word is predicted by all partial parses of the words before it, from the words "
        "before, the exposed heads and the topics of the document; their shares weigh them."
    )
    score_reference: ClassVar[str] = (
        "Tan et al. (2011), section 3.2: the probability of a word from all partial parses and "
        "topics, whose product is equation 3; Chelba and Jelinek (2000) (docs/systems/composite.md)"
    )

    def word_arithmetic(
        self, state: State, word: Word | None, before: Sequence[str]
    ) -> Arithmetic | None:
        """Return the sum over parses and topics that gives the probability of a word."""
        own, outcome = self._own(state), self.word_ids.end
        if word is not None:
            outcome = self.word_ids.word(word, first=own.beam.initial)
        return composite_arithmetic(self, own, outcome, self.word_ids.sentence(before))

    def predicting_topics(self, state: CompositeState) -> tuple[Ids, Floats]:
        """Return the topics that predict the next word, and their shares."""
        return self._mixture(state)

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
        return log_probs[[self.word_ids.word(word, first=first) for word in words_of(words)]]

    def estimate(self, words: Words) -> float:
        """Return the log probability of words by how often they were seen."""
        ids = self.word_ids.sentence(words_of(words))
        return float(self.unigram_log_probs[ids].sum())

    # -- sentences --------------------------------------------------------------------------

    def score_ids(self, ids: Ids, starts: Places, *, threads: int = 1) -> BatchScores:
        """Return the log probability of every word and end of sentences that are ids already.

        Raises:
            TooLongSentence: ``E_TOO_LONG`` for a sentence of more words than `max_words`.
        """
        check_starts(starts, self.max_words, self.system)
        if self._config.topics:
            alone = np.arange(len(starts), dtype=np.uint64)
            return self._score_topics(ids, starts, alone, threads)
        with kernel_errors("scoring sentences"):
            log_probs = self._search.score(ids, starts, *Mixtures.none().arrays, threads=threads)
        self.count("words", len(ids))
        return self.batch_scores(log_probs, ids, starts)

    def score_documents(self, text: EncodedText, *, threads: int = 1) -> BatchScores:
        """Return the log probability of every word and end of a text in documents."""
        if not self._config.topics:
            return self.score_ids(text.ids, text.starts, threads=threads)
        check_starts(text.starts, self.max_words, self.system)
        return self._score_topics(text.ids, text.starts, text.document_starts, threads)

    def _score_topics(
        self, ids: Ids, starts: Places, documents: Places, threads: int
    ) -> BatchScores:
        with kernel_errors("scoring documents"):
            log_probs, _ = self._search.score_documents(
                ids,
                starts,
                documents,
                self.prior,
                rate=self._config.rate,
                keep=self._config.predicting,
                threads=threads,
            )
        self.count("words", len(ids))
        return self.batch_scores(log_probs, ids, starts)

    # -- topics -----------------------------------------------------------------------------

    def topic_table(self) -> TopicTable:
        """Return the shares of topics and the counts of words in them."""
        counts = word_topic_counts(self.predictor, len(self._vocabulary), self._config.topics)
        return TopicTable(self.prior, counts)

    # -- files ------------------------------------------------------------------------------

    def transforms(self) -> Sequence[Mapping[str, object]]:
        """Return what was done to the training trees."""
        return self._config.pipeline().to_config()

    def write_files(self, writer: FolderWriter) -> None:
        """Write lattices, labels and words."""
        write_files(writer, self.parts, self._vocabulary, self._unigram_counts, self.prior)

    @classmethod
    def from_folder(cls, folder: ModelFolder) -> Self:
        """Return the model in an opened folder."""
        return cls(*read_files(folder), folder.manifest.corpora)

    def _arguments(self) -> dict[str, Any]:
        arguments = {**super()._arguments(), "parts": self.parts, "topic_prior": self.prior}
        del arguments["config"]  # that of the parts
        return arguments
