"""Folders of treelet and headlex models with wrong numbers in them are refused, never trusted."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.models.treelet_models import sample_trees, small_headlex, small_treelet

from treelm.errors import ModelFileError
from treelm.models.headlex.model import HeadlexModel
from treelm.models.treelet.model import TreeletModel
from treelm.store.folder import FolderWriter

pytestmark = pytest.mark.filterwarnings("ignore:no discount can be estimated")

Change = Callable[[dict[str, Any]], None]


def saved_with(model: TreeletModel | HeadlexModel, folder: Path, change: Change) -> None:
    """Save a model whose arrays were changed on the way."""
    tensors = {name: np.array(array) for name, array in model._tensors().items()}
    change(tensors)

    class Forged(type(model)):  # type: ignore[misc]
        def _tensors(self) -> dict[str, Any]:
            return tensors

        def write_files(self, writer: FolderWriter) -> None:
            super().write_files(writer)

    forged = object.__new__(Forged)
    forged.__dict__.update(model.__dict__)
    forged.save(folder)


def setter(name: str, value: object, place: object = 0) -> Change:
    def change(tensors: dict[str, Any]) -> None:
        tensors[name][place] = value

    return change


def without(name: str) -> Change:
    return lambda tensors: tensors.pop(name)


TREELET = {
    "a label that does not exist": setter("yield_labels", 10**6),
    "an empty right-hand side": setter("yield_starts", 0, 1),
    "a right-hand side twice": setter("yield_labels", 4, slice(None)),
    "a rule without parts": setter("rules", 10**6, 3),
    "a rule twice": lambda t: t["rules"].__setitem__(2, t["rules"][3]),
    "a symbol twice": setter("symbol_of_label", 0, slice(None)),
    "a symbol too large": setter("symbol_of_label", 10**6, 7),
    "a tag that does not exist": setter("word_tags", 10**6),
    "a weight beyond one": setter("yield_base", 2.0),
    "no rules": without("rules"),
    "no counts": without("unigram_counts"),
    "no table": without("terminal.slots"),
    "another kind": lambda t: t.__setitem__("rules", t["rules"].astype(np.int64)),
}
HEADLEX = {
    "a tag that does not exist": setter("word_tags", 10**6),
    "no children": without("is_child"),
    "no table": without("modifier.shape"),
    "tables exchanged": lambda t: t.__setitem__("modifier.shape", t["word.shape"]),
}


@pytest.mark.parametrize("name", TREELET)
def test_forged_treelet_models_are_refused(name: str, tmp_path: Path) -> None:
    saved_with(small_treelet(tmp_path), tmp_path / "model", TREELET[name])
    with pytest.raises(ModelFileError):
        TreeletModel.load(tmp_path / "model")


@pytest.mark.parametrize("name", HEADLEX)
def test_forged_headlex_models_are_refused(name: str, tmp_path: Path) -> None:
    saved_with(small_headlex(tmp_path), tmp_path / "model", HEADLEX[name])
    with pytest.raises(ModelFileError):
        HeadlexModel.load(tmp_path / "model")


@pytest.mark.parametrize("seed", range(6))
def test_random_bytes_in_tables_do_no_harm(seed: int, tmp_path: Path) -> None:
    """Numbers may be wrong then; nothing outside the tables is read, and everything ends."""
    random = np.random.default_rng(seed)

    def change(tensors: dict[str, Any]) -> None:
        for name in ("nonterminal.slots", "terminal.slots", "yields.slots"):
            array = tensors[name]
            places = random.integers(0, len(array), len(array) // 10 + 1)
            array[places] = random.integers(0, 256, len(places))

    saved_with(small_treelet(tmp_path), tmp_path / "model", change)
    model = TreeletModel.load(tmp_path / "model")
    with contextlib.suppress(ModelFileError):
        assert (model.tree_log_probs(sample_trees(70)[60:]) <= 0).all()
        model.sample(20, seed=1, max_words=50, max_depth=30)
