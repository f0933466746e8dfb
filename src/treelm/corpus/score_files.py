r"""Score files: what models said about sentences, kept for later evaluation.

A table has a first line with the names of its columns, then one line per sentence, separated by
tabs: ``id len logp_model logp_unigram n_trees fallback`` for probability models, ``id len
score`` for classifiers. A plain file has one number per line, as ``treelm score`` writes it; a
blank line ends a document. Outcome files have one 0 or 1 per line.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from treelm.characters import visible
from treelm.corpus.file_kinds import Wanted
from treelm.corpus.files import Source, read_lines, source_name, write_atomically
from treelm.errors import CorpusFormatError

T = TypeVar("T")
Numbers = npt.NDArray[np.float64]
WholeNumbers = npt.NDArray[np.int64]

#: Columns of the two kinds of tables.
PROBABILITY_COLUMNS = ("id", "len", "logp_model", "logp_unigram", "n_trees", "fallback")
CLASSIFIER_COLUMNS = ("id", "len", "score")
#: How right and wrong, or good and bad, are written.
LABELS = {
    "1": True,
    "+1": True,
    "+": True,
    "good": True,
    "0": False,
    "-1": False,
    "-": False,
    "bad": False,
}

_NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?|-inf", re.ASCII)
_WHOLE = re.compile(r"\d{1,15}", re.ASCII)


@dataclass(frozen=True, eq=False)
class ScoreTable:
    """Scores of sentences.

    Args:
        ids: Names of the sentences, all different.
        scores: Natural log probabilities, or what a classifier gives; minus infinity is allowed.
        lengths: Number of words of each; None where the file does not say.
        unigram: Natural log probabilities of the words alone; None for classifiers.
        n_trees: Parses that were summed; None for classifiers.
        fallback: Whether a fallback scored the sentence instead of the model; None for classifiers.
        documents: Number of each sentence's document; None where the file does not say.
        name: What messages call it.
    """

    ids: tuple[str, ...]
    scores: Numbers
    lengths: WholeNumbers | None = None
    unigram: Numbers | None = None
    n_trees: WholeNumbers | None = None
    fallback: npt.NDArray[np.bool_] | None = None
    documents: WholeNumbers | None = None
    name: str = "scores"

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def is_classifier(self) -> bool:
        """Whether it declares that it holds no log probabilities."""
        return self.lengths is not None and self.unigram is None

    def take(self, places: Sequence[int] | WholeNumbers) -> ScoreTable:
        """Return the table of the given rows."""
        rows = np.asarray(places, dtype=np.int64)

        def at(column: npt.NDArray[np.generic] | None) -> npt.NDArray[np.generic] | None:
            return None if column is None else column[rows]

        return ScoreTable(
            ids=tuple(self.ids[place] for place in rows.tolist()),
            scores=self.scores[rows],
            lengths=at(self.lengths),  # type: ignore[arg-type]
            unigram=at(self.unigram),  # type: ignore[arg-type]
            n_trees=at(self.n_trees),  # type: ignore[arg-type]
            fallback=at(self.fallback),  # type: ignore[arg-type]
            documents=at(self.documents),  # type: ignore[arg-type]
            name=self.name,
        )


# -- writing --------------------------------------------------------------------------------


def write_score_table(target: Source, table: ScoreTable) -> None:
    """Write a table; numbers are read back exactly, to the last bit.

    Raises:
        ValueError: if it has no lengths.
        OutputFileError: if the file cannot be written.
    """
    if table.lengths is None:
        raise ValueError("a table of scores needs the lengths of the sentences")
    columns: list[list[str]] = [list(table.ids), _whole(table.lengths), _exact(table.scores)]
    names: tuple[str, ...] = CLASSIFIER_COLUMNS
    if table.unigram is not None:
        names = PROBABILITY_COLUMNS
        nothing = np.zeros(len(table), dtype=np.int64)
        trees = nothing if table.n_trees is None else table.n_trees
        fallback = nothing if table.fallback is None else table.fallback.astype(np.int64)
        columns += [_exact(table.unigram), _whole(trees), _whole(fallback)]
    with write_atomically(target) as out:
        for row in [names, *zip(*columns, strict=True)]:
            out.write(("\t".join(row) + "\n").encode())


def write_outcomes(target: Source, outcomes: Iterable[bool]) -> None:
    """Write one line per item: 1 if the answer was right, 0 if it was wrong."""
    with write_atomically(target) as out:
        for outcome in outcomes:
            out.write(b"1\n" if outcome else b"0\n")


def _whole(values: WholeNumbers) -> list[str]:
    return [str(value) for value in values.tolist()]


def _exact(values: Numbers) -> list[str]:
    return [repr(value) for value in values.tolist()]


# -- reading --------------------------------------------------------------------------------


def read_scores(source: Source) -> ScoreTable:
    """Return the scores in a file, a table or one number per line.

    Raises:
        CorpusFormatError: ``E_SCORE_FILE`` with file and line for anything but a score, ``E_NAN``
            for NaN and infinity, ``E_SCORE_IDS`` for a duplicate id, ``E_NO_DATA`` for a file
            without scores.
    """
    return parse_scores(read_lines(source, Wanted.SCORES), source)


def parse_scores(lines: Iterable[str], source: Source) -> ScoreTable:
    """Return the scores in the lines of a file; `source` is what messages call it."""
    everything = list(lines)
    reading = _Reading(source_name(source))
    first = everything[0] if everything else ""
    table = (
        reading.table(everything)
        if first.split("\t")[0] == "id" or "\t" in first
        else reading.plain(everything)
    )
    if not len(table):
        raise CorpusFormatError(
            f"{reading.name}: contains no scores. Is it the right file?",
            code="E_NO_DATA",
            path=reading.name,
        )
    return table


def parse_labels(lines: Iterable[str]) -> npt.NDArray[np.bool_] | None:
    """Return labels, one per line (1/0, +1/-1, +/-, good/bad); None if there are other lines.

    Examples:
        >>> parse_labels(["1", "0", "bad"]), parse_labels(["1", "0.5"])
        (array([ True, False, False]), None)
    """
    found = [LABELS.get(line.strip(" \t")) for line in lines]
    if not found or None in found:
        return None
    return np.array(found, dtype=np.bool_)


def parse_answers(lines: Sequence[str], source: Source) -> dict[str, bool] | None:
    """Return the answers of a table with the columns ``id`` and ``right``; None for another file.

    Args:
        lines: Of the file.
        source: What messages call it.

    Raises:
        CorpusFormatError: ``E_SCORE_FILE`` or ``E_SCORE_IDS`` with file and line.
    """
    names = lines[0].split("\t") if lines else []
    if not {"id", "right"} <= set(names):
        return None
    reading = _Reading(source_name(source))
    found: dict[str, bool] = {}
    for reading.line, line in enumerate(lines[1:], 2):
        cells = line.split("\t")
        if len(cells) != len(names):
            raise reading.error(f"the row has {len(cells)} cells for {len(names)} columns.")
        name = cells[names.index("id")]
        if name in found:
            raise reading.error(f'the id "{visible(name[:40])}" is there twice.', "E_SCORE_IDS")
        found[name] = reading.flag(cells[names.index("right")], "right")
    return found


class _Reading:
    """Reads one file and keeps track of the line."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.line = 0

    def error(self, message: str, code: str = "E_SCORE_FILE") -> CorpusFormatError:
        return CorpusFormatError(
            f"{self.name}:{self.line}: {message}", code=code, path=self.name, line=self.line
        )

    def number(self, text: str, column: str = "score") -> float:
        if _NUMBER.fullmatch(text):
            value = float(text)
            if math.isinf(value) and text != "-inf":
                raise self.error(f'"{visible(text[:40])}" is too large a number.', "E_NAN")
            return value
        if text.lower().lstrip("+-") in ("nan", "inf", "infinity"):
            raise self.error(
                f'the {column} is "{visible(text)}"; a score is a number or -inf. Something went '
                "wrong when it was written.",
                "E_NAN",
            )
        raise self.error(
            f'"{visible(text[:40])}" is not a number. Score files have one number per line, or are '
            f"tables whose first line is {' '.join(PROBABILITY_COLUMNS)} or "
            f"{' '.join(CLASSIFIER_COLUMNS)}, separated by tabs."
        )

    def whole(self, text: str, column: str, least: int = 0) -> int:
        if not _WHOLE.fullmatch(text) or int(text) < least:
            raise self.error(
                f'{column} is "{visible(text[:40])}"; it must be a whole number, {least} or more.'
            )
        return int(text)

    def flag(self, text: str, column: str) -> bool:
        if text not in ("0", "1"):
            raise self.error(f'{column} is "{visible(text[:40])}"; it must be 0 or 1.')
        return text == "1"

    def plain(self, lines: Sequence[str]) -> ScoreTable:
        scores: list[float] = []
        documents: list[int] = []
        document, starts = -1, True
        for self.line, line in enumerate(lines, 1):
            text = line.strip(" \t")
            if not text:
                starts = True
                continue
            document += starts
            starts = False
            scores.append(self.number(text))
            documents.append(document)
        return ScoreTable(
            ids=tuple(str(place) for place in range(1, len(scores) + 1)),
            scores=np.array(scores, dtype=np.float64),
            documents=np.array(documents, dtype=np.int64),
            name=self.name,
        )

    def table(self, lines: Sequence[str]) -> ScoreTable:
        self.line = 1
        names = tuple(lines[0].split("\t"))
        if names not in (PROBABILITY_COLUMNS, CLASSIFIER_COLUMNS):
            raise self.error(
                f'the columns are "{visible(" ".join(names)[:80])}". They must be '
                f"{' '.join(PROBABILITY_COLUMNS)} or {' '.join(CLASSIFIER_COLUMNS)}, separated by "
                "tabs."
            )
        rows = []
        known: dict[str, int] = {}
        for self.line, line in enumerate(lines[1:], 2):
            fields = line.split("\t")
            if len(fields) != len(names):
                raise self.error(
                    f"the line has {len(fields)} fields, but there are {len(names)} columns."
                )
            if not fields[0]:
                raise self.error("the id is empty.")
            if fields[0] in known:
                raise self.error(
                    f'the id "{visible(fields[0][:40])}" is also in line {known[fields[0]]}.',
                    "E_SCORE_IDS",
                )
            known[fields[0]] = self.line
            rows.append(self._row(fields))
        return self._joined(tuple(known), rows, is_classifier=names == CLASSIFIER_COLUMNS)

    def _row(self, fields: Sequence[str]) -> tuple[float, ...]:
        length = self.whole(fields[1], "len", least=1)
        score = self.number(fields[2], "score" if len(fields) == 3 else "logp_model")
        if len(fields) == 3:
            return length, score
        unigram = self.number(fields[3], "logp_unigram")
        if math.isinf(unigram):
            raise self.error(
                "logp_unigram is -inf; every word must have a unigram probability.", "E_NAN"
            )
        trees = self.whole(fields[4], "n_trees")
        return length, score, unigram, trees, self.flag(fields[5], "fallback")

    def _joined(
        self, ids: tuple[str, ...], rows: Sequence[tuple[float, ...]], *, is_classifier: bool
    ) -> ScoreTable:
        columns = list(zip(*rows, strict=True)) if rows else [()] * 5

        def column(place: int, kind: Callable[[float], T]) -> list[T]:
            return [kind(value) for value in columns[place]]

        lengths = np.array(column(0, int), dtype=np.int64)
        scores = np.array(columns[1], dtype=np.float64)
        if is_classifier:
            return ScoreTable(ids, scores, lengths, name=self.name)
        return ScoreTable(
            ids,
            scores,
            lengths,
            unigram=np.array(columns[2], dtype=np.float64),
            n_trees=np.array(column(3, int), dtype=np.int64),
            fallback=np.array(column(4, bool), dtype=np.bool_),
            name=self.name,
        )


