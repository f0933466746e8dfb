"""Checkpoints: the grammar after each cycle, from which an interrupted training resumes."""

from __future__ import annotations

import hashlib
import json
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from treelm.characters import visible
from treelm.errors import UsageError
from treelm.grammar.latent_trees import LatentTrees
from treelm.grammar.split_merge import LatentWeights
from treelm.models.pcfg_la.config import PcfgLaConfig
from treelm.store.checkpoint import CheckpointFolder
from treelm.store.schema import ANY, Tensor
from treelm.store.tables import Tables


def training_key(trees: LatentTrees, config: PcfgLaConfig, held_out: str | None) -> str:
    """Return what identifies a training: its trees and its options."""
    afterwards = {"unknown", "dictionary_min_count", "dictionary_weight"}  # of the last cycle
    options = config.model_dump(mode="json", exclude=afterwards)
    options.pop("cycles")  # more cycles continue where fewer ended
    digest = hashlib.sha256(json.dumps([options, held_out], sort_keys=True).encode())
    made, tagged = trees.trees, trees.tagged
    digest.update("\n".join((*made.symbols, *tagged.words)).encode("utf-8", "surrogatepass"))
    for array in (made.node_symbol, made.node_left, made.node_right, tagged.leaf_pairs):
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()


class Checkpoint(CheckpointFolder):
    """The grammar after the last complete cycle."""

    file_name: ClassVar[str] = "cycle.safetensors"
    told_by: ClassVar[str] = "trees, options or held-out trees"

    def save(self, state: LatentWeights, cycle: int, key: str) -> None:
        """Write the grammar after a cycle; the file appears only when it is complete.

        Raises:
            OutputFileError: if it cannot be written.
        """
        tensors: dict[str, npt.NDArray[Any]] = {
            "substates": state.substates,
            "weights": state.weights,
        }
        for number, level in enumerate(state.split_tree):
            tensors[f"split_tree.{number}"] = level
        self.write(tensors, key, cycle=str(cycle))

    def load(self, trees: LatentTrees, cycles: int, key: str) -> tuple[LatentWeights, int] | None:
        """Return the grammar and the number of cycles done, or None if there is no checkpoint.

        Raises:
            UsageError: ``E_CHECKPOINT`` if it belongs to another training.
            ModelFileError: ``E_CHECKPOINT`` or ``E_MODEL_TABLES`` if it is damaged.
        """
        tables = self.open(key)
        if tables is None:
            return None
        cycle = tables.metadata.get("cycle", "")
        if not cycle.isdecimal() or not 1 <= int(cycle[:4]) <= cycles:
            raise UsageError(
                f"{visible(str(self.folder))}: the checkpoint is from cycle {visible(cycle)}, "
                f"but {cycles} were requested. Request as many or more.",
                code="E_CHECKPOINT",
            )
        return self._state(tables, trees, int(cycle)), int(cycle)

    def _state(self, tables: Tables, trees: LatentTrees, cycle: int) -> LatentWeights:
        from treelm.grammar.latent_trees import grammar_of

        levels = [f"split_tree.{number}" for number in range(cycle)]
        schema = (
            Tensor("substates", np.int32, ("symbols",)),
            Tensor("weights", np.float64, ("weights",)),
            *(Tensor(name, np.int32, (ANY,)) for name in levels),
        )
        found = self.read(tables, schema, only=True, symbols=trees.rules.symbols)
        substates, weights = np.array(found["substates"]), np.array(found["weights"])
        split_tree = tuple(np.array(found[name]) for name in levels)
        if found.sizes["weights"] != trees.rules.ends(substates)[2]:
            raise self.damaged("its rules are others")
        grammar_of(trees.trees, trees.rules, substates, weights, split_tree)  # checks the rest
        return LatentWeights(substates, weights, split_tree)
