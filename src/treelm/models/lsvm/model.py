"""The latent support vector machine: a sentence is as good as its best hidden tree."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from treelm.corpus.files import read_lines
from treelm.corpus.unknown_words import UNKNOWN
from treelm.corpus.vocabulary import Vocabulary
from treelm.corpus.vocabulary_file import load_vocabulary, save_vocabulary
from treelm.errors import ModelFileError
from treelm.models.interface.calibration import Calibration
from treelm.models.interface.classifier import Classifier, Explanation
from treelm.models.interface.model import Config, config_of
from treelm.models.interface.words import Words, words_of
from treelm.models.lsvm.config import LatentSvmConfig
from treelm.models.lsvm.features import LatentFeatures, Parses
from treelm.models.lsvm.grammar import Floats, LatentGrammar
from treelm.store.folder import FolderWriter, ModelFolder
from treelm.store.manifest import Description, TrainingCorpus
from treelm.transforms.markovize import undo_markovize
from treelm.trees.tree import Tree

_TABLES, _LABELS, _WORDS = "tables.safetensors", "labels.txt", "words.txt"
_CLASSES, _ADDED = "classes.txt", "added.txt"
_MATRICES = {"rules": 3, "word_tags": 2, "class_tags": 2}
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

    def margins(self, sentences: Sequence[Sequence[str]], *, threads: int = 1) -> Floats:
        """Return the weight of the best tree of every sentence; minus infinity without one."""
        given = self.features.sentences(sentences)
        if self.fixed is None:
            return given.parse(self.weights, threads=threads).scores
        parses = given.parse(self._finding, threads=threads)
        sums = given.vectors(parses).times(self.weights)
        return np.where(np.isfinite(parses.scores), sums, -np.inf)

    @cached_property
    def _finding(self) -> Floats:
        """The weights that find trees; added words have none in those of a treebank."""
        if self.fixed is None:
            return self.weights
        return np.concatenate([self.fixed, np.zeros(len(self.weights) - len(self.fixed))])

    def hidden_trees(
        self, sentences: Sequence[Sequence[str]], *, restored: bool = True, threads: int = 1
    ) -> list[Tree | None]:
        """Return the tree behind each decision, None where there is none.

        Args:
            sentences: Each a sequence of words.
            restored: Whether labels and branching are those of a treebank, where the grammar is
                one; otherwise they are those of the grammar.
            threads: Kernel threads; results do not depend on it.
        """
        parses = self.features.sentences(sentences).parse(self._finding, threads=threads)
        undo = restored and self._config.grammar == "treebank"
        trees = [self._tree(parses, place, words) for place, words in enumerate(sentences)]
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
        given = self.features.sentences([words_of(sentence)])
        vectors = given.vectors(given.parse(self._finding))
        pairs = zip(vectors.features.tolist(), vectors.counts.tolist(), strict=True)
        return {self.feature_name(f): count * float(self.weights[f]) for f, count in pairs}

    def explain(self, sentence: Words) -> Explanation | None:
        """Return the tree behind a decision with the weight of each of its productions.

        Args:
            sentence: Its words, or a string that is split at white space.

        Returns:
            A tree of the grammar below ROOT; None if the sentence has none.
        """
        words = words_of(sentence)
        given = self.features.sentences([words])
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

    def description(self) -> Description:
        """Return what the manifest says about the model."""
        return Description(
            system=self.system,
            config=self._config.model_dump(mode="json"),
            exactness="margin",
            vocabulary=self.vocabulary.fingerprint,
            corpora=self._corpora,
        )

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
        writer.tables(_TABLES, tensors)
        lines = {
            _LABELS: grammar.symbols,
            _CLASSES: grammar.classes,
            _ADDED: [word for _, word in self.features.added],
        }
        for name, values in lines.items():
            writer.text(name, "".join(f"{value}\n" for value in values))
        save_vocabulary(self.vocabulary, writer.file(_WORDS))

    @classmethod
    def from_folder(cls, folder: ModelFolder) -> Self:
        """Return the model in an opened folder.

        Raises:
            ModelFileError: if something is missing, or the parts do not fit together.
        """
        config = config_of(folder, LatentSvmConfig, "a latent SVM")
        vocabulary = load_vocabulary(folder.file(_WORDS))
        if vocabulary.fingerprint != folder.manifest.vocabulary:
            raise _damaged(folder, f"{_WORDS} is not the one the manifest names")
        tables = folder.tables(_TABLES)
        labels, classes, added = (
            tuple(read_lines(folder.file(name))) for name in (_LABELS, _CLASSES, _ADDED)
        )
        words = tuple(sorted(set(vocabulary.symbols) - {UNKNOWN}))
        try:
            arrays = {name: tables[name] for name in (*_MATRICES, "tops", "added_tags")}
            floats = {
                name: tables[name]
                for name in ("frequencies", "weights", "calibration", "accuracies", "fixed")
                if name != "fixed" or config.fixed_trees
            }
        except KeyError as error:
            raise _damaged(folder, f"the table {error} is missing") from error
        for name, array in arrays.items():
            shape = (len(array), _MATRICES[name]) if name in _MATRICES else (array.size,)
            if array.dtype != np.int32 or array.shape != shape or (array.size and array.min() < 0):
                raise _damaged(folder, f"the table {name} has no such numbers")
        for name, array in floats.items():
            if array.dtype != np.float64 or array.ndim != 1 or not np.isfinite(array).all():
                raise _damaged(folder, f"the table {name} holds what is no number")
        limits = [
            (arrays["rules"], len(labels)),
            (arrays["tops"], len(labels)),
            (arrays["word_tags"][:, 0], len(labels)),
            (arrays["word_tags"][:, 1], len(words)),
            (arrays["class_tags"][:, 0], len(labels)),
            (arrays["class_tags"][:, 1], len(classes)),
            (arrays["added_tags"], len(labels)),
        ]
        number = sum(len(arrays[name]) for name in (*_MATRICES, "tops"))
        if (
            any(array.size and array.max() >= limit for array, limit in limits)
            or len(floats["frequencies"]) != number
            or len(added) != len(arrays["added_tags"])
            or len(floats["weights"]) != number + len(added)
            or len(floats["calibration"]) != 2
            or len(floats.get("fixed", floats["frequencies"])) != number
        ):
            raise _damaged(folder, "its tables do not fit together")
        grammar = LatentGrammar(
            labels,
            arrays["rules"],
            arrays["tops"],
            words,
            classes,
            arrays["word_tags"],
            arrays["class_tags"],
            floats["frequencies"],
        )
        pairs = list(zip(arrays["added_tags"].tolist(), added, strict=True))
        slope, offset = floats["calibration"].tolist()
        return cls(
            LatentFeatures(grammar, pairs, vocabulary.profile),
            floats["weights"],
            config,
            Calibration(slope, offset),
            fixed=floats.get("fixed"),
            corpora=folder.manifest.corpora,
            accuracies=floats["accuracies"].tolist(),
        )


def _damaged(folder: ModelFolder, what: str) -> ModelFileError:
    return ModelFileError(
        f"{folder.path}: {what}; files of another model may have been copied in. Train the model "
        "again.",
        code="E_MODEL_TABLES",
    )
