"""What training remembers from round to round: weights, and the trees of bad sentences."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from dataclasses import dataclass, field

import numpy as np

from treelm.models.lsvm.features import FeatureVectors, Places, joined
from treelm.models.lsvm.grammar import Floats

_NOTHING = FeatureVectors(np.zeros(1, np.int64), np.zeros(0, np.int32), np.zeros(0))


@dataclass
class TrainingState:
    """Everything that a round begins with.

    Args:
        weights: Those of the last round.
        best_weights: Those of the best round, before any round the first ones.
        regularization: Weight of the squared norm, once it is chosen.
        accuracies: Of every round.
        memory: Distinct vectors of bad sentences.
        owners: The sentence of each.
        digest: Of the points of the last round.
    """

    weights: Floats
    best_weights: Floats
    regularization: float | None
    accuracies: list[float] = field(default_factory=list)
    memory: FeatureVectors = _NOTHING
    owners: Places = field(default_factory=lambda: np.zeros(0, np.int64))
    digest: str = ""

    @classmethod
    def begin(cls, weights: Floats, regularization: float | None) -> TrainingState:
        """Return the state before the first round."""
        return cls(weights, weights, regularization)

    @property
    def round(self) -> int:
        """Rounds done."""
        return len(self.accuracies)

    @property
    def best_round(self) -> int:
        """The first round with the best accuracy, from 1."""
        return int(np.argmax(self.accuracies)) + 1

    def is_done(self, patience: int) -> bool:
        """Return whether no round was better for so many rounds."""
        return self.round > 0 and self.round - self.best_round >= patience

    def extend(self, size: int) -> None:
        """Give new features the weight zero."""
        self.weights = np.concatenate([self.weights, np.zeros(size - len(self.weights))])

    def remember(self, vectors: FeatureVectors, rows: Places, *, keep: bool) -> FeatureVectors:
        """Store vectors of bad sentences that are new, and return all that are stored.

        Args:
            vectors: Those of all sentences.
            rows: The bad sentences.
            keep: Whether earlier ones stay.
        """
        if not keep or not len(self.owners):
            self.memory, self.owners = vectors.take(rows), rows
            return self.memory
        known: defaultdict[int, set[bytes]] = defaultdict(set)
        for place, owner in enumerate(self.owners.tolist()):
            known[owner].add(self.memory.key(place))
        new = np.array(
            [row for row in rows.tolist() if vectors.key(row) not in known[row]], np.int64
        )
        self.memory = joined([self.memory, vectors.take(new)])
        self.owners = np.concatenate([self.owners, new])
        return self.memory

    def same_points(self, vectors: FeatureVectors, before: str) -> bool:
        """Return whether the points are those of the round before, and take note of them."""
        digest = hashlib.sha256(vectors.starts.tobytes())
        digest.update(np.ascontiguousarray(vectors.features).tobytes())
        digest.update(np.ascontiguousarray(vectors.counts).tobytes())
        self.digest = digest.hexdigest()
        return self.digest == before

    def finish_round(self, accuracy: float) -> None:
        """Take note of the accuracy of a round, and of its weights if they are the best."""
        if not self.accuracies or accuracy > max(self.accuracies):
            self.best_weights = self.weights
        self.accuracies.append(accuracy)
