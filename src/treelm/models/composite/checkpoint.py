"""Checkpoints: the state after the last complete round of EM, from which training resumes."""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from treelm.characters import visible
from treelm.errors import OutputFileError
from treelm.estimation.lattice import Floats
from treelm.models.composite.parsed_text import ParsedText, ParseLists, PreparedTrees
from treelm.models.composite.parts import CompositeParts, CompositeShape
from treelm.models.composite.sentence_topics import TrainingTopics
from treelm.models.plsa.em import KeptTopics
from treelm.store.checkpoint import CheckpointFolder
from treelm.store.schema import ANY, Tensor, finite, ids
from treelm.store.tables import Tables

#: Kinds of rounds, in this order.
_STAGES = ("n-best", "follow-up")
#: Options that say how long training runs, or what comes after it, not what it does.
_LENGTHS = {"iterations", "follow_up", "tolerance", "unknown"}

_STEPS = (
    Tensor("steps.stages", np.uint8, ("steps",), ids("stages")),
    Tensor("steps.log_likelihoods", np.float64, ("steps",)),
    Tensor("steps.perplexities", np.float64, ("steps",)),
    Tensor("steps.fell", np.bool_, ("steps",)),
)
_PRIOR = (Tensor("held_out_prior", np.float64, ("topics",), finite),)
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


@dataclass(frozen=True)
class EmStep:
    """What one round of EM has seen.

    Args:
        kind: ``n-best`` or ``follow-up``.
        number: Of the round, from 1.
        log_likelihood: Of the training text, before the round.
        perplexity: The same, by word and sentence end.
        fell: Whether the likelihood is lower than before; then training ends with the model of the
            round before, and the likelihood of all rounds that count never falls.
    """

    kind: str
    number: int
    log_likelihood: float
    perplexity: float
    fell: bool = False

    def __str__(self) -> str:
        fell = ": it fell, so the model of the round before is kept" if self.fell else ""
        return (
            f"{self.kind} {self.number}: log likelihood {self.log_likelihood:.1f}, perplexity "
            f"{self.perplexity:.2f} before{fell}"
        )


