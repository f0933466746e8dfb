"""Ablations: one change at a time, in perplexity and in judging."""

from __future__ import annotations

import numpy as np
from experiment import perplexity
from judged_sentences import PARTS
from judgement_tables import JudgementTables
from model_store import ABLATIONS, FIVE_GRAM, PLAIN, TREELET, Key
from perplexity_tables import PerplexityTables, joined_documents
from training_sets import TREEBANKS

from treelm.tasks.evaluate.comparison import compare_answers, compare_log_probs
from treelm.tasks.report.results import Result

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
        for key in keys:
            own = key == base
            found = compare_log_probs(
                values[key], values[base], seed=self.seed, lengths=lengths, documents=documents
            )
            self.report.add_result(
                Result(
                    table=table,
                    model=key.model,
                    metric="perplexity with ends",
                    data=f"all test sets; trained on {self.training_name(training)}; k = {k}",
                    value=perplexity(values[key], lengths),
                    n=len(lengths),
                    interval=self.perplexity_interval(values[key], lengths, documents),
                    p=None if own else found.p_value,
                    baseline=None if own else TREELET,
                    digits=1,
                )
            )
            answers = judged[key]
            against = compare_answers(answers.right, judged[base].right, seed=self.seed)
            self.report.add_result(
                Result(
                    table=table,
                    model=key.model,
                    metric="accuracy, trigram pseudo-negatives",
                    data=f"10 to 30 words; trained on {self.training_name(training)}; k = {k}",
                    value=answers.accuracy,
                    n=answers.n,
                    interval=answers.interval,
                    p=None if own else against.p_value,
                    baseline=None if own else TREELET,
                    digits=3,
                )
            )
