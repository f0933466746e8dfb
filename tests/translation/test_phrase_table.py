"""Phrase tables: what is read, and what is refused with its place."""

from __future__ import annotations

import gzip
import lzma
import math
import random
from pathlib import Path

import pytest

from treelm.corpus.files import Content
from treelm.errors import CorpusFormatError
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
