"""N-grams counted in pieces by many workers: the same bytes as by one process."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.models.ngram_models import sample_sentences
from tests.parallel.sending_executor import SendingExecutor

from treelm.corpus.corpus import TextCorpus
from treelm.corpus.encoder import TextPiece, text_pieces
from treelm.corpus.files import Content
from treelm.corpus.vocabulary import Vocabulary
from treelm.corpus.vocabulary_rules import VocabularyRule, build_vocabulary
from treelm.errors import CorpusFormatError, EngineError, InputFileError, TreelmError
from treelm.events import count_runs
from treelm.models.ngram import count_shards
from treelm.models.ngram.count_shards import count_in_pieces
from treelm.models.ngram.counts import NgramCounts
from treelm.parallel.executor import SERIAL, Engine, SerialExecutor, executor
from treelm.parallel.processes import ProcessExecutor
from treelm.testing.model_folders import different_files, folder_contents

#: Everything that may matter where a text is cut.
TEXT = (
    "\ufeffa b c\r\n\nb <unk> a\n  \n\ufeffc d\n\ufeff\nlong-" + "er" * 30 + " é a b\n\nf a b"
).encode()


@pytest.fixture
def texts(tmp_path: Path) -> TextCorpus:
    plain, packed = tmp_path / "plain.txt", tmp_path / "packed.txt.gz"
    plain.write_bytes(TEXT)
    packed.write_bytes(gzip.compress(TEXT + b"\n"))
    return TextCorpus((plain, packed, plain))


def saved(counts: NgramCounts, folder: Path) -> dict[str, object]:
    counts.save(folder)
    return folder_contents(folder)


def assert_same(one: NgramCounts, other: NgramCounts, place: Path) -> None:
    assert not different_files(saved(one, place / "one"), saved(other, place / "other"))


@pytest.mark.parametrize("size", [1, 2, 5, 7, 16, 64, 1 << 20])
@pytest.mark.parametrize("order", [1, 3])
def test_counts_do_not_depend_on_pieces(
    texts: TextCorpus, size: int, order: int, tmp_path: Path
) -> None:
    found = count_in_pieces(texts, order, SERIAL, tmp_path, piece_bytes=size)
    assert_same(found, NgramCounts.count(texts, order), tmp_path)
    assert "\ufeffc" in found.vocabulary
    assert {path.name for path in tmp_path.iterdir()} == {
        "plain.txt",
        "packed.txt.gz",
        "one",
        "other",
    }


@pytest.mark.parametrize("size", [1, 20, 1 << 20])
def test_counts_with_a_vocabulary_do_not_depend_on_pieces(
    texts: TextCorpus, size: int, tmp_path: Path
) -> None:
    known = Vocabulary.from_counts({"a": 3, "b": 2, "d": 1})
    found = count_in_pieces(texts, 3, SERIAL, tmp_path, vocabulary=known, piece_bytes=size)
    assert_same(found, NgramCounts.count(texts, 3, vocabulary=known), tmp_path)


@pytest.mark.parametrize("size", [100, 5000, 1 << 20])
@pytest.mark.parametrize("is_its_text", [True, False])
def test_counts_with_words_that_enter_late_do_not_depend_on_pieces(
    size: int, is_its_text: bool, tmp_path: Path
) -> None:
    sentences = list(sample_sentences())
    known = build_vocabulary(
        TextCorpus.of_sentences(sentences), VocabularyRule(name="stream", seed=1)
    )
    assert any(item.entry is not None for item in known.entries)
    text = TextCorpus.of_sentences(sentences if is_its_text else sentences[:200])
    found = count_in_pieces(text, 2, SERIAL, tmp_path, vocabulary=known, piece_bytes=size)
    assert_same(found, NgramCounts.count(text, 2, vocabulary=known), tmp_path)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.parametrize("engine", ["serial", "processes", "ray"])
def test_counts_of_the_worked_example_are_exact_on_every_engine(
    engine: Engine, tmp_path: Path
) -> None:
    """D1: three documents, one to a worker, and their seven bigrams."""
    if engine == "ray":
        pytest.importorskip("ray")
    path = tmp_path / "text.txt"
    path.write_text("a b\n\na a\n\nb a\n")
    with executor(engine, workers=None if engine == "serial" else 2) as workers:
        found = count_in_pieces(TextCorpus(path), 2, workers, tmp_path, piece_bytes=5)
    names = [*found.vocabulary.symbols, "</s>", "<s>"]
    counts = {
        (names[before], names[word]): int(count)
        for (word, before), count in zip(
            found.events.rows.tolist(), found.events.counts.tolist(), strict=True
        )
    }
    assert counts == {
        ("<s>", "a"): 2,
        ("<s>", "b"): 1,
        ("a", "b"): 1,
        ("a", "a"): 1,
        ("a", "</s>"): 2,
        ("b", "a"): 1,
        ("b", "</s>"): 1,
    }


@pytest.mark.parametrize(
    ("order", "size"), [(1, 3000), (2, 200), (3, 3000), (5, 3000), (9, 200), (9, 3000)]
)
def test_counts_do_not_depend_on_ranges_that_are_merged(
    order: int, size: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Words so rare that some pieces and ranges need fewer bits, and keys of several words."""
    monkeypatch.setattr(count_runs, "ROWS_A_RANGE", 50)
    path = tmp_path / "text.txt"
    lines = [" ".join(words) for words in sample_sentences()]
    path.write_text("\n".join([*["a b a"] * 300, *lines, *lines[:20]]))
    workers = SendingExecutor()
    found = count_in_pieces(TextCorpus(path), order, workers, tmp_path, piece_bytes=size)
    assert workers.maps == ["_CountWords", "_CountNgrams", "_MergeRange"]
    assert_same(found, NgramCounts.count(TextCorpus(path), order), tmp_path)


