"""The page of all cells is up to date, and every figure on it is that of the results it names."""

from __future__ import annotations

import importlib
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

CELLS = Path(__file__).resolve().parents[2] / "experiments" / "cells"
sys.path.append(str(CELLS))

catalogue: Any = importlib.import_module("paper_cells")
copied_tables: Any = importlib.import_module("copied_tables")
page: Any = importlib.import_module("cells_page")
report: Any = importlib.import_module("cells_report")

PAPERS = catalogue.read_papers()
CELLS_OF_PAPERS = [
    pytest.param(paper, table, cell, id=f"{paper.folder}-{table.name}-{cell.row}-{cell.column}")
    for paper in PAPERS
    for table in paper.tables
    for cell in table.cells.values()
]


def rows_of_page(heading: str, text: str) -> list[list[str]]:
    """Return the cells of the table that follows a heading."""
    section = text.partition(f"\n{heading}\n")[2]
    section = re.split(r"\n##+ ", section)[0]
    lines = [line for line in section.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def test_the_page_is_what_the_catalogue_makes() -> None:
    assert page.PAGE.read_text(encoding="utf-8") == page.page_text(PAPERS), (
        "run python experiments/cells/cells_page.py"
    )


def test_copied_results_are_those_of_the_tables() -> None:
    for path, text in copied_tables.copied_results().items():
        assert path.read_text(encoding="utf-8") == text, "run experiments/cells/copied_tables.py"


@pytest.mark.parametrize(("paper", "table", "cell"), CELLS_OF_PAPERS)
def test_every_cell_of_the_page_has_a_figure_of_the_results_or_a_reason(
    paper: Any, table: Any, cell: Any
) -> None:
    text = page.PAGE.read_text(encoding="utf-8")
    part = text.partition(f"\n## {paper.name}\n")[2].partition("\n## ")[0]
    rows = rows_of_page(f"### {table.name}: {table.title}", part)
    row = next(own for own in rows[2:] if own[0] == page._escaped(cell.row))
    if cell.state == catalogue.NOT_RUN:
        assert cell.reason is not None
        assert f"not run ({cell.reason.name})" in row
        assert f"| {cell.reason.name} | " in part
    for own in cell.ours:
        printed = row[rows[0].index(page._escaped(f"ours: {own.label}"))]
        numbers = [float(each.replace(",", "")) for each in re.findall(r"[-+]?[\d.,]+", printed)]
        stored = json.loads((CELLS.parent / own.place / "results.json").read_text("utf-8"))
        (result,) = (
            each
            for each in stored["results"]
            if (each["table"], each["model"], each["metric"], each["data"]) == own.source
        )
        wanted = [result["value"], *(result["interval"] or ())]
        assert numbers == pytest.approx(
            [own.scale * each for each in wanted], abs=0.5001 * 10**-own.digits
        )


def test_the_counts_of_the_page_add_up() -> None:
    rows = rows_of_page("## Tables, figures and claims of the papers", page.made_part(PAPERS))
    numbers = [list(map(int, row[1:])) for row in rows[2:]]
    assert [sum(column) for column in zip(*numbers[:-1], strict=True)] == numbers[-1]
    for cells, measured, with_interval, shown, not_run, claims, *verdicts in numbers:
        assert cells == measured + shown + not_run
        assert with_interval <= measured
        assert claims == sum(verdicts)
    assert numbers[-1][0] >= 242


def test_before_and_after_count_the_same_cells_and_claims() -> None:
    old, new = page.before(), catalogue.counts(PAPERS)
    cells = old["cells"]
    assert cells["measured"] + cells["shown"] + cells["not_run"] == sum(new.cells.values())
    assert sum(old["claims"].values()) == sum(new.claims.values())


def test_published_figures_are_those_of_the_recipes() -> None:
    found = {}
    for module, folder in (("treelet", "treelet"), ("lsvm", "lsvm")):
        source = (CELLS.parent / folder / "published.py").read_text(encoding="utf-8")
        exec(compile(source, module, "exec"), found.setdefault(module, {}))
    tables = {(paper.folder, table.name): table for paper in PAPERS for table in paper.tables}

    def published(paper: str, table: str, row: str, column: str) -> float:
        return float(tables[paper, table].cells[row, column].published.replace(",", ""))

    treelet, lsvm = found["treelet"], found["lsvm"]
    for model, value in treelet["PERPLEXITY"].items():
        assert published("treelet", "Table 2", model, "1B words") == value
    for column, values in (("BLLIP", treelet["TRIGRAM"]), ("1B words", treelet["TRIGRAM_LARGE"])):
        for model, value in values.items():
            assert published("treelet", "Table 4", model, column) == value
    for size, both in (("WSJ", treelet["NOISY"]), ("1B", treelet["NOISY_LARGE"])):
        for model, (pairs, alone) in both.items():
            assert published("treelet", "Table 5", model, f"pairs, {size}") == pairs
            assert published("treelet", "Table 5", model, f"independent, {size}") == alone
    for model, values in lsvm["TABLE_1"].items():
        names = ("average precision", "accuracy", "translations, pairs")
        assert [published("lsvm", "Table 1", model, name) for name in names] == list(values)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"missing": None}, "either measured"),
        ({"missing": "people", "shown": ["README.md"]}, "either measured"),
        ({"missing": None, "shown": ["no/such/file.md"]}, "does not exist"),
    ],
)
def test_a_cell_without_exactly_one_state_is_refused(
    change: dict[str, object], message: str
) -> None:
    row = {"name": "A", "published": [0.5], "missing": "people", **change}
    table = {"name": "Table 9", "title": "T", "columns": ["x"], "row": [row]}
    reasons = {"people": catalogue.Reason("people", "why", "needs")}
    with pytest.raises(ValueError, match=message):
        catalogue._table(table, reasons)


