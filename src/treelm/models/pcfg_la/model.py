"""The grammar with latent annotations: parses and scores sentences."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
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
from treelm.models.pcfg_la.config import PcfgLaConfig
from treelm.models.scores import SentenceScore
from treelm.models.words import Words, words_of
from treelm.parallel.executor import SERIAL, Executor
from treelm.parallel.progress import SILENT, Progress
from treelm.store.folder import FolderWriter, ModelFolder
from treelm.store.manifest import Description, TrainingCorpus

#: Name of the counts in the file of tables.
COUNTS = "unigram_counts"

#: Sentences that are scored at once.
_BATCH = 256


class PcfgLaModel(LanguageModel):
    """Parses and scores sentences with subcategories that were learned.

    Args:
        grammar: The rules.
        lexicon: The words.
        unigram_counts: Count of each id in the training text, that of ``</s>`` last.
        config: How it was trained.
        corpora: What it was trained on.
    """

    system: ClassVar[str] = "pcfg_la"
    tasks: ClassVar[frozenset[Task]] = frozenset({Task.SCORE, Task.PARSE})
    config_class: ClassVar[type[Config]] = PcfgLaConfig

    def __init__(
        self,
        grammar: Grammar,
        lexicon: Lexicon,
        unigram_counts: npt.NDArray[np.uint64],
        config: PcfgLaConfig,
        corpora: Sequence[TrainingCorpus] = (),
    ) -> None:
        self.grammar, self.lexicon = grammar, lexicon
        self._unigram_counts = unigram_counts
        self._config = config
        self._corpora = tuple(corpora)
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
        held_out: TreeCorpus | None = None,
        threads: int = 1,
    ) -> Self:
        """Return the grammar of a treebank.

        Args:
            corpus: Trees.
            config: Options, a `PcfgLaConfig`.
            executor: Not used: training runs in threads of one process.
            progress: Told how far it is.
            vocabulary: The words of the closed lexicon; by default all words of the trees.
            held_out: Trees that choose the best grammar of each phase.
            threads: Kernel threads; results do not depend on it.

        Raises:
            UsageError: if the options are not those of such a grammar.
        """
        from treelm.models.pcfg_la.train import TrainingWatch, train_pcfg_la

        del executor
        if not isinstance(config, PcfgLaConfig) or not isinstance(corpus, TreeCorpus):
            raise UsageError("a grammar with latent annotations needs trees and a PcfgLaConfig.")
        model = train_pcfg_la(
            corpus,
            config,
            vocabulary=vocabulary,
            held_out=held_out,
            threads=threads,
            watch=TrainingWatch(progress=progress),
        )
        return cast("Self", model)

    # -- properties -------------------------------------------------------------------------

    @property
    def config(self) -> PcfgLaConfig:
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
        symbols, substates = len(self.grammar.symbols), self.grammar.total_substates
        return f"PcfgLaModel(symbols={symbols}, subcategories={substates})"

    # -- trees ------------------------------------------------------------------------------

    def _parser(self, options: ParserOptions) -> ChartParser:
        return ChartParser(self.grammar, self.lexicon, options)

    def parse(self, sentence: Words, k: int = 1) -> list[ScoredTree]:
        """Return the best tree of a sentence; nothing for no words.

        Raises:
            UnsupportedTask: for more than one tree.
        """
        if k != 1:
            raise UnsupportedTask(f"this parser gives the best tree of a sentence, not {k}.")
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
        return self._parsers(options or ParserOptions()).parse(sentences, threads=threads)

    # -- scores -----------------------------------------------------------------------------

    def score(self, sentence: Words, *, eos: bool = True) -> SentenceScore:
        """Return the log probability of a sentence over all its trees."""
        return next(self.score_many([sentence], eos=eos))

    def score_many(
        self, sentences: Iterable[Words], *, eos: bool = True, threads: int = 1
    ) -> Iterator[SentenceScore]:
        """Yield the scores of sentences, in order.

        Raises:
            UnsupportedTask: without the end of the sentence, which trees always have.
        """
        if not eos:
            raise UnsupportedTask(
                "a grammar with latent annotations scores whole sentences, their end included."
            )
        rest = iter(sentences)
        parser = self._parsers(ParserOptions())
        while batch := [words_of(sentence) for sentence in islice(rest, _BATCH)]:
            for value in parser.log_probs(batch, threads=threads).tolist():
                if np.isnan(value):
                    raise EstimationError(
                        "a sentence is too long for an exact score by this grammar.",
                        code="E_TOO_LONG",
                    )
                yield SentenceScore(log_prob=value, exactness="exact", eos=eos)

    # -- files ------------------------------------------------------------------------------

    def description(self) -> Description:
        """Return what the manifest says about the model."""
        return Description(
            system=self.system,
            config=self._config.model_dump(mode="json"),
            exactness="exact",
            vocabulary=self.vocabulary.fingerprint,
            corpora=self._corpora,
            seed=self._config.seed,
        )

    def write_files(self, writer: FolderWriter) -> None:
        """Write rules, labels and words."""
        write_grammar(writer, self.grammar, self.lexicon, {COUNTS: self._unigram_counts})

    @classmethod
    def from_folder(cls, folder: ModelFolder) -> Self:
        """Return the model in an opened folder."""
        try:
            config = PcfgLaConfig.model_validate(folder.manifest.config)
        except ValidationError as error:
            raise ModelFileError(
                f"{folder.path}: this is no configuration of a grammar with latent annotations "
                f"({explain(error)})",
                code="E_MANIFEST",
            ) from error
        grammar, lexicon = read_grammar(folder)
        counts = folder.tables(TABLES).get(COUNTS)
        if (
            len(grammar.split_tree) != config.cycles
            or counts is None
            or counts.dtype != np.uint64
            or counts.shape != (len(lexicon.vocabulary) + 1,)
        ):
            raise ModelFileError(
                f"{folder.path}: the tables are not those of this grammar; files of another model "
                "may have been copied in. Train the model again.",
                code="E_MODEL_TABLES",
            )
        return cls(grammar, lexicon, counts, config, folder.manifest.corpora)

    def __reduce__(self) -> tuple[Any, ...]:
        parts = (self.grammar, self.lexicon, self._unigram_counts, self._config, self._corpora)
        return type(self), parts
