"""What models that were trained on a corpus remember of it, and how they are saved and pickled."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Generic, Self, TypeVar

import numpy as np
import numpy.typing as npt

from treelm.corpus.corpus import Fingerprint, TextCorpus, TreeCorpus
from treelm.corpus.files import source_name
from treelm.corpus.sentence_filter import SentenceFilter
from treelm.corpus.vocabulary import Vocabulary
from treelm.models.interface.config import Config
from treelm.models.interface.model import LanguageModel
from treelm.models.interface.states import model_fingerprint
from treelm.store.manifest import Description, TrainingCorpus

OwnConfig = TypeVar("OwnConfig", bound=Config)

#: Maximum length of recorded file names.
_LONGEST_NAME = 1000


def corpus_name(corpus: TextCorpus | TreeCorpus) -> str:
    """Return the names of the files of a corpus."""
    return " ".join(source_name(path) for path in corpus.paths)


def corpus_record(
    corpus: TextCorpus | TreeCorpus, fingerprint: Fingerprint | None = None
) -> TrainingCorpus:
    """Return what a manifest says about a training corpus.

    Args:
        corpus: The files.
        fingerprint: Its fingerprint, if known; otherwise the files are read for it.
    """
    found = fingerprint or corpus.fingerprint
    return TrainingCorpus(name=corpus_name(corpus)[:_LONGEST_NAME], **found._asdict())


class ConfiguredModel(LanguageModel, Generic[OwnConfig]):
    """Holds options and corpora; a system sets them when it is made."""

    _config: OwnConfig
    _corpora: tuple[TrainingCorpus, ...]

    @property
    def config(self) -> OwnConfig:
        """The options it was trained with."""
        return self._config

    @property
    def corpora(self) -> tuple[TrainingCorpus, ...]:
        """What it was trained on."""
        return self._corpora

    @abstractmethod
    def _arguments(self) -> dict[str, Any]:
        """Return what the model was made of: the arguments of its constructor, by name."""

    def _changed(self, **arguments: object) -> Self:
        """Return the model made again with some arguments of its constructor changed."""
        return _made(
            type(self),
            {**self._arguments(), **arguments},
            self._max_words,
            self._training_sentences,
        )

    def __reduce__(self) -> tuple[Any, ...]:
        # Kernel objects cannot be pickled; the constructor makes them again.
        made = (type(self), self._arguments(), self._max_words, self._training_sentences)
        return _made, made

    def transforms(self) -> Sequence[Mapping[str, object]]:
        """Return what was done to the training trees, as the manifest records it."""
        return ()

    def description(self) -> Description:
        """Return what the manifest says about the model."""
        return Description(
            system=self.system,
            config=self._config.model_dump(mode="json"),
            exactness=self.info.exactness,
            vocabulary=self.vocabulary.fingerprint,
            corpora=self._corpora,
            transforms=self.transforms(),
            seed=getattr(self._config, "seed", None),
        )


Made = TypeVar("Made", bound=ConfiguredModel[Any])


def _made(
    kind: type[Made],
    arguments: dict[str, Any],
    max_words: int | None,
    sentences: SentenceFilter | None,
) -> Made:
    made = kind(**arguments).remember(sentences)
    return made if max_words is None else made.with_max_words(max_words)


class TrainedModel(ConfiguredModel[OwnConfig]):
    """Holds words and unigram counts as well."""

    _vocabulary: Vocabulary
    _unigram_counts: npt.NDArray[np.uint64]

    @property
    def vocabulary(self) -> Vocabulary:
        """The words it knows, and what replaces the others."""
        return self._vocabulary

    @property
    def unigram_counts(self) -> npt.NDArray[np.uint64]:
        """Counts of the training text by word id, that of the sentence end last."""
        return self._unigram_counts

    def _fingerprint(
        self, tensors: Mapping[str, npt.NDArray[Any]], *labels: str, without: Collection[str] = ()
    ) -> bytes:
        """Return 8 bytes that tell the model from others.

        Args:
            tensors: What it knows.
            labels: Names that belong to the tensors.
            without: Options that make no difference to its states, as spellings make none.
        """
        options = self._config.model_dump_json(exclude={*without, "unknown"})
        names = (self.system, options, self._vocabulary.fingerprint, *labels)
        return model_fingerprint(names, tensors)

    def _arguments(self) -> dict[str, Any]:
        return {
            "vocabulary": self._vocabulary,
            "unigram_counts": self._unigram_counts,
            "config": self._config,
            "corpora": self._corpora,
        }
