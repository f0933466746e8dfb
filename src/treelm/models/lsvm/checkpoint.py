"""Checkpoints: the state after each round, from which an interrupted training resumes."""

from __future__ import annotations

import hashlib
import json
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from treelm.corpus.corpus import TreeCorpus
from treelm.corpus.labelled import LabelledSentences
from treelm.models.lsvm.config import LatentSvmConfig
from treelm.models.lsvm.features import FeatureVectors, LatentFeatures
from treelm.models.lsvm.memory import TrainingState
from treelm.store.checkpoint import CheckpointFolder
from treelm.store.tables import Tables

_TYPES = {
    "weights": np.float64,
    "best_weights": np.float64,
    "accuracies": np.float64,
    "owners": np.int64,
    "memory.starts": np.int64,
    "memory.features": np.int32,
    "memory.counts": np.float64,
    "good.owners": np.int64,
    "good.starts": np.int64,
    "good.features": np.int32,
    "good.counts": np.float64,
    "added.tags": np.int32,
    "added.words": np.uint8,
}


def training_key(
    data: LabelledSentences, tuning: LabelledSentences, trees: TreeCorpus, config: LatentSvmConfig
) -> str:
    """Return what identifies a training: its texts, trees and options."""
    options = config.model_dump(mode="json")
    for name in ("rounds", "patience"):  # more rounds continue where fewer ended
        options.pop(name)
    corpora = (data.good, data.bad, tuning.good, tuning.bad, trees)
    found = [corpus.fingerprint.sha256 for corpus in corpora]
    return hashlib.sha256(json.dumps([options, found], sort_keys=True).encode()).hexdigest()


class LatentCheckpoint(CheckpointFolder):
    """The state after the last complete round."""

    file_name: ClassVar[str] = "round.safetensors"
    told_by: ClassVar[str] = "sentences, trees or options"

    def save(self, state: TrainingState, features: LatentFeatures, key: str) -> None:
        """Write the state after a round; the file appears only when it is complete.

        Raises:
            OutputFileError: if it cannot be written.
        """
        words = "\n".join(word for _, word in features.added).encode()
        tensors = {
            "weights": state.weights,
            "best_weights": state.best_weights,
            "accuracies": np.array(state.accuracies),
            "owners": state.owners,
            **_tensors("memory", state.memory),
            "good.owners": state.good_owners,
            **_tensors("good", state.good),
            "added.tags": np.array([tag for tag, _ in features.added], np.int32),
            "added.words": np.frombuffer(words, np.uint8),
        }
        self.write(tensors, key, regularization=repr(state.regularization), digest=state.digest)

    def load(self, key: str, features: LatentFeatures) -> TrainingState | None:
        """Return the state, and restore the added `features`; None if there is no checkpoint.

        Raises:
            UsageError: ``E_CHECKPOINT`` if it belongs to another training.
            ModelFileError: ``E_CHECKPOINT`` or ``E_MODEL_TABLES`` if it is damaged.
        """
        tables = self.open(key)
        if tables is None:
            return None
        if any(
            name not in tables or tables[name].dtype != kind or tables[name].ndim != 1
            for name, kind in _TYPES.items()
        ):
            raise self.damaged("tables are missing")
        return self._state(tables, features)

    def _state(self, tables: Tables, features: LatentFeatures) -> TrainingState:
        words = bytes(tables["added.words"]).decode("utf-8", "replace").split("\n")
        tags = tables["added.tags"].tolist()
        size = features.grammar.features + len(tags)
        fits = (
            (len(words) == len(tags) or (not tags and words == [""]))
            and all(0 <= tag < len(features.grammar.symbols) for tag in tags)
            and len(tables["weights"]) == size
            and features.grammar.features <= len(tables["best_weights"]) <= size
            and len(tables["accuracies"]) > 0
            and _fits(tables, "memory", len(tables["owners"]), size)
            and _fits(tables, "good", len(tables["good.owners"]), size)
            and bool(np.isfinite(tables["weights"]).all())
        )
        try:
            regularization = float(tables.metadata.get("regularization", ""))
        except ValueError:
            regularization = 0.0
        if not fits or not 0 < regularization < np.inf:
            raise self.damaged("its parts do not fit together")
        for pair in zip(tags, words, strict=False):
            features.add({pair})
        return TrainingState(
            np.array(tables["weights"]),
            np.array(tables["best_weights"]),
            regularization,
            tables["accuracies"].tolist(),
            _vectors(tables, "memory"),
            np.array(tables["owners"]),
            tables.metadata.get("digest", ""),
            _vectors(tables, "good"),
            np.array(tables["good.owners"]),
        )


def _tensors(name: str, vectors: FeatureVectors) -> dict[str, npt.NDArray[Any]]:
    return {
        f"{name}.starts": vectors.starts,
        f"{name}.features": vectors.features,
        f"{name}.counts": vectors.counts,
    }


def _vectors(tables: Tables, name: str) -> FeatureVectors:
    parts = (np.array(tables[f"{name}.{part}"]) for part in ("starts", "features", "counts"))
    return FeatureVectors(*parts)


def _fits(tables: Tables, name: str, rows: int, size: int) -> bool:
    """Return whether vectors have the given number, are complete, and have only known features."""
    starts, columns = tables[f"{name}.starts"], tables[f"{name}.features"]
    return (
        len(starts) == rows + 1
        and starts[0] == 0
        and bool(np.all(np.diff(starts) >= 0))
        and starts[-1] == len(columns) == len(tables[f"{name}.counts"])
        and (not len(columns) or bool(columns.min() >= 0 and columns.max() < size))
    )
