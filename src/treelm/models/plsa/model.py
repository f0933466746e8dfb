"""PLSA and n-gram/PLSA: each word from the words before it and the topics of its document."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from treelm import _native
from treelm.corpus.encoder import EncodedText, Ids, Places
from treelm.corpus.vocabulary import Vocabulary
from treelm.corpus.words import Word, words_of
from treelm.errors import UsageError
from treelm.estimation.lattice import Floats
from treelm.estimation.lattice_weights import LatticeModel
from treelm.kernel_errors import kernel_errors
from treelm.models.interface.abilities import TopicTable
from treelm.models.interface.config import Config, config_of
from treelm.models.interface.incremental import IncrementalModel
from treelm.models.interface.model import ModelInfo, Task
from treelm.models.interface.score_explanation import Arithmetic
from treelm.models.interface.scores import BatchScores
from treelm.models.interface.states import (
    Context,
    State,
    Step,
    check_state_model,
    state_payload,
)
from treelm.models.interface.trained_model import TrainedModel
from treelm.models.plsa.config import PlsaConfig
from treelm.models.plsa.lattice import predictor_lattice, topic_text
from treelm.models.plsa.state import TopicMixture, TopicState
from treelm.models.plsa.word_topics import topic_terms, word_topic_counts
from treelm.store.folder import TABLES, FolderWriter, ModelFolder
from treelm.store.manifest import TrainingCorpus
from treelm.store.schema import (
    UNIGRAM_COUNTS,
    Tensor,
    damage_in,
    distribution,
    read_tensors,
    read_words,
    write_words,
)

#: Name of the predictor among the tensors.
PREDICTOR = "predictor"
#: p(g) of the training text.
TOPIC_SHARES = Tensor("topics", np.float64, ("topics",), distribution)


class PlsaModel(TrainedModel[PlsaConfig], IncrementalModel):
    """Predicts each word from the last few and from the topics of the document so far.

    Args:
        predictor: Probabilities by words and topic; outcomes are the vocabulary and the end.
        prior: p(g) of the training text.
        vocabulary: The words.
        unigram_counts: Count of each id in the training text, that of the end last.
        config: How it was trained.
        corpora: What it was trained on.
    """

    system: ClassVar[str] = "plsa"
    tasks: ClassVar[frozenset[Task]] = frozenset(
        {Task.SCORE, Task.SURPRISAL, Task.PERPLEXITY, Task.SAMPLE, Task.DECODE}
    )
    config_class: ClassVar[type[Config]] = PlsaConfig

    def __init__(
        self,
        predictor: LatticeModel,
        prior: Floats,
        vocabulary: Vocabulary,
        unigram_counts: npt.NDArray[np.uint64],
        config: PlsaConfig,
        *,
        corpora: Sequence[TrainingCorpus] = (),
    ) -> None:
        self.predictor = predictor
        self.prior = prior
        self._vocabulary = vocabulary
        self._unigram_counts = unigram_counts
        self._config = config
        self._corpora = tuple(corpora)
        self._width = config.order - 1
        self._topics = np.arange(config.topics, dtype=np.uint32)

    # -- properties -------------------------------------------------------------------------

    @cached_property
    def info(self) -> ModelInfo:
        """What kind of numbers it gives."""
        return ModelInfo(
            exactness="exact",
            normalized=True,
            order=self._config.order,
            vocabulary=self._vocabulary.fingerprint,
        )

    @cached_property
    def fingerprint(self) -> bytes:
        """8 bytes that tell the model from others."""
        return self._fingerprint(self._tensors())

    @property
    def remembers_documents(self) -> bool:
        """Whether a sentence depends on those before it in its document."""
        return self._config.topics > 0 and self._config.adapt

    def __repr__(self) -> str:
        return (
            f"PlsaModel(order={self._config.order}, topics={self._config.topics}, "
            f"words={len(self._vocabulary)})"
        )

    def with_options(self, **options: object) -> Self:
        """Return the model with another eta, adapt or test_topics.

        Raises:
            UsageError: for what would need another training.
        """
        others = set(options) - {"eta", "adapt", "test_topics"}
        if others:
            raise UsageError(f"{', '.join(sorted(others))} cannot be changed after training.")
        config = self.make_config({**self._config.model_dump(), **options})
        assert isinstance(config, PlsaConfig)  # what this class makes of options
        return self._changed(config=config)

    def details(self) -> dict[str, object]:
        """Return the few numbers that tell it from others."""
        return {
            "order": self._config.order,
            "topics": self._config.topics,
            "keep_topics": self._config.kept,
            "kept_mass": self._config.kept_mass,
            "held_out_perplexity": self._config.held_out_perplexity,
            "types": self.predictor.types[-1],
            "bytes": self.predictor.tables.bytes,
        }

    # -- word by word -----------------------------------------------------------------------

    def initial(self, context: Context | None = None) -> TopicState:
        """Return the state before any word: the topics of the document so far."""
        return TopicState(
            (self.word_ids.start,) * self._width,
            self.word_ids.position_matters,
            TopicMixture.from_context(context, self.prior),
            self.fingerprint,
        )

    def advance(self, state: State, word: Word) -> Step:
        """Return the natural log probability of a word in a state, and the state after it."""
        own = self._own(state)
        word_id = self.word_ids.word(word, first=own.first)
        prob, mixture = self._step(own, word_id)
        context = (word_id, *own.context)[: self._width]
        self.count("advances", 1)
        return Step(math.log(prob), self._state(context, mixture))

    def is_at_start(self, state: State) -> bool:
        """Return whether no word of the sentence has been read, where that changes a symbol."""
        return self._own(state).first

    def finish(self, state: State) -> float:
        """Return the natural log probability that the sentence ends in this state."""
        return math.log(self._step(self._own(state), self.word_ids.end)[0])

    def end_sentence(self, state: State) -> Context:
        """Return the topics of the document after this sentence and its end."""
        return self._step(self._own(state), self.word_ids.end)[1].to_context()

    def key(self, state: State) -> bytes:
        """Return the last words and the topics, as bytes."""
        return self._own(state).payload()

    def distribution(
        self, state: State, words: Sequence[Word] | None = None
    ) -> npt.NDArray[np.float64]:
        """Return the log probabilities of words in a state; all words and the end by default."""
        own = self._own(state)
        if not self._config.topics:
            probs = self.predictor.distribution(own.context)
        else:
            shares = own.mixture.shares
            largest = own.mixture.largest(self._config.predicting)
            probs = np.zeros(self.predictor.lattice.outcomes)
            for topic in largest.tolist():
                mixed = self.predictor.distribution((*own.context, topic))
                probs += shares[topic] / shares[largest].sum() * mixed
        log_probs = np.log(probs)
        if words is None:
            return np.asarray(log_probs, dtype=np.float64)
        wanted = [self.word_ids.word(word, first=own.first) for word in words_of(words)]
        return np.asarray(log_probs[wanted], dtype=np.float64)

    score_story: ClassVar[str] = (
        "Each word is predicted under every topic that counts; the topics of the document so far "
        "weigh the predictions."
    )
    score_reference: ClassVar[str] = (
        "Hofmann (2001); Tan et al. (2011), section 2: the sum over topics (docs/systems/plsa.md)"
    )

    def word_arithmetic(
        self, state: State, word: Word | None, before: Sequence[str]
    ) -> Arithmetic | None:
        """Return the sum over topics that gives the probability of a word."""
        del before
        own = self._own(state)
        if not self._config.topics:
            return None
        outcome = self.word_ids.end
        if word is not None:
            outcome = self.word_ids.word(word, first=own.first)
        columns = np.array([own.context], dtype=np.uint32).reshape(1, self._width)
        ids = np.array([outcome], dtype=np.uint32)
        probs = self.predictor.topic_probs(columns, ids, self._topics)[0]
        chosen = own.mixture.largest(self._config.predicting)
        shares = own.mixture.shares[chosen] / own.mixture.shares[chosen].sum()
        return topic_terms(chosen.tolist(), shares.tolist(), probs[chosen].tolist())

    def state_from_bytes(self, data: bytes) -> TopicState:
        """Return the state whose `to_bytes` gave these bytes."""
        return TopicState.from_payload(
            state_payload(data, self.fingerprint),
            width=self._width,
            symbols=self.word_ids.start + 1,
            topics=self._config.topics,
            model=self.fingerprint,
        )

    def _step(self, state: TopicState, word: int) -> tuple[float, TopicMixture]:
        columns = np.array([state.context], dtype=np.uint32).reshape(1, self._width)
        outcome = np.array([word], dtype=np.uint32)
        if not self._config.topics:
            prob = float(self.predictor.probs(columns, outcome)[0])
            return prob, TopicMixture(b"", state.mixture.steps + 1)
        probs = self.predictor.topic_probs(columns, outcome, self._topics)[0]
        return state.mixture.step(probs, keep=self._config.predicting, rate=self._config.rate)

    def _state(self, context: tuple[int, ...], mixture: TopicMixture) -> TopicState:
        return TopicState(context, first=False, mixture=mixture, model=self.fingerprint)

    def _own(self, state: State) -> TopicState:
        check_state_model(state.model, self.fingerprint)
        if not isinstance(state, TopicState):
            raise TypeError(f"a state of a PLSA model is needed, not {type(state).__name__}")
        return state

    # -- sentences --------------------------------------------------------------------------

    def score_ids(self, ids: Ids, starts: Places, *, threads: int = 1) -> BatchScores:
        """Return the log probability of every word and end, each sentence a document."""
        return self._score(ids, starts, np.arange(len(starts), dtype=np.uint64), threads)

    def score_documents(self, text: EncodedText, *, threads: int = 1) -> BatchScores:
        """Return the log probability of every word and end of a text in documents."""
        return self._score(text.ids, text.starts, text.document_starts, threads)

    def _score(self, ids: Ids, starts: Places, documents: Places, threads: int) -> BatchScores:
        with kernel_errors("scoring documents"):
            log_probs, *_ = _native.score_topics(
                self.predictor.native,
                topic_text(ids, starts, documents, self._config.order, self.word_ids.end),
                self.prior,
                rate=self._config.rate,
                keep=max(1, self._config.predicting),
                checks=False,
                threads=threads,
            )
        return self.batch_scores(log_probs, ids, starts)

    # -- topics -----------------------------------------------------------------------------

    def topic_table(self) -> TopicTable:
        """Return the shares of topics and the counts of words in them."""
        counts = word_topic_counts(self.predictor, len(self._vocabulary), self._config.topics)
        return TopicTable(self.prior, counts)

    # -- files ------------------------------------------------------------------------------

    def _tensors(self) -> dict[str, npt.NDArray[Any]]:
        return {
            **self.predictor.to_tensors(PREDICTOR),
            TOPIC_SHARES.name: self.prior,
            UNIGRAM_COUNTS.name: self._unigram_counts,
        }

    def write_files(self, writer: FolderWriter) -> None:
        """Write tables and words."""
        writer.tables(TABLES, self._tensors())
        write_words(writer, self._vocabulary)

    @classmethod
    def from_folder(cls, folder: ModelFolder) -> Self:
        """Return the model in an opened folder."""
        config = config_of(folder, PlsaConfig, "a PLSA model")
        with damage_in(folder):
            vocabulary = read_words(folder)
            tables = folder.tables()
            schema = (UNIGRAM_COUNTS, TOPIC_SHARES)
            found = read_tensors(tables, schema, words=len(vocabulary), topics=config.topics)
            lattice = predictor_lattice(len(vocabulary) + 1, config)
            predictor = LatticeModel.from_tensors(lattice, tables, PREDICTOR, topics=config.topics)
        return cls(
            predictor,
            np.array(found[TOPIC_SHARES.name]),
            vocabulary,
            np.array(found[UNIGRAM_COUNTS.name]),
            config,
            corpora=folder.manifest.corpora,
        )

    def _arguments(self) -> dict[str, Any]:
        return {**super()._arguments(), "predictor": self.predictor, "prior": self.prior}
