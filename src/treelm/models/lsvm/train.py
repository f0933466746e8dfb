"""Coordinate descent: parse with the weights, keep the trees of bad sentences, fit the weights."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from treelm.corpus.corpus import TreeCorpus
from treelm.corpus.labelled import LabelledSentences
from treelm.errors import EstimationError, TreelmWarning
from treelm.models.calibration import fit_calibration, training_records
from treelm.models.lsvm.checkpoint import LatentCheckpoint, training_key
from treelm.models.lsvm.config import GRID, LatentSvmConfig
from treelm.models.lsvm.features import FeatureVectors, LatentFeatures, LatentSentences, joined
from treelm.models.lsvm.grammar import Floats, read_grammar
from treelm.models.lsvm.memory import TrainingState
from treelm.models.lsvm.model import LatentSvmModel
from treelm.models.lsvm.solve import Labels, objective, solve
from treelm.parallel.progress import SILENT, Progress


@dataclass(frozen=True, slots=True)
class Round:
    """What one round of training did.

    Args:
        number: Of the round, from 1.
        accuracy: On the sentences of tuning.
        objective: What was made small, over the points of the round.
        points: Trees that it was fitted to.
        features: Productions so far.
        second: Training sentences that needed the second lexicon.
        dropped: Training sentences without any tree.
    """

    number: int
    accuracy: float
    objective: float
    points: int
    features: int
    second: int
    dropped: int


#: Told about every round when it is done.
Watch = Callable[[Round], None]


def accuracy(margins: Floats, labels: Labels) -> float:
    """Return the share of sentences on the right side of zero; zero itself is bad."""
    return float(np.mean((margins > 0) == (labels > 0)))


@dataclass
class _Trainer:
    """The sentences of a training, parsed again in every round."""

    config: LatentSvmConfig
    features: LatentFeatures
    train: LatentSentences
    labels: Labels
    dev: LatentSentences
    dev_labels: Labels
    threads: int
    progress: Progress
    fixed: Floats | None = None
    _dev_vectors: FeatureVectors | None = field(default=None, init=False)

    def step_a(self, state: TrainingState) -> tuple[FeatureVectors, Labels, int, int]:
        """Parse, add productions, remember; return the points to fit."""
        weights = state.weights if self.fixed is None else self._padded(self.fixed)
        parses = self.train.parse(weights, threads=self.threads, progress=self.progress)
        self.features.add(self.train.new_words(parses))
        vectors = self.train.vectors(parses)
        usable = np.isfinite(parses.scores)
        state.extend(len(self.features))
        bad = np.flatnonzero(usable & (self.labels < 0))
        kept = state.remember(vectors, bad, keep=self.config.memory)
        good = vectors.take(np.flatnonzero(usable & (self.labels > 0)))
        labels = np.concatenate([np.ones(len(good), np.int8), np.full(len(kept), -1, np.int8)])
        return (
            joined([good, kept]),
            labels,
            int(parses.is_second.sum()),
            int((~usable).sum()),
        )

    def _padded(self, weights: Floats) -> Floats:
        return np.concatenate([weights, np.zeros(len(self.features) - len(weights))])

    def dev_margins(self, weights: Floats) -> Floats:
        """Return the margins of the sentences of tuning."""
        if self.fixed is None:
            return self.dev.parse(weights, threads=self.threads, progress=self.progress).scores
        if self._dev_vectors is None:
            fixed = self._padded(self.fixed)
            parses = self.dev.parse(fixed, threads=self.threads, progress=self.progress)
            self._dev_vectors = self.dev.vectors(parses)
        vectors = self._dev_vectors
        return np.where(np.diff(vectors.starts) > 0, vectors.times(weights), -np.inf)

    def fit(self, vectors: FeatureVectors, labels: Labels, state: TrainingState) -> Floats:
        """Return the weights of step B; in the first round with the best regularization."""
        config = self.config
        if state.regularization is None:
            tried = []
            for value in GRID:
                weights = self._solve(vectors, labels, value, state)
                tried.append((accuracy(self.dev_margins(weights), self.dev_labels), value))
            state.regularization = max(tried)[1]  # of equals the larger
            if state.regularization in (GRID[0], GRID[-1]):
                warnings.warn(
                    f"the best regularization, {state.regularization:g}, is at an end of the grid.",
                    TreelmWarning,
                    stacklevel=4,
                )
        if not config.memory and not len(labels):
            raise EstimationError("no sentence has a tree.", code="E_NO_DATA")
        return self._solve(vectors, labels, state.regularization, state)

    def _solve(
        self, vectors: FeatureVectors, labels: Labels, value: float, state: TrainingState
    ) -> Floats:
        config = self.config
        return solve(
            vectors,
            labels,
            value,
            start=state.weights,
            tolerance=config.tolerance,
            seed=config.seed,
        )


def train_lsvm(
    data: LabelledSentences,
    tuning: LabelledSentences,
    trees: TreeCorpus,
    config: LatentSvmConfig,
    *,
    threads: int = 1,
    checkpoint: LatentCheckpoint | None = None,
    resume: bool = False,
    watch: Watch | None = None,
    progress: Progress = SILENT,
) -> LatentSvmModel:
    """Return a classifier of sentences by their hidden trees (Cherry and Quirk 2008).

    Args:
        data: Good and bad sentences.
        tuning: Sentences that choose the regularization and the best round.
        trees: Treebank of the grammar, or of the tags alone.
        config: Options.
        threads: Kernel threads; results do not depend on it.
        checkpoint: Where to keep what is known after each round.
        resume: Go on after the last complete round.
        watch: Told about every round.
        progress: Told how far parsing is.

    Raises:
        EstimationError: ``E_NO_DATA`` for a class without sentences, or without trees.
        MissingExtra: without scikit-learn.
    """
    profile = trees.options.profile
    grammar = read_grammar(trees, config, profile)
    features = LatentFeatures(grammar, profile=profile)
    start = grammar.frequencies if config.start == "mle" else np.zeros(grammar.features)
    key = training_key(data, tuning, trees, config)
    state = TrainingState.begin(start, config.regularization)
    if resume and checkpoint is not None:
        state = checkpoint.load(key, features) or state
    trainer = _Trainer(
        config,
        features,
        features.sentences(data.sentences),
        data.labels,
        features.sentences(tuning.sentences),
        tuning.labels,
        threads,
        progress,
        grammar.frequencies if config.fixed_trees else None,
    )
    rounds = min(config.rounds, 1) if config.fixed_trees else config.rounds
    while state.round < rounds and not state.is_done(config.patience):
        before = state.digest
        vectors, labels, second, dropped = trainer.step_a(state)
        if state.same_points(vectors, before):
            break
        state.weights = trainer.fit(vectors, labels, state)
        state.finish_round(accuracy(trainer.dev_margins(state.weights), tuning.labels))
        if watch is not None:
            regularization = state.regularization or math.nan
            value = objective(state.weights, vectors.times(state.weights), labels, regularization)
            found = state.accuracies[-1]
            watch(Round(state.round, found, value, len(labels), len(features), second, dropped))
        if checkpoint is not None:
            checkpoint.save(state, features, key)
    best = state.best_weights
    kept = LatentFeatures(grammar, features.added[: len(best) - grammar.features], profile)
    margins = trainer.dev_margins(np.concatenate([best, np.zeros(len(features) - len(best))]))
    return LatentSvmModel(
        kept,
        best,
        config.model_copy(update={"regularization": state.regularization}),
        fit_calibration(margins, tuning.labels),
        fixed=trainer.fixed,
        corpora=training_records(data, trees),
        accuracies=tuple(state.accuracies),
    )
