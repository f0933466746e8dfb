"""What every language model is: scores of sentences, a folder of files, and what it can do."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Self

import numpy as np
import numpy.typing as npt

from treelm.characters import visible
from treelm.corpus.encoder import encode_sentences
from treelm.corpus.words import Word, Words, sentences_of
from treelm.errors import ModelFileError, UnsupportedTask, UsageError
from treelm.models.interface.abilities import refusal
from treelm.models.interface.config import Config, make_config
from treelm.models.interface.training_sentences import read_sentences, write_sentences
from treelm.models.interface.variants import ModelVariants
from treelm.store.folder import FolderWriter, ModelFolder, read_folder, save_folder
from treelm.store.manifest import Description, Exactness, TrainingCorpus

if TYPE_CHECKING:
    from treelm.corpus.sentence_filter import SentenceFilter
    from treelm.corpus.vocabulary import Vocabulary
    from treelm.grammar.parser_options import ParserOptions
    from treelm.grammar.scored_tree import ScoredTree
    from treelm.models.interface.incremental import IncrementalModel
    from treelm.models.interface.parser import TreeLists
    from treelm.models.interface.perplexity import OovMode, Perplexity
    from treelm.models.interface.scores import (
        CountedScores,
        Decision,
        Sample,
        SentenceScore,
        WordScore,
    )
    from treelm.models.interface.states import Context, State, Step

#: A sample is cut after so many words.
LONGEST_SAMPLE = 1000


class Task(StrEnum):
    """What can be asked of a model; each system says which of these it can do."""

    SCORE = "score"
    SURPRISAL = "surprisal"
    PERPLEXITY = "perplexity"
    SAMPLE = "sample"
    PARSE = "parse"
    CLASSIFY = "classify"
    DECODE = "decode"


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


class LanguageModel(ModelVariants, ABC):
    """A trained model, never changed. Every system implements this.

    Everything that can be asked of a model is a method here, with the same arguments for every
    system. What a model does not do raises `UnsupportedTask`, which names the systems that do it;
    `can` tells beforehand.
    """

    system: ClassVar[str]
    tasks: ClassVar[frozenset[Task]]
    """What models of this system can do; a single model may lack something, which `can` knows."""
    config_class: ClassVar[type[Config]]
    #: Name of the tokenizer for strings; None if they are tokenized, and split at white space.
    tokenizer: ClassVar[str | None] = None
    #: Trees of a sentence that it can give at most; None for any number, 0 if it does not parse.
    most_trees: int | None = 0

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

    #: Set by training and loading, before anybody else has the model.
    _training_sentences: SentenceFilter | None = None

    @property
    def training_sentences(self) -> tuple[SentenceFilter, ...]:
        """Hashes of what it was trained on, by part in a mixture; nothing if that is not known."""
        return () if self._training_sentences is None else (self._training_sentences,)

    def remember(self, sentences: SentenceFilter | None) -> Self:
        """Return the model with hashes of what it was trained on; for whoever has just made it."""
        self._training_sentences = sentences
        return self

    def with_tokenizer(self, name: str | None) -> Self:
        """Return the model as one that takes raw text.

        Args:
            name: The tokenizer by which every string is tokenized, ``penn`` for that of
                `treelm.tokenize`; None for a model that splits strings at white space. Words in a
                list, and files, stay as they are.

        Raises:
            UsageError: if there is no such tokenizer.

        Examples:
            >>> from treelm.models.registry import train
            >>> text = [["rain", "fell", "."], ["it", "rained", "."]]
            >>> model = train("ngram", text, order=2, smoothing="kn").with_tokenizer("penn")
            >>> [each.word for each in model.surprisal("Rain fell.")]
            ['Rain', 'fell', '.']
        """
        from treelm.models.interface.raw_text import with_tokenizer

        return with_tokenizer(self, name)

    def taken(self, sentences: Iterable[Words]) -> Iterable[Words]:
        """Return sentences as the model takes them: strings tokenized if it has a tokenizer."""
        return sentences

    @property
    def unigram_counts(self) -> npt.NDArray[np.uint64] | None:
        """Counts of the training text by word id, that of the sentence end last, if known."""
        return None

    # -- copies: never changed, so it is its own copy -----------------------------------------

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: object) -> Self:
        return self

    def __sklearn_clone__(self) -> Self:
        return self

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

    # -- what it can do ---------------------------------------------------------------------

    def obstacle(self, task: Task) -> str | None:
        """Return the error code of what keeps this model from a task; None if it does it.

        It is ``E_NOT_INCREMENTAL`` for what goes word by word, ``E_NOT_NORMALIZED`` where scores
        are not probabilities, ``E_NO_PARSER`` without a parser, else ``E_UNSUPPORTED_TASK``.
        """
        if task is Task.PERPLEXITY and not self.info.normalized:
            return "E_NOT_NORMALIZED"
        if task in self.tasks:
            return None
        word_by_word = task in (Task.SURPRISAL, Task.DECODE)
        return "E_NOT_INCREMENTAL" if word_by_word else UnsupportedTask.default_code

    def can(self, task: Task) -> bool:
        """Return whether this model does a task."""
        return self.obstacle(task) is None

    @property
    def abilities(self) -> tuple[Task, ...]:
        """The tasks that this model does: perhaps fewer than `tasks`, which are its system's."""
        return tuple(filter(self.can, Task))

    def _repr_html_(self) -> str:
        from treelm.view.notebook import model_html

        return model_html(self.system, self.details(), self.abilities)

    def require(self, task: Task) -> None:
        """Refuse what this model does not do.

        Raises:
            UnsupportedTask: naming the systems that do it, with the code of the obstacle.
        """
        if not self.can(task):
            raise self.unable(task)

    def unable(self, task: Task) -> UnsupportedTask:
        """Return the error for a task that it does not do."""
        return refusal(self, task, self.obstacle(task) or UnsupportedTask.default_code)

    @property
    def incremental(self) -> IncrementalModel | None:
        """The model itself if it goes word by word, otherwise None."""
        return None

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
        """Yield the scores of sentences, in order: what `score` gives for each."""
        del threads
        for sentence in sentences_of(sentences):
            yield self.score(sentence, eos=eos)

    def sentence_log_probs(
        self, sentences: Sequence[Words], *, eos: bool = True, threads: int = 1
    ) -> npt.NDArray[np.float64]:
        """Return the log probabilities of sentences, in order."""
        given = list(sentences_of(sentences))
        scores = self.score_many(given, eos=eos, threads=threads)
        return np.fromiter((score.log_prob for score in scores), np.float64, len(given))

    def log_probs_and_unknown(
        self, sentences: Sequence[Words], *, eos: bool = True, threads: int = 1
    ) -> CountedScores:
        """Return what `sentence_log_probs` gives, and how many words are out of vocabulary."""
        from treelm.models.interface.scores import CountedScores

        given = list(sentences_of(sentences))
        text = encode_sentences(given, self.vocabulary)
        values = self.sentence_log_probs(given, eos=eos, threads=threads)
        return CountedScores(values, len(text.ids), text.unknown)

    def surprisal(self, sentence: Words, *, eos: bool = False) -> list[WordScore]:
        """Return the score of every word; `surprisal` of each is in bits.

        Args:
            sentence: Its words, or a string that is split at white space.
            eos: Whether a last row ``</s>`` stands for the end of the sentence.

        Raises:
            UnsupportedTask: ``E_NOT_INCREMENTAL`` if the model scores whole sentences only.
        """
        del sentence, eos
        raise self.unable(Task.SURPRISAL)

    def perplexity(
        self,
        sentences: Iterable[Words],
        *,
        oov_mode: OovMode = "include",
        strict_docs: bool = False,
        allow_overlap: bool = False,
        threads: int = 1,
    ) -> Perplexity:
        """Return how surprised the model is by a text, per word and sentence end.

        Args:
            sentences: The text; a `TextCorpus` is read by the kernel, in documents, and quickest.
            oov_mode: ``include`` unknown words, or ``skip`` them.
            strict_docs: Refuse a text of several sentences without marks between documents, if the
                model remembers the document.
            allow_overlap: Do not warn if many sentences stand in the training data.
            threads: Kernel threads; results do not depend on it.

        Raises:
            UnsupportedTask: ``E_NOT_NORMALIZED`` if the model gives no probabilities;
                ``E_NOT_INCREMENTAL`` if unknown words cannot be left out of whole sentences.
            CorpusFormatError: ``E_NO_DATA`` if there is no sentence; ``E_NO_DOCUMENTS`` if
                documents should be marked, and are not.
        """
        from treelm.models.interface.perplexity import text_perplexity

        self.require(Task.PERPLEXITY)
        return text_perplexity(
            self,
            sentences,
            oov_mode=oov_mode,
            strict_docs=strict_docs,
            allow_overlap=allow_overlap,
            threads=threads,
        )

    def continuation(
        self, words: Words, context: Words = "", *, bos: bool = True, eos: bool = False
    ) -> SentenceScore:
        """Return the score of words that go on from others, which are given and not scored.

        Args:
            words: What is scored, as words or as a string that is split at white space.
            context: The words of the sentence before it.
            bos: Whether the context begins the sentence; if not, it is from the middle of one,
                which n-gram models can score.
            eos: Whether the sentence ends after the words.

        Raises:
            UnsupportedTask: ``E_NOT_INCREMENTAL`` if the model scores whole sentences only.

        Examples:
            >>> from treelm.models.registry import train
            >>> text = [["rain", "fell"], ["rain", "came"]]
            >>> model = train("ngram", text, order=2, smoothing="kn")
            >>> model.continuation("fell", "rain").words[0].word
            'fell'
        """
        del words, context, bos, eos
        raise self.unable(Task.DECODE)

    def top(self, n: int = 10, context: Words = "", *, bos: bool = True) -> list[WordScore]:
        """Return the most probable next words after others, ``</s>`` among them, the first first.

        Args:
            n: How many.
            context: The words of the sentence so far.
            bos: Whether the context begins the sentence; see `continuation`.

        Raises:
            UnsupportedTask: ``E_NOT_INCREMENTAL`` if the model scores whole sentences only.
        """
        del n, context, bos
        raise self.unable(Task.DECODE)

    def sample(
        self,
        count: int,
        *,
        seed: int | None = None,
        first: int = 0,
        max_words: int = LONGEST_SAMPLE,
    ) -> list[Sample]:
        """Return sentences drawn from the model.

        Args:
            count: How many.
            seed: Sentence i depends on the seed and on i alone, not on how many are drawn. Without
                a seed there is a new one each time; `Sample.seed` says it.
            first: Number of the first sentence.
            max_words: A longer sentence is cut, or given up where it is drawn with a tree, and
                marked as not complete.

        Raises:
            UnsupportedTask: if the model does not sample.
        """
        del count, seed, first, max_words
        raise self.unable(Task.SAMPLE)

    # -- trees ------------------------------------------------------------------------------

    def parse(self, sentence: Words, k: int = 1) -> list[ScoredTree]:
        """Return up to `k` distinct trees of a sentence, the best first; none for no words.

        Args:
            sentence: Its words, or a string that is split at white space.
            k: How many trees; `most_trees` says how many the model can give.

        Raises:
            UnsupportedTask: if the model does not parse, or gives fewer trees.
        """
        del sentence, k
        raise self.unable(Task.PARSE)

    def parse_many(
        self,
        sentences: Sequence[Words],
        *,
        options: ParserOptions | None = None,
        threads: int = 1,
    ) -> list[ScoredTree | None]:
        """Return the best tree of every sentence, None for one without words.

        Args:
            sentences: The words of each, or strings that are split at white space.
            options: How the parser works; None for the model's own way.
            threads: Kernel threads; results do not depend on it.

        Raises:
            UnsupportedTask: if the model does not parse.
        """
        del sentences, options, threads
        raise self.unable(Task.PARSE)

    def k_best_many(
        self,
        sentences: Sequence[Words],
        k: int,
        *,
        options: ParserOptions | None = None,
        threads: int = 1,
    ) -> TreeLists:
        """Return up to `k` distinct trees of every sentence, the best first; none for no words.

        Args:
            sentences: The words of each, or strings that are split at white space.
            k: How many trees.
            options: How the parser works; None for the model's own way.
            threads: Kernel threads; results do not depend on it.

        Raises:
            UnsupportedTask: if the model does not parse, or gives fewer trees.
        """
        del sentences, k, options, threads
        raise self.unable(Task.PARSE)

    @property
    def parser_options(self) -> ParserOptions:
        """How it parses unless told otherwise."""
        from treelm.grammar.parser_options import ParserOptions

        return ParserOptions()

    # -- good or bad ------------------------------------------------------------------------

    def classify(self, sentence: Words) -> Decision:
        """Return whether a sentence is good: label, margin and probability.

        Args:
            sentence: Its words, or a string that is split at white space.

        Raises:
            UnsupportedTask: if the model is no classifier.
        """
        return next(self.classify_many([sentence]))

    def classify_many(self, sentences: Iterable[Words], *, threads: int = 1) -> Iterator[Decision]:
        """Yield what `classify` gives for each sentence, in order."""
        del sentences, threads
        raise self.unable(Task.CLASSIFY)

    def decision(self, sentence: Words) -> float:
        """Return the margin of a sentence, above zero if it is good; see `classify`."""
        return self.classify(sentence).margin

    # -- word by word: only incremental models ----------------------------------------------

    def initial(self, context: Context | None = None) -> State:
        """Return the state before any word."""
        del context
        raise self.unable(Task.DECODE)

    def advance(self, state: State, word: Word) -> Step:
        """Return the log probability of a word in a state, and the state after it."""
        del state, word
        raise self.unable(Task.DECODE)

    def finish(self, state: State) -> float:
        """Return the log probability that the sentence ends in this state."""
        del state
        raise self.unable(Task.DECODE)

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
        described = replace(self.description(), tokenizer=self.tokenizer)
        save_folder(Path(folder), described, self._write)

    def _write(self, writer: FolderWriter) -> None:
        self.write_files(writer)
        if self._training_sentences is not None:
            write_sentences(writer, self._training_sentences)

    @classmethod
    def opened(cls, folder: ModelFolder) -> Self:
        """Return the model in an opened folder, with what it remembers of its training data."""
        model = cls.from_folder(folder).remember(read_sentences(folder))
        name = folder.manifest.tokenizer
        if name is None:
            return model
        try:
            return model.with_tokenizer(name)
        except UsageError as error:
            raise ModelFileError(
                f"{visible(str(folder.path))}: {error} A newer treelm may have written the model.",
                code="E_MODEL_VERSION",
            ) from error

    @classmethod
    def load(cls, folder: str | os.PathLike[str], *, verify: bool = False) -> Self:
        """Return the model saved in a folder; its tables are mapped, not read.

        Args:
            folder: A model folder.
            verify: Read everything and compare checksums first.

        Raises:
            ModelFileError: if there is no such model, or it is damaged or of another system.
        """
        return read_folder(Path(folder), cls._from_own_folder, verify=verify)

    @classmethod
    def _from_own_folder(cls, opened: ModelFolder) -> Self:
        if opened.manifest.system != cls.system:
            raise ModelFileError(
                f"{opened.path} contains a {opened.manifest.system} model, not a {cls.system} one. "
                "`treelm.load` finds the right class.",
                code="E_MODEL_SYSTEM",
            )
        return cls.opened(opened)
