"""Phrase tables: what is read, and what is refused with its place."""

from __future__ import annotations

import gzip
import lzma
import math
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from treelm.corpus.files import Content
from treelm.errors import CorpusFormatError, ModelFileError, UsageError
from treelm.store.tables import open_tables, write_tables
from treelm.translation.decoder import Decoder, DecoderConfig
from treelm.translation.phrase_table import PhraseTable
from treelm.translation.weights import Weights

WEIGHTS = Weights(
    {
        "Distortion0": (1.0,),
        "WordPenalty0": (0.0,),
        "PhrasePenalty0": (0.0,),
        "TranslationModel0": (1.0,),
        "UnknownWordPenalty0": (1.0,),
    }
)
GOOD = b"das ||| the ||| 0.5\nhaus ||| house ||| 0.25\n"


def read(text: bytes, **options: bool) -> PhraseTable:
    return PhraseTable.read(Content("table", text), **options)


@pytest.mark.parametrize("suffix", ["", ".gz", ".xz"])
def test_phrase_table_is_read_from_every_compression(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"table{suffix}"
    packed = {"": GOOD, ".gz": gzip.compress(GOOD), ".xz": lzma.compress(GOOD)}[suffix]
    path.write_bytes(packed)
    table = PhraseTable.read(path)
    assert (len(table), table.score_count, table.has_reordering) == (2, 1, False)
    [found] = Decoder(table, [], WEIGHTS).translate(["das haus"])
    assert (found.text, found.score) == ("the house", pytest.approx(math.log(0.125)))


def test_phrase_table_of_an_old_version_has_the_phrase_penalty_as_its_last_score() -> None:
    table = read(b"a ||| b ||| 0.5 0.5 2.718\nb ||| c ||| 0.5 0.5 2.7183\n")
    assert table.score_count == 2


@pytest.mark.parametrize(
    "line",
    [
        b"a ||| b ||| 0.5 ||| 0-0 ||| 1 2 1",
        b"a ||| b ||| 0.5 ||| 0-0 ||| 1 2 1 ||| |||",
        b"a ||| b ||| 0.5 |||",
        b"a ||| b ||| 0.5 ||| ||| 1 1 1",
        b"a ||| b ||| 0.5\r",
        b"\xef\xbb\xbfa ||| b ||| 0.5",
        b"a  |||  b  ||| 5e-1",
        b"a ||| b ||| 0",
        b"a ||| b ||| 1e-400",
        b"a ||| b ||| 2.5",
    ],
)
def test_phrase_table_takes_the_variants_of_lines(line: bytes) -> None:
    assert len(read(line + b"\n")) == 1
    assert len(read(line)) == 1
    [found] = Decoder(read(line), [], WEIGHTS).translate(["a"])
    assert found.text == "b"


def test_phrase_table_floors_a_score_of_nothing() -> None:
    [found] = Decoder(read(b"a ||| b ||| 0"), [], WEIGHTS).translate(["a"])
    assert found.score == -100


@pytest.mark.parametrize(
    ("text", "message", "line"),
    [
        (b"a ||| b\n", "table:1: the line has 2 fields", 1),
        (GOOD + b"\n", "table:3: the line has 1 field,", 3),
        (GOOD + b"a|||b|||0.5\n", "table:3: the line has 1 field,", 3),
        (GOOD + b"a ||| b ||| half\n", 'table:3: field 3, score 1: "half" is not a number', 3),
        (GOOD + b"a ||| b ||| 0.5x\n", "field 3, score 1", 3),
        (GOOD + b"a ||| b ||| nan\n", "is not a number", 3),
        (GOOD + b"a ||| b ||| -0.5\n", "score 1: .* is negative", 3),
        (GOOD + b"a ||| b ||| 2.72\n", "larger than a probability", 3),
        (GOOD + b"a ||| b ||| 1e999\n", "larger than a probability", 3),
        (GOOD + b"a ||| b ||| inf\n", "larger than a probability", 3),
        (GOOD + b"a ||| b ||| 0.5 0.5\n", "1 scores were expected.* and 2 found", 3),
        (GOOD + b"a ||| b ||| \n", "there are no scores", 3),
        (b"a ||| b ||| 0.5 2.718\nb ||| c ||| 0.5 0.5\n", "table:2: .*phrase penalty", 2),
        (GOOD + b" ||| b ||| 0.5\n", "field 1: there is no source phrase", 3),
        (GOOD + b"a |||  ||| 0.5\n", "field 2: the target phrase is empty", 3),
        (GOOD + b"a ||| b </s> ||| 0.5\n", 'field 2: "</s>" marks the boundary', 3),
        (GOOD + b"a ||| b ||| 0.5 ||| 0-1\n", 'field 4: "0-1" is not an alignment', 3),
        (GOOD + b"a ||| b ||| 0.5 ||| 0:0\n", "field 4", 3),
        (GOOD + b"a ||| b ||| 0.5 ||| 99999999999-0\n", "field 4", 3),
        (b"x ||| y ||| 0.5\n" + GOOD + b"x ||| y ||| 0.1\n", "lines 1 and 4 is the same", 4),
        (b"a " * 300 + b"||| b ||| 0.5\n", "has 300 words; 255 are the most", 1),
        (b"a ||| " + b"x" * (1 << 21), "longer than 1 MiB", 1),
        (b"", "there are no phrases", None),
    ],
)
def test_phrase_table_refuses_malformed_lines(text: bytes, message: str, line: int | None) -> None:
    with pytest.raises(CorpusFormatError, match=message) as caught:
        read(text)
    assert (caught.value.code, caught.value.line) == ("E_PHRASE_TABLE", line)
    assert caught.value.path == "table"


def test_phrase_table_refuses_bytes_that_are_not_text() -> None:
    with pytest.raises(CorpusFormatError, match=r"table:3:5: .*UTF-8") as caught:
        read(GOOD + b"das \xff ||| the ||| 0.5\n")
    assert caught.value.code == "E_ENCODING"


def test_phrase_table_allows_deletion_if_told_to() -> None:
    table = read(b"a |||  ||| 0.5\nb ||| c ||| 0.5\n", allow_deletion=True)
    [found] = Decoder(table, [], WEIGHTS).translate(["a b"])
    assert (found.text, found.score) == ("c", pytest.approx(math.log(0.25)))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"das ||| the ||| 0.1 0.2 0.3\n", "orientations:1: field 3: 6 scores were expected"),
        (b"das ||| the ||| 0.1 0.2 0.3 0.4 0.5 1.5\n", "score 6: .*larger than a probability"),
        (b"das ||| the ||| 1 1 1 1 1 1\n" * 2, "orientations:2: .*same as in line 1"),
        (b"das ||| the\n", "orientations:1: the line has 2 fields"),
        (b"", "there are no phrases"),
    ],
)
def test_phrase_table_refuses_malformed_orientations(text: bytes, message: str) -> None:
    with pytest.raises(CorpusFormatError, match=message):
        PhraseTable.read(Content("table", GOOD), reordering=Content("orientations", text))


