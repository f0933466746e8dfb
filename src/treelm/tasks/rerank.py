"""N-best lists with the scores of models, and the order that these give."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from itertools import accumulate, pairwise
from typing import Literal

import numpy as np
import numpy.typing as npt

from treelm.characters import visible
from treelm.corpus.lengths import TooLongSentence
from treelm.corpus.nbest import FeatureTable, NBestColumns, malformed
from treelm.corpus.words import split_words
from treelm.errors import CorpusFormatError, TreelmWarning, UsageError, VocabularyError
from treelm.models.interface.incremental import IncrementalModel
from treelm.models.interface.model import LanguageModel, Task
from treelm.models.ngram.model import NgramModel
from treelm.tasks.evaluate.slr import measured_scores, score_sentences
from treelm.translation.weights import FIXED, Weights

Numbers = npt.NDArray[np.float64]
#: What a model says about a hypothesis: its log probability, or margin if it is a classifier; the
#: syntactic log-odds ratio; or the surprisal of the whole, in bits.
Measure = Literal["score", "slr", "surprisal"]

#: Score of a word that has no probability: what n-best lists have instead of minus infinity.
FLOOR = -100.0

#: Distinct texts that are scored together.
_AT_ONCE = 1 << 15


@dataclass(frozen=True, kw_only=True)
class Scorer:
    """A model that gives hypotheses a feature.

    Args:
        name: Name of the feature.
        model: Any model that scores.
        measure: What of it.
        threads: Kernel threads; results do not depend on it.
    """

    name: str
    model: LanguageModel
    measure: Measure = "score"
    threads: int = 1

    def __post_init__(self) -> None:
        self.model.require(Task.SCORE)
        if self.measure == "surprisal":
            self.model.require(Task.PERPLEXITY)

    def scores(self, lists: Sequence[Sequence[str]]) -> list[Numbers]:
        """Return the scores of the different texts of each of some lists."""
        fast = None if self.measure == "slr" else self.model.incremental
        if isinstance(fast, NgramModel):
            found = self._similar(fast, lists)
        elif fast is not None and not fast.words_are_cheap:
            found = list(self._in_threads(lambda texts: prefix_log_probs(fast, texts), lists))
        else:
            found = self._batches(lists)
        return [self._finished(texts, scores) for texts, scores in zip(lists, found, strict=True)]

    def _similar(self, model: NgramModel, lists: Sequence[Sequence[str]]) -> list[Numbers]:
        """Return the scores of lists by an n-gram model; with one thread all of them at once."""
        if self.threads > 1:
            return list(self._in_threads(lambda texts: model.score_similar([texts]), lists))
        scores = model.score_similar(lists)
        bounds = accumulate((len(texts) for texts in lists), initial=0)
        return [scores[first:last] for first, last in pairwise(bounds)]

    def _in_threads(
        self, work: Callable[[Sequence[str]], Numbers], lists: Sequence[Sequence[str]]
    ) -> Iterator[Numbers]:
        if self.threads == 1:
            return map(work, lists)
        with ThreadPoolExecutor(self.threads) as pool:
            return iter(list(pool.map(work, lists)))

    def _batches(self, lists: Sequence[Sequence[str]]) -> list[Numbers]:
        """Return the scores of many texts at once; few models score a text without words."""
        texts = [text for each in lists for text in each]
        has_words = np.array([bool(text) for text in texts], dtype=np.bool_)
        found = np.full(len(texts), -np.inf)
        given = [text for text in texts if text]
        fast = self.model.incremental
        if self.measure != "slr" and fast is not None:
            found[has_words] = fast.sentence_log_probs(given, threads=self.threads)
            found[~has_words] = fast.finish(fast.initial())
        elif given:
            table = score_sentences(
                self.model, given, with_unigram=self.measure == "slr", threads=self.threads
            )
            found[has_words] = measured_scores(
                table, "slr" if self.measure == "slr" else "log_prob"
            )
        ends = np.cumsum([len(each) for each in lists])
        return np.split(found, ends[:-1]) if len(lists) else []

    def _finished(self, texts: Sequence[str], scores: Numbers) -> Numbers:
        """Return scores that a list can hold: in the measure's unit, and finite."""
        missing = (scores == -np.inf).nonzero()[0]
        if len(missing):
            scores = scores.copy()
            for place in missing.tolist():
                words = len(split_words(texts[place]))
                scores[place] = FLOOR if self.measure == "slr" else FLOOR * (words + 1)
            warnings.warn(
                f"{self.name}: some hypotheses have no score, such as "
                f'"{visible(texts[missing[0]][:60])}"; {FLOOR:g} for each word is used instead.',
                TreelmWarning,
                stacklevel=2,
            )
        return scores / -math.log(2) if self.measure == "surprisal" else scores


