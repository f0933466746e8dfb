"""Rankers of trees: weighted features say how good a tree is among those of a sentence."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from treelm import _native
from treelm.corpus.vocabulary import Vocabulary
from treelm.corpus.words import Words, words_of
from treelm.errors import UnsupportedTask
from treelm.grammar.grammar import FloatArray
from treelm.grammar.parser_options import ParserOptions
from treelm.grammar.scored_tree import ScoredTree
from treelm.kernel_errors import kernel_errors
from treelm.models.interface.abilities import ExplainsScores, ask_for
from treelm.models.interface.config import Config, config_of
from treelm.models.interface.model import LanguageModel, ModelInfo, Task
from treelm.models.interface.packed_tree_model import only_transform
from treelm.models.interface.parser import Parser, TreeLists, check_parser
from treelm.models.interface.reranked import RerankedParser
from treelm.models.interface.score_explanation import ScoreExplanation
from treelm.models.interface.scores import SentenceScore
from treelm.models.interface.trained_model import ConfiguredModel
from treelm.models.interface.tree_model import PARSER_PART, RanksTrees, TreeModel
from treelm.models.tree_features.rerank import rerank_features
from treelm.models.tree_ranker.config import TreeRankerConfig
from treelm.store.folder import TABLES, FolderWriter, ModelFolder
from treelm.store.manifest import TrainingCorpus
from treelm.store.schema import (
    Tensor,
    ascending,
    damage_in,
    finite,
    read_tensors,
    read_words,
    write_words,
)
from treelm.transforms.clean import Clean
from treelm.trees.heads import find_heads
from treelm.trees.packed import PackedTrees
from treelm.trees.profile import ProfileSource, load_profile
from treelm.trees.tree import Tree

Hashes = npt.NDArray[np.uint64]
Weights = npt.NDArray[np.float32]

_SCHEMA = (
    Tensor("features", np.uint64, ("features",), ascending),
    Tensor("weights", np.float32, ("features",), finite),
    Tensor("f1", np.float64, (2,), finite),
)


class TreeRankerModel(ConfiguredModel[TreeRankerConfig], RanksTrees):
    """Chooses among the best trees of its parser, or of any other.

    Features are known by hashes of their names; `weights_of` names those of a tree.

    Args:
        features: Hashes of the features, ascending.
        weights: One for each.
        config: Options.
        vocabulary: Words of the training trees.
        profile: Language profile, which says what heads are.
        parser: What proposes trees.
        f1: Labelled F1 on the sentences that the regularization was chosen on, of the parser's best
            trees and of those chosen; 0 for none.
        corpora: What it was trained on.
    """

    system: ClassVar[str] = "tree_ranker"
    config_class: ClassVar[type[Config]] = TreeRankerConfig
    tasks: ClassVar[frozenset[Task]] = frozenset({Task.SCORE, Task.PARSE})
    takes_parser: ClassVar[bool] = True

    def __init__(
        self,
        features: Hashes,
        weights: Weights,
        config: TreeRankerConfig,
        *,
        vocabulary: Vocabulary,
        profile: ProfileSource = "english",
        parser: Parser | None = None,
        f1: tuple[float, float] = (0.0, 0.0),
        corpora: Sequence[TrainingCorpus] = (),
    ) -> None:
        self.profile = profile
        self.features, self.weights, self.f1 = features, weights, f1
        self._config, self._vocabulary, self._corpora = config, vocabulary, tuple(corpora)
        self._parser = parser
        self.most_trees = getattr(parser, "most_trees", 0 if parser is None else None)
        with kernel_errors("ranking trees"):
            self._kernel = _native.TreeRanker(features, weights)

    def __repr__(self) -> str:
        return f"TreeRankerModel(features={len(self.features)})"

    @property
    def vocabulary(self) -> Vocabulary:
        """The words of its training trees."""
        return self._vocabulary

    @cached_property
    def info(self) -> ModelInfo:
        """What kind of numbers it gives: those of its parser."""
        own = self._parser.info if isinstance(self._parser, LanguageModel) else None
        return ModelInfo(
            exactness="exact" if own is None else own.exactness,
            normalized=False,
            vocabulary=self.vocabulary.fingerprint,
        )

    def details(self) -> dict[str, object]:
        """Return the few numbers that tell it from others."""
        return {
            "features": len(self.features),
            "regularization": self._config.regularization,
            "f1_of_parser": self.f1[0],
            "f1": self.f1[1],
        }

    # -- trees ------------------------------------------------------------------------------

    @cached_property
    def _profile(self) -> _native.Profile:
        return load_profile(self.profile).native

    def packed_ranks(self, batches: Sequence[PackedTrees], *, threads: int = 1) -> FloatArray:
        """Return `tree_ranks` of the trees of batches, one batch after the other."""
        if not batches:
            return np.zeros(0)
        trees = PackedTrees.joined(batches)
        with kernel_errors("ranking trees"):
            return self._kernel.score(trees.native, self._profile, threads=threads)

    def weights_of(self, tree: Tree) -> dict[str, float]:
        """Return the features of a tree with what each adds, the largest first."""
        counts = rerank_features(find_heads(tree, self.profile))
        hashes = {name: _native.rank_feature_hash(name) for name in counts}
        found = {name: counts[name] * self._kernel.weight(hashes[name]) for name in counts}
        ordered = sorted(found.items(), key=lambda pair: (-abs(pair[1]), pair[0]))
        return {name: weight for name, weight in ordered if weight}

    # -- the parser -------------------------------------------------------------------------

    @property
    def parser(self) -> Parser | None:
        """What proposes trees, if it has one."""
        return self._parser

    def with_parser(self, parser: Parser, k: int | None = None) -> Self:
        """Return the ranker with another parser."""
        wanted = self._config.k if k is None else k
        check_parser(parser, wanted)
        return self._changed(parser=parser, config=self._config.model_copy(update={"k": wanted}))

    def without_parser(self) -> Self:
        """Return the ranker without its parser, for use with any other."""
        return self._changed(parser=None)

    def obstacle(self, task: Task) -> str | None:
        """Return what keeps this model from a task: perhaps that it has no parser."""
        found = super().obstacle(task)
        return "E_NO_PARSER" if found is None and self._parser is None else found

    def _needed_parser(self, task: Task) -> LanguageModel:
        if self._parser is None:
            raise self.unable(task)
        if not isinstance(self._parser, LanguageModel):
            raise UnsupportedTask(
                "the parser of this tree_ranker model is not a model, so that it neither scores "
                "sentences nor parses new ones. Give it one with `with_parser`."
            )
        return self._parser

    @property
    def parser_options(self) -> ParserOptions:
        """How the parser works unless told otherwise."""
        return self._needed_parser(Task.PARSE).parser_options

    @property
    def _ranked(self) -> RerankedParser:
        return RerankedParser(self._needed_parser(Task.PARSE), self, k=self._config.k)

    def parse(self, sentence: Words, k: int = 1) -> list[ScoredTree]:
        """Return up to `k` distinct trees of a sentence, the best first; none for no words."""
        return list(self.k_best_many([words_of(sentence)], k)[0] or ())

    def parse_many(
        self,
        sentences: Sequence[Words],
        *,
        options: ParserOptions | None = None,
        threads: int = 1,
    ) -> list[ScoredTree | None]:
        """Return the best tree of every sentence, None for one without words."""
        return self._ranked.parse_many(sentences, options=options, threads=threads)

    def k_best_many(
        self,
        sentences: Sequence[Words],
        k: int,
        *,
        options: ParserOptions | None = None,
        threads: int = 1,
    ) -> TreeLists:
        """Return up to `k` distinct trees of every sentence, the best first; none for no words."""
        return self._ranked.k_best_many(sentences, k, options=options, threads=threads)

    # -- sentences --------------------------------------------------------------------------

    @property
    def max_words(self) -> int | None:
        """Most words of a sentence that its parser scores."""
        return self._parser.max_words if isinstance(self._parser, LanguageModel) else None

    def with_max_words(self, max_words: int) -> Self:
        """Return the ranker with another limit for its parser."""
        if not isinstance(self._parser, LanguageModel):
            return super().with_max_words(max_words)
        return self._changed(parser=self._parser.with_max_words(max_words))

    def score(self, sentence: Words, *, eos: bool = True) -> SentenceScore:
        """Return the score that the parser gives a sentence as a whole."""
        return _whole(self._needed_parser(Task.SCORE).score(sentence, eos=eos))

    def score_many(
        self, sentences: Iterable[Words], *, eos: bool = True, threads: int = 1
    ) -> Iterator[SentenceScore]:
        """Yield the scores that the parser gives sentences, in order."""
        parser = self._needed_parser(Task.SCORE)
        return map(_whole, parser.score_many(sentences, eos=eos, threads=threads))

    def explain_score(self, sentence: Words) -> ScoreExplanation:
        """Return the steps that add up to the score that the parser gives a sentence."""
        parser = ask_for(self._needed_parser(Task.SCORE), ExplainsScores, "explain scores")
        return parser.explain_score(sentence)

    # -- files ------------------------------------------------------------------------------

    def transforms(self) -> Sequence[Mapping[str, object]]:
        """Return what was done to the training trees: they were cleaned by the profile."""
        return (Clean(profile=load_profile(self.profile).to_config()).to_config(),)

    def write_files(self, writer: FolderWriter) -> None:
        """Write features and weights, and the parser, if it is a model."""
        writer.tables(
            TABLES, {"features": self.features, "weights": self.weights, "f1": np.array(self.f1)}
        )
        write_words(writer, self.vocabulary)
        if isinstance(self._parser, LanguageModel):
            self._parser.save(writer.part(PARSER_PART))

    @classmethod
    def from_folder(cls, folder: ModelFolder) -> Self:
        """Return the model in an opened folder.

        Raises:
            ModelFileError: if something is missing, or the parts do not fit together.
        """
        config = config_of(folder, TreeRankerConfig, "a ranker of trees")
        with damage_in(folder):
            profile = only_transform(folder, Clean).profile
            vocabulary = read_words(folder)
            found = read_tensors(folder.tables(), _SCHEMA)
            parser = TreeModel.read_parser(folder)
        before, after = found["f1"].tolist()
        return cls(
            np.array(found["features"]),
            np.array(found["weights"]),
            config,
            vocabulary=vocabulary,
            profile=profile,
            parser=parser,
            f1=(before, after),
            corpora=folder.manifest.corpora,
        )

    def _arguments(self) -> dict[str, Any]:
        names = ("features", "weights", "config", "vocabulary", "parser", "f1", "corpora")
        own = {name: getattr(self, name) for name in names}
        return {**own, "profile": load_profile(self.profile).to_config()}


def _whole(score: SentenceScore) -> SentenceScore:
    """Return a score without those of words, which a ranker has nothing to do with."""
    return score._replace(words=None, end=None)
