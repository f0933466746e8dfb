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
from treelm.store.schema import ANY, Tensor, Tensors, finite, ids, offsets
from treelm.store.tables import Tables

_ALL = "features+added"


def _vector_schema(name: str, rows: str) -> tuple[Tensor, ...]:
    """Return the schema of vectors of features, one for each of some rows."""
    entries = f"entries of {name}"
    return (
        Tensor(rows, np.int64, (rows,)),
        Tensor(f"{name}.starts", np.int64, (f"{rows}+1",), offsets(entries)),
        Tensor(f"{name}.features", np.int32, (entries,), ids(_ALL)),
        Tensor(f"{name}.counts", np.float64, (entries,)),
    )


_SCHEMA = (
    Tensor("added.tags", np.int32, ("added",), ids("labels")),
    Tensor("added.words", np.uint8, (ANY,)),
    Tensor("weights", np.float64, (_ALL,), finite),
    Tensor("best_weights", np.float64, ("best",)),
    Tensor("accuracies", np.float64, ("later rounds+1",)),
    *_vector_schema("memory", "owners"),
    *_vector_schema("good", "good.owners"),
)


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
        return self._state(tables, features)

    def _state(self, tables: Tables, features: LatentFeatures) -> TrainingState:
        grammar = features.grammar
        found = self.read(tables, _SCHEMA, features=grammar.features, labels=len(grammar.symbols))
        words = bytes(found["added.words"]).decode("utf-8", "replace").split("\n")
        tags = found["added.tags"].tolist()
        fits = (
            len(words) == len(tags) or (not tags and words == [""])
        ) and grammar.features <= found.sizes["best"] <= found.size(_ALL)
        try:
            regularization = float(tables.metadata.get("regularization", ""))
        except ValueError:
            regularization = 0.0
        if not fits or not 0 < regularization < np.inf:
            raise self.damaged("its parts do not fit together")
        for pair in zip(tags, words, strict=False):
            features.add({pair})
        return TrainingState(
            np.array(found["weights"]),
            np.array(found["best_weights"]),
            regularization,
            found["accuracies"].tolist(),
            _vectors(found, "memory"),
            np.array(found["owners"]),
            tables.metadata.get("digest", ""),
            _vectors(found, "good"),
            np.array(found["good.owners"]),
        )


def _tensors(name: str, vectors: FeatureVectors) -> dict[str, npt.NDArray[Any]]:
    return {
        f"{name}.starts": vectors.starts,
        f"{name}.features": vectors.features,
        f"{name}.counts": vectors.counts,
    }


def _vectors(found: Tensors, name: str) -> FeatureVectors:
    parts = (np.array(found[f"{name}.{part}"]) for part in ("starts", "features", "counts"))
    return FeatureVectors(*parts)
