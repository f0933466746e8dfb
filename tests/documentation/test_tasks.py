"""The list of tasks names commands, options and calls that exist."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

import pytest
from tests.documentation.test_documentation import COMMANDS, command_options

from treelm.cli.main import app

PAGE = Path(__file__).resolve().parents[2] / "docs" / "start" / "tasks.md"
_LINK = re.compile(r"\[[^\]]+\]\([^)]+\)")


def task_rows() -> list[tuple[str, str, str]]:
    """Return the rows of all tables: task, command or call, page."""
    rows = []
    for line in PAGE.read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in line.split("|")[1:-1]]
        if len(cells) == 3 and cells[0] != "task" and not cells[0].startswith("---"):
            rows.append((cells[0], cells[1].strip("`"), cells[2]))
    return rows


ROWS = task_rows()
_CALLS = [call for _, call, _ in ROWS if call.startswith("treelm.")]
_COMMANDS = [call for _, call, _ in ROWS if call.startswith("treelm ")]


def test_tasks_are_many_and_each_has_a_page() -> None:
    assert len(ROWS) >= 50
    assert len({task for task, _, _ in ROWS}) == len(ROWS)
    assert all(_LINK.fullmatch(page) for _, _, page in ROWS)
    assert all(call in {*_CALLS, *_COMMANDS, ""} for _, call, _ in ROWS)


@pytest.mark.parametrize("command", _COMMANDS)
def test_task_names_a_command_and_options_that_exist(command: str) -> None:
    words = command.split()
    typed = {word for word in words if word.startswith("-")}
    if words[1] == "COMMAND":
        assert typed <= {"--help", "--traceback"}
        return
    name = " ".join(words[:3]) if " ".join(words[:3]) in COMMANDS else " ".join(words[:2])
    assert name in COMMANDS
    assert typed <= command_options(COMMANDS[name])


def test_every_command_is_named_by_a_task() -> None:
    named = {command.split()[1] for command in _COMMANDS}
    missing = {name for name in app if not name.startswith("-")} - named
    assert missing == {"score", "vocabulary"}, "both are steps of tasks, not tasks"


@pytest.mark.parametrize("call", _CALLS)
def test_task_names_a_call_that_exists(call: str) -> None:
    module, _, name = call.rpartition(".")
    try:
        importlib.import_module(call)
    except ModuleNotFoundError:
        assert hasattr(importlib.import_module(module), name)
