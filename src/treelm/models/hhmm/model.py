"""The HHMM: an incremental right-corner parser as a language model (Schwartz et al. 2011)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from treelm import _native
from treelm.corpus.encoder import Ids, Places, encode_sentences
from treelm.corpus.lengths import check_starts
from treelm.corpus.vocabulary import Vocabulary
from treelm.corpus.words import Word, Words, sentences_of, words_of
from treelm.errors import UnsupportedTask, UsageError, option
from treelm.estimation.backoff_table import BackoffTable
from treelm.estimation.layout import Layout, make_compact
from treelm.estimation.quantize import SMALL_CODES, CodeBits, quantize
from treelm.grammar.chart import joined_trees
from treelm.grammar.long_sentences import parse_with_long
from treelm.grammar.parser_options import ParserOptions
from treelm.grammar.scored_tree import ParseStatus, ScoredTree
from treelm.kernel_errors import kernel_errors
from treelm.models.hhmm.config import SEARCH, HhmmConfig
from treelm.models.hhmm.partial import hhmm_partial_parses
from treelm.models.hhmm.state import (
    HhmmState,
    ParserMeasures,
    StackElement,
    WeightedStack,
    state_from_payload,
)
from treelm.models.hhmm.tables import HhmmTables
from treelm.models.hhmm.viterbi import LONGEST_PARSE, flat_parse, parse_sentences
from treelm.models.interface.config import Config, config_of
from treelm.models.interface.incremental import IncrementalModel, check_pairs
from treelm.models.interface.model import ModelInfo, Task
from treelm.models.interface.parser import BatchParser, TreeLists
from treelm.models.interface.partial_parses import PartialParses, words_to_parse
from treelm.models.interface.score_explanation import Arithmetic, ScoreTerm, log_of, sum_of
from treelm.models.interface.scores import BatchScores
from treelm.models.interface.states import (
    Context,
    State,
    Step,
    Steps,
    check_state_model,
    damaged_state,
    state_payload,
)
from treelm.models.interface.trained_model import TrainedModel
from treelm.parallel.memory import MemoryLimit
from treelm.parallel.progress import SILENT, Progress
from treelm.store.folder import TABLES, FolderWriter, ModelFolder
from treelm.store.manifest import TrainingCorpus
from treelm.store.schema import (
    UNIGRAM_COUNTS,
    damage_in,
    read_names,
    read_tensors,
    read_words,
    write_words,
)

#: Files of the model folder.
LABELS, ENDINGS = "labels.txt", "endings.txt"

_MEBIBYTE = 1 << 20


class HhmmModel(BatchParser, TrainedModel[HhmmConfig], IncrementalModel):
    """Predicts each word from all bounded right-corner parses of the words before it.

    Args:
        tables: Grammar and words.
        vocabulary: The words.
        unigram_counts: Count of each id in the training text, that of ``</s>`` last.
        config: How it was trained, and how it searches.
        corpora: What it was trained on.
    """

    system: ClassVar[str] = "hhmm"
    tasks: ClassVar[frozenset[Task]] = frozenset(
        {Task.SCORE, Task.SURPRISAL, Task.PERPLEXITY, Task.SAMPLE, Task.PARSE, Task.DECODE}
    )
    config_class: ClassVar[type[Config]] = HhmmConfig
    most_trees: int | None = 1
    search_options: tuple[str, ...] = SEARCH
    usual_max_words: ClassVar[int | None] = 10_000

    def __init__(
        self,
        tables: HhmmTables,
        vocabulary: Vocabulary,
        unigram_counts: npt.NDArray[np.uint64],
        config: HhmmConfig,
        corpora: Sequence[TrainingCorpus] = (),
    ) -> None:
        if not tables.are_of(config):
            raise ValueError("tables and options are those of different models")
        self.tables = tables
        self._vocabulary = vocabulary
        self._unigram_counts = unigram_counts
        self._config = config
        self._corpora = tuple(corpora)
        with kernel_errors("preparing the HHMM"):
            self._search = _native.HhmmSearch(
                tables.grammar,
                beam=config.beam_width or 0,
                ratio=config.beam_ratio,
                epsilon=config.robust_epsilon,
                single=config.precision == "fast",
                cache_bytes=config.cache_mebibytes * _MEBIBYTE,
            )

    def with_search(self, **options: object) -> HhmmModel:
        """Return the same model with another search; states of both can be exchanged.

        Args:
            options: Any of ``beam_width``, ``beam_ratio``, ``robust_epsilon``, ``recombine`` and
                ``cache_mebibytes``.

        Raises:
            UsageError: for another option, or an impossible value.
        """
        unknown = sorted(set(options) - set(SEARCH))
        if unknown:
            raise UsageError(f'"{unknown[0]}" is no option of the search: {", ".join(SEARCH)}.')
        config = self.make_config({**self._config.model_dump(), **options})
        assert isinstance(config, HhmmConfig)  # what an HhmmModel makes of options
        return self._changed(config=config)

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
            bits=self.tables.code_bits,
            vocabulary=self._vocabulary.fingerprint,
        )

    @property
    def layout(self) -> Layout:
        """How the tables of words before lie in memory."""
        return "compact" if self.tables.is_compact else "hashed"

    def quantized(self, bits: CodeBits, *, threads: int = 1, progress: Progress = SILENT) -> Self:
        """Return the model with codes instead of floats in its tables of words before.

        Codes of fewer than 8 bits make them compact.

        Raises:
            UnsupportedTask: if it remembers no words.
        """
        if self.tables.contexts is None:
            raise self._has_no_tables()

        def smaller(table: BackoffTable) -> BackoffTable:
            coded = quantize(table, bits, threads=threads, progress=progress).table
            return make_compact(coded, bits, progress=progress) if bits in SMALL_CODES else coded

        contexts = self.tables.contexts.changed(smaller)
        return self._changed(tables=replace(self.tables, contexts=contexts))

    def compacted(self, *, memory: MemoryLimit | None = None, progress: Progress = SILENT) -> Self:
        """Return the model with compact tables of words before: smaller, with the same numbers.

        Raises:
            UnsupportedTask: if it remembers no words.
        """
        if self.tables.contexts is None:
            raise self._has_no_tables()
        bits = self.tables.code_bits
        small = self.tables.contexts.changed(
            lambda table: make_compact(table, bits, memory=memory, progress=progress)
        )
        return self._changed(tables=replace(self.tables, contexts=small))

    def _has_no_tables(self) -> UnsupportedTask:
        return UnsupportedTask(
            "this HHMM remembers no words, and has no large tables that can be made smaller; one "
            f"trained with {option('word_context')} has."
        )

    @cached_property
    def fingerprint(self) -> bytes:
        """8 bytes that tell the model from others; the search does not count."""
        symbols = "\n".join(self.tables.rules.symbols)
        return self._fingerprint(self.tables.to_arrays(), symbols, without=SEARCH)

    def __repr__(self) -> str:
        rules = len(self.tables.rules.rules)
        return (
            f"HhmmModel(depth={self._config.depth}, rules={rules}, beam={self._config.beam_width})"
        )

    def details(self) -> dict[str, object]:
        """Return the few numbers that tell it from others."""
        return {
            "depth": self._config.depth,
            "symbols": len(self.tables.rules.symbols),
            "rules": len(self.tables.rules.rules),
            "fitting_share": self.tables.fitting_share,
        }

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
        words = check_pairs(states, words)
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
        table, epsilon = self.tables.words, self._config.robust_epsilon
        unseen = epsilon * (1 - table.end_share) * table.unigram
        mixed = (1 - epsilon) * self._search.next_words(own.beam) + unseen
        with np.errstate(divide="ignore"):
            log_probs = np.minimum(np.log(mixed), 0.0)
        if words is not None:
            first = own.beam.initial
            return log_probs[[self.word_ids.word(word, first=first) for word in words_of(words)]]
        return np.append(log_probs, self.finish(state))

    def estimate(self, words: Words) -> float:
        """Return the log probability of words under the unigram model, wherever they stand."""
        ids = self.word_ids.sentence(words_of(words))
        with np.errstate(divide="ignore"):
            return float(np.log(self.tables.words.unigram[ids]).sum())

    # -- explanation ------------------------------------------------------------------------

    score_story: ClassVar[str] = (
        "Each word is predicted from all stacks of the parser: the tags that may come next, times "
        "the probability of the word under each."
    )
    score_reference: ClassVar[str] = (
        "Schwartz et al. (2011), section 3.1, equations 5 and 6: the probability of a prefix, and "
        "the step to the next; section 4.1: the stacks (docs/systems/hhmm.md)"
    )

    def word_arithmetic(
        self, state: State, word: Word | None, before: Sequence[str]
    ) -> Arithmetic | None:
        """Return the sum over tags that gives the probability of a word, or of the end."""
        del before
        own, epsilon = self._own(state), self._config.robust_epsilon
        tags, names = self._search.next_tags(own.beam), self.tables.rules.symbols
        parsed, table = log_of(1 - epsilon), self.tables.words
        if word is None:
            end, shared = self.finish(state), log_of(epsilon * table.end_share)
            share = math.exp(end) - epsilon * table.end_share
            return sum_of(
                [
                    ScoreTerm("parses that can end here", log_of(share)),
                    ScoreTerm(f"{epsilon:g} · share of sentence ends", shared),
                ],
                rest="others",
            )
        word_id, found, values = self.read_word(word, first=own.beam.initial)
        given = names if not self._config.word_context else [f"{name}, before" for name in names]
        if word_id is not None:
            values = self._search.emissions(own.beam, word_id)
        terms = [
            ScoreTerm(
                f"{1 - epsilon:g} · P({names[tag]} | stacks) · P({word} | {given[tag]}) = "
                f"{1 - epsilon:g} · {tags[tag]:.6g} · {value:.6g}",
                parsed + log_of(float(tags[tag])) + log_of(value),
            )
            for tag, value in zip(found.tolist(), values.tolist(), strict=True)
        ]
        guessed = self._guessed(word)
        unigram = guessed[2] if guessed is not None else None
        if unigram is None:
            unigram = float(table.unigram[self.word_ids.word(word, first=own.beam.initial)])
        unseen = epsilon * (1 - table.end_share) * unigram
        terms.append(ScoreTerm(f"{epsilon:g} · frequency of {word}", log_of(unseen)))
        return sum_of(terms, rest="other tags")

    # -- stacks -----------------------------------------------------------------------------

    def stacks(self, state: State, count: int = 10) -> list[WeightedStack]:
        """Return the most probable stacks of a state."""
        names = self.tables.rules.symbols
        found = []
        for weight, symbols in self._own(state).beam.stacks(count):
            labels = [*(names[symbol] for symbol in symbols), None]
            pairs = zip(labels[::2], labels[1::2], strict=True)
            elements = tuple(StackElement(str(active), awaited) for active, awaited in pairs)
            found.append(WeightedStack(elements, weight))
        return found

    def read_word(
        self, word: Word, *, first: bool
    ) -> tuple[int | None, npt.NDArray[np.uint32], npt.NDArray[np.float64]]:
        """Return the id of a word, or None, its tags, ascending, and P(word | tag) for each.

        Args:
            word: The word; the tags of an unknown one are guessed if the model reads spelling, and
                it has no id.
            first: Whether it is the first of its sentence.
        """
        guessed = self._guessed(word)
        if guessed is not None:
            return None, guessed[0], guessed[1]
        table, word_id = self.tables.words, self.word_ids.word(word, first=first)
        part = slice(int(table.start[word_id]), int(table.start[word_id + 1]))
        return word_id, table.tag[part].astype(np.uint32), table.value[part].astype(np.float64)

    def log_end_share(self, state: State) -> float:
        """Return the natural log of the share of parses in a state that can end there and do."""
        epsilon, end = self._config.robust_epsilon, self.tables.words.end_share
        share = (math.exp(self.finish(state)) - epsilon * end) / (1 - epsilon)
        return math.log(share) if share > 0 else -math.inf

    def partial_parses(self, sentence: Words, k: int = 5) -> PartialParses:
        """Return the k best partial trees after each word of a sentence.

        Raises:
            UsageError: if `k` is out of range.
            TooLongSentence: ``E_TOO_LONG``.
        """
        words = words_to_parse(words_of(sentence), k, self.system)
        return hhmm_partial_parses(self, self._search, words, k)

    # -- sentences --------------------------------------------------------------------------

    @property
    def reads_spelling(self) -> bool:
        """Whether tags of unknown words are guessed from their suffixes."""
        return self.tables.suffixes is not None

    def score_batch(self, sentences: Sequence[Words], *, threads: int = 1) -> BatchScores:
        """Return the log probability of every word and end of sentences, in flat arrays."""
        if not self.reads_spelling:
            return super().score_batch(sentences, threads=threads)
        given = list(sentences_of(sentences))
        text = encode_sentences(given, self._vocabulary)
        check_starts(text.starts, self.max_words, self.system)
        log_probs: list[float] = []
        for words in given:
            state: State = self.initial()
            for word in words:
                log_prob, state = self.advance(state, word)
                log_probs.append(log_prob)
            log_probs.append(self.finish(state))
        return self.batch_scores(np.array(log_probs, np.float64), text.ids, text.starts)

    def score_ids(self, ids: Ids, starts: Places, *, threads: int = 1) -> BatchScores:
        """Return the log probability of every word and end of sentences that are ids already."""
        log_probs, _ = self._scored(ids, starts, measured=False, threads=threads)
        return self.batch_scores(log_probs, ids, starts)

    def measure_ids(
        self, ids: Ids, starts: Places, *, threads: int = 1
    ) -> tuple[BatchScores, ParserMeasures]:
        """Return scores of sentences and measures of the parser state after each word."""
        log_probs, table = self._scored(ids, starts, measured=True, threads=threads)
        return self.batch_scores(log_probs, ids, starts), ParserMeasures(*table.T)

    def _scored(
        self, ids: Ids, starts: Places, *, measured: bool, threads: int
    ) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
        check_starts(starts, self.max_words, self.system)
        with kernel_errors("scoring sentences"):
            log_probs, table, restarts = self._search.score(
                ids, starts, measured=measured, threads=threads
            )
        self.count("words", len(ids))
        self.count("dead_restarts", restarts)
        return log_probs, table

    # -- trees ------------------------------------------------------------------------------

    def parse(self, sentence: Words, k: int = 1) -> list[ScoredTree]:
        """Return the best tree of a sentence; nothing for no words.

        Raises:
            UnsupportedTask: for more than one tree.
        """
        return list(self.k_best_many([words_of(sentence)], k)[0] or ())

    def k_best_many(
        self,
        sentences: Sequence[Words],
        k: int,
        *,
        options: ParserOptions | None = None,
        threads: int = 1,
    ) -> TreeLists:
        """Return the best tree of every sentence in a list; none for no words.

        Raises:
            UnsupportedTask: for more than one tree.
        """
        if k != 1:
            raise UnsupportedTask(
                f"an HHMM gives the best tree of a sentence, not {k}. "
                "For several trees parse with a pcfg or pcfg-la model."
            )
        found = self.parse_many(sentences, options=options, threads=threads)
        return [[] if tree is None else [tree] for tree in found]

    def parse_many(
        self,
        sentences: Sequence[Words],
        *,
        options: ParserOptions | None = None,
        threads: int = 1,
    ) -> list[ScoredTree | None]:
        """Return the best tree of every sentence, None for one without words.

        Args:
            sentences: Each a sequence of words.
            options: Only `max_words` and `long` matter; None for the model's own.
            threads: Kernel threads; results do not depend on it.

        Raises:
            TooLongSentence: ``E_TOO_LONG`` if the options refuse sentences that are too long.
        """

        def parse(some: Sequence[Sequence[str]]) -> list[ScoredTree | None]:
            return parse_sentences(self, self._search, some, threads=threads)

        return parse_with_long(
            list(sentences_of(sentences)),
            options or self.parser_options,
            parse=parse,
            parse_pieces=parse,
            join=lambda _, pieces: joined_trees(pieces),
            flat=lambda words: flat_parse(self, words, ParseStatus.TOO_LONG),
        )

    @property
    def parser_options(self) -> ParserOptions:
        """How it parses unless told otherwise."""
        return ParserOptions(max_words=LONGEST_PARSE)

    # -- counters ---------------------------------------------------------------------------

    def stats(self) -> dict[str, int]:
        """Return what was done since the last `reset_stats`."""
        found = self._search.stats()
        names = (
            *("advances", "cache_hits", "unique_states", "bytes_states"),
            *("words_read", "words_known"),
        )
        restarts = self._stats.get("dead_restarts", 0) + int(found["dead_restarts"])
        return {
            **self._stats,
            **{name: int(found[name]) for name in names},
            "dead_restarts": restarts,
            "mean_beam_used": round(found["stacks"] / max(1, found["advances"])),
            "microseconds": round(1e6 * found["seconds"]),
        }

    def reset_stats(self) -> None:
        """Set all counters back to nothing."""
        super().reset_stats()
        self._search.reset_stats()

    # -- files ------------------------------------------------------------------------------

    def transforms(self) -> Sequence[Mapping[str, object]]:
        """Return what was done to the training trees."""
        return self._config.pipeline().to_config()

    def write_files(self, writer: FolderWriter) -> None:
        """Write rules, labels and words."""
        counts = {UNIGRAM_COUNTS.name: self._unigram_counts}
        writer.tables(TABLES, {**self.tables.to_arrays(), **counts})
        writer.lines(LABELS, self.tables.rules.symbols)
        if self.tables.suffixes is not None:
            writer.lines(ENDINGS, self.tables.suffixes.endings)
        write_words(writer, self._vocabulary)

    @classmethod
    def from_folder(cls, folder: ModelFolder) -> Self:
        """Return the model in an opened folder."""
        config = config_of(folder, HhmmConfig, "an HHMM")
        with damage_in(folder):
            vocabulary = read_words(folder)
            tensors = folder.tables()
            counts = read_tensors(tensors, (UNIGRAM_COUNTS,), words=len(vocabulary))
            tables = HhmmTables.from_arrays(
                tensors,
                read_names(folder, LABELS),
                read_names(folder, ENDINGS) if config.observation == "bayes" else None,
                config=config,
                words=len(vocabulary),
            )
            own = (counts[UNIGRAM_COUNTS.name], config, folder.manifest.corpora)
            return cls(tables, vocabulary, *own)

    def _arguments(self) -> dict[str, Any]:
        return {**super()._arguments(), "tables": self.tables}
