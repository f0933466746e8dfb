"""Coordinate descent: parse with the weights, keep the trees of bad sentences, fit the weights."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass, field

import numpy as np

from treelm.corpus.corpus import TreeCorpus
from treelm.corpus.labelled import LabelledSentences
from treelm.errors import EstimationError, TreelmWarning
from treelm.models.interface.calibration import fit_calibration, training_records
from treelm.models.lsvm.checkpoint import LatentCheckpoint, training_key
from treelm.models.lsvm.config import GRID, LatentSvmConfig
from treelm.models.lsvm.features import (
    FeatureVectors,
    LatentFeatures,
    LatentSentences,
    Places,
)
from treelm.models.lsvm.grammar import Floats, read_grammar
from treelm.models.lsvm.memory import TrainingState
from treelm.models.lsvm.model import LatentSvmModel
from treelm.models.lsvm.solve import Labels, objective, solve
from treelm.models.run import QUIET, Event, Run


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

    def __str__(self) -> str:
        return (
            f"round {self.number}: accuracy {self.accuracy:.4f}, objective {self.objective:.6g}, "
            f"{self.points} trees, {self.features} productions, {self.second} sentences by the "
            f"second lexicon, {self.dropped} without a tree."
        )


def accuracy(margins: Floats, labels: Labels) -> float:
    """Return the share of sentences on the right side of zero; zero itself is bad."""
    return float(np.mean((margins > 0) == (labels > 0)))


@dataclass(frozen=True, eq=False)
class _Piece:
    """Training sentences that are parsed together.

    Args:
        rows: Their numbers.
        train: The sentences.
        labels: Their labels.
    """

    rows: Places
    train: LatentSentences
    labels: Labels


def _cut(features: LatentFeatures, data: LabelledSentences, parts: int) -> list[_Piece]:
    """Return the sentences in pieces that are all alike: each takes every so manyth sentence."""
    sentences = list(data.sentences)
    all_rows = [np.arange(part, len(sentences), parts) for part in range(parts)]
    return [
        _Piece(rows, features.sentences([sentences[row] for row in rows]), data.labels[rows])
        for rows in all_rows
        if len(rows)
    ]


@dataclass
class _Trainer:
    """The sentences of a training, parsed again in every round."""

    config: LatentSvmConfig
    features: LatentFeatures
    pieces: list[_Piece]
    dev: LatentSentences
    dev_labels: Labels
    run: Run
    fixed: Floats | None = None
    _dev_vectors: FeatureVectors | None = field(default=None, init=False)

    def run_round(self, state: TrainingState) -> Round | None:
        """Parse and fit, a piece after the other; None if there is nothing new to fit to."""
        before, turns = state.digest, self._turns(state.round)
        second = dropped = 0
        for number, pieces in enumerate(turns, 1):
            unusual = self._parse(pieces, state)
            second, dropped = second + unusual[0], dropped + unusual[1]
            vectors, labels = state.points()
            if number == len(turns) and state.same_points(vectors, before):
                return None
            state.weights = self._fit(vectors, labels, state)
        state.finish_round(accuracy(self.dev_margins(state.weights), self.dev_labels))
        regularization = state.regularization or math.nan
        value = objective(state.weights, vectors.times(state.weights), labels, regularization)
        size = len(self.features)
        return Round(state.round, state.accuracies[-1], value, len(labels), size, second, dropped)

    def _turns(self, rounds: int) -> list[list[_Piece]]:
        """Return what is parsed with the same weights: at first everything, later each piece."""
        return [[piece] for piece in self.pieces] if rounds else [self.pieces]

    def _parse(self, pieces: list[_Piece], state: TrainingState) -> tuple[int, int]:
        """Step A: parse, add productions, remember.

        Returns:
            How many sentences needed the second lexicon, and how many have no tree.
        """
        weights = state.weights if self.fixed is None else self._padded(self.fixed)
        found = [(piece, piece.train.parse(weights, run=self.run)) for piece in pieces]
        self.features.add(set().union(*(piece.train.new_words(parses) for piece, parses in found)))
        state.extend(len(self.features))
        for piece, parses in found:
            vectors, usable = piece.train.vectors(parses), np.isfinite(parses.scores)
            bad, good = (np.flatnonzero(usable & (piece.labels == label)) for label in (-1, 1))
            state.remember(vectors.take(bad), piece.rows[bad], keep=self.config.memory)
            state.take_good(vectors.take(good), piece.rows[good])
        return (
            sum(int(parses.is_second.sum()) for _, parses in found),
            sum(int((~np.isfinite(parses.scores)).sum()) for _, parses in found),
        )

    def _padded(self, weights: Floats) -> Floats:
        return np.concatenate([weights, np.zeros(len(self.features) - len(weights))])

    def dev_margins(self, weights: Floats) -> Floats:
        """Return the margins of the sentences of tuning."""
        if self.fixed is None:
            return self.dev.parse(weights, run=self.run).scores
        if self._dev_vectors is None:
            fixed = self._padded(self.fixed)
            parses = self.dev.parse(fixed, run=self.run)
            self._dev_vectors = self.dev.vectors(parses)
        vectors = self._dev_vectors
        return np.where(np.diff(vectors.starts) > 0, vectors.times(weights), -np.inf)

    def _fit(self, vectors: FeatureVectors, labels: Labels, state: TrainingState) -> Floats:
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
    config: LatentSvmConfig,
    *,
    tuning: LabelledSentences,
    trees: TreeCorpus,
    run: Run = QUIET,
) -> LatentSvmModel:
    """Return a classifier of sentences by their hidden trees (Cherry and Quirk 2008).

    Args:
        data: Good and bad sentences.
        config: Options.
        tuning: Tuning set that chooses the regularization and the best round.
        trees: Treebank of the grammar, or of the tags alone.
        run: How the training is run; its checkpoint keeps what is known after each round.

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
    checkpoint = None if run.checkpoint is None else LatentCheckpoint(run.checkpoint)
    if run.resume and checkpoint is not None:
        state = checkpoint.load(key, features) or state
    trainer = _Trainer(
        config,
        features,
        _cut(features, data, config.parts),
        features.sentences(tuning.sentences),
        tuning.labels,
        run,
        grammar.frequencies if config.fixed_trees else None,
    )
    rounds = min(config.rounds, 1) if config.fixed_trees else config.rounds
    while state.round < rounds and not state.is_done(config.patience):
        done = trainer.run_round(state)
        if done is None:
            break
        if checkpoint is not None:
            checkpoint.save(state, features, key)
        run.event(Event(done, str(done)))
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
