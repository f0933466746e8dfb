"""`--unknown spelling` on the command line: training, perplexity, surprisal, samples, mixtures."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.command_line import assert_fine, assert_refused, treelm_inside
from tests.models.ngram_models import sample_sentences

from treelm.models.registry import load

Capture = pytest.CaptureFixture[bytes]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A training text and one to measure on."""
    root = tmp_path_factory.mktemp("unknown")
    sentences = sample_sentences()
    (root / "train.txt").write_text("".join(f"{line}\n" for line in sentences[:240]))
    (root / "dev.txt").write_text("".join(f"{line}\n" for line in sentences[240:]))
    return root


@pytest.fixture
def models(folder: Path, capfdbinary: Capture, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder with two models that spell and one that does not, made when first asked for."""
    monkeypatch.chdir(folder)
    if not (folder / "closed").exists():
        words = ("vocabulary", "--text", "train.txt", "--rule", "min-count", "-o", "words.txt")
        assert_fine(treelm_inside(capfdbinary, *words))
        shared = ("train", "ngram", "--text", "train.txt", "--vocabulary", "words.txt")
        for name, own in (
            ("one", ("--order", "3", "--unknown", "spelling")),
            ("two", ("--order", "1", "--unknown", "spelling")),
            ("closed", ("--order", "3")),
        ):
            assert_fine(treelm_inside(capfdbinary, *shared, *own, "-o", name), None)
    return folder


def test_perplexity_is_that_of_the_open_vocabulary(models: Path, capfdbinary: Capture) -> None:
    measure = ("evaluate", "perplexity", "dev.txt", "--json", "-q", "-m")
    spelled, closed = (
        json.loads(assert_fine(treelm_inside(capfdbinary, *measure, name), None))
        for name in ("one", "closed")
    )
    assert spelled["closed_perplexity"] == pytest.approx(closed["perplexity"])
    assert spelled["perplexity"] > 10 * closed["perplexity"]
    text = (models / "dev.txt").read_text()
    assert spelled["characters"] == len(text)
    assert 1 < spelled["bits_per_character"] < 4
    assert "|unknown:spelling|" in spelled["signature"]
    assert not {"closed_perplexity", "bits_per_character", "characters"} & {*closed}
    shown = treelm_inside(capfdbinary, *measure[:3], "-q", "-m", "one")
    assert b"\nbits per character  " in assert_fine(shown, None)


def test_surprisal_of_unknown_words_is_theirs(models: Path, capfdbinary: Capture) -> None:
    (models / "text.txt").write_text("the frumious zzyzx .\n")
    rows = {}
    for name in ("one", "closed"):
        done = treelm_inside(capfdbinary, "surprisal", "-q", "-m", name, "text.txt")
        lines = assert_fine(done, None).decode().splitlines()[1:]
        rows[name] = [line.split("\t")[3:] for line in lines]
    assert [row[3] for row in rows["one"]] == [row[3] for row in rows["closed"]]
    assert [row[3] for row in rows["one"]] == ["0", "1", "1", "0"]
    for spelled, symbol in zip(rows["one"], rows["closed"], strict=True):
        if spelled[3] == "0":
            assert spelled == symbol
        else:
            assert float(spelled[1]) > float(symbol[1]) + 10
    assert rows["one"][1][1] != rows["one"][2][1]
    assert rows["closed"][1][0] != rows["closed"][2][0]


def test_samples_have_no_symbols(models: Path, capfdbinary: Capture) -> None:
    sampled = {}
    for name in ("one", "closed"):
        command = ("sample", "-q", "-m", name, "-n", "60", "--seed", "2")
        sampled[name] = assert_fine(treelm_inside(capfdbinary, *command), None)
    assert b"<unk>" in sampled["closed"]
    assert b"<unk>" not in sampled["one"]
    assert sampled["one"].count(b" ") == sampled["closed"].count(b" ")


def test_mixtures_spell_if_all_parts_do(models: Path, capfdbinary: Capture) -> None:
    mix = ("train", "interpolated", "--held-out", "dev.txt", "-o", "mixture", "--models", "one")
    assert_fine(treelm_inside(capfdbinary, *mix, "two"), None)
    mixture = load(models / "mixture")
    assert mixture.spelling is not None
    text = [line.split() for line in (models / "dev.txt").read_text().splitlines()]
    closed = mixture.closed.perplexity(text).perplexity
    assert mixture.perplexity(text).closed_perplexity == pytest.approx(closed)
    assert_refused(treelm_inside(capfdbinary, *mix, "closed"), 1, "--unknown spelling")


def test_options_that_cannot_spell_are_refused(models: Path, capfdbinary: Capture) -> None:
    command = ("train", "pcfg", "--trees", "no-such.mrg", "--unknown", "spelling", "-o", "grammar")
    assert_refused(treelm_inside(capfdbinary, *command), 2)
