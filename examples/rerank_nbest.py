"""An n-best list reranked by a model of treelm, and measured by sacreBLEU."""

import sacrebleu

import treelm
from treelm.corpus.nbest import NBestColumns
from treelm.tasks.rerank import Scorer, rerank
from treelm.translation.weights import Weights

texts = ["The early ferry left .", "The ferry left early ."]
given = NBestColumns("0", texts, ["tm= -1", "tm= -2"], ["-1", "-2"], [(), ()], [1, 2])
model = treelm.train("ngram", [tree.words for tree in treelm.sample_treebank()], order=3)
weights = Weights({"tm": [0.1], "SynLM0": [1.0]})
for found in rerank([given], [Scorer(name="SynLM0", model=model)], weights=weights):
    best = found.columns.texts[0], texts[0]
    new, old = (sacrebleu.sentence_bleu(text, ["The ferry left early ."]).score for text in best)
    print(f"BLEU {new:.1f}, before {old:.1f}")
