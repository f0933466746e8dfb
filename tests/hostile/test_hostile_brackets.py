"""Brackets that are malformed, huge, deep, or no brackets at all."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest
from tests.command_line import (
    SANITIZED,
    Done,
    assert_fine,
    assert_refused,
    processor_time_below,
    treelm,
    treelm_inside,
    treelm_peak_memory,
)
from tests.hostile.inputs import GOOD

from treelm import _native

Capture = pytest.CaptureFixture[bytes]

#: Code, malformed line, column of the offence.
MALFORMED = [
    ("E_UNBALANCED", b"(S (NP a)", 1),
    ("E_UNBALANCED", b"(S (NP a)))", 11),
    ("E_UNBALANCED", b")", 1),
    ("E_UNBALANCED", b"(", 1),
    ("E_TEXT_OUTSIDE", b"hello (S (NP a))", 1),
    ("E_TEXT_OUTSIDE", b"(S (NP a)) hello", 12),
    ("E_MIXED", b"(S word (NP a))", 9),
    ("E_MIXED", b"(S (NP a) word)", 11),
    ("E_MULTI_WORD", b"(S (NP a b))", 10),
    ("E_NO_WORD", b"(S (NP))", 4),
    ("E_NO_WORD", b"()", 1),
    ("E_EMPTY_LABEL", b"(S ( (NP a)))", 4),
    ("E_EMPTY_LABEL", b"(())", 2),
    ("E_DEPTH", b"(A (B (C (D (E (F (G g)))))))", 19),
    ("E_ENCODING", b"(S (N\xffP a))", 6),
    ("E_ENCODING", b"(S (NP a\xc3))", 9),
    ("E_ENCODING", b"(S (NP \xed\xa0\x80))", 8),  # a surrogate
    ("E_ENCODING", b"(S (NP \xc0\xaf))", 8),  # an overlong slash
    ("E_ENCODING", b"(S (NP \xf4\x90\x80\x80))", 8),  # beyond Unicode
]
NAMES = [f"{code}-{line!r}" for code, line, _ in MALFORMED]
COMMANDS = {
    "transform": ["transform", "--pipeline", "clean"],
    "binarize": ["transform", "--pipeline", "binarize"],
    "undo": ["transform", "--pipeline", "binarize", "--undo"],
    "draw": ["draw"],
}


def test_hostile_brackets_every_code_is_tested() -> None:
    of_trees = set(_native.ERROR_SENTENCES) - {"E_TOO_LARGE", "E_ARGUMENT", "E_FORKED", "E_THREADS"}
    of_trees -= {"E_RESERVED_SYMBOL", "E_BAD_TOKEN", "E_TEMPORARY", "E_NAN"}  # of words, files
    of_trees -= {"E_OVERFLOW", "E_CHAIN", "E_NO_DATA", "E_MODEL_TABLES", "E_ARPA"}  # of counts
    of_trees -= {"E_YIELD_MISMATCH", "E_PHRASE_TABLE"}  # of lists of trees, of translation
    assert of_trees == {code for code, _, _ in MALFORMED} | {"E_RESERVED_CHAR"}


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("malformed", MALFORMED, ids=NAMES)
def test_hostile_brackets_malformed(
    tmp_path: Path, capfdbinary: Capture, command: str, malformed: tuple[str, bytes, int]
) -> None:
    code, line, column = malformed
    file, target = tmp_path / "trees.mrg", tmp_path / "out"
    file.write_bytes(GOOD + b"\n" + line + b"\n" + GOOD)
    place = f"{file}:3:{column}: tree "
    for policy in ("skip", "raise"):
        done = treelm_inside(
            capfdbinary,
            *COMMANDS[command],
            *(file, "-o", target, "--max-depth", "6", "--on-error", policy),
        )
        message = assert_refused(done, 3, place, f"({code})")
        assert message.count("(E_") == 1
        assert done.stdout == b""
        assert list(tmp_path.iterdir()) == [file]


@pytest.mark.parametrize(("code", "line", "column"), MALFORMED, ids=NAMES)
def test_hostile_brackets_malformed_inspected(
    tmp_path: Path, capfdbinary: Capture, code: str, line: bytes, column: int
) -> None:
    file = tmp_path / "trees.mrg"
    file.write_bytes(GOOD + b"\n" + line + b"\n" + GOOD)
    done = treelm_inside(capfdbinary, "inspect", file, "--json", "--max-depth", "6")
    record = json.loads(assert_fine(done))
    problem = record["problems"][0]
    assert (problem["code"], problem["line"], problem["column"]) == (code, 3, column)
    assert len(record["problems"]) == record["malformed"] == 1
    assert record["trees"] >= 2


@pytest.mark.parametrize("character", list("@+^|\\~"))
@pytest.mark.parametrize(
    "pipeline", ["treelet", "binarize", "unary-chains", "markovize", "right-corner", "lexicalize"]
)
def test_hostile_brackets_reserved_characters(
    tmp_path: Path, capfdbinary: Capture, character: str, pipeline: str
) -> None:
    """A label that could not be told from a made one is refused, or comes back whole."""
    file, made = tmp_path / "trees.mrg", tmp_path / "made.mrg"
    words = tmp_path / "words"
    words.write_text("week\n")
    tree = f"(ROOT (S ({character}P (A a) (B b) (C c)) (X{character}Y (D d) (E e))))\n"
    file.write_text(tree)
    arguments = ["transform", "--pipeline", pipeline, "--temporal", words]
    done = treelm_inside(capfdbinary, *arguments, file, "-o", made)
    if done.returncode:
        assert_refused(done, 3, f"{file}:1", "(E_RESERVED_CHAR)")
        assert not made.exists()
        return
    assert_fine(done)
    assert made.read_bytes().count(b"\n") == 1
    if pipeline not in ("treelet", "lexicalize"):
        done = treelm_inside(capfdbinary, *arguments, "--undo", made)
        cut = tree if character != "|" else tree.replace("X|Y", "X")
        assert assert_fine(done).decode() == cut


def test_hostile_brackets_reserved_characters_stay_when_nothing_is_made(
    tmp_path: Path, capfdbinary: Capture
) -> None:
    file = tmp_path / "trees.mrg"
    file.write_bytes(b"(A@+^\\ (B~[]/ @+^|\\~[]/=-))\n")
    done = treelm_inside(capfdbinary, "transform", "--pipeline", "clean", file)
    assert assert_fine(done) == b"(ROOT (A@+^\\ (B~[]/ @+^|~[]/=-)))\n".replace(b"|~", b"|\\~")


def junk() -> dict[str, bytes]:
    """Files that hold no tree at all, by name."""
    dice = random.Random(20260101)
    return {
        "random": dice.randbytes(30_000),
        "random brackets": bytes(dice.choices(b"()) \n\0\xffA", k=30_000)),
        "elf": b"\x7fELF\x02\x01\x01" + bytes(9) + dice.randbytes(5000),
        "gzip": b"\x1f\x8b\x08\x00" + dice.randbytes(5000),
        "every byte": bytes(range(256)) * 20,
        "zeros": bytes(50_000),
        "utf-16": "\ufeff(S (NP (PRP I)) (VP (VBP sleep)))\n".encode("utf-16-le") * 50,
        "utf-16 big": "\ufeff(S (NP (PRP I)) (VP (VBP sleep)))\n".encode("utf-16-be") * 50,
        "utf-32": "\ufeff(S (NN x))\n".encode("utf-32-le") * 50,
        "invalid outside": b"\xff\xfe\n",
        "empty": b"",
        "blank": b" \n\t\r\n\v\f\n   ",
        "mark": b"\xef\xbb\xbf",
        "comments": b"*x* one\n*x* (two)\n*x*",
        "newlines": b"\n" * 100_000,
        "carriage returns": b"\r" * 100_000,
        "text": b"This is a text, and no tree.\n" * 100,
        "markup": b"<html><body>(not a tree</body></html>\n" * 100,
        "only empty elements": b"(S (NP (-NONE- *)))\n" * 100,
    }


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("kind", junk())
def test_hostile_brackets_junk(
    tmp_path: Path, capfdbinary: Capture, command: str, kind: str
) -> None:
    if command == "undo" and kind == "only empty elements":
        pytest.skip("nothing is stripped before an undo")
    file, target = tmp_path / "junk.mrg", tmp_path / "out"
    file.write_bytes(junk()[kind])
    done = treelm_inside(capfdbinary, *COMMANDS[command], file, "-o", target)
    assert_refused(done, 3, str(file))
    assert done.stdout == b""
    assert list(tmp_path.iterdir()) == [file]


@pytest.mark.parametrize("kind", sorted(junk().keys() - {"only empty elements", "random brackets"}))
def test_hostile_brackets_junk_inspected_or_evaluated(
    tmp_path: Path, capfdbinary: Capture, kind: str
) -> None:
    file, good = tmp_path / "junk.mrg", tmp_path / "good.mrg"
    file.write_bytes(junk()[kind])
    good.write_bytes(GOOD * 5)
    assert_refused(treelm_inside(capfdbinary, "inspect", file), 3, str(file))
    done = treelm_inside(capfdbinary, "evaluate", "parses", good, file)
    assert_refused(done, 3, str(file))
    assert done.stdout == b""
    done = treelm_inside(capfdbinary, "tokenize", file)
    assert done.returncode in (0, 3)
    if done.returncode:
        assert_refused(done, 3, str(file))


def ten_megabytes() -> dict[str, tuple[bytes, int, str]]:
    """Lines of 10 MB, with the exit code and what the answer holds."""
    size = 10_000_000
    return {
        "one tree": (b"(S " + b"(NP (DT the) (NN dog)) " * (size // 23) + b")\n", 0, ""),
        "letters": (b"a" * size, 3, "plain text"),
        "opening": (b"(" * size, 3, "E_UNBALANCED"),
        "closing": (b")" * size, 3, "plain text"),
        "one word": (b"(S (IN " + b"a" * size + b"))\n", 0, ""),
        "one label": (b"(S (" + b"A" * size + b" b))\n", 0, ""),
        "capital sigmas": (b"(S (IN " + "Σ".encode() * (size // 2) + b"))\n", 0, ""),
        "backslashes": (b"(S (IN " + b"\\" * size + b"))\n", 0, ""),
        "stars": (b"*" * size, 3, "plain text"),
        "comment": (b"*x*" + b"(" * size, 3, "no trees"),
        "two words": (b"(S (IN " + b"a " * (size // 2) + b"))\n", 3, "E_MULTI_WORD"),
        "bytes": (b"(S (IN " + b"\x80" * size + b"))\n", 3, "E_ENCODING"),
    }


@pytest.mark.parametrize("kind", ten_megabytes())
def test_hostile_brackets_line_of_ten_megabytes(
    tmp_path: Path, capfdbinary: Capture, kind: str
) -> None:
    content, code, part = ten_megabytes()[kind]
    file, target, words = tmp_path / "huge.mrg", tmp_path / "out.mrg", tmp_path / "words"
    file.write_bytes(content)
    words.write_text("week\n")
    arguments = ("transform", file, "-o", target, "--temporal", words)
    with processor_time_below(20):
        done = treelm_inside(capfdbinary, *arguments)
    if code:
        assert_refused(done, code, str(file), part)
        assert not target.exists()
        return
    assert_fine(done)
    assert target.stat().st_size >= len(content) - 100
    assert target.read_bytes().count(b"\n") == 1


def deep(*, closed: bool) -> bytes:
    """Brackets nested 100,000 deep; labels alternate, so that nothing is collapsed."""
    return b"(A (B " * 50_000 + b"b" + (b")" * 100_000 if closed else b"") + b"\n"


@pytest.mark.parametrize("closed", [True, False])
def test_hostile_brackets_deep_nesting_is_refused(
    tmp_path: Path, capfdbinary: Capture, closed: bool
) -> None:
    file = tmp_path / "deep.mrg"
    file.write_bytes(deep(closed=closed))
    done = treelm_inside(capfdbinary, "transform", "--pipeline", "clean", file)
    assert_refused(done, 3, f"{file}:1:", "E_DEPTH" if closed else "E_UNBALANCED")
    done = treelm_inside(capfdbinary, "evaluate", "parses", file, file)
    assert b"Traceback" not in done.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        ["transform", "--pipeline", "clean"],
        ["transform", "--pipeline", "treelet", "--without", "temporal_nouns", "--threads=2"],
        ["transform", "--pipeline", "right-corner"],
        ["draw"],
        ["inspect"],
        ["evaluate", "parses"],
    ],
    ids=" ".join,
)
def test_hostile_brackets_deep_nesting_works_when_allowed(
    tmp_path: Path, arguments: list[str]
) -> None:
    file = tmp_path / "deep.mrg"
    file.write_bytes(deep(closed=True))
    files = [file, file] if "parses" in arguments else [file]
    # A process of its own: deep trees would take the test's own stack down with them.
    done = treelm(*arguments, "--max-depth", "200000", *files)
    out = assert_fine(done)
    if arguments[0] == "draw":
        assert out.count(b"\n") >= 100_000
    elif arguments == ["inspect"]:
        assert b"deepest                100001" in out
    elif "parses" in arguments:
        assert b"labelled f1           1.0000" in out
    elif "clean" in arguments:
        assert out == b"(ROOT " + deep(closed=True)[:-1] + b")\n"


@pytest.mark.skipif(SANITIZED, reason="a sanitizer needs more memory than the limit")
def test_hostile_brackets_million_trees_on_one_line(tmp_path: Path) -> None:
    file, target = tmp_path / "tiny.mrg", tmp_path / "out.mrg"
    file.write_bytes(b"(A (B c))" * 1_000_000)
    done, peak = treelm_peak_memory("transform", "--pipeline", "clean", file, "-o", target)
    assert_fine(done)
    assert target.stat().st_size == len(b"(ROOT (A (B c)))\n") * 1_000_000
    assert peak < 256


MILLIONS = {
    "no word": b"(A (B ))\n",
    "stray closers": b"(A b))\n",
    "invalid": b"(A \xff)\n",
    "one line": b"(A )",
    "unclosed": b"(S (NP a)\n",
    "unclosed in turn": b"(S (NP a) (\n(S (NP a))\n",
}


@pytest.mark.skipif(SANITIZED, reason="a sanitizer needs more memory than the limit")
@pytest.mark.parametrize("kind", MILLIONS)
def test_hostile_brackets_million_malformed_trees_in_bounded_memory(
    tmp_path: Path, kind: str
) -> None:
    file, target = tmp_path / "malformed.mrg", tmp_path / "out.mrg"
    count = 1_000_000 if kind in ("no word", "unclosed") else 150_000
    file.write_bytes(MILLIONS[kind] * count)
    with processor_time_below(40):
        done, peak = treelm_peak_memory("transform", "--pipeline", "clean", file, "-o", target)
    what = "Text outside trees" if kind == "stray closers" else "trees were malformed"
    assert_refused(done, 3, f"{file}:1:", what, "more than 1%")
    assert list(tmp_path.iterdir()) == [file]
    assert peak < 300


@pytest.mark.parametrize(
    ("pattern", "count"),
    [
        (b"(\n", 400_000),
        (b")\n", 400_000),
        (b"(\n)\n))\n(\n", 150_000),
        (b"((\n)", 200_000),
        (b"*x* (\n(", 150_000),
        (b"(S (NP a)) (\n", 100_000),
        (b"(((((((((\n", 60_000),
        (b"a ( ", 200_000),
    ],
)
def test_hostile_brackets_quadratic_traps(
    tmp_path: Path, capfdbinary: Capture, pattern: bytes, count: int
) -> None:
    file = tmp_path / "trap.mrg"
    file.write_bytes(pattern * count)
    command = ("transform", "--pipeline", "clean", "--threads", "1", file)
    with processor_time_below(15):
        done = treelm_inside(capfdbinary, *command)
    assert_refused(done, 3, f"{file}:")


def test_hostile_brackets_byte_by_byte_and_at_once_are_the_same() -> None:
    from treelm.corpus.brackets import ReadReport, read_packed

    dice = random.Random(7)
    content = bytes(dice.choices(b"(() )A\n\r*x\xc3\xa9", k=8_000)) + GOOD
    reports = []
    for size in (1, 7, 4096, len(content)):
        report = ReadReport()
        blocks = [content[at : at + size] for at in range(0, len(content), size)]
        trees = [
            str(tree)
            for batch in read_packed(blocks, on_error="skip", report=report)
            for tree in batch
        ]
        places = [(p.code, p.tree, p.line, p.column) for p in report.problems]
        reports.append((trees, report.failed, places))
    assert all(report == reports[0] for report in reports)


ESCAPES = "\x1b[31mred\x1b[0m \x1b]0;title\x07 \x9b31m \u202eabc \x7f \x08 \u2066"


def assert_harmless(done: Done) -> None:
    for stream in (done.stdout, done.stderr):
        text = stream.decode()
        assert all(c.isprintable() or c in "\n\t" for c in text), ascii(text)


@pytest.mark.parametrize(
    "arguments",
    [
        ["draw"],
        ["draw", "--ascii"],
        ["draw", "--layout", "indented"],
        ["draw", "--format", "svg"],
        ["draw", "--format", "latex"],
        ["inspect"],
    ],
    ids=" ".join,
)
def test_hostile_brackets_escape_sequences_are_not_drawn(
    tmp_path: Path, capfdbinary: Capture, arguments: list[str]
) -> None:
    file = tmp_path / "trees.mrg"
    words = "".join(f"(N{word}N {word})" for word in ESCAPES.split())
    file.write_text(f"(S {words})\n")
    done = treelm_inside(capfdbinary, *arguments, file)
    assert done.returncode == 0
    assert_harmless(done)


@pytest.mark.parametrize("pattern", ["(S (NP {}", "{} (S (NP a))", "(S (NP a {}))", "(S ({}))"])
def test_hostile_brackets_escape_sequences_in_messages(
    tmp_path: Path, capfdbinary: Capture, pattern: str
) -> None:
    file = tmp_path / "trees.mrg"
    for word in ESCAPES.split():
        file.write_text(pattern.format(word) + "\n")
        assert_refused(treelm_inside(capfdbinary, "draw", file), 3, f"{file}:1:")
        assert_harmless(treelm_inside(capfdbinary, "inspect", file))


def test_hostile_brackets_escape_sequences_in_differing_words(
    tmp_path: Path, capfdbinary: Capture
) -> None:
    gold, system = tmp_path / "gold", tmp_path / "system"
    gold.write_text("(S (NN \x1b[31mred))\n")
    system.write_text("(S (NN \x1b[2Jblue))\n")
    done = treelm_inside(capfdbinary, "evaluate", "parses", gold, system)
    assert_refused(done, 3, "red", "blue")


def test_hostile_brackets_strange_spaces_and_line_ends(
    tmp_path: Path, capfdbinary: Capture
) -> None:
    """ASCII blanks separate; every other space is part of a word."""
    file = tmp_path / "trees.mrg"
    file.write_bytes("(S\t(NP\va\f)\r\n\r(VP \u00a0\u2003\u3000\ufeff\u200b))\r\n".encode())
    done = treelm_inside(capfdbinary, "transform", "--pipeline", "clean", file)
    expected = "(ROOT (S (NP a) (VP \u00a0\u2003\u3000\ufeff\u200b)))\n"
    assert assert_fine(done).decode() == expected


def test_hostile_brackets_null_bytes_are_characters(tmp_path: Path, capfdbinary: Capture) -> None:
    file = tmp_path / "trees.mrg"
    file.write_bytes(b"(S (N\0P a\0b))\n" * 2)
    done = treelm_inside(capfdbinary, "transform", "--pipeline", "clean", file)
    assert assert_fine(done) == b"(ROOT (S (N\0P a\0b)))\n" * 2
