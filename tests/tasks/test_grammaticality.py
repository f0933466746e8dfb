"""The estimator of scikit-learn over every kind of judge."""

from __future__ import annotations

import copy
import pickle
from typing import Any
from unittest import SkipTest

import numpy as np
import numpy.typing as npt
import pytest
from sklearn.base import clone
from sklearn.exceptions import DataConversionWarning, NotFittedError
from sklearn.model_selection import cross_val_score
from sklearn.utils import estimator_checks, validation
from tests.models.ngram_models import small_ngram

from treelm.corpus.corpus import TreeCorpus
from treelm.corpus.sample_treebank import sample_path, sample_treebank
from treelm.errors import UsageError
from treelm.models.registry import train
from treelm.tasks.grammaticality import GrammaticalityClassifier

GOOD = [" ".join(tree.words) for tree in sample_treebank() if 4 < len(tree.words) < 15][:40]
BAD = [" ".join(line.split()[::-1]) for line in GOOD]
X = np.array(GOOD + BAD)
Y = np.array(["good"] * len(GOOD) + ["bad"] * len(BAD))


def judges() -> dict[str, GrammaticalityClassifier]:
    trees = TreeCorpus((sample_path(),))
    return {
        "trigram_svm": GrammaticalityClassifier("trigram_svm"),
        "lsvm": GrammaticalityClassifier(
            "lsvm",
            trees=trees,
            options={"rounds": 2, "regularization": 1.0, "vertical_order": 1},
        ),
        "tree_features": GrammaticalityClassifier(
            "tree_features", parser=train("pcfg", trees), options={"min_sentences": 2}
        ),
        "slr": GrammaticalityClassifier("slr", model=small_ngram(order=2)),
        "score": GrammaticalityClassifier("score", model=small_ngram(order=2)),
        "score+length": GrammaticalityClassifier("score+length", model=small_ngram(order=2)),
    }


@pytest.mark.parametrize("name", list(judges()))
def test_every_judge_is_an_estimator(name: str) -> None:
    judge = clone(judges()[name])
    assert judge.get_params()["judge"] == name
    with pytest.raises(NotFittedError):
        judge.predict(X)
    judge.fit(X, Y)
    assert judge.classes_.tolist() == ["bad", "good"]
    margins, found = judge.decision_function(X), judge.predict(X)
    assert found.tolist() == np.where(margins > 0, "good", "bad").tolist()
    assert judge.score(X, Y) > 0.6
    chances = judge.predict_proba(X)
    assert chances.shape == (len(X), 2)
    assert chances.sum(axis=1) == pytest.approx(1.0)
    order = np.argsort(margins)
    assert np.all(np.diff(chances[order, 1]) >= -1e-12)
    words = [tuple(line.split()) for line in X[:5]]
    assert judge.decision_function(words).tolist() == margins[:5].tolist()


def test_it_works_in_tools_of_scikit_learn() -> None:
    judge = GrammaticalityClassifier("trigram_svm", options={"regularization": 0.01})
    assert cross_val_score(judge, X, Y, cv=3).mean() > 0.5
    fitted = pickle.loads(pickle.dumps(judge.fit(X, Y)))
    assert fitted.predict(X).tolist() == judge.predict(X).tolist()


def test_clones_share_the_model() -> None:
    model = small_ngram(order=2)
    assert clone(model) is model
    judge = GrammaticalityClassifier("slr", model=model)
    assert clone(judge).model is model
    assert copy.deepcopy(judge).model is model


class OfNumbers(GrammaticalityClassifier):
    """Writes rows of numbers as sentences: what scikit-learn checks estimators with are numbers."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = True
        tags.input_tags.one_d_array = tags.input_tags.string = False
        return tags

    def fit(self, X: Any, y: Any) -> OfNumbers:  # noqa: N803
        super().fit(written(validation.validate_data(self, X)), y)
        return self

    def decision_function(self, X: Any) -> npt.NDArray[np.float64]:  # noqa: N803
        validation.check_is_fitted(self)
        return super().decision_function(written(validation.validate_data(self, X, reset=False)))


def written(rows: Any) -> list[str]:
    return [" ".join(f"{place}:{round(value)}" for place, value in enumerate(row)) for row in rows]


#: What scikit-learn leaves out without packages that are not needed here.
LEFT_OUT = {"check_array_api_input", "check_classifier_data_not_an_array"}


@estimator_checks.parametrize_with_checks([OfNumbers()])  # type: ignore[untyped-decorator]
@pytest.mark.filterwarnings("ignore:the classifier could not be calibrated")
def test_checks_of_scikit_learn(estimator: OfNumbers, check: Any) -> None:
    """All of its checks pass; numbers are written as sentences for them."""
    try:
        check(estimator)
    except SkipTest:
        assert check.func.__name__ in LEFT_OUT
        pytest.skip("scikit-learn needs other packages for it")


def test_most_checks_of_scikit_learn_apply() -> None:
    applied = list(estimator_checks.estimator_checks_generator(OfNumbers()))
    assert len(applied) > 50


def test_what_cannot_be_judged_is_refused() -> None:
    judge = GrammaticalityClassifier("trigram_svm")
    for sentences, labels, message in (
        (X, np.ones(len(X)), "only one class is present"),
        (X[:3], [0, 1, 2], "Only binary classification is supported"),
        (X[:3], [1, 0], "inconsistent numbers of samples: \\[3, 2\\]"),
        (X[:2], None, "requires y to be passed, but the target y is None"),
        (X[:2], [1.0, np.nan], "Input y contains NaN"),
        (X[:2], [0.5, 0.7], "Unknown label type"),
        (["a b", ""], [1, 0], "a sentence without words, sentence 1"),
        ([None, "a b"], [1, 0], "Input X contains None, in sentence 0"),
        (["a b", np.nan], [1, 0], "Input X contains a float, in sentence 1"),
        ([["a", 1], "a b"], [1, 0], "Input X contains a list, in sentence 0"),
        ("a b", [1], "Expected 1D array, got str instead"),
        (None, [1], "Expected 1D array, got NoneType instead"),
        (np.zeros((2, 2)), [0, 1], "Expected 1D array, got 2D array instead"),
        ([], [], "Found array with 0 sample"),
        (X[-2:], ["good", "bad"], "n_samples = 1 of one class"),
    ):
        with pytest.raises(ValueError, match=message):
            judge.fit(sentences, labels)  # type: ignore[arg-type]
    judge = GrammaticalityClassifier("trigram_svm", options={"regularization": 0.01}).fit(X, Y)
    for ask in (judge.predict, judge.predict_proba, judge.decision_function):
        with pytest.raises(ValueError, match="Input X contains None, in sentence 0"):
            ask([None])
    assert judge.fit(X, Y).predict(X[:2]).tolist() == ["good", "good"]
    with pytest.warns(DataConversionWarning, match="column-vector"):
        judge.fit(X, Y[:, np.newaxis])
    for wrong in (
        GrammaticalityClassifier("lsvm"),
        GrammaticalityClassifier("tree_features"),
        GrammaticalityClassifier("slr"),
        GrammaticalityClassifier("oracle"),  # type: ignore[arg-type]
        GrammaticalityClassifier("trigram_svm", tuning=1.0),
    ):
        with pytest.raises(UsageError):
            wrong.fit(X, Y)
