"""The options on the pages of systems are those of their configurations."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.scripts import load_script

from treelm.models.registry import SYSTEMS

DOCS = Path(__file__).resolve().parents[2] / "docs"

GENERATOR = load_script(DOCS / "make_option_tables.py")


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
