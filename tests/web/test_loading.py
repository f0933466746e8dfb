"""Models that are offered but not loaded: when they are loaded, how far they are, what goes wrong."""

from __future__ import annotations

import shutil
import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.web.conftest import LIMITS, Client, eventually, running

from treelm.errors import ModelFileError, UsageError
from treelm.models import ready
from treelm.models.interface.model import LanguageModel
from treelm.web import offered_models
from treelm.web.offered_models import OfferedModels

FERRY = "The old ferry left the harbour ."


def states(client: Client) -> dict[str, str]:
    return {model["name"]: model["state"] for model in client.get("/api/models").json["models"]}


@pytest.fixture
def further(model_folders: Path) -> dict[str, str]:
    return {name: str(model_folders / name) for name in ("pcfg", "judge")}


def test_a_question_loads_the_models_that_it_names(
    small_models: dict[str, LanguageModel], further: dict[str, str]
) -> None:
    with running({"ngram": small_models["ngram"]}, LIMITS, further) as client:
        assert states(client) == {"ngram": "ready", "pcfg": "offered", "judge": "offered"}
        answer = client.ask("trees", text=FERRY, model="pcfg")
        assert answer.status == 200
        assert answer.json["trees"][0]["tree"] == str(small_models["pcfg"].parse(FERRY)[0].tree)
        assert states(client) == {"ngram": "ready", "pcfg": "ready", "judge": "offered"}


def test_without_a_name_those_of_the_start_answer(
    small_models: dict[str, LanguageModel], further: dict[str, str]
) -> None:
    with running({"ngram": small_models["ngram"]}, LIMITS, further) as client:
        [sentence] = client.ask("surprisal", text=FERRY).json["sentences"]
        assert [each["model"] for each in sentence["series"]] == ["ngram"]
        assert states(client)["pcfg"] == "offered"
        # No model of the start judges: the first that does is loaded.
        assert client.ask("judge", text=FERRY).json["model"] == "judge"
        stream = client.ask("stream", text=FERRY, models=["pcfg"])
        assert stream.status == 200
        assert set(states(client).values()) == {"ready"}


def test_a_model_is_described_before_it_is_loaded_and_after(
    small_models: dict[str, LanguageModel], further: dict[str, str], model_folders: Path
) -> None:
    with running({"ngram": small_models["ngram"]}, LIMITS, further) as client:
        before = {each["name"]: each for each in client.get("/api/models").json["models"]}
        assert before["ngram"]["at_start"]
        assert not before["pcfg"]["at_start"]
        assert set(before["pcfg"]["tasks"]) == {"surprisal", "trees", "sample"}
        assert before["pcfg"]["words"] is None
        size = sum(file.stat().st_size for file in (model_folders / "pcfg").rglob("*"))
        assert before["pcfg"]["megabytes"] == pytest.approx(size / 1e6, abs=0.1)
        assert client.ask("load", model="pcfg").json["state"] in ("loading", "ready")
        assert eventually(lambda: states(client)["pcfg"] == "ready")
        after = {each["name"]: each for each in client.get("/api/models").json["models"]}
        assert after["pcfg"]["words"] == len(small_models["pcfg"].vocabulary) - 1
        assert after["pcfg"]["megabytes"] == before["pcfg"]["megabytes"]
        assert str(model_folders) not in client.get("/api/models").body.decode()
        # Asked again, nothing happens.
        assert client.ask("load", model="pcfg").json == after["pcfg"]


def test_nothing_but_what_is_offered_can_be_loaded(
    small_models: dict[str, LanguageModel], further: dict[str, str], model_folders: Path
) -> None:
    with running({"ngram": small_models["ngram"]}, LIMITS, further) as client:
        for name in (str(model_folders / "pcfg"), "../pcfg", "hf:pcfg", "", "pcfg/"):
            answer = client.ask("load", model=name)
            assert (answer.status, answer.json["code"]) == (404, "E_NO_MODEL")
            assert str(model_folders) not in answer.body.decode()
        assert client.ask("load", model=None).status == 422
        assert client.ask("load", model="pcfg", path="elsewhere").status == 422
        assert states(client)["pcfg"] == "offered"


