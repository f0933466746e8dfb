"""`treelm evaluate translation`: the figures of sacreBLEU, and differences between systems."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from tests.command_line import assert_refused, treelm_inside

from treelm.errors import CorpusFormatError, UsageError
from treelm.tasks.evaluate.translation import (
    Translations,
    evaluate_translations,
    lines_of_source_length,
)

sacrebleu = pytest.importorskip("sacrebleu.metrics")

Capture = pytest.CaptureFixture[bytes]

REFERENCE = (
    "the cat sat on a mat .",
    "two dogs run over the green grass .",
    "a man is reading a newspaper in the park .",
    "children play with a red ball .",
    "a woman in a blue dress sings .",
)
OTHER = tuple(line.replace("a ", "one ") for line in REFERENCE)
GOOD = tuple(line.replace("red", "big") for line in REFERENCE)
POOR = (
    "cat sat at mat .",
    "two dogs ran on grass green .",
    "man is reading the newspaper in park .",
    "children play with ball .",
    "woman in blue dress sings a song .",
)


def texts(*lines: tuple[str, ...]) -> list[Translations]:
    return [Translations(f"file{number}", each) for number, each in enumerate(lines)]


@pytest.mark.parametrize("references", [(REFERENCE,), (REFERENCE, OTHER)])
def test_figures_are_those_of_sacrebleu(references: tuple[tuple[str, ...], ...]) -> None:
    found = evaluate_translations(texts(GOOD, POOR), texts(*references), seed=1, rounds=50)
    for name, lines in zip(("file0", "file1"), (GOOD, POOR), strict=True):
        for metric, scorer in (
            ("BLEU", sacrebleu.BLEU()),
            ("chrF", sacrebleu.CHRF()),
            ("TER", sacrebleu.TER()),
        ):
            score = found.systems[name][metric]
            assert score.runs == (scorer.corpus_score(lines, references).score,)
            assert score.signature == str(scorer.get_signature())
            assert score.deviation is None
    # The statistics that are resampled add up to the same figures.
    for metric, difference in found.differences["file1"].items():
        before, after = (found.systems[name][metric].mean for name in ("file0", "file1"))
        assert difference.difference == pytest.approx(after - before, abs=1e-9)


def test_differences_follow_the_formula() -> None:
    found = evaluate_translations(texts(POOR, GOOD), texts(REFERENCE), seed=3, rounds=200)
    difference = found.differences["file1"]["BLEU"]
    assert difference.p_one_sided == 1 / 201  # better in every sample
    assert difference.p_value == 2 / 201
    low, high = difference.interval
    assert 0 < low < difference.difference < high
    # Less TER is better.
    assert found.differences["file1"]["TER"].difference < 0


def test_equal_systems_do_not_differ() -> None:
    found = evaluate_translations(texts(GOOD, GOOD), texts(REFERENCE), seed=1, rounds=100)
    for difference in found.differences["file1"].values():
        assert (difference.difference, difference.p_value) == (0.0, 1.0)
        assert difference.interval == (0.0, 0.0)


def test_runs_are_averaged() -> None:
    found = evaluate_translations(
        texts(POOR, GOOD, GOOD, REFERENCE), texts(REFERENCE), seed=1, runs=2, rounds=50
    )
    scores = {name: each["BLEU"] for name, each in found.systems.items()}
    assert list(scores) == ["file0", "file2"]
    assert scores["file2"].runs[1] == pytest.approx(100)
    assert scores["file0"].mean == pytest.approx(np.mean(scores["file0"].runs))
    assert scores["file0"].deviation == pytest.approx(np.std(scores["file0"].runs, ddof=1))
    assert found.differences["file2"]["BLEU"].difference == pytest.approx(
        scores["file2"].mean - scores["file0"].mean
    )
    with pytest.raises(UsageError, match="3 files of translations, which is no multiple of 2"):
        evaluate_translations(texts(POOR, GOOD, GOOD), texts(REFERENCE), seed=1, runs=2)


def test_several_comparisons_are_corrected() -> None:
    found = evaluate_translations(texts(POOR, GOOD, OTHER), texts(REFERENCE), seed=1, rounds=199)
    alone = evaluate_translations(texts(POOR, GOOD), texts(REFERENCE), seed=1, rounds=199)
    ours, one = (each.differences["file1"]["BLEU"] for each in (found, alone))
    assert ours.p_one_sided == one.p_one_sided
    assert ours.p_value == pytest.approx(2 * one.p_value)


def test_lines_must_be_as_many() -> None:
    with pytest.raises(CorpusFormatError, match="file0 has 5 lines, but short has 1") as seen:
        evaluate_translations([Translations("short", ("a",))], texts(REFERENCE), seed=1)
    assert seen.value.code == "E_LENGTH_MISMATCH"
    with pytest.raises(CorpusFormatError, match="nothing to measure"):
        evaluate_translations(texts(()), texts(()), seed=1)


def test_sentences_are_chosen_by_the_length_of_the_source(tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.write_text("\n".join(" ".join("w" * length) for length in (0, 1, 20, 21)) + "\n")
    assert lines_of_source_length(source, 1, 20, lines=4) == [1, 2]
    assert lines_of_source_length(source, 1, None, lines=4) == [1, 2, 3]
    with pytest.raises(CorpusFormatError, match="has 4 lines, but the references have 5"):
        lines_of_source_length(source, 1, 20, lines=5)


@pytest.fixture
def files(tmp_path: Path) -> Path:
    for name, lines in (("ref", REFERENCE), ("other", OTHER), ("good", GOOD), ("poor", POOR)):
        (tmp_path / name).write_text("".join(f"{line}\n" for line in lines))
    (tmp_path / "source").write_text("x\nx x\nx x x\nx x x x\nx\n")
    return tmp_path


def test_the_command_writes_one_record(files: Path, capfdbinary: Capture) -> None:
    done = treelm_inside(
        capfdbinary,
        *("evaluate", "translation", "--references", files / "ref", files / "poor"),
        *(files / "good", "--tokenize", "none", "--rounds", "99", "--json"),
    )
    record = json.loads(done.stdout)
    assert record["sentences"] == 5
    assert "tok:none" in record["systems"]["poor"]["BLEU"]["signature"]
    assert record["differences"]["good"]["BLEU"]["difference"] > 0
    assert record["differences"]["good"]["BLEU"]["rounds"] == 99


def test_the_command_takes_references_and_lengths(files: Path, capfdbinary: Capture) -> None:
    done = treelm_inside(
        capfdbinary,
        *("evaluate", "translation", "--references", files / "ref", "--references"),
        *(files / "other", files / "good", "--source", files / "source", "--most-words", "2"),
    )
    text = done.stdout.decode()
    assert "sentences       3\n" in text
    assert "nrefs:2|" in text


def test_the_command_refuses_what_does_not_fit(files: Path, capfdbinary: Capture) -> None:
    (files / "short").write_text("a\n")
    call = ("evaluate", "translation", "--references", files / "ref")
    done = treelm_inside(capfdbinary, *call, files / "short")
    assert_refused(done, 3, "has 5 lines, but")
    done = treelm_inside(capfdbinary, *call, files / "good", "--most-words", "9")
    assert_refused(done, 2, "give --source")
