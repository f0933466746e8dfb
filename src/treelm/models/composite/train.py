"""How the composite model is trained: trees, counts, weights, N-best EM, follow-up EM."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from treelm.corpus.corpus import TreeCorpus
from treelm.corpus.vocabulary import Vocabulary
from treelm.errors import TreelmWarning, option
from treelm.estimation.lattice import Floats
from treelm.models.composite.checkpoint import (
    Checkpoint,
    EmStep,
    TrainingState,
    training_key,
)
from treelm.models.composite.config import CompositeConfig
from treelm.models.composite.em import Data, first_parts, n_best_step
from treelm.models.composite.follow_up import fit_predictor, follow_up_step, frontiers
from treelm.models.composite.model import CompositeModel
from treelm.models.composite.parsed_text import ParsedText, PreparedTrees, prepare
from treelm.models.composite.parts import CompositeParts, CompositeShape, Counts
from treelm.models.composite.round_files import RoundFiles
from treelm.models.composite.sentence_topics import (
    TrainingTopics,
    first_topics,
    model_topics,
    topics_so_far,
    word_shares,
)
from treelm.models.interface.trained_model import corpus_record
from treelm.models.plsa.check_text import check_overlap
from treelm.models.run import QUIET, Event, Run
from treelm.parallel.key_shards import KeyShards
from treelm.store.manifest import TrainingCorpus


def train_composite(
    corpus: TreeCorpus,
    config: CompositeConfig,
    *,
    vocabulary: Vocabulary | None = None,
    held_out: TreeCorpus | None = None,
    run: Run = QUIET,
) -> CompositeModel:
    """Return the composite or the structured language model of a treebank.

    Args:
        corpus: Trees; X.docs beside a file names the document of each tree.
        config: Options, those of a composite or of a structured language model.
        vocabulary: Vocabulary file. Default: words seen at least min_count times.
        held_out: Other trees, on which interpolation weights are found; without them all weights
            are equal.
        run: How the training is run; its checkpoint keeps every round.

    Raises:
        EstimationError: ``E_NO_DATA`` without trees, ``E_OVERLAP`` if held-out sentences stand in
            the training text.
    """
    config = config.composite()
    prepared = prepare(
        corpus, config, vocabulary=vocabulary, executor=run.executor, progress=run.progress
    )
    check = None
    if held_out is not None:
        check = prepare(
            held_out,
            config,
            vocabulary=prepared.vocabulary,
            codes=prepared.codes,
            executor=run.executor,
        ).text
        check_overlap(prepared.text.encoded, check.encoded)
    else:
        warnings.warn(
            "without held-out trees all interpolation weights are equal. Give some with "
            f"{option('held_out')}.",
            TreelmWarning,
            stacklevel=2,
        )
    return train_on_parses(prepared, check, config, record=corpus_record(corpus), run=run)


def train_on_parses(
    prepared: PreparedTrees,
    held_out: ParsedText | None,
    config: CompositeConfig,
    *,
    record: TrainingCorpus | None = None,
    run: Run = QUIET,
) -> CompositeModel:
    """Return the composite model of prepared sentences; the arguments are as above."""
    shape = CompositeShape(config, len(prepared.vocabulary), prepared.codes)
    training = _Training(
        shape, prepared.text, held_out, training_key(shape, prepared, held_out), run
    )
    state = training.start()
    state = training.n_best_rounds(state)
    state = training.follow_up_rounds(state)
    counts = unigram_counts(prepared.text, len(prepared.vocabulary))
    corpora = () if record is None else (record,)
    prior = None if state.topics is None else state.topics.prior
    return CompositeModel(state.parts, prepared.vocabulary, counts, prior, corpora)


@dataclass(frozen=True, eq=False)
class _Training:
    """Rounds of EM over one text."""

    shape: CompositeShape
    text: ParsedText
    held_out: ParsedText | None
    key: str
    run: Run

    @cached_property
    def checkpoint(self) -> Checkpoint | None:
        """Where each round is kept."""
        return None if self.run.checkpoint is None else Checkpoint(self.run.checkpoint)

    def start(self) -> TrainingState:
        """Return the counts of the given parses, or where an interrupted training stands."""
        config = self.shape.config
        if self.checkpoint is not None and self.run.resume:
            kept = self.checkpoint.load(self.shape, self.key)
            if kept is not None:
                for step in kept.steps:  # so that the report is that of the whole training
                    self._tell(step)
                return kept
        elif self.checkpoint is not None:  # what another training has left
            self._remove_round()
            self.checkpoint.remove()
        train, check, topics = Data(self.text), None, None
        if self.held_out is not None:
            check = Data(self.held_out)
        if config.topics:
            topics, words = first_topics(
                self.text,
                self.shape.words,
                config,
                run=self.run,
            )
            mixtures = topics.mixtures(self.text)
            train = Data(self.text, mixtures, word_shares(self.text, mixtures, words))
            if self.held_out is not None:
                mixtures = topics_so_far(
                    self.held_out, topics.prior, words, config, threads=self.run.threads
                )
                shares = word_shares(self.held_out, mixtures, words)
                check = Data(self.held_out, mixtures, shares)
        parts, _ = first_parts(self.shape, train, check, threads=self.run.threads)
        return self._kept(TrainingState(parts, topics=topics))

    def train_data(self, state: TrainingState) -> Data:
        """Return the training text with its topics now."""
        if state.topics is None:
            return Data(self.text)
        return Data(self.text, state.topics.mixtures(self.text))

    def check_data(self, parts: CompositeParts, prior: Floats | None) -> Data | None:
        """Return the held-out text with the topics that it has for a model."""
        if self.held_out is None:
            return None
        if prior is None:
            return Data(self.held_out)
        mixtures = model_topics(parts, self.held_out, prior, threads=self.run.threads)
        return Data(self.held_out, mixtures)

    def counted(self, state: TrainingState, counts: Counts) -> TrainingTopics | None:
        """Return topics of training documents by how many words each had."""
        return None if state.topics is None else state.topics.counted(self.text, counts)

    def n_best_rounds(self, state: TrainingState) -> TrainingState:
        """Return the state at the start of the follow-up."""
        config = self.shape.config
        if state.stage != "n-best":
            return state
        previous = self._before(state)
        while (
            state.rounds < config.iterations
            and (config.heads or config.topics)
            and not state.gained_less_than(config.tolerance)
        ):
            prior = None if state.topics is None else state.topics.prior
            found = n_best_step(
                state.parts,
                self.train_data(state),
                self.check_data(state.parts, prior),
                state.lists,
                run=self.run,
                files=self._files(state),
            )
            step = self._seen(state, found.log_likelihood)
            if step.fell:
                return replace(previous, steps=(*state.steps, step)).ended()
            previous = state
            topics = self.counted(state, found.topic_counts)
            state = self._kept(state.after(step, found.parts, found.lists, topics))
        return state.ended()

    def follow_up_rounds(self, state: TrainingState) -> TrainingState:
        """Return the state at the end: at least weights that suit partial parses."""
        config = self.shape.config
        frozen = state.frozen or state.parts
        if not config.heads and not config.topics:
            return state
        # Held-out contexts are those of the end of N-best EM, in every round and after resuming.
        check = self.check_data(frozen, state.held_out_prior)
        seen = None
        if check is not None:
            seen = frontiers(frozen, check, run=self.run), check.mixtures
            if not state.rounds:
                model = fit_predictor(frozen.models["predictor"], *seen, threads=self.run.threads)
                state = replace(state, parts=frozen.with_model("predictor", model))
        most = config.follow_up if config.heads else 0
        if most and not state.rounds:
            self._kept(state)
        previous = self._before(state)
        while state.rounds < most and not state.gained_less_than(config.tolerance):
            made, log_likelihood, counts = follow_up_step(
                frozen,
                state.parts.models["predictor"],
                self.train_data(state),
                seen,
                run=self.run,
                files=self._files(state),
            )
            step = self._seen(state, log_likelihood)
            if step.fell:
                return previous
            previous = state
            parts = state.parts.with_model("predictor", made)
            state = self._kept(state.after(step, parts, None, self.counted(state, counts)))
        return state

    def _files(self, state: TrainingState) -> RoundFiles | None:
        """Return where the pieces of the next round are kept, if events are added up in shards."""
        folder = self.run.round_folder
        if self.run.shards is None or folder is None:
            return None
        key = f"{self.key} {state.stage} {state.rounds + 1}"
        return RoundFiles(folder, key, self.shape, KeyShards(self.run.shards))

    def _seen(self, state: TrainingState, log_likelihood: float) -> EmStep:
        """Return what the next round of a state has seen, and tell it."""
        step = EmStep(
            state.stage,
            state.rounds + 1,
            log_likelihood,
            float(np.exp(-log_likelihood / max(self.text.tokens, 1))),
            bool(state.history) and log_likelihood < state.history[-1],
        )
        self._tell(step)
        return step

    def _tell(self, step: EmStep) -> None:
        self.run.event(Event(step, str(step), is_recorded=True))

    def _kept(self, state: TrainingState) -> TrainingState:
        """Return a state that training can go on from."""
        if self.checkpoint is not None:
            self.checkpoint.save(state, self.key)
            self._remove_round()
        return state

    def _remove_round(self) -> None:
        """Remove the pieces of a round that is over."""
        folder = self.run.round_folder
        if folder is not None:
            folder.remove()

    def _before(self, state: TrainingState) -> TrainingState:
        """Return the state of the round before, to which a fall of the likelihood leads back."""
        if self.checkpoint is None or not state.rounds:
            return state
        return self.checkpoint.load_before(self.shape, self.key) or state


def unigram_counts(text: ParsedText, words: int) -> npt.NDArray[np.uint64]:
    """Return how often each word stands in a text, and last the number of sentences."""
    counts = np.zeros(words + 1, np.uint64)
    counts[:-1] = np.bincount(text.ids, minlength=words)
    counts[-1] = len(text)
    return counts
