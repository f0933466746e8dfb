"""The part `unknown` of the study: claim (a) in an open vocabulary, by the words that are known.

With one symbol for all unknown words a model is the better the fewer words it knows, and models
with different words cannot be compared. Here unknown words are spelled, so that every word has a
probability of its own, and each model may know what it likes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import cache

from corpora import TEXTS, TestSet, test_sets
from scored_text import Scored, ScoreFiles
from study_models import HHMM, NGRAM, StudyModels

from treelm.corpus.corpus import TreeSentences
from treelm.corpus.vocabulary_rules import VocabularyRule, build_vocabulary
from treelm.models.interface.incremental import IncrementalModel
from treelm.models.registry import train
from treelm.tasks.evaluate.comparison import compare_log_probs
from treelm.tasks.report.report import Report
from treelm.tasks.report.results import Result

#: Sets of known words, by name.
KNOWN = {
    "all words": VocabularyRule(name="all", signatures=False),
    "words seen twice": VocabularyRule(name="min-count", min_count=2, signatures=False),
    "words seen twice, signatures": VocabularyRule(name="min-count", min_count=2, signatures=True),
    "words seen five times, signatures": VocabularyRule(
        name="min-count", min_count=5, signatures=True
    ),
}
#: The words that an n-gram program knows if nobody tells it otherwise.
USUAL = "all words"
PERPLEXITY, RATIO = "Open vocabulary: perplexity", "Open vocabulary: ratios of perplexities"


class UnknownWordStudy:
    """Open perplexities of the HHMM and the n-gram of the same trees, by known words.

    Args:
        models: The trees, and the options of the study.
        files: Where scores are kept.
        chosen: Names of the sets.
        beam_width: Stacks that the HHMM keeps.
    """

    def __init__(
        self, models: StudyModels, files: ScoreFiles, chosen: Sequence[str], beam_width: int
    ) -> None:
        self._models, self._files, self._beam = models, files, beam_width
        large = set(chosen) & set(TEXTS)
        held_out = {name: path for name, (_, path) in models.texts.items()} if large else {}
        self._sets = [each for each in test_sets(models.data, held_out) if each.name in chosen]

    def write(self, report: Report, *, seed: int) -> None:
        """Score what has not been scored yet, and add both tables to a report."""
        scored: dict[str, dict[tuple[str, str], Scored]] = {data.name: {} for data in self._sets}
        for known, rule in KNOWN.items():
            for system in (NGRAM, HHMM):
                make = self._maker(system, rule)
                for data in self._sets:
                    name = f"{system}, {known}, spelled"
                    found = self._files.scored(data.name, name, make, data.test)
                    scored[data.name][system, known] = found
        for data in self._sets:
            self._report(report, data, scored[data.name], seed)

    def _maker(self, name: str, rule: VocabularyRule) -> Callable[[], IncrementalModel]:
        """Return what trains a model once, when it is first asked for."""
        trees = self._models.training_trees
        system, options = {
            NGRAM: ("ngram", {"order": 5}),
            HHMM: ("hhmm", {"depth": self._models.depth, "beam_width": self._beam}),
        }[name]

        @cache
        def make() -> IncrementalModel:
            words = build_vocabulary(TreeSentences(trees), rule)
            found = train(system, trees, vocabulary=words, unknown="spelling", **options)
            assert isinstance(found, IncrementalModel)
            return found

        return make

    def _report(
        self, report: Report, data: TestSet, scored: Mapping[tuple[str, str], Scored], seed: int
    ) -> None:
        for (system, known), found in scored.items():
            report.add_result(
                Result(
                    table=PERPLEXITY,
                    model=f"{system}, {known}",
                    metric="open perplexity",
                    data=data.name,
                    value=found.perplexity,
                    n=len(found.log_probs),
                    interval=found.interval(data.documents, seed),
                    digits=1,
                )
            )
        pairs = [(known, known) for known in KNOWN]
        pairs += [(known, USUAL) for known in KNOWN if known != USUAL]
        for own, other in pairs:
            one, two = scored[HHMM, own], scored[NGRAM, other]
            compared = compare_log_probs(
                one.sentences,
                two.sentences,
                seed=seed,
                lengths=one.lengths - 1,
                documents=data.documents,
            )
            interval = compared.details["perplexity_ratio_interval"]
            assert isinstance(interval, list)  # comparisons of perplexities have one
            report.add_result(
                Result(
                    table=RATIO,
                    model=f"{HHMM}, {own} / {NGRAM}, {other}",
                    metric="ratio of open perplexities",
                    data=data.name,
                    value=math.exp(-compared.difference),
                    n=len(one.log_probs),
                    interval=(interval[0], interval[1]),
                    p=compared.p_value,
                    baseline=f"{NGRAM}, {other}",
                    digits=3,
                )
            )
