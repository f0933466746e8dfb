"""Ready-made models of other packages, found by name.

A package such as treelm-en names its models under the entry point ``treelm.models``: the name of a
model, and the module in whose folder the model folder of that name lies. Nothing of the package is
run, and models are checked like any other folder.
"""

from __future__ import annotations

import functools
import importlib.util
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from treelm.characters import visible
from treelm.errors import ModelFileError, UsageError, spelled

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

    from treelm.models.interface.model import Task

#: Where packages name their models.
ENTRY_POINT = "treelm.models"
#: The package whose models are named where none is installed.
USUAL_PACKAGE = "treelm-en"


@dataclass(frozen=True, slots=True, order=True)
class ReadyModel:
    """A model that came with an installed package.

    Args:
        name: Its name, such as ``en-parser``.
        folder: Its model folder.
        package: The distribution that brought it.
        version: The version of that.
    """

    name: str
    folder: Path
    package: str
    version: str

    @property
    def size(self) -> int:
        """Bytes of its files."""
        return sum(file.stat().st_size for file in self.folder.rglob("*") if file.is_file())


@functools.cache
def ready_models() -> Mapping[str, ReadyModel]:
    """Return the models of all installed packages by name, in the order of names."""
    from importlib.metadata import entry_points

    found = [model for entry in entry_points(group=ENTRY_POINT) if (model := _model_of(entry))]
    return {model.name: model for model in sorted(found)}


def _model_of(entry: EntryPoint) -> ReadyModel | None:
    """Return the model that an entry point names; None if its package is only half there."""
    try:
        spec = importlib.util.find_spec(entry.module)
    except (ImportError, ValueError):
        return None
    places = () if spec is None else spec.submodule_search_locations or ()
    folder = next((path for place in places if (path := Path(place, entry.name)).is_dir()), None)
    if folder is None or entry.dist is None:
        return None
    return ReadyModel(entry.name, folder, entry.dist.name, entry.dist.version)


def model_folder(name: str | os.PathLike[str]) -> Path:
    """Return the folder that is meant: the path itself if it exists, else a ready model's.

    Raises:
        ModelFileError: ``E_NO_READY_MODEL`` if a name without a folder is that of no ready model.
    """
    path = Path(name)
    plain = os.fspath(name)
    if os.sep in plain or not _is_name(plain) or path.exists():
        return path
    found = ready_models()
    if plain in found:
        return found[plain].folder
    installed = f"Installed: {', '.join(found)}." if found else _none_installed()
    raise ModelFileError(
        f'there is no folder "{visible(plain)}" here, and no ready model of that name. {installed}',
        code="E_NO_READY_MODEL",
    )


def _is_name(name: str) -> bool:
    """Return whether something could be the name of a ready model, which begin with a language."""
    language, hyphen, rest = name.partition("-")
    return bool(hyphen and rest) and 2 <= len(language) <= 3 and language.isalpha()


def usual_model(task: Task) -> Path:
    """Return the folder of the ready model that is used for a task where none is named.

    It is told by its name, so that nothing is loaded twice: ``en-parser`` parses. English comes
    first, and the rest is in the order of names.

    Raises:
        UsageError: if no model is installed whose name says that it does the task.
    """
    found = _usual_model(task.value)
    if found is not None:
        return found.folder
    which = spelled(command_line="with --model or -m", python="as a folder or a loaded model")
    raise UsageError(f"name a model, {which}: no ready one does this. {_none_installed()}")


def usual_models() -> list[ReadyModel]:
    """Return the ready models that are used where none is named, in the order of names.

    All of them, if none has a name that says what it is for.
    """
    found = {model for task in _USUAL if (model := _usual_model(task)) is not None}
    return sorted(found) or list(ready_models().values())


def _usual_model(task: str) -> ReadyModel | None:
    found = sorted(ready_models().values(), key=lambda each: not each.name.startswith("en-"))
    for kind in _USUAL.get(task, ()):
        for model in found:
            if model.name.partition("-")[2] == kind:
                return model
    return None


#: Which ready models do a task, by the second part of their names, the first first.
_USUAL = {
    "parse": ("parser",),
    "surprisal": ("hhmm", "ngram"),
    "score": ("ngram", "treelet"),
    "classify": ("judge",),
}


def _none_installed() -> str:
    return (
        f"Ready models come with packages such as {USUAL_PACKAGE}: `pip install {USUAL_PACKAGE}`."
    )