# -- two files ------------------------------------------------------------------------------


def align_tables(
    first: ScoreTable, second: ScoreTable, *, by_id: bool = True
) -> tuple[ScoreTable, ScoreTable]:
    """Return two tables of the same sentences in the same order.

    Args:
        first: A table.
        second: Another.
        by_id: Sort by id; otherwise keep the order of the first table.

    Raises:
        CorpusFormatError: ``E_SCORE_IDS`` if they have different sentences, or sentences of
            different lengths.
    """
    order = sorted(first.ids, key=natural_key) if by_id else first.ids
    one, two = _in_order(first, second, order)
    if one.lengths is not None and two.lengths is not None:
        differ = np.flatnonzero(one.lengths != two.lengths)
        if len(differ):
            place = int(differ[0])
            raise CorpusFormatError(
                f'the sentence "{visible(one.ids[place][:40])}" has {one.lengths[place]} words in '
                f"{first.name} and {two.lengths[place]} in {second.name}. Are they about the same "
                "text?",
                code="E_SCORE_IDS",
                path=second.name,
            )
    return one, two


def align_pairs(good: ScoreTable, bad: ScoreTable) -> tuple[ScoreTable, ScoreTable]:
    """Return two tables whose sentences are paired by id, in the order of the first.

    Raises:
        CorpusFormatError: ``E_SCORE_IDS`` if an id is in only one of them.
    """
    return _in_order(good, bad, good.ids)


