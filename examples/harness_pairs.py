"""Minimal pairs measured by the lm-evaluation-harness with a model of treelm."""

from lm_eval.api.instance import Instance

import treelm
from treelm.interop.harness import harness_class

treelm.train("ngram", [tree.words for tree in treelm.sample_treebank()], order=3).save("model")
model = harness_class().create_from_arg_string("path=model")
pair = ["She was in the harbour.", "She were in the harbour."]
asked = [Instance("loglikelihood", {}, ("", f" {text}"), 0) for text in pair]
good, bad = (log_prob for log_prob, _ in model.loglikelihood(asked))
print("right" if good > bad else "wrong", round(good - bad, 2))
