"""Fluency of the negatives: trigram models of less text make worse sentences."""

from __future__ import annotations

import math

from experiment import perplexity
from judged_sentences import PARTS, Part
from judgement_tables import JudgementTables
from model_store import FIVE_GRAM, Key, main_keys
from training_sets import ALL
from tree_scores import Numbers, Scores

#: A trigram model is trained on one in this many sentences of its text, if that leaves enough.
SHARES = (1, 2, 8, 32, 128)
FEWEST = 1000


class GeneratorTables(JudgementTables):
    """Pseudo-negatives of trigram models of different sizes, judged by the same models."""

    def generators(self) -> None:
        """Tell sentences from those of trigram models of more or less text."""
        keys, k = main_keys(ALL), (self.judged_k,)
        positives = {part: self.trigram_set.sentences(part, "good") for part in PARTS}
        good = {
            part: self.score(f"trigram.{part}.good", positives[part], keys, k) for part in PARTS
        }
        rows = []
        for share in SHARES:
            size = self.trigram_set.text_size // share
            if share > 1 and size < FEWEST:
                break
            trigram = self.trigram_set.trigram_of_first(size)
            scores: dict[Part, tuple[Scores, Scores]] = {}
            for part in PARTS:
                if share == 1:
                    negatives = self.trigram_set.sentences(part, "bad")
                    name = f"trigram.{part}.bad"
                else:
                    negatives = self.trigram_set.drawn_from(trigram, share, part)
                    name = f"trigram.{part}.bad.{share}"
                scores[part] = (good[part], self.score(name, negatives, keys, k))
            values: Numbers = trigram.sentence_log_probs(positives["test"])
            own = perplexity(values, good["test"].lengths)
            found = {key: self.judged(scores, self.slr(key)) for key in keys}
            five = found[Key(ALL, FIVE_GRAM)]
            data = f"trigram model of {size:,} sentences, perplexity of the positives {own:.0f}"
            for key, judged in found.items():
                self.add_accuracy(
                    "Trigram models of more or less text",
                    key,
                    "accuracy",
                    data,
                    found=judged,
                    baseline=(FIVE_GRAM, five.right),
                )
            accuracies = (f"{judged.accuracy:.3f}" for judged in found.values())
            rows.append((f"{size:,}", f"{own:.1f}", f"{math.log2(own):.2f}", *accuracies))
        self.report.add_table(
            "Accuracy by the size of the trigram model",
            ("its sentences", "perplexity of the positives", "bits", *(key.model for key in keys)),
            rows,
        )
