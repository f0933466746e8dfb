"""A tiny model of trees made by hand, and parsers that know their sentences beforehand."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import ClassVar

import numpy as np

from treelm.corpus.vocabulary import Vocabulary
from treelm.corpus.vocabulary_file import load_vocabulary, save_vocabulary
from treelm.corpus.words import Words, words_of
from treelm.grammar.grammar import FloatArray
from treelm.grammar.scored_tree import ParseStatus, ScoredTree
from treelm.models.interface.config import Config
from treelm.models.interface.model import ModelInfo
from treelm.models.interface.parser import Parser, SentenceParser
from treelm.models.interface.tree_model import TreeModel, TreeModelConfig
from treelm.store.folder import FolderWriter, ModelFolder
from treelm.store.manifest import Description
from treelm.trees.tree import Tree

#: Two trees of one sentence, and one of another.
LEFT = Tree.from_string("(ROOT (X (X (A a) (B b)) (A a)))")
RIGHT = Tree.from_string("(ROOT (X (A a) (X (B b) (A a))))")
SHORT = Tree.from_string("(ROOT (A a))")


class NodeConfig(TreeModelConfig):
    """One option besides the number of trees."""

    decay: float = 0.5


class NodeModel(TreeModel):
    """Gives a tree the probability `decay` to the power of its nodes; none to words it lacks."""

    system: ClassVar[str] = "nodes"
    config_class: ClassVar[type[Config]] = NodeConfig

    def __init__(self, config: NodeConfig, parser: Parser | None = None) -> None:
        self._config: NodeConfig = config
        self._parser = parser
        self._vocabulary = Vocabulary.from_counts({"a": 2, "b": 1})

    @property
    def config(self) -> NodeConfig:
        return self._config

    @property
    def vocabulary(self) -> Vocabulary:
        return self._vocabulary

    @property
    def info(self) -> ModelInfo:
        return ModelInfo(
            exactness="lower_bound", normalized=False, vocabulary=self._vocabulary.fingerprint
        )

    def tree_log_probs(self, trees: Sequence[Tree], *, threads: int = 1) -> FloatArray:
        known = set(self._vocabulary.symbols)
        return np.array(
            [
                math.log(self._config.decay) * len(list(tree.preorder()))
                if known.issuperset(tree.words)
                else -math.inf
                for tree in trees
            ],
            dtype=np.float64,
        )

    def description(self) -> Description:
        return Description(
            system=self.system,
            config=self._config.model_dump(mode="json"),
            exactness="lower_bound",
            vocabulary=self._vocabulary.fingerprint,
        )

    def write_files(self, writer: FolderWriter) -> None:
        save_vocabulary(self._vocabulary, writer.file("words.txt"))
        self.write_parser(writer)

    @classmethod
    def from_folder(cls, folder: ModelFolder) -> NodeModel:
        load_vocabulary(folder.file("words.txt"))
        config = NodeConfig.model_validate(folder.manifest.config)
        return cls(config, cls.read_parser(folder))


class ListParser:
    """Knows the trees of its sentences by heart."""

    def __init__(self, trees: Mapping[str, Sequence[Tree]]) -> None:
        self.trees = trees
        self.asked: list[int] = []

    def parse(self, sentence: Words, k: int = 1) -> list[ScoredTree]:
        self.asked.append(k)
        words = words_of(sentence)
        found = self.trees.get(" ".join(words), ())
        if words and not found:
            flat = Tree("ROOT", [Tree("A", word) for word in words])
            return [ScoredTree(flat, -math.inf, -math.inf, ParseStatus.FAILED)]
        return [ScoredTree(tree, -float(place), -math.inf) for place, tree in enumerate(found[:k])]


class BatchListParser(ListParser, SentenceParser):
    """Takes all sentences at once."""
