"""The surprisal of every word, as a table."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import islice, repeat
from typing import Literal, NamedTuple

import numpy as np

from treelm.corpus.corpus import SentenceInDocument
from treelm.corpus.encoder import EncodedText, encode_sentences
from treelm.corpus.vocabulary import SENTENCE_END
from treelm.errors import CorpusFormatError, UnsupportedTask, VocabularyError
from treelm.extras import import_extra
from treelm.models.document_reader import DocumentReader
from treelm.models.incremental import IncrementalModel
from treelm.models.model import LanguageModel, Task
from treelm.tasks.measures import chosen_measures, measure_sentences, parsing_part

TableFormat = Literal["tsv", "csv", "jsonl", "parquet", "itemmeasures", "minicons"]

#: Sentences that are scored at once, unless each is wanted at once.
SENTENCES_AT_ONCE = 1024


class SurprisalRow(NamedTuple):
    """One word of a text.

    Args:
        doc_id: Number of the document, from 1.
        sent_id: Number of the sentence in the whole text, from 1.
        word_id: Number of the word in its sentence, from 1.
        word: The word as it stands.
        surprisal: In bits.
        log_prob: Natural logarithm of the probability.
        oov: Whether the model does not know the word.
        measures: What else was asked for, in the order of the columns.
    """

    doc_id: int
    sent_id: int
    word_id: int
    word: str
    surprisal: float
    log_prob: float
    oov: bool
    measures: tuple[float, ...] = ()


#: The columns that every model has.
COLUMNS = SurprisalRow._fields[:-1]


def surprisal_rows(
    model: LanguageModel,
    sentences: Iterable[SentenceInDocument],
    *,
    eos: bool = False,
    measures: Sequence[str] = (),
    threads: int = 1,
    line_buffered: bool = False,
) -> Iterator[list[SurprisalRow]]:
    """Yield the rows of each sentence.

    Args:
        model: A model that goes word by word.
        sentences: The text, for example ``TextCorpus(paths).with_documents()``.
        eos: Whether each sentence ends with a row ``</s>``.
        measures: Which of `treelm.tasks.measures.MEASURES` are added, in their order there.
        threads: Kernel threads; results do not depend on it.
        line_buffered: Score every sentence as soon as it comes.

    Raises:
        UnsupportedTask: ``E_NOT_INCREMENTAL`` if the model scores whole sentences only.
        CorpusFormatError: for what is no sentence of words.
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
            if reader is None:
                scores = incremental.score_batch([each.words for each in batch], threads=threads)
            else:
                scores = reader.score(_encoded(batch, incremental))
        except VocabularyError as error:
            place = f"one of the sentences {number + 1} to {number + len(batch)}"
            raise CorpusFormatError(f"{place}: {error}", code=error.code) from error
        columns = scores.bits().tolist(), scores.log_probs.tolist(), scores.oov.tolist()
        besides: Iterable[tuple[float, ...]] = repeat(())
        if parser is not None:
            found = measure_sentences(parser, [each.words for each in batch], threads=threads)
            besides = list(zip(*(found[name].tolist() for name in chosen), strict=True))
        first = 0
        for document, words in batch:
            number += 1
            size = len(words) + eos
            part = slice(first, first + size)
            numbers = repeat(document + 1), repeat(number), range(1, size + 1)
            shown = (*words, SENTENCE_END) if eos else words
            extra = besides[part] if isinstance(besides, list) else besides
            values = *(column[part] for column in columns), extra
            columns_here = zip(*numbers, shown, *values, strict=False)
            yield list(map(SurprisalRow._make, columns_here))
            first += len(words) + 1


def _encoded(batch: Sequence[SentenceInDocument], model: LanguageModel) -> EncodedText:
    text = encode_sentences([each.words for each in batch], model.vocabulary)
    return replace(text, documents=np.array([each.document for each in batch], np.uint32))


def as_incremental(model: LanguageModel) -> IncrementalModel:
    """Return the model if it goes word by word.

    Raises:
        UnsupportedTask: ``E_NOT_INCREMENTAL``.
    """
    if not isinstance(model, IncrementalModel):
        raise UnsupportedTask(
            f"surprisal is that of words, and a model of the system {model.system} scores whole "
            "sentences only. Use an incremental model such as ngram.",
            code="E_NOT_INCREMENTAL",
        )
    model.require(Task.SURPRISAL)
    return model


