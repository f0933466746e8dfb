"""The surprisal of every word, as a table."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from treelm.corpus.corpus import SentenceInDocument
from treelm.corpus.encoder import EncodedText, encode_sentences
from treelm.corpus.lengths import after_sentences, check_lengths
from treelm.corpus.vocabulary import SENTENCE_END
from treelm.errors import CorpusFormatError, VocabularyError
from treelm.models.interface.document_reader import DocumentReader
from treelm.models.interface.incremental import IncrementalModel, as_incremental
from treelm.models.interface.model import LanguageModel
from treelm.parallel.executor import SERIAL, Executor
from treelm.tasks.surprisal.measures import chosen_measures, parsing_part, score_and_measure
from treelm.tasks.surprisal.rows import Numbers, SentenceRows

#: Number of sentences scored together, unless line-buffered.
SENTENCES_AT_ONCE = 1024
#: Number of sentences that a worker scores at a time, at least, where documents matter.
SENTENCES_A_SHARD = 128


class _Shard(NamedTuple):
    """Sentences that are scored together, and the number of those before."""

    before: int
    sentences: list[SentenceInDocument]


def _shards(
    sentences: Iterable[SentenceInDocument], size: int, *, whole_documents: bool
) -> Iterator[_Shard]:
    """Yield so many sentences at a time, or more, if documents are not to be cut."""
    before, shard = 0, list[SentenceInDocument]()
    for each in sentences:
        if whole_documents and len(shard) >= size and each.document != shard[-1].document:
            yield _Shard(before, shard)
            before, shard = before + len(shard), []
        shard.append(each)
        if not whole_documents and len(shard) >= size:  # at once, for who waits for the answer
            yield _Shard(before, shard)
            before, shard = before + len(shard), []
    if shard:
        yield _Shard(before, shard)


@dataclass(frozen=True, eq=False)
class _Scoring:
    """Scores sentences.

    Args:
        model: An incremental model.
        eos: Whether each sentence ends with a row ``</s>``.
        measures: Measures of parser states that are added.
        threads: Number of threads.
        reader: Reads on where the shard before ended; None for a reader of every shard.
    """

    model: LanguageModel
    eos: bool
    measures: tuple[str, ...]
    threads: int
    reader: DocumentReader | None = None

    @cached_property
    def _incremental(self) -> IncrementalModel:
        return as_incremental(self.model)

    def __call__(self, shard: _Shard) -> list[SentenceRows]:
        model, incremental, batch = self.model, self._incremental, shard.sentences
        reader = self.reader
        if reader is None and incremental.remembers_documents:
            reader = DocumentReader(incremental)
        try:
            with after_sentences(shard.before):
                check_lengths((len(each.words) for each in batch), model.max_words, model.system)
                sentences = [each.words for each in batch]
                besides: tuple[Numbers, ...] = ()
                parser = parsing_part(model) if self.measures else None
                if parser is not None:
                    scores, found = score_and_measure(parser, sentences, threads=self.threads)
                    besides = tuple(np.ascontiguousarray(found[name]) for name in self.measures)
                own: object = parser
                if own is not model or incremental.reads_spelling:
                    scores = (
                        incremental.score_batch(sentences, threads=self.threads)
                        if reader is None
                        else reader.score(_encoded(batch, incremental))
                    )
        except VocabularyError:
            _raise_with_place(incremental, batch, shard.before)
            raise
        bits, log_probs, oov = scores.bits(), scores.log_probs, scores.oov
        rows = []
        first = 0
        for number, (document, words) in enumerate(batch, shard.before + 1):
            part = slice(first, first + len(words) + self.eos)
            rows.append(
                SentenceRows(
                    document + 1,
                    number,
                    (*words, SENTENCE_END) if self.eos else words,
                    bits[part],
                    log_probs[part],
                    oov[part],
                    tuple(column[part] for column in besides),
                )
            )
            first += len(words) + 1
        return rows


def surprisal_rows(
    model: LanguageModel,
    sentences: Iterable[SentenceInDocument],
    *,
    eos: bool = False,
    measures: Sequence[str] = (),
    threads: int = 1,
    line_buffered: bool = False,
    executor: Executor = SERIAL,
) -> Iterator[SentenceRows]:
    """Yield the rows of each sentence.

    Args:
        model: An incremental model.
        sentences: The text, for example ``TextCorpus(paths).with_documents()``.
        eos: Whether each sentence ends with a row ``</s>``.
        measures: Which of `treelm.tasks.surprisal.measures.MEASURES` are added, in their order.
        threads: Number of threads.
        line_buffered: Score every sentence as soon as it arrives.
        executor: Does the work; where the model remembers documents, whole ones.

    Raises:
        UnsupportedTask: ``E_NOT_INCREMENTAL`` if the model scores whole sentences only.
        CorpusFormatError: for anything but a sentence of words.
        TooLongSentence: with its place in the text, for one that the model does not take.
    """
    incremental = as_incremental(model)
    chosen = tuple(chosen_measures(model, measures))
    if executor.threads is None:
        reader = DocumentReader(incremental) if incremental.remembers_documents else None
        work = _Scoring(model, eos, chosen, threads, reader)
        size, whole = 1 if line_buffered else SENTENCES_AT_ONCE, False
    else:
        work = _Scoring(model, eos, chosen, executor.threads)
        size, whole = SENTENCES_A_SHARD, incremental.remembers_documents
    for rows in executor.map(work, _shards(sentences, size, whole_documents=whole)):
        yield from rows


def _raise_with_place(
    model: IncrementalModel, batch: Sequence[SentenceInDocument], before: int
) -> None:
    """Refuse the first sentence of a batch that contains an invalid word."""
    for number, each in enumerate(batch, before + 1):
        try:
            model.vocabulary.encode(each.words)
            model.score_batch([each.words])
        except VocabularyError as error:
            raise CorpusFormatError(f"sentence {number}: {error}", code=error.code) from error


def _encoded(batch: Sequence[SentenceInDocument], model: LanguageModel) -> EncodedText:
    spells = model.spelling is not None
    text = encode_sentences([each.words for each in batch], model.vocabulary, written=spells)
    return replace(text, documents=np.array([each.document for each in batch], np.uint32))
