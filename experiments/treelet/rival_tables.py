"""A discriminative rival on sentences with one error: features of one parse (Table 5)."""

from __future__ import annotations

import numpy as np
from experiment import Answers
from judged_sentences import PARTS, Pair
from judgement_tables import NOISY_TABLE, JudgementTables
from model_store import FIVE_GRAM, TREELET, Key
from training_sets import ALL

from treelm.corpus.corpus import TextCorpus
from treelm.corpus.labelled import LabelledSentences
from treelm.models.run import Run
from treelm.models.tree_features.config import TreeFeaturesConfig
from treelm.models.tree_features.train import train_tree_features
from treelm.tasks.evaluate.classification import classify, tune_threshold
from treelm.tasks.evaluate.pair_accuracy import pair_accuracy

#: Features of a parse, and the name of the classifier in tables.
FEATURES = {"cfg": "classifier, CFG rules", "rerank": "classifier, rerank features"}


class RivalTables(JudgementTables):
    """Classifiers that have seen sentences with errors, beside models that have not."""

    def rival(self) -> None:
        """Train classifiers on the pairs of the development parts, and judge the test pairs.

        The parser has not seen these sentences, nor those of the test, so that trees of both are
        equally good.
        """
        pairs = {part: self._noisy_pairs(part) for part in PARTS}
        train, test = pairs["dev"], pairs["test"]
        keys = [Key(ALL, name) for name in (TREELET, FIVE_GRAM)]
        sides = {part: self._noisy_scores(part, pairs[part], keys) for part in PARTS}
        good, bad = (each.slr(keys[0]) for each in sides["test"])
        threshold = tune_threshold(*(each.slr(keys[0]) for each in sides["dev"]))
        baselines = {
            "pairwise accuracy": good > bad,
            "independent accuracy": classify(
                good, bad, threshold, seed=self.seed, paired=True
            ).right,
        }
        for features, name in FEATURES.items():
            margins = self._margins(features, train, test)
            own = pair_accuracy(*margins, seed=self.seed)
            found = {
                "pairwise accuracy": Answers(own.accuracy, own.interval, margins[0] > margins[1]),
                "independent accuracy": classify(*margins, 0.0, seed=self.seed, paired=True),
            }
            for metric, answers in found.items():
                self.add_accuracy(
                    NOISY_TABLE,
                    Key(ALL, name),
                    metric,
                    f"all test sets; trained on {2 * len(train)} sentences of the development sets",
                    found=answers,
                    baseline=(TREELET, baselines[metric]),
                )

    def _margins(
        self, features: str, train: list[Pair], test: list[Pair]
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the margins of the good and of the bad test sentences."""
        data = LabelledSentences(
            TextCorpus.of_sentences([pair.good for pair in train]),
            TextCorpus.of_sentences([pair.bad for pair in train]),
        )
        config = TreeFeaturesConfig.model_validate({"features": features, "seed": self.seed})
        run = Run(threads=self.threads)
        model = train_tree_features(data, config, parser=self.store.parser, run=run)
        good, bad = (
            model.sentence_log_probs(sentences, threads=self.threads)
            for sentences in ([pair.good for pair in test], [pair.bad for pair in test])
        )
        return good, bad
