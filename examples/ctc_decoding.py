"""CTC beam search of pyctcdecode with a model of treelm in the place of KenLM."""

import sys

import numpy as np

import treelm
from treelm.interop import kenlm

sys.modules["kenlm"] = kenlm
from pyctcdecode import build_ctcdecoder  # noqa: E402

words = [[word.lower() for word in tree.words] for tree in treelm.sample_treebank()]
treelm.train("ngram", words, order=3).write_arpa("lm.arpa")
letters = ["", " ", *"abcdefghijklmnopqrstuvwxyz"]
frames = np.full((34, len(letters)), -9.0)  # a letter, a blank, and so on
for place, letter in enumerate("the moat was late"):
    frames[2 * place, letters.index(letter)] = frames[2 * place + 1, 0] = 0.0
frames[8, letters.index("b")] = -0.5
print(build_ctcdecoder(letters, "lm.arpa").decode(frames))
