"""Models and texts for the commands."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.models.ngram_models import sample_sentences, small_ngram


@pytest.fixture(scope="session")
def ngram_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A trigram model of the packaged treebank."""
    folder = tmp_path_factory.mktemp("models") / "ngram"
    small_ngram(order=3).save(folder)
    return folder


@pytest.fixture(scope="session")
def text_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The sentences of the packaged treebank, one a line."""
    path = tmp_path_factory.mktemp("texts") / "text.txt"
    path.write_text("".join(f"{sentence}\n" for sentence in sample_sentences()), encoding="utf-8")
    return path
