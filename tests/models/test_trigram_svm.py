"""Support vector machines over n-grams, and what classifiers say about files."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest

from treelm.corpus.corpus import TextCorpus
from treelm.corpus.labelled import LabelledSentences
from treelm.errors import ModelFileError
from treelm.models.registry import load
from treelm.models.trigram_svm.config import TrigramSvmConfig
from treelm.models.trigram_svm.model import TrigramSvmModel
from treelm.models.trigram_svm.train import train_trigram_svm
from treelm.tasks.classify import classify_lines


def data(folder: Path) -> LabelledSentences:
    good = [f"the {a} sees the {b}" for a in "abcdef" for b in "abcdef"]
    (folder / "good").write_text("\n".join(good) + "\n")
    (folder / "bad").write_text("\n".join(" ".join(line.split()[::-1]) for line in good) + "\n")
    return LabelledSentences(TextCorpus((folder / "good",)), TextCorpus((folder / "bad",)))


@pytest.mark.parametrize("kernel", ["linear", "poly"])
def test_model_comes_back_from_its_folder(tmp_path: Path, kernel: str) -> None:
    given = data(tmp_path)
    config = TrigramSvmConfig.model_validate({"kernel": kernel, "components": 30})
    model = train_trigram_svm(given, config)
    assert model.accuracy > 0.9
    model.save(tmp_path / "model")
    again = load(tmp_path / "model")
    assert isinstance(again, TrigramSvmModel)
    margins = model.margins(given.sentences).tolist()
    assert again.margins(given.sentences).tolist() == margins
    assert pickle.loads(pickle.dumps(again)).margins(given.sentences).tolist() == margins
    first, blank, unknown = classify_lines(again, ["the a sees the b", "", "zzz"])
    assert first is not None
    assert (first.label, first.margin > 0, first.probability > 0.5) == ("good", True, True)
    assert blank is None
    assert unknown is not None
    assert unknown.label == "bad"


def test_foreign_tables_are_refused(tmp_path: Path) -> None:
    model = train_trigram_svm(data(tmp_path), TrigramSvmConfig(regularization=0.1))
    model.tables["weights"] = model.tables["weights"][:-1]
    model.save(tmp_path / "model")
    with pytest.raises(ModelFileError) as caught:
        load(tmp_path / "model")
    assert caught.value.code == "E_MODEL_TABLES"