def test_phrase_table_passes_over_orientations_of_other_pairs() -> None:
    text = b"die ||| the ||| 1 1 1 1 1 1\ndas ||| house ||| 1 1 1 1 1 1\n"
    table = PhraseTable.read(Content("table", GOOD), reordering=Content("orientations", text))
    assert table.has_reordering


def code_of(text: bytes) -> str:
    """Return the code of the error that a table gives, if any."""
    try:
        read(text)
    except CorpusFormatError as error:
        return error.code
    return ""


def test_phrase_table_survives_whatever_is_in_a_file() -> None:
    dice = random.Random(7)
    text = bytearray(GOOD + b"a b ||| c d ||| 0.1 ||| 0-0 1-1\n")
    codes = set()
    for _ in range(500):
        changed = bytearray(text)
        for _ in range(dice.randint(1, 6)):
            changed[dice.randrange(len(changed))] = dice.choice(b" |\n-.0a\xff\t")
        codes.add(code_of(bytes(changed)))
    assert codes == {"", "E_PHRASE_TABLE", "E_ENCODING"}


def test_phrase_table_with_very_many_translations_keeps_the_best() -> None:
    rows = [f"a ||| w{i} ||| {1 / (i + 2):.9f}\n" for i in range(50_000)]
    random.Random(3).shuffle(rows)
    table = read("".join(rows).encode())
    [found] = Decoder(table, [], WEIGHTS, DecoderConfig(ttable_limit=3)).translate(["a"], n_best=10)
    assert [entry.words for entry in found.entries] == [("w0",), ("w1",), ("w2",)]


