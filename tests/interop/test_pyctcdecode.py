"""CTC decoding by pyctcdecode with our models, beside KenLM on the same file."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import treelm
from treelm.interop import kenlm as ours

if importlib.util.find_spec("pyctcdecode") is None:
    pytest.skip("pyctcdecode is not installed", allow_module_level=True)
if importlib.util.find_spec("kenlm") is None:
    # pyctcdecode imports kenlm by itself: without it, ours takes its place.
    sys.modules["kenlm"] = ours
pyctcdecode = importlib.import_module("pyctcdecode")

LETTERS = ["", " ", *"abcdefghijklmnopqrstuvwxyz'.,"]
SENTENCES = [[word.lower() for word in tree.words] for tree in treelm.sample_treebank()]
#: Sentences that are spelled with the letters, and what is heard instead of one of them.
SAID = [
    " ".join(words)
    for words in SENTENCES
    if set(" ".join(words)) <= set(LETTERS) and 4 <= len(words) <= 9
][:20]


def frames_of(text: str, source: np.random.Generator) -> np.ndarray:
    """Return log probabilities of letters, a blank after each, with some noise."""
    logits = source.normal(-6, 1.5, size=(2 * len(text), len(LETTERS)))
    for place, letter in enumerate(text):
        logits[2 * place, LETTERS.index(letter)] = 0.0
        if source.random() < 0.15:  # something else is as likely
            logits[2 * place, source.integers(2, len(LETTERS))] = 0.3
        logits[2 * place + 1, 0] = 0.5
    return logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))


@pytest.fixture(scope="module")
def heard() -> list[np.ndarray]:
    source = np.random.default_rng(3)
    return [frames_of(text, source) for text in SAID]


def decoder_of(model: Any, module: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(pyctcdecode.language_model, "kenlm", module)
    monkeypatch.setattr(pyctcdecode.decoder, "kenlm", module)
    words = {word for sentence in SENTENCES for word in sentence}
    known = pyctcdecode.LanguageModel(model, words, alpha=0.7, beta=1.0)
    return pyctcdecode.BeamSearchDecoderCTC(
        pyctcdecode.alphabet.Alphabet.build_alphabet(LETTERS), known
    )


def test_pyctcdecode_finds_what_it_finds_with_kenlm(
    heard: list[np.ndarray], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kenlm = pytest.importorskip("kenlm")
    if kenlm is ours:
        pytest.skip("kenlm itself is not installed")
    path = str(tmp_path / "lm.arpa")
    treelm.train("ngram", SENTENCES, order=3).write_arpa(path)  # type: ignore[attr-defined]
    found = []
    for module in (ours, kenlm):
        decoder = decoder_of(module.Model(path), module, monkeypatch)
        found.append([decoder.decode_beams(frames)[0] for frames in heard])
    for mine, theirs in zip(*found, strict=True):
        assert mine[0] == theirs[0]
        assert mine[-2:] == pytest.approx(theirs[-2:], abs=1e-3)


@pytest.mark.parametrize("kind", ["ngram", "hhmm", "mixture"])
def test_pyctcdecode_hears_better_with_a_model(
    kind: str, heard: list[np.ndarray], monkeypatch: pytest.MonkeyPatch
) -> None:
    trees = list(treelm.sample_treebank())
    vocabulary = treelm.Vocabulary.from_counts({w: 1 for s in SENTENCES for w in s})
    ngram = treelm.train("ngram", SENTENCES, order=3, vocabulary=vocabulary)
    model = ngram
    if kind != "ngram":
        hhmm = treelm.train("hhmm", list(map(lowered, trees[:150])), vocabulary=vocabulary)
        model = hhmm if kind == "hhmm" else treelm.interpolate([ngram, hhmm], [0.5, 0.5])
    few = 20 if kind == "ngram" else 4
    decoder = decoder_of(ours.Model(model), ours, monkeypatch)
    plain = pyctcdecode.BeamSearchDecoderCTC(
        pyctcdecode.alphabet.Alphabet.build_alphabet(LETTERS), None
    )
    right = [
        sum(each.decode(frames, beam_width=25) == said for frames, said in pairs)
        for pairs in [list(zip(heard[:few], SAID, strict=False))]
        for each in (decoder, plain)
    ]
    assert right[0] > right[1]
    assert right[0] >= few // 2


def lowered(tree: treelm.Tree) -> treelm.Tree:
    return tree.fold(
        lambda node, below: treelm.Tree(
            node.label, list(below) if node.word is None else node.word.lower()
        )
    )
