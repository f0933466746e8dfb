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
from treelm.store.tables import Tables

if TYPE_CHECKING:
    from treelm.models.plsa.trainer import Parameters, PlsaTrainer

Tensors = dict[str, npt.NDArray[Any]]


class _PlsaFile(CheckpointFolder):
    file_name = "plsa.safetensors"
    told_by = "text, words or options"


class _EmFile(CheckpointFolder):
    file_name = "em.safetensors"
    told_by = "text, words or options"


class PlsaCheckpoint:
    """A folder beside the model with the last complete iteration.

    Args:
        model: The folder of the model.
    """

    def __init__(self, model: Path) -> None:
        self._plsa, self._em = _PlsaFile.beside(model), _EmFile.beside(model)
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
        shapes = {
            "word_topics": (trainer.words, trainer.config.topics),
            "document_topics": (len(trainer.text.document_starts) - 1, trainer.config.topics),
            "history": tables["history"].shape if "history" in tables else (0,),
        }
        if not all(_fits(tables, name, np.float64, shape) for name, shape in shapes.items()):
            raise self._plsa.damaged("its parts do not fit together")
        self.plsa = PlsaState(
            np.array(tables["word_topics"]),
            np.array(tables["document_topics"]),
            tuple(tables["history"].tolist()),
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
        if "history" not in tables or tables["history"].dtype != np.float64:
            raise self._em.damaged("its history is missing")
        trainer.set(self._parameters(trainer, tables, "now"))
        trainer.history = tables["history"].tolist()
        if "before.counts" in tables:
            trainer.before = self._parameters(trainer, tables, "before")
        return True

    def _parameters(self, trainer: PlsaTrainer, tables: Tables, prefix: str) -> Parameters:
        from treelm.models.plsa.trainer import Parameters

        assert trainer.kept is not None
        counts = trainer.tables.top_counts()
        fits = (
            _fits(tables, f"{prefix}.counts", np.int64, counts.shape)
            and _fits(tables, f"{prefix}.shares", np.float64, trainer.kept.shares.shape)
            and _fits(tables, f"{prefix}.perplexity", np.float64, (1,))
        )
        if not fits:
            raise self._em.damaged("its parts do not fit together")
        return Parameters(
            np.array(tables[f"{prefix}.counts"]),
            np.array(tables[f"{prefix}.shares"]),
            LatticeWeights.from_tensors(trainer.lattice, tables, prefix),
            float(tables[f"{prefix}.perplexity"][0]),
        )

    def remove(self) -> None:
        """Remove the files, and the folder if nothing else is in it."""
        self._plsa.remove()
        self._em.remove()


def _tensors(prefix: str, parameters: Parameters) -> Tensors:
    return {
        f"{prefix}.counts": parameters.counts,
        f"{prefix}.shares": parameters.shares,
        f"{prefix}.perplexity": np.array([parameters.held_out_perplexity]),
        **parameters.weights.to_tensors(prefix),
    }


def _fits(tables: Tables, name: str, dtype: type[np.generic], shape: tuple[int, ...]) -> bool:
    return name in tables and tables[name].dtype == dtype and tables[name].shape == shape


def _training_key(trainer: PlsaTrainer, vocabulary: Vocabulary) -> str:
    """Return what identifies a training: its texts, words and options."""
    options = trainer.config.model_dump(mode="json")
    for name in ("iterations", "plsa_iterations", "kept_mass", "held_out_perplexity"):
        # More iterations continue where fewer ended, and the rest is the result of training.
        options.pop(name)
    digest = hashlib.sha256(json.dumps([options, vocabulary.fingerprint], sort_keys=True).encode())
    for text in (trainer.text, trainer.held_out):
        for array in (text.ids, text.starts, text.document_starts):
            digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()
