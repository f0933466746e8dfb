"""What ready-made models are installed, and what their cards say of them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from treelm.errors import ModelFileError
from treelm.models.ready import ReadyModel, ready_models
from treelm.models.registry import load
from treelm.store.manifest import README

#: A longer card is not read.
_LONGEST_CARD = 1 << 20
_LINE = "---"


@dataclass(frozen=True, slots=True, kw_only=True)
class InstalledModel:
    """A ready model, as lists show it.

    Args:
        name: Its name.
        package: The distribution that brought it, with its version.
        system: Its system.
        tasks: What it can do.
        megabytes: Size of its files.
        tokenizer: How it tokenizes raw text; None if it takes tokenized text.
        license: The licence under which it is passed on, if its card names one.
        scores: What it was measured with, by name, if its card says so.
        problem: Why it cannot be loaded; None if it can.
    """

    name: str
    package: str
    system: str | None
    tasks: tuple[str, ...]
    megabytes: float
    tokenizer: str | None
    license: str | None
    scores: Mapping[str, object]
    problem: str | None


def installed_models() -> list[InstalledModel]:
    """Return the ready models of all installed packages, in the order of their names."""
    return [_described(model) for model in ready_models().values()]


def _described(ready: ReadyModel) -> InstalledModel:
    head = card_head(ready.folder)
    license_, scores = head.get("license"), head.get("scores")
    try:
        model, problem = load(ready.folder), None
    except ModelFileError as error:
        model, problem = None, str(error)
    return InstalledModel(
        name=ready.name,
        package=f"{ready.package} {ready.version}",
        system=None if model is None else model.system,
        tasks=() if model is None else tuple(task.value for task in model.abilities),
        megabytes=round(ready.size / 1e6, 2),
        tokenizer=None if model is None else model.tokenizer,
        license=license_ if isinstance(license_, str) else None,
        scores=scores if isinstance(scores, dict) else {},
        problem=problem,
    )


def card_head(folder: Path) -> dict[str, object]:
    """Return what the head of a card says, as `treelm card` writes it: a line of JSON for each key.

    Lines of other cards, which hubs read as YAML, are passed over.
    """
    try:
        with (folder / README).open(encoding="utf-8", errors="replace") as file:
            lines = file.read(_LONGEST_CARD).splitlines()
    except OSError:
        return {}
    if not lines or lines[0] != _LINE or _LINE not in lines[1:]:
        return {}
    found: dict[str, object] = {}
    for line in lines[1 : lines.index(_LINE, 1)]:
        key, colon, value = line.partition(": ")
        try:
            found[key] = json.loads(value) if colon else None
        except (ValueError, RecursionError):
            continue
    return found
