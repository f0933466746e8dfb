"""Reading times of words, joined with the sentences they occur in.

The layout is that of the Natural Stories corpus: a table with the columns ``item``, ``zone`` and
``word`` and one or more columns of times, one row per word, or one per word and reader. Sentences
are found in the table itself, or read from trees whose leaves carry ``/item.zone`` or, where a zone
has several tokens, ``/item.zone.part``.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, groupby

from treelm.characters import visible
from treelm.corpus.brackets import ReadOptions
from treelm.corpus.corpus import TreeCorpus
from treelm.corpus.files import Source, source_name
from treelm.corpus.sentences import split_sentences
from treelm.corpus.tables import read_table, text_of
from treelm.corpus.tokenize import tokenize_words
from treelm.corpus.tokenizers import Tokenizing
from treelm.corpus.words import split_words
from treelm.errors import CorpusFormatError, UsageError, option

_LEAF = re.compile(r"(.+)/(\d+)\.(\d+)(?:\.\w+)?")
#: Other names of the columns, where a table has no column of the first.
_OTHER_NAMES = {
    "zone": ("position", "word_number"),
    "reader": ("subject", "participant", "subj", "WorkerId"),
    "sentence": ("sent_id", "sentence_number"),
}
#: Share of words that may differ and be left out; where more do, something else is wrong.
MOST_DIFFERENT = 0.02
_ITEM = "item"
_NO_TIME = frozenset({"", "NA", "nan", "NaN"})

Zone = tuple[int, int]


@dataclass(frozen=True, slots=True)
class TimedWord:
    """A word of a text that people read, and how long it took.

    Args:
        item: Number of the text.
        zone: Number of the word in the text.
        word: The word as it was shown, punctuation included.
        time: In the unit of the table; None where there is no measurement.
        reader: Who read it; empty for a mean over readers.
        sentence: What the table says of its sentence; empty where it says nothing.
        line: Line of the table.
        text: What the table calls the text.
    """

    item: int
    zone: int
    word: str
    time: float | None
    reader: str = ""
    sentence: str = ""
    line: int = field(default=0, compare=False)
    text: str = field(default="", compare=False)

    @property
    def key(self) -> Zone:
        """Text and place."""
        return self.item, self.zone


@dataclass(frozen=True, slots=True)
class ZonedSentence:
    """A sentence, with the zone of each token."""

    words: tuple[str, ...]
    zones: tuple[Zone, ...]


def read_times(
    source: Source,
    column: str = "mean_rt",
    *,
    reader: str | None = None,
    item: Sequence[str] = (_ITEM,),
) -> list[TimedWord]:
    """Return the words of a table with their times.

    Args:
        source: Tab-separated, or named .csv or .parquet, with a header.
        column: The column of times.
        reader: The column of readers; by default ``reader``, ``subject`` or ``participant``, if
            there is one.
        item: Columns whose values tell texts apart. Texts that they do not number are numbered as
            they come.

    Raises:
        CorpusFormatError: ``E_TIMES``, naming the line.
    """
    name = source_name(source)
    rows = read_table(source, "E_TIMES")
    header = [str(each) for each in rows[0][1]] if rows else []
    places = _places(name, header, column, reader, item)
    texts = [header.index(each) for each in item]
    labels = [
        " ".join(text_of(cells[place]).strip() for place in texts if place < len(cells))
        for _, cells in rows[1:]
    ]
    are_numbers = all(label.isdecimal() for label in labels)
    known: dict[str, int] = {}
    found = []
    for label, (number, cells) in zip(labels, rows[1:], strict=True):
        given = {
            each: text_of(cells[place]) for each, place in places.items() if place < len(cells)
        }
        try:
            time = given["time"].strip()
            value = None if time in _NO_TIME else float(time)
            if value is not None and not (math.isfinite(value) and value > 0):
                raise ValueError(time)
            if "reader" in places and not given["reader"].strip():
                raise ValueError("no reader")
            if not label.strip() or not given["word"].strip():
                raise ValueError("no item or no word")
            found.append(
                TimedWord(
                    int(label) if are_numbers else known.setdefault(label, len(known) + 1),
                    int(given["zone"]),
                    given["word"],
                    value,
                    given.get("reader", ""),
                    given.get("sentence", ""),
                    number,
                    label,
                )
            )
        except (ValueError, KeyError) as error:
            raise _wrong(
                f"{name}:{number}: this row needs an item, a zone (a number), a word and a "
                f"positive {column}{', and a reader' if 'reader' in places else ''}.",
                name,
                number,
            ) from error
    _check_keys(found, name, "condition" if "condition" in header and item == (_ITEM,) else None)
    return found


def _places(
    name: str, header: Sequence[str], column: str, reader: str | None, item: Sequence[str]
) -> dict[str, int]:
    """Return the place of each column that is used, but for those of texts."""
    wanted = {"zone": "zone", "word": "word", "time": column}
    chosen = wanted | {"reader": reader or "reader", "sentence": "sentence"}
    for key, others in _OTHER_NAMES.items():
        if chosen[key] not in header and not (key == "reader" and reader):
            chosen[key] = next((each for each in others if each in header), chosen[key])
    missing = [each for each in item if each not in header]
    missing += [chosen[key] for key in wanted if chosen[key] not in header]
    if missing or (reader and reader not in header):
        raise _wrong(
            f"{name}: the first line of a table of times must name the columns "
            f"{', '.join([*item, *wanted.values()])}; it has no "
            f"{missing[0] if missing else reader}. "
            f"Columns: {', '.join(map(visible, header)) or 'none'}.",
            name,
            1,
        )
    return {key: header.index(each) for key, each in chosen.items() if each in header}


def _check_keys(rows: Sequence[TimedWord], name: str, other: str | None) -> None:
    """Refuse a word that stands twice, or that differs between readers.

    Args:
        rows: The words.
        name: What the table is called.
        other: A column that may tell texts apart and was not used.
    """
    several = "" if other is None else f" Texts by item and {other}: {option('item')} item {other}."
    words: dict[Zone, TimedWord] = {}
    seen: dict[tuple[int, int, str], int] = {}
    for row in rows:
        first = seen.setdefault((row.item, row.zone, row.reader), row.line)
        if first != row.line:
            advice = (
                "" if row.reader else " Are there several readers, in a column of another name?"
            )
            raise _wrong(
                f"{name}:{row.line}: item {visible(row.text)} and zone {row.zone} stand in line "
                f"{first} already.{advice}{several}",
                name,
                row.line,
            )
        same = words.setdefault(row.key, row)
        if same.word != row.word or same.sentence != row.sentence:
            raise _wrong(
                f"{name}:{row.line}: the word of item {visible(row.text)} and zone {row.zone} is "
                f'"{visible(row.word)}" here and "{visible(same.word)}" in line {same.line}.'
                f"{several}",
                name,
                row.line,
            )


def _wrong(message: str, name: str, line: int, code: str = "E_TIMES") -> CorpusFormatError:
    return CorpusFormatError(message, code=code, path=name, line=line)


# -- sentences ------------------------------------------------------------------------------


def sentences_of_times(
    times: Iterable[TimedWord], tokenize: Tokenizing = tokenize_words
) -> list[ZonedSentence]:
    """Return the sentences that the words of a table make, tokenized as wholes.

    They are those of a column ``sentence``; without it, those that punctuation tells.

    Args:
        times: The words.
        tokenize: What takes a sentence apart.

    Raises:
        UsageError: if punctuation does not tell them.
    """
    by_zone = {each.key: each for each in times}
    ordered = [by_zone[key] for key in sorted(by_zone)]
    found = []
    for _, words in groupby(ordered, key=lambda each: each.item):
        for sentence in _split(list(words)):
            tokens = tokenize(" ".join(each.word for each in sentence))
            zones = chain.from_iterable(
                [each.key] * (last - first)
                for each, first, last in zip(sentence, tokens.starts, tokens.ends, strict=True)
            )
            found.append(ZonedSentence(tokens.tokens, tuple(zones)))
    return found


def _split(words: list[TimedWord]) -> Iterator[list[TimedWord]]:
    """Yield the words of each sentence of a text."""
    if any(each.sentence for each in words):
        for _, group in groupby(words, key=lambda each: each.sentence):
            yield list(group)
        return
    sentences = split_sentences(" ".join(each.word for each in words))
    sizes = [len(split_words(each)) for each in sentences]
    if sum(sizes) != len(words) or any(len(split_words(each.word)) != 1 for each in words):
        raise UsageError(
            f"item {words[0].item}: not every cell of the column word is one word, so that the "
            "ends of sentences cannot be found. Give sentences in a column sentence, or as "
            f"{option('trees')}."
        )
    rest = iter(words)
    yield from ([next(rest) for _ in range(size)] for size in sizes)


def read_zoned_trees(source: Source) -> Iterator[ZonedSentence]:
    """Yield the sentences of trees whose leaves carry their item and zone.

    Raises:
        CorpusFormatError: ``E_ZONES`` for a leaf that has none.
    """
    for tree in TreeCorpus((source,), ReadOptions(), on_error="skip"):
        words, zones = [], []
        for leaf in tree.words:
            match = _LEAF.fullmatch(leaf)
            if match is None:
                raise CorpusFormatError(
                    f'{source_name(source)}: the word "{leaf}" does not give its place in the '
                    "text, as in dog/1.12 (text 1, word 12).",
                    code="E_ZONES",
                    path=source_name(source),
                )
            words.append(match[1])
            zones.append((int(match[2]), int(match[3])))
        yield ZonedSentence(tuple(words), tuple(zones))


def same_words(
    times: Sequence[TimedWord],
    sentences: Iterable[ZonedSentence],
    source: Source,
    *,
    dropping: bool = False,
) -> list[TimedWord]:
    """Return the rows of a table, whose words must be those of sentences with the same keys.

    Letters and digits are compared, not punctuation, which tokenizers rewrite. Keys that only the
    table has, or only the sentences, are no contradiction.

    Args:
        times: The table.
        sentences: The sentences.
        source: The file of the table.
        dropping: Leave out words that differ, if they are few, instead of refusing the table.

    Raises:
        CorpusFormatError: ``E_TIMES_WORDS``, naming the line.
    """
    name = source_name(source)
    tokens: dict[Zone, str] = {}
    for sentence in sentences:
        for word, zone in zip(sentence.words, sentence.zones, strict=True):
            tokens[zone] = tokens.get(zone, "") + word
    different = [
        each
        for each in times
        if each.key in tokens and _letters(tokens[each.key]) != _letters(each.word)
    ]
    if different and not (dropping and len(different) <= MOST_DIFFERENT * len(times)):
        first = different[0]
        more = f" {len(different) - 1} more rows differ." if len(different) > 1 else ""
        raise _wrong(
            f"{name}:{first.line}: the word of item {first.item} and zone {first.zone} is "
            f'"{visible(first.word)}" in the table and "{visible(tokens[first.key])}" in the '
            f"trees.{more} {_shift_advice(first, tokens)}",
            name,
            first.line,
            "E_TIMES_WORDS",
        )
    lines = {each.line for each in different}
    return [each for each in times if each.line not in lines]


def _shift_advice(row: TimedWord, tokens: Mapping[Zone, str]) -> str:
    for shift in (-1, 1, -2, 2):
        if _letters(tokens.get((row.item, row.zone + shift), "")) == _letters(row.word):
            return f"It is that of zone {row.zone + shift} there: is one of them shifted?"
    return (
        "Are they of the same release of the text? "
        f"{option('drop_different_words')} leaves out a few such words."
    )


def _letters(word: str) -> str:
    # Escaped brackets are letters to nobody.
    plain = re.sub(r"-[LR][RSC]B-", "", word)
    return "".join(filter(str.isalnum, plain)).casefold()
