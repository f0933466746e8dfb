"""`treelm train`."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
from tests.command_line import assert_fine, assert_refused, treelm, treelm_inside
from tests.models.ngram_models import sample_sentences, small_ngram

from treelm.corpus.corpus import TextCorpus
from treelm.models.mixture.model import InterpolatedModel
from treelm.models.ngram.model import NgramModel
from treelm.models.registry import load


def test_train_ngram_saves_a_model_and_says_what_it_is(tmp_path: Path, text_file: Path) -> None:
    done = treelm(
        "train", "ngram", "--order", "3", "--text", text_file, "-o", tmp_path / "m", "--json"
    )
    summary = json.loads(assert_fine(done, None))
    assert summary["system"] == "ngram"
    assert (summary["order"], summary["smoothing"]) == (3, "mkn")
    assert (summary["sentences"], summary["tokens"]) == (325, 3860)
    model = load(tmp_path / "m")
    assert isinstance(model, NgramModel)
    assert model.fingerprint == small_ngram(order=3).fingerprint
    assert model.corpora[0].sha256 == TextCorpus((text_file,)).fingerprint.sha256


@pytest.mark.parametrize(
    "options",
    [
        ("--smoothing", "kn"),
        ("--smoothing", "berkeley", "--order", "3"),
        ("--order", "2", "--min-count", "1", "2"),
        ("--lmplz",),
        ("--order", "1", "--threads", "2"),
    ],
)
def test_train_ngram_options(
    tmp_path: Path,
    text_file: Path,
    options: tuple[str, ...],
    capfdbinary: pytest.CaptureFixture[bytes],
) -> None:
    done = treelm_inside(
        capfdbinary, "train", "ngram", "--text", text_file, "-o", tmp_path / "m", *options
    )
    assert_fine(done, None)
    assert math.isfinite(load(tmp_path / "m").score("the boat").log_prob)


@pytest.mark.parametrize(
    ("options", "costs"),
    [
        (("--min-count", "1", "2"), True),
        (("--bits", "8"), True),
        (("--bits", "16", "--min-count", "1", "1", "2", "--measure", "{other}"), True),
        (("--bits", "8", "--no-measure"), False),
        (("--min-count", "1", "2", "--no-measure"), None),
    ],
)
def test_train_ngram_says_what_a_smaller_model_costs(
    tmp_path: Path, text_file: Path, options: tuple[str, ...], costs: bool | None
) -> None:
    other = tmp_path / "other.txt"
    other.write_text("The old ferry left .\n" * 3)
    given = [option.format(other=other) for option in options]
    target = tmp_path / "m"
    done = treelm(
        *("train", "ngram", "--order", "3", "--text", text_file, "-o", target, "--json", *given)
    )
    summary = json.loads(assert_fine(done, None))
    model = load(target)
    assert isinstance(model, NgramModel)
    assert summary.get("bits") == model.config.bits
    notes = done.stderr.decode()
    if costs:
        measured = other if "--measure" in options else text_file
        found = model.perplexity(TextCorpus((measured,)), allow_overlap=True)
        assert summary["loss"]["bits_per_word"] == pytest.approx(found.bits_per_word)
        assert summary["loss"]["perplexity"] == pytest.approx(found.perplexity)
        assert f"on {measured} (" in notes
        assert f"{found.bits_per_word:.4f} ({found.perplexity:.2f}) as saved" in notes
        inspected = json.loads(assert_fine(treelm("inspect", target, "--json")))
        assert (
            inspected["config"]["loss"]["full_bits_per_word"]
            == (summary["loss"]["full_bits_per_word"])
        )
    else:
        assert "loss" not in summary
        assert ("stored log2 probabilities moved" in notes) == (costs is False)


def test_train_ngram_with_a_vocabulary(tmp_path: Path, text_file: Path) -> None:
    words = tmp_path / "words"
    assert_fine(
        treelm("vocabulary", "--text", text_file, "--rule", "top", "--size", "50", "-o", words)
    )
    done = treelm(
        "train",
        "ngram",
        "--order",
        "2",
        "--text",
        text_file,
        "--vocabulary",
        words,
        "-o",
        tmp_path / "m",
    )
    assert b"words       50\n" in assert_fine(done, None)
    assert len(load(tmp_path / "m").vocabulary) == 51


def test_train_ngram_with_held_out_text(tmp_path: Path, text_file: Path) -> None:
    held_out = tmp_path / "held-out"
    held_out.write_text("The old ferry left .\n" * 3)
    done = treelm(
        *("train", "ngram", "--order", "2", "--smoothing", "jm", "--text", text_file),
        *("--held-out", held_out, "-o", tmp_path / "m"),
    )
    assert_fine(done, None)


@pytest.mark.parametrize(
    ("options", "part"),
    [
        (("--order", "0"), "order"),
        (("--order", "32"), "order"),
        (("--min-count", "1", "2", "1"), "--min-count"),
        (("--smoothing", "kn", "--lmplz"), "lmplz"),
        (("--seed", "-1"), "seed"),
        (("--threads", "0"), "--threads"),
        (("--bits", "4"), "--bits"),
        (("--bits", "eight"), "--bits"),
        (("--measure", "somewhere"), "--min-count"),
        (("--no-measure",), "--min-count"),
        (("--bits", "8", "--measure", "somewhere", "--no-measure"), "--no-measure"),
    ],
)
def test_train_ngram_refuses_impossible_options(
    tmp_path: Path, text_file: Path, options: tuple[str, ...], part: str
) -> None:
    done = treelm("train", "ngram", "--text", text_file, "-o", tmp_path / "m", *options)
    assert_refused(done, 2, part)
    assert list(tmp_path.iterdir()) == []


def test_train_ngram_refuses_bad_texts_and_targets(tmp_path: Path, text_file: Path) -> None:
    target = tmp_path / "m"
    assert_refused(
        treelm("train", "ngram", "--text", tmp_path / "missing", "-o", target), 3, "no such"
    )
    assert_refused(
        treelm("train", "ngram", "--text", "/dev/stdin", "-o", target, stdin=b"a\n"), 2, "only once"
    )
    assert_refused(treelm("train", "ngram", "-o", target), 2)
    measure = ("--bits", "8", "--measure")
    for bad, code in ((tmp_path / "missing", 3), ("/dev/stdin", 2)):
        done = treelm("train", "ngram", "--text", text_file, "-o", target, *measure, bad)
        assert_refused(done, code)
    empty = tmp_path / "empty"
    empty.write_text("\n\n")
    done = treelm("train", "ngram", "--text", empty, "-o", target)
    assert done.returncode in {1, 3}
    assert not target.exists()
    done = treelm("train", "ngram", "--text", text_file, "-o", text_file)
    assert_refused(done, 1, "this is a file")


def test_train_interpolated_finds_weights(tmp_path: Path, text_file: Path) -> None:
    sentences = sample_sentences()
    one = small_ngram(sentences, order=3)
    small_ngram(sentences[:100], order=1, vocabulary=one.vocabulary).save(tmp_path / "one")
    small_ngram(sentences[100:200], order=3, vocabulary=one.vocabulary).save(tmp_path / "three")
    held_out = tmp_path / "held-out"
    held_out.write_text("".join(f"{sentence}\n" for sentence in sentences[200:]))
    done = treelm(
        *("train", "interpolated", "--models", tmp_path / "one", tmp_path / "three"),
        *("--held-out", held_out, "-o", tmp_path / "mixture", "--json"),
    )
    summary = json.loads(assert_fine(done))
    assert sum(summary["weights"]) == pytest.approx(1.0)
    mixture = load(tmp_path / "mixture")
    assert isinstance(mixture, InterpolatedModel)
    best = sum(mixture.sentence_log_probs(sentences[200:]))
    assert best == pytest.approx(summary["log_likelihood"])
    for part in ("one", "three"):
        assert sum(load(tmp_path / part).sentence_log_probs(sentences[200:])) <= best


def test_train_interpolated_refuses_models_of_different_words(
    tmp_path: Path, text_file: Path, ngram_folder: Path
) -> None:
    small_ngram(["zebras quack"] * 3, order=2).save(tmp_path / "other")
    done = treelm(
        *("train", "interpolated", "--models", ngram_folder, tmp_path / "other"),
        *("--held-out", text_file, "-o", tmp_path / "mixture"),
    )
    assert_refused(done, 1, "Only the other knows: quack zebras.")
    assert not (tmp_path / "mixture").exists()
