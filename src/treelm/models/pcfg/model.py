"""The treebank grammar: rules with their relative frequencies, words through a smoothed lexicon."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from typing import ClassVar, Self, cast

import numpy as np
import numpy.typing as npt

from treelm.corpus.corpus import TextCorpus, TreeCorpus
from treelm.corpus.vocabulary import Vocabulary
from treelm.errors import UsageError
from treelm.grammar.binary_trees import BinaryTrees
from treelm.grammar.chart import ChartParser, ParserOptions, ScoredTree
from treelm.grammar.grammar import Grammar
from treelm.models.grammar_model import GrammarModel
from treelm.models.model import Config
from treelm.models.pcfg.config import PcfgConfig
from treelm.parallel.executor import SERIAL, Executor
from treelm.parallel.progress import SILENT, Progress
from treelm.store.manifest import Description
from treelm.transforms.transform import Pipeline
from treelm.trees.tree import Tree


class PcfgModel(GrammarModel[PcfgConfig]):
    """Parses and scores sentences with the rules of a treebank."""

    system: ClassVar[str] = "pcfg"
    config_class: ClassVar[type[Config]] = PcfgConfig
    kind: ClassVar[str] = "treebank grammar"

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

    def __repr__(self) -> str:
        rules = len(self.grammar.unary_rules) + len(self.grammar.binary_rules)
        return f"PcfgModel(symbols={len(self.grammar.symbols)}, rules={rules})"

    @cached_property
    def _pipeline(self) -> Pipeline:
        return self._config.pipeline()

    def _binary_trees(self, trees: Sequence[Tree]) -> BinaryTrees:
        return self._config.binary_trees_of(trees, self.vocabulary.profile)

    def parse_many(
        self,
        sentences: Sequence[Sequence[str]],
        *,
        options: ParserOptions | None = None,
        threads: int = 1,
    ) -> list[ScoredTree | None]:
        """Return the best tree of every sentence, None for one without words."""
        options = options or ParserOptions(decoding=self._config.decoding)
        found = super().parse_many(sentences, options=options, threads=threads)
        if not self._pipeline.steps:
            return found
        return [
            None if parse is None else parse._replace(tree=self._pipeline.undo(parse.tree))
            for parse in found
        ]

    def _log_probs(
        self, parser: ChartParser, batch: Sequence[Sequence[str]], *, eos: bool, threads: int
    ) -> npt.NDArray[np.float64]:
        """Return the scores of sentences, or without their ends those of prefixes."""
        if eos:
            return super()._log_probs(parser, batch, eos=eos, threads=threads)
        prefixes = [float(parser.prefix_log_probs(w)[0][-1]) if w else 0.0 for w in batch]
        return np.array(prefixes)

    def description(self) -> Description:
        """Return what the manifest says about the model."""
        return replace(super().description(), transforms=tuple(self._pipeline.to_config()))

    @classmethod
    def _fits(cls, grammar: Grammar, config: PcfgConfig) -> bool:
        del config
        return not grammar.is_latent
