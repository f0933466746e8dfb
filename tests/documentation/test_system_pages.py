"""Every system has a page of the same shape, which the index links, and the index says what it can do."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tests.documentation.test_documentation import sections

from treelm.cli.main import app
from treelm.models.interface.model import Task
from treelm.models.registry import SYSTEMS

DOCS = Path(__file__).resolve().parents[2] / "docs"

#: Names on the command line that train a system of another name.
_TRAINED_AS = {"slm": "composite"}

#: Names of systems as they are typed: those of the registry, and what can be trained.
NAMES = sorted(
    {name.replace("_", "-") for name in SYSTEMS}
    | {name for name in app["train"] if not name.startswith("-")}
)


def index_rows() -> dict[str, dict[str, str]]:
    """Return the rows of the table of systems, by name, each by the heading of its column."""
    text = (DOCS / "index.md").read_text(encoding="utf-8")
    section = text.partition("\n## Systems\n")[2].partition("\n## ")[0]
    lines = [line for line in section.splitlines() if line.startswith("|")]
    heading, _, *rows = ([cell.strip() for cell in line.split("|")[1:-1]] for line in lines)
    return {row[0].strip("`"): dict(zip(heading, row, strict=True)) for row in rows}


def test_index_lists_the_systems_there_are_and_no_other() -> None:
    assert sorted(index_rows()) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_system_has_a_page_that_the_index_links(name: str) -> None:
    page = DOCS / "systems" / f"{name}.md"
    assert page.exists()
    assert f"](systems/{name}.md)" in index_rows()[name]["page"]
    text = page.read_text(encoding="utf-8")
    command = "interpolated" if name == "interpolated-sentences" else name
    assert f"treelm train {command}" in text
    assert "```python" in text


@pytest.mark.parametrize("name", NAMES)
def test_index_says_what_a_system_can_do(name: str) -> None:
    tasks = SYSTEMS[_TRAINED_AS.get(name, name).replace("-", "_")].model_class.tasks
    row = index_rows()[name]
    for task in Task:
        # A margin is no log probability, and perplexity goes with scores.
        if task is Task.PERPLEXITY or (task is Task.SCORE and Task.CLASSIFY in tasks):
            continue
        assert row[task.value] == ("yes" if task in tasks else ""), task


#: What every page says, in this order; other sections may stand between.
SHAPE = ["The idea", "Equations", "What is counted", "Cost", "Limits", "Figures"]

#: Where figures come from.
_SOURCE = re.compile(
    r"\]\((?:https://github\.com/treelm/treelm/tree/main/experiments/"
    r"|\.\./benchmarks|\.\./how-to/parser-accuracy)"
)


@pytest.mark.parametrize("name", NAMES)
def test_system_page_has_the_shape_of_all(name: str) -> None:
    text = (DOCS / "systems" / f"{name}.md").read_text(encoding="utf-8")
    found = sections(re.sub(r"^### .*$", "", text, flags=re.MULTILINE))
    assert [title for title in found if title in SHAPE] == SHAPE
    assert all(found[title].strip() for title in SHAPE)
    assert re.search(rf"!\[[^]]{{20,}}\]\(\.\./pictures/{name}\.svg\)", found["The idea"])
    assert _SOURCE.search(found["Figures"]), "figures need a link to where they come from"


def test_every_page_of_a_system_is_about_one() -> None:
    assert sorted(path.stem for path in (DOCS / "systems").glob("*.md")) == NAMES


def test_index_rows_reads_a_cell_by_its_heading() -> None:
    row = index_rows()["ngram"]
    assert row["learns from"] == "text"
    assert re.fullmatch(r"\[.+\]\(systems/ngram\.md\)", row["page"])
