"""Counts as folders: counted apart and merged, they give the model of the whole text."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from tests.command_line import Argument, Done, assert_fine, assert_refused, treelm_inside

from treelm.corpus.corpus import TextCorpus
from treelm.corpus.vocabulary import Vocabulary
from treelm.errors import ModelFileError, TreelmError, UsageError, VocabularyError
from treelm.models.ngram.config import NgramConfig
from treelm.models.ngram.counts import NgramCounts, merge_ngram_counts
from treelm.models.ngram.train import train_ngram
from treelm.models.run import Run
from treelm.parallel import memory as memory_module
from treelm.parallel.memory import MemoryLimit
from treelm.store.tables import open_tables, write_tables

PARTS = ["a b c a\nb c d\n", "a b\nd d e a b\n", "f a b c\n"]
CONFIG = NgramConfig(order=3, smoothing="kn")
Command = Callable[..., Done]
pytestmark = pytest.mark.filterwarnings("ignore::treelm.errors.TreelmWarning")


@pytest.fixture
def run(capfdbinary: pytest.CaptureFixture[bytes]) -> Command:
    def command(*arguments: Argument) -> Done:
        return treelm_inside(capfdbinary, *arguments)

    return command


@pytest.fixture
def texts(tmp_path: Path) -> list[Path]:
    paths = [tmp_path / f"{i}.txt" for i in range(len(PARTS))]
    for path, part in zip(paths, PARTS, strict=True):
        path.write_text(part)
    return paths


def corpus(*paths: Path) -> TextCorpus:
    return TextCorpus(tuple(map(str, paths)))


def assert_same_model(one, other) -> None:
    assert one.vocabulary.symbols == other.vocabulary.symbols
    np.testing.assert_array_equal(one.unigram_counts, other.unigram_counts)
    for name, array in one.table.to_tensors("t").items():
        np.testing.assert_array_equal(array, other.table.to_tensors("t")[name])


@pytest.mark.parametrize("shared", [True, False])
def test_ngram_counts_merged_are_those_of_the_whole(
    texts: list[Path], tmp_path: Path, shared: bool
) -> None:
    vocabulary = Vocabulary.from_counts({"a": 3, "b": 2, "d": 1}) if shared else None
    parts = []
    for i, path in enumerate(texts):
        NgramCounts.count(corpus(path), 3, vocabulary=vocabulary).save(tmp_path / f"{i}.counts")
        parts.append(NgramCounts.load(tmp_path / f"{i}.counts"))
    merged = merge_ngram_counts(parts)
    whole = NgramCounts.count(corpus(*texts), 3, vocabulary=vocabulary)
    assert merged.vocabulary.fingerprint == whole.vocabulary.fingerprint
    np.testing.assert_array_equal(merged.events.rows, whole.events.rows)
    np.testing.assert_array_equal(merged.events.counts, whole.events.counts)
    np.testing.assert_array_equal(merged.unigrams, whole.unigrams)
    model = train_ngram(corpus(*texts), CONFIG, vocabulary=vocabulary)
    assert_same_model(train_ngram(merged, CONFIG), model)


def test_ngram_counts_on_disk(
    texts: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(memory_module, "SMALLEST_SHARE", 1)
    limit = MemoryLimit(1, tmp_path)
    parts = [NgramCounts.count(corpus(path), 3, memory=limit) for path in texts]
    merged = merge_ngram_counts(parts, memory=limit)
    assert merged.events.spilled
    merged.save(tmp_path / "all.counts")
    again = NgramCounts.load(tmp_path / "all.counts")
    model = train_ngram(again, CONFIG, run=Run(memory=limit))
    assert_same_model(model, train_ngram(corpus(*texts), CONFIG))


def test_ngram_counts_that_do_not_go_together(texts: list[Path]) -> None:
    one = NgramCounts.count(corpus(texts[0]), 3)
    with pytest.raises(UsageError, match="order 2 and 3"):
        merge_ngram_counts([one, NgramCounts.count(corpus(texts[1]), 2)])
    with pytest.raises(UsageError, match="no counts"):
        merge_ngram_counts([])
    closed = NgramCounts.count(corpus(texts[1]), 3, vocabulary=Vocabulary.from_counts({"a": 1}))
    with pytest.raises(VocabularyError) as caught:
        merge_ngram_counts([one, closed])
    assert caught.value.code == "E_VOCABULARY_MISMATCH"
    with pytest.raises(UsageError, match="order 3"):
        train_ngram(one, NgramConfig(order=2))


@pytest.mark.parametrize("seed", range(30))
def test_ngram_counts_forged(texts: list[Path], tmp_path: Path, seed: int) -> None:
    """Arrays with other numbers in them: refused, or counts that still make a model."""
    folder = tmp_path / "c"
    NgramCounts.count(corpus(*texts), 3).save(folder)
    path = folder / "tables.safetensors"
    tensors = {name: np.array(array) for name, array in open_tables(path).items()}
    source = np.random.default_rng(seed)
    name = ["events.keys", "events.counts", "events.bits"][seed % 3]
    array = tensors[name]
    flat = array.reshape(-1)
    if seed % 2:
        flat[source.integers(flat.size)] = source.integers(0, 2**32)
    else:
        flat[:] = source.permuted(flat)
    write_tables(path, tensors)
    try:
        model = train_ngram(NgramCounts.load(folder), CONFIG)
    except TreelmError as error:
        assert error.code in {"E_MODEL_TABLES", "E_TOO_LARGE", "E_MANIFEST", "E_ARGUMENT"}  # noqa: PT017
    else:
        assert np.isfinite(model.score("a b").log_prob)


def test_ngram_counts_a_model_is_none(texts: list[Path], tmp_path: Path) -> None:
    train_ngram(corpus(*texts), CONFIG).save(tmp_path / "model")
    with pytest.raises(ModelFileError, match="counts build"):
        NgramCounts.load(tmp_path / "model")


def test_counts_commands(texts: list[Path], tmp_path: Path, run: Command) -> None:
    folders = []
    for i, path in enumerate(texts):
        folders.append(tmp_path / f"{i}.counts")
        options = ["--order", "3", "-o", folders[-1], "--memory", "100M"]
        assert b"order" in assert_fine(run("counts", "build", "--text", path, *options))
    merged = tmp_path / "all.counts"
    done = run("counts", "merge", *folders, "-o", merged, "--json")
    summary = json.loads(assert_fine(done))
    assert (summary["order"], summary["sentences"], summary["words"]) == (3, 5, 6)
    found = json.loads(assert_fine(run("counts", "inspect", merged, "--json")))
    assert [level["order"] for level in found["orders"]] == [1, 2, 3]
    # Rows with several <s> before the word are counted, and are no entries.
    assert 0 < found["orders"][2]["ngrams"] <= found["ngrams"]
    assert len(found["corpora"]) == 3
    train = ["train", "ngram", "--smoothing", "kn", "--quiet"]
    assert_fine(run(*train, "--counts", merged, "-o", tmp_path / "one"))
    assert_fine(run(*train, "--text", *texts, "--order", "3", "-o", tmp_path / "two"))
    for name in ("tables.safetensors", "words.txt"):
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()


def test_counts_commands_refuse(texts: list[Path], tmp_path: Path, run: Command) -> None:
    out = ["-o", tmp_path / "x"]
    assert_refused(run("counts", "build", "--text", texts[0], "--order", "99", *out), 2, "99")
    assert_refused(run("counts", "inspect", tmp_path / "none"), 3, "none")
    assert_refused(run("counts", "merge", *out), 2, "no counts")
    both = ["--counts", tmp_path / "c", "--text", texts[0]]
    assert_refused(run("train", "ngram", *both, *out), 2, "--counts")
    for memory in ("1", "x", "10M", "-4G"):
        refused = run("train", "ngram", "--text", texts[0], *out, f"--memory={memory}")
        assert_refused(refused, 2, "--memory")
    lost = ["--memory", "1G", "--temporary", tmp_path / "lost"]
    assert_refused(run("train", "ngram", "--text", texts[0], *out, *lost), 2, "lost")
    assert not (tmp_path / "x").exists()
