"""Tables of stimuli: every row kept as it is, with the measures of one or several models beside it.

A table has a row for each word or region of its sentences, or one for each whole sentence, which
then gets a row for each of its words.
"""

from __future__ import annotations

import csv
import io
import json
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, chain, groupby, pairwise
from typing import Any, Literal

from treelm.characters import visible
from treelm.corpus.corpus import SentenceInDocument
from treelm.corpus.file_kinds import Wanted
from treelm.corpus.files import Source, read_lines, source_name
from treelm.corpus.tokenize import tokenize_words
from treelm.corpus.tokenizers import Tokenizing
from treelm.corpus.words import split_words
from treelm.errors import CorpusFormatError, TreelmWarning, UsageError, option
from treelm.extras import import_extra
from treelm.models.interface.model import LanguageModel
from treelm.tasks.surprisal.measures import SUMMED, chosen_measures, parsing_part
from treelm.tasks.surprisal.rows import SurprisalRow
from treelm.tasks.surprisal.surprisal import surprisal_rows

StimuliFormat = Literal["tsv", "csv", "jsonl", "parquet"]

#: Columns that say which rows are one sentence, where the user names none.
_SENTENCE_COLUMNS = (("sent_id",), ("sentence",), ("item", "condition"), ("item",))
#: A longer sentence is rather a text whose rows are not told apart.
_MANY_WORDS = 200
_ADDED = ("surprisal", "log_prob", "oov")
#: The surprisal of each token of a cell, where some cell has several.
_PARTS = "surprisal_parts"
#: Columns that rows of whole sentences get for each of their words.
_WORD, _POSITION = "word", "position"
#: The column of whole sentences.
_SENTENCE = "sentence"


@dataclass(frozen=True)
class Stimuli:
    """A table with a row for every word or region of some sentences.

    Args:
        columns: Names of the columns.
        rows: The cells of each row, never changed and never reordered.
        numbers: By row, the number of its sentence; they never go down.
        is_raw: Whether words are raw text, which is tokenized.
        tokenize: What takes sentences of raw text apart.
        documents: By row, the number of the document of its sentence; they never go down. None
            where every sentence stands alone.
    """

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    numbers: tuple[int, ...]
    is_raw: bool = False
    tokenize: Tokenizing = tokenize_words
    documents: tuple[int, ...] | None = None

    def sentence_documents(self) -> list[int]:
        """Return the number of the document of each sentence."""
        documents = self.numbers if self.documents is None else self.documents
        return list(dict(zip(self.numbers, documents, strict=True)).values())

    def in_documents(self, names: Sequence[str]) -> Stimuli:
        """Return the table with neighbouring sentences as one document where columns agree.

        Raises:
            UsageError: for a column that does not exist, or that changes within a sentence.
        """
        missing = [name for name in names if name not in self.columns]
        if missing:
            raise UsageError(
                f'there is no column "{missing[0]}" that tells documents apart. Columns: '
                f"{', '.join(self.columns)}."
            )
        documents = _numbered([self.columns.index(name) for name in names], self.rows)
        if len(set(zip(self.numbers, documents, strict=True))) > len(set(self.numbers)):
            raise UsageError(
                f"a sentence belongs to two documents: {' and '.join(names)} change within it. "
                f"Name with {option('sentence')} the columns that tell sentences apart."
            )
        return replace(self, documents=documents)

    def sentences(self) -> Iterator[list[tuple[str, ...]]]:
        """Yield the words of each row, for one sentence after the other; tokens of raw text."""
        if not self.is_raw:
            return self._regions()
        return (tokenized_regions(regions, self.tokenize) for regions in self._regions())

    @property
    def longest(self) -> int:
        """Number of words of the longest sentence, as white space separates them."""
        return max((sum(map(len, regions)) for regions in self._regions()), default=0)

    def _regions(self) -> Iterator[list[tuple[str, ...]]]:
        word = self.columns.index(_WORD)
        pairs = zip(self.numbers, self.rows, strict=True)
        for _, rows in groupby(pairs, key=lambda pair: pair[0]):
            yield [split_words(row[word]) for _, row in rows]


