"""The report of an experiment: collect everything, then write it once.

A report is a folder: ``run.json`` (options, seeds, versions, hashes), ``scores/`` (one table per
model), ``results.json`` (every number), ``tables.md`` and ``report.html`` for people. Two runs with
the same inputs and seeds give the same files, but for date and duration in ``run.json``.
"""

from __future__ import annotations

import os
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

from treelm.characters import visible
from treelm.corpus.files import Source
from treelm.corpus.score_files import ScoreTable, write_score_table
from treelm.corpus.words import Words
from treelm.errors import UsageError
from treelm.signature import signature
from treelm.tasks.judge.preference import Preference
from treelm.tasks.report.folder import (
    FORMAT,
    SCORES,
    VERSION,
    check_replaceable,
    file_name,
    json_text,
    write_folder,
    write_text,
)
from treelm.tasks.report.inputs import Input, InputRecord, Role, check_roles, record_input
from treelm.tasks.report.machine import machine
from treelm.tasks.report.page import Figure
from treelm.tasks.report.results import NOT_RUN, Published, Result, check_vocabularies
from treelm.tasks.report.sentences import (
    CommonSentences,
    Overlap,
    check_overlap,
    common_sentences,
    find_overlap,
)
from treelm.tasks.report.summary import Summary
from treelm.tasks.report.tables import TextTable
from treelm.version import versions

#: What options and facts may be: JSON values.
Plain = str | int | float | bool | None


