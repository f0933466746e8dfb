"""The readable part of a report: the same content as Markdown and as an HTML page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from treelm.tasks.report.inputs import InputRecord
from treelm.tasks.report.page import Figure, Section, html_page
from treelm.tasks.report.results import Published, Result
from treelm.tasks.report.tables import (
    TextTable,
    markdown_table,
    markdown_text,
    notes,
    result_tables,
)

#: Digits of a hash that people compare; run.json has all.
_SHOWN_HASH = 12


@dataclass(frozen=True, kw_only=True)
class Summary:
    """Everything shown to people.

    Args:
        title: Title of the report.
        signature: What made the numbers.
        human: The line on human preference.
        warnings: What readers must know first.
        results: Our numbers.
        published: Published numbers.
        tables: Other tables.
        figures: Pictures; Markdown has none.
        inputs: What was read.
        facts: Tables of a name and a value, such as seeds and options, by title.
    """

    title: str
    signature: str
    human: str
    warnings: Sequence[str]
    results: Sequence[Result]
    published: Sequence[Published]
    tables: Sequence[TextTable]
    figures: Sequence[Figure]
    inputs: Sequence[InputRecord]
    facts: Mapping[str, Mapping[str, object]]

    def to_markdown(self) -> str:
        """Return the tables as Markdown."""
        parts = [f"# {markdown_text(self.title)}", ""]
        for warning in self.warnings:
            parts += [f"**Warning:** {markdown_text(warning)}", ""]
        parts += map(markdown_table, result_tables(self.results, self.published))
        for note in notes(self.published):
            parts += [markdown_text(note), ""]
        parts += [markdown_text(self.human), ""]
        parts += map(markdown_table, self.tables)
        if self.inputs:
            parts.append(markdown_table(self._input_table()))
        parts += [f"`{self.signature.replace('`', '')}`", ""]
        return "\n".join(parts)

    def to_html(self) -> str:
        """Return the page."""
        results = Section(
            "Results",
            warnings=self.warnings,
            tables=result_tables(self.results, self.published),
            human=self.human,
            notes=notes(self.published),
        )
        inputs = [self._input_table()] if self.inputs else []
        facts = [
            TextTable(title, ("name", "content"), tuple((k, str(v)) for k, v in values.items()))
            for title, values in self.facts.items()
            if values
        ]
        return html_page(
            self.title,
            self.signature,
            [
                results,
                Section("Figures", figures=self.figures),
                Section("Details", tables=self.tables),
                Section("How it was made", tables=[*inputs, *facts]),
            ],
        )

    def _input_table(self) -> TextTable:
        return TextTable(
            "Inputs",
            ("name", "role", "files", "sentences", "tokens", "stands for", "sha-256"),
            tuple(
                (
                    record.name,
                    record.role,
                    " ".join(record.files) or "-",
                    _count(record.sentences),
                    _count(record.tokens),
                    record.stands_for or "-",
                    record.sha256[:_SHOWN_HASH],
                )
                for record in self.inputs
            ),
        )


def _count(number: int | None) -> str:
    return "-" if number is None else str(number)
