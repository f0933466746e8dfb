"""Incremental right-corner parsing as a language model."""

from treelm.models.hhmm.model import HhmmModel

__all__ = ["HhmmModel"]