def prefix_log_probs(model: IncrementalModel, texts: Sequence[str]) -> Numbers:
    """Return the log probabilities of sentences, each prefix that several begin with read once.

    Args:
        model: A model that goes word by word.
        texts: The sentences; one may be empty.
    """
    sentences = [split_words(text) for text in texts]
    found = np.empty(len(texts))
    states, sums = [model.initial()], [0.0]
    nodes = [0] * len(texts)
    left = list(range(len(texts)))
    depth = 0
    while left:
        ends: dict[int, float] = {}
        places: dict[tuple[int, str], int] = {}
        longer = []
        for text in left:
            node = nodes[text]
            if len(sentences[text]) == depth:
                if node not in ends:
                    ends[node] = sums[node] + model.finish(states[node])
                found[text] = ends[node]
            else:
                nodes[text] = places.setdefault((node, sentences[text][depth]), len(places))
                longer.append(text)
        steps = model.advance_many(
            [states[node] for node, _ in places], [word for _, word in places]
        )
        sums = [
            sums[node] + log_prob
            for (node, _), log_prob in zip(places, steps.log_probs.tolist(), strict=True)
        ]
        states = list(steps.states)
        left = longer
        depth += 1
    return found


@dataclass(frozen=True, slots=True)
class ScoredList:
    """A list with new features.

    Args:
        given: The list as it was.
        columns: The same, features and perhaps totals and order changed.
        scores: What each scorer said, a column each, rows in the order of the file.
    """

    given: NBestColumns
    columns: NBestColumns
    scores: Numbers


def rerank(
    lists: Iterable[NBestColumns],
    scorers: Sequence[Scorer],
    *,
    weights: Weights | None = None,
    replaced: str | None = None,
    sort: bool = True,
) -> Iterator[ScoredList]:
    """Yield lists with the scores of models as features.

    Args:
        lists: The lists.
        scorers: The models, with the names of their features.
        weights: Weights of all features: totals are computed anew, and the lists sorted by these.
        replaced: Name of a feature in whose place that of the only model is put.
        sort: Whether lists with new totals are sorted, the best first; of equal totals the first
            stays first.

    Raises:
        CorpusFormatError: ``E_NBEST`` with the line, for features that are malformed, not there, or
            there already; ``E_FEATURE_WEIGHTS`` for weights that do not fit.
    """
    names = [scorer.name for scorer in scorers]
    if len(set(names)) < len(names):
        raise UsageError("two models have the same feature name; give each a name of its own.")
    if replaced is not None and len(scorers) != 1:
        raise UsageError("one feature is replaced by one model.")
    vectors = None if weights is None else WeightVectors(weights)
    for group in _groups(lists):
        distinct = [list(dict.fromkeys(each.texts)) for each in group]
        columns = [_scores(scorer, group, distinct) for scorer in scorers]
        for place, (each, texts) in enumerate(zip(group, distinct, strict=True)):
            rows = {text: row for row, text in enumerate(texts)}
            order = [rows[text] for text in each.texts]
            scores = np.array([column[place][order] for column in columns]).reshape(
                len(columns), len(each)
            )
            changed = _with_features(each, names, scores, replaced)
            if vectors is not None:
                changed = with_totals(changed, vectors, sort=sort)
            yield ScoredList(each, changed, scores.T)


def _scores(
    scorer: Scorer, group: Sequence[NBestColumns], distinct: Sequence[Sequence[str]]
) -> list[Numbers]:
    """Return the scores of the texts of lists; what cannot be scored is refused with its line."""
    try:
        return scorer.scores(distinct)
    except (VocabularyError, TooLongSentence) as error:
        for each in group:
            for text, line in zip(each.texts, each.lines, strict=True):
                try:
                    scorer.scores([[text]])
                except TooLongSentence as found:
                    raise found.in_line(each.source, line) from error
                except VocabularyError as found:
                    raise CorpusFormatError(
                        f"{each.source}:{line}: {found}",
                        code=found.code,
                        path=each.source,
                        line=line,
                    ) from error
        raise