# -- saved tables -------------------------------------------------------------------------------

RICH = (
    b"das ||| the ||| 0.5 0.4 ||| 0-0\ndas ||| that ||| 0.25 0.1 ||| 0-0\n"
    b"haus ||| house ||| 0.25 1 ||| 0-0\ndas haus ||| the house ||| 0.1 0.2 ||| 0-0 1-1\n"
    b"klein ||| small ||| 1 1\nhaus ||| building ||| 0.2 0 ||| 0-0\n"
)
ORIENTATIONS = b"das ||| the ||| 0.1 0.2 0.7 0.3 0.3 0.4\nklein ||| small ||| 1 1 1 0.5 0.5 1\n"
SOURCES = ["das haus", "das kleine haus klein", "haus das", "", "neu"]


def decoder(table: PhraseTable) -> Decoder:
    weights = {"TranslationModel0": (1.0, 0.5), "WordPenalty0": (-0.1,), "Distortion0": (0.3,)}
    weights |= {"PhrasePenalty0": (0.2,), "UnknownWordPenalty0": (1.0,)}
    if table.has_reordering:
        weights["LexicalReordering0"] = (0.3,) * 6
    return Decoder(table, [], Weights(weights))


def everything(table: PhraseTable) -> list[object]:
    """Return all that a decoder says about some sentences, but for the time that it took."""
    found = decoder(table).translate(SOURCES, n_best=20, alignments=True, graph=True)
    return [(each.entries, each.counts, each.graph) for each in found]


@pytest.mark.parametrize("orientations", [None, ORIENTATIONS])
def test_phrase_table_that_is_saved_translates_as_it_did(
    tmp_path: Path, orientations: bytes | None
) -> None:
    given = None if orientations is None else Content("orientations", orientations)
    table = PhraseTable.read(Content("table", RICH), reordering=given)
    table.save(tmp_path / "table.safetensors")
    saved = PhraseTable.read(tmp_path / "table.safetensors")
    assert (len(saved), saved.score_count) == (6, 2)
    assert saved.has_reordering == (orientations is not None)
    assert saved.target_words() == table.target_words()
    assert everything(saved) == everything(table)
    # What was saved is saved again, byte for byte.
    saved.save(tmp_path / "again.safetensors")
    paths = [tmp_path / f"{name}.safetensors" for name in ("table", "again")]
    assert paths[0].read_bytes() == paths[1].read_bytes()


def test_phrase_table_that_is_saved_takes_orientations_later(tmp_path: Path) -> None:
    path = tmp_path / "table.safetensors"
    read(RICH).save(path)
    given = Content("orientations", ORIENTATIONS)
    with_both = PhraseTable.read(Content("table", RICH), reordering=given)
    assert everything(PhraseTable.read(path, reordering=given)) == everything(with_both)
    with_both.save(path)
    with pytest.raises(UsageError, match="has its orientations in it"):
        PhraseTable.read(path, reordering=given)


def test_phrase_table_that_is_saved_keeps_deletions_to_those_who_allow_them(tmp_path: Path) -> None:
    path = tmp_path / "table.safetensors"
    read(b"a |||  ||| 0.5\nb ||| c ||| 0.5\n", allow_deletion=True).save(path)
    with pytest.raises(UsageError, match="translated by nothing; allow_deletion"):
        PhraseTable.read(path)
    [found] = Decoder(PhraseTable.read(path, allow_deletion=True), [], WEIGHTS).translate(["a b"])
    assert found.text == "c"
    read(GOOD, allow_deletion=True).save(path)  # there are none to allow
    assert len(PhraseTable.read(path)) == 2


def test_phrase_table_counts_the_words_of_different_target_phrases() -> None:
    table = read(RICH + b"jenes haus ||| the house ||| 1 1\n")
    assert table.target_words() == {"the": 2, "that": 1, "house": 2, "small": 1, "building": 1}