def test_a_reference_to_a_result_that_is_not_there_is_refused() -> None:
    claim = {
        "text": "It rains.",
        "where": "Section 1",
        "verdict": "confirmed",
        "finding": "{rain} mm",
        "figures": {
            "rain": {"results": "hhmm", "table": "T", "model": "M", "metric": "m", "data": "d"}
        },
    }
    with pytest.raises(ValueError, match="not in the results"):
        catalogue._claim(claim)
    with pytest.raises(ValueError, match="no verdict"):
        catalogue._claim({**claim, "verdict": "perhaps"})


def test_a_table_of_a_page_that_has_changed_is_noticed() -> None:
    rows = [["model", "x"], ["A", "not run"]]
    wanted = {"head": "model | x", "table": "T", "metric": "m", "data": "d", "columns": {"1": {}}}
    with pytest.raises(ValueError, match="no figure in column 1"):
        copied_tables.records_of(rows, wanted)


def test_scripts_say_whether_their_files_are_up_to_date() -> None:
    for script in ("cells_page.py", "copied_tables.py"):
        command = [sys.executable, str(CELLS / script), "--check"]
        assert subprocess.run(command).returncode == 0


@pytest.fixture(scope="module")
def html(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return the reproduction report."""
    path = tmp_path_factory.mktemp("report") / "new" / "reproduction.html"
    command = [sys.executable, str(CELLS / "cells_report.py"), "--output", str(path)]
    printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    assert printed.strip() == str(path)
    return path.read_text(encoding="utf-8")


def test_the_report_has_every_claim_with_its_verdict(html: str) -> None:
    for paper in PAPERS:
        for number, claim in enumerate(paper.claims):
            article = html.partition(f' id="{paper.folder}-{number}">')[2].partition("</article>")[
                0
            ]
            assert report.escape(claim.text) in article
            assert f">{claim.verdict}</span>" in article
            for own in claim.figures:
                assert own.text in article


def test_the_report_has_every_measured_figure_and_every_run(html: str) -> None:
    for paper in PAPERS:
        part = html.partition(f'<section id="{paper.folder}">')[2].partition("</section>")[0]
        for cell in paper.cells:
            for own in cell.ours:
                assert f'<td class="number">{catalogue.shown(own.value, own.digits)}' in part
            if cell.reason is not None:
                assert f"not run ({cell.reason.name})" in part
    for run in catalogue.read_runs():
        assert f"<summary>{run.results}: {len(catalogue.results_of(run.results))} figures" in html


def test_every_committed_result_is_in_the_list_of_runs() -> None:
    files = {
        path.parent.relative_to(CELLS.parent).as_posix()
        for path in CELLS.parent.rglob("results.json")
    }
    assert files == {run.results for run in catalogue.read_runs()}


def test_the_report_loads_and_runs_nothing(html: str) -> None:
    assert not re.search(r"<(script|img|link|iframe)|https?://(?!www\.w3\.org/2000/svg)", html)
    assert "default-src 'none'" in html
    links = set(re.findall(r'href="#([^"]+)"', html))
    assert links <= set(re.findall(r' id="([^"]+)"', html))
