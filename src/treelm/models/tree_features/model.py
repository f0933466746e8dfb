"""Classifiers that weigh what one parse of a sentence shows."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from treelm.corpus.vocabulary import Vocabulary
from treelm.corpus.words import Words, sentences_of, words_of
from treelm.errors import UnsupportedTask, UsageError, option
from treelm.grammar.scored_tree import ScoredTree
from treelm.models.interface.calibration import Calibration
from treelm.models.interface.classifier import Classifier, Explanation, Floats, weighed
from treelm.models.interface.config import Config, config_of
from treelm.models.interface.model import LanguageModel, Task
from treelm.models.interface.parser import Parser, check_parser
from treelm.models.interface.score_explanation import ScoreStep
from treelm.models.interface.tree_model import PARSER_PART, TreeModel
from treelm.models.tree_features.config import TreeFeaturesConfig
from treelm.models.tree_features.features import best_parses, rows_of, tree_features
from treelm.models.tree_features.fragments import FragmentGrammar, rule_of
from treelm.models.tree_features.rerank import placed_features
from treelm.store.folder import TABLES, FolderWriter, ModelFolder
from treelm.store.manifest import TrainingCorpus
from treelm.store.schema import (
    ANY,
    Tensor,
    damage_in,
    finite,
    read_names,
    read_tensors,
    read_words,
    write_words,
)
from treelm.trees.heads import find_heads

_FEATURES, _RULES = "features.txt", "rules.txt"
_SCHEMA = (
    Tensor("weights", np.float64, ("features",), finite),
    Tensor("offset", np.float64, (1,), finite),
    Tensor("accuracy", np.float64, (1,), finite),
    Tensor("calibration", np.float64, (2,), finite),
)
#: The kernel looks at the values.
_FRAGMENTS = (
    Tensor("fragments.starts", np.int64, (ANY,)),
    Tensor("fragments.tokens", np.int32, (ANY,)),
    Tensor("fragments.counts", np.uint64, (ANY,)),
)


class TreeFeaturesModel(Classifier[TreeFeaturesConfig]):
    """Weighs counts of rules, fragments or other features of a sentence's best tree.

    Args:
        names: The features, sorted.
        weights: One a feature.
        offset: What is added to their sum.
        config: What is counted.
        calibration: The curve from margins to probabilities.
        vocabulary: Words of the training sentences.
        grammar: Fragments, if these are counted.
        parser: What gives sentences their trees.
        accuracy: On the sentences of tuning.
        corpora: What it was trained on.
    """

    system: ClassVar[str] = "tree_features"
    config_class: ClassVar[type[Config]] = TreeFeaturesConfig
    takes_parser: ClassVar[bool] = True

    def __init__(
        self,
        names: Sequence[str],
        weights: Floats,
        offset: float,
        config: TreeFeaturesConfig,
        *,
        calibration: Calibration,
        vocabulary: Vocabulary,
        grammar: FragmentGrammar | None = None,
        parser: Parser | None = None,
        accuracy: float = 0.0,
        corpora: Sequence[TrainingCorpus] = (),
    ) -> None:
        self.names, self.weights, self.offset = tuple(names), weights, offset
        self.grammar, self._parser, self.accuracy = grammar, parser, accuracy
        self._config, self._calibration, self._corpora = config, calibration, tuple(corpora)
        self._vocabulary = vocabulary

    def __repr__(self) -> str:
        return f"TreeFeaturesModel({self._config.features}, features={len(self.names)})"

    @property
    def vocabulary(self) -> Vocabulary:
        """The words of its training sentences."""
        return self._vocabulary

    @cached_property
    def _ids(self) -> dict[str, int]:
        return {name: number for number, name in enumerate(self.names)}

    @property
    def parser(self) -> Parser | None:
        """What gives sentences their trees, if it has one."""
        return self._parser

    def with_parser(self, parser: Parser, k: int | None = None) -> Self:
        """Return the model with another parser, whose best tree of a sentence it judges."""
        if k not in (None, 1):
            raise UsageError(
                f"{self.system} models judge the best tree of a sentence, not {k}: leave k out."
            )
        check_parser(parser)
        return self._holding(parser)

    def without_parser(self) -> Self:
        """Return the model without its parser."""
        return self._holding(None)

    def _holding(self, parser: Parser | None) -> Self:
        return self._changed(parser=parser)

    def obstacle(self, task: Task) -> str | None:
        """Return what keeps this model from a task: perhaps that it has no parser."""
        found = super().obstacle(task)
        return "E_NO_PARSER" if found is None and self._parser is None else found

    def _needed_parser(self) -> Parser:
        if self._parser is None:
            raise self.unable(Task.CLASSIFY)
        return self._parser

    def details(self) -> dict[str, object]:
        """Return the few numbers that tell it from others."""
        return {
            "kind": self._config.features,
            "features": len(self.names),
            "fragments": None if self.grammar is None else len(self.grammar),
            "regularization": self._config.regularization,
            "accuracy": self.accuracy,
        }

    def margins(self, sentences: Sequence[Words], *, threads: int = 1) -> Floats:
        """Return the margin of every sentence; minus infinity for one without words.

        Raises:
            UnsupportedTask: ``E_NO_PARSER`` without a parser.
        """
        whole = list(sentences_of(sentences))
        given = [words for words in whole if words]
        parses = best_parses(self._needed_parser(), given, self._config, threads=threads)
        counted = tree_features(parses, self._config, self.grammar, threads=threads)
        margins = np.full(len(sentences), -np.inf)
        has_words = np.array([bool(words) for words in sentences], np.bool_)
        margins[has_words] = rows_of(counted, self._ids).margins(self.weights) + self.offset
        return margins

    def weight_of(self, parse: ScoredTree) -> dict[str, float]:
        """Return the features of a parse with what each adds to the margin, the largest first."""
        counts = next(tree_features([parse], self._config, self.grammar))
        found = {
            name: count * float(self.weights[self._ids[name]])
            for name, count in counts.items()
            if name in self._ids
        }
        return dict(sorted(found.items(), key=lambda pair: -abs(pair[1])))

    score_story: ClassVar[str] = (
        "The margin is the sum of the weights of the features of the best tree, each as often as "
        "it occurs, and an offset."
    )
    score_reference: ClassVar[str] = "Post (2011) (docs/systems/tree-features.md)"

    def margin_steps(self, words: tuple[str, ...]) -> list[ScoreStep]:
        """Return the features of the best tree with what each adds."""
        [parse] = best_parses(self._needed_parser(), [words], self._config)
        return weighed(self.weight_of(parse), offset=self.offset)

    def explain(self, sentence: Words) -> Explanation | None:
        """Return the tree of a sentence with what each of its parts adds to the margin.

        Raises:
            UnsupportedTask: if fragments are counted, which are larger than productions.
        """
        if self._config.features == "tsg":
            raise UnsupportedTask(
                f"this {self.system} model counts tsg features, which are larger than productions "
                f"of a tree; those over rules ({option('features', 'cfg')}) or parts of trees "
                f"({option('features', 'rerank')}) and latent machines (lsvm) show the trees "
                "behind their decisions."
            )
        parse = next(best_parses(self._needed_parser(), [words_of(sentence)], self._config))
        nodes = list(parse.tree.preorder())
        if self._config.features == "cfg":
            placed: Iterable[tuple[int, str]] = enumerate(map(rule_of, nodes))
        else:
            placed = placed_features(find_heads(parse.tree))
        weights = [0.0] * len(nodes)
        for number, name in placed:
            if name in self._ids:
                weights[number] += float(self.weights[self._ids[name]])
        whole = math.fsum(self.weight_of(parse).values()) + self.offset
        return Explanation(parse.tree, tuple(weights), whole - math.fsum(weights))

    # -- files ------------------------------------------------------------------------------

    def write_files(self, writer: FolderWriter) -> None:
        """Write features and weights, and the parser, if it is a model."""
        tensors: dict[str, npt.NDArray[Any]] = {
            "weights": self.weights,
            "offset": np.array([self.offset]),
            "accuracy": np.array([self.accuracy]),
            "calibration": np.array(self._calibration),
        }
        if self.grammar is not None:
            tensors["fragments.starts"] = self.grammar.starts
            tensors["fragments.tokens"] = self.grammar.tokens
            tensors["fragments.counts"] = self.grammar.counts
            writer.lines(_RULES, self.grammar.rules)
        writer.tables(TABLES, tensors)
        writer.lines(_FEATURES, self.names)
        write_words(writer, self.vocabulary)
        parser: object = self.parser
        if isinstance(parser, LanguageModel):
            parser.save(writer.part(PARSER_PART))

    @classmethod
    def from_folder(cls, folder: ModelFolder) -> Self:
        """Return the model in an opened folder.

        Raises:
            ModelFileError: if something is missing, or the parts do not fit together.
        """
        config = config_of(folder, TreeFeaturesConfig, "a classifier by trees")
        with damage_in(folder):
            vocabulary = read_words(folder)
            names = read_names(folder, _FEATURES)
            fragments = _FRAGMENTS if config.features == "tsg" else ()
            found = read_tensors(folder.tables(), (*_SCHEMA, *fragments), features=len(names))
            grammar = None
            if fragments:
                arrays = (np.array(found[item.name]) for item in fragments)
                grammar = FragmentGrammar(read_names(folder, _RULES), *arrays)
                grammar.check()
            parser = TreeModel.read_parser(folder)
        return cls(
            names,
            found["weights"],
            found.number("offset"),
            config,
            calibration=Calibration(*found["calibration"].tolist()),
            vocabulary=vocabulary,
            grammar=grammar,
            parser=parser,
            accuracy=found.number("accuracy"),
            corpora=folder.manifest.corpora,
        )

    def _arguments(self) -> dict[str, Any]:
        names = ("names", "weights", "offset", "vocabulary", "grammar", "parser", "accuracy")
        return {**super()._arguments(), **{name: getattr(self, name) for name in names}}
