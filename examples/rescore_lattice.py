"""A text lattice of Kaldi rescored by a model of treelm."""

from pathlib import Path

import treelm
from treelm.corpus.lattices import read_lattices
from treelm.tasks.rescore_lattice import LatticeWeights, best_path

arcs = "0 1 The 1,20\n1 2 boat 2,41\n1 2 moat 2,40\n2 3 was 1,30\n3 4 late 1,9\n4 5 . 0,1\n5\n"
Path("lattices").write_text(f"utterance-1\n{arcs}\n")
model = treelm.train("ngram", [tree.words for tree in treelm.sample_treebank()], order=3)
for lattice in read_lattices("lattices"):
    found = best_path(lattice, model, LatticeWeights(acoustic=0.1))
    print(found.name, *found.words)
