"""The options on the pages of systems are those of their configurations."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

from treelm.models.registry import SYSTEMS

DOCS = Path(__file__).resolve().parents[2] / "docs"


def load_generator() -> ModuleType:
    spec = importlib.util.spec_from_file_location("option_tables", DOCS / "make_option_tables.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


GENERATOR = load_generator()


@pytest.mark.parametrize("name", SYSTEMS)
def test_page_has_the_options_of_its_system(name: str) -> None:
    system = SYSTEMS[name]
    page = GENERATOR.page_of(system).read_text(encoding="utf-8")
    assert page.count(GENERATOR.START) == 1
    assert GENERATOR.with_table(page, system) == page, "run `make reference`"


def test_tables_say_defaults_and_bounds() -> None:
    table = GENERATOR.table(SYSTEMS["hhmm"])
    assert "| `depth` | `4` |" in table
    assert "(At least 1 and at most 6.)" in table
    assert "| `seed` | required |" in GENERATOR.table(SYSTEMS["pcfg_la"])
