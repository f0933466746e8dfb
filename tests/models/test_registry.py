"""Systems by name."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.models.ngram_models import sample_sentences
from tests.models.toy_model import ToyModel

from treelm.corpus.corpus import TextCorpus
from treelm.corpus.vocabulary import Vocabulary
from treelm.errors import ModelFileError, UsageError
from treelm.models.interface.model import LanguageModel
from treelm.models.registry import SYSTEMS, find_system, load, train


@pytest.mark.parametrize("name", SYSTEMS)
def test_every_system_has_a_class_of_its_name(name: str) -> None:
    system = find_system(name)
    assert issubclass(system.model_class, LanguageModel)
    assert (system.model_class.system == name) == system.is_stored
    assert find_system(name.replace("_", "-")) is system
    assert system.model_class.tasks


def test_unknown_system_is_guessed_at() -> None:
    with pytest.raises(UsageError, match='Did you mean "ngram"'):
        find_system("ngrams")


def test_folder_of_an_unknown_system_is_refused(tmp_path: Path) -> None:
    ToyModel.of().save(tmp_path / "toy")
    with pytest.raises(ModelFileError) as caught:
        load(tmp_path / "toy")
    assert caught.value.code == "E_MODEL_SYSTEM"
    assert caught.value.exit_code == 3


def test_train_checks_options_first(tmp_path: Path) -> None:
    corpus = TextCorpus((tmp_path / "missing",))
    for options in ({"ordre": 3}, {"order": 0}, {"smoothing": "witten-bell"}, {"order": "five"}):
        with pytest.raises(UsageError, match="ngram: "):
            train("ngram", corpus, **options)
    with pytest.raises(UsageError, match="models or model folders"):
        train("interpolated", [corpus], weights=(1.0,))


def test_train_by_name(tmp_path: Path) -> None:
    text = tmp_path / "text"
    text.write_text("\n".join(sample_sentences()))
    words = Vocabulary.from_counts(dict.fromkeys(" ".join(sample_sentences()).split(), 1))
    model = train(
        "ngram", TextCorpus((text,)), order=2, smoothing="kn", vocabulary=words, threads=2
    )
    assert model.vocabulary is words
    assert model.info.order == 2
    model.save(tmp_path / "model")
    assert load(tmp_path / "model").score("the boat").log_prob == model.score("the boat").log_prob
