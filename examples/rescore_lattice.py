"""A text lattice of Kaldi rescored by a model of treelm."""

from pathlib import Path

import treelm
from treelm.corpus.lattices import read_lattices
from treelm.tasks.rescore_lattice import LatticeWeights, best_path

arcs = [
    "0 1 The 1,20",
    "1 2 boat 2,41",
    "1 2 moat 2,40",
    "2 3 was 1,30",
    "3 4 late 1,9",
    "4 5 . 0,1",
]
Path("lattices").write_text("\n".join(["utterance-1", *arcs, "5", "", ""]))
model = treelm.train("ngram", [tree.words for tree in treelm.sample_treebank()], order=3)
for lattice in read_lattices("lattices"):
    found = best_path(lattice, model, LatticeWeights(acoustic=0.1))
    print(found.name, *found.words)
