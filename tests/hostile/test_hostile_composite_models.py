"""Folders and states of composite models with wrong numbers in them are refused, never trusted."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.models.composite_models import sample_composite

from treelm.errors import ModelFileError, TreelmError, UsageError
from treelm.models.composite.model import CompositeModel
from treelm.store.folder import TABLES, FolderWriter


class _Forger:
    """Writes a folder with other tables."""

    def __init__(self, writer: FolderWriter, change: Any) -> None:
        self._writer, self._change = writer, change

    def tables(self, name: str, tensors: dict[str, Any]) -> None:
        made = {key: np.array(array) for key, array in tensors.items()}
        assert name == TABLES
        self._change(made)
        self._writer.tables(name, made)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._writer, name)


class Forged(CompositeModel):
    """Saves itself with a change."""

    change: Any = None

    def write_files(self, writer: FolderWriter) -> None:
        super().write_files(_Forger(writer, self.change))  # type: ignore[arg-type]


def setter(name: str, value: object, place: object = 0) -> Any:
    return lambda tensors: tensors[name].__setitem__(place, value)


CHANGES = {
    "a word that does not exist": setter("predictor.0.outcomes", 10**6, -1),
    "a tag that does not exist": setter("tagger.0.outcomes", 10**6, -1),
    "a move that does not exist": setter("constructor.1.outcomes", 65535, -1),
    "a negative count": setter("predictor.1.counts", -5),
    "rows without end": setter("constructor.2.begin", 10**12, -1),
    "weights that are none": setter("tagger.weights", 7.0, 3),
    "no weights": lambda tensors: tensors.pop("predictor.weights"),
    "no counts": lambda tensors: tensors.pop("unigram_counts"),
    "topics that do not add up": lambda t: t.__setitem__("topic_prior", np.ones(6)),
    "NaN topics": setter("topic_prior", np.nan),
}


@pytest.mark.parametrize("name", CHANGES)
def test_forged_tables_are_refused(name: str, tmp_path: Path) -> None:
    model = sample_composite(order=2, topics=6, keep_topics=3, test_topics=2, eta=0.2, iterations=1)
    forged = object.__new__(Forged)
    forged.__dict__.update(model.__dict__)
    forged.change = staticmethod(CHANGES[name])
    forged.save(tmp_path / "model")
    with pytest.raises(ModelFileError):
        CompositeModel.load(tmp_path / "model")


def test_labels_must_be_those_of_the_tables(tmp_path: Path) -> None:
    model = sample_composite(order=1)
    for name, text in (("tags.txt", "NN\n"), ("phrases.txt", "NP\nNP\n"), ("phrases.txt", "")):
        folder = tmp_path / f"{name}-{len(text)}"
        model.save(folder)
        (folder / name).write_text(text)
        with pytest.raises(ModelFileError):
            CompositeModel.load(folder)


def test_damaged_states_are_refused() -> None:
    model = sample_composite(order=3)
    state = model.score_phrase(model.initial(), "The old ferry left").state
    data = state.to_bytes()
    assert model.state_from_bytes(data) == state
    for size in range(0, len(data), 7):
        with pytest.raises(UsageError):
            model.state_from_bytes(data[:size])
    for place in range(9, len(data), 5):
        changed = bytearray(data)
        changed[place] ^= 0x2B
        try:
            found = model.state_from_bytes(bytes(changed))
        except TreelmError:
            continue
        model.advance(found, "harbour")
    other = sample_composite(order=1)
    with pytest.raises(UsageError, match="belongs to the model"):
        other.advance(state, "harbour")
