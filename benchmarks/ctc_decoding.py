"""Words per second of pyctcdecode with KenLM and with treelm in its place, in turns.

    python benchmarks/ctc_decoding.py

The frames are synthetic: letters of sentences of the packaged treebank, with noise. Both language
models are those of the same ARPA file. Needs pyctcdecode and kenlm; see docs/how-to/kenlm.md.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

import kenlm
import numpy as np
import pyctcdecode

import treelm
from treelm.interop import kenlm as ours

LETTERS = ["", " ", *"abcdefghijklmnopqrstuvwxyz'.,"]
TURNS = 3


def frames_of(text: str, source: np.random.Generator) -> np.ndarray:
    """Return log probabilities of letters, a blank after each, with some noise."""
    logits = source.normal(-6, 1.5, size=(2 * len(text), len(LETTERS)))
    for place, letter in enumerate(text):
        logits[2 * place, LETTERS.index(letter)] = 0.0
        logits[2 * place + 1, 0] = 0.5
    return logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))


def main() -> None:
    sentences = [[word.lower() for word in tree.words] for tree in treelm.sample_treebank()]
    texts = [" ".join(words) for words in sentences if set(" ".join(words)) <= set(LETTERS)][:60]
    source = np.random.default_rng(1)
    heard = [frames_of(text, source) for text in texts]
    known = {word for words in sentences for word in words}
    alphabet = pyctcdecode.alphabet.Alphabet.build_alphabet(LETTERS)
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "lm.arpa")
        treelm.train("ngram", sentences, order=3).write_arpa(path)
        spent = {"kenlm": [], "treelm": []}
        for _ in range(TURNS):
            for name, module in (("kenlm", kenlm), ("treelm", ours)):
                pyctcdecode.language_model.kenlm = module
                model = pyctcdecode.LanguageModel(module.Model(path), known)
                decoder = pyctcdecode.BeamSearchDecoderCTC(alphabet, model)
                start = time.process_time()
                found = [decoder.decode(frames) for frames in heard]
                spent[name].append(time.process_time() - start)
    words = sum(len(text.split()) for text in found)
    for name, seconds in spent.items():
        print(f"{name}: {words / min(seconds):,.0f} words per processor second")


if __name__ == "__main__":
    main()
