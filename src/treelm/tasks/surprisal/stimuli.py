"""Tables of stimuli: every row kept as it is, with the model's measures beside it."""

from __future__ import annotations

import csv
import io
import json
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, chain, groupby, pairwise
from typing import Literal

from treelm.characters import visible
from treelm.corpus.corpus import SentenceInDocument
from treelm.corpus.file_kinds import Wanted
from treelm.corpus.files import Source, read_lines, source_name
from treelm.corpus.tokenize import tokenize_words
from treelm.corpus.words import split_words
from treelm.errors import CorpusFormatError, TreelmWarning, UsageError, option
from treelm.extras import import_extra
from treelm.models.interface.model import LanguageModel
from treelm.tasks.surprisal.rows import SurprisalRow
from treelm.tasks.surprisal.surprisal import surprisal_rows

StimuliFormat = Literal["tsv", "csv", "jsonl", "parquet"]

#: Columns that say which rows are one sentence, where the user names none.
_SENTENCE_COLUMNS = (("sent_id",), ("sentence",), ("item", "condition"), ("item",))
#: A longer sentence is rather a text whose rows are not told apart.
_MANY_WORDS = 200
_ADDED = ("surprisal", "log_prob", "oov")


@dataclass(frozen=True)
class Stimuli:
    """A table with a row for every word or region of some sentences.

    Args:
        columns: Names of the columns.
        rows: The cells of each row, never changed and never reordered.
        sentence: The columns by which neighbouring rows belong to one sentence.
        is_raw: Whether words are raw text, which is tokenized.
    """

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    sentence: tuple[str, ...]
    is_raw: bool = False

    def sentences(self) -> Iterator[list[tuple[str, ...]]]:
        """Yield the words of each row, for one sentence after the other; tokens of raw text."""
        return map(tokenized_regions, self._regions()) if self.is_raw else self._regions()

    @property
    def longest(self) -> int:
        """Number of words of the longest sentence, as white space separates them."""
        return max((sum(map(len, regions)) for regions in self._regions()), default=0)

    def _regions(self) -> Iterator[list[tuple[str, ...]]]:
        places = [self.columns.index(name) for name in self.sentence]
        word = self.columns.index("word")
        for _, rows in groupby(self.rows, key=lambda row: [row[place] for place in places]):
            yield [split_words(row[word]) for row in rows]


def tokenized_regions(regions: Sequence[tuple[str, ...]]) -> list[tuple[str, ...]]:
    """Return the tokens of each region; the sentence is tokenized as a whole."""
    found = tokenize_words(" ".join(chain.from_iterable(regions)))
    ends = (0, *found.ends)
    lasts = [0, *accumulate(map(len, regions))]
    return [found.tokens[ends[first] : ends[last]] for first, last in pairwise(lasts)]