def test_counts_refuse_a_text_that_workers_do_not_see(tmp_path: Path) -> None:
    path = tmp_path / "text.txt"
    path.write_text("a b\n" * 10)

    def elsewhere(shard: Any) -> Any:
        piece = shard.piece
        return shard._replace(piece=piece._replace(path=f"{piece.path}-elsewhere"))

    class Elsewhere(SerialExecutor):
        """Workers with a file system of their own, which has no text."""

        def map(self, function, shards):  # type: ignore[no-untyped-def]
            return super().map(function, map(elsewhere, shards))

    with pytest.raises(EngineError, match=r"text\.txt: a worker cannot read it"):
        count_in_pieces(TextCorpus(path), 2, Elsewhere(), tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("workers", [1, 2, 7])
def test_counts_do_not_depend_on_workers(workers: int, texts: TextCorpus, tmp_path: Path) -> None:
    with ProcessExecutor(workers) as engine:
        found = count_in_pieces(texts, 3, engine, tmp_path, piece_bytes=30)
    assert_same(found, NgramCounts.count(texts, 3), tmp_path)


@given(text=st.binary(max_size=60), size=st.integers(1, 40))
def test_pieces_are_the_text_cut_between_lines(text: bytes, size: int) -> None:
    # What is no text is refused by name of its kind.
    try:
        pieces = list(text_pieces([Content("text", text)], size))
    except TreelmError:
        return
    assert b"".join(piece.data for piece in pieces) == text
    lines = 0
    for piece in pieces:
        assert piece.lines_before == lines
        lines += piece.data.count(b"\n")
        assert len(piece.data) <= size or b"\n" not in piece.data[:-1]
    assert all(piece.data.endswith(b"\n") for piece in pieces[:-1])


@pytest.mark.parametrize("bad", [b"\xff", b"</s>"])
@pytest.mark.parametrize("size", [1, 9, 1 << 20])
def test_counts_name_the_line_of_what_is_wrong(bad: bytes, size: int, tmp_path: Path) -> None:
    path = tmp_path / "text.txt"
    path.write_bytes(b"\xef\xbb\xbfa b\n\nc\r\na b " + bad + b" c\nd e\n")
    corpus = TextCorpus(path)
    with pytest.raises(CorpusFormatError) as expected:
        NgramCounts.count(corpus, 2)
    with pytest.raises(CorpusFormatError) as found:
        count_in_pieces(corpus, 2, SERIAL, tmp_path, piece_bytes=size)
    assert str(found.value) == str(expected.value)
    assert (found.value.line, found.value.column) == (4, expected.value.column)


@pytest.mark.parametrize("text", [b"", b"\n\n \n"])
@pytest.mark.parametrize("known", [None, Vocabulary.from_counts({"a": 1})])
def test_counts_refuse_a_text_without_words_as_one_process_does(
    text: bytes, known: Vocabulary | None, tmp_path: Path
) -> None:
    corpus = TextCorpus((Content("text", text),))
    with pytest.raises(TreelmError) as expected:
        NgramCounts.count(corpus, 2, vocabulary=known)
    with pytest.raises(type(expected.value)) as found:
        count_in_pieces(corpus, 2, SERIAL, tmp_path, vocabulary=known)
    assert (str(found.value), found.value.code) == (str(expected.value), expected.value.code)


def test_counts_refuse_a_text_that_changes_before_workers_read_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "text.txt"
    path.write_text("a b\n" * 10)
    times = 0

    def growing(*arguments: object, **options: object) -> Iterator[TextPiece]:
        nonlocal times
        times += 1
        pieces = list(text_pieces(*arguments, **options))  # type: ignore[arg-type]
        path.write_text("a b c\n" * 20)
        yield from pieces

    monkeypatch.setattr(count_shards, "text_pieces", growing)
    with pytest.raises(InputFileError, match=r"text\.txt: the text changed") as caught:
        count_in_pieces(TextCorpus(path), 2, SERIAL, tmp_path, piece_bytes=8)
    assert (caught.value.code, times) == ("E_TEXT_CHANGED", 1)


def test_counts_refuse_a_folder_that_workers_do_not_see(texts: TextCorpus, tmp_path: Path) -> None:
    class Elsewhere(SerialExecutor):
        """Workers with a file system of their own, where what they write is lost."""

        def map(self, function, shards):  # type: ignore[no-untyped-def]
            for result in super().map(function, shards):
                if hasattr(result, "file"):
                    result.file.unlink()
                yield result

    with pytest.raises(EngineError, match="not all machines see the same folder"):
        count_in_pieces(texts, 2, Elsewhere(), tmp_path)
