"""The grammar with latent annotations: parses and scores sentences."""

from __future__ import annotations

from typing import ClassVar

from treelm.grammar.grammar import Grammar
from treelm.models.interface.config import Config
from treelm.models.pcfg.grammar_model import GrammarModel
from treelm.models.pcfg_la.config import PcfgLaConfig


class PcfgLaModel(GrammarModel[PcfgLaConfig]):
    """Parses and scores sentences with subcategories that were learned."""

    system: ClassVar[str] = "pcfg_la"
    config_class: ClassVar[type[Config]] = PcfgLaConfig
    kind: ClassVar[str] = "grammar with latent annotations"

    def __repr__(self) -> str:
        symbols, substates = len(self.grammar.symbols), self.grammar.total_substates
        return f"PcfgLaModel(symbols={symbols}, subcategories={substates})"

    @classmethod
    def _fits(cls, grammar: Grammar, config: PcfgLaConfig) -> bool:
        return len(grammar.split_tree) == config.cycles
