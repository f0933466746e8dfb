"""Small data and one small model of every system, trained once."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest
from tests.contract.recipes import make_data, recipe_of

from treelm.models.interface.model import LanguageModel


@pytest.fixture(scope="session")
def recipe_data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that the files of recipes are named in."""
    folder = tmp_path_factory.mktemp("recipes")
    make_data(folder)
    return folder


@pytest.fixture(scope="session")
def trained(recipe_data: Path) -> Callable[[str], LanguageModel]:
    """Gives the model of a system by its plainest recipe; it is trained when first asked for."""

    @cache
    def model_of(system: str) -> LanguageModel:
        with contextlib.chdir(recipe_data):
            return recipe_of(system).train()

    return model_of
