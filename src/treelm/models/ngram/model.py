"""The n-gram model: a back-off table, the words it is about, and their counts."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cached_property, lru_cache, partial
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from treelm import _native
from treelm.corpus.encoder import Ids, Places
from treelm.corpus.files import Source
from treelm.corpus.vocabulary import Vocabulary
from treelm.corpus.words import Word, Words, words_of
from treelm.errors import ModelFileError, UsageError
from treelm.estimation.backoff_table import BackoffTable
from treelm.estimation.layout import Layout, make_compact
from treelm.estimation.quantize import SMALL_CODES, CodeBits, quantize
from treelm.kernel_errors import kernel_errors
from treelm.models.interface.config import Config, config_of
from treelm.models.interface.incremental import IncrementalModel, check_pairs
from treelm.models.interface.model import LONGEST_SAMPLE, ModelInfo, Task
from treelm.models.interface.reduction import ReductionLoss, Rounding
from treelm.models.interface.score_explanation import Arithmetic
from treelm.models.interface.scores import BatchScores, Sample, SentenceScore, WordScores
from treelm.models.interface.states import (
    Context,
    State,
    Step,
    Steps,
    check_state_model,
    damaged_state,
    state_payload,
    unpack_numbers,
)
from treelm.models.interface.trained_model import TrainedModel
from treelm.models.interface.words import WordIds
from treelm.models.ngram.arithmetic import chain_arithmetic
from treelm.models.ngram.config import NgramConfig
from treelm.models.ngram.sampling import sample_sentences
from treelm.models.ngram.state import NONE, NgramState
from treelm.parallel.memory import MemoryLimit
from treelm.parallel.progress import SILENT, Progress
from treelm.seeds import given_or_fresh
from treelm.store.folder import TABLES, FolderWriter, ModelFolder
from treelm.store.manifest import TrainingCorpus
from treelm.store.schema import UNIGRAM_COUNTS, damage_in, read_tensors, read_words, write_words

#: Names in the file of tables.
TABLE, COUNTS = "ngram", UNIGRAM_COUNTS.name

_CACHED_ESTIMATES = 1 << 16


class NgramModel(TrainedModel[NgramConfig], IncrementalModel):
    """Predicts each word from the few before it.

    Args:
        table: Probabilities; ids are those of the vocabulary, then ``</s>``, then ``<s>``.
        vocabulary: The words.
        unigram_counts: Count of each id in the training text, that of ``</s>`` last.
        config: How it was trained.
        corpora: What it was trained on.
    """

    system: ClassVar[str] = "ngram"
    tasks: ClassVar[frozenset[Task]] = frozenset(
        {Task.SCORE, Task.SURPRISAL, Task.PERPLEXITY, Task.SAMPLE, Task.DECODE}
    )
    config_class: ClassVar[type[Config]] = NgramConfig

    def __init__(
        self,
        table: BackoffTable,
        vocabulary: Vocabulary,
        unigram_counts: npt.NDArray[np.uint64],
        config: NgramConfig,
        corpora: Sequence[TrainingCorpus] = (),
    ) -> None:
        if unigram_counts.shape != (len(vocabulary) + 1,):
            raise ValueError(
                f"there are {len(vocabulary)} words and a sentence end, but unigram counts of "
                f"shape {unigram_counts.shape}"
            )
        self.table = table
        self._vocabulary = vocabulary
        self._unigram_counts = unigram_counts
        self._config = config
        self._corpora = tuple(corpora)
        self._width = config.order - 1
        self._made_reader: _native.NgramReader | None = None
        self._made_advance: Callable[[State, Word], Step | None] | None = None

    # -- properties -------------------------------------------------------------------------

    @cached_property
    def info(self) -> ModelInfo:
        """What kind of numbers it gives."""
        return ModelInfo(
            exactness="exact",
            normalized=self._config.normalized,
            order=self._config.order,
            bits=self._config.bits,
            vocabulary=self._vocabulary.fingerprint,
        )

    @cached_property
    def fingerprint(self) -> bytes:
        """8 bytes that tell the model from others."""
        without = ("oov_log_prob",) if self._config.oov_log_prob is None else ()
        if self._config.layout == "hashed":
            without = (*without, "layout")
        return self._fingerprint(self._tensors(), without=without)

    def __repr__(self) -> str:
        return f"NgramModel(order={self._config.order}, words={len(self._vocabulary)})"

    def details(self) -> dict[str, object]:
        """Return the few numbers that tell it from others."""
        config = self._config
        return {
            "order": config.order,
            "smoothing": config.smoothing,
            **({} if config.bits is None else {"bits": config.bits}),
            **({} if config.layout == "hashed" else {"layout": config.layout}),
            **({} if config.loss is None else {"loss": config.loss.to_record()}),
        }

    def notes(self) -> tuple[str, ...]:
        """Return what making it smaller cost, and whether its probabilities sum to one."""
        cost = self._config.loss or self._config.rounding
        found = () if cost is None else (f"{cost}.",)
        if self._config.normalized or self._config.sums is None:
            return found
        low, high = self._config.sums
        return (
            *found,
            f"The probabilities of all words sum to {low:.4g} to {high:.4g} in the contexts that "
            "were checked, not to 1.",
        )

    def obstacle(self, task: Task) -> str | None:
        """Return what keeps it from a task; an ARPA file's own numbers give a perplexity, if odd.

        Whoever asks for the perplexity of a model that is not normalized is warned.
        """
        return None if task is Task.PERPLEXITY else super().obstacle(task)

    # -- smaller ones -----------------------------------------------------------------------

    def quantized(
        self, bits: CodeBits, *, threads: int = 1, progress: Progress = SILENT
    ) -> NgramModel:
        """Return the model with codes of 4 to 8 or 16 bits instead of floats.

        Codes of fewer than 8 bits make it compact.
        """
        table, probabilities, weights = quantize(
            self.table, bits, threads=threads, progress=progress
        )
        rounding = Rounding(
            mean_probability=probabilities.mean,
            largest_probability=probabilities.largest,
            mean_weight=weights.mean,
            largest_weight=weights.largest,
        )
        options = {"bits": bits, "rounding": rounding, "loss": None}
        coded = self._changed(table=table, config=self._config.model_copy(update=options))
        return coded.compacted(progress=progress) if bits in SMALL_CODES else coded

    @property
    def layout(self) -> Layout:
        """How its table lies in memory."""
        return self._config.layout

    def compacted(
        self, *, memory: MemoryLimit | None = None, progress: Progress = SILENT
    ) -> NgramModel:
        """Return the model with a compact table: smaller, slower, and with the same numbers."""
        table = make_compact(self.table, self._config.bits, memory=memory, progress=progress)
        config = self._config.model_copy(update={"layout": "compact"})
        return self._changed(table=table, config=config)

    def with_loss(self, loss: ReductionLoss) -> NgramModel:
        """Return the model with a record of what making it smaller cost."""
        return self._changed(config=self._config.model_copy(update={"loss": loss}))

    def with_sums(self, sums: tuple[float, float]) -> NgramModel:
        """Return the model with a record of the smallest and largest sum of probabilities."""
        return self._changed(config=self._config.model_copy(update={"sums": sums}))

    def with_oov_log_prob(self, oov_log_prob: float | None) -> NgramModel:
        """Return the model with another probability of unknown words, where it has no ``<unk>``.

        Args:
            oov_log_prob: Its natural logarithm, to which the back-off weights of the context are
                added; None for a probability of 0.

        Raises:
            UsageError: if it is not below 0.
        """
        if oov_log_prob is not None and not -math.inf < oov_log_prob < 0:
            raise UsageError(
                f"the log probability of unknown words is {oov_log_prob}; it must be below 0."
            )
        return self._changed(config=self._config.model_copy(update={"oov_log_prob": oov_log_prob}))

    @property
    def roundings(self) -> tuple[tuple[str, Rounding], ...]:
        """How far stored values moved when it was quantised."""
        return () if self._config.rounding is None else (("", self._config.rounding),)

    def write_arpa(self, target: Source) -> None:
        """Write the model as an ARPA file, compressed if its name says so."""
        from treelm.models.ngram.arpa import write_arpa

        write_arpa(self, target)

    # -- explanation ------------------------------------------------------------------------

    score_story: ClassVar[str] = (
        "Each word is predicted from the words before it: the longest n-gram that was seen, times "
        "a back-off weight for each shorter context."
    )
    score_reference: ClassVar[str] = (
        "Kneser and Ney (1995), Chen and Goodman (1999): interpolated back-off "
        "(docs/systems/ngram.md)"
    )

    def word_arithmetic(
        self, state: State, word: Word | None, before: Sequence[str]
    ) -> Arithmetic | None:
        """Return the back-off weights and the probability that give that of a word."""
        own = self._own(state)
        outcome = self.word_ids.end
        if word is not None:
            outcome = self.word_ids.word(word, first=own.first)
        if outcome == 0 and self._config.oov_log_prob is not None:
            return None
        row = np.concatenate([[outcome], self._contexts([own])[0]]).astype(np.uint32)
        shown = "</s>" if word is None else str(word)
        return chain_arithmetic(self.table, row, shown, ["<s>", *before])

    # -- word by word -----------------------------------------------------------------------

    @property
    def _reader(self) -> _native.NgramReader:
        return self._made_reader or self._make_reader()

    def _make_reader(self) -> _native.NgramReader:
        with kernel_errors("reading words"):
            self._made_reader = _native.NgramReader(
                self.table.native,
                self._vocabulary.encoder,
                self.fingerprint,
                start=self.word_ids.start,
                end=self.word_ids.end,
                unknown_by_option=self._config.oov_log_prob is not None,
                step=Step,
            )
            self._made_advance = self._made_reader.advance
        return self._made_reader

    def initial(self, context: Context | None = None) -> NgramState:
        """Return the state before any word; documents make no difference."""
        del context
        return self._reader.initial(position_matters=self.word_ids.position_matters)

    def fragment(self) -> NgramState:
        """Return the state in the middle of a sentence: nothing is known of the words before."""
        return self._reader.fragment()

    def advance(self, state: State, word: Word) -> Step:
        """Return the natural log probability of a word in a state, and the state after it."""
        # No property: this is called for every word.
        step: Step | None = (self._made_advance or self._make_reader().advance)(state, word)
        return self._advance_checked(state, word) if step is None else step

    def _advance_checked(self, state: State, word: Word) -> Step:
        """Do the same for what the kernel refuses, or say what is wrong with it."""
        own = self._own(state)
        word_id = self.word_ids.word(word, first=own.first)
        step: Step = self._reader.advance_id(own, word_id)
        if word_id != 0:
            return step
        found = np.array([step.log_prob])
        log_probs = self._with_unknown(found, np.zeros(1, np.intp), self._contexts([own]))
        return Step(float(log_probs[0]), step.state)

    def finish(self, state: State) -> float:
        """Return the natural log probability that the sentence ends in this state."""
        return self._reader.finish(self._own(state))

    def advance_boundary(self, state: State, *, end: bool) -> Step:
        """Return the log probability of a sentence boundary, read like a word, and the state after.

        Args:
            state: The state.
            end: Whether it is the end of a sentence or the start of one, which is never predicted.
        """
        boundary = self.word_ids.end if end else self.word_ids.start
        step: Step = self._reader.advance_id(self._own(state), boundary)
        return step

    def matched_words(self, state: State, word: int) -> int:
        """Return how many words the longest n-gram of the table has that a word ends in a state.

        Args:
            state: The state.
            word: Id of the word, the sentence end included.

        Returns:
            0 for a word that the table does not have.
        """
        return self._reader.matched_words(self._own(state), word)

    @property
    def words_are_cheap(self) -> bool:
        """True: the kernel reads millions of words in a second."""
        return True

    def advance_many(self, states: Sequence[State], words: Sequence[Word]) -> Steps:
        """Return what `advance` gives for each pair; equal pairs are computed once."""
        words = check_pairs(states, words)
        if not len(states):
            return Steps(np.zeros(0), [])
        simple = self._config.oov_log_prob is None
        found = self._reader.advance_many(states, words) if simple else None
        if found is None:
            own = [self._own(state) for state in states]
            pairs = zip(own, words, strict=True)
            ids = [self.word_ids.word(word, first=state.first) for state, word in pairs]
            found = self._reader.advance_many(own, ids)
            assert found is not None  # everything has been checked
            unknown = np.flatnonzero(_ids(ids) == 0)
            contexts = self._contexts([own[place] for place in unknown])
            found = self._with_unknown(found[0], unknown, contexts), *found[1:]
        log_probs, after, distinct = found
        self.count("cache_hits", len(after) - distinct)
        return Steps(log_probs, list(after))

    def stats(self) -> dict[str, int]:
        """Return the counters since the last `reset_stats`."""
        done = self._reader.advances
        return {**super().stats(), **({"advances": done} if done else {})}

    def reset_stats(self) -> None:
        """Reset all counters."""
        super().reset_stats()
        self._reader.reset()

    def key(self, state: State) -> bytes:
        """Return the words that count for the next one, as bytes."""
        return self._own(state).payload()

    def distribution(
        self, state: State, words: Sequence[Word] | None = None
    ) -> npt.NDArray[np.float64]:
        """Return the log probabilities of words in a state; all words and the end by default."""
        own = self._own(state)
        contexts = self._contexts([own])
        known = self.table.distribution(contexts[0].tolist())
        everything = self._with_unknown(known, np.zeros(1, np.intp), contexts)
        if words is None:
            return everything[: self.word_ids.end + 1]  # the sentence start is never predicted
        return everything[[self.word_ids.word(word, first=own.first) for word in words_of(words)]]

    def state_from_bytes(self, data: bytes) -> NgramState:
        """Return the state whose `to_bytes` gave these bytes."""
        numbers = unpack_numbers(state_payload(data, self.fingerprint))
        known = range(self.word_ids.start + 1)
        if (
            not 1 <= len(numbers) <= self._width + 1
            or numbers[0] not in (0, 1)
            or any(number not in known for number in numbers[1:])
        ):
            raise damaged_state()
        return NgramState(tuple(numbers[1:]), bool(numbers[0]), self.fingerprint)

    def estimate(self, words: Words) -> float:
        """Return the log probability of words after nothing: unigram, bigram, and so on."""
        return self._estimates(words_of(words))

    @cached_property
    def _estimates(self) -> Callable[[tuple[str, ...]], float]:
        # Made of parts of the model: with itself in it, a deleted model would stay in memory.
        return lru_cache(_CACHED_ESTIMATES)(
            partial(_estimate, self.table, self.word_ids, self._width, self._config.oov_log_prob)
        )

    def _own(self, state: State) -> NgramState:
        check_state_model(state.model, self.fingerprint)
        if not isinstance(state, NgramState):
            raise TypeError(f"a state of an n-gram model is needed, not {type(state).__name__}")
        return state

    def _contexts(self, states: Sequence[NgramState]) -> Ids:
        contexts = np.full((len(states), self._width), NONE, dtype=np.uint32)
        for row, state in enumerate(states):
            contexts[row, : len(state.context)] = state.context
        return contexts

    # -- sentences --------------------------------------------------------------------------

    def score(self, sentence: Words, *, eos: bool = True, bos: bool = True) -> SentenceScore:
        """Return the score of a sentence and of each of its words."""
        given = sentence if isinstance(sentence, str) else words_of(sentence)
        found = self._reader.score(given, eos) if bos else None
        if found is None:
            return super().score(given, eos=eos, bos=bos)
        log_prob, end, lost, rows = found
        words = WordScores(rows, 0, given)
        # By its fields, all of them: twice as fast as the constructor.
        row = (log_prob, self.info.exactness, eos, words, end, None, lost)
        return tuple.__new__(SentenceScore, row)

    def score_similar(self, lists: Sequence[Sequence[Words]]) -> npt.NDArray[np.float64]:
        """Return the log probabilities of the sentences of lists, one list after the other.

        They are those of `sentence_log_probs`, and come faster if sentences have much in common.

        Args:
            lists: Such as n-best lists; strings are quickest.
        """
        found = self._reader.score_similar(lists)
        if found is not None:
            return found
        return self.sentence_log_probs([sentence for each in lists for sentence in each])

    def score_ids(self, ids: Ids, starts: Places, *, threads: int = 1) -> BatchScores:
        """Return the log probability of every word and end of sentences that are ids already."""
        log_probs = self.table.score_sequences(
            ids, starts, start=self.word_ids.start, end=self.word_ids.end, threads=threads
        )
        unknown = np.flatnonzero(ids == 0) if self._config.oov_log_prob is not None else ids[:0]
        if len(unknown):
            bounds = starts.astype(np.int64)
            sentences = np.searchsorted(bounds, unknown, side="right") - 1
            back = unknown[:, np.newaxis] - np.arange(1, self._width + 1)
            first = bounds[sentences, np.newaxis]
            words = np.where(back >= first, ids[np.maximum(back, 0)], NONE)
            contexts = np.where(back == first - 1, self.word_ids.start, words).astype(np.uint32)
            places = unknown + sentences  # each end before takes a place too
            log_probs = self._with_unknown(log_probs, places, contexts)
        return self.batch_scores(log_probs, ids, starts)

    def _with_unknown(
        self, log_probs: npt.NDArray[np.float64], places: npt.NDArray[np.intp], contexts: Ids
    ) -> npt.NDArray[np.float64]:
        """Return log probabilities in which unknown words have what the options give them.

        That is where the table has nothing for them. It comes in place of a unigram, so the
        back-off weights of the context are added.

        Args:
            log_probs: Those of words.
            places: Where unknown words are among them.
            contexts: Their contexts.
        """
        value = self._config.oov_log_prob
        lost = np.isneginf(log_probs[places])
        if value is None or not lost.any():
            return log_probs
        sums = np.full(int(lost.sum()), value)
        for level in range(self._width):
            sums += np.log(self.table.backoff_weights(contexts[lost], level=level))
        changed = log_probs.copy()
        changed[places[lost]] = sums
        return changed

    def sample(
        self,
        count: int,
        *,
        seed: int | None = None,
        first: int = 0,
        max_words: int = LONGEST_SAMPLE,
    ) -> list[Sample]:
        """Return sentences drawn from the model, word by word, all at once."""
        chosen = given_or_fresh(seed)
        start = self._contexts([self.initial()])[0]
        drawn = sample_sentences(
            self.table,
            start,
            self.word_ids.end,
            range(first, first + count),
            seed=chosen,
            max_words=max_words,
        )
        return [
            Sample(self._vocabulary.decode(ids), log_prob, complete, seed=chosen)
            for ids, log_prob, complete in drawn
        ]

    # -- files ------------------------------------------------------------------------------

    def _tensors(self) -> dict[str, npt.NDArray[Any]]:
        return {**self.table.to_tensors(TABLE), COUNTS: self._unigram_counts}

    def write_files(self, writer: FolderWriter) -> None:
        """Write tables and words."""
        writer.tables(TABLES, self._tensors())
        write_words(writer, self._vocabulary)

    @classmethod
    def from_folder(cls, folder: ModelFolder) -> Self:
        """Return the model in an opened folder, its tables mapped."""
        config = config_of(folder, NgramConfig, "an n-gram model")
        with damage_in(folder):
            vocabulary = read_words(folder)
            tables = folder.tables()
            found = read_tensors(tables, (UNIGRAM_COUNTS,), words=len(vocabulary))
            table = BackoffTable.from_tensors(tables, TABLE)
            bits = table.shape.value_bits
            if (
                table.widths != tuple(range(config.order - 1, -1, -1))
                or not table.shape.sequence
                or table.shape.outcomes != len(vocabulary) + 2
                or table.shape.base_size not in (0, len(vocabulary) + 1)
                or (bits if bits < 32 else None) != config.bits
                or table.shape.compact != (config.layout == "compact")
            ):
                raise ModelFileError(
                    f'the table "{TABLE}" has another order, vocabulary, precision or layout than '
                    "the manifest says",
                    code="E_MODEL_TABLES",
                )
        return cls(table, vocabulary, found[COUNTS], config, folder.manifest.corpora)

    def _arguments(self) -> dict[str, Any]:
        return {**super()._arguments(), "table": self.table}


def _estimate(
    table: BackoffTable,
    word_ids: WordIds,
    width: int,
    oov_log_prob: float | None,
    words: tuple[str, ...],
) -> float:
    """Return the log probability of words after nothing, in contexts of up to `width` words."""
    ids = _ids([word_ids.word(word, first=False) for word in words])
    rows = np.full((len(ids), 1 + width), NONE, dtype=np.uint32)
    for back in range(1 + width):
        rows[back:, back] = ids[: max(0, len(ids) - back)]
    if not len(ids):
        return 0.0
    log_probs = table.log_probabilities(rows)
    if oov_log_prob is not None:
        log_probs = np.where((ids == 0) & np.isneginf(log_probs), oov_log_prob, log_probs)
    return float(log_probs.sum())


def _ids(numbers: Sequence[int]) -> Ids:
    return np.array(numbers, dtype=np.uint32)
