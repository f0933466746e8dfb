"""The incremental right-corner parser as a language model (Schwartz et al. 2011)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Self, cast

import numpy as np
import numpy.typing as npt

from treelm.corpus.corpus import TextCorpus, TreeCorpus
from treelm.corpus.encoder import Ids, Places, encode_sentences
from treelm.corpus.vocabulary import Vocabulary
from treelm.errors import EstimationError, UnsupportedTask, UsageError
from treelm.grammar.parser_options import ParserOptions
from treelm.grammar.scored_tree import ScoredTree
from treelm.kernel_errors import kernel_errors
from treelm.models.hhmm.config import SEARCH, HhmmConfig
from treelm.models.hhmm.files import damaged_tables, read_files, write_files
from treelm.models.hhmm.reader import StoreReader
from treelm.models.hhmm.state import (
    ParserMeasures,
)
from treelm.models.hhmm.viterbi import parse_sentences
from treelm.models.model import Config, Task
from treelm.models.scores import BatchScores
from treelm.models.states import (
    State,
)
from treelm.models.words import Words, portable, words_of
from treelm.parallel.executor import SERIAL, Executor
from treelm.parallel.progress import SILENT, Progress
from treelm.store.folder import FolderWriter, ModelFolder
from treelm.store.manifest import Description


class HhmmModel(StoreReader):
    """Predicts each word from all bounded right-corner parses of the words before it.

    Args:
        tables: Grammar and words.
        vocabulary: The words.
        unigram_counts: Count of each id in the training text, that of ``</s>`` last.
        config: How it was trained, and how it searches.
        corpora: What it was trained on.
    """

    tasks: ClassVar[frozenset[Task]] = frozenset(
        {Task.SCORE, Task.SURPRISAL, Task.PERPLEXITY, Task.SAMPLE, Task.PARSE, Task.DECODE}
    )
    config_class: ClassVar[type[Config]] = HhmmConfig

    @classmethod
    def train(
        cls,
        corpus: TextCorpus | TreeCorpus,
        config: Config,
        *,
        executor: Executor = SERIAL,
        progress: Progress = SILENT,
        vocabulary: Vocabulary | None = None,
    ) -> Self:
        """Return the store model of a treebank.

        Args:
            corpus: Trees.
            config: Options, an `HhmmConfig`.
            executor: Not used.
            progress: Not used.
            vocabulary: The words to know; by default those seen often enough.

        Raises:
            UsageError: if the options are not those of a store model, or there are no trees.
        """
        from treelm.models.hhmm.train import train_hhmm

        del executor, progress
        if not isinstance(config, HhmmConfig) or not isinstance(corpus, TreeCorpus):
            raise UsageError("an incremental right-corner model needs trees and an HhmmConfig.")
        return cast("Self", train_hhmm(corpus, config, vocabulary=vocabulary))

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
        return type(self)(
            self.tables, self._vocabulary, self._unigram_counts, config, self._corpora
        )

    # -- properties -------------------------------------------------------------------------

    def __repr__(self) -> str:
        rules = len(self.tables.rules.rules)
        return (
            f"HhmmModel(depth={self._config.depth}, rules={rules}, beam={self._config.beam_width})"
        )

    # -- sentences --------------------------------------------------------------------------

    def score_batch(self, sentences: Sequence[Words], *, threads: int = 1) -> BatchScores:
        """Return the log probability of every word and end of sentences, in flat arrays."""
        if self.tables.suffixes is None:
            return super().score_batch(sentences, threads=threads)
        # Unknown words are told by their letters, which ids do not have.
        text = encode_sentences(map(words_of, sentences), self._vocabulary)
        log_probs: list[float] = []
        for sentence in sentences:
            state: State = self.initial()
            for word in words_of(sentence):
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
        """Return scores of sentences and what the parser believes after each word."""
        log_probs, table = self._scored(ids, starts, measured=True, threads=threads)
        return self.batch_scores(log_probs, ids, starts), ParserMeasures(*table.T)

    def _scored(
        self, ids: Ids, starts: Places, *, measured: bool, threads: int
    ) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
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
        return self.parse_k_best_many([words_of(sentence)], k)[0]

    def parse_k_best_many(
        self,
        sentences: Sequence[Sequence[str]],
        k: int,
        *,
        options: ParserOptions | None = None,
        threads: int = 1,
    ) -> list[list[ScoredTree]]:
        """Return the best tree of every sentence in a list; none for no words.

        Raises:
            UnsupportedTask: for more than one tree.
        """
        if k != 1:
            raise UnsupportedTask(
                f"an incremental right-corner model gives the best tree of a sentence, not {k}. "
                "For several trees parse with a pcfg or pcfg-la model."
            )
        found = self.parse_many(sentences, options=options, threads=threads)
        return [[] if tree is None else [tree] for tree in found]

    def parse_many(
        self,
        sentences: Sequence[Sequence[str]],
        *,
        options: ParserOptions | None = None,
        threads: int = 1,
    ) -> list[ScoredTree | None]:
        """Return the best tree of every sentence, None for one without words; no option counts."""
        del options
        return parse_sentences(self, self._search, sentences, threads=threads)

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
        """Write rules, labels and words."""
        write_files(writer, self.tables, self._vocabulary, self._unigram_counts)

    @classmethod
    def from_folder(cls, folder: ModelFolder) -> Self:
        """Return the model in an opened folder."""
        config, tables, vocabulary, counts = read_files(folder)
        try:
            return cls(tables, vocabulary, counts, config, folder.manifest.corpora)
        except EstimationError as error:
            raise damaged_tables(folder, str(error)) from error

    def __reduce__(self) -> tuple[Any, ...]:
        vocabulary = portable(self._vocabulary)
        parts = (self.tables, vocabulary, self._unigram_counts, self._config, self._corpora)
        return type(self), parts
