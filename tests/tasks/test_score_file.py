"""Files of text scored by the kernel: the same numbers, messages and counts as line by line."""

from __future__ import annotations

import warnings
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from treelm.corpus.corpus import TextCorpus
from treelm.corpus.file_kinds import Wanted
from treelm.corpus.files import read_lines
from treelm.errors import CorpusFormatError
from treelm.models.interface.model import LanguageModel
from treelm.models.registry import train
from treelm.tasks import score
from treelm.tasks.score import ScoringReport, score_batches, score_file
from treelm.tasks.text_check import TextCheck

SENTENCES = [("the", "dog", "runs", "."), ("the", "Hund", "fell"), ("it", "runs", ".")]


def small_model(**options: object) -> LanguageModel:
    with warnings.catch_warnings(action="ignore"):  # no discounts can be estimated of so little
        return train("ngram", TextCorpus.of_sentences(SENTENCES), order=2, **options)


@pytest.fixture(scope="module")
def model() -> LanguageModel:
    return small_model()


def found(batches: object, report: ScoringReport, check: TextCheck) -> tuple[object, ...]:
    text = "".join(batch.to_text() for batch in batches)  # type: ignore[attr-defined]
    return text, report, check.words, check.unknown, list(check.messages())


def by_lines(model: LanguageModel, path: Path, *, eos: bool = True) -> tuple[object, ...]:
    report, check = ScoringReport(), TextCheck(model.vocabulary)
    lines = read_lines(path, Wanted.TEXT)
    batches = score_batches(model, lines, eos=eos, source=path, report=report, check=check)
    return found(batches, report, check)


def by_kernel(model: LanguageModel, path: Path, *, eos: bool = True) -> tuple[object, ...]:
    report, check = ScoringReport(), TextCheck(model.vocabulary)
    return found(score_file(model, path, eos=eos, report=report, check=check), report, check)


WORDS = st.sampled_from(["the", "dog", "runs", ".", "fell.", "Grüße", "x\u00a0y", "DOG"])
BLANKS = st.sampled_from(["", " ", "\t", "\r", "\v\f"])
LINES = st.lists(st.one_of(st.lists(WORDS, min_size=1, max_size=4).map(" ".join), BLANKS))


@settings(max_examples=60, deadline=None)
@given(
    lines=LINES,
    ends=st.sampled_from(["\n", "\r\n"]),
    begins=st.sampled_from(["", "\ufeff"]),
    eos=st.booleans(),
)
def test_the_kernel_reads_what_lines_are(  # noqa: PLR0917 (what is drawn)
    model: LanguageModel,
    tmp_path_factory: pytest.TempPathFactory,
    lines: list[str],
    ends: str,
    begins: str,
    eos: bool,
) -> None:
    path = tmp_path_factory.mktemp("text") / "text.txt"
    text = begins + ends.join(lines)  # a last line that is empty is the end of the one before it
    path.write_bytes(text.encode())
    assert by_kernel(model, path, eos=eos) == by_lines(model, path, eos=eos)


def test_pieces_are_cut_between_lines(
    model: LanguageModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "text.txt"
    path.write_text("the dog runs .\n\nit fell\n" * 50 + "the dog", encoding="utf-8")
    whole = by_lines(model, path)
    for size in (1, 7, 64):
        monkeypatch.setattr(score, "_PIECE_BYTES", size)
        assert by_kernel(model, path) == whole


@pytest.mark.parametrize("bad", [b"the <s> dog", b"the \xff dog"])
@pytest.mark.parametrize("size", [16, 1 << 20])
def test_what_is_wrong_with_a_line_is_said_as_before(
    model: LanguageModel,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    bad: bytes,
    size: int,
) -> None:
    monkeypatch.setattr(score, "_PIECE_BYTES", size)
    path = tmp_path / "text.txt"
    path.write_bytes(b"the dog runs .\n\n" * 3 + bad + b"\nit runs\n")
    with pytest.raises(CorpusFormatError) as one:
        by_lines(model, path)
    with pytest.raises(CorpusFormatError) as other:
        by_kernel(model, path)
    assert str(other.value) == str(one.value)
    assert other.value.line == one.value.line == 7


def test_models_that_need_the_words_get_them(tmp_path: Path) -> None:
    spelled = small_model(unknown="spelling")
    path = tmp_path / "text.txt"
    path.write_text("the zebra runs .\n\nthe quagga runs .\n", encoding="utf-8")
    scores = by_kernel(spelled, path)
    assert scores == by_lines(spelled, path)
    first, _, second = str(scores[0]).splitlines()
    assert first != second