def tokenized_regions(
    regions: Sequence[tuple[str, ...]], tokenize: Tokenizing = tokenize_words
) -> list[tuple[str, ...]]:
    """Return the tokens of each region; the sentence is tokenized as a whole."""
    found = tokenize(" ".join(chain.from_iterable(regions)))
    ends = (0, *found.ends)
    lasts = [0, *accumulate(map(len, regions))]
    return [found.tokens[ends[first] : ends[last]] for first, last in pairwise(lasts)]


def read_stimuli(
    source: Source,
    sentence: Sequence[str] = (),
    *,
    tokenizing: bool = False,
    whole_has_columns: bool = False,
) -> Stimuli:
    """Return a table of stimuli: tab-separated without quotes, ``.csv``, or ``.parquet``.

    Args:
        source: A file with a header; it has a column ``word``, each cell of which has a word or
            the words of a region, or a column ``sentence`` of whole sentences.
        sentence: The columns by which neighbouring rows belong to one sentence; by default
            ``sent_id``, ``sentence``, ``item`` and ``condition``, or ``item``.
        tokenizing: Whether words are raw text, which is tokenized sentence by sentence.
        whole_has_columns: Whether `sentence` is for tables of words only, and means nothing where
            every row is a whole sentence; otherwise it is refused there.

    Raises:
        CorpusFormatError: ``E_STIMULI``, naming the line.
        UsageError: for a column that does not exist.
    """
    name = source_name(source)
    table = _parquet(source) if name.endswith(".parquet") else _cells(source, name)
    header = table[0] if table else ()
    if len(set(header)) < len(header) or not {_WORD, _SENTENCE} & set(header):
        raise _not_stimuli(name, header)
    columns = () if whole_has_columns and _WORD not in header else sentence
    return _stimuli(name, table, columns, tokenizing=tokenizing)


def stimuli_of_frame(frame: Any, sentence: Sequence[str] = (), *, tokenizing: bool) -> Stimuli:
    """Return a table of stimuli that is a data frame of polars or pandas already.

    Args:
        frame: It has the columns that `read_stimuli` wants.
        sentence: As there.
        tokenizing: As there.

    Raises:
        UsageError: for what is no data frame.
        CorpusFormatError: ``E_STIMULI``, naming the row.
    """
    if not (hasattr(frame, "to_dict") and hasattr(frame, "columns")):
        raise UsageError(
            f"stimuli are a file or a data frame, not an object of the type {type(frame).__name__}."
        )
    kept = frame.to_dict(as_series=False) if hasattr(frame, "to_arrow") else frame.to_dict("list")
    columns = [[_text(cell) for cell in cells] for cells in kept.values()]
    table = [tuple(map(str, kept)), *zip(*columns, strict=True)]
    if not {_WORD, _SENTENCE} & set(table[0]):
        raise _not_stimuli("the data frame", table[0])
    return _stimuli("the data frame", table, sentence, tokenizing=tokenizing)


def _text(cell: object) -> str:
    return "" if cell is None else str(cell)


def _parquet(source: Source) -> list[tuple[str, ...]]:
    polars = import_extra("polars", "Reading parquet")
    try:
        frame = polars.read_parquet(source)
    except OSError:
        raise
    except Exception as error:  # of many kinds, none of which is public
        raise CorpusFormatError(
            f"{source_name(source)}: not a parquet file ({error}).",
            code="E_STIMULI",
            path=source_name(source),
        ) from error
    columns = [[_text(cell) for cell in cells] for cells in frame.to_dict(as_series=False).values()]
    return [tuple(frame.columns), *zip(*columns, strict=True)]


def _cells(source: Source, name: str) -> list[tuple[str, ...]]:
    """Return the rows of a file, its header first; blank lines are left out."""
    is_csv = name.removesuffix(".gz").endswith(".csv")
    lines = list(read_lines(source, Wanted.CSV if is_csv else Wanted.TABLE))
    if is_csv:
        # Where numbers have commas, programs write semicolons, or tabs, and still call it .csv.
        separator = max(",;\t", key=lines[0].count) if lines else ","
        table = [tuple(row) for row in csv.reader(lines, delimiter=separator)]
    else:
        table = [tuple(line.split("\t")) for line in lines]
    return [row for row in table if row and row != ("",)]


def _not_stimuli(name: str, columns: Sequence[str]) -> CorpusFormatError:
    found = ", ".join(map(visible, columns)) or "none"
    return CorpusFormatError(
        f"{name}: the first line of a table of stimuli must name its columns, each once, and the "
        f'one with the words must be called "word", or "sentence" where each row is a whole '
        f"sentence. Columns: {found}. A table has tabs between columns, or is named .csv or "
        ".parquet.",
        code="E_STIMULI",
        path=name,
        line=1,
    )


