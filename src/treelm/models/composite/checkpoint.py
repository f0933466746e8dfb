"""Checkpoints: the state after the last complete round of EM, from which training resumes."""

from __future__ import annotations

import contextlib
import hashlib
import json
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from treelm.models.composite.parsed_text import ParsedText, ParseLists, PreparedTrees
from treelm.models.composite.parts import CompositeParts, CompositeShape
from treelm.models.composite.sentence_topics import TrainingTopics
from treelm.models.plsa.em import KeptTopics
from treelm.store.checkpoint import CheckpointFolder
from treelm.store.schema import ANY, Tensor, ids
from treelm.store.tables import Tables

_STAGES = ("n-best", "follow-up")
#: Options that say how long training runs, not what it does.
_LENGTHS = {"iterations", "follow_up", "tolerance"}

_HISTORY = (Tensor("history", np.float64, ("rounds",)),)
_TOPICS = (
    Tensor("topics.kept", np.uint32, ("documents", "kept"), ids("topics")),
    Tensor("topics.shares", np.float64, ("documents", "kept")),
    Tensor("topics.sizes", np.int64, ("documents",)),
)
_LISTS = (
    Tensor("lists.sentence_starts", np.uint64, (ANY,)),
    Tensor("lists.actions", np.uint16, (ANY,)),
    Tensor("lists.action_starts", np.uint64, (ANY,)),
    Tensor("lists.log_probs", np.float64, (ANY,)),
)


@dataclass(frozen=True, eq=False)
class TrainingState:
    """The state of training.

    Args:
        parts: The lattices now.
        stage: ``n-best`` or ``follow-up``.
        rounds: Number of rounds of this stage that are done.
        history: Log-likelihoods before each round of this stage.
        lists: The parses of the last round of N-best EM.
        frozen: In the follow-up: the parts at the end of N-best EM.
        topics: Topics of the training documents.
    """

    parts: CompositeParts
    stage: str = "n-best"
    rounds: int = 0
    history: tuple[float, ...] = ()
    lists: ParseLists | None = None
    frozen: CompositeParts | None = None
    topics: TrainingTopics | None = None

    def after(
        self,
        parts: CompositeParts,
        log_likelihood: float,
        lists: ParseLists | None,
        topics: TrainingTopics | None,
    ) -> TrainingState:
        """Return the state after one more round."""
        return replace(
            self,
            parts=parts,
            rounds=self.rounds + 1,
            history=(*self.history, log_likelihood),
            lists=lists,
            topics=topics,
        )

    def ended(self) -> TrainingState:
        """Return the state at the start of the follow-up."""
        return TrainingState(self.parts, "follow-up", frozen=self.parts, topics=self.topics)


def training_key(
    shape: CompositeShape, prepared: PreparedTrees, held_out: ParsedText | None
) -> str:
    """Return what identifies a training: its sentences and its options."""
    options = shape.config.model_dump(mode="json", exclude=_LENGTHS)
    codes = [list(shape.codes.tags), list(shape.codes.phrases)]
    digest = hashlib.sha256(
        json.dumps([options, codes, prepared.vocabulary.fingerprint], sort_keys=True).encode()
    )
    for text in (prepared.text, held_out):
        if text is None:
            continue
        for array in (text.ids, text.starts, text.documents, text.actions, text.action_starts):
            digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()


class Checkpoint(CheckpointFolder):
    """The lattices after the last complete round, and those of the round before."""

    file_name: ClassVar[str] = "round.safetensors"
    told_by: ClassVar[str] = "trees, options or held-out trees"

    @property
    def before(self) -> Checkpoint:
        """The checkpoint before the last complete round."""
        return _CheckpointBefore(self.folder)

    def remove(self) -> None:
        """Remove the files, and the folder if nothing else is in it."""
        with contextlib.suppress(OSError):
            self.before.path.unlink(missing_ok=True)
        CheckpointFolder.remove(self)

    def save(self, state: TrainingState, key: str) -> None:
        """Write a state; the file appears only when it is complete.

        Raises:
            OutputFileError: if it cannot be written.
        """
        tensors: dict[str, npt.NDArray[Any]] = dict(state.parts.to_tensors())
        tensors["history"] = np.array(state.history, np.float64)
        if state.frozen is not None:
            for name, array in state.frozen.to_tensors().items():
                tensors[f"frozen.{name}"] = array
        if state.topics is not None:
            tensors["topics.kept"] = state.topics.kept.topics
            tensors["topics.shares"] = state.topics.kept.shares
            tensors["topics.sizes"] = state.topics.sizes
        if state.lists is not None:
            tensors["lists.sentence_starts"] = state.lists.sentence_starts
            tensors["lists.actions"] = state.lists.actions
            tensors["lists.action_starts"] = state.lists.action_starts
            tensors["lists.log_probs"] = state.lists.log_probs
        with contextlib.suppress(OSError):  # the current file becomes the one of the round before
            self.before.path.unlink(missing_ok=True)
            self.before.path.hardlink_to(self.path)
        self.write(tensors, key, stage=state.stage, rounds=str(state.rounds))

    def load(self, shape: CompositeShape, key: str) -> TrainingState | None:
        """Return the saved state, or None if there is none.

        Raises:
            UsageError: ``E_CHECKPOINT`` if it belongs to another training.
            ModelFileError: ``E_CHECKPOINT`` or ``E_MODEL_TABLES`` if it is damaged.
        """
        tables = self.open(key)
        if tables is None:
            return None
        stage, rounds = tables.metadata.get("stage", ""), tables.metadata.get("rounds", "")
        if stage not in _STAGES or not rounds.isdecimal():
            raise self.damaged("it says nothing about rounds")
        history = self.read(tables, _HISTORY, rounds=int(rounds[:6]))["history"]
        parts = CompositeParts.from_tensors(shape, tables)
        frozen = None
        if stage == "follow-up":
            own = {n.removeprefix("frozen."): tables[n] for n in tables if n.startswith("frozen.")}
            frozen = CompositeParts.from_tensors(shape, own)
        return TrainingState(
            parts,
            stage,
            int(rounds),
            tuple(history.tolist()),
            self._lists(tables),
            frozen,
            self._topics(tables, shape),
        )

    def _topics(self, tables: Tables, shape: CompositeShape) -> TrainingTopics | None:
        if not shape.config.topics:
            return None
        found = self.read(
            tables, _TOPICS, topics=shape.config.topics, kept=shape.config.keep_topics
        )
        kept, shares, sizes = (np.array(found[item.name]) for item in _TOPICS)
        return TrainingTopics(KeptTopics(kept, shares, 1.0), sizes, shape.config.topics)

    def _lists(self, tables: Tables) -> ParseLists | None:
        if not any(item.name in tables for item in _LISTS):
            return None
        found = self.read(tables, _LISTS)
        return ParseLists(*(np.array(found[item.name]) for item in _LISTS))


class _CheckpointBefore(Checkpoint):
    """The second file of a checkpoint."""

    file_name: ClassVar[str] = "before.safetensors"
