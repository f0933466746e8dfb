"""treelm: syntactic language models.

The everyday surface is this list: train, load, mix and evaluate models, parse, read corpora and
trees, and catch errors. Everything else is found in the sub-packages. Names are imported when they
are first used, so that ``import treelm`` costs next to nothing.

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
    from treelm import evaluate
    from treelm.corpus.brackets import read_trees
    from treelm.corpus.corpus import TextCorpus, TreeCorpus, read_sentences
    from treelm.corpus.labelled import LabelledSentences
    from treelm.corpus.sample_treebank import sample_treebank
    from treelm.corpus.sentences import split_sentences
    from treelm.corpus.tokenize import detokenize, tokenize
    from treelm.corpus.vocabulary import Vocabulary
    from treelm.errors import (
        CorpusFormatError,
        EngineError,
        EstimationError,
        InputFileError,
        MissingExtra,
        ModelFileError,
        OutputFileError,
        ProfileError,
        TreelmError,
        TreelmWarning,
        UnsupportedTask,
        UsageError,
        VocabularyError,
    )
    from treelm.models.composite.model import CompositeModel
    from treelm.models.headlex.model import HeadlexModel
    from treelm.models.hhmm.model import HhmmModel
    from treelm.models.interface.model import LanguageModel, Task
    from treelm.models.lsvm.model import LatentSvmModel
    from treelm.models.mixture.model import InterpolatedModel, InterpolatedSentences
    from treelm.models.ngram.model import NgramModel
    from treelm.models.pcfg.model import PcfgModel
    from treelm.models.pcfg_la.model import PcfgLaModel
    from treelm.models.plsa.model import PlsaModel
    from treelm.models.registry import load, train
    from treelm.models.tree_features.model import TreeFeaturesModel
    from treelm.models.tree_ranker.model import TreeRankerModel
    from treelm.models.treelet.model import TreeletModel
    from treelm.models.trigram_svm.model import TrigramSvmModel
    from treelm.tasks.everyday import (
        interpolate,
        parse,
        partial_parses,
        surprisal,
        surprisal_table,
    )
    from treelm.transforms.treelet import treelet
    from treelm.trees.heads import find_heads, lexical_head
    from treelm.trees.label import Label
    from treelm.trees.tree import Tree
    from treelm.version import __version__

#: public name -> the module that defines it; a module of that very name is public itself
_HOME = {
    "CompositeModel": "treelm.models.composite.model",
    "CorpusFormatError": "treelm.errors",
    "EngineError": "treelm.errors",
    "EstimationError": "treelm.errors",
    "HeadlexModel": "treelm.models.headlex.model",
    "HhmmModel": "treelm.models.hhmm.model",
    "InputFileError": "treelm.errors",
    "InterpolatedModel": "treelm.models.mixture.model",
    "InterpolatedSentences": "treelm.models.mixture.model",
    "Label": "treelm.trees.label",
    "LabelledSentences": "treelm.corpus.labelled",
    "LanguageModel": "treelm.models.interface.model",
    "LatentSvmModel": "treelm.models.lsvm.model",
    "MissingExtra": "treelm.errors",
    "ModelFileError": "treelm.errors",
    "NgramModel": "treelm.models.ngram.model",
    "OutputFileError": "treelm.errors",
    "PcfgLaModel": "treelm.models.pcfg_la.model",
    "PcfgModel": "treelm.models.pcfg.model",
    "PlsaModel": "treelm.models.plsa.model",
    "ProfileError": "treelm.errors",
    "Task": "treelm.models.interface.model",
    "TextCorpus": "treelm.corpus.corpus",
    "Tree": "treelm.trees.tree",
    "TreeCorpus": "treelm.corpus.corpus",
    "TreeFeaturesModel": "treelm.models.tree_features.model",
    "TreeRankerModel": "treelm.models.tree_ranker.model",
    "TreeletModel": "treelm.models.treelet.model",
    "TreelmError": "treelm.errors",
    "TreelmWarning": "treelm.errors",
    "TrigramSvmModel": "treelm.models.trigram_svm.model",
    "UnsupportedTask": "treelm.errors",
    "UsageError": "treelm.errors",
    "Vocabulary": "treelm.corpus.vocabulary",
    "VocabularyError": "treelm.errors",
    "__version__": "treelm.version",
    "detokenize": "treelm.corpus.tokenize",
    "evaluate": "treelm.evaluate",
    "find_heads": "treelm.trees.heads",
    "interpolate": "treelm.tasks.everyday",
    "lexical_head": "treelm.trees.heads",
    "load": "treelm.models.registry",
    "parse": "treelm.tasks.everyday",
    "partial_parses": "treelm.tasks.everyday",
    "read_sentences": "treelm.corpus.corpus",
    "read_trees": "treelm.corpus.brackets",
    "sample_treebank": "treelm.corpus.sample_treebank",
    "split_sentences": "treelm.corpus.sentences",
    "surprisal": "treelm.tasks.everyday",
    "surprisal_table": "treelm.tasks.everyday",
    "tokenize": "treelm.corpus.tokenize",
    "train": "treelm.models.registry",
    "treelet": "treelm.transforms.treelet",
}

__all__ = [
    "CompositeModel",
    "CorpusFormatError",
    "EngineError",
    "EstimationError",
    "HeadlexModel",
    "HhmmModel",
    "InputFileError",
    "InterpolatedModel",
    "InterpolatedSentences",
    "Label",
    "LabelledSentences",
    "LanguageModel",
    "LatentSvmModel",
    "MissingExtra",
    "ModelFileError",
    "NgramModel",
    "OutputFileError",
    "PcfgLaModel",
    "PcfgModel",
    "PlsaModel",
    "ProfileError",
    "Task",
    "TextCorpus",
    "Tree",
    "TreeCorpus",
    "TreeFeaturesModel",
    "TreeRankerModel",
    "TreeletModel",
    "TreelmError",
    "TreelmWarning",
    "TrigramSvmModel",
    "UnsupportedTask",
    "UsageError",
    "Vocabulary",
    "VocabularyError",
    "__version__",
    "detokenize",
    "evaluate",
    "find_heads",
    "interpolate",
    "lexical_head",
    "load",
    "parse",
    "partial_parses",
    "read_sentences",
    "read_trees",
    "sample_treebank",
    "split_sentences",
    "surprisal",
    "surprisal_table",
    "tokenize",
    "train",
    "treelet",
]


if not TYPE_CHECKING:  # with it, type checkers would believe that any name exists

    def __getattr__(name: str) -> object:
        if name not in _HOME:
            raise AttributeError(f"module 'treelm' has no attribute {name!r}")
        module = importlib.import_module(_HOME[name])
        value = module if _HOME[name] == f"treelm.{name}" else getattr(module, name)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return sorted(__all__)
