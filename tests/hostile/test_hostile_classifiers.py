"""Folders of classifiers with wrong numbers in them are refused, never trusted."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from treelm.corpus.corpus import TextCorpus
from treelm.corpus.labelled import LabelledSentences
from treelm.corpus.sample_treebank import sample_treebank
from treelm.errors import EstimationError, ModelFileError
from treelm.models.interface.calibration import Calibration
from treelm.models.lsvm.config import LatentSvmConfig
from treelm.models.lsvm.features import LatentFeatures
from treelm.models.lsvm.grammar import read_grammar
from treelm.models.lsvm.model import LatentSvmModel
from treelm.models.registry import load
from treelm.models.trigram_svm.config import TrigramSvmConfig
from treelm.models.trigram_svm.train import train_trigram_svm
from treelm.store.folder import FolderWriter
from treelm.trees.tree import Tree

Change = Callable[[dict[str, Any]], None]


def setter(name: str, value: object, place: object = 0) -> Change:
    def change(tensors: dict[str, Any]) -> None:
        tensors[name][place] = value

    return change


def cutter(name: str) -> Change:
    return lambda tensors: tensors.__setitem__(name, tensors[name][:-1])


def saved_with(model: Any, folder: Path, change: Change) -> None:
    """Save a model whose tables are changed on the way."""

    class Forging(FolderWriter):
        def tables(self, name: str, tensors: Any) -> None:
            own = {key: np.array(value) for key, value in tensors.items()}
            change(own)
            super().tables(name, own)

    class Forged(type(model)):  # type: ignore[misc]
        def write_files(self, writer: FolderWriter) -> None:
            writer.__class__ = Forging
            super().write_files(writer)

    forged = object.__new__(Forged)
    forged.__dict__.update(model.__dict__)
    forged.save(folder)


LATENT = {
    "a rule of no symbol": setter("rules", 10**6),
    "a rule below zero": setter("rules", -1),
    "a top of no symbol": setter("tops", 10**6),
    "a word that is not there": setter("word_tags", 10**6, (0, 1)),
    "a class that is not there": setter("class_tags", 10**6, (0, 1)),
    "a tag that is not there": setter("word_tags", 10**6, (0, 0)),
    "too few weights": cutter("weights"),
    "a weight that is no number": setter("weights", np.nan),
    "an endless frequency": setter("frequencies", -np.inf),
    "too few frequencies": cutter("frequencies"),
    "half a calibration": cutter("calibration"),
    "no rules at all": lambda tensors: tensors.pop("rules"),
    "other numbers": lambda t: t.__setitem__("rules", t["rules"].astype(np.int64)),
}


@pytest.mark.parametrize("change", LATENT.values(), ids=LATENT)
def test_forged_latent_machines_are_refused(tmp_path: Path, change: Change) -> None:
    config = LatentSvmConfig(rounds=0)
    features = LatentFeatures(read_grammar(list(sample_treebank())[:30], config))
    weights = features.grammar.frequencies
    model = LatentSvmModel(features, weights, config, Calibration(1.0, 0.0))
    saved_with(model, tmp_path / "good", lambda _: None)
    assert load(tmp_path / "good").system == "lsvm"
    saved_with(model, tmp_path / "model", change)
    with pytest.raises(ModelFileError) as caught:
        load(tmp_path / "model")
    assert caught.value.code == "E_MODEL_TABLES"


NGRAMS = {
    "n-grams out of order": lambda t: t.__setitem__("ngrams", t["ngrams"][::-1].copy()),
    "an n-gram of no words": setter("ngrams", 1 << 62, -1),
    "too few n-grams": cutter("ngrams"),
    "no n-grams": lambda tensors: tensors.pop("ngrams"),
    "a landmark that is not there": setter("landmarks.features", 10**6),
    "landmarks that end too late": setter("landmarks.starts", 10**6, -1),
    "an endless offset": setter("offset", np.inf),
}


@pytest.mark.parametrize("change", NGRAMS.values(), ids=NGRAMS)
def test_forged_machines_of_ngrams_are_refused(tmp_path: Path, change: Change) -> None:
    (tmp_path / "good.txt").write_text("the dog sees a cat\nthe cat sees a dog\n" * 4)
    (tmp_path / "bad.txt").write_text("cat a sees dog the\ndog a sees cat the\n" * 4)
    data = LabelledSentences(
        TextCorpus((tmp_path / "good.txt",)), TextCorpus((tmp_path / "bad.txt",))
    )
    config = TrigramSvmConfig(kernel="poly", components=5, regularization=1.0)
    saved_with(train_trigram_svm(data, config), tmp_path / "model", change)
    with pytest.raises(ModelFileError) as caught:
        load(tmp_path / "model")
    assert caught.value.code == "E_MODEL_TABLES"


def test_grammars_with_unary_productions_are_refused() -> None:
    inside = Tree("S", [Tree("ROOT", [Tree("NN", "a"), Tree("NN", "b")]), Tree("NN", "c")])
    for tree in (inside, Tree("NP", [Tree("NN", "a"), Tree("NN", "b")])):
        with pytest.raises(EstimationError) as caught:
            read_grammar([tree], LatentSvmConfig())
        assert caught.value.code == "E_UNARY"


def test_a_grammar_needs_trees() -> None:
    with pytest.raises(EstimationError) as caught:
        read_grammar([], LatentSvmConfig())
    assert caught.value.code == "E_NO_DATA"
