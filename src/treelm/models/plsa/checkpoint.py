"""Checkpoints of training with topics: PLSA and EM, after every iteration."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from treelm.corpus.vocabulary import Vocabulary
from treelm.estimation.lattice_weights import LatticeWeights
from treelm.models.plsa.em import PlsaState
from treelm.store.checkpoint import CheckpointFolder
from treelm.store.schema import ANY, Tensor
from treelm.store.tables import Tables

if TYPE_CHECKING:
    from treelm.models.plsa.trainer import Parameters, PlsaTrainer

_HISTORY = Tensor("history", np.float64, (ANY,))
_PLSA = (
    Tensor("word_topics", np.float64, ("words", "topics")),
    Tensor("document_topics", np.float64, ("documents", "topics")),
    _HISTORY,
)


class _PlsaFile(CheckpointFolder):
    file_name = "plsa.safetensors"
    told_by = "text, words or options"


class _EmFile(CheckpointFolder):
    file_name = "em.safetensors"
    told_by = "text, words or options"


class PlsaCheckpoint:
    """A folder beside the model with the last complete iteration.

    Args:
        folder: The folder.
    """

    def __init__(self, folder: Path) -> None:
        self._plsa, self._em = _PlsaFile(folder), _EmFile(folder)
        self._key = ""
        self._resume = False
        #: PLSA of an interrupted training, if there is one.
        self.plsa: PlsaState | None = None

    def begin(self, trainer: PlsaTrainer, vocabulary: Vocabulary, *, resume: bool) -> None:
        """Look for an interrupted training; without `resume` discard it.

        Raises:
            UsageError: ``E_CHECKPOINT`` if it is a different one.
            ModelFileError: if it is damaged.
        """
        self._key = _training_key(trainer, vocabulary)
        self._resume = resume
        if not resume:
            self.remove()
            return
        tables = self._plsa.open(self._key)
        if tables is None:
            return
        found = self._plsa.read(
            tables,
            _PLSA,
            words=trainer.words,
            documents=len(trainer.text.document_starts) - 1,
            topics=trainer.config.topics,
        )
        self.plsa = PlsaState(
            np.array(found["word_topics"]),
            np.array(found["document_topics"]),
            tuple(found["history"].tolist()),
        )

    def save_plsa(self, state: PlsaState) -> None:
        """Write PLSA after an iteration."""
        tensors = {
            "word_topics": state.word_topics,
            "document_topics": state.document_topics,
            "history": np.array(state.history),
        }
        self._plsa.write(tensors, self._key)

    def save(self, trainer: PlsaTrainer) -> None:
        """Write a predictor after an iteration."""
        tensors = _tensors("now", trainer.parameters())
        if trainer.before is not None:
            tensors.update(_tensors("before", trainer.before))
        tensors["history"] = np.array(trainer.history)
        self._em.write(tensors, self._key)

    def restore(self, trainer: PlsaTrainer) -> bool:
        """Restore an interrupted predictor; return whether there was a checkpoint.

        Raises:
            UsageError: ``E_CHECKPOINT`` if it belongs to another training.
            ModelFileError: if it is damaged.
        """
        tables = self._em.open(self._key) if self._resume else None
        if tables is None:
            return False
        history = self._em.read(tables, (_HISTORY,))["history"]
        trainer.set(self._parameters(trainer, tables, "now"))
        trainer.history = history.tolist()
        if "before.counts" in tables:
            trainer.before = self._parameters(trainer, tables, "before")
        return True

    def _parameters(self, trainer: PlsaTrainer, tables: Tables, prefix: str) -> Parameters:
        from treelm.models.plsa.trainer import Parameters

        assert trainer.kept is not None
        schema = (
            Tensor(f"{prefix}.counts", np.int64, trainer.tables.top_counts().shape),
            Tensor(f"{prefix}.shares", np.float64, trainer.kept.shares.shape),
            Tensor(f"{prefix}.perplexity", np.float64, (1,)),
        )
        found = self._em.read(tables, schema)
        return Parameters(
            np.array(found[f"{prefix}.counts"]),
            np.array(found[f"{prefix}.shares"]),
            LatticeWeights.from_tensors(trainer.lattice, tables, prefix),
            found.number(f"{prefix}.perplexity"),
        )

    def remove(self) -> None:
        """Remove the files, and the folder if nothing else is in it."""
        self._plsa.remove()
        self._em.remove()


def _tensors(prefix: str, parameters: Parameters) -> dict[str, npt.NDArray[Any]]:
    return {
        f"{prefix}.counts": parameters.counts,
        f"{prefix}.shares": parameters.shares,
        f"{prefix}.perplexity": np.array([parameters.held_out_perplexity]),
        **parameters.weights.to_tensors(prefix),
    }


def _training_key(trainer: PlsaTrainer, vocabulary: Vocabulary) -> str:
    """Return what identifies a training: its texts, words and options."""
    options = trainer.config.model_dump(mode="json", exclude={"unknown"})  # learnt afterwards
    for name in ("iterations", "plsa_iterations", "kept_mass", "held_out_perplexity"):
        # More iterations continue where fewer ended, and the rest is the result of training.
        options.pop(name)
    digest = hashlib.sha256(json.dumps([options, vocabulary.fingerprint], sort_keys=True).encode())
    for text in (trainer.text, trainer.held_out):
        for array in (text.ids, text.starts, text.document_starts):
            digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()