class Report:
    """Collects what an experiment did and found; `write` writes it.

    Args:
        folder: Folder to write; it may not exist, be empty, or contain an older report.
        title: Title of the experiment.
        seeds: Seeds of everything random, by their purpose; at least one.
        options: Everything else that was chosen.
        recipe: Short name of the recipe, such as ``E-PPL``.

    Raises:
        UsageError: without a seed.
        OutputFileError: if the folder contains something else.
    """

    def __init__(
        self,
        folder: Source,
        title: str,
        *,
        seeds: Mapping[str, int],
        options: Mapping[str, Plain | Sequence[Plain]] | None = None,
        recipe: str | None = None,
    ) -> None:
        if not seeds:
            raise UsageError("a report needs the seeds of everything random.")
        self.folder = Path(folder)
        check_replaceable(Path(os.path.realpath(folder)))
        self.title = title
        self.recipe = recipe
        self._seeds = {name: int(seed) for name, seed in seeds.items()}
        self._options = dict(options or {})
        self._inputs: list[InputRecord] = []
        self._models: dict[str, dict[str, Plain]] = {}
        self._scores: dict[str, dict[str, ScoreTable]] = {}
        self._dropped: dict[str, dict[str, frozenset[str]]] = {}
        self._results: list[Result] = []
        self._published: list[Published] = []
        self._figures: list[Figure] = []
        self._tables: list[TextTable] = []
        self._overlaps: list[dict[str, object]] = []
        self._warnings: list[str] = []
        self._human: Preference | None = None
        self._started = time.monotonic()

    # -- what was used ----------------------------------------------------------------------

    def add_input(
        self, name: str, source: Input, *, role: Role = "other", stands_for: str | None = None
    ) -> None:
        """Record a file, a corpus or a text by its content.

        Args:
            name: What the experiment calls it.
            source: A file, a corpus, a text read from files, or a fingerprint.
            role: What it is for: train, tune, test or other.
            stands_for: Data of a publication that it replaces.

        Raises:
            UsageError: ``E_TEST_IN_TRAINING`` or ``E_TUNED_ON_TEST`` if test data are also used for
                training or tuning.
        """
        record = record_input(name, source, role=role, stands_for=stands_for)
        check_roles([*self._inputs, record])
        self._inputs.append(record)

    def add_model(self, name: str, **facts: Plain) -> None:
        """Record what a model is: system, order, vocabulary fingerprint, seconds of training."""
        self._models[name] = dict(facts)

    def check_overlap(
        self,
        training: Iterable[Words],
        test: Iterable[Words],
        *,
        name: str = "test",
        allow_overlap: bool = False,
    ) -> Overlap:
        """Count the test sentences that occur in the training text.

        Raises:
            CorpusFormatError: ``E_OVERLAP`` above 1 % of those of at least five words, unless that
                is allowed; the report then mentions it.
        """
        found = find_overlap(training, test)
        check_overlap(found, allow_overlap=allow_overlap)
        self._overlaps.append({"test": name, **found.to_record(), "allowed": allow_overlap})
        if not found.is_tolerable:
            self.warn(
                f"{name}: {found.telling_found} of {found.telling} test sentences of 5 or more "
                f"words ({found.share:.1%}) occur in the training text; the overlap was allowed."
            )
        return found

    def warn(self, message: str) -> None:
        """Record something that readers must know; it is shown at the top of the report."""
        self._warnings.append(message)

    # -- what was found ---------------------------------------------------------------------

    def add_scores(
        self, model: str, table: ScoreTable, *, data: str = "test", dropped: Collection[str] = ()
    ) -> None:
        """Record the scores of a model, to be written to ``scores/``.

        Args:
            model: Name of the model.
            table: Scores of all sentences that it did not drop.
            data: What was scored; models are compared on the same data only.
            dropped: Ids of the sentences that the model could not score. They are left out for all
                models. A score of minus infinity does not count as dropped.

        Raises:
            CorpusFormatError: ``E_SCORE_IDS`` or ``E_NAN``, see `common_sentences`.
            UsageError: if the table has no lengths.
        """
        if table.lengths is None:
            raise UsageError(f"{visible(model)}: a table of scores needs the lengths of sentences.")
        common_sentences({model: table}, {model: dropped})
        self._scores.setdefault(data, {})[model] = table
        self._dropped.setdefault(data, {})[model] = frozenset(dropped)

    def common_scores(self, data: str = "test") -> CommonSentences:
        """Return the scores so far of the sentences that no model dropped.

        Raises:
            CorpusFormatError: ``E_SCORE_IDS`` if models were given different sentences.
        """
        return common_sentences(self._scores.get(data, {}), self._dropped.get(data, {}))

    def add_result(self, result: Result) -> None:
        """Record a number that was measured."""
        self._results.append(result)

    def add_published(self, published: Published) -> None:
        """Record a published number, shown beside ours in its own column."""
        self._published.append(published)

    def add_figure(self, svg: str, caption: str) -> None:
        """Record a picture, made by `treelm.view.plots` or `treelm.view.svg`."""
        self._figures.append(Figure(svg, caption))

    def add_table(
        self, title: str, columns: Sequence[str], rows: Iterable[Sequence[object]]
    ) -> None:
        """Record a table of anything else: examples, counts, single sentences."""
        cells = tuple(tuple(str(cell) for cell in row) for row in rows)
        self._tables.append(TextTable(title, tuple(columns), cells))

    def set_human_preference(self, preference: Preference) -> None:
        """Record what people preferred; without it the report says that none were asked."""
        self._human = preference

    # -- writing ----------------------------------------------------------------------------

    @property
    def signature(self) -> str:
        """One line that says what made the numbers."""
        hashes = {
            role: "+".join(one.sha256[:6] for one in self._inputs if one.role == role) or None
            for role in ("train", "tune", "test")
        }
        return signature(task="report", recipe=self.recipe, **hashes)

    @property
    def human_preference(self) -> str:
        """The line on human preference that every report has."""
        return f"human preference: {NOT_RUN if self._human is None else self._human.summary}"

    def write(self) -> Path:
        """Write the report, complete or not at all, and return its folder.

        Raises:
            CorpusFormatError: ``E_SCORE_IDS`` if models were given different sentences.
            VocabularyError: ``E_VOCABULARY_MISMATCH``, see `check_vocabularies`.
            OutputFileError: if the folder cannot be written.
        """
        common = {data: self.common_scores(data) for data in self._scores}
        check_vocabularies(
            self._results, {name: facts.get("vocabulary") for name, facts in self._models.items()}
        )
        warnings = list(self._warnings)
        if any(not number.checked for number in self._published):
            warnings.append("Some published numbers (†) were not checked against the publication.")
        score_files = self._score_files()
        results = self._results_record(common, score_files, warnings)
        summary = self._summary(warnings)

        def fill(folder: Path) -> None:
            (folder / SCORES).mkdir()
            for (data, model), name in score_files.items():
                write_score_table(folder / name, common[data].tables[model])
            write_text(folder / "results.json", json_text(results))
            write_text(folder / "tables.md", summary.to_markdown())
            write_text(folder / "report.html", summary.to_html())

        def run(files: Mapping[str, str]) -> str:
            return json_text(self._run_record(files))

        write_folder(self.folder, fill, run)
        return self.folder

    def _score_files(self) -> dict[tuple[str, str], str]:
        names: dict[tuple[str, str], str] = {}
        taken: list[str] = []
        for data, tables in self._scores.items():
            for model in tables:
                stem = file_name(model if data == "test" else f"{model}.{data}", taken)
                taken.append(stem)
                names[data, model] = f"{SCORES}/{stem}.tsv"
        return names

    def _results_record(
        self,
        common: Mapping[str, CommonSentences],
        files: Mapping[tuple[str, str], str],
        warnings: Sequence[str],
    ) -> dict[str, object]:
        return {
            "format": FORMAT,
            "version": VERSION,
            "title": self.title,
            "recipe": self.recipe,
            "signature": self.signature,
            "results": [result.to_record() for result in self._results],
            "published": [number.to_record() for number in self._published],
            "human_preference": NOT_RUN if self._human is None else self._human.to_record(),
            "scores": [
                {
                    "data": data,
                    "model": model,
                    "file": files[data, model],
                    "sentences": len(table),
                    "dropped": found.dropped[model],
                    "left_out": len(found.left_out),
                    "fallback": None if table.fallback is None else int(table.fallback.sum()),
                    "without_tree": None
                    if table.n_trees is None
                    else int((table.n_trees == 0).sum()),
                    "impossible": int((table.scores == -float("inf")).sum()),
                }
                for data, found in common.items()
                for model, table in found.tables.items()
            ],
            "overlap": self._overlaps,
            "warnings": list(warnings),
        }

    def _summary(self, warnings: Sequence[str]) -> Summary:
        models = {
            name: ", ".join(f"{key} {value}" for key, value in facts.items()) or "-"
            for name, facts in self._models.items()
        }
        overlaps = {
            str(found["test"]): f"{found['found']} of {found['sentences']} sentences"
            for found in self._overlaps
        }
        return Summary(
            title=self.title,
            signature=self.signature,
            human=self.human_preference,
            warnings=warnings,
            results=self._results,
            published=self._published,
            tables=self._tables,
            figures=self._figures,
            inputs=self._inputs,
            facts={
                "Test sentences found in the training text": overlaps,
                "Models": models,
                "Seeds": self._seeds,
                "Options": self._options,
                "Versions": versions(),
            },
        )

    def _run_record(self, files: Mapping[str, str]) -> dict[str, object]:
        return {
            "format": FORMAT,
            "version": VERSION,
            "title": self.title,
            "recipe": self.recipe,
            "date": datetime.now(UTC).isoformat(timespec="seconds"),
            "seconds": round(time.monotonic() - self._started, 3),
            "options": self._options,
            "seeds": self._seeds,
            "versions": versions(),
            "machine": machine(),
            "inputs": [record.to_record() for record in self._inputs],
            "models": [{"name": name, **facts} for name, facts in self._models.items()],
            "files": dict(files),
        }
