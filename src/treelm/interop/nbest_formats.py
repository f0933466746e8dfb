"""N-best lists in the formats of other programs, all as `NBestColumns`.

Features are kept as Moses writes them, ``name= value``, so that one piece of code adds to them,
weighs and sorts them; they are written again as their own format has them.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

from treelm.characters import visible
from treelm.corpus.file_kinds import Wanted
from treelm.corpus.files import Source, read_lines, source_name
from treelm.corpus.nbest import (
    NBestColumns,
    ScoreFile,
    feature_values,
    malformed,
    read_kaldi_columns,
    read_moses_columns,
)
from treelm.corpus.words import split_words
from treelm.errors import UsageError
from treelm.store.untrusted import parse_json

#: Moses; Joshua and cdec; Kaldi and ESPnet; JSON lines.
NBestFormat = Literal["moses", "joshua", "kaldi", "jsonl"]

_JSON_ADVICE = (
    'Lines look like: {"id": "0", "text": "the words", "score": -4.5, "features": {"lm": -12.3}}'
)


def read_lists(
    source: Source, form: NBestFormat = "moses", scores: Sequence[ScoreFile] = ()
) -> Iterator[NBestColumns]:
    """Yield the n-best lists of a file, one after the other.

    Args:
        source: The file.
        form: Its format.
        scores: Files of scores that belong to a Kaldi file.

    Raises:
        CorpusFormatError: ``E_NBEST`` with the line, for a malformed line.
        UsageError: for files of scores beside another format.
    """
    if form == "kaldi":
        return read_kaldi_columns(source, scores)
    if scores:
        raise UsageError("files of scores belong to lists in the format of Kaldi (kaldi).")
    if form == "joshua":
        return map(_with_spaces, read_moses_columns(source))
    return read_moses_columns(source) if form == "moses" else _read_json(source)


def in_order_of(
    lists: Iterator[NBestColumns], names: Sequence[str], source: str
) -> list[NBestColumns]:
    """Return lists with numbers instead of names, in the order of the references.

    Args:
        lists: The lists, whose ids are names of utterances.
        names: Names of the references, in order.
        source: What messages call the references.

    Raises:
        CorpusFormatError: ``E_NBEST`` with the line, for an utterance without a reference, or with
            two lists.
    """
    numbers = {name: number for number, name in enumerate(names)}
    found: dict[int, NBestColumns] = {}
    for each in lists:
        number = numbers.get(each.id)
        if number is None or number in found:
            what = "has no reference" if number is None else "has a list already"
            raise malformed(
                each.source,
                each.lines[0],
                f'utterance "{visible(each.id[:40])}" {what}',
                f"Lines of {source} look like: utterance the words",
            )
        found[number] = replace(each, id=str(number))
    return [found[number] for number in sorted(found)]


def read_utterances(source: Source) -> dict[str, str]:
    """Return the words of utterances, by their names: ``utterance the words``, as Kaldi has them.

    Raises:
        CorpusFormatError: ``E_NBEST`` with the line, for a line without a name, or a name that is
            there already.
    """
    found: dict[str, str] = {}
    for number, line in enumerate(read_lines(source, Wanted.TEXT), 1):
        name, *words = split_words(line) or ("",)
        if not name or name in found:
            what = f'utterance "{visible(name[:40])}" is there twice' if name else "an empty line"
            raise malformed(source, number, what, "Lines look like: utterance the words")
        found[name] = " ".join(words)
    return found


def list_text(columns: NBestColumns, form: NBestFormat = "moses") -> str:
    """Return the lines of a list in a format; what was read in it is written as it was."""
    if form == "moses":
        return columns.to_text()
    if form == "joshua":
        return replace(columns, features=list(map(_without_spaces, columns.features))).to_text()
    if form == "kaldi":
        rows = zip(hypothesis_names(columns), columns.texts, strict=True)
        return "".join(f"{name} {text}".rstrip(" ") + "\n" for name, text in rows)
    return "".join(map(_json_line, range(len(columns)), [columns] * len(columns)))


def hypothesis_names(columns: NBestColumns) -> list[str]:
    """Return what Kaldi calls the hypotheses of a list: the utterance and the rank it had."""
    return [f"{columns.id}-{rank}" for (rank, *_) in columns.more]


# -- Joshua and cdec: name=value, features of value 0 left out ---------------------------------


def _with_spaces(columns: NBestColumns) -> NBestColumns:
    made = []
    for text, line in zip(columns.features, columns.lines, strict=True):
        pairs = [token.rpartition("=") for token in split_words(text)]
        for name, _, value in pairs:
            if not name or not value:
                raise malformed(
                    columns.source,
                    line,
                    f'"{visible((name or value)[:40])}" is not a feature',
                    "Lines look like: 0 ||| the words ||| lm_0=-12.3 tm_pt_0=-1.5 ||| -4.5",
                )
        made.append(" ".join(f"{name}= {value}" for name, _, value in pairs))
    return replace(columns, features=made, sparse=True)


def _without_spaces(features: str) -> str:
    return " ".join(f"{name}={value}" for name, (value, *_) in feature_values(features).items())


# -- JSON lines: a hypothesis in each ----------------------------------------------------------


def _read_json(source: Source) -> Iterator[NBestColumns]:
    """Yield lists of lines with the same id; keys that are not known stay."""
    name = source_name(source)
    rows: list[tuple[str, str, str, tuple[str, ...]]] = []
    current, first = "", 1
    number = 0
    for number, line in enumerate(read_lines(source, Wanted.JSON), 1):
        if not line.strip():
            raise malformed(source, number, "the line is empty", _JSON_ADVICE)
        own, *row = _json_row(line, source, number)
        if rows and own != current:
            yield _json_columns(current, rows, range(first, number), name)
            rows, first = [], number
        current = own
        rows.append(tuple(row))  # type: ignore[arg-type]  # as many as `_json_row` gives
    if rows:
        yield _json_columns(current, rows, range(first, number + 1), name)


def _json_columns(
    name: str,
    rows: Sequence[tuple[str, str, str, tuple[str, ...]]],
    lines: Sequence[int],
    source: str,
) -> NBestColumns:
    texts, features, scores, more = zip(*rows, strict=True)
    return NBestColumns(name, texts, features, scores, more, lines, source, sparse=True)


def _json_row(line: str, source: Source, number: int) -> tuple[str, str, str, str, tuple[str]]:
    """Return id, text, features, score and the whole of a line."""
    try:
        found = parse_json(line.encode())
    except ValueError as error:
        raise malformed(source, number, str(error), _JSON_ADVICE) from error
    if not isinstance(found, dict) or not {"id", "text"} <= found.keys():
        raise malformed(source, number, 'there is no "id" or no "text"', _JSON_ADVICE)
    text, score, features = found["text"], found.get("score"), found.get("features") or {}
    if not isinstance(text, str) or not isinstance(found["id"], str | int):
        raise malformed(source, number, '"id" or "text" is not a string', _JSON_ADVICE)
    numbers = {**features, "score": score} if isinstance(features, Mapping) else {"features": ""}
    for name, value in numbers.items():
        if value is not None and (isinstance(value, bool) or not isinstance(value, int | float)):
            raise malformed(source, number, f'"{visible(name[:40])}" has no number', _JSON_ADVICE)
        if split_words(name) != (name,):
            raise malformed(
                source, number, f'"{visible(name[:40])}" cannot be a name', "Use no spaces."
            )
    shown = " ".join(f"{name}= {value!r}" for name, value in features.items())
    given = "" if score is None else repr(score)
    return str(found["id"]), " ".join(split_words(text)), shown, given, (line,)


def _json_line(place: int, columns: NBestColumns) -> str:
    record: dict[str, Any] = json.loads(columns.more[place][0])
    features = feature_values(columns.features[place])
    if features:
        record["features"] = {name: float(value) for name, (value, *_) in features.items()}
    if columns.scores[place]:
        record["score"] = float(columns.scores[place])
    return json.dumps(record, ensure_ascii=False) + "\n"
