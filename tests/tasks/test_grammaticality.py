"""The estimator of scikit-learn over every kind of judge."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import cross_val_score
from sklearn.utils import estimator_checks
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


@pytest.mark.parametrize(
    "check",
    [
        "check_estimator_cloneable",
        "check_estimator_repr",
        "check_get_params_invariance",
        "check_no_attributes_set_in_init",
        "check_parameters_default_constructible",
        "check_set_params",
    ],
)
def test_checks_of_scikit_learn_that_need_no_numbers(check: str) -> None:
    """The others of its checks train on matrices, and this one takes sentences."""
    getattr(estimator_checks, check)("GrammaticalityClassifier", GrammaticalityClassifier())


def test_what_cannot_be_judged_is_refused() -> None:
    judge = GrammaticalityClassifier("trigram_svm")
    for sentences, labels in (
        (X, np.ones(len(X))),
        (X[:3], [1, 0]),
        (["a b", ""], [1, 0]),
        ("a b", [1]),
        (np.zeros((2, 2)), [0, 1]),
        ([], []),
    ):
        with pytest.raises(ValueError):  # noqa: PT011 (each says something else)
            judge.fit(sentences, labels)
    for wrong in (
        GrammaticalityClassifier("lsvm"),
        GrammaticalityClassifier("tree_features"),
        GrammaticalityClassifier("slr"),
        GrammaticalityClassifier("oracle"),  # type: ignore[arg-type]
        GrammaticalityClassifier("trigram_svm", tuning=1.0),
    ):
        with pytest.raises(UsageError):
            wrong.fit(X, Y)
