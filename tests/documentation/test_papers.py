"""The page about the papers names files, folders and commands that exist, and models cite what it lists."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tests.documentation.test_documentation import COMMANDS, command_options

from treelm.models.registry import SYSTEMS

REPOSITORY = Path(__file__).resolve().parents[2]
PAGE = (REPOSITORY / "docs" / "reference" / "papers.md").read_text(encoding="utf-8")
_QUOTED = re.findall(r"`([^`]+)`", PAGE)

PATHS = sorted({quoted for quoted in _QUOTED if "/" in quoted and " " not in quoted})
TYPED = sorted({quoted for quoted in _QUOTED if quoted.startswith("treelm ")})

#: Years of the papers of the page, and the headings of their tables.
_PAPERS = {
    "Pauls and Klein (2012)": "Treelets",
    "Schwartz et al. (2011)": "Incremental syntactic language models",
    "Tan et al. (2011)": "Composite models",
    "Cherry and Quirk (2008)": "Latent support vector machines",
}


@pytest.mark.parametrize("path", PATHS)
def test_the_page_names_files_that_exist(path: str) -> None:
    assert path.partition("/")[0] in {"src", "native", "tests", "experiments", "benchmarks"}
    assert (REPOSITORY / path).exists()


@pytest.mark.parametrize("command", TYPED)
def test_the_page_names_commands_and_options_that_exist(command: str) -> None:
    words = command.split()
    name = " ".join(words[:3]) if " ".join(words[:3]) in COMMANDS else " ".join(words[:2])
    assert name in COMMANDS
    options = {word for word in words if word.startswith("-")}
    assert options <= command_options(COMMANDS[name])


@pytest.mark.parametrize("heading", _PAPERS.values())
def test_every_row_has_code_a_command_and_a_check(heading: str) -> None:
    section = PAGE.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    rows = [line for line in section.splitlines() if line.startswith("| ")][1:]
    assert len(rows) >= 10
    for row in rows:
        place, _, code, command, check = (cell.strip() for cell in row.split("|")[1:-1])
        assert re.match(r"Section|Figure|Table|Equation", place)
        assert re.match(r"`(src|native|experiments)/", code)
        assert command.startswith("`treelm ")
        assert re.match(r"`(tests|experiments|benchmarks)/", check)


def references() -> dict[str, str]:
    """Return where the equations of a system are, as `--explain` says, by its name."""
    found = {}
    for name, system in SYSTEMS.items():
        for attribute in ("tree_reference", "score_reference"):
            if reference := getattr(system.model_class, attribute, None):
                found[name] = reference
    return found


def test_explanations_cite_places_that_the_page_lists() -> None:
    cited = 0
    begins = re.compile("(?=" + "|".join(map(re.escape, _PAPERS)) + ")")
    for reference in references().values():
        for part in begins.split(reference):
            paper = next((name for name in _PAPERS if part.startswith(name)), None)
            if paper is None:
                continue
            section = PAGE.partition(f"\n## {_PAPERS[paper]}\n")[2].partition("\n## ")[0]
            listed = set(re.findall(r"\b\d+(?:\.\d+)*", re.sub(r"`[^`]*`", "", section)))
            numbers = re.findall(r"\b\d+(?:\.\d+)*", re.sub(r"\(\d{4}\)", "", part))
            cited += len(numbers)
            assert set(numbers) <= listed, reference
    assert cited >= 10


def test_every_system_says_where_its_equations_are() -> None:
    # Two explain no score step by step: one is a mean, the other has the scores of its parser.
    missing = set(SYSTEMS) - {"interpolated_sentences", "tree_ranker"} - set(references())
    assert not missing
    assert not [name for name, cited in references().items() if "docs/systems/" not in cited]
