"""The incremental right-corner parser, word by word: states, distributions, what it believes."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from treelm import _native
from treelm.corpus.vocabulary import Vocabulary
from treelm.kernel_errors import kernel_errors
from treelm.models.hhmm.config import SEARCH, HhmmConfig
from treelm.models.hhmm.state import HhmmState, StoreElement, WeightedStore, state_from_payload
from treelm.models.hhmm.tables import StoreTables
from treelm.models.incremental import IncrementalModel, check_pairs
from treelm.models.model import ModelInfo
from treelm.models.states import (
    Context,
    State,
    Step,
    Steps,
    check_state_model,
    damaged_state,
    model_fingerprint,
    state_payload,
)
from treelm.models.trained_model import TrainedModel
from treelm.models.words import Word, Words, words_of
from treelm.store.manifest import TrainingCorpus

_MEBIBYTE = 1 << 20


class StoreReader(TrainedModel[HhmmConfig], IncrementalModel):
    """Reads a sentence word by word and keeps its bounded right-corner parses.

    Args:
        tables: Grammar and words.
        vocabulary: The words.
        unigram_counts: Count of each id in the training text, that of ``</s>`` last.
        config: How it was trained, and how it searches.
        corpora: What it was trained on.
    """

    system: ClassVar[str] = "hhmm"

    def __init__(
        self,
        tables: StoreTables,
        vocabulary: Vocabulary,
        unigram_counts: npt.NDArray[np.uint64],
        config: HhmmConfig,
        corpora: Sequence[TrainingCorpus] = (),
    ) -> None:
        if tables.depth != config.depth or (config.observation == "bayes") != bool(tables.suffixes):
            raise ValueError("tables and options are those of different models")
        self.tables = tables
        self._vocabulary = vocabulary
        self._unigram_counts = unigram_counts
        self._config = config
        self._corpora = tuple(corpora)
        with kernel_errors("preparing the store model"):
            self._search = _native.HhmmSearch(
                tables.grammar,
                beam=config.beam_width or 0,
                ratio=config.beam_ratio,
                epsilon=config.robust_epsilon,
                single=config.precision == "fast",
                cache_bytes=config.cache_mebibytes * _MEBIBYTE,
            )

    # -- properties -------------------------------------------------------------------------

    @cached_property
    def info(self) -> ModelInfo:
        """What kind of numbers it gives."""
        pruned = self._config.beam_width is not None or self._config.beam_ratio > 0
        return ModelInfo(
            exactness="beam" if pruned else "exact",
            normalized=self._config.observation != "bayes",
            exact_key=self._config.recombination[0] == "exact",
            beam=self._config.beam_width,
            vocabulary=self._vocabulary.fingerprint,
        )

    @cached_property
    def fingerprint(self) -> bytes:
        """8 bytes that tell the model from others; the search does not count."""
        own = self._config.model_dump_json(exclude=set(SEARCH))
        symbols = "\n".join(self.tables.rules.symbols)
        return model_fingerprint(
            (self.system, own, self._vocabulary.fingerprint, symbols), self.tables.to_arrays()
        )

    # -- word by word -----------------------------------------------------------------------

    def initial(self, context: Context | None = None) -> HhmmState:
        """Return the state before any word; documents make no difference."""
        del context
        return HhmmState(self._search.initial(), self.fingerprint)

    def advance(self, state: State, word: Word) -> Step:
        """Return the natural log probability of a word in a state, and the state after it."""
        own = self._own(state)
        with kernel_errors("reading a word"):
            guessed = self._guessed(word) if self.tables.suffixes is not None else None
            if guessed is not None:
                found = self._search.advance_tags(own.beam, *guessed)
            else:
                word_id = self.word_ids.word(word, first=own.beam.initial)
                found = self._search.advance(own.beam, word_id)
        log_prob, log_mass, _, _, beam = found
        return Step(log_prob, HhmmState(beam, own.model, own.prefix_mass + log_mass))

    def finish(self, state: State) -> float:
        """Return the natural log probability that the sentence ends in this state."""
        return self._search.finish(self._own(state).beam)

    def advance_many(
        self, states: Sequence[State], words: Sequence[Word], *, threads: int = 1
    ) -> Steps:
        """Return what `advance` gives for each pair; equal pairs are computed once."""
        check_pairs(states, words)
        if self.tables.suffixes is not None:
            return super().advance_many(states, words)
        places: dict[tuple[HhmmState, int], int] = {}
        wanted = []
        for state, word in zip(states, words, strict=True):
            own = self._own(state)
            pair = own, self.word_ids.word(word, first=own.beam.initial)
            wanted.append(places.setdefault(pair, len(places)))
        with kernel_errors("reading words"):
            log_probs, masses, beams = self._search.advance_many(
                [state.beam for state, _ in places],
                np.array([word for _, word in places], np.uint32),
                threads=threads,
            )
        after = [
            HhmmState(beams[place], self.fingerprint, own.prefix_mass + float(masses[place]))
            for place, own in zip(wanted, map(self._own, states), strict=True)
        ]
        return Steps(log_probs[wanted] if wanted else np.zeros(0), list(after))

    def key(self, state: State) -> bytes:
        """Return the key by which hypotheses may be merged, as `config.recombine` says."""
        kind, count = self._config.recombination
        return self._own(state).beam.key(kind, count)

    def state_from_bytes(self, data: bytes) -> HhmmState:
        """Return the state whose `to_bytes` gave these bytes."""
        state = state_from_payload(state_payload(data, self.fingerprint), self.fingerprint)
        try:
            self._search.finish(state.beam)
        except _native.KernelError as error:
            raise damaged_state() from error
        return state

    def _own(self, state: State) -> HhmmState:
        if not isinstance(state, HhmmState):
            check_state_model(state.model, self.fingerprint)
            raise damaged_state()
        check_state_model(state.model, self.fingerprint)
        return state

    def _guessed(
        self, word: Word
    ) -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.float64], float] | None:
        """Return what the ending of an unknown word tells: tags, P(word | tag), frequency."""
        suffixes = self.tables.suffixes
        if suffixes is None or not isinstance(word, str) or word in self._vocabulary:
            return None
        self.word_ids.word(word, first=False)
        tokens = float(self._unigram_counts[:-1].sum())
        return *suffixes.emissions(word, self.tables.words.tag_counts), 1.0 / max(tokens, 1.0)

    # -- distributions ----------------------------------------------------------------------

    def next_tags(self, state: State) -> dict[str, float]:
        """Return the probabilities of the tags that may come next, and of the sentence end."""
        tags = self._search.next_tags(self._own(state).beam)
        names = self.tables.rules.symbols
        return {names[tag]: float(tags[tag]) for tag in np.flatnonzero(tags > 0).tolist()}

    def distribution(
        self, state: State, words: Sequence[Word] | None = None
    ) -> npt.NDArray[np.float64]:
        """Return the log probabilities of words in a state, all from one look at it."""
        if self.tables.suffixes is not None and words is not None:
            return super().distribution(state, words)
        own = self._own(state)
        tags = self._search.next_tags(own.beam)
        table, epsilon = self.tables.words, self._config.robust_epsilon
        unseen = epsilon * (1 - table.end_share) * table.unigram
        mixed = (1 - epsilon) * table.word_shares(tags) + unseen
        with np.errstate(divide="ignore"):
            log_probs = np.minimum(np.log(mixed), 0.0)
        if words is not None:
            first = own.beam.initial
            return log_probs[[self.word_ids.word(word, first=first) for word in words]]
        return np.append(log_probs, self.finish(state))

    def estimate(self, words: Words) -> float:
        """Return the log probability of words under the unigram model, wherever they stand."""
        ids = self.word_ids.sentence(words_of(words))
        with np.errstate(divide="ignore"):
            return float(np.log(self.tables.words.unigram[ids]).sum())

    # -- what the parser believes -----------------------------------------------------------

    def stores(self, state: State, count: int = 10) -> list[WeightedStore]:
        """Return the heaviest stores of a state."""
        names = self.tables.rules.symbols
        found = []
        for weight, symbols in self._own(state).beam.stacks(count):
            labels = [*(names[symbol] for symbol in symbols), None]
            pairs = zip(labels[::2], labels[1::2], strict=True)
            elements = tuple(StoreElement(str(active), awaited) for active, awaited in pairs)
            found.append(WeightedStore(elements, weight))
        return found
