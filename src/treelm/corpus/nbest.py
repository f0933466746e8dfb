"""The n-best record: the hypotheses of a parser, translator or recogniser for one sentence.

Lists of words are read and written in the formats of Moses and Kaldi here; k-best lists of trees in
`treelm.corpus.k_best_lists`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple, NoReturn

import numpy as np
import numpy.typing as npt

from treelm.characters import visible
from treelm.corpus.file_kinds import Wanted
from treelm.corpus.files import Source, read_lines, source_name
from treelm.corpus.words import SPACE, split_words
from treelm.errors import CorpusFormatError, UsageError
from treelm.trees.tree import Tree

_SEPARATOR = "|||"
_FIELDS = range(2, 7)
_RANKED = re.compile(r"(?P<id>.+)-(?P<rank>\d+)")


@dataclass(frozen=True, slots=True)
class Hypothesis:
    """One hypothesis for a sentence.

    Args:
        words: Its words.
        tree: Its tree, if it has one.
        score: Score given by the system that made it; larger is better.
        features: Features of the score, by name; values as written.
        more: Further columns, as written.
    """

    words: tuple[str, ...]
    tree: Tree | None = None
    score: float | None = None
    features: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    more: tuple[str, ...] = ()

    def with_feature(self, name: str, value: float) -> Hypothesis:
        """Return it with a feature added or changed.

        Examples:
            >>> Hypothesis(("a",)).with_feature("TreeLM0", -42.1).features
            {'TreeLM0': ('-42.1',)}
        """
        features = {**self.features, name: (repr(value),)}
        return Hypothesis(self.words, self.tree, self.score, features, self.more)


@dataclass(frozen=True, slots=True)
class NBest:
    """The hypotheses for one sentence, in the order of the file.

    Args:
        id: Name of the sentence.
        hypotheses: None for a sentence without any.
        line: Where it begins in its file, counted from 1.
    """

    id: str
    hypotheses: tuple[Hypothesis, ...]
    line: int = 0

    def __len__(self) -> int:
        return len(self.hypotheses)


def malformed(source: Source, line: int, what: str, advice: str) -> CorpusFormatError:
    """Return the error for a malformed line."""
    name = source_name(source)
    return CorpusFormatError(
        f"{name}:{line}: {what}. {advice}", code="E_NBEST", path=name, line=line
    )


def read_number(text: str, source: Source, line: int) -> float:
    """Return a score.

    Raises:
        CorpusFormatError: ``E_NBEST`` if it is not a score.
    """
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if math.isnan(value):
        raise malformed(
            source, line, f'"{visible(text[:40])}" is not a score', "A number was expected here."
        )
    return value


# -- Moses ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class NBestColumns:
    """An n-best list column by column, everything as written; a row is a hypothesis.

    Args:
        id: Name of the sentence.
        texts: The words.
        features: Names and values.
        scores: The scores; empty where there is none.
        more: What follows the score.
        lines: Where the rows are in the file, counted from 1.
        source: What messages call the file.
        sparse: Whether a feature that a row does not have is 0 there; otherwise all rows have the
            same ones.
    """

    id: str
    texts: Sequence[str]
    features: Sequence[str]
    scores: Sequence[str]
    more: Sequence[tuple[str, ...]]
    lines: Sequence[int]
    source: str = "-"
    sparse: bool = False

    def __len__(self) -> int:
        return len(self.texts)

    def totals(self) -> npt.NDArray[np.float64]:
        """Return the scores as numbers.

        Raises:
            CorpusFormatError: ``E_NBEST`` with the line, for what is not a finite number.
        """
        return np.array(
            [
                _finite(text, self.source, line)
                for text, line in zip(self.scores, self.lines, strict=True)
            ]
        )

    def feature_table(self) -> FeatureTable:
        """Return the features as numbers.

        Raises:
            CorpusFormatError: ``E_NBEST`` with the line, for a value that is not a finite number,
                or for other features than those of the first row unless the list is sparse.
        """
        if self.sparse:
            return self._sparse_table()
        layout = _layout(self.features[0])
        tokens = " ".join(self.features).split()
        width = sum(count + bool(name) for name, count in layout)
        rows = len(self.features)
        columns: list[list[str]] = []
        at = 0
        is_regular = len(tokens) == rows * width
        for name, count in layout:
            if name:
                # All rows at once: the same name at the same place of each.
                found = tokens[at::width]
                is_regular = is_regular and found.count(found[0]) == len(found)
                at += 1
            columns += [tokens[at + place :: width] for place in range(count)]
            at += count
        try:
            values = np.array([list(map(float, each)) for each in columns], dtype=np.float64)
        except ValueError:
            is_regular = False
        if not is_regular or not np.isfinite(values).all():
            self._refuse_features(layout)
        return FeatureTable(layout, np.ascontiguousarray(values.T).reshape(rows, len(columns)))

    def _sparse_table(self) -> FeatureTable:
        """Return the features that any row has, in the order in which they come, 0 elsewhere."""
        rows = [feature_values(text) for text in self.features]
        places: dict[str, int] = {}
        for row in rows:
            for name in row:
                places.setdefault(name, len(places))
        values = np.zeros((len(rows), len(places)))
        for number, (row, line) in enumerate(zip(rows, self.lines, strict=True)):
            for name, (value, *others) in row.items():
                if others:
                    raise malformed(
                        self.source,
                        line,
                        f'feature "{visible(name[:40])}" has several values',
                        "Each feature of this format has one.",
                    )
                values[number, places[name]] = _finite(value, self.source, line)
        return FeatureTable(tuple((name, 1) for name in places), values)

    def _refuse_features(self, layout: Sequence[tuple[str, int]]) -> NoReturn:
        """Raise the error for the first row that is not like the others."""
        for text, line in zip(self.features, self.lines, strict=True):
            if (found := _layout(text)) != layout:
                shown = " and ".join(_shown_layout(each) for each in (layout, found))
                raise malformed(
                    self.source,
                    line,
                    f"not the features of the line before; compare {shown}",
                    "All lines of a list have the same features.",
                )
            for values in feature_values(text).values():
                for value in values:
                    _finite(value, self.source, line)
        raise malformed(
            self.source, self.lines[0], "a feature is named twice", "Give it one name and value."
        )

    def reordered(self, order: Sequence[int]) -> NBestColumns:
        """Return the list with the rows in another order."""
        return replace(
            self,
            texts=[self.texts[place] for place in order],
            features=[self.features[place] for place in order],
            scores=[self.scores[place] for place in order],
            more=[self.more[place] for place in order],
            lines=[self.lines[place] for place in order],
        )

    def to_text(self) -> str:
        """Return the lines of a Moses file."""
        between = f" {_SEPARATOR} "
        out = []
        for text, features, score, more in zip(
            self.texts, self.features, self.scores, self.more, strict=True
        ):
            columns = [self.id, text, features, score, *more]
            while len(columns) > 2 and not columns[-1]:
                columns.pop()
            out.append(f"{between.join(columns)}\n")
        return "".join(out)


class FeatureTable(NamedTuple):
    """Features of the hypotheses of a list.

    Args:
        layout: Names, and how many values each has, in order.
        values: A row per hypothesis, a column per value.
    """

    layout: tuple[tuple[str, int], ...]
    values: npt.NDArray[np.float64]

    def widened(self, layout: Sequence[tuple[str, int]]) -> FeatureTable:
        """Return the features in another order and among others, which are 0.

        Args:
            layout: All features of this table, and perhaps more.
        """
        own = {name: self.values[:, first : first + count] for name, first, count in self._spans()}
        rows = len(self.values)
        parts = [own.get(name, np.zeros((rows, count))) for name, count in layout]
        return FeatureTable(tuple(layout), np.concatenate([np.zeros((rows, 0)), *parts], axis=1))

    def _spans(self) -> Iterator[tuple[str, int, int]]:
        first = 0
        for name, count in self.layout:
            yield name, first, count
            first += count


def read_moses_columns(source: Source) -> Iterator[NBestColumns]:
    """Yield the lists of a Moses n-best file: ``id ||| words ||| features ||| score``.

    Lines with the same id are one list. Two to six columns are read; what follows the score is
    kept as it is.

    Raises:
        CorpusFormatError: ``E_NBEST`` with the line, for a malformed line.
    """
    name = source_name(source)
    current = ""
    rows: list[list[str]] = []
    numbers: list[int] = []
    for number, line in enumerate(read_lines(source, Wanted.N_BEST), 1):
        columns = [column.strip(SPACE) for column in line.split(_SEPARATOR)]
        if len(columns) not in _FIELDS:
            if columns == [""]:
                continue
            raise malformed(
                source,
                number,
                f'{len(columns)} columns, but an n-best list has 2 to 6, separated by "|||"',
                "Lines look like: 0 ||| the words ||| LM0= -12.3 ||| -4.5",
            )
        if columns[0] != current and rows:
            yield _columns(current, rows, numbers, name)
            rows, numbers = [], []
        current = columns[0]
        rows.append(columns)
        numbers.append(number)
    if rows:
        yield _columns(current, rows, numbers, name)


def _columns(
    name: str, rows: Sequence[Sequence[str]], lines: Sequence[int], source: str
) -> NBestColumns:
    if min(map(len, rows)) < 4:
        rows = [(*row, *[""] * (4 - len(row))) for row in rows]
    return NBestColumns(
        name,
        [row[1] for row in rows],
        [row[2] for row in rows],
        [row[3] for row in rows],
        [tuple(row[4:]) for row in rows],
        lines,
        source,
    )


def numbered_lists(
    lists: Iterable[NBestColumns], number: int | None = None
) -> Iterator[tuple[int, NBestColumns]]:
    """Yield lists with the number of their sentence, which is their id; numbers begin with 0.

    Args:
        lists: The lists.
        number: How many sentences there are; None if that is not known.

    Raises:
        CorpusFormatError: ``E_NBEST`` with the line, for an id that is not a whole number, that is
            not larger than the one before, or that no sentence has.
    """
    last = -1
    for each in lists:
        line = each.lines[0]
        if not (each.id.isascii() and each.id.isdecimal()):
            raise malformed(
                each.source,
                line,
                f'"{visible(each.id[:40])}" is not the number of a sentence',
                "Sentences are numbered from 0.",
            )
        at = int(each.id)
        if at <= last:
            raise malformed(
                each.source,
                line,
                f"sentence {at} follows sentence {last}",
                "The numbers of sentences go up; the lines of one sentence stand together.",
            )
        if number is not None and at >= number:
            raise malformed(
                each.source,
                line,
                f"there is no sentence {at}: there are {number}, numbered from 0",
                "Do the files belong together?",
            )
        last = at
        yield at, each


def read_moses(source: Source) -> Iterator[NBest]:
    """Yield the lists of a Moses n-best file as hypotheses; see `read_moses_columns`.

    Raises:
        CorpusFormatError: ``E_NBEST`` with the line, for a malformed line.
    """
    for each in read_moses_columns(source):
        rows = zip(each.texts, each.features, each.scores, each.more, each.lines, strict=True)
        hypotheses = tuple(
            Hypothesis(
                split_words(text),
                score=read_number(score, source, line) if score else None,
                features=feature_values(features),
                more=more,
            )
            for text, features, score, more, line in rows
        )
        yield NBest(each.id, hypotheses, each.lines[0])


def feature_values(text: str) -> dict[str, tuple[str, ...]]:
    """Return the values of each feature; old files end names with a colon, or have none."""
    features: dict[str, tuple[str, ...]] = {}
    name = ""
    for token in split_words(text):
        if token.endswith(("=", ":")):
            name = token[:-1]
            features[name] = ()
        else:
            features[name] = (*features.get(name, ()), token)
    return features


def _layout(text: str) -> tuple[tuple[str, int], ...]:
    return tuple((name, len(values)) for name, values in feature_values(text).items())


def _shown_layout(layout: Sequence[tuple[str, int]]) -> str:
    return visible(" ".join(f"{name}({count})" for name, count in layout) or "none")


def _finite(text: str, source: Source, line: int) -> float:
    value = read_number(text, source, line)
    if math.isinf(value):
        raise malformed(
            source, line, f'"{visible(text[:40])}" is not a score', "Scores are finite numbers."
        )
    return value


def moses_lines(lists: Iterable[NBest]) -> Iterator[str]:
    """Yield the lines of a Moses n-best file, without line ends.

    Raises:
        CorpusFormatError: ``E_NBEST`` for a word with ``|||`` in it, which separates columns.

    Examples:
        >>> best = Hypothesis(("a", "b"), score=-4.5, features={"LM0": ("-3", "2")})
        >>> list(moses_lines([NBest("0", (best,))]))
        ['0 ||| a b ||| LM0= -3 2 ||| -4.5']
    """
    for best in lists:
        for each in best.hypotheses:
            features = " ".join(
                " ".join((f"{name}=", *values) if name else values)
                for name, values in each.features.items()
            )
            score = "" if each.score is None else repr(each.score)
            words = " ".join(each.words)
            if _SEPARATOR in words:
                raise CorpusFormatError(
                    f'sentence {visible(best.id)}: a word contains "{_SEPARATOR}", which separates '
                    "the columns of a Moses list. Write the Kaldi format, or escape the word.",
                    code="E_NBEST",
                )
            columns = [best.id, words, features, score, *each.more]
            while len(columns) > 2 and not columns[-1]:
                columns.pop()
            yield f" {_SEPARATOR} ".join(columns)


# -- Kaldi ----------------------------------------------------------------------------------


class ScoreFile(NamedTuple):
    """A file of scores beside a Kaldi n-best file: ``utterance-rank score``, line for line.

    Args:
        name: Name of the feature.
        source: The file.
        is_cost: Whether less is better; the feature then has the opposite sign.
    """

    name: str
    source: Source
    is_cost: bool = False


def read_kaldi_columns(source: Source, scores: Sequence[ScoreFile] = ()) -> Iterator[NBestColumns]:
    """Yield the lists of a Kaldi or ESPnet n-best file: ``utterance-rank words``.

    Neighbouring lines with the same utterance are one list. An utterance may have no words. Ranks
    are the further column of a list.

    Args:
        source: The file.
        scores: Files of scores, which become features.

    Raises:
        CorpusFormatError: ``E_NBEST`` with the line, for a malformed line.
    """
    readers = [(each, iter(read_lines(each.source))) for each in scores]
    source_called = source_name(source)
    rows: list[list[str]] = []
    current, first = "", 1
    for number, line in enumerate(read_lines(source, Wanted.N_BEST), 1):
        name, _, text = line.strip(SPACE).partition(" ")
        found = _RANKED.fullmatch(name)
        if found is None:
            name, *words = split_words(line) or ("",)
            found, text = _RANKED.fullmatch(name), " ".join(words)
        if found is None:
            raise malformed(
                source,
                number,
                f'"{visible(name[:40])}" is not an utterance and a rank',
                "Lines look like: utterance-1 the words",
            )
        features = [_score_feature(each, lines, name, number) for each, lines in readers]
        if rows and found["id"] != current:
            yield _columns(current, rows, range(first, number), source_called)
            rows, first = [], number
        current = found["id"]
        rows.append([current, text.strip(SPACE), " ".join(features), "", found["rank"]])
    if rows:
        yield _columns(current, rows, range(first, first + len(rows)), source_called)


def _score_feature(file: ScoreFile, lines: Iterator[str], name: str, line: int) -> str:
    """Return the score of a hypothesis as a feature."""
    parts = split_words(next(lines, ""))
    if len(parts) != 2 or parts[0] != name:
        raise malformed(
            file.source,
            line,
            f'there is no score for "{visible(name)}"',
            "Both files belong together.",
        )
    value = read_number(parts[1], file.source, line)
    return f"{file.name}= {-value!r}" if file.is_cost else f"{file.name}= {parts[1]}"


def read_kaldi(source: Source, scores: Source | None = None) -> Iterator[NBest]:
    """Yield the lists of a Kaldi or ESPnet n-best file as hypotheses; see `read_kaldi_columns`.

    Args:
        source: The file.
        scores: File with ``utterance-rank score``, line for line the same.

    Raises:
        CorpusFormatError: ``E_NBEST`` with the line, for a malformed line.
    """
    files = [] if scores is None else [ScoreFile("score", scores)]
    for each in read_kaldi_columns(source, files):
        values = [feature_values(features).get("score") for features in each.features]
        hypotheses = tuple(
            Hypothesis(split_words(text), score=None if value is None else float(value[0]))
            for text, value in zip(each.texts, values, strict=True)
        )
        yield NBest(each.id, hypotheses, each.lines[0])


def kaldi_lines(lists: Iterable[NBest], *, scores: bool = False) -> Iterator[str]:
    """Yield the lines of a Kaldi n-best file, or of its score file; ranks begin with 1.

    Raises:
        UsageError: if a score is wanted and a hypothesis has none.

    Examples:
        >>> list(kaldi_lines([NBest("u", (Hypothesis(("a", "b")), Hypothesis(("a",))))]))
        ['u-1 a b', 'u-2 a']
    """
    for best in lists:
        for rank, each in enumerate(best.hypotheses, 1):
            if scores and each.score is None:
                raise UsageError(f"{best.id}-{rank} has no score.")
            rest = (repr(each.score),) if scores else each.words
            yield " ".join((f"{best.id}-{rank}", *rest))
