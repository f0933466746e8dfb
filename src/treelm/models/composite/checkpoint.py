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
from treelm.store.tables import Tables

_STAGES = ("n-best", "follow-up")
#: Options that say how long training runs, not what it does.
_LENGTHS = {"iterations", "follow_up", "tolerance"}


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
        history = tables.get("history")
        if stage not in _STAGES or not rounds.isdecimal() or history is None:
            raise self.damaged("it says nothing about rounds")
        if history.dtype != np.float64 or history.shape != (int(rounds[:6]),):
            raise self.damaged("its rounds differ")
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
        kept, shares = tables.get("topics.kept"), tables.get("topics.shares")
        sizes = tables.get("topics.sizes")
        if kept is None or shares is None or sizes is None:
            raise self.damaged("its topics are missing")
        if kept.dtype != np.uint32 or shares.dtype != np.float64 or sizes.dtype != np.int64:
            raise self.damaged("its topics are not valid")
        if kept.shape != (len(sizes), shape.config.keep_topics):
            raise self.damaged("its topics differ")
        if shares.shape != kept.shape or bool(np.any(kept >= shape.config.topics)):
            raise self.damaged("its topics differ")
        return TrainingTopics(
            KeptTopics(np.array(kept), np.array(shares), 1.0), np.array(sizes), shape.config.topics
        )

    def _lists(self, tables: Tables) -> ParseLists | None:
        names = ("sentence_starts", "actions", "action_starts", "log_probs")
        found = [tables.get(f"lists.{name}") for name in names]
        if all(array is None for array in found):
            return None
        types = (np.uint64, np.uint16, np.uint64, np.float64)
        for array, kind in zip(found, types, strict=True):
            if array is None or array.dtype != kind or array.ndim != 1:
                raise self.damaged("its parses are not valid")
        return ParseLists(*(np.array(array) for array in found))


class _CheckpointBefore(Checkpoint):
    """The second file of a checkpoint."""

    file_name: ClassVar[str] = "before.safetensors"
