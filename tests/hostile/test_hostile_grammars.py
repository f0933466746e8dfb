"""Grammar folders that were forged: refused before a kernel sees them."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path

import numpy as np
import pytest

from treelm.corpus.corpus import TreeCorpus
from treelm.errors import TreelmError
from treelm.models.registry import load, train
from treelm.store.tables import open_tables, write_tables

Tables = dict[str, np.ndarray]


@pytest.fixture
def folder(tmp_path: Path, sample_file: Path) -> Path:
    train("pcfg", TreeCorpus((sample_file,))).save(tmp_path / "model")
    return tmp_path / "model"


def forge(folder: Path, change: Callable[[Tables], None]) -> None:
    """Change tables, and the manifest so that sizes and checksums fit again."""
    tables = {
        name: np.array(array) for name, array in open_tables(folder / "tables.safetensors").items()
    }
    change(tables)
    path = folder / "tables.safetensors"
    path.unlink()
    write_tables(path, tables)
    seal(folder, "tables.safetensors")


def seal(folder: Path, name: str) -> None:
    manifest = json.loads((folder / "manifest.json").read_bytes())
    data = (folder / name).read_bytes()
    manifest["files"][name] = {"size": len(data), "sha256": sha256(data).hexdigest()}
    (folder / "manifest.json").write_text(json.dumps(manifest))


def refused(folder: Path) -> None:
    with pytest.raises(TreelmError) as caught:
        load(folder)
    assert caught.value.exit_code == 3
    assert caught.value.code in {"E_MODEL_TABLES", "E_MODEL_FILE", "E_VOCABULARY_FILE"}
    assert len(str(caught.value)) < 1000


CHANGES: dict[str, Callable[[Tables], object]] = {
    "symbol out of range": lambda t: t["binary_rules"].__setitem__((0, 1), 1 << 20),
    "negative symbol": lambda t: t["binary_rules"].__setitem__((0, 1), -1),
    "root below": lambda t: t["binary_rules"].__setitem__((0, 1), 0),
    "rules not in order": lambda t: t.__setitem__("binary_rules", t["binary_rules"][::-1].copy()),
    "flat rules": lambda t: t.__setitem__("binary_rules", t["binary_rules"].ravel()),
    "huge subcategories": lambda t: t["substates"].__setitem__(3, 1 << 30),
    "no subcategories": lambda t: t["substates"].__setitem__(3, 0),
    "not a number": lambda t: t["binary_weights"].__setitem__(0, np.nan),
    "infinite": lambda t: t["unary_weights"].__setitem__(0, np.inf),
    "does not add up": lambda t: t["binary_weights"].__setitem__(0, 0.999),
    "weights missing": lambda t: t.__setitem__("binary_weights", t["binary_weights"][:-1]),
    "other type": lambda t: t.__setitem__("unary_rules", t["unary_rules"].astype(np.int64)),
    "no rules": lambda t: t.pop("binary_rules"),
    "all phrases": lambda t: t.__setitem__("phrasal", np.array([1 << 20], np.int32)),
    "two numbers": lambda t: t.__setitem__("phrasal", np.array([1, 2], np.int32)),
    "entries past the end": lambda t: t["entry_starts"].__setitem__(-1, 1 << 40),
    "entries backwards": lambda t: t["entry_starts"].__setitem__(5, 1 << 40),
    "entry is a phrase": lambda t: t["entry_symbols"].__setitem__(0, 0),
    "negative score": lambda t: t["entry_scores"].__setitem__(0, -1.0),
    "few open scores": lambda t: t.__setitem__("open_scores", t["open_scores"][:-1]),
    "wrong counts": lambda t: t.__setitem__("unigram_counts", t["unigram_counts"][:-1]),
    "history of nothing": lambda t: t.__setitem__("split_tree.0", np.zeros(3, np.int32)),
    "says it is normalized": lambda t: t.__setitem__("normalized", np.array([1], np.uint8)),
}


@pytest.mark.parametrize("name", CHANGES)
def test_hostile_grammar_tables_are_refused(name: str, folder: Path) -> None:
    def change(tables: Tables) -> None:
        CHANGES[name](tables)

    forge(folder, change)
    refused(folder)


@pytest.mark.parametrize("labels", ["", "ROOT\n", "S\nNP\n", "ROOT\n" * 200])
def test_hostile_grammar_labels_are_refused(labels: str, folder: Path) -> None:
    (folder / "labels.txt").write_text(labels)
    seal(folder, "labels.txt")
    refused(folder)


def test_hostile_grammar_tables_may_hold_anything(folder: Path) -> None:
    """Random bytes in the tables: a model or an error, never a crash."""
    tables = {
        name: np.array(array) for name, array in open_tables(folder / "tables.safetensors").items()
    }
    random = np.random.default_rng(0)
    for round_ in range(60):
        forged = {name: array.copy() for name, array in tables.items()}
        name = sorted(forged)[round_ % len(forged)]
        flat = forged[name].reshape(-1).view(np.uint8)
        if not len(flat):
            continue
        at = random.integers(len(flat), size=3)
        flat[at] = random.integers(256, size=3, dtype=np.uint8)
        path = folder / "tables.safetensors"
        path.unlink()
        write_tables(path, forged)
        seal(folder, "tables.safetensors")
        model = None
        with contextlib.suppress(TreelmError):
            model = load(folder)
        if model is None:
            refused(folder)
            continue
        parse = model.parse("The old ferry left .")  # type: ignore[attr-defined]
        assert parse[0].tree.words == ("The", "old", "ferry", "left", ".")
