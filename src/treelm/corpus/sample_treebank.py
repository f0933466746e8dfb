"""The treebank that comes with treelm: a few hundred English trees written by hand."""

from __future__ import annotations

from importlib import resources
from pathlib import Path

from treelm.corpus.corpus import TreeCorpus


def sample_path() -> Path:
    """Return the file of the packaged treebank; its documents are beside it."""
    return Path(str(resources.files("treelm.corpus") / "sample" / "english.mrg"))


def sample_treebank() -> TreeCorpus:
    """Return the packaged treebank.

    Examples:
        >>> len(list(sample_treebank()))
        325
    """
    return TreeCorpus((sample_path(),))
