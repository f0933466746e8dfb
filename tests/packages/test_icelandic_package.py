"""The Icelandic package: its models open, are small, and read Icelandic as it is typed."""

from __future__ import annotations

import pytest
from tests.packages.installed_package import PACKAGES, model_names

import treelm
from treelm.store.folder import open_folder

FOLDERS = PACKAGES / "treelm-is/src/treelm_is"
NAMES = model_names("treelm-is")


@pytest.mark.parametrize("name", NAMES)
def test_icelandic_models_are_whole(name: str) -> None:
    folder = open_folder(FOLDERS / name, verify=True)
    assert folder.manifest.tokenizer == "simple"
    assert 'license: "cc-by-4.0"' in (FOLDERS / name / "README.md").read_text()


def test_icelandic_models_are_small() -> None:
    size = sum(path.stat().st_size for path in FOLDERS.rglob("*") if path.is_file())
    assert size < 10e6


def test_icelandic_models_read_raw_text() -> None:
    sentence = "Hann sagði það."
    tree = treelm.load(FOLDERS / "is-parser").parse(sentence)[0].tree
    assert tree.words == ("Hann", "sagði", "það", ".")
    assert tree.label == "ROOT"
    words = treelm.load(FOLDERS / "is-hhmm").surprisal(sentence)
    assert [word.word for word in words] == ["Hann", "sagði", "það", "."]
    assert not any(word.oov for word in words)
    ngram = treelm.load(FOLDERS / "is-ngram")
    assert ngram.score(sentence).log_prob > ngram.score("það Hann . sagði").log_prob