@dataclass(frozen=True, eq=False)
class TrainingState:
    """The state of training.

    Args:
        parts: The lattices now.
        stage: ``n-best`` or ``follow-up``.
        steps: What all rounds so far have seen, those of the stage before included.
        lists: The parses of the last round of N-best EM.
        frozen: In the follow-up: the parts at the end of N-best EM.
        topics: Topics of the training documents.
        held_out_prior: In the follow-up: the shares of all topics at the end of N-best EM, with
            which `frozen` reads held-out documents.
    """

    parts: CompositeParts
    stage: str = "n-best"
    steps: tuple[EmStep, ...] = ()
    lists: ParseLists | None = None
    frozen: CompositeParts | None = None
    topics: TrainingTopics | None = None
    held_out_prior: Floats | None = None

    @property
    def history(self) -> list[float]:
        """Log-likelihoods before each round of this stage that counts."""
        return [
            step.log_likelihood for step in self.steps if step.kind == self.stage and not step.fell
        ]

    @property
    def rounds(self) -> int:
        """Number of rounds of this stage that are done."""
        return len(self.history)

    def gained_less_than(self, tolerance: float) -> bool:
        """Return whether the last round of this stage gained less than a share of what it had."""
        if self.rounds < 2:
            return False
        before, after = self.history[-2:]
        return after - before < tolerance * abs(before)

    def after(
        self,
        step: EmStep,
        parts: CompositeParts,
        lists: ParseLists | None,
        topics: TrainingTopics | None,
    ) -> TrainingState:
        """Return the state after one more round."""
        return replace(self, parts=parts, steps=(*self.steps, step), lists=lists, topics=topics)

    def ended(self) -> TrainingState:
        """Return the state at the start of the follow-up."""
        return TrainingState(
            self.parts,
            "follow-up",
            self.steps,
            frozen=self.parts,
            topics=self.topics,
            held_out_prior=None if self.topics is None else self.topics.prior,
        )


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

    @property
    def coming(self) -> Checkpoint:
        """The checkpoint that takes the place of this one."""
        return _ComingCheckpoint(self.folder)

    def remove(self) -> None:
        """Remove the files, and the folder if nothing else is in it."""
        with contextlib.suppress(OSError):
            for other in (self.coming, self.before):
                other.path.unlink(missing_ok=True)
        CheckpointFolder.remove(self)

    def save(self, state: TrainingState, key: str) -> None:
        """Write a state; the file appears only when it is complete.

        Raises:
            OutputFileError: if it cannot be written.
        """
        tensors: dict[str, npt.NDArray[Any]] = dict(state.parts.to_tensors())
        tensors.update(_step_tensors(state.steps))
        if state.frozen is not None:
            for name, array in state.frozen.to_tensors().items():
                tensors[f"frozen.{name}"] = array
        if state.topics is not None:
            tensors["topics.kept"] = state.topics.kept.topics
            tensors["topics.shares"] = state.topics.kept.shares
            tensors["topics.sizes"] = state.topics.sizes
        if state.held_out_prior is not None:
            tensors["held_out_prior"] = state.held_out_prior
        if state.lists is not None:
            tensors["lists.sentence_starts"] = state.lists.sentence_starts
            tensors["lists.actions"] = state.lists.actions
            tensors["lists.action_starts"] = state.lists.action_starts
            tensors["lists.log_probs"] = state.lists.log_probs
        self.coming.write(tensors, key, stage=state.stage)
        self._move_up()

    def _move_up(self) -> None:
        """Let the file of the coming round take its place, and that of the last be the one before.

        Killed between any two steps, this is finished when the checkpoint is loaded.
        """
        if not self.coming.path.exists():
            return
        try:
            with contextlib.suppress(FileNotFoundError):  # the first round, or killed just here
                self.path.replace(self.before.path)
            self.coming.path.replace(self.path)
        except OSError as error:
            raise OutputFileError(
                f"{visible(str(self.folder))}: no checkpoint can be written there "
                f"({error.strerror})."
            ) from error

    def load(self, shape: CompositeShape, key: str) -> TrainingState | None:
        """Return the saved state, or None if there is none.

        Raises:
            UsageError: ``E_CHECKPOINT`` if it belongs to another training.
            ModelFileError: ``E_CHECKPOINT`` or ``E_MODEL_TABLES`` if it is damaged.
        """
        self._move_up()
        return self._load(shape, key)

    def _load(self, shape: CompositeShape, key: str) -> TrainingState | None:
        tables = self.open(key)
        if tables is None:
            return None
        stage = tables.metadata.get("stage", "")
        if stage not in _STAGES:
            raise self.damaged("it says nothing about rounds")
        parts = CompositeParts.from_tensors(shape, tables)
        frozen = prior = None
        if stage == "follow-up":
            own = {n.removeprefix("frozen."): tables[n] for n in tables if n.startswith("frozen.")}
            frozen = CompositeParts.from_tensors(shape, own)
            if shape.config.topics:
                found = self.read(tables, _PRIOR, topics=shape.config.topics)
                prior = np.array(found["held_out_prior"])
        return TrainingState(
            parts,
            stage,
            self._steps(tables),
            self._lists(tables),
            frozen,
            self._topics(tables, shape),
            prior,
        )

    def load_before(self, shape: CompositeShape, key: str) -> TrainingState | None:
        """Return the state before the last complete round; see `load`."""
        return self.before._load(shape, key)

    def _steps(self, tables: Tables) -> tuple[EmStep, ...]:
        found = self.read(tables, _STEPS, stages=len(_STAGES))
        steps: list[EmStep] = []
        numbers = dict.fromkeys(_STAGES, 0)
        for stage, *seen in zip(*(found[item.name].tolist() for item in _STEPS), strict=True):
            numbers[_STAGES[stage]] += 1
            steps.append(EmStep(_STAGES[stage], numbers[_STAGES[stage]], *seen))
        return tuple(steps)

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


class _ComingCheckpoint(Checkpoint):
    """The file of a round that is complete, and has not taken its place."""

    file_name: ClassVar[str] = "coming.safetensors"


def _step_tensors(steps: Sequence[EmStep]) -> dict[str, npt.NDArray[Any]]:
    return {
        "steps.stages": np.array([_STAGES.index(step.kind) for step in steps], np.uint8),
        "steps.log_likelihoods": np.array([step.log_likelihood for step in steps], np.float64),
        "steps.perplexities": np.array([step.perplexity for step in steps], np.float64),
        "steps.fell": np.array([step.fell for step in steps], np.bool_),
    }
