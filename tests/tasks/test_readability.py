"""Readability sheets: four classes, blinded; counts, agreement and significance."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest
from tests.command_line import assert_fine, assert_refused, treelm_inside

from treelm.errors import CorpusFormatError, UsageError
from treelm.tasks.judge.agreement import cohen_kappa
from treelm.tasks.judge.readability import (
    CLASSES,
    class_of,
    export_readability,
    import_readability,
)

Capture = pytest.CaptureFixture[bytes]
Cell = tuple[str, str]

A = ["we saw it", "it rained", "same", "he came"]
B = ["we it saw", "rained it", "same", "came he"]


@pytest.fixture
def files(tmp_path: Path) -> Path:
    for name, lines in (("a.txt", A), ("b.txt", B), ("ref.txt", A)):
        (tmp_path / name).write_text("".join(f"{line}\n" for line in lines))
    return tmp_path


def export(files: Path, **options: object) -> Path:
    export_readability(
        [files / "a.txt", files / "b.txt"],
        files / "sheet.csv",
        seed=1,
        **options,  # type: ignore[arg-type]
    )
    return files / "sheet.csv"


def filled(sheet: Path, rater: str, answers: dict[str, Cell]) -> Path:
    """Fill in a sheet: (grammar, meaning) by text."""
    with sheet.open(encoding="utf-8-sig", newline="") as file:
        rows = list(csv.DictReader(file))
    path = sheet.with_name(f"{rater}.csv")
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, rows[0])
        writer.writeheader()
        for row in rows:
            grammar, meaning = answers.get(row["text"], ("good", "good"))
            writer.writerow(row | {"grammar": grammar, "meaning": meaning, "rater": rater})
    return path


BAD_GRAMMAR = {
    "we it saw": ("bad", "good"),
    "rained it": ("bad", "bad"),
    "came he": ("bad", "good"),
}


def test_a_sheet_is_blind_and_shows_equal_texts_once(files: Path) -> None:
    done = export_readability(
        [files / "a.txt", files / "b.txt"],
        files / "sheet.csv",
        seed=1,
        references=files / "ref.txt",
        repeated=0.3,
    )
    assert (done.sentences, done.rows, done.repeated) == (4, 7, 2)
    text = done.sheet.read_text(encoding="utf-8-sig")
    assert text.splitlines()[0] == "item,reference,text,grammar,meaning,rater,comment"
    assert "a.txt" not in text
    assert len(text.splitlines()) == 1 + 7 + 2
    items = json.loads(done.key.read_text())["items"]
    assert all(item["systems"] == [0, 1] for item in items if item["line"] == 3)
    again = export(files, references=files / "ref.txt", repeated=0.3)
    assert again.read_text(encoding="utf-8-sig") == text


def test_classes_are_counted_and_compared(files: Path) -> None:
    sheet = export(files)
    found = import_readability([filled(sheet, "anna", BAD_GRAMMAR)], files / "sheet.key.json")
    assert found.counts == {
        "a.txt": dict(zip(CLASSES, (4, 0, 0, 0), strict=True)),
        "b.txt": dict(zip(CLASSES, (1, 2, 0, 1), strict=True)),
    }
    # Three sentences of which only A's grammar is good: 2 * (1/8).
    assert found.differences == {
        "a.txt - b.txt": {"grammar": 0.25, "meaning": 1.0, "perfect": 0.25}
    }
    assert (found.sentences, found.ratings, found.raters) == (4, 7, 1)
    assert found.cohen is None


def test_of_two_raters_both_must_call_it_good(files: Path) -> None:
    sheet = export(files, repeated=1.0)
    sheets = [filled(sheet, "anna", BAD_GRAMMAR), filled(sheet, "ben", {})]
    found = import_readability(sheets, files / "sheet.key.json")
    assert found.counts["b.txt"]["perfect"] == 1
    assert found.self_agreement == 1.0
    assert found.repeated == 14
    # Seven rows: ben always says perfect, anna four times; chance is 4/7, and they agree on 4.
    assert found.cohen == pytest.approx(0.0)


def test_kappa_of_two_raters_by_hand() -> None:
    pairs = [("y", "y")] * 20 + [("y", "n")] * 5 + [("n", "y")] * 10 + [("n", "n")] * 15
    assert cohen_kappa(pairs) == pytest.approx((0.7 - 0.5) / (1 - 0.5))
    assert cohen_kappa([]) is None
    assert cohen_kappa([("y", "y")]) is None


def test_the_four_classes() -> None:
    found = [class_of(grammar=g, meaning=m) for g in (True, False) for m in (True, False)]
    assert found == ["perfect", "grammar only", "meaning only", "wrong"]


def test_malformed_sheets_are_refused(files: Path) -> None:
    sheet = export(files)
    key = files / "sheet.key.json"
    with pytest.raises(CorpusFormatError, match="nothing was rated"):
        import_readability([sheet], key)
    half = filled(sheet, "half", {"it rained": ("good", "")})
    with pytest.raises(CorpusFormatError, match="rate both or none"):
        import_readability([half], key)
    wrong = filled(sheet, "wrong", {"it rained": ("fine", "good")})
    with pytest.raises(CorpusFormatError, match='the grammar is "fine"; it must be good or bad'):
        import_readability([wrong], key)
    twice = filled(sheet, "anna", {})
    with pytest.raises(CorpusFormatError, match="already rated the item"):
        import_readability([twice, twice], key)
    other = export_readability([files / "b.txt"], files / "other.csv", seed=2)
    with pytest.raises(CorpusFormatError, match="is not in the key"):
        import_readability([twice], other.key)
    with pytest.raises(CorpusFormatError, match="not the key of a sheet") as seen:
        import_readability([twice], sheet)
    assert seen.value.code == "E_JUDGE_KEY"
    with pytest.raises(UsageError, match="9 sentences were requested; there are 4"):
        export(files, number=9)
    (files / "b.txt").write_text("one\n")
    with pytest.raises(CorpusFormatError, match=r"a.txt has 4 lines and .*b.txt has 1"):
        export(files)


def test_the_commands(files: Path, capfdbinary: Capture) -> None:
    done = treelm_inside(
        capfdbinary,
        *("judge", "export-readability", files / "a.txt", files / "b.txt", "--references"),
        *(files / "ref.txt", "-o", files / "sheet.csv", "--seed", "1", "--count", "4"),
    )
    assert_fine(done, b"treelm: give raters sheet.csv, never sheet.key.json.\n")
    rated = filled(files / "sheet.csv", "anna", BAD_GRAMMAR)
    call = ("judge", "import-readability", rated, "--key", files / "sheet.key.json")
    record = json.loads(assert_fine(treelm_inside(capfdbinary, *call, "--json")))
    assert record["counts"]["b.txt"]["meaning only"] == 2
    text = assert_fine(treelm_inside(capfdbinary, *call)).decode()
    assert text.splitlines()[0].split("  ")[0] == "system"
    assert "a.txt - b.txt: grammar p" in text
    done = treelm_inside(capfdbinary, *call[:-1], files / "a.txt")
    assert_refused(done, 3, "not the key of a sheet")
