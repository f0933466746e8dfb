"""What training keeps from round to round: weights, and the trees of bad sentences."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from dataclasses import dataclass, field

import numpy as np

from treelm.models.lsvm.features import FeatureVectors, Places, joined
from treelm.models.lsvm.grammar import Floats
from treelm.models.lsvm.solve import Labels

_NOTHING = FeatureVectors(np.zeros(1, np.int64), np.zeros(0, np.int32), np.zeros(0))


@dataclass
class TrainingState:
    """The state at the start of a round.

    Args:
        weights: Those of the last round.
        best_weights: Those of the best round; before any round, the initial ones.
        regularization: Weight of the squared norm, once it is chosen.
        accuracies: Accuracy of every round.
        memory: Distinct vectors of bad sentences.
        owners: The sentence of each.
        digest: Digest of the points of the last round.
        good: Vectors of the last trees of good sentences.
        good_owners: The sentence of each, ascending.
    """

    weights: Floats
    best_weights: Floats
    regularization: float | None
    accuracies: list[float] = field(default_factory=list)
    memory: FeatureVectors = _NOTHING
    owners: Places = field(default_factory=lambda: np.zeros(0, np.int64))
    digest: str = ""
    good: FeatureVectors = _NOTHING
    good_owners: Places = field(default_factory=lambda: np.zeros(0, np.int64))

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
        """Return whether there was no better round for the given number of rounds."""
        return self.round > 0 and self.round - self.best_round >= patience

    def extend(self, size: int) -> None:
        """Give new features the weight zero."""
        self.weights = np.concatenate([self.weights, np.zeros(size - len(self.weights))])

    def remember(self, vectors: FeatureVectors, owners: Places, *, keep: bool) -> None:
        """Store vectors of bad sentences that are new.

        Args:
            vectors: Those of some bad sentences.
            owners: The sentence of each.
            keep: Whether earlier ones of these sentences stay.
        """
        if not keep:
            self.memory, self.owners = _replaced(self.memory, self.owners, vectors, owners)
            return
        known: defaultdict[int, set[bytes]] = defaultdict(set)
        for place, owner in enumerate(self.owners.tolist()):
            known[owner].add(self.memory.key(place))
        new = np.array(
            [
                row
                for row, owner in enumerate(owners.tolist())
                if vectors.key(row) not in known[owner]
            ],
            np.int64,
        )
        self.memory = joined([self.memory, vectors.take(new)])
        self.owners = np.concatenate([self.owners, owners[new]])

    def take_good(self, vectors: FeatureVectors, owners: Places) -> None:
        """Replace the earlier vectors of good sentences.

        Args:
            vectors: Those of some good sentences.
            owners: The sentence of each.
        """
        self.good, self.good_owners = _replaced(self.good, self.good_owners, vectors, owners)

    def points(self) -> tuple[FeatureVectors, Labels]:
        """Return the points to fit the weights to, good sentences first, and the labels."""
        labels = np.repeat(np.array([1, -1], np.int8), [len(self.good), len(self.memory)])
        return joined([self.good, self.memory]), labels

    def same_points(self, vectors: FeatureVectors, before: str) -> bool:
        """Return whether the points are those of the round before, and remember them."""
        digest = hashlib.sha256(vectors.starts.tobytes())
        digest.update(np.ascontiguousarray(vectors.features).tobytes())
        digest.update(np.ascontiguousarray(vectors.counts).tobytes())
        self.digest = digest.hexdigest()
        return self.digest == before

    def finish_round(self, accuracy: float) -> None:
        """Record the accuracy of a round, and its weights if they are the best."""
        if not self.accuracies or accuracy > max(self.accuracies):
            self.best_weights = self.weights
        self.accuracies.append(accuracy)


def _replaced(
    old: FeatureVectors, old_owners: Places, new: FeatureVectors, new_owners: Places
) -> tuple[FeatureVectors, Places]:
    """Return the new vectors, and the old ones of other sentences, in the order of sentences."""
    kept = np.flatnonzero(~np.isin(old_owners, new_owners))
    owners = np.concatenate([old_owners[kept], new_owners])
    order = np.argsort(owners, kind="stable")
    return joined([old.take(kept), new]).take(order), owners[order]