def table_lines(
    sentences: Iterable[list[SurprisalRow]],
    form: TableFormat = "tsv",
    measures: Sequence[str] = (),
) -> Iterator[bytes]:
    r"""Yield a table as bytes, the rows of one sentence at a time (parquet: all at the end).

    Args:
        sentences: The rows.
        measures: Names of the columns after those that every model has.
        form: ``tsv`` without any quoting, because ``"`` is a word; ``csv`` quoted where needed;
            ``jsonl`` one object a row; ``parquet``; ``itemmeasures``, the space-separated table of
            modelblocks; ``minicons``, one JSON list of words and bits a sentence.

    Examples:
        >>> row = SurprisalRow(1, 1, 1, '"', 1.0, -0.6931, False)
        >>> b"".join(table_lines([[row]])).decode().splitlines()[1]
        '1\t1\t1\t"\t1.0\t-0.6931\t0'
    """
    if form == "parquet":
        yield _parquet(sentences, measures)
        return
    if form in _SEPARATORS:
        columns = _ITEM_COLUMNS if form == "itemmeasures" else COLUMNS
        yield (_SEPARATORS[form].join((*columns, *measures)) + "\n").encode()
    for rows in sentences:
        yield _WRITERS[form](rows, measures).encode()


def _number(value: float) -> float | None:
    """JSON knows no infinity."""
    return value if math.isfinite(value) else None


def _tsv(rows: list[SurprisalRow], measures: Sequence[str]) -> str:
    if not measures:
        return "".join(
            f"{row.doc_id}\t{row.sent_id}\t{row.word_id}\t{row.word}\t{row.surprisal!r}\t"
            f"{row.log_prob!r}\t{row.oov:d}\n"
            for row in rows
        )
    return "".join("\t".join(map(str, _cells(row))) + "\n" for row in rows)


def _cells(row: SurprisalRow) -> list[object]:
    return [*row[: len(COLUMNS) - 1], int(row.oov), *row.measures]


def _csv(rows: list[SurprisalRow], measures: Sequence[str]) -> str:
    del measures
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(map(_cells, rows))
    return text.getvalue()


def _jsonl(rows: list[SurprisalRow], measures: Sequence[str]) -> str:
    lines = []
    for row in rows:
        found = dict(zip((*COLUMNS, *measures), (*row[: len(COLUMNS)], *row.measures), strict=True))
        finite = {
            name: _number(value) if isinstance(value, float) else value
            for name, value in found.items()
        }
        lines.append(json.dumps(finite, ensure_ascii=False) + "\n")
    return "".join(lines)


def _itemmeasures(rows: list[SurprisalRow], measures: Sequence[str]) -> str:
    # modelblocks counts sentences from 0 and positions from 1.
    del measures
    return "".join(
        " ".join(
            map(
                str,
                (
                    row.word,
                    row.sent_id - 1,
                    row.word_id,
                    row.doc_id,
                    row.surprisal,
                    *row.measures,
                ),
            )
        )
        + "\n"
        for row in rows
    )


def _minicons(rows: list[SurprisalRow], measures: Sequence[str]) -> str:
    del measures
    pairs = [(row.word, _number(row.surprisal)) for row in rows]
    return json.dumps(pairs, ensure_ascii=False) + "\n"


def _parquet(sentences: Iterable[list[SurprisalRow]], measures: Sequence[str]) -> bytes:
    polars = import_extra("polars", "Writing parquet")
    rows = [row for sentence in sentences for row in sentence]
    columns: dict[str, list[object]] = {
        name: [row[place] for row in rows] for place, name in enumerate(COLUMNS)
    }
    for place, name in enumerate(measures):
        columns[name] = [row.measures[place] for row in rows]
    kinds = (polars.Int64,) * 3 + (polars.String, polars.Float64, polars.Float64, polars.Boolean)
    kinds += (polars.Float64,) * len(measures)
    file = io.BytesIO()
    schema = dict(zip((*COLUMNS, *measures), kinds, strict=True))
    polars.DataFrame(columns, schema=schema).write_parquet(file)
    return file.getvalue()


_ITEM_COLUMNS = ("word", "sentid", "sentpos", "docid", "totsurp")
_SEPARATORS = {"tsv": "\t", "csv": ",", "itemmeasures": " "}
_WRITERS = {
    "tsv": _tsv,
    "csv": _csv,
    "jsonl": _jsonl,
    "itemmeasures": _itemmeasures,
    "minicons": _minicons,
}