def test_phrase_table_is_saved_under_names_that_say_so(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"must end in \.safetensors"):
        read(GOOD).save(tmp_path / "table.gz")
    assert not list(tmp_path.iterdir())


Arrays = dict[str, npt.NDArray[Any]]


def put(name: str, value: object, place: object = 0) -> Callable[[Arrays], None]:
    """Return a change of one number of a tensor."""

    def change(arrays: Arrays) -> None:
        arrays[name][place] = value

    return change


def replaced(name: str, value: npt.NDArray[Any]) -> Callable[[Arrays], None]:
    return lambda arrays: arrays.update({name: value})


@pytest.mark.parametrize(
    "change",
    [
        put("word_starts", 9, 1),
        put("words", ord(" "), 1),
        put("words", 0xFF, 1),
        put("source_starts", 1 << 60, 1),
        put("target_words", 1 << 31),
        put("target_starts", 1 << 60, 1),
        put("row_starts", 1 << 31, 1),
        put("targets", 1 << 31),
        put("scores", np.nan, (0, 0)),
        put("scores", 1e300, (0, 1)),
        put("point_starts", 1 << 60, 1),
        put("points", 200, (0, 1)),
        put("shape", 0, 0),
        put("shape", 256, 0),
        replaced("scores", np.zeros((5, 2))),
        replaced("scores", np.zeros((6, 0))),
        replaced("scores", np.zeros((6, 2), np.float32)),
        replaced("points", np.zeros((5, 3), np.uint8)),
        replaced("orientations", np.zeros((5, 6))),
        replaced("orientations", np.full((6, 6), np.inf)),
        replaced("targets", np.zeros(0, np.uint32)),
        replaced("more", np.zeros(1)),
        lambda arrays: arrays.__delitem__("points"),
    ],
)
def test_phrase_table_that_is_forged_is_refused(
    tmp_path: Path, change: Callable[[Arrays], None]
) -> None:
    path = tmp_path / "table.safetensors"
    read(RICH).save(path)
    tables = open_tables(path)
    arrays = {name: array.copy() for name, array in tables.items()}
    change(arrays)
    write_tables(path, arrays, tables.metadata)
    # Some things are looked at when the file is opened, others when they are used.
    with pytest.raises(ModelFileError, match=r"table\.safetensors") as caught:
        everything(PhraseTable.read(path))
    assert caught.value.code == "E_MODEL_TABLES"


@pytest.mark.parametrize(
    ("metadata", "message"),
    [
        ({}, "no table that this treelm can translate with"),
        ({"format": "treelm phrase table", "version": "2"}, "a table of version 2 that"),
    ],
)
def test_phrase_table_of_another_kind_is_refused(
    tmp_path: Path, metadata: dict[str, str], message: str
) -> None:
    path = tmp_path / "table.safetensors"
    read(RICH).save(path)
    write_tables(path, {name: array.copy() for name, array in open_tables(path).items()}, metadata)
    with pytest.raises(ModelFileError, match=message):
        PhraseTable.read(path)


def outcome_of(path: Path) -> str:
    """Return the code of the error that a saved table gives, if any."""
    try:
        everything(PhraseTable.read(path, allow_deletion=True))
    except ModelFileError as error:
        return error.code
    return ""


def test_phrase_table_survives_whatever_is_in_a_saved_file(tmp_path: Path) -> None:
    path = tmp_path / "table.safetensors"
    PhraseTable.read(Content("table", RICH), reordering=Content("orientations", ORIENTATIONS)).save(
        path
    )
    data = path.read_bytes()
    start = 8 + int.from_bytes(data[:8], "little")
    dice = random.Random(5)
    codes = []
    for number in range(400):
        changed = bytearray(data)
        for _ in range(dice.randint(1, 4)):
            changed[dice.randrange(start if number % 2 else 8, len(data))] = dice.randrange(256)
        path.write_bytes(changed)
        codes.append(outcome_of(path))
    assert set(codes) == {"", "E_MODEL_TABLES"}
    assert 20 < codes.count("") < 380
