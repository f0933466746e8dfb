"""A tree of Stanza measured by a grammar of treelm, and our best tree handed to Stanza."""

from stanza.models.constituency.tree_reader import read_trees

import treelm
from treelm.interop.stanza_trees import from_stanza, to_stanza

(theirs,) = read_trees("(ROOT (S (NP (DT The) (NN boat)) (VP (VBD was) (ADJP (JJ late))) (. .)))")
parser = treelm.train("pcfg", list(treelm.sample_treebank()))
best = parser.parse(theirs.leaf_labels())[0].tree
(log_prob,) = parser.tree_log_probs([from_stanza(theirs)])
print(f"log probability {log_prob:.1f}")
print(to_stanza(best))
