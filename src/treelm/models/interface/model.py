"""What every language model is: scores of sentences, a folder of files, and what it can do."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import ClassVar, Self, TypeVar

import numpy as np
import numpy.typing as npt
from pydantic import BaseModel, ConfigDict, ValidationError

from treelm.corpus.vocabulary import Vocabulary
from treelm.errors import ModelFileError, UnsupportedTask, UsageError
from treelm.estimation.quantize import CodeBits
from treelm.models.interface.scores import SentenceScore
from treelm.models.interface.states import Context, State, Step
from treelm.models.interface.words import Word, Words
from treelm.parallel.progress import SILENT, Progress
from treelm.store.folder import FolderWriter, ModelFolder, open_folder, save_folder
from treelm.store.manifest import Description, Exactness, TrainingCorpus


class Task(StrEnum):
    """What can be asked of a model; each system says which of these it can do."""

    SCORE = "score"
    SURPRISAL = "surprisal"
    PERPLEXITY = "perplexity"
    SAMPLE = "sample"
    PARSE = "parse"
    CLASSIFY = "classify"
    DECODE = "decode"


class Config(BaseModel):
    """Options of a system: frozen, checked, and stored with the model."""

    model_config = ConfigDict(frozen=True, extra="forbid")


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelInfo:
    """What one must know about a model before its numbers mean anything.

    Args:
        exactness: What kind of numbers it gives.
        normalized: Whether the probabilities of all words and of the end add up to 1.
        exact_key: Whether equal keys of states mean equal futures, to the last bit.
        order: Words that an n-gram model looks at, the predicted one included.
        beam: Largest number of hypotheses kept in a search; None if nothing is pruned.
        bits: Bits of the codes that stand for probabilities in its tables, which then add up to 1
            only nearly; None if nothing was rounded.
        vocabulary: Fingerprint of the words it knows.
    """

    exactness: Exactness
    normalized: bool
    exact_key: bool = True
    order: int | None = None
    beam: int | None = None
    bits: int | None = None
    vocabulary: str


_Config = TypeVar("_Config", bound="Config")


def explain(error: ValidationError) -> str:
    """Return what is wrong with options, in one sentence each."""
    found = []
    for item in error.errors():
        name = ".".join(map(str, item["loc"]))
        message = item["msg"].removeprefix("Value error, ")
        found.append(f"{name}: {message}" if name else message)
    return "; ".join(found) + "."


def config_of(folder: ModelFolder, config_class: type[_Config], what: str) -> _Config:
    """Return the checked options of the model in an opened folder.

    Args:
        folder: The folder.
        config_class: What the options of its system are.
        what: The kind of model with its article, for the error.

    Raises:
        ModelFileError: ``E_MANIFEST`` if they are others.
    """
    try:
        return config_class.model_validate(folder.manifest.config)
    except ValidationError as error:
        raise ModelFileError(
            f"{folder.path}: this is no configuration of {what} ({explain(error)})",
            code="E_MANIFEST",
        ) from error


def make_config(kind: type[_Config], options: Mapping[str, object], system: str) -> _Config:
    """Return checked options.

    Args:
        kind: The configuration of the system.
        options: Options by name; those left out have their defaults.
        system: Name of the system, for the error.

    Raises:
        UsageError: naming the option that does not exist or has an impossible value.
    """
    try:
        return kind.model_validate(dict(options))
    except ValidationError as error:
        raise UsageError(f"{system}: {explain(error)}") from error


class LanguageModel(ABC):
    """A trained model, never changed. Every system implements this."""

    system: ClassVar[str]
    tasks: ClassVar[frozenset[Task]]
    config_class: ClassVar[type[Config]]

    @classmethod
    def make_config(cls, options: Mapping[str, object]) -> Config:
        """Return checked options of the system.

        Raises:
            UsageError: naming the option that does not exist or has an impossible value.
        """
        return make_config(cls.config_class, options, cls.system)

    @property
    @abstractmethod
    def config(self) -> Config:
        """The options it was trained with."""

    @property
    @abstractmethod
    def vocabulary(self) -> Vocabulary:
        """The words it knows, and what stands for the others."""

    @property
    @abstractmethod
    def info(self) -> ModelInfo:
        """What kind of numbers it gives."""

    @property
    def corpora(self) -> tuple[TrainingCorpus, ...]:
        """What it was trained on."""
        return ()

    @property
    def unigram_counts(self) -> npt.NDArray[np.uint64] | None:
        """Counts of the training text by word id, that of the sentence end last, if known."""
        return None

    # -- what there is to say about it ------------------------------------------------------

    def details(self) -> dict[str, object]:
        """Return the few numbers that tell a model from others of its system."""
        return {}

    def notes(self) -> tuple[str, ...]:
        """Return what whoever trained it should know, in sentences."""
        return ()

    def summary(self) -> dict[str, object]:
        """Return the model in a few numbers: system, details, and the size of its training text."""
        return {
            "system": self.system,
            **self.details(),
            "words": len(self.vocabulary) - 1,
            "sentences": sum(record.sentences for record in self.corpora),
            "tokens": sum(record.tokens for record in self.corpora),
            "vocabulary": self.vocabulary.fingerprint,
        }

    # -- scores -----------------------------------------------------------------------------

    @abstractmethod
    def score(self, sentence: Words, *, eos: bool = True) -> SentenceScore:
        """Return the score of a sentence; its start is always given, never predicted.

        Args:
            sentence: Its words, or a string that is split at white space.
            eos: Whether the end of the sentence counts.
        """

    def score_many(
        self, sentences: Iterable[Words], *, eos: bool = True, threads: int = 1
    ) -> Iterator[SentenceScore]:
        """Yield the scores of sentences, in order."""
        del threads
        for sentence in sentences:
            yield self.score(sentence, eos=eos)

    def sentence_log_probs(
        self, sentences: Sequence[Words], *, eos: bool = True, threads: int = 1
    ) -> npt.NDArray[np.float64]:
        """Return the log probabilities of sentences, in order."""
        scores = self.score_many(sentences, eos=eos, threads=threads)
        return np.fromiter((score.log_prob for score in scores), np.float64, len(sentences))

    def quantized(
        self, bits: CodeBits, *, threads: int = 1, progress: Progress = SILENT
    ) -> LanguageModel:
        """Return the model with codes of 8 or 16 bits instead of floats in its tables.

        Args:
            bits: Of a code.
            threads: Kernel threads; results do not depend on it.
            progress: Told how far it is.

        Raises:
            UnsupportedTask: if the system has no such tables.
        """
        del bits, threads, progress
        raise UnsupportedTask(
            f"a model of the system {self.system} has no tables that can be quantised; models of "
            "n-grams have, and mixtures of these."
        )

    def require(self, task: Task) -> None:
        """Refuse what the system does not do.

        Raises:
            UnsupportedTask: naming what it does.
        """
        if task not in self.tasks:
            raise UnsupportedTask(
                f"a model of the system {self.system} cannot do this: {task}. "
                f"It can: {', '.join(sorted(self.tasks))}."
            )

    # -- word by word: only incremental models ----------------------------------------------

    def initial(self, context: Context | None = None) -> State:
        """Return the state before any word."""
        del context
        raise self._not_incremental()

    def advance(self, state: State, word: Word) -> Step:
        """Return the log probability of a word in a state, and the state after it."""
        del state, word
        raise self._not_incremental()

    def finish(self, state: State) -> float:
        """Return the log probability that the sentence ends in this state."""
        del state
        raise self._not_incremental()

    def _not_incremental(self) -> UnsupportedTask:
        return UnsupportedTask(
            f"a model of the system {self.system} scores whole sentences and does not go word by "
            "word. Use `score`, or an incremental model such as ngram.",
            code="E_NOT_INCREMENTAL",
        )

    # -- files ------------------------------------------------------------------------------

    @abstractmethod
    def description(self) -> Description:
        """Return what the manifest says about the model."""

    @abstractmethod
    def write_files(self, writer: FolderWriter) -> None:
        """Write everything but the manifest."""

    @classmethod
    @abstractmethod
    def from_folder(cls, folder: ModelFolder) -> Self:
        """Return the model in an opened folder."""

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Write the model to a folder, which appears only when it is complete.

        Raises:
            OutputFileError: if the folder holds something else, or cannot be written.
        """
        save_folder(Path(folder), self.description(), self.write_files)

    @classmethod
    def load(cls, folder: str | os.PathLike[str], *, verify: bool = False) -> Self:
        """Return the model saved in a folder; its tables are mapped, not read.

        Args:
            folder: A model folder.
            verify: Read everything and compare checksums first.

        Raises:
            ModelFileError: if there is no such model, or it is damaged or of another system.
        """
        opened = open_folder(Path(folder), verify=verify)
        if opened.manifest.system != cls.system:
            raise ModelFileError(
                f"{folder} holds a model of the system {opened.manifest.system}, not {cls.system}. "
                "`treelm.models.registry.load` finds the right class.",
                code="E_MODEL_SYSTEM",
            )
        return cls.from_folder(opened)
