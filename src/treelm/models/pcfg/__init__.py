"""Treebank grammars."""

from treelm.models.pcfg.model import PcfgModel

__all__ = ["PcfgModel"]
