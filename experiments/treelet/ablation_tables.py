"""Ablations: one change at a time, in perplexity and in judging."""

from __future__ import annotations

import numpy as np
from judged_sentences import PARTS
from judgement_tables import JudgementTables
from model_store import ABLATIONS, FIVE_GRAM, PLAIN, TREELET, Key
from perplexity_tables import PerplexityTables, joined_documents
from training_sets import TREEBANKS

#: Number of trees per sentence; more change all models alike.
ABLATION_K = 10


class AblationTables(PerplexityTables, JudgementTables):
    """Treelet models of a medium training set with one change each."""

    def ablations(self) -> None:
        """Measure perplexity and accuracy with one change each."""
        training, k = self.sets.named_or_all("x4"), min(ABLATION_K, self.judged_k)
        base = Key(training, TREELET)
        names = (TREELET, PLAIN, *ABLATIONS, FIVE_GRAM)
        keys = [Key(training, name) for name in names]
        sets = [
            self.score(f"{treebank}.test", self.sentences(treebank, "test"), keys, (k,))
            for treebank in TREEBANKS
        ]
        trigram = {part: self.trigram_scores(part, keys, k) for part in PARTS}
        judged = {key: self.judged(trigram, self.slr(key, k)) for key in keys}
        lengths = np.concatenate([each.lengths for each in sets])
        documents = joined_documents([self.documents(name, "test") for name in TREEBANKS])
        values = {key: np.concatenate([each.values[key, k] for each in sets]) for key in keys}
        table = "One thing changed"
        trained = f"trained on {self.training_name(training)}; k = {k}"
        for key in keys:
            self.add_perplexity(
                table,
                key.model,
                f"all test sets; {trained}",
                values=values[key],
                lengths=lengths,
                documents=documents,
                baseline=None if key == base else (TREELET, values[base]),
            )
            self.add_accuracy(
                table,
                key,
                "accuracy, trigram pseudo-negatives",
                f"10 to 30 words; {trained}",
                found=judged[key],
                baseline=(TREELET, judged[base].right),
            )
