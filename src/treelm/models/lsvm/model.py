"""The latent support vector machine: a sentence is as good as its best hidden tree."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from treelm.corpus.lengths import check_lengths
from treelm.corpus.unknown_words import UNKNOWN
from treelm.corpus.vocabulary import Vocabulary
from treelm.corpus.words import Words, sentences_of, words_of
from treelm.models.interface.calibration import Calibration
from treelm.models.interface.classifier import Classifier, Explanation, weighed
from treelm.models.interface.config import Config, config_of
from treelm.models.interface.score_explanation import ScoreStep
from treelm.models.lsvm.config import LatentSvmConfig
from treelm.models.lsvm.features import LatentFeatures, LatentSentences, Parses
from treelm.models.lsvm.grammar import Floats, LatentGrammar
from treelm.models.run import Run
from treelm.store.folder import TABLES, FolderWriter, ModelFolder
from treelm.store.manifest import TrainingCorpus
from treelm.store.schema import (
    ANY,
    Tensor,
    columns,
    damage_in,
    finite,
    ids,
    read_names,
    read_tensors,
    read_words,
    write_words,
)
from treelm.transforms.markovize import undo_markovize
from treelm.trees.tree import Tree

_LABELS, _CLASSES, _ADDED = "labels.txt", "classes.txt", "added.txt"
_PRODUCTIONS = "rules+tops+tagged words+tagged classes"
_SCHEMA = (
    Tensor("rules", np.int32, ("rules", 3), ids("labels")),
    Tensor("tops", np.int32, ("tops",), ids("labels")),
    Tensor("word_tags", np.int32, ("tagged words", 2), columns("labels", "words")),
    Tensor("class_tags", np.int32, ("tagged classes", 2), columns("labels", "classes")),
    Tensor("added_tags", np.int32, ("added",), ids("labels")),
    Tensor("frequencies", np.float64, (_PRODUCTIONS,), finite),
    Tensor("weights", np.float64, (f"{_PRODUCTIONS}+added",), finite),
    Tensor("calibration", np.float64, (2,), finite),
    Tensor("accuracies", np.float64, (ANY,), finite),
)
_FIXED = Tensor("fixed", np.float64, (_PRODUCTIONS,), finite)
_NO_RULE = 0xFFFFFFFF


class LatentSvmModel(Classifier[LatentSvmConfig]):
    """Weighs the productions of the best tree that it can find for a sentence.

    Args:
        features: Productions and added words.
        weights: One a feature.
        config: How it was trained.
        calibration: The curve from margins to probabilities.
        fixed: Weights that find the trees, where these are not those that judge them.
        corpora: What it was trained on.
        accuracies: Of the rounds of training, on the sentences of tuning.
    """

    system: ClassVar[str] = "lsvm"
    config_class: ClassVar[type[Config]] = LatentSvmConfig
    usual_max_words: ClassVar[int | None] = 400

    def __init__(
        self,
        features: LatentFeatures,
        weights: Floats,
        config: LatentSvmConfig,
        calibration: Calibration,
        *,
        fixed: Floats | None = None,
        corpora: Sequence[TrainingCorpus] = (),
        accuracies: Sequence[float] = (),
    ) -> None:
        self.features, self.weights, self.fixed = features, weights, fixed
        self._config, self._calibration = config, calibration
        self._corpora, self.accuracies = tuple(corpora), tuple(accuracies)

    def __repr__(self) -> str:
        return f"LatentSvmModel({self._config.grammar}, features={len(self.features)})"

    @cached_property
    def vocabulary(self) -> Vocabulary:
        """The words of its treebank."""
        words = dict.fromkeys(self.features.grammar.words, 1)
        return Vocabulary.from_counts(words, profile=self.features.profile)

    def details(self) -> dict[str, object]:
        """Return the few numbers that tell it from others."""
        best = max(self.accuracies, default=None)
        return {
            "grammar": self._config.grammar,
            "start": self._config.start,
            "productions": len(self.features),
            "regularization": self._config.regularization,
            "rounds": len(self.accuracies),
            "best_round": None if best is None else self.accuracies.index(best) + 1,
            "accuracy": best,
        }

    def _given(self, sentences: Sequence[Words]) -> LatentSentences:
        """Return sentences as the grammar takes them; charts of long ones are refused."""
        given = list(sentences_of(sentences))
        check_lengths(map(len, given), self.max_words, self.system)
        return self.features.sentences(given)

    def margins(self, sentences: Sequence[Words], *, threads: int = 1) -> Floats:
        """Return the weight of the best tree of every sentence; minus infinity without one."""
        given = self._given(sentences)
        if self.fixed is None:
            return given.parse(self.weights, run=Run(threads=threads)).scores
        parses = given.parse(self._finding, run=Run(threads=threads))
        sums = given.vectors(parses).times(self.weights)
        return np.where(np.isfinite(parses.scores), sums, -np.inf)

    @cached_property
    def _finding(self) -> Floats:
        """The weights that find trees; added words have none in those of a treebank."""
        if self.fixed is None:
            return self.weights
        return np.concatenate([self.fixed, np.zeros(len(self.weights) - len(self.fixed))])

    def hidden_trees(
        self, sentences: Sequence[Words], *, restored: bool = True, threads: int = 1
    ) -> list[Tree | None]:
        """Return the tree behind each decision, None where there is none.

        Args:
            sentences: The words of each, or strings that are split at white space.
            restored: Whether labels and branching are those of a treebank, where the grammar is
                one; otherwise they are those of the grammar.
            threads: Kernel threads; results do not depend on it.
        """
        given = list(sentences_of(sentences))
        parses = self._given(given).parse(self._finding, run=Run(threads=threads))
        undo = restored and self._config.grammar == "treebank"
        trees = [self._tree(parses, place, words) for place, words in enumerate(given)]
        return [tree if tree is None or not undo else undo_markovize(tree) for tree in trees]

    def _tree(self, parses: Parses, place: int, words: Sequence[str]) -> Tree | None:
        part = slice(parses.starts[place], parses.starts[place + 1])
        symbols = parses.symbols[part].tolist()
        if not symbols:
            return None
        rest = list(words)
        done: list[Tree] = []
        pairs = zip(reversed(symbols), reversed(parses.rules[part].tolist()), strict=True)
        for symbol, rule in pairs:
            label = self.features.grammar.symbols[symbol]
            children = rest.pop() if rule == _NO_RULE else [done.pop(), done.pop()]
            done.append(Tree(label, children))
        return Tree("ROOT", done)

    def weight_of(self, sentence: Words) -> dict[str, float]:
        """Return the productions of the tree behind a decision with what each adds to it."""
        given = self._given([words_of(sentence)])
        vectors = given.vectors(given.parse(self._finding))
        pairs = zip(vectors.features.tolist(), vectors.counts.tolist(), strict=True)
        return {self.feature_name(f): count * float(self.weights[f]) for f, count in pairs}

    score_story: ClassVar[str] = (
        "The margin is the weight of the best tree: the sum of the weights of its productions, "
        "each as often as it occurs."
    )
    score_reference: ClassVar[str] = (
        "Cherry and Quirk (2008), section 3.1, equation 1: the weight of the best tree; section 4: "
        "its productions (docs/systems/lsvm.md)"
    )

    def margin_steps(self, words: tuple[str, ...]) -> list[ScoreStep]:
        """Return the productions of the best tree with what each adds."""
        return weighed(self.weight_of(words))

    def explain(self, sentence: Words) -> Explanation | None:
        """Return the tree behind a decision with the weight of each of its productions.

        Args:
            sentence: Its words, or a string that is split at white space.

        Returns:
            A tree of the grammar below ROOT; None if the sentence has none.
        """
        words = words_of(sentence)
        given = self._given([words])
        parses = given.parse(self._finding)
        tree = self._tree(parses, 0, words)
        if tree is None:
            return None
        return Explanation(tree, tuple(given.node_weights(parses, self.weights).tolist()))

    def feature_name(self, feature: int) -> str:
        """Return a production as a string; classes stand in angle brackets."""
        grammar = self.features.grammar
        symbols = grammar.symbols
        if feature < len(grammar.rules):
            parent, left, right = (symbols[symbol] for symbol in grammar.rules[feature])
            return f"{parent} -> {left} {right}"
        if feature < grammar.first_word:
            return f"ROOT -> {symbols[grammar.tops[feature - len(grammar.rules)]]}"
        if feature < grammar.first_class:
            tag, word = grammar.word_tags[feature - grammar.first_word]
            return f"{symbols[tag]} -> {grammar.words[word]}"
        if feature < grammar.features:
            tag, name = grammar.class_tags[feature - grammar.first_class]
            shown = grammar.classes[name]
            return f"{symbols[tag]} -> {shown if shown == UNKNOWN else f'<{shown}>'}"
        added, text = self.features.added[feature - grammar.features]
        return f"{symbols[added]} -> {text}"

    # -- files ------------------------------------------------------------------------------

    def write_files(self, writer: FolderWriter) -> None:
        """Write productions, words and weights."""
        grammar = self.features.grammar
        tensors: dict[str, npt.NDArray[Any]] = {
            "rules": grammar.rules,
            "tops": grammar.tops,
            "word_tags": grammar.word_tags,
            "class_tags": grammar.class_tags,
            "frequencies": grammar.frequencies,
            "added_tags": np.array([tag for tag, _ in self.features.added], np.int32),
            "weights": self.weights,
            "calibration": np.array(self._calibration),
            "accuracies": np.array(self.accuracies),
        }
        if self.fixed is not None:
            tensors["fixed"] = self.fixed
        writer.tables(TABLES, tensors)
        writer.lines(_LABELS, grammar.symbols)
        writer.lines(_CLASSES, grammar.classes)
        writer.lines(_ADDED, (word for _, word in self.features.added))
        write_words(writer, self.vocabulary)

    @classmethod
    def from_folder(cls, folder: ModelFolder) -> Self:
        """Return the model in an opened folder.

        Raises:
            ModelFileError: if something is missing, or the parts do not fit together.
        """
        config = config_of(folder, LatentSvmConfig, "a latent SVM")
        with damage_in(folder):
            vocabulary = read_words(folder)
            words = tuple(sorted(set(vocabulary.symbols) - {UNKNOWN}))
            labels, classes = read_names(folder, _LABELS), read_names(folder, _CLASSES)
            added = folder.lines(_ADDED)
            found = read_tensors(
                folder.tables(),
                (*_SCHEMA, _FIXED) if config.fixed_trees else _SCHEMA,
                labels=len(labels),
                words=len(words),
                classes=len(classes),
                added=len(added),
            )
        grammar = LatentGrammar(
            labels,
            found["rules"],
            found["tops"],
            words,
            classes,
            found["word_tags"],
            found["class_tags"],
            found["frequencies"],
        )
        pairs = list(zip(found["added_tags"].tolist(), added, strict=True))
        return cls(
            LatentFeatures(grammar, pairs, vocabulary.profile),
            found["weights"],
            config,
            Calibration(*found["calibration"].tolist()),
            fixed=found.get("fixed"),
            corpora=folder.manifest.corpora,
            accuracies=found["accuracies"].tolist(),
        )

    def _arguments(self) -> dict[str, Any]:
        names = ("features", "weights", "fixed", "accuracies")
        return {**super()._arguments(), **{name: getattr(self, name) for name in names}}
