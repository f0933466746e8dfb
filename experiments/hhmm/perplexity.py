"""The part `perplexity` of the study: score what has not been scored yet, then report."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path

from corpora import TestSet, test_sets
from perplexity_tables import PerplexityTables, figure_7
from scored_text import Scored, ScoreFiles, joined
from study_models import BIG, HHMM, StudyModels

from treelm.corpus.corpus import TextCorpus, TreeSentences
from treelm.models.interface.incremental import IncrementalModel
from treelm.tasks.report.report import Report

#: Narrower beams reported beside the full one.
NARROW = (50, 500)


class PerplexityStudy:
    """Scores of all sets by all models, computed once.

    Args:
        models: The models.
        files: Where scores are kept.
        chosen: Names of the sets.
    """

    def __init__(self, models: StudyModels, files: ScoreFiles, chosen: Sequence[str]) -> None:
        self._models, self._files = models, files
        held_out = {name: path for name, (_, path) in models.texts.items()}
        self._sets = [each for each in test_sets(models.data, held_out) if each.name in chosen]
        self._makers = models.makers()
        self._narrow: dict[str, Callable[[], IncrementalModel]] = {
            f"{HHMM}, beam {width}": _narrowed(models, width) for width in NARROW
        }

    @property
    def names(self) -> list[str]:
        """The sets."""
        return [data.name for data in self._sets]

    def score(self, minutes: float) -> None:
        """Score the sets, the dev sets that their mixtures need, and then narrower beams.

        Args:
            minutes: Start nothing new after this time.
        """
        end = time.monotonic() + 60 * minutes
        sets = sorted(self._sets, key=lambda data: sum(map(len, data.test)))
        for makers in (self._makers, self._narrow):
            for data in sets:
                with_dev = data.in_domain and makers is self._makers
                texts = {f"{data.name}.dev": data.tuning} if with_dev else {}
                texts[data.name] = data.test
                for text, sentences in texts.items():
                    for name, make in makers.items():
                        if time.monotonic() < end:
                            self._files.scored(text, name, make, sentences)

    @property
    def missing(self) -> list[str]:
        """The sets that have not been scored yet; narrower beams are optional."""
        return [
            data.name
            for data in self._sets
            if not all(
                self._files.has(text, name)
                for text, makers in (
                    (data.name, self._makers),
                    (f"{data.name}.dev", self._makers if data.in_domain else {}),
                )
                for name in makers
            )
        ]

    def write(self, report: Report, *, seed: int, curves: Path) -> None:
        """Add all tables to a report."""
        for data in self._sets:
            self._record(report, data)
        tuning = {data.name: self._tuning(data) for data in self._sets if data.in_domain}
        dev = {
            name: joined([scored[name] for scored in tuning.values()])
            for name in (self._makers if tuning else ())
        }
        for published in figure_7():
            report.add_published(published)
        tables = PerplexityTables(report, self._models.vocabulary, dev, seed=seed, curves=curves)
        for data in self._sets:
            tables.add(data, self._test(data), tuning.get(data.name, {}))
        tables.write()
        self._restarts(report)

    def _test(self, data: TestSet) -> dict[str, Scored]:
        return {
            name: self._files.scored(data.name, name, make, data.test)
            for name, make in (self._makers | self._narrow).items()
            if name in self._makers or self._files.has(data.name, name)
        }

    def _tuning(self, data: TestSet) -> dict[str, Scored]:
        if not data.in_domain:
            return {}
        return {
            name: self._files.scored(f"{data.name}.dev", name, make, data.tuning)
            for name, make in self._makers.items()
        }

    def _record(self, report: Report, data: TestSet) -> None:
        """Record the files, and count test sentences that occur in the training text."""
        models = self._models
        yields = TreeSentences(models.training_trees)
        report.check_overlap(yields, data.test, name=f"{data.name}, trees", allow_overlap=True)
        if data.name in models.texts:
            training, held_out = models.texts[data.name]
            report.add_input(data.name, held_out, role="test")
            report.add_input(f"{data.name} of the {BIG}", training, role="train")
            report.check_overlap(
                TextCorpus((training,)),
                data.test,
                name=f"{data.name}, text of the {BIG}",
                allow_overlap=True,
            )

    def _restarts(self, report: Report) -> None:
        rows = []
        for name in (HHMM, *self._narrow):
            facts = [
                self._files.facts(data.name, name)
                for data in self._sets
                if self._files.has(data.name, name)
            ]
            if not facts:
                continue
            words, restarts = (sum(fact[place] for fact in facts) for place in (0, 2))
            rows.append((name, words, restarts, f"{1000 * restarts / words:.3f}"))
        columns = ("model", "words and ends", "restarts", "per thousand")
        report.add_table("Restarts of the HHMM", columns, rows)


def _narrowed(models: StudyModels, width: int) -> Callable[[], IncrementalModel]:
    return lambda: models.beam(width)
