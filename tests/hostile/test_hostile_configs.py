"""Forged options, words that are none, and endless sentences, in a small model of every system."""

from __future__ import annotations

import contextlib
import json
import shutil
from pathlib import Path

import pytest
from tests.every_system import TRAININGS

from treelm.errors import ModelFileError, TreelmError, VocabularyError
from treelm.models.interface.model import Task
from treelm.models.registry import load

FORGED = (
    None,
    True,
    -1,
    0,
    2.5,
    1e308,
    (1 << 31) - 1,
    1 << 63,
    1 << 64,
    10**23,
    "x",
    "",
    [],
    [1],
    {},
    "\ud800",
)
SENTENCE = "the old boat is here ."


@pytest.mark.parametrize("system", TRAININGS)
def test_forged_options_are_refused_or_used(system: str, models: Path, tmp_path: Path) -> None:
    folder = tmp_path / "forged"
    shutil.copytree(models / system, folder)
    manifest = json.loads((folder / "manifest.json").read_text("utf-8"))
    refused = 0
    for name, value in list(manifest["config"].items()):
        for forged in FORGED:
            manifest["config"][name] = forged
            (folder / "manifest.json").write_text(json.dumps(manifest), "utf-8")
            try:
                model = load(folder)
            except ModelFileError:
                refused += 1
                continue
            with contextlib.suppress(TreelmError):
                if model.can(Task.CLASSIFY):
                    model.classify(SENTENCE)
                else:
                    model.score(SENTENCE)
        manifest["config"][name] = value
    assert refused > 3 * len(manifest["config"])
    (folder / "manifest.json").write_text(json.dumps(manifest), "utf-8")
    assert load(folder).system == manifest["system"]


@pytest.mark.parametrize("system", TRAININGS)
def test_lone_surrogates_are_no_words(system: str, models: Path) -> None:
    model = load(models / system)
    with pytest.raises(VocabularyError) as caught:
        model.classify(["a\ud800"]) if model.can(Task.CLASSIFY) else model.score(["a\ud800"])
    assert caught.value.code == "E_BAD_TOKEN"
