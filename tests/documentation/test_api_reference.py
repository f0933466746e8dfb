"""The pages of the Python API are what the source says, and cover every system."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from tests.scripts import load_script

from treelm.models.registry import SYSTEMS

REPOSITORY = Path(__file__).resolve().parents[2]
REFERENCE = REPOSITORY / "docs" / "reference"


GENERATOR = load_script(REPOSITORY / "docs" / "make_api_reference.py")
PAGES: dict[Path, str] = GENERATOR.pages()


@pytest.mark.parametrize("page", PAGES, ids=str)
def test_committed_page_is_what_is_generated(page: Path) -> None:
    committed = REFERENCE / page
    assert committed.exists(), "run `make reference`"
    assert committed.read_text(encoding="utf-8") == PAGES[page], "run `make reference`"


def test_no_page_is_left_of_a_package_that_is_gone() -> None:
    found = {path.relative_to(REFERENCE) for path in (REFERENCE / "api").glob("*.md")}
    assert {Path("api.md"), *found} == set(PAGES)


@pytest.mark.parametrize("name", SYSTEMS)
def test_every_system_has_its_model_and_its_configuration_on_the_page(name: str) -> None:
    model = SYSTEMS[name].model_class
    page = PAGES[Path("api/systems.md")]
    assert f"## {model.__module__}\n" in page
    assert f"### {model.__name__}\n" in page
    assert f"### {model.config_class.__name__}\n" in page


def section(source: str) -> str:
    return "\n\n".join(GENERATOR._module("sample", ast.parse(source)))


def test_signatures_keep_defaults_and_kinds_of_arguments() -> None:
    text = section(
        'def f(a: int, /, b: str = "x", *, c: float = 0.5, **d: int) -> bool:\n    "Do."\n'
    )
    assert "f(a: int, /, b: str = 'x', *, c: float = 0.5, **d: int) -> bool" in text
    assert text.endswith("Do.")


def test_fields_of_configurations_show_default_bounds_and_meaning() -> None:
    text = section(
        'class C(Config):\n    "Options."\n'
        "    depth: int = Field(default=4, ge=1, le=6)\n"
        '    """How deep."""\n'
        "    _hidden: int = 1\n"
    )
    assert "- `depth: int = 4` (at least 1, at most 6): How deep." in text
    assert "hidden" not in text


def test_private_names_and_overloads_are_left_out() -> None:
    text = section(
        "def _f() -> None: ...\n"
        "class C:\n"
        "    @overload\n"
        "    def get(self, at: int) -> str: ...\n"
        "    def get(self, at: int | slice) -> str:\n"
        '        """Return one."""\n'
        "    def _private(self) -> None: ...\n"
        "    @property\n"
        "    def size(self) -> int:\n"
        '        """How many there are."""\n'
    )
    assert "_f" not in text
    assert text.count("get(") == 1
    assert "- `get(at: int | slice) -> str`: Return one." in text
    assert "- `size: int` (property): How many there are." in text
    assert "_private" not in text


def test_only_the_first_paragraph_is_shown_and_tags_are_escaped() -> None:
    text = section('def f() -> None:\n    """Skip <unk> and ``<s>``.\n\n    More.\n    """\n')
    assert "Skip &lt;unk> and `<s>`." in text
    assert "More" not in text