def _groups(lists: Iterable[NBestColumns]) -> Iterator[list[NBestColumns]]:
    """Yield some lists at a time, enough for the threads of a kernel."""
    group: list[NBestColumns] = []
    size = 0
    for each in lists:
        group.append(each)
        size += len(each)
        if size >= _AT_ONCE:
            yield group
            group, size = [], 0
    if group:
        yield group


def _with_features(
    each: NBestColumns, names: Sequence[str], scores: Numbers, replaced: str | None
) -> NBestColumns:
    """Return a list with features added at the end, or with one in the place of another."""
    if not names:
        return each
    for name in names:
        if name != replaced:
            _check_absent(each, name)
    added = [
        " ".join(f"{name}= {value!r}" for name, value in zip(names, values, strict=True))
        for values in scores.T.tolist()
    ]
    if replaced is None:
        features = [f"{old} {new}".strip() for old, new in zip(each.features, added, strict=True)]
        return replace(each, features=features)
    features = []
    for old, new, line in zip(each.features, added, each.lines, strict=True):
        first, last = _place_of(old, replaced)
        if first is None and each.sparse:
            first = last = len(old)
        if first is None:
            raise malformed(
                each.source,
                line,
                f'there is no feature "{visible(replaced)}"',
                "Name one that is there, or leave out --replace.",
            )
        features.append(" ".join(filter(None, (old[:first].strip(), new, old[last:].strip()))))
    return replace(each, features=features)


def _check_absent(each: NBestColumns, name: str) -> None:
    if _place_of(each.features[0], name)[0] is not None:
        raise malformed(
            each.source,
            each.lines[0],
            f'there is a feature "{visible(name)}" already',
            "Choose another name, or replace it.",
        )


def _place_of(features: str, name: str) -> tuple[int | None, int]:
    """Return where a feature and its values stand, None for one that is not there."""
    tokens = features.split(" ")
    at = 0
    first: int | None = None
    for token in tokens:
        if first is None and token in (f"{name}=", f"{name}:"):
            first = at
        elif first is not None and token.endswith(("=", ":")):
            return first, at
        at += len(token) + 1
    return first, len(features)


class WeightVectors:
    """Weights as numbers in the order of the features of lists.

    Args:
        weights: The weights.
    """

    def __init__(self, weights: Weights) -> None:
        self.weights = weights
        self._layout: tuple[tuple[str, int], ...] | None = None
        self._vector = np.zeros(0)

    def widened(self, table: FeatureTable) -> FeatureTable:
        """Return a table with columns of zeros for features that have weights and are not there."""
        own = {name for name, _ in table.layout}
        others = ((name, len(values)) for name, values in self.weights.items() if name not in own)
        return table.widened((*table.layout, *others))

    def of(self, table: FeatureTable) -> Numbers:
        """Return the weight of every column of a table.

        Raises:
            CorpusFormatError: ``E_FEATURE_WEIGHTS`` for weights of a feature that is not there, for
                another number of weights than values, and for a missing one that has no default.
        """
        if table.layout != self._layout:
            found = weights_of(self.weights, table.layout)
            self._vector = np.array([value for values in found.values() for value in values])
            self._layout = table.layout
        return self._vector


def weights_of(weights: Weights, layout: Sequence[tuple[str, int]]) -> Weights:
    """Return the weights of exactly the features of lists, in their order.

    A fixed feature, such as that of unknown words, need not be in the lists.

    Raises:
        CorpusFormatError: ``E_FEATURE_WEIGHTS``, as `Weights.completed`.
    """
    wanted = dict(layout)
    if "" in wanted:
        raise UsageError("the lists have values without a name; weights need names.")
    return weights.without(FIXED - set(wanted)).completed(wanted)


def with_totals(each: NBestColumns, weights: WeightVectors, *, sort: bool = True) -> NBestColumns:
    """Return a list with totals computed from weights, the best hypothesis first.

    Raises:
        CorpusFormatError: ``E_NBEST`` with the line, ``E_FEATURE_WEIGHTS`` with the feature.
    """
    table = each.feature_table()
    if each.sparse:
        table = weights.widened(table)
    totals = table.values @ weights.of(table)
    changed = replace(each, scores=[repr(total) for total in totals.tolist()])
    if not sort:
        return changed
    return changed.reordered(np.argsort(-totals, kind="stable").tolist())
