"""The grammar with latent annotations: parses and scores sentences."""

from __future__ import annotations

from typing import ClassVar, Self, cast

from treelm.corpus.corpus import TextCorpus, TreeCorpus
from treelm.corpus.vocabulary import Vocabulary
from treelm.errors import UsageError
from treelm.grammar.grammar import Grammar
from treelm.models.interface.model import Config
from treelm.models.pcfg.grammar_model import GrammarModel
from treelm.models.pcfg_la.config import PcfgLaConfig
from treelm.parallel.executor import SERIAL, Executor
from treelm.parallel.progress import SILENT, Progress


class PcfgLaModel(GrammarModel[PcfgLaConfig]):
    """Parses and scores sentences with subcategories that were learned."""

    system: ClassVar[str] = "pcfg_la"
    config_class: ClassVar[type[Config]] = PcfgLaConfig
    kind: ClassVar[str] = "grammar with latent annotations"

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

    def __repr__(self) -> str:
        symbols, substates = len(self.grammar.symbols), self.grammar.total_substates
        return f"PcfgLaModel(symbols={symbols}, subcategories={substates})"

    @classmethod
    def _fits(cls, grammar: Grammar, config: PcfgLaConfig) -> bool:
        return len(grammar.split_tree) == config.cycles
