"""One path: Python and the command line train the same model, to the last byte."""

from __future__ import annotations

import json
import shlex
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from tests.command_line import assert_fine, treelm_inside
from tests.contract.recipes import RECIPES, Recipe, missing_recipes, recipe_of

from treelm.models.registry import SYSTEMS, load
from treelm.testing.model_folders import different_files, folder_contents

pytestmark = pytest.mark.slow

Capture = pytest.CaptureFixture[bytes]


@pytest.fixture(autouse=True)
def _inside(recipe_data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(recipe_data)


def by_command(capture: Capture, recipe: Recipe, target: Path, threads: int = 2) -> str:
    """Train by the command line; return what it says of the model."""
    command = recipe.system.replace("_", "-")
    arguments = shlex.split(recipe.arguments)
    done = treelm_inside(
        capture, "train", command, *arguments, "--threads", str(threads), "--json", "-o", target
    )
    return assert_fine(done, None).decode()


@pytest.mark.parametrize("system", SYSTEMS)
def test_every_system_has_a_recipe(system: str) -> None:
    assert recipe_of(system).system == system


def test_a_system_without_a_recipe_is_told_what_to_do() -> None:
    assert not missing_recipes()
    with pytest.raises(AssertionError, match=r'"new" has no small recipe; add one to RECIPES'):
        recipe_of("new")


@pytest.mark.parametrize("recipe", RECIPES, ids=str)
def test_python_and_the_command_line_train_the_same_model(
    recipe: Recipe, tmp_path: Path, capfdbinary: Capture
) -> None:
    model = recipe.train(threads=1)
    model.save(tmp_path / "python")
    said = json.loads(by_command(capfdbinary, recipe, tmp_path / "command"))
    python, command = (folder_contents(tmp_path / way) for way in ("python", "command"))
    assert not different_files(python, command)
    assert python["manifest.json"] == command["manifest.json"]
    record = json.loads(json.dumps(model.summary()))
    assert {name: said[name] for name in record} == record
    assert sorted(path.name for path in tmp_path.iterdir()) == ["command", "python"]


def recipe_named(name: str) -> Recipe:
    return next(recipe for recipe in RECIPES if str(recipe) == name)


def test_temporal_nouns_are_found_on_both_ways(tmp_path: Path, capfdbinary: Capture) -> None:
    recipe = recipe_named("treelet-temporal")
    by_command(capfdbinary, recipe, tmp_path / "command")
    python, command = recipe.train(), load(tmp_path / "command")
    nouns = python.config.model_dump()["temporal"]
    assert len(nouns) >= 10
    assert "morning" in nouns
    assert command.config == python.config


@pytest.mark.parametrize("name", ["ngram-smaller", "ngram-measured"])
def test_what_a_smaller_model_costs_is_recorded_on_both_ways(
    name: str, tmp_path: Path, capfdbinary: Capture
) -> None:
    by_command(capfdbinary, recipe_named(name), tmp_path / "command")
    loss = recipe_named(name).train().config.model_dump()["loss"]
    assert loss is not None
    assert load(tmp_path / "command").config.model_dump()["loss"] == loss


def test_parsed_text_is_counted_and_its_parser_saved(tmp_path: Path) -> None:
    plain, parsed, alone = (
        recipe_named(name).train()
        for name in ("treelet-temporal", "treelet-parsed", "treelet-only-parsed")
    )
    sentences = [sum(each.sentences for each in m.corpora) for m in (plain, parsed, alone)]
    assert sentences[0] + sentences[2] == sentences[1]
    assert sentences[2] > 10
    parsed.save(tmp_path / "model")
    again = load(tmp_path / "model")
    assert again.parser is not None
    assert again.score("The ferry left .") == parsed.score("The ferry left .")


@pytest.mark.parametrize("system", [name for name in SYSTEMS if SYSTEMS[name].is_resumable])
def test_a_resumed_training_gives_the_same_model(
    system: str, tmp_path: Path, capfdbinary: Capture
) -> None:
    recipe = recipe_of(system)
    checkpoint = tmp_path / "command.training"

    def stop(_: object) -> None:
        if checkpoint.is_dir():  # something can be resumed
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        recipe.train(checkpoint=str(checkpoint), event=stop)
    shutil.copytree(checkpoint, tmp_path / "python.training")
    recipe.train().save(tmp_path / "whole")
    resumed = recipe.train(checkpoint=tmp_path / "python.training", resume=True)
    resumed.save(tmp_path / "python")
    resuming = replace(recipe, arguments=f"{recipe.arguments} --resume")
    by_command(capfdbinary, resuming, tmp_path / "command")
    expected = folder_contents(tmp_path / "whole")
    assert not different_files(folder_contents(tmp_path / "python"), expected)
    assert not different_files(folder_contents(tmp_path / "command"), expected)
    assert not checkpoint.exists()
