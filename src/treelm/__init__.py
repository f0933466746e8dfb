"""treelm: syntactic language models.

The everyday surface is this short list; everything else is found in the sub-packages. Names are
imported when they are first used, so that ``import treelm`` costs next to nothing.

Examples:
    >>> import treelm
    >>> tree = treelm.Tree.from_string("(S (NP (PRP I)) (VP (VBP sleep)))")
    >>> tree.words
    ('I', 'sleep')
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from treelm.corpus.brackets import read_trees
    from treelm.corpus.corpus import TextCorpus, TreeCorpus, read_sentences
    from treelm.corpus.sample_treebank import sample_treebank
    from treelm.corpus.sentences import split_sentences
    from treelm.corpus.tokenize import detokenize, tokenize
    from treelm.models.mixture.model import InterpolatedModel
    from treelm.models.ngram.model import NgramModel
    from treelm.models.registry import load, train
    from treelm.transforms.treelet import treelet
    from treelm.trees.heads import find_heads, lexical_head
    from treelm.trees.label import Label
    from treelm.trees.tree import Tree
    from treelm.version import __version__

#: public name -> the module that defines it
_HOME = {
    "InterpolatedModel": "treelm.models.mixture.model",
    "Label": "treelm.trees.label",
    "NgramModel": "treelm.models.ngram.model",
    "TextCorpus": "treelm.corpus.corpus",
    "Tree": "treelm.trees.tree",
    "TreeCorpus": "treelm.corpus.corpus",
    "__version__": "treelm.version",
    "detokenize": "treelm.corpus.tokenize",
    "find_heads": "treelm.trees.heads",
    "lexical_head": "treelm.trees.heads",
    "load": "treelm.models.registry",
    "read_sentences": "treelm.corpus.corpus",
    "read_trees": "treelm.corpus.brackets",
    "sample_treebank": "treelm.corpus.sample_treebank",
    "split_sentences": "treelm.corpus.sentences",
    "tokenize": "treelm.corpus.tokenize",
    "train": "treelm.models.registry",
    "treelet": "treelm.transforms.treelet",
}

__all__ = [
    "InterpolatedModel",
    "Label",
    "NgramModel",
    "TextCorpus",
    "Tree",
    "TreeCorpus",
    "__version__",
    "detokenize",
    "find_heads",
    "lexical_head",
    "load",
    "read_sentences",
    "read_trees",
    "sample_treebank",
    "split_sentences",
    "tokenize",
    "train",
    "treelet",
]


def __getattr__(name: str) -> object:
    if name not in _HOME:
        raise AttributeError(f"module 'treelm' has no attribute {name!r}")
    value: object = getattr(importlib.import_module(_HOME[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
