"""N-gram counts as a folder: counted anywhere, merged, and turned into a model later."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from treelm.corpus.corpus import TextCorpus, TreeCorpus
from treelm.corpus.encoder import EncodedText, encode_open, encode_text, encode_trees
from treelm.corpus.files import Source
from treelm.corpus.vocabulary import Vocabulary
from treelm.errors import (
    CorpusFormatError,
    EstimationError,
    ModelFileError,
    UsageError,
    VocabularyError,
    option,
)
from treelm.events.counts import EventCounter, EventCounts, Ids, Places
from treelm.models.interface.trained_model import corpus_name, corpus_record
from treelm.models.ngram.config import LARGEST_ORDER
from treelm.models.ngram.events import WordSpace, count_ngrams
from treelm.models.run import Run
from treelm.parallel.memory import MemoryLimit
from treelm.parallel.progress import SILENT, Progress
from treelm.store.folder import TABLES, FolderWriter, ModelFolder, read_folder, save_folder
from treelm.store.manifest import Description, TrainingCorpus
from treelm.store.schema import UNIGRAM_COUNTS, damage_in, read_tensors, read_words, write_words

SYSTEM = "ngram_counts"
EVENTS = "events"


@dataclass(frozen=True, eq=False)
class NgramCounts:
    """The counts of all n-grams of a text.

    Args:
        order: Length of the n-grams.
        vocabulary: The words of the ids in the events.
        events: N-grams, the last word first, with their counts.
        unigrams: Count of each word, then the number of sentences.
        corpora: What was counted.
    """

    order: int
    vocabulary: Vocabulary
    events: EventCounts
    unigrams: Places
    corpora: tuple[TrainingCorpus, ...]

    @classmethod
    def count(
        cls,
        corpus: TextCorpus | TreeCorpus,
        order: int,
        *,
        vocabulary: Vocabulary | None = None,
        threads: int = 1,
        memory: MemoryLimit | None = None,
        progress: Progress = SILENT,
    ) -> NgramCounts:
        """Count the n-grams of a text.

        Args:
            corpus: The text, or trees whose words it is.
            order: Length of the n-grams.
            vocabulary: The words to know; by default all words of the text.
            threads: Number of threads.
            memory: Memory limit.
            progress: Progress callback.

        Raises:
            EstimationError: ``E_NO_DATA`` for an empty text.
        """
        vocabulary, text = encode_corpus(corpus, vocabulary, threads=threads, progress=progress)
        events, unigrams = count_encoded(
            text, order, vocabulary, threads=threads, memory=memory, progress=progress
        )
        return cls(order, vocabulary, events, unigrams, (corpus_record(corpus, text.fingerprint),))

    @classmethod
    def from_folders(cls, folders: Sequence[Source], run: Run) -> NgramCounts:
        """Return the counts of folders, merged where there are several."""
        parts = [cls.load(folder) for folder in folders]
        if len(parts) == 1:
            return parts[0]
        return merge_ngram_counts(parts, threads=run.threads, memory=run.memory)

    @property
    def space(self) -> WordSpace:
        """The ids that occur."""
        return WordSpace.of(self.vocabulary)

    def save(self, folder: Source) -> None:
        """Save the counts as a folder that appears only when it is complete."""
        description = Description(
            system=SYSTEM,
            config={"order": self.order},
            vocabulary=self.vocabulary.fingerprint,
            corpora=self.corpora,
        )
        save_folder(Path(folder), description, self._write)

    def _write(self, writer: FolderWriter) -> None:
        tensors = {**self.events.to_tensors(EVENTS), UNIGRAM_COUNTS.name: self.unigrams}
        writer.tables(TABLES, tensors)
        write_words(writer, self.vocabulary)

    @classmethod
    def load(cls, folder: Source) -> NgramCounts:
        """Return the counts of a folder, mapped and not copied.

        Raises:
            ModelFileError: if the folder has no counts, or they were changed.
        """
        return read_folder(Path(folder), cls._read)

    @classmethod
    def _read(cls, opened: ModelFolder) -> NgramCounts:
        order = opened.manifest.config.get("order")
        if (
            opened.manifest.system != SYSTEM
            or not isinstance(order, int)
            or not 1 <= order <= LARGEST_ORDER
        ):
            raise ModelFileError(
                f"{opened.path}: this folder has no n-gram counts; make some with "
                "`treelm counts build`.",
                code="E_MANIFEST",
            )
        with damage_in(opened, again="count again"):
            vocabulary = read_words(opened)
            space = WordSpace.of(vocabulary)
            tables = opened.tables()
            found = read_tensors(tables, (UNIGRAM_COUNTS,), words=space.words)
            events = EventCounts.from_tensors(tables, EVENTS, largest=largest_ids(order, space))
        return cls(order, vocabulary, events, found[UNIGRAM_COUNTS.name], opened.manifest.corpora)


def count_encoded(
    text: EncodedText,
    order: int,
    vocabulary: Vocabulary,
    *,
    threads: int = 1,
    memory: MemoryLimit | None = None,
    progress: Progress = SILENT,
) -> tuple[EventCounts, Places]:
    """Return the n-grams of a text, and the count of each word, then the number of sentences."""
    space = WordSpace.of(vocabulary)
    events = count_ngrams(text, order, space, threads=threads, memory=memory, progress=progress)
    unigrams = np.zeros(space.words + 1, dtype=np.uint64)
    # In pieces: numpy counts a copy of twice the size.
    for first in range(0, len(text.ids), 1 << 20):
        piece = text.ids[first : first + (1 << 20)]
        unigrams += np.bincount(piece, minlength=space.words + 1).astype(np.uint64)
    unigrams[space.end] = len(text)
    return events, unigrams


def largest_ids(order: int, space: WordSpace) -> list[int]:
    """Return the largest id of every column of n-grams: only a context has the start in it."""
    return [space.end, *[space.start] * (order - 1)]


def merge_ngram_counts(
    parts: Sequence[NgramCounts], *, threads: int = 1, memory: MemoryLimit | None = None
) -> NgramCounts:
    """Return the counts of several texts as if they had been counted together.

    Counts over the same vocabulary are merged as they are. Where each knows all words of its own
    text, the merged counts know them all.

    Args:
        parts: Counts of the same order.
        threads: Number of threads.
        memory: Memory limit.

    Raises:
        UsageError: if there are none, or orders differ.
        VocabularyError: ``E_VOCABULARY_MISMATCH`` if vocabularies differ and some are closed.
    """
    if not parts:
        raise UsageError("there are no counts to merge.")
    orders = sorted({part.order for part in parts})
    if len(orders) > 1:
        raise UsageError(
            f"counts of order {orders[0]} and {orders[-1]} cannot be merged: count all texts with "
            f"the same {option('order')}."
        )
    vocabulary = parts[0].vocabulary
    if any(part.vocabulary.fingerprint != vocabulary.fingerprint for part in parts):
        vocabulary = union_of_words([part.vocabulary for part in parts])
    space = WordSpace.of(vocabulary)
    counter = EventCounter(orders[0], threads=threads, memory=memory)
    unigrams = np.zeros(space.words + 1, dtype=np.uint64)
    for part in parts:
        new_ids = _new_ids(part, vocabulary)
        unigrams[new_ids[: part.space.words + 1]] += part.unigrams
        if part.vocabulary.fingerprint == vocabulary.fingerprint:
            counter.merge(part.events)
        else:
            for rows, counts in part.events.blocks():
                counter.add(new_ids[rows], counts)
    corpora = tuple(record for part in parts for record in part.corpora)
    return NgramCounts(orders[0], vocabulary, counter.finish(), unigrams, corpora)


def _new_ids(part: NgramCounts, vocabulary: Vocabulary) -> Ids:
    """Return the new id of each id of a part, ``</s>`` and ``<s>`` included."""
    space = WordSpace.of(vocabulary)
    words: npt.NDArray[np.uint32] = vocabulary.ids_of(part.vocabulary.symbols)
    return np.append(words, np.array([space.end, space.start], dtype=np.uint32))


def union_of_words(vocabularies: Sequence[Vocabulary]) -> Vocabulary:
    """Return all words of vocabularies that each know all words of a text.

    Raises:
        VocabularyError: ``E_VOCABULARY_MISMATCH`` if one of them is closed.
    """
    words: dict[str, int] = {}
    for vocabulary in vocabularies:
        if vocabulary.source.get("name") != "all":
            raise VocabularyError(
                "the counts were made with different vocabularies, so the same word may be known "
                "in one and unknown in another. Count every text with the same "
                f"{option('vocabulary')}.",
                code="E_VOCABULARY_MISMATCH",
            )
        for item in vocabulary.entries:
            words[item.symbol] = words.get(item.symbol, 0) + item.count
    first = vocabularies[0]
    numbers = {
        name: sum(_number(vocabulary.source.get(name)) for vocabulary in vocabularies)
        for name in ("sentences", "tokens")
    }
    return Vocabulary.from_counts(
        words, profile=first.profile, style=first.style, source={"name": "all", **numbers}
    )


def _number(value: object) -> int:
    return value if isinstance(value, int) else 0


def encode_corpus(
    corpus: TextCorpus | TreeCorpus,
    vocabulary: Vocabulary | None,
    *,
    threads: int,
    progress: Progress,
) -> tuple[Vocabulary, EncodedText]:
    """Return a training text as ids, and the vocabulary, all words of the text by default.

    Raises:
        EstimationError: ``E_NO_DATA`` for an empty text.
    """
    if vocabulary is None:
        if isinstance(corpus, TreeCorpus):
            return encode_trees(corpus)
        return encode_open(corpus, threads=threads, progress=progress)

    def encode(*, training: bool) -> EncodedText:
        if isinstance(corpus, TreeCorpus):
            return encode_trees(corpus, vocabulary, training=training)[1]
        return encode_text(
            corpus, vocabulary, training=training, threads=threads, progress=progress
        )

    # Where the vocabulary was made from this very text by the streaming rule, words are unknown
    # until the place where they entered it.
    text = encode(training=True)
    if not len(text.ids):
        raise EstimationError(
            f"{corpus_name(corpus)}: contains no words to train on.", code="E_NO_DATA"
        )
    source = vocabulary.source
    same = (source.get("sentences"), source.get("tokens")) == (len(text), len(text.ids))
    if not same and any(item.entry is not None for item in vocabulary.entries):
        text = encode(training=False)
    return vocabulary, text


def encode_measured(
    measure: TextCorpus | TreeCorpus, vocabulary: Vocabulary, *, threads: int, progress: Progress
) -> EncodedText:
    """Return the ids of a text for evaluating a model over the vocabulary.

    Raises:
        CorpusFormatError: ``E_NO_DATA`` if it has no sentence.
    """
    try:
        return encode_corpus(measure, vocabulary, threads=threads, progress=progress)[1]
    except EstimationError as error:
        raise CorpusFormatError(
            f"{corpus_name(measure)}: contains no sentence to measure on. Is it the right file?",
            code="E_NO_DATA",
        ) from error
