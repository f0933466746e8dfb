"""`treelm judge`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.command_line import assert_fine, assert_refused, treelm, treelm_inside


@pytest.fixture
def texts(tmp_path: Path) -> Path:
    (tmp_path / "a.txt").write_text("we saw it\nit rained\nsame\n", encoding="utf-8")
    (tmp_path / "b.txt").write_text("we it saw\nrained it\nsame\n", encoding="utf-8")
    return tmp_path


def export(folder: Path, *options: str) -> bytes:
    done = treelm(
        "judge", "export", "a.txt", "b.txt", "-o", "pairs.csv", "--seed", "1", *options, cwd=folder
    )
    return assert_fine(done, None)


def test_export_says_how_many_pairs_are_needed(texts: Path) -> None:
    record = json.loads(export(texts, "--json"))
    assert record["pairs"] == 2
    assert record["identical"] == 1
    assert record["required"] == 783
    assert record["required_by_exact_test"] == 820
    assert record["power_at_required"] == pytest.approx(0.789, abs=5e-4)
    assert (texts / record["key"]).is_file()


def test_export_notes_go_to_standard_error(texts: Path) -> None:
    arguments = ("judge", "export", "a.txt", "b.txt", "-o", "pairs.csv", "--seed", "1")
    done = treelm(*arguments, cwd=texts)
    assert b"783 decided pairs" in done.stderr
    assert b"820 by the exact sign test" in done.stderr
    assert b"never pairs.key.json" in done.stderr
    assert_fine(treelm(*arguments, "-q", cwd=texts), b"")


def test_import_reads_what_raters_wrote(
    texts: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    export(texts)
    key = json.loads((texts / "pairs.key.json").read_bytes())
    lines = (texts / "pairs.csv").read_text(encoding="utf-8").splitlines()
    answers = ["left" if item["left"] == "A" else "right" for item in key["items"]]
    rated = [lines[0], *(line.replace(",,,", f",{a},,") for line, a in zip(lines[1:], answers, strict=True))]  # fmt: skip
    (texts / "rated.csv").write_text("\n".join(rated) + "\n", encoding="utf-8")
    done = treelm_inside(
        capfdbinary,
        "judge",
        "import",
        texts / "rated.csv",
        "--key",
        texts / "pairs.key.json",
        "--json",
    )
    record = json.loads(assert_fine(done, None))
    assert (record["rate"], record["decided"], record["p"]) == (1.0, 2, 0.5)
    assert record["system_a"] == "a.txt"
    assert b"2 pairs were decided; 783 are needed" in done.stderr


def test_wrong_use_is_refused(texts: Path) -> None:
    base = ("judge", "export", "a.txt", "b.txt")
    assert_refused(treelm(*base, "-o", "p.csv", cwd=texts), 2, "--seed")
    assert_refused(treelm(*base, "--seed", "1", cwd=texts), 2, "--output")
    assert_refused(treelm(*base, "-o", "-", "--seed", "1", cwd=texts), 2, "beside it")
    assert_refused(
        treelm(*base, "-o", "p.csv", "--seed", "1", "-n", "9", cwd=texts), 2, "there are 2"
    )
    assert_refused(
        treelm("judge", "export", "a.txt", "no.txt", "-o", "p", "--seed", "1", cwd=texts),
        3,
        "no.txt",
    )
    assert sorted(path.name for path in texts.iterdir()) == ["a.txt", "b.txt"]


def test_malformed_sheets_name_file_and_line(texts: Path) -> None:
    export(texts)
    (texts / "bad.csv").write_text("item,preference\n1-x,left\n", encoding="utf-8")
    done = treelm("judge", "import", "bad.csv", "--key", "pairs.key.json", cwd=texts)
    assert_refused(done, 3, "bad.csv:2: ", "not in the key")
    done = treelm("judge", "import", "pairs.csv", "--key", "pairs.key.json", cwd=texts)
    assert_refused(done, 3, "nothing was rated")
    done = treelm("judge", "import", "pairs.csv", "--key", "a.txt", cwd=texts)
    assert_refused(done, 3, "not the key")
