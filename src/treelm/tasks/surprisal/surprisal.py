"""The surprisal of every word, as a table."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import islice

import numpy as np

from treelm.corpus.corpus import SentenceInDocument
from treelm.corpus.encoder import EncodedText, encode_sentences
from treelm.corpus.lengths import after_sentences, check_lengths
from treelm.corpus.vocabulary import SENTENCE_END
from treelm.errors import CorpusFormatError, VocabularyError
from treelm.models.interface.document_reader import DocumentReader
from treelm.models.interface.incremental import IncrementalModel, as_incremental
from treelm.models.interface.model import LanguageModel
from treelm.tasks.surprisal.measures import chosen_measures, measure_sentences, parsing_part
from treelm.tasks.surprisal.rows import Numbers, SentenceRows

#: Number of sentences scored together, unless line-buffered.
SENTENCES_AT_ONCE = 1024


def surprisal_rows(
    model: LanguageModel,
    sentences: Iterable[SentenceInDocument],
    *,
    eos: bool = False,
    measures: Sequence[str] = (),
    threads: int = 1,
    line_buffered: bool = False,
) -> Iterator[SentenceRows]:
    """Yield the rows of each sentence.

    Args:
        model: An incremental model.
        sentences: The text, for example ``TextCorpus(paths).with_documents()``.
        eos: Whether each sentence ends with a row ``</s>``.
        measures: Which of `treelm.tasks.surprisal.measures.MEASURES` are added, in their order.
        threads: Number of threads.
        line_buffered: Score every sentence as soon as it arrives.

    Raises:
        UnsupportedTask: ``E_NOT_INCREMENTAL`` if the model scores whole sentences only.
        CorpusFormatError: for anything but a sentence of words.
        TooLongSentence: with its place in the text, for one that the model does not take.
    """
    incremental = as_incremental(model)
    chosen = chosen_measures(model, measures)
    parser = parsing_part(model) if chosen else None
    rest = iter(sentences)
    number = 0
    reader = DocumentReader(incremental) if incremental.remembers_documents else None
    at_once = 1 if line_buffered else SENTENCES_AT_ONCE
    while batch := list(islice(rest, at_once)):
        try:
            with after_sentences(number):
                check_lengths((len(each.words) for each in batch), model.max_words, model.system)
                scores = (
                    incremental.score_batch([each.words for each in batch], threads=threads)
                    if reader is None
                    else reader.score(_encoded(batch, incremental))
                )
        except VocabularyError:
            _raise_with_place(incremental, batch, number)
            raise
        bits, log_probs, oov = scores.bits(), scores.log_probs, scores.oov
        besides: tuple[Numbers, ...] = ()
        if parser is not None:
            found = measure_sentences(parser, [each.words for each in batch], threads=threads)
            besides = tuple(np.ascontiguousarray(found[name]) for name in chosen)
        first = 0
        for document, words in batch:
            number += 1
            part = slice(first, first + len(words) + eos)
            yield SentenceRows(
                document + 1,
                number,
                (*words, SENTENCE_END) if eos else words,
                bits[part],
                log_probs[part],
                oov[part],
                tuple(column[part] for column in besides),
            )
            first += len(words) + 1


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
    text = encode_sentences([each.words for each in batch], model.vocabulary)
    return replace(text, documents=np.array([each.document for each in batch], np.uint32))