def _in_order(
    first: ScoreTable, second: ScoreTable, order: Sequence[str]
) -> tuple[ScoreTable, ScoreTable]:
    ours, theirs = set(first.ids), set(second.ids)
    if ours != theirs:
        only = [
            f'only {table.name} has "{visible(min(missing, key=natural_key)[:40])}"'
            for table, missing in ((first, ours - theirs), (second, theirs - ours))
            if missing
        ]
        raise CorpusFormatError(
            f"{first.name} ({len(first)} sentences) and {second.name} ({len(second)}) have "
            f"different ids: {' and '.join(only)}. Score the same sentences for both; one that is "
            "left out of one must be left out of both.",
            code="E_SCORE_IDS",
            path=second.name,
        )
    places = [{name: index for index, name in enumerate(table.ids)} for table in (first, second)]
    one, two = (
        table.take([place[name] for name in order])
        for table, place in zip((first, second), places, strict=True)
    )
    return one, two


def natural_key(text: str) -> list[tuple[int, int, str]]:
    """Return a key by which numbers inside names sort as numbers.

    Examples:
        >>> sorted(["s10", "s9", "10", "9"], key=natural_key)
        ['9', '10', 's9', 's10']
    """
    return [
        (0, int(part), part) if part.isascii() and part.isdigit() else (1, 0, part)
        for part in re.split(r"([0-9]+)", text)
        if part
    ]