def _stimuli(
    name: str, table: Sequence[tuple[str, ...]], sentence: Sequence[str], *, tokenizing: bool
) -> Stimuli:
    """Return the table of a header and rows."""
    columns, *rows = table
    is_whole = _WORD not in columns
    words = columns.index(_SENTENCE if is_whole else _WORD)
    for number, row in enumerate(rows, 2):
        if len(row) != len(columns) or not split_words(row[words]):
            raise CorpusFormatError(
                f"{name}:{number}: the row has {len(row)} cells for {len(columns)} columns, or no "
                "word. Is a tab or a quote missing?",
                code="E_STIMULI",
                path=name,
                line=number,
            )
    if is_whole:
        if sentence:
            raise UsageError(
                f"{name}: every row is a whole sentence, so that no columns tell sentences apart; "
                f"leave {option('sentence')} out."
            )
        return _taken_apart(columns, rows, words, is_raw=tokenizing)
    chosen = tuple(sentence) or next(
        (names for names in _SENTENCE_COLUMNS if set(names) <= set(columns)), ()
    )
    missing = [each for each in chosen if each not in columns]
    if missing or not chosen:
        raise UsageError(
            f"{name}: there is no column {missing[0] if missing else 'sent_id or item'} that tells "
            f"which rows are a sentence. Columns: {', '.join(columns)}."
        )
    numbers = _numbered([columns.index(each) for each in chosen], rows)
    stimuli = Stimuli(columns, tuple(rows), numbers, is_raw=tokenizing)
    if stimuli.longest > _MANY_WORDS:
        warnings.warn(
            f"{name}: the longest sentence has {stimuli.longest} words. Neighbouring rows with the "
            f"same {' and '.join(chosen)} are one sentence; {option('sentence')} names other "
            "columns.",
            TreelmWarning,
            stacklevel=3,
        )
    return stimuli


def _numbered(places: Sequence[int], rows: Sequence[tuple[str, ...]]) -> tuple[int, ...]:
    """Return for each row how often the cells of some columns have changed before it."""
    keys = [tuple(row[place] for place in places) for row in rows]
    changes = (key != before for before, key in pairwise(keys))
    return tuple(accumulate(changes, initial=0)) if rows else ()


def _taken_apart(
    columns: tuple[str, ...], rows: Sequence[tuple[str, ...]], words: int, *, is_raw: bool
) -> Stimuli:
    """Return whole sentences with a row for each word."""
    if _POSITION in columns:
        raise UsageError(f'the table already has a column "{_POSITION}"; rename it.')
    made = [
        (number, (*row, str(position), word))
        for number, row in enumerate(rows)
        for position, word in enumerate(split_words(row[words]), 1)
    ]
    return Stimuli(
        (*columns, _POSITION, _WORD),
        tuple(row for _, row in made),
        tuple(number for number, _ in made),
        is_raw=is_raw,
    )


@dataclass(frozen=True)
class MeasuredStimuli:
    """A table of stimuli with the columns of models added.

    Args:
        columns: Names of all columns.
        rows: The cells of each row: texts as they were, then numbers.
    """

    columns: tuple[str, ...]
    rows: tuple[tuple[object, ...], ...]

    def to_frame(self) -> Any:
        """Return the table as a data frame of polars, whose `to_pandas` gives one of pandas."""
        polars = import_extra("polars", "A data frame")
        cells = zip(*self.rows, strict=True) if self.rows else ((),) * len(self.columns)
        return polars.DataFrame(dict(zip(self.columns, map(list, cells), strict=True)))

    def to_bytes(self, form: StimuliFormat = "tsv") -> bytes:
        """Return the table as the content of a file."""
        if form == "parquet":
            file = io.BytesIO()
            self.to_frame().write_parquet(file)
            return file.getvalue()
        text = io.StringIO()
        if form == "jsonl":
            for row in self.rows:
                record = dict(zip(self.columns, row, strict=True))
                text.write(json.dumps(record, ensure_ascii=False) + "\n")
        elif form == "csv":
            writer = csv.writer(text, lineterminator="\n")
            writer.writerow(self.columns)
            writer.writerows(self.rows)
        else:
            text.write("\t".join(self.columns) + "\n")
            text.writelines("\t".join(map(str, row)) + "\n" for row in self.rows)
        return text.getvalue().encode()