def test_a_model_that_takes_long_is_answered_503_until_it_is_there(
    small_models: dict[str, LanguageModel],
    further: dict[str, str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    go_on, loads = threading.Event(), []

    def slow(place: str) -> LanguageModel:
        loads.append(place)
        assert go_on.wait(60)
        return small_models["pcfg"]

    monkeypatch.setattr(offered_models, "_made_ready", slow)
    limits = replace(LIMITS, seconds=1.0)
    with running({"ngram": small_models["ngram"]}, limits, further) as client:
        for _ in range(2):
            answer = client.ask("trees", text=FERRY, model="pcfg")
            assert (answer.status, answer.json["code"]) == (503, "E_LOADING")
            assert int(answer.headers["Retry-After"]) > 0
        assert states(client)["pcfg"] == "loading"
        # Others are answered meanwhile: no thread of theirs is taken.
        assert client.ask("surprisal", text=FERRY, models=["ngram"]).status == 200
        assert client.get("/api/health").json["requests"] == 0
        go_on.set()
        assert eventually(lambda: states(client)["pcfg"] == "ready")
        assert client.ask("trees", text=FERRY, model="pcfg").status == 200
        assert loads == [further["pcfg"]]


def test_a_model_that_cannot_be_loaded_is_said_without_its_path(
    small_models: dict[str, LanguageModel],
    model_folders: Path,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
) -> None:
    broken = tmp_path / "broken"
    shutil.copytree(model_folders / "pcfg", broken)
    whole = (broken / "tables.safetensors").read_bytes()
    with running({"ngram": small_models["ngram"]}, LIMITS, {"broken": str(broken)}) as client:
        (broken / "tables.safetensors").write_bytes(bytes(len(whole)))
        answer = client.ask("trees", text=FERRY, model="broken")
        assert (answer.status, answer.json["code"]) == (500, "E_MODEL_LOAD")
        assert "cannot be loaded" in answer.json["message"]
        assert str(tmp_path) not in answer.body.decode()
        found = client.get("/api/models")
        assert states(client)["broken"] == "failed"
        assert str(tmp_path) not in found.body.decode()
        assert str(broken) in capfd.readouterr().err
        # Questions do not try again; whoever has mended it says so.
        assert client.ask("trees", text=FERRY, model="broken").status == 500
        (broken / "tables.safetensors").write_bytes(whole)
        assert client.ask("load", model="broken").json["problem"] is None
        assert eventually(lambda: states(client)["broken"] == "ready")
        assert client.ask("trees", text=FERRY, model="broken").status == 200


def installed(monkeypatch: pytest.MonkeyPatch, folders: Path, *names: str) -> None:
    """Pretend that folders are ready models, of names that say what they are for."""
    found: dict[str, Any] = {
        name: ready.ReadyModel(name, folders / name, "treelm-xy", "1.0") for name in names
    }
    for module in (ready, offered_models):
        monkeypatch.setattr(module, "ready_models", lambda: found)


@pytest.fixture
def ready_folder(model_folders: Path, tmp_path: Path) -> Path:
    for name, kind in (("en-parser", "pcfg"), ("en-ngram", "ngram"), ("en-other", "ngram")):
        shutil.copytree(model_folders / kind, tmp_path / name)
    return tmp_path


def described(models: OfferedModels) -> dict[str, tuple[str, bool]]:
    return {each.name: (each.state, each.at_start) for each in models.described()}


def test_ready_models_are_offered_and_the_usual_ones_loaded(
    ready_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    installed(monkeypatch, ready_folder, "en-ngram", "en-other", "en-parser")
    models = OfferedModels.opened([])
    assert described(models) == {
        "en-ngram": ("ready", True),
        "en-parser": ("ready", True),
        "en-other": ("offered", False),
    }
    assert next(each for each in models.described() if each.name == "en-other").package == (
        "treelm-xy 1.0"
    )
    assert OfferedModels.opened([], ready=False).names == ("en-ngram", "en-parser")


def test_named_folders_stand_before_ready_models(
    ready_folder: Path, model_folders: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    installed(monkeypatch, ready_folder, "en-ngram", "en-other", "en-parser")
    own, later = str(model_folders / "pcfg"), str(model_folders / "judge")
    found = described(OfferedModels.opened([own], [later, "en-other"]))
    assert found["pcfg"] == ("ready", True)
    assert list(found) == ["pcfg", "judge", "en-other", "en-ngram", "en-parser"]
    assert set(list(found.values())[1:]) == {("offered", False)}
    assert OfferedModels.opened([own], [later], ready=False).names == ("pcfg", "judge")
    # A folder with the name of a ready model is meant instead of it.
    other = ready_folder / "elsewhere" / "en-parser"
    shutil.copytree(model_folders / "pcfg", other)
    assert OfferedModels.opened([str(other)]).names == ("en-parser", "en-ngram", "en-other")
    with pytest.raises(UsageError, match="two models are called"):
        OfferedModels.opened([own], [str(shutil.copytree(own, ready_folder / "x" / "pcfg"))])


def test_a_broken_ready_model_keeps_nobody_from_serving(
    ready_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    installed(monkeypatch, ready_folder, "en-ngram", "en-other", "en-parser")
    (ready_folder / "en-other" / "manifest.json").write_text("{")
    models = OfferedModels.opened([])
    [other] = [each for each in models.described() if each.name == "en-other"]
    assert (other.state, other.tasks) == ("failed", [])
    assert "E_MANIFEST" in str(other.problem)
    assert str(ready_folder) not in str(other.problem)
    # Named, it is an error of the start.
    with pytest.raises(ModelFileError):
        OfferedModels.opened([], [str(ready_folder / "en-other")], ready=False)


def test_many_who_ask_for_the_same_model_load_it_once(
    small_models: dict[str, LanguageModel],
    further: dict[str, str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    loads = []

    def counted(place: str) -> LanguageModel:
        loads.append(place)
        time.sleep(0.2)
        return small_models[Path(place).name]

    monkeypatch.setattr(offered_models, "_made_ready", counted)
    with running({"ngram": small_models["ngram"]}, LIMITS, further) as client:
        asked = [
            threading.Thread(target=client.ask, args=("trees",), kwargs={"text": FERRY})
            for _ in range(6)
        ]
        for each in asked:
            each.start()
        for each in asked:
            each.join(60)
        assert loads == [further["pcfg"]]
