"""The best path of a lattice by acoustic scores and a language model.

Hypotheses meet at the nodes of the lattice. Those whose states have the same key have the same
future, so only the best of them is kept: with an n-gram model the best path is found exactly. Other
models remember the whole sentence, and a node keeps its best hypotheses only.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from treelm.corpus.lattices import Arc, Lattice
from treelm.models.history import ngram_order
from treelm.models.interface.incremental import IncrementalModel
from treelm.models.interface.states import State
from treelm.tasks.rerank import FLOOR

#: Hypotheses of a node for models that remember the whole sentence.
BEAM = 64


@dataclass(frozen=True, kw_only=True)
class LatticeWeights:
    """What the scores of a path count.

    Args:
        acoustic: Factor of acoustic scores.
        graph: Factor of the scores of the recogniser's own graph.
        model: Factor of the model's log probability.
        word: Added for every word.
    """

    acoustic: float = 1.0
    graph: float = 0.0
    model: float = 1.0
    word: float = 0.0


@dataclass(frozen=True, slots=True)
class BestPath:
    """The best path of a lattice.

    Args:
        name: Name of the utterance.
        words: Its words.
        score: Weighted sum.
        acoustic: Sum of the acoustic scores.
        graph: Sum of the scores of the graph.
        log_prob: Log probability of the words by the model, the end included.
    """

    name: str
    words: tuple[str, ...]
    score: float
    acoustic: float
    graph: float
    log_prob: float

    def to_record(self) -> dict[str, object]:
        """Return names and values in reading order."""
        return {
            "id": self.name,
            "text": " ".join(self.words),
            "score": self.score,
            "features": {
                "acoustic": self.acoustic,
                "graph": self.graph,
                "log_prob": self.log_prob,
            },
        }


class _Hypothesis(NamedTuple):
    """A path to a node."""

    score: float
    state: State
    arc: Arc | None
    before: _Hypothesis | None
    log_prob: float


def best_path(
    lattice: Lattice,
    model: IncrementalModel,
    weights: LatticeWeights,
    *,
    beam: int | None = None,
) -> BestPath:
    """Return the path with the highest weighted sum of scores.

    Args:
        lattice: The lattice.
        model: A model that goes word by word.
        weights: What the scores count.
        beam: Hypotheses that a node keeps; None for all of them with n-gram models and mixtures of
            these, which is exact, and `BEAM` with others.
    """
    kept = BEAM if beam is None and ngram_order(model) is None else beam
    nodes: list[dict[Hashable, _Hypothesis]] = [{} for _ in range(lattice.nodes)]
    first = _Hypothesis(0.0, model.initial(), None, None, 0.0)
    nodes[0][model.key(first.state)] = first
    leaving: list[list[Arc]] = [[] for _ in range(lattice.nodes)]
    for arc in lattice.arcs:
        leaving[arc.source].append(arc)
    best: _Hypothesis | None = None
    for node, found in enumerate(nodes):
        here = sorted(found.values(), key=lambda each: -each.score)[:kept]
        if node in lattice.ends:
            best = _better(best, _ended(here, lattice.ends[node], node, model, weights))
        for following in _extended(here, leaving[node], model, weights):
            assert following.arc is not None  # every step has one
            others, key = nodes[following.arc.target], model.key(following.state)
            if key not in others or following.score > others[key].score:
                others[key] = following
        found.clear()
    assert best is not None  # a lattice has a way to an end
    return _as_path(lattice.name, best)


def _extended(
    here: Sequence[_Hypothesis],
    arcs: Sequence[Arc],
    model: IncrementalModel,
    weights: LatticeWeights,
) -> list[_Hypothesis]:
    """Return hypotheses with every arc, the words of all of them asked for at once."""
    pairs = [(each, arc) for arc in arcs if arc.word is not None for each in here]
    words = [arc.word for _, arc in pairs if arc.word is not None]
    steps = model.advance_many([each.state for each, _ in pairs], words)
    log_probs = np.where(np.isneginf(steps.log_probs), FLOOR, steps.log_probs).tolist()
    made = [
        _Hypothesis(
            each.score + _arc_score(arc, weights) + weights.model * log_prob + weights.word,
            state,
            arc,
            each,
            each.log_prob + log_prob,
        )
        for (each, arc), log_prob, state in zip(pairs, log_probs, steps.states, strict=True)
    ]
    made += [
        _Hypothesis(each.score + _arc_score(arc, weights), each.state, arc, each, each.log_prob)
        for arc in arcs
        if arc.word is None
        for each in here
    ]
    return made


def _ended(
    here: Sequence[_Hypothesis],
    scores: tuple[float, float],
    node: int,
    model: IncrementalModel,
    weights: LatticeWeights,
) -> list[_Hypothesis]:
    """Return hypotheses with the end of the sentence."""
    arc = Arc(node, node, None, *scores)
    made = []
    for each in here:
        end = model.finish(each.state)
        log_prob = FLOOR if end == -math.inf else end
        score = each.score + _arc_score(arc, weights) + weights.model * log_prob
        made.append(_Hypothesis(score, each.state, arc, each, each.log_prob + log_prob))
    return made


def _arc_score(arc: Arc, weights: LatticeWeights) -> float:
    return weights.acoustic * arc.acoustic + weights.graph * arc.graph


def _better(best: _Hypothesis | None, others: Sequence[_Hypothesis]) -> _Hypothesis | None:
    for each in others:
        if best is None or each.score > best.score:
            best = each
    return best


def _as_path(name: str, last: _Hypothesis) -> BestPath:
    arcs: list[Arc] = []
    each: _Hypothesis | None = last
    while each is not None:
        if each.arc is not None:
            arcs.append(each.arc)
        each = each.before
    arcs.reverse()
    return BestPath(
        name,
        tuple(arc.word for arc in arcs if arc.word is not None),
        last.score,
        sum(arc.acoustic for arc in arcs),
        sum(arc.graph for arc in arcs),
        last.log_prob,
    )
