"""Estimate, from a few sentences, of the types that EM over parses adds to the given parses."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from treelm.estimation.lattice import ONE, Floats, Ids
from treelm.models.composite.em import Data, first_parts, posteriors
from treelm.models.composite.follow_up import fit_predictor, frontier_weights, frontiers
from treelm.models.composite.parsed_text import ParsedText, PreparedTrees
from treelm.models.composite.parts import NO_TOPICS, CompositeShape
from treelm.models.composite.plan_sizes import row_hashes

#: Numbers of sentences to count a small model on, to find its weights on, and to search.
COUNTED, WEIGHED, SEARCHED = 8000, 300, 600

Columns = tuple[int, ...]


@dataclass(frozen=True)
class Kind:
    """Types of some columns in a sample: how often each was seen, contexts of each, contexts."""

    counts: Floats
    context: npt.NDArray[np.int64]
    contexts: int

    @classmethod
    def of(cls, columns: Ids, outcomes: Ids, weights: Floats, seen: Columns) -> Kind:
        """Return the types of the columns `seen`."""
        rows = len(outcomes)
        hashes = row_hashes((columns[:, c] for c in seen), rows)
        kinds, context = np.unique(hashes, return_inverse=True)
        whole = row_hashes((*(columns[:, c] for c in seen), outcomes), rows)
        _, first, place = np.unique(whole, return_index=True, return_inverse=True)
        counts = np.bincount(place, weights).astype(np.float64)
        return cls(counts, context[first], len(kinds))

    def kept(self, cutoff: float) -> tuple[float, float]:
        """Return the shares of types and of contexts that a cut-off keeps."""
        left = self.counts >= cutoff
        return float(left.mean()), len(np.unique(self.context[left])) / max(1, self.contexts)


@dataclass(frozen=True)
class Stage:
    """One kind of EM: the types of each part and kind, compared with those of the given parses.

    Args:
        kinds: Types by part and columns.
        given: The same for the given parses.
        rows: Rows of each part per word and sentence end.
        seconds: Search time per word and sentence end.
        list_bytes: Bytes of kept parses per word and sentence end.
        new_rows: Rows of the predictor in sentences that were not counted.
    """

    kinds: Mapping[tuple[str, Columns], Kind]
    given: Mapping[tuple[str, Columns], Kind]
    rows: Mapping[str, float]
    seconds: float
    list_bytes: float = 0.0
    new_rows: float = 0.0

    def growth(self, part: str, columns: Columns) -> tuple[float, float]:
        """Return the growth factors of types and contexts."""
        now, before = (kinds[part, columns] for kinds in (self.kinds, self.given))
        return len(now.counts) / max(1, len(before.counts)), now.contexts / max(1, before.contexts)


def search_sample(
    prepared: PreparedTrees, shape: CompositeShape, stems: Mapping[str, Sequence[Columns]]
) -> dict[str, Stage]:
    """Count a small model, search a few sentences with it, and return the counts of EM.

    Args:
        prepared: The training sentences.
        shape: The sizes of everything, without topics.
        stems: By part, which columns are counted together.
    """
    counted, weighed, text = _split(prepared.text)
    parts, _ = first_parts(shape, Data(counted), Data(weighed))
    rows, _ = shape.events(text, text.lists, np.ones(len(text)))
    given = {
        (part, seen): Kind.of(*rows[part][:2], rows[part][2] / ONE, seen)
        for part, kinds in stems.items()
        for seen in kinds
    }
    began = time.process_time()
    lists = parts.best_parses(text, count=shape.config.n_best)
    seconds = time.process_time() - began
    found, _ = parts.events(text, lists, posteriors(lists)[0])
    stages = {
        "n-best": Stage(
            {key: Kind.of(*found[key[0]][:2], found[key[0]][2] / ONE, key[1]) for key in given},
            given,
            {part: len(each[1]) / text.tokens for part, each in found.items()},
            seconds / text.tokens,
            sum(array.nbytes for array in vars(lists).values()) / text.tokens,
        )
    }
    began = time.process_time()
    seen_contexts = frontiers(parts, Data(text))
    seconds = time.process_time() - began
    new_contexts = frontiers(parts, Data(weighed))
    model = parts.models["predictor"]
    if not shape.config.iterations:  # N-best EM compensates for weights of partial parses
        model = fit_predictor(model, new_contexts, NO_TOPICS)
    columns, outcomes, weights, _, _ = frontier_weights(model, seen_contexts, NO_TOPICS)
    stages["follow-up"] = Stage(
        {
            ("predictor", seen): Kind.of(columns, outcomes, weights, seen)
            for seen in stems["predictor"]
        },
        given,
        {"predictor": len(outcomes) / text.tokens},
        seconds / text.tokens,
        new_rows=len(new_contexts.outcomes) / weighed.tokens,
    )
    return stages


def _split(text: ParsedText) -> list[ParsedText]:
    """Return samples spread over a text: to count, to find weights on, to search.

    What is searched was counted, as in training; a very short text is used for everything.
    """
    places = np.arange(len(text))
    if len(text) < 8:
        return [text] * 3
    if len(text) > COUNTED + WEIGHED:
        places = np.linspace(0, len(text) - 1, COUNTED + WEIGHED).astype(np.int64)
    weighed = np.arange(len(places)) % (1 + COUNTED // WEIGHED) == 1
    counted = places[~weighed]
    searched = counted[:: max(1, len(counted) // SEARCHED)][:SEARCHED]
    return [text.chosen(chosen) for chosen in (counted, places[weighed], searched)]
