"""Systems by name."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import FrozenInstanceError, replace
from pathlib import Path

import numpy as np
import pytest
from tests.models.ngram_models import sample_sentences
from tests.models.toy_model import TOY, ToyModel

from treelm.corpus.corpus import TextCorpus
from treelm.corpus.vocabulary import Vocabulary
from treelm.errors import ModelFileError, TreelmWarning, UsageError
from treelm.models import registry
from treelm.models.interface.model import LanguageModel
from treelm.models.ngram.model import NgramModel
from treelm.models.pcfg.model import PcfgModel
from treelm.models.registry import SYSTEMS, find_system, load, systems, train
from treelm.models.run import QUIET, Event, Run
from treelm.parallel.executor import SERIAL
from treelm.parallel.progress import SILENT


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
    with pytest.raises(UsageError, match=r"ngram: ordre: there is no such option\."):
        train("ngram", corpus, ordre=3)
    with pytest.raises(UsageError, match="models or model folders"):
        train("interpolated", [corpus], weights=(1.0,))


SENTENCES = [["rain", "fell"], ["it", "rained"]]


@pytest.mark.parametrize(
    ("system", "data", "options", "said"),
    [
        ("ngram", None, {}, "ngram: corpus must be given"),
        ("ngram", SENTENCES, {"corpus": SENTENCES}, '"corpus" is what it is trained on, and given'),
        ("ngram", SENTENCES, {"threads": 0}, "threads is 0; at least one is needed"),
        ("ngram", SENTENCES, {"memory": "much"}, "give a size such as 500M"),
        ("ngram", SENTENCES, {"memory": "1M"}, "at least 64M"),
        ("ngram", SENTENCES, {"smoothing": "jm"}, "give one with held_out"),
        ("ngram", SENTENCES, {"held_out": SENTENCES}, "No other smoothing takes one"),
        ("ngram", SENTENCES, {"smoothing": "arpa"}, "to train one, choose"),
        ("ngram", SENTENCES, {"checkpoint": "x"}, "ngram: its training has no option checkpoint"),
        (
            "ngram",
            SENTENCES,
            {"resume": True, "checkpoint": "x"},
            "ngram: its training has no option resume",
        ),
        ("plsa", SENTENCES, {"resume": True}, "resume needs the checkpoint folder"),
        ("plsa", SENTENCES, {"memory": "1G"}, "plsa: its training has no option memory"),
        ("pcfg_la", "x.mrg", {}, "pcfg_la: seed: Field required"),
        ("slm", "x.mrg", {"order": 3}, "a structured language model predicts from heads alone"),
        ("lsvm", ("a", "b"), {}, "lsvm: tuning, trees must be given"),
        ("tree_features", ("a", "b"), {}, "tree_features: parser must be given"),
        ("treelet", None, {}, "give trees .* or text with a parser .* or both"),
        ("headlex", None, {"text": SENTENCES}, "text has no trees: give a parser"),
    ],
)
def test_train_says_what_is_wrong(
    system: str, data: object, options: dict[str, object], said: str
) -> None:
    with warnings.catch_warnings(), pytest.raises(UsageError, match=said):
        warnings.simplefilter("ignore", TreelmWarning)
        train(system, data, **options)


def test_a_run_is_quiet_unless_told_otherwise() -> None:
    run = Run()
    assert run == QUIET
    assert (run.threads, run.memory, run.checkpoint, run.temporary) == (1, None, None, None)
    assert (run.resume, run.progress, run.executor) == (False, SILENT, SERIAL)
    run.note("nobody hears this")
    run.event(Event({"round": 1}, "round 1"))
    with pytest.raises(FrozenInstanceError):
        run.threads = 2  # type: ignore[misc]
    with pytest.raises(TypeError):
        Run(2)  # type: ignore[misc]


def test_train_tells_what_it_has_finished(tmp_path: Path) -> None:
    events: list[Event] = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TreelmWarning)
        train(
            "plsa",
            [sentence.split() for sentence in sample_sentences()],
            topics=2,
            order=2,
            iterations=2,
            checkpoint=str(tmp_path / "steps"),
            event=events.append,
            memory=None,
        )
    assert 1 <= len(events) <= 2
    assert events[0].text.startswith("iteration 1: log likelihood ")
    assert (tmp_path / "steps").is_dir()


class Entry:
    """An entry point of a package that is not there."""

    name, value = "odd", "odd:thing"

    def __init__(self, found: object) -> None:
        self.found = found

    def load(self) -> object:
        return self.found


@pytest.fixture
def _fresh() -> Iterator[None]:
    registry._installed.cache_clear()
    yield
    registry._installed.cache_clear()


@pytest.mark.usefixtures("_fresh")
def test_systems_of_other_packages_come_with_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.metadata.entry_points", lambda **_: [Entry(TOY)])
    assert set(systems()) == {*SYSTEMS, "toy"}
    assert find_system("toy") is TOY
    model = train("toy", SENTENCES, added=0.5)
    assert model.score("rain fell").log_prob < 0


@pytest.mark.usefixtures("_fresh")
def test_no_package_replaces_a_system_of_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    other = replace(TOY, name="ngram")
    monkeypatch.setattr("importlib.metadata.entry_points", lambda **_: [Entry(other)])
    assert systems()["ngram"] is SYSTEMS["ngram"]


@pytest.mark.usefixtures("_fresh")
def test_an_entry_point_that_is_no_system_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.metadata.entry_points", lambda **_: [Entry(ToyModel)])
    with pytest.raises(UsageError, match=r'entry point "odd" of treelm.systems \(odd:thing\)'):
        systems()
    assert find_system("ngram") is SYSTEMS["ngram"], "our own still work"


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


def test_train_takes_numbers_out_of_arrays() -> None:
    sentences = [["the", "boat"], ["a", "boat"]]
    model = train("ngram", sentences, order=np.int64(1), smoothing="kn")
    assert model.info.order == 1
    with pytest.raises(UsageError, match="order"):
        train("ngram", sentences, order=np.float64(1.5))


def test_load_takes_the_class_that_is_meant(tmp_path: Path) -> None:
    train("ngram", SENTENCES, order=1, smoothing="kn").save(tmp_path / "model")
    assert type(load(tmp_path / "model", NgramModel)) is NgramModel
    assert type(load(tmp_path / "model", LanguageModel)) is NgramModel  # type: ignore[type-abstract]
    with pytest.raises(ModelFileError, match="is NgramModel, not PcfgModel") as caught:
        load(tmp_path / "model", PcfgModel)
    assert caught.value.code == "E_MODEL_SYSTEM"
