"""What models made of a grammar and a lexicon have in common: parsing, scoring, their files."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property, lru_cache
from itertools import islice
from typing import Any, ClassVar, Generic, Self, TypeVar, cast

import numpy as np
import numpy.typing as npt
from pydantic import ValidationError

from treelm.corpus.vocabulary import Vocabulary
from treelm.errors import EstimationError, ModelFileError, UnsupportedTask
from treelm.grammar.chart import ChartParser, ParserOptions, ScoredTree
from treelm.grammar.grammar import Grammar
from treelm.grammar.k_best import KBest, KBestParser
from treelm.grammar.lexicon import Lexicon
from treelm.grammar.packed_forest import PackedForest, forest_log_probs, parse_forests
from treelm.grammar.storage import TABLES, read_grammar, write_grammar
from treelm.models.model import Config, LanguageModel, ModelInfo, Task, explain
from treelm.models.scores import SentenceScore
from treelm.models.words import Words, portable, words_of
from treelm.store.folder import FolderWriter, ModelFolder
from treelm.store.manifest import Description, TrainingCorpus
from treelm.trees.tree import Tree

#: Name of the counts in the file of tables.
COUNTS = "unigram_counts"

#: Sentences that are scored at once.
_BATCH = 256

OwnConfig = TypeVar("OwnConfig", bound=Config)


class GrammarModel(LanguageModel, Generic[OwnConfig]):
    """Parses and scores sentences with a grammar.

    Args:
        grammar: The rules.
        lexicon: The words.
        unigram_counts: Count of each id in the training text, that of ``</s>`` last.
        config: How it was trained.
        corpora: What it was trained on.
    """

    tasks: ClassVar[frozenset[Task]] = frozenset({Task.SCORE, Task.PARSE})
    #: What messages call a grammar of this kind.
    kind: ClassVar[str]

    def __init__(
        self,
        grammar: Grammar,
        lexicon: Lexicon,
        unigram_counts: npt.NDArray[np.uint64],
        config: OwnConfig,
        corpora: Sequence[TrainingCorpus] = (),
    ) -> None:
        self.grammar, self.lexicon = grammar, lexicon
        self._unigram_counts = unigram_counts
        self._config = config
        self._corpora = tuple(corpora)
        self._parsers = lru_cache(maxsize=8)(self._parser)
        self._k_best_parsers = lru_cache(maxsize=8)(self._k_best_parser)

    # -- properties -------------------------------------------------------------------------

    @property
    def config(self) -> OwnConfig:
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

    # -- trees ------------------------------------------------------------------------------

    def _parser(self, options: ParserOptions) -> ChartParser:
        return ChartParser(self.grammar, self.lexicon, options)

    def parse(self, sentence: Words, k: int = 1) -> list[ScoredTree]:
        """Return up to `k` distinct trees of a sentence, the best first; none for no words."""
        return self.parse_k_best_many([words_of(sentence)], k)[0]

    def parse_k_best_many(
        self,
        sentences: Sequence[Sequence[str]],
        k: int,
        *,
        options: ParserOptions | None = None,
        threads: int = 1,
    ) -> list[list[ScoredTree]]:
        """Return up to `k` distinct trees of every sentence, the best first; none for no words."""
        lists = self.k_best_many(sentences, k, options=options, threads=threads)
        return [[] if found is None else found[:] for found in lists]

    def k_best_many(
        self,
        sentences: Sequence[Sequence[str]],
        k: int,
        *,
        options: ParserOptions | None = None,
        threads: int = 1,
    ) -> list[KBest | None]:
        """Return the same as arrays, without an object for every tree; None for no words."""
        parser = self._k_best_parsers(options or self.parser_options)
        return parser.parse(sentences, k, threads=threads)

    def forests_many(
        self,
        sentences: Sequence[Sequence[str]],
        *,
        least: float = 0.0,
        options: ParserOptions | None = None,
        threads: int = 1,
    ) -> list[PackedForest | None]:
        """Return what pruning leaves of every sentence's trees; None for no words.

        Args:
            sentences: Each a sequence of words.
            least: Rules that are expected less often are left out too.
            options: How the parser works; None for the model's own way.
            threads: Kernel threads; results do not depend on it.
        """
        parser = self._k_best_parsers(options or self.parser_options)
        return parse_forests(parser, sentences, least=least, threads=threads)

    def forest_log_probs(
        self, forests: Sequence[PackedForest | None], *, threads: int = 1
    ) -> npt.NDArray[np.float64]:
        """Return the log of the summed probabilities of all trees of each forest, exactly."""
        return forest_log_probs(forests, self._parsers(self.parser_options), threads=threads)

    @property
    def parser_options(self) -> ParserOptions:
        """How it parses unless told otherwise."""
        return ParserOptions()

    def _k_best_parser(self, options: ParserOptions) -> KBestParser:
        return KBestParser(self._parsers(options), self._restored)

    def _restored(self, tree: Tree) -> Tree:
        """Return a tree of the grammar as the treebank would have it."""
        return tree

    def parse_many(
        self,
        sentences: Sequence[Sequence[str]],
        *,
        options: ParserOptions | None = None,
        threads: int = 1,
    ) -> list[ScoredTree | None]:
        """Return the best tree of every sentence, None for one without words."""
        return self._parsers(options or self.parser_options).parse(sentences, threads=threads)

    # -- scores -----------------------------------------------------------------------------

    def score(self, sentence: Words, *, eos: bool = True) -> SentenceScore:
        """Return the log probability of a sentence over all its trees."""
        return next(self.score_many([sentence], eos=eos))

    def score_many(
        self, sentences: Iterable[Words], *, eos: bool = True, threads: int = 1
    ) -> Iterator[SentenceScore]:
        """Yield the scores of sentences, in order.

        Raises:
            UnsupportedTask: without the end of the sentence, where there are only whole trees.
            EstimationError: ``E_TOO_LONG`` for a sentence whose chart is too large.
        """
        rest = iter(sentences)
        parser = self._parsers(ParserOptions())
        number = 0
        while batch := [words_of(sentence) for sentence in islice(rest, _BATCH)]:
            values = self._log_probs(parser, batch, eos=eos, threads=threads)
            for words, value in zip(batch, values.tolist(), strict=True):
                number += 1
                if np.isnan(value):
                    raise EstimationError(
                        f"sentence {number}, of {len(words)} words, is too long for an exact score "
                        "by this grammar. Split it, or score it with an n-gram model.",
                        code="E_TOO_LONG",
                    )
                yield SentenceScore(log_prob=value, exactness="exact", eos=eos)

    def _log_probs(
        self, parser: ChartParser, batch: Sequence[Sequence[str]], *, eos: bool, threads: int
    ) -> npt.NDArray[np.float64]:
        if not eos:
            raise UnsupportedTask(f"a {self.kind} scores whole sentences, their end included.")
        return parser.log_probs(batch, threads=threads)

    # -- files ------------------------------------------------------------------------------

    def description(self) -> Description:
        """Return what the manifest says about the model."""
        return Description(
            system=self.system,
            config=self._config.model_dump(mode="json"),
            exactness="exact",
            vocabulary=self.vocabulary.fingerprint,
            corpora=self._corpora,
        )

    def write_files(self, writer: FolderWriter) -> None:
        """Write rules, labels and words."""
        write_grammar(writer, self.grammar, self.lexicon, {COUNTS: self._unigram_counts})

    @classmethod
    @abstractmethod
    def _fits(cls, grammar: Grammar, config: OwnConfig) -> bool:
        """Return whether a grammar is one that the options give."""

    @classmethod
    def from_folder(cls, folder: ModelFolder) -> Self:
        """Return the model in an opened folder."""
        try:
            config = cast("OwnConfig", cls.config_class.model_validate(folder.manifest.config))
        except ValidationError as error:
            raise ModelFileError(
                f"{folder.path}: this is no configuration of a {cls.kind} ({explain(error)})",
                code="E_MANIFEST",
            ) from error
        grammar, lexicon = read_grammar(folder)
        counts = folder.tables(TABLES).get(COUNTS)
        if (
            not cls._fits(grammar, config)
            or counts is None
            or counts.dtype != np.uint64
            or counts.shape != (len(lexicon.vocabulary) + 1,)
        ):
            raise ModelFileError(
                f"{folder.path}: the tables are not those of this {cls.kind}; files of another "
                "model may have been copied in. Train the model again.",
                code="E_MODEL_TABLES",
            )
        return cls(grammar, lexicon, counts, config, folder.manifest.corpora)

    def __reduce__(self) -> tuple[Any, ...]:
        lexicon = replace(self.lexicon, vocabulary=portable(self.vocabulary))
        parts = (self.grammar, lexicon, self._unigram_counts, self._config, self._corpora)
        return type(self), parts
