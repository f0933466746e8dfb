"""Any judge of sentences as a scikit-learn estimator."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from treelm.corpus.corpus import TextCorpus, TreeCorpus
from treelm.corpus.files import Source
from treelm.corpus.labelled import LabelledSentences
from treelm.corpus.words import words_of
from treelm.errors import UsageError
from treelm.extras import import_extra
from treelm.models.interface.calibration import Calibration, fit_calibration
from treelm.models.interface.classifier import Classifier
from treelm.models.interface.model import LanguageModel
from treelm.models.lsvm.config import GRID
from treelm.models.registry import load, train
from treelm.models.trigram_svm.linear_svm import choose, fit_linear
from treelm.tasks.evaluate.classification import tune_threshold
from treelm.tasks.evaluate.slr import score_sentences, slr

_base = import_extra("sklearn.base", "A scikit-learn classifier")
_ClassifierMixin: Any = _base.ClassifierMixin
_BaseEstimator: Any = _base.BaseEstimator
_validation = import_extra("sklearn.utils.validation", "A scikit-learn classifier")
_multiclass = import_extra("sklearn.utils.multiclass", "A scikit-learn classifier")

Floats = npt.NDArray[np.float64]
Sentence = tuple[str, ...]
#: The first three are trained on sentences; the others judge by the scores of a given model.
Judge = Literal["lsvm", "trigram_svm", "tree_features", "slr", "score", "score+length"]
_TRAINED = ("lsvm", "trigram_svm", "tree_features")
_GIVEN = ("slr", "score", "score+length")


class GrammaticalityClassifier(_ClassifierMixin, _BaseEstimator):  # type: ignore[misc]
    """A scikit-learn estimator that tells good sentences from bad ones.

    Sentences are strings, split at white space, or sequences of words. The larger
    of the two class labels is that of good sentences.

    Args:
        judge: ``lsvm``, ``trigram_svm`` and ``tree_features`` are trained on the sentences;
            ``slr``, ``score`` and ``score+length`` fit a threshold to the scores of `model`: its
            log-odds ratio, its score, or a linear classifier over its score and the length.
        model: For the last three: a model, or its folder.
        trees: For ``lsvm``: the treebank.
        parser: For ``tree_features``: a parser, or its folder.
        options: Options of the trained system, such as ``{"kernel": "poly"}``.
        tuning: Share of the sentences in the tuning set.
        threads: Number of threads.
        seed: Seed of the tuning set and of the solver.

    Examples:
        >>> judge = GrammaticalityClassifier("trigram_svm", options={"regularization": 0.01})
        >>> _ = judge.fit(["the cat sat", "a dog ran"] * 9, [1, 1] * 9)
        Traceback (most recent call last):
        ...
        ValueError: Classifier can't train when only one class is present.
    """

    def __init__(
        self,
        judge: Judge = "trigram_svm",
        *,
        model: LanguageModel | Source | None = None,
        trees: TreeCorpus | None = None,
        parser: Any = None,
        options: Mapping[str, object] | None = None,
        tuning: float = 0.1,
        threads: int = 1,
        seed: int = 0,
    ) -> None:
        self.judge = judge
        self.model = model
        self.trees = trees
        self.parser = parser
        self.options = options
        self.tuning = tuning
        self.threads = threads
        self.seed = seed

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.one_d_array = tags.input_tags.string = True
        tags.input_tags.two_d_array = False
        tags.classifier_tags.multi_class = False
        tags.target_tags.required = True
        return tags

    # -- training ---------------------------------------------------------------------------

    def fit(self, X: Sequence[Any], y: Sequence[Any]) -> GrammaticalityClassifier:  # noqa: N803
        """Fit the classifier.

        Args:
            X: Sentences.
            y: Two different labels; the larger is that of good sentences.

        Raises:
            ValueError: if there are not two classes, or for sentences without words.
            UsageError: if something that the judge needs is missing.
        """
        sentences = self._sentences(X)
        if y is None:
            raise ValueError(
                f"This {type(self).__name__} estimator requires y to be passed, but the target y "
                "is None."
            )
        given = _validation.column_or_1d(y, warn=True)
        _validation.check_consistent_length(sentences, given)
        _validation.assert_all_finite(given, input_name="y")
        _multiclass.check_classification_targets(given)
        self.classes_ = np.unique(given)
        if len(self.classes_) > 2:
            raise ValueError(
                "Only binary classification is supported. The type of the target is "
                f"{_multiclass.type_of_target(given)}."
            )
        if len(self.classes_) < 2:
            raise ValueError("Classifier can't train when only one class is present.")
        labels = np.where(given == self.classes_[1], 1, -1).astype(np.int8)
        self.fitted_: LanguageModel
        self.calibration_: Calibration
        if self.judge in _TRAINED:
            self._fit_trained(sentences, labels)
        elif self.judge in _GIVEN:
            self._fit_given(sentences, labels)
        else:
            raise UsageError(
                f'there is no judge "{self.judge}"; choose one of {", ".join(_TRAINED + _GIVEN)}.'
            )
        return self

    def _fit_trained(self, sentences: list[Sentence], labels: npt.NDArray[np.int8]) -> None:
        held = _stratified(labels, self.tuning, self.seed)
        fitted = self._train(*(_labelled(sentences, labels, part) for part in (~held, held)))
        self.fitted_, self.calibration_ = fitted, fitted.calibration

    def _train(self, data: LabelledSentences, tuning: LabelledSentences) -> Classifier[Any]:
        options: dict[str, Any] = {"seed": self.seed, **(self.options or {})}
        if self.judge == "lsvm":
            if self.trees is None:
                raise UsageError("a latent SVM needs a treebank: give trees.")
            options["trees"] = self.trees
        elif self.judge == "tree_features":
            if self.parser is None:
                raise UsageError("features of trees need a parser: give one.")
            options["parser"] = self.parser
        fitted = train(self.judge, data, tuning=tuning, threads=self.threads, **options)
        assert isinstance(fitted, Classifier)  # as all three are
        return fitted

    def _fit_given(self, sentences: list[Sentence], labels: npt.NDArray[np.int8]) -> None:
        if self.model is None:
            raise UsageError(f"{self.judge} needs a model: give one.")
        held = self.model
        self.fitted_ = held if isinstance(held, LanguageModel) else load(held)
        values = self._values(sentences)
        usable = np.isfinite(values).all(axis=1)
        if self.judge == "score+length":
            points = values[usable]
            centre, spread = points.mean(axis=0), points.std(axis=0)
            spread[spread == 0] = 1.0
            scaled, own = (points - centre) / spread, labels[usable]

            def attempt(value: float) -> tuple[tuple[Floats, float], Floats]:
                weights, offset = fit_linear(scaled, own, value, self.seed)
                return (weights, offset), scaled @ weights + offset

            weights, offset = choose(GRID, attempt, own).machine
            self.weights_: Floats = weights / spread
            self.offset_ = float(offset - self.weights_ @ centre)
        else:
            column = values[:, 0]
            found = tune_threshold(column[labels > 0], column[labels < 0])
            # A margin above zero is good, and so is a score at the threshold.
            self.weights_ = np.ones(1)
            self.offset_ = -float(np.nextafter(found.value, -np.inf))
        self.calibration_ = fit_calibration(self._given_margins(values), labels)

    # -- judging ----------------------------------------------------------------------------

    def decision_function(self, X: Sequence[Any]) -> Floats:  # noqa: N803
        """Return the margins of sentences: above zero is good; minus infinity if there is none."""
        _validation.check_is_fitted(self, "fitted_")
        sentences = self._sentences(X)
        if self.judge in _TRAINED:
            decisions = self.fitted_.classify_many(sentences, threads=self.threads)
            return np.fromiter((each.margin for each in decisions), np.float64, len(sentences))
        return self._given_margins(self._values(sentences))

    def predict(self, X: Sequence[Any]) -> npt.NDArray[Any]:  # noqa: N803
        """Return the class of each sentence."""
        margins = self.decision_function(X)
        found: npt.NDArray[Any] = self.classes_[(margins > 0).astype(np.intp)]
        return found

    def predict_proba(self, X: Sequence[Any]) -> Floats:  # noqa: N803
        """Return the calibrated probabilities of both classes, one row per sentence."""
        good = self.decision_function(X)
        chances = self.calibration_.probabilities(good)
        return np.column_stack([1.0 - chances, chances])

    def _sentences(self, given: Any) -> list[Sentence]:
        """Return the words of sentences, which are checked as scikit-learn checks numbers.

        Raises:
            ValueError: for anything but strings and sequences of words, with some words in each.
        """
        name = type(self).__name__
        dimensions = np.ndim(given) if isinstance(given, str) else getattr(given, "ndim", 1)
        if dimensions != 1 or not isinstance(given, Iterable):
            kind = f"{dimensions}D array" if hasattr(given, "ndim") else type(given).__name__
            raise ValueError(
                f"Expected 1D array, got {kind} instead: {name} takes a list of strings, or of "
                "sequences of words."
            )
        found: list[Sentence] = []
        for number, sentence in enumerate(given):
            is_text = isinstance(sentence, str)
            if not is_text and not (
                isinstance(sentence, Iterable) and all(isinstance(word, str) for word in sentence)
            ):
                kind = type(sentence).__name__
                what = (
                    "None" if sentence is None else f"a{'n' if kind[0] in 'aeiou' else ''} {kind}"
                )
                raise ValueError(
                    f"Input X contains {what}, in sentence {number}: {name} takes strings, or "
                    "sequences of words."
                )
            words = words_of(str(sentence) if is_text else [str(word) for word in sentence])
            if not words:
                raise ValueError(f"Input X contains a sentence without words, sentence {number}.")
            found.append(words)
        if not found:
            raise ValueError(
                "Found array with 0 sample(s) (shape=(0,)) while a minimum of 1 is required by "
                f"{name}."
            )
        return found

    def _values(self, sentences: list[Sentence]) -> Floats:
        """Return the model's score of each sentence: one column, or two with the length."""
        table = score_sentences(
            self.fitted_, sentences, with_unigram=self.judge == "slr", threads=self.threads
        )
        if self.judge == "slr":
            return slr(table)[:, np.newaxis]
        if self.judge == "score":
            return table.scores[:, np.newaxis]
        return np.column_stack([table.scores, [float(len(words)) for words in sentences]])

    def _given_margins(self, values: Floats) -> Floats:
        usable = np.logical_and.reduce(np.isfinite(values), axis=1)
        if not np.isfinite(self.offset_):  # a threshold that puts all of them in one class
            return np.where(usable, np.sign(self.offset_), -np.inf)
        sums = np.where(usable[:, np.newaxis], values, 0.0) @ self.weights_ + self.offset_
        return np.where(usable, sums, -np.inf)


def _stratified(labels: npt.NDArray[np.int8], share: float, seed: int) -> npt.NDArray[np.bool_]:
    """Return which sentences are kept for tuning: a share of each class, at least one."""
    if not 0 < share < 1:
        raise UsageError(
            f"a share of {share} cannot be kept for tuning; it must be between 0 and 1."
        )
    held = np.zeros(len(labels), np.bool_)
    order = np.random.default_rng(seed).permutation(len(labels))
    for label in (1, -1):
        own = order[labels[order] == label]
        if len(own) < 2:
            raise ValueError(
                f"n_samples = {len(own)} of one class: each needs two, one of them to tune on."
            )
        held[own[: min(max(1, round(share * len(own))), len(own) - 1)]] = True
    return held


def _labelled(
    sentences: list[Sentence], labels: npt.NDArray[np.int8], chosen: npt.NDArray[np.bool_]
) -> LabelledSentences:
    good, bad = (
        TextCorpus.of_sentences(
            [sentences[place] for place in np.flatnonzero(chosen & (labels == label))]
        )
        for label in (1, -1)
    )
    return LabelledSentences(good, bad)