def measure_stimuli(
    models: LanguageModel | Mapping[str, LanguageModel],
    stimuli: Stimuli,
    *,
    measures: Sequence[str] = (),
    threads: int = 1,
) -> MeasuredStimuli:
    """Return the table with columns added: ``surprisal``, ``log_prob``, ``oov``, and measures.

    A cell of several tokens has the sum of their surprisal and of its parts ``syntactic`` and
    ``lexical``, and the other measures after its last one;
    ``surprisal_parts`` then has the surprisal of each, with spaces between. Where there are several
    models, the name of each follows the names of its columns after an underscore.

    Args:
        models: A model, or several by name.
        stimuli: The table.
        measures: Names of measures of a parser, or ``all``; a model that has none adds none.
        threads: Number of threads.

    Raises:
        UsageError: if the table has a column of such a name already.
    """
    named = {"": models} if isinstance(models, LanguageModel) else dict(models)
    sentences = list(stimuli.sentences())
    has_parts = any(len(region) > 1 for region in chain.from_iterable(sentences))
    columns = list(stimuli.columns)
    cells: list[list[Sequence[object]]] = []
    for name, model in named.items():
        chosen = chosen_measures(model, _had_by(model, measures, alone=len(named) == 1))
        parts = (_PARTS,) if has_parts else ()
        columns += [f"{each}_{name}" if len(named) > 1 else each for each in _ADDED]
        columns += [f"{each}_{name}" if len(named) > 1 else each for each in (*parts, *chosen)]
        documents = stimuli.sentence_documents()
        added = _added_cells(
            model, sentences, documents, chosen, has_parts=has_parts, threads=threads
        )
        cells.append(list(added))
    twice = [each for each in columns if columns.count(each) > 1]
    if twice:
        raise UsageError(f'the table already has a column "{twice[0]}"; rename it.')
    rows = (
        (*row, *chain.from_iterable(added))
        for row, *added in zip(stimuli.rows, *cells, strict=True)
    )
    return MeasuredStimuli(tuple(columns), tuple(rows))


def _had_by(model: LanguageModel, measures: Sequence[str], *, alone: bool) -> Sequence[str]:
    """Return the measures that are asked of one of several models: none if it parses nothing."""
    return measures if alone or parsing_part(model) is not None else ()


def _added_cells(
    model: LanguageModel,
    sentences: Sequence[Sequence[tuple[str, ...]]],
    documents: Sequence[int],
    measures: Sequence[str],
    *,
    has_parts: bool,
    threads: int,
) -> Iterator[Sequence[object]]:
    words = (tuple(chain.from_iterable(regions)) for regions in sentences)
    text = map(SentenceInDocument, documents, words)
    scored = surprisal_rows(model, text, measures=measures, threads=threads)
    for regions, columns in zip(sentences, scored, strict=True):
        rows = list(columns)
        place = 0
        for region in regions:
            part: list[SurprisalRow] = rows[place : place + len(region)]
            place += len(region)
            parts = (" ".join(repr(row.surprisal) for row in part),) if has_parts else ()
            yield (
                sum(row.surprisal for row in part),
                sum(row.log_prob for row in part),
                int(any(row.oov for row in part)),
                *parts,
                *(_of_region(name, part, place) for place, name in enumerate(measures)),
            )


def _of_region(name: str, rows: Sequence[SurprisalRow], place: int) -> float:
    """Return a measure of a region: the sum over its words where that means something."""
    if name in SUMMED:
        return sum(row.measures[place] for row in rows)
    return rows[-1].measures[place]


def model_names(folders: Iterable[str]) -> tuple[str, ...]:
    """Return what columns call models: the last parts of their folders.

    Raises:
        UsageError: if two would be called the same.

    Examples:
        >>> model_names(["models/hhmm/", "en-ngram"])
        ('hhmm', 'en-ngram')
    """
    names = tuple(folder.rstrip("/").rpartition("/")[2] or folder for folder in folders)
    for name in names:
        if names.count(name) > 1:
            raise UsageError(
                f'two models are called "{visible(name)}", by which columns are named. Rename or '
                "link one of the folders."
            )
    return names
