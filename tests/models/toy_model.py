"""A bigram model in a dictionary: slow, obvious, and a second subject for every contract.

Its probabilities are counts plus one, so anyone can check them by hand.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import ClassVar

from treelm.corpus.corpus import TextCorpus
from treelm.corpus.vocabulary import Vocabulary
from treelm.corpus.vocabulary_file import load_vocabulary, save_vocabulary
from treelm.corpus.words import Word, Words, split_words, words_of
from treelm.models.interface.config import Config
from treelm.models.interface.incremental import IncrementalModel
from treelm.models.interface.model import LanguageModel, ModelInfo, Task
from treelm.models.interface.scores import SentenceScore
from treelm.models.interface.states import (
    Context,
    State,
    Step,
    model_fingerprint,
    pack_numbers,
    state_bytes,
    state_payload,
    unpack_numbers,
)
from treelm.models.registry import System
from treelm.models.run import QUIET, Run
from treelm.store.folder import FolderWriter, ModelFolder
from treelm.store.manifest import Description, TrainingCorpus

SENTENCES = ("the boat left", "the old boat came", "a boat left the harbour", "left")


@dataclass(frozen=True)
class ToyState:
    last: int
    model: bytes

    def to_bytes(self) -> bytes:
        return state_bytes(self.model, pack_numbers([self.last]))


class ToyConfig(Config):
    """The toy has one option."""

    added: float = 1.0
    """Added to every count."""


class ToyModel(IncrementalModel):
    """Bigram counts plus a constant."""

    system: ClassVar[str] = "toy"
    tasks: ClassVar[frozenset[Task]] = frozenset(Task) - {Task.PARSE, Task.CLASSIFY}
    config_class = ToyConfig

    def __init__(
        self, vocabulary: Vocabulary, pairs: Counter[tuple[int, int]], config: ToyConfig
    ) -> None:
        self._vocabulary = vocabulary
        self._pairs = pairs
        self._config = config
        self._totals = Counter[int]()
        for (before, _), count in pairs.items():
            self._totals[before] += count

    @classmethod
    def of(
        cls,
        sentences: Iterable[str] = SENTENCES,
        vocabulary: Vocabulary | None = None,
        **options: float,
    ) -> ToyModel:
        """Count sentences."""
        split = [split_words(sentence) for sentence in sentences]
        words = Counter(word for sentence in split for word in sentence)
        vocabulary = vocabulary or Vocabulary.from_counts(words)
        pairs = Counter[tuple[int, int]]()
        for sentence in split:
            ids = [len(vocabulary) + 1, *vocabulary.encode(sentence).tolist(), len(vocabulary)]
            pairs.update(pairwise(ids))
        return cls(vocabulary, pairs, ToyConfig(**options))

    @property
    def config(self) -> ToyConfig:
        return self._config

    @property
    def vocabulary(self) -> Vocabulary:
        return self._vocabulary

    @property
    def corpora(self) -> tuple[TrainingCorpus, ...]:
        return (TrainingCorpus(name="toy", sha256="ab" * 32, sentences=4, tokens=13),)

    @property
    def info(self) -> ModelInfo:
        return ModelInfo(
            exactness="exact", normalized=True, order=2, vocabulary=self._vocabulary.fingerprint
        )

    @cached_property
    def fingerprint(self) -> bytes:
        return model_fingerprint([repr(sorted(self._pairs.items())), repr(self._config)], {})

    def initial(self, context: Context | None = None) -> ToyState:
        return ToyState(self.word_ids.start, self.fingerprint)

    def advance(self, state: State, word: Word) -> Step:
        own = self._own(state)
        word_id = self.word_ids.word(word, first=own.last == self.word_ids.start)
        return Step(self._log_prob(own, word_id), ToyState(word_id, self.fingerprint))

    def finish(self, state: State) -> float:
        return self._log_prob(self._own(state), self.word_ids.end)

    def _own(self, state: State) -> ToyState:
        self.check_state(state)
        assert isinstance(state, ToyState)
        return state

    def _log_prob(self, state: ToyState, word: int) -> float:
        added = self._config.added
        count = self._pairs[state.last, word] + added
        total = self._totals[state.last] + added * (len(self._vocabulary) + 1)
        return math.log(count / total) if count else -math.inf

    def state_from_bytes(self, data: bytes) -> ToyState:
        (last,) = unpack_numbers(state_payload(data, self.fingerprint))
        return ToyState(last, self.fingerprint)

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self._vocabulary, self._pairs, self._config)

    def description(self) -> Description:
        return Description(
            system=self.system,
            config=self._config.model_dump(),
            vocabulary=self._vocabulary.fingerprint,
            corpora=self.corpora,
        )

    def write_files(self, writer: FolderWriter) -> None:
        save_vocabulary(self._vocabulary, writer.file("words.txt"))
        writer.text("pairs.json", json.dumps([[*pair, n] for pair, n in self._pairs.items()]))

    @classmethod
    def from_folder(cls, folder: ModelFolder) -> ToyModel:
        rows = json.loads(folder.file("pairs.json").read_text())
        return cls(
            load_vocabulary(folder.file("words.txt")),
            Counter({(before, word): n for before, word, n in rows}),
            ToyConfig.model_validate(folder.manifest.config),
        )


class ToySentences(LanguageModel):
    """The same probabilities, but of whole sentences only."""

    system: ClassVar[str] = "toy_sentences"
    tasks: ClassVar[frozenset[Task]] = frozenset({Task.SCORE, Task.PERPLEXITY})
    config_class = ToyConfig

    def __init__(self, inner: ToyModel) -> None:
        self.inner = inner

    @property
    def config(self) -> ToyConfig:
        return self.inner.config

    @property
    def vocabulary(self) -> Vocabulary:
        return self.inner.vocabulary

    @property
    def info(self) -> ModelInfo:
        return self.inner.info

    def score(self, sentence: Words, *, eos: bool = True) -> SentenceScore:
        score = self.inner.score(words_of(sentence), eos=eos)
        return SentenceScore(score.log_prob, score.exactness, eos)

    def description(self) -> Description:
        return Description(system=self.system, config=self.config.model_dump())

    def write_files(self, writer: FolderWriter) -> None:
        self.inner.save(writer.part("inner"))

    @classmethod
    def from_folder(cls, folder: ModelFolder) -> ToySentences:
        return cls(ToyModel.from_folder(folder.part("inner")))


def train_toy(
    corpus: TextCorpus, config: ToyConfig, *, vocabulary: Vocabulary | None = None, run: Run = QUIET
) -> ToyModel:
    """Return the toy model of a text.

    Args:
        corpus: The text.
        config: Options.
        vocabulary: Vocabulary file. Default: all words of the text are known.
        run: How the training is run.
    """
    del run
    sentences = [" ".join(words) for words in corpus]
    return ToyModel.of(sentences, vocabulary, added=config.added)


def _system(name: str, model: str) -> System:
    return System(
        name=name,
        model=f"tests.models.toy_model:{model}",
        train="tests.models.toy_model:train_toy",
        config="tests.models.toy_model:ToyConfig",
        summary="Count pairs of words.",
        example="--text train.txt",
    )


TOY = _system("toy", "ToyModel")
TOY_SYSTEMS = (TOY, _system("toy_sentences", "ToySentences"))
