"""KenLM's calls over a model of treelm: only the import changes."""

import treelm
from treelm.interop import kenlm

sentences = [tree.words for tree in treelm.sample_treebank()]
treelm.train("ngram", sentences, order=3).write_arpa("lm.arpa")

model = kenlm.Model("lm.arpa")
print(model.order, "the" in model, round(model.score("the dog slept .", bos=True, eos=True), 3))
for score, length, is_unknown in model.full_scores("the dog slept ."):
    print(round(score, 3), length, is_unknown)
state = kenlm.State()
model.BeginSentenceWrite(state)
print(round(model.BaseScore(state, "the", state), 3))
