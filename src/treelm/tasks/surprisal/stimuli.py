"""Tables of stimuli: every row kept as it is, with the measures of one or several models beside it.

A table has a row for each word or region of its sentences, or one for each whole sentence, which
then gets a row for each of its words.
"""

from __future__ import annotations

import csv
import io
import json
import math
import re
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, chain, groupby, pairwise
from typing import Any, Literal

from treelm.characters import visible
from treelm.corpus.corpus import SentenceInDocument
from treelm.corpus.files import Source, source_name
from treelm.corpus.tables import NumberedRow, read_table, text_of
from treelm.corpus.tokenize import tokenize_words
from treelm.corpus.tokenizers import Tokenizing
from treelm.corpus.words import split_words
from treelm.errors import CorpusFormatError, TreelmWarning, UsageError, option
from treelm.extras import import_extra
from treelm.models.interface.incremental import as_incremental
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
        rows: The cells of each row, never changed and never reordered: texts, or what a data frame
            or a parquet file has.
        numbers: By row, the number of its sentence; they never go down.
        is_raw: Whether words are raw text, which is tokenized.
        tokenize: What takes sentences of raw text apart.
        documents: By row, the number of the document of its sentence; they never go down. None
            where every sentence stands alone.
    """

    columns: tuple[str, ...]
    rows: tuple[tuple[object, ...], ...]
    numbers: tuple[int, ...]
    is_raw: bool = False
    tokenize: Tokenizing = tokenize_words
    documents: tuple[int, ...] | None = None

    def texts(self, column: str) -> list[str]:
        """Return the cells of a column, as text."""
        place = self.columns.index(column)
        return [text_of(row[place]) for row in self.rows]

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
        pairs = zip(self.numbers, self.texts(_WORD), strict=True)
        for _, words in groupby(pairs, key=lambda pair: pair[0]):
            yield [split_words(word) for _, word in words]


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
    table = read_table(source, "E_STIMULI")
    header = tuple(map(str, table[0][1])) if table else ()
    if len(set(header)) < len(header) or not {_WORD, _SENTENCE} & set(header):
        raise _not_stimuli(name, header)
    columns = () if whole_has_columns and _WORD not in header else sentence
    return _stimuli(name, header, table[1:], columns, tokenizing=tokenizing)


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
    header = tuple(map(str, kept))
    if not {_WORD, _SENTENCE} & set(header):
        raise _not_stimuli("the data frame", header)
    rows = list(enumerate(zip(*kept.values(), strict=True)))
    return _stimuli("the data frame", header, rows, sentence, tokenizing=tokenizing)


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
    name: str,
    columns: tuple[str, ...],
    given: Sequence[NumberedRow],
    sentence: Sequence[str],
    *,
    tokenizing: bool,
) -> Stimuli:
    """Return the table of a header and rows."""
    is_whole = _WORD not in columns
    words = columns.index(_SENTENCE if is_whole else _WORD)
    for number, cells in given:
        if len(cells) != len(columns) or not split_words(text_of(cells[words])):
            raise CorpusFormatError(
                f"{name}:{number}: the row has {len(cells)} cells for {len(columns)} columns, or "
                "no word. Is a tab or a quote missing, or was a word such as NA or null taken for "
                "a missing value?",
                code="E_STIMULI",
                path=name,
                line=number,
            )
    rows = [cells for _, cells in given]
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
    for doubt in _doubts(stimuli, chosen):
        warnings.warn(f"{name}: {doubt}", TreelmWarning, stacklevel=3)
    return stimuli


def _doubts(stimuli: Stimuli, chosen: Sequence[str]) -> Iterator[str]:
    """Yield what makes it doubtful that neighbouring rows were put together rightly."""
    names = " and ".join(chosen)
    advice = f"Neighbouring rows with the same {names} are one sentence"
    if stimuli.longest > _MANY_WORDS:
        yield (
            f"the longest sentence has {stimuli.longest} words. {advice}; {option('sentence')} "
            "names other columns."
        )
    places = [stimuli.columns.index(each) for each in chosen]
    others = [
        place
        for place, each in enumerate(stimuli.columns)
        if each in ("item", "condition") and each not in chosen
    ]
    word = stimuli.columns.index(_WORD)
    seen: dict[tuple[object, ...], list[str]] = {}
    pairs = zip(stimuli.numbers, stimuli.rows, strict=True)
    found: dict[str, str] = {}
    for _, group in groupby(pairs, key=lambda pair: pair[0]):
        rows = [row for _, row in group]
        key = tuple(rows[0][place] for place in places)
        words = [text_of(row[word]) for row in rows]
        shown = ", ".join(f"{name} {text_of(cell)}" for name, cell in zip(chosen, key, strict=True))
        if seen.setdefault(key, words) != words:
            found.setdefault(
                "parted",
                f"the rows of {shown} do not stand together, and were read as several sentences. "
                f"{advice}: sort the table.",
            )
        if _times_repeated(words) > 1:
            found.setdefault(
                "repeated",
                f"the words of {shown} are the same {_times_repeated(words)} times over, and were "
                f"read as one sentence. {advice}: are there several readers or lists? Leave all "
                f"rows but those of one out, or name their column too with {option('sentence')}.",
            )
        for place in others:
            if len({row[place] for row in rows}) > 1:
                found.setdefault(
                    "joined",
                    f"the column {stimuli.columns[place]} changes within the sentence of {shown}. "
                    f"{advice}; {option('sentence')} names other columns.",
                )
    yield from found.values()


def _times_repeated(words: Sequence[str]) -> int:
    """Return how often a sentence says the same: all words again, or every word several times.

    Examples:
        >>> _times_repeated("a dog ran a dog ran".split()), _times_repeated("a a b b".split())
        (2, 2)
        >>> _times_repeated("no no".split()), _times_repeated("a dog ran".split())
        (1, 1)
    """
    size = len(words)
    for times in range(2, size // 2 + 1 if len(set(words)) > 1 else 0):
        if size % times:
            continue
        part = size // times
        if list(words[:part]) * times == list(words):
            return times
        if list(words) == [word for word in words[::times] for _ in range(times)]:
            return times
    return 1


def _numbered(places: Sequence[int], rows: Sequence[tuple[object, ...]]) -> tuple[int, ...]:
    """Return for each row how often the cells of some columns have changed before it."""
    keys = [tuple(text_of(row[place]) for place in places) for row in rows]
    changes = (key != before for before, key in pairwise(keys))
    return tuple(accumulate(changes, initial=0)) if rows else ()


def _taken_apart(
    columns: tuple[str, ...], rows: Sequence[tuple[object, ...]], words: int, *, is_raw: bool
) -> Stimuli:
    """Return whole sentences with a row for each word."""
    if _POSITION in columns:
        raise UsageError(f'the table already has a column "{_POSITION}"; rename it.')
    made = [
        (number, (*row, position, word))
        for number, row in enumerate(rows)
        for position, word in enumerate(split_words(text_of(row[words])), 1)
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
        rows: The cells of each row: as they were, then numbers.
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
                record = dict(zip(self.columns, map(_json_cell, row), strict=True))
                text.write(json.dumps(record, ensure_ascii=False) + "\n")
        elif form == "csv":
            writer = csv.writer(text, lineterminator="\n")
            writer.writerow(self.columns)
            writer.writerows(map(text_of, row) for row in self.rows)
        else:
            text.write("\t".join(self.columns) + "\n")
            text.writelines("\t".join(map(_tsv_cell, row)) + "\n" for row in self.rows)
        return text.getvalue().encode()


def _tsv_cell(cell: object) -> str:
    """Return a cell as text that is one cell of a table without quotes."""
    return re.sub(r"[\t\r\n]+", " ", text_of(cell))


def _json_cell(cell: object) -> object:
    """Return a cell as JSON has it: numbers that it lacks are null, other objects text."""
    if isinstance(cell, float):
        return cell if math.isfinite(cell) else None
    return cell if cell is None or isinstance(cell, str | int) else text_of(cell)


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
        UsageError: if the table has a column of such a name already, or documents that no model
            remembers.
    """
    named = {"": models} if isinstance(models, LanguageModel) else dict(models)
    sentences = list(stimuli.sentences())
    has_parts = any(len(region) > 1 for region in chain.from_iterable(sentences))
    parts = (_PARTS,) if has_parts else ()
    columns = list(stimuli.columns)
    chosen = _chosen_by_model(named, measures)
    for name in named:
        added = (*_ADDED, *parts, *chosen[name])
        columns += [f"{each}_{name}" if len(named) > 1 else each for each in added]
    twice = [each for each in columns if columns.count(each) > 1]
    if twice:
        raise UsageError(f'the table already has a column "{twice[0]}"; rename it.')
    if stimuli.documents is not None and not any(map(_remembers, named.values())):
        raise UsageError(
            f"{option('document')} is for models that remember the sentences before (plsa, or "
            "composite with topics); here every model starts each sentence anew."
        )
    documents = stimuli.sentence_documents()
    cells = [
        list(
            _added_cells(
                model, sentences, documents, chosen[name], has_parts=has_parts, threads=threads
            )
        )
        for name, model in named.items()
    ]
    rows = (
        (*row, *chain.from_iterable(added))
        for row, *added in zip(stimuli.rows, *cells, strict=True)
    )
    return MeasuredStimuli(tuple(columns), tuple(rows))


def _remembers(model: LanguageModel) -> bool:
    return as_incremental(model).remembers_documents


def _chosen_by_model(
    models: Mapping[str, LanguageModel], measures: Sequence[str]
) -> dict[str, tuple[str, ...]]:
    """Return the measures of each model; of several, those that parse nothing have none."""
    parsing = [name for name, model in models.items() if parsing_part(model) is not None]
    asked = parsing or models  # those that cannot say so
    return {
        name: chosen_measures(model, measures if name in asked else ())
        for name, model in models.items()
    }


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