def read_stimuli(
    source: Source, sentence: Sequence[str] = (), *, tokenizing: bool = False
) -> Stimuli:
    """Return a table of stimuli: tab-separated without quotes, or ``.csv``.

    Args:
        source: A file with a header; it has a column ``word``, each cell of which has a word or
            the words of a region.
        sentence: The columns by which neighbouring rows belong to one sentence; by default
            ``sent_id``, ``sentence``, ``item`` and ``condition``, or ``item``.
        tokenizing: Whether words are raw text, which is tokenized sentence by sentence.

    Raises:
        CorpusFormatError: ``E_STIMULI``, naming the line.
        UsageError: for a column that does not exist.
    """
    name = source_name(source)
    is_csv = name.removesuffix(".gz").endswith(".csv")
    lines = list(read_lines(source, Wanted.CSV if is_csv else Wanted.TABLE))
    if is_csv:
        # Where numbers have commas, programs write semicolons, or tabs, and still call it .csv.
        separator = max(",;\t", key=lines[0].count) if lines else ","
        table = [tuple(row) for row in csv.reader(lines, delimiter=separator)]
    else:
        table = [tuple(line.split("\t")) for line in lines]
    table = [row for row in table if row and row != ("",)]
    if not table or "word" not in table[0] or len(set(table[0])) < len(table[0]):
        found = ", ".join(map(visible, table[0])) if table else "none"
        raise CorpusFormatError(
            f"{name}: the first line of a table of stimuli must name its columns, each once, and "
            f'the one with the words must be called "word". Columns: {found}. A table has tabs '
            "between columns, or is named .csv.",
            code="E_STIMULI",
            path=name,
            line=1,
        )
    columns, *rows = table
    for number, row in enumerate(rows, 2):
        if len(row) != len(columns) or not split_words(row[columns.index("word")]):
            raise CorpusFormatError(
                f"{name}:{number}: the row has {len(row)} cells for {len(columns)} columns, or no "
                "word. Is a tab or a quote missing?",
                code="E_STIMULI",
                path=name,
                line=number,
            )
    chosen = tuple(sentence) or next(
        (names for names in _SENTENCE_COLUMNS if set(names) <= set(columns)), ()
    )
    missing = [each for each in chosen if each not in columns]
    if missing or not chosen:
        raise UsageError(
            f"{name}: there is no column {missing[0] if missing else 'sent_id or item'} that tells "
            f"which rows are a sentence. Columns: {', '.join(columns)}."
        )
    stimuli = Stimuli(columns, tuple(rows), chosen, is_raw=tokenizing)
    if stimuli.longest > _MANY_WORDS:
        warnings.warn(
            f"{name}: the longest sentence has {stimuli.longest} words. Neighbouring rows with the "
            f"same {' and '.join(chosen)} are one sentence; {option('sentence')} names other "
            "columns.",
            TreelmWarning,
            stacklevel=2,
        )
    return stimuli


def stimuli_table(
    model: LanguageModel,
    stimuli: Stimuli,
    form: StimuliFormat = "tsv",
    *,
    measures: Sequence[str] = (),
    threads: int = 1,
) -> bytes:
    """Return the table with columns added: ``surprisal``, ``log_prob``, ``oov``, and measures.

    A region of several words has the sum of their surprisal, and the measures after its last word.
    """
    taken = [name for name in (*_ADDED, *measures) if name in stimuli.columns]
    if taken:
        raise UsageError(f'the table already has a column "{taken[0]}"; rename it.')
    added = list(_added_cells(model, stimuli, measures, threads=threads))
    columns = (*stimuli.columns, *_ADDED, *measures)
    if form == "parquet":
        polars = import_extra("polars", "Writing parquet")
        whole = [(*row, *cells) for row, cells in zip(stimuli.rows, added, strict=True)]
        frame = {name: [row[place] for row in whole] for place, name in enumerate(columns)}
        file = io.BytesIO()
        polars.DataFrame(frame).write_parquet(file)
        return file.getvalue()
    text = io.StringIO()
    rows = ([*row, *cells] for row, cells in zip(stimuli.rows, added, strict=True))
    if form == "jsonl":
        for row in rows:
            text.write(json.dumps(dict(zip(columns, row, strict=True)), ensure_ascii=False) + "\n")
    elif form == "csv":
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows(rows)
    else:
        text.write("\t".join(columns) + "\n")
        text.writelines("\t".join(map(str, row)) + "\n" for row in rows)
    return text.getvalue().encode()


def _added_cells(
    model: LanguageModel, stimuli: Stimuli, measures: Sequence[str], *, threads: int
) -> Iterator[list[object]]:
    sentences = list(stimuli.sentences())
    words = ((0, tuple(word for region in regions for word in region)) for regions in sentences)
    scored = surprisal_rows(
        model, (SentenceInDocument(*each) for each in words), measures=measures, threads=threads
    )
    for regions, columns in zip(sentences, scored, strict=True):
        rows = list(columns)
        place = 0
        for region in regions:
            part: list[SurprisalRow] = rows[place : place + len(region)]
            place += len(region)
            yield [
                sum(row.surprisal for row in part),
                sum(row.log_prob for row in part),
                int(any(row.oov for row in part)),
                *part[-1].measures,
            ]
