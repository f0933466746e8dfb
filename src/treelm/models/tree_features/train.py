"""From good and bad sentences with one tree each to a classifier."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from treelm.corpus.corpus import TreeCorpus
from treelm.corpus.labelled import LabelledSentences
from treelm.corpus.vocabulary import Vocabulary
from treelm.grammar.scored_tree import ScoredTree
from treelm.models.interface.calibration import fit_calibration, training_records
from treelm.models.interface.parser import Parser
from treelm.models.run import QUIET, Run
from treelm.models.tree_features.config import GRID, TreeFeaturesConfig
from treelm.models.tree_features.features import best_parses, rows_of, tree_features
from treelm.models.tree_features.fragments import FragmentGrammar
from treelm.models.tree_features.model import TreeFeaturesModel
from treelm.models.trigram_svm.linear_svm import Floats, Labels, choose, fit_linear, with_tuning
from treelm.trees.tree import Tree


def train_tree_features(
    data: LabelledSentences,
    config: TreeFeaturesConfig,
    *,
    parser: Parser,
    tuning: LabelledSentences | None = None,
    trees: TreeCorpus | None = None,
    run: Run = QUIET,
) -> TreeFeaturesModel:
    """Return a classifier by features of trees.

    Args:
        data: Good and bad sentences.
        config: Options.
        parser: Model folder of a parser, which is saved with the model, or a file of parses
            (`treelm parse -o FILE.forest`), which is not.
        tuning: Tuning set that chooses the regularization and fits the probabilities. Default: a
            tenth of the training sentences is kept for that.
        trees: For tsg: treebank in which fragments are found. Default: every other good sentence,
            which then trains nothing else.
        run: How the training is run.

    Raises:
        MissingExtra: without scikit-learn.
    """
    threads, progress = run.threads, run.progress
    sentences, labels, held, held_labels = with_tuning(data, tuning, config.seed)
    parses = list(best_parses(parser, sentences, config, threads=threads))
    grammar = None
    if config.features == "tsg":
        source: Iterable[Tree] | None = trees
        if source is None:
            source, parses, labels = _apart(parses, labels)
        grammar = FragmentGrammar.sample(source, config, progress)
    counted = tree_features(parses, config, grammar, threads=threads)
    rows = rows_of(counted, None, total=len(parses), progress=progress)
    names, points = rows.frequent(config.min_sentences)
    del rows, parses
    held_parses = best_parses(parser, held, config, threads=threads)
    held_rows = rows_of(
        tree_features(held_parses, config, grammar, threads=threads),
        {name: number for number, name in enumerate(names)},
    ).matrix()

    def attempt(value: float) -> tuple[tuple[Floats, float], Floats]:
        weights, offset = fit_linear(points, labels, value, config.seed)
        return (weights, offset), held_rows @ weights + offset

    grid = GRID if config.regularization is None else (config.regularization,)
    best = choose(grid, attempt, held_labels)
    weights, offset = best.machine
    words = dict.fromkeys((word for words in sentences for word in words), 1)
    return TreeFeaturesModel(
        names,
        np.ascontiguousarray(weights),
        offset,
        config.model_copy(update={"regularization": best.regularization}),
        calibration=fit_calibration(best.margins, held_labels),
        vocabulary=Vocabulary.from_counts(words),
        grammar=grammar,
        parser=parser,
        accuracy=best.accuracy,
        corpora=training_records(data),
    )


def _apart(parses: list[ScoredTree], labels: Labels) -> tuple[list[Tree], list[ScoredTree], Labels]:
    """Return trees for fragments, every other good one, and parses left to train on."""
    ranks = np.where(labels > 0, np.cumsum(labels > 0), np.cumsum(labels < 0))
    first = ranks % 2 == 1
    kept = np.flatnonzero(~first)
    source = [parses[place].tree for place in np.flatnonzero(first & (labels > 0))]
    return source, [parses[place] for place in kept], labels[kept]
