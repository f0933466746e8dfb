"""Folders of latent grammars that were forged: refused before memory is spent on them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.models.latent_models import sample_corpus, sparse_latent

from treelm.errors import TreelmError
from treelm.models.registry import load
from treelm.store.tables import open_tables, write_tables

Arrays = dict[str, np.ndarray[Any, Any]]


def forge(folder: Path, change: Callable[[Arrays], None]) -> None:
    """Change the tables of a model, and the manifest so that it fits."""
    path = folder / "tables.safetensors"
    arrays = {name: np.array(array) for name, array in open_tables(path).items()}
    change(arrays)
    write_tables(path, arrays)
    manifest = json.loads((folder / "manifest.json").read_bytes())
    manifest["files"]["tables.safetensors"]["size"] = path.stat().st_size
    (folder / "manifest.json").write_text(json.dumps(manifest))


def set_item(name: str, place: int, value: float) -> Callable[[Arrays], None]:
    def change(arrays: Arrays) -> None:
        arrays[name][place] = value

    return change


def drop(name: str) -> Callable[[Arrays], None]:
    def change(arrays: Arrays) -> None:
        del arrays[name]

    return change


def huge(arrays: Arrays) -> None:
    arrays["substates"][1:] = 4096


def negative(arrays: Arrays) -> None:
    arrays["substates"][1:] = -(2**31)


FORGERIES = {
    "huge": huge,
    "negative": negative,
    "no-substates": drop("substates"),
    "no-places": drop("binary_weights_places"),
    "no-history": drop("split_tree.1"),
    "no-counts": drop("unigram_counts"),
    "place": set_item("binary_weights_places", -1, 2**62),
    "negative-place": set_item("binary_weights_places", 0, -1),
    "order": set_item("binary_weights_places", 1, 0),
    "weight": set_item("binary_weights", 0, 7.0),
    "nan": set_item("binary_weights", 0, np.nan),
    "rule": set_item("binary_rules", 0, 10**6),
    "history": set_item("split_tree.0", -1, 10**6),
    "entry": set_item("entry_symbols", 0, 10**6),
    "score": set_item("entry_scores", 0, -1.0),
}


@pytest.mark.parametrize("name", FORGERIES)
def test_hostile_grammars_are_refused(tmp_path: Path, name: str) -> None:
    folder = tmp_path / "model"
    sparse_latent().save(folder)
    load(folder)
    forge(folder, FORGERIES[name])
    with pytest.raises(TreelmError) as caught:
        load(folder)
    assert caught.value.exit_code == 3
    assert str(caught.value).isprintable()


TIED_FORGERIES = {
    "huge": huge,
    "no-factors": drop("entry_factors"),
    "no-scores": drop("entry_scores"),
    "no-marks": drop("entry_tied"),
    "other-marks": lambda arrays: arrays["entry_tied"].__ixor__(1),
    "factor": set_item("entry_factors", 0, -1.0),
    "nan": set_item("entry_factors", -1, np.nan),
    "entry": set_item("entry_symbols", 0, 1),
    "fewer": lambda arrays: arrays.update(entry_factors=arrays["entry_factors"][:-1]),
    "open": lambda arrays: arrays.update(open_scores=arrays["open_scores"][:-1]),
}


@pytest.mark.parametrize("name", TIED_FORGERIES)
def test_hostile_entries_of_dictionaries_are_refused(tmp_path: Path, name: str) -> None:
    folder = tmp_path / "model"
    sparse_latent().with_dictionary(sample_corpus()).save(folder)
    load(folder)
    forge(folder, TIED_FORGERIES[name])
    with pytest.raises(TreelmError) as caught:
        load(folder)
    assert caught.value.exit_code == 3
    assert str(caught.value).isprintable()
