"""A phrase-based decoder that tries everything: all derivations, one after the other."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from treelm.models.interface.incremental import IncrementalModel
from treelm.translation.weights import Weights

FLOOR = -100.0


class Pair(NamedTuple):
    """A pair of phrases with its probabilities, and those of its orientations."""

    source: tuple[str, ...]
    target: tuple[str, ...]
    scores: tuple[float, ...]
    orientations: tuple[float, ...] = ()


class Phrase(NamedTuple):
    """A pair used for the source words `first` to `end` - 1; None for a word that is copied."""

    first: int
    end: int
    target: tuple[str, ...]
    pair: Pair | None


class Derived(NamedTuple):
    """A derivation with its score."""

    phrases: tuple[Phrase, ...]
    words: tuple[str, ...]
    features: Mapping[str, tuple[float, ...]]
    score: float


def floored_log(probability: float) -> float:
    """Return the logarithm of a score."""
    return max(FLOOR, math.log(probability)) if probability > 0 else FLOOR


@dataclass(frozen=True)
class ReferenceDecoder:
    """Tries all derivations of short sentences."""

    pairs: Sequence[Pair]
    models: Sequence[IncrementalModel]
    weights: Weights
    distortion_limit: int = -1

    def derivations(self, source: Sequence[str]) -> list[Derived]:
        """Return all derivations, the best first."""
        words = tuple(source)
        found = [self._derived(phrases) for phrases in self._orders(words, frozenset(), 0, ())]
        return sorted(found, key=lambda each: (-each.score, each.words))

    def options(self, source: tuple[str, ...], first: int, end: int) -> list[Phrase]:
        """Return what a span can be translated by."""
        span = source[first:end]
        fitting = [pair for pair in self.pairs if pair.source == span]
        found = [Phrase(first, end, pair.target, pair) for pair in fitting]
        return found or ([Phrase(first, end, span, None)] if end == first + 1 else [])

    def _orders(
        self,
        source: tuple[str, ...],
        covered: frozenset[int],
        at: int,
        before: tuple[Phrase, ...],
    ) -> Iterator[tuple[Phrase, ...]]:
        if len(covered) == len(source):
            yield before
            return
        gap = min(set(range(len(source))) - covered)
        for first in range(len(source)):
            for end in range(first + 1, len(source) + 1):
                span = set(range(first, end))
                if span & covered:
                    break
                if self.distortion_limit >= 0:
                    after = set(range(len(source))) - covered - span
                    if abs(first - at) > self.distortion_limit:
                        continue
                    if first != gap and after and end - min(after) > self.distortion_limit:
                        continue
                for option in self.options(source, first, end):
                    yield from self._orders(source, covered | span, end, (*before, option))

    def _derived(self, phrases: tuple[Phrase, ...]) -> Derived:
        words = tuple(word for phrase in phrases for word in phrase.target)
        count = len(self.pairs[0].scores)
        scores, orientations = [0.0] * count, [0.0] * 6
        jumps, at, unknown = 0, 0, 0
        last: Phrase | None = None
        for phrase in phrases:
            jumps += abs(phrase.first - at)
            if phrase.first == at:
                kind = 0
            else:
                kind = 1 if last is not None and phrase.end == last.first else 2
            if phrase.pair is None:
                unknown += 1
            else:
                for index, score in enumerate(phrase.pair.scores):
                    scores[index] += floored_log(score)
                if phrase.pair.orientations:
                    orientations[kind] += floored_log(phrase.pair.orientations[kind])
            if last is not None and last.pair is not None and last.pair.orientations:
                orientations[kind + 3] += floored_log(last.pair.orientations[kind + 3])
            at, last = phrase.end, phrase
        features: dict[str, tuple[float, ...]] = {}
        if "LexicalReordering0" in self.weights:
            features["LexicalReordering0"] = tuple(orientations)
        features["Distortion0"] = (-float(jumps),)
        for number, model in enumerate(self.models):
            features[f"LM{number}"] = (self._log_prob(model, words),)
        features["WordPenalty0"] = (-float(len(words)),)
        features["PhrasePenalty0"] = (float(len(phrases)),)
        features["TranslationModel0"] = tuple(scores)
        features["UnknownWordPenalty0"] = (-100.0 * unknown,)
        return Derived(phrases, words, features, self.weights.dot(features))

    @staticmethod
    def _log_prob(model: IncrementalModel, words: Sequence[str]) -> float:
        state, total = model.initial(), 0.0
        for word in words:
            log_prob, state = model.advance(state, word)
            total += max(FLOOR, log_prob)
        return total + max(FLOOR, model.finish(state))


def table_text(pairs: Sequence[Pair]) -> str:
    """Return pairs as a phrase table."""
    return "".join(
        f"{' '.join(pair.source)} ||| {' '.join(pair.target)} ||| {' '.join(map(repr, pair.scores))}\n"
        for pair in pairs
    )


def reordering_text(pairs: Sequence[Pair]) -> str:
    """Return the orientations of pairs as a table."""
    return "".join(
        f"{' '.join(pair.source)} ||| {' '.join(pair.target)} ||| "
        f"{' '.join(map(repr, pair.orientations))}\n"
        for pair in pairs
        if pair.orientations
    )
