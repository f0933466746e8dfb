"""Models that several attacks share."""

from __future__ import annotations

import os
import warnings
from pathlib import Path

import pytest
from tests.every_system import TRAININGS, write_data

from treelm.cli.main import run


@pytest.fixture(scope="session")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a model of every system."""
    folder = tmp_path_factory.mktemp("models")
    before = Path.cwd()
    os.chdir(folder)
    try:
        write_data(folder)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            assert run(["vocabulary", "--text", "train.txt", "--min-count=1", "-o", "words"]) == 0
            for line in TRAININGS.values():
                assert run(["train", *line.split(), "-q"]) == 0, line
    finally:
        os.chdir(before)
    return folder
