"""The treebank grammar: rules with their relative frequencies, words through a smoothed lexicon."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property, lru_cache
from itertools import islice
from typing import Any, ClassVar, Self, cast

import numpy as np
import numpy.typing as npt
from pydantic import ValidationError

from treelm.corpus.corpus import TextCorpus, TreeCorpus
from treelm.corpus.vocabulary import Vocabulary
from treelm.errors import EstimationError, ModelFileError, UnsupportedTask, UsageError
from treelm.grammar.chart import ChartParser, ParserOptions, ScoredTree
from treelm.grammar.grammar import Grammar
from treelm.grammar.lexicon import Lexicon
from treelm.grammar.storage import TABLES, read_grammar, write_grammar
from treelm.models.model import Config, LanguageModel, ModelInfo, Task, explain
from treelm.models.pcfg.config import PcfgConfig
from treelm.models.scores import SentenceScore
from treelm.models.words import Words, portable, words_of
from treelm.parallel.executor import SERIAL, Executor
from treelm.parallel.progress import SILENT, Progress
from treelm.store.folder import FolderWriter, ModelFolder
from treelm.store.manifest import Description, TrainingCorpus

#: Name of the counts in the file of tables.
COUNTS = "unigram_counts"

#: Sentences that are scored at once.
_BATCH = 256


class PcfgModel(LanguageModel):
    """Parses and scores sentences with the rules of a treebank.

    Args:
        grammar: The rules.
        lexicon: The words.
        unigram_counts: Count of each id in the training text, that of ``</s>`` last.
        config: How it was trained.
        corpora: What it was trained on.
    """

    system: ClassVar[str] = "pcfg"
    tasks: ClassVar[frozenset[Task]] = frozenset({Task.SCORE, Task.PARSE})
    config_class: ClassVar[type[Config]] = PcfgConfig

    def __init__(
        self,
        grammar: Grammar,
        lexicon: Lexicon,
        unigram_counts: npt.NDArray[np.uint64],
        config: PcfgConfig,
        corpora: Sequence[TrainingCorpus] = (),
    ) -> None:
        self.grammar, self.lexicon = grammar, lexicon
        self._unigram_counts = unigram_counts
        self._config = config
        self._corpora = tuple(corpora)
        self._pipeline = config.pipeline()
        self._parsers = lru_cache(maxsize=8)(self._parser)

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
        """Return the grammar of a treebank.

        Args:
            corpus: Trees.
            config: Options, a `PcfgConfig`.
            executor: Not used.
            progress: Not used.
            vocabulary: The words of the closed lexicon; by default all words of the trees.

        Raises:
            UsageError: if the options are not those of a treebank grammar.
            EstimationError: ``E_NO_DATA`` without usable trees.
        """
        from treelm.models.pcfg.train import train_pcfg

        del executor, progress
        if not isinstance(config, PcfgConfig) or not isinstance(corpus, TreeCorpus):
            raise UsageError("a treebank grammar needs trees and a PcfgConfig.")
        if vocabulary is not None and config.lexicon != "closed":
            raise UsageError(
                "the berkeley lexicon has its own vocabulary; give one with the closed one only."
            )
        return cast("Self", train_pcfg(corpus, config, vocabulary=vocabulary))

    # -- properties -------------------------------------------------------------------------

    @property
    def config(self) -> PcfgConfig:
        """The options it was trained with."""
        return self._config

    @property
    def vocabulary(self) -> Vocabulary:
        """The words it knows, and what stands for the others."""
        return self.lexicon.vocabulary

    @property
    def corpora(self) -> tuple[TrainingCorpus, ...]:
        """What it was trained on."""
        return self._corpora

    @property
    def unigram_counts(self) -> npt.NDArray[np.uint64]:
        """Counts of the training text by word id, that of the sentence end last."""
        return self._unigram_counts

    @cached_property
    def info(self) -> ModelInfo:
        """What kind of numbers it gives."""
        return ModelInfo(
            exactness="exact",
            normalized=self.lexicon.normalized,
            vocabulary=self.vocabulary.fingerprint,
        )

    def __repr__(self) -> str:
        rules = len(self.grammar.unary_rules) + len(self.grammar.binary_rules)
        return f"PcfgModel(symbols={len(self.grammar.symbols)}, rules={rules})"

    # -- trees ------------------------------------------------------------------------------

    def _parser(self, options: ParserOptions) -> ChartParser:
        return ChartParser(self.grammar, self.lexicon, options)

    def parse(self, sentence: Words, k: int = 1) -> list[ScoredTree]:
        """Return the best tree of a sentence; nothing for no words.

        Raises:
            UnsupportedTask: for more than one tree.
        """
        if k != 1:
            raise UnsupportedTask(f"a treebank grammar gives the best tree of a sentence, not {k}.")
        found = self.parse_many([words_of(sentence)])[0]
        return [] if found is None else [found]

    def parse_many(
        self,
        sentences: Sequence[Sequence[str]],
        *,
        options: ParserOptions | None = None,
        threads: int = 1,
    ) -> list[ScoredTree | None]:
        """Return the best tree of every sentence, None for one without words."""
        parser = self._parsers(options or ParserOptions(decoding=self._config.decoding))
        found = parser.parse(sentences, threads=threads)
        if not self._pipeline.steps:
            return found
        return [
            None if parse is None else parse._replace(tree=self._pipeline.undo(parse.tree))
            for parse in found
        ]

    # -- scores -----------------------------------------------------------------------------

    def score(self, sentence: Words, *, eos: bool = True) -> SentenceScore:
        """Return the log probability of a sentence over all its trees, or of it as a prefix."""
        return next(self.score_many([sentence], eos=eos))

    def score_many(
        self, sentences: Iterable[Words], *, eos: bool = True, threads: int = 1
    ) -> Iterator[SentenceScore]:
        """Yield the scores of sentences, in order."""
        rest = iter(sentences)
        parser = self._parsers(ParserOptions())
        while batch := [words_of(sentence) for sentence in islice(rest, _BATCH)]:
            if eos:
                values = parser.log_probs(batch, threads=threads)
            else:
                values = np.array([self._prefix(parser, words) for words in batch])
            for value in values.tolist():
                if np.isnan(value):
                    raise EstimationError(
                        "a sentence is too long for an exact score by this grammar.",
                        code="E_TOO_LONG",
                    )
                yield SentenceScore(log_prob=value, exactness="exact", eos=eos)

    @staticmethod
    def _prefix(parser: ChartParser, words: Sequence[str]) -> float:
        return float(parser.prefix_log_probs(words)[0][-1]) if words else 0.0

    # -- files ------------------------------------------------------------------------------

    def description(self) -> Description:
        """Return what the manifest says about the model."""
        return Description(
            system=self.system,
            config=self._config.model_dump(mode="json"),
            exactness="exact",
            vocabulary=self.vocabulary.fingerprint,
            corpora=self._corpora,
            transforms=tuple(self._pipeline.to_config()),
        )

    def write_files(self, writer: FolderWriter) -> None:
        """Write rules, labels and words."""
        write_grammar(writer, self.grammar, self.lexicon, {COUNTS: self._unigram_counts})

    @classmethod
    def from_folder(cls, folder: ModelFolder) -> Self:
        """Return the model in an opened folder."""
        try:
            config = PcfgConfig.model_validate(folder.manifest.config)
        except ValidationError as error:
            raise ModelFileError(
                f"{folder.path}: this is no configuration of a treebank grammar ({explain(error)})",
                code="E_MANIFEST",
            ) from error
        grammar, lexicon = read_grammar(folder)
        counts = folder.tables(TABLES).get(COUNTS)
        if (
            grammar.is_latent
            or counts is None
            or counts.dtype != np.uint64
            or counts.shape != (len(lexicon.vocabulary) + 1,)
        ):
            raise ModelFileError(
                f"{folder.path}: the tables are not those of a treebank grammar; files of another "
                "model may have been copied in. Train the model again.",
                code="E_MODEL_TABLES",
            )
        return cls(grammar, lexicon, counts, config, folder.manifest.corpora)

    def __reduce__(self) -> tuple[Any, ...]:
        lexicon = replace(self.lexicon, vocabulary=portable(self.vocabulary))
        parts = (self.grammar, lexicon, self._unigram_counts, self._config, self._corpora)
        return type(self), parts
