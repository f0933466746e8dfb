"""Every command with what it needs to be called, found in the program itself.

New commands and options are found here without being named.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from cyclopts import Argument

from treelm.cli.main import app
from treelm.cli.reference import arguments_of, commands_of, value_type

#: A file that does not exist: a command that accepts its options ends there.
MISSING = "no-such-file"
#: How many missing files stand before the options of commands that need none.
_FILES = {("evaluate", "pairs"): 2}


#: Commands whose output is a picture, and named so.
DRAWING = frozenset({"demo"})


class Call(NamedTuple):
    """A command and the arguments without which it cannot be called."""

    words: tuple[str, ...]
    arguments: tuple[Argument, ...]

    def line(self, output: str, *, without: Argument | None = None) -> list[str]:
        """Return the words of a call that ends at a missing file.

        Args:
            output: What is written.
            without: An argument that is given otherwise.
        """
        found = list(self.words)
        if self.words[0] in DRAWING:
            output += ".svg"
        given = None if without is None else without.name
        positional = [each for each in self.arguments if each.index is not None]
        found += [
            output if is_written(argument) else MISSING
            for argument in positional
            if argument.required and argument is not without
        ]
        for argument in self.arguments:
            if argument.index is not None or argument is without:
                continue
            if argument.required:
                found += [argument.name, _value(argument, output)]
            elif is_written(argument) and argument.name == "--output":
                found += [argument.name, output]
        names = [each.name for each in self.arguments]
        if not positional:
            sources = ("--trees", "--text", "--n-best-lists")
            source = next((name for name in sources if name in names), None)
            if source is not None and source != given and source not in found:
                found += [source, MISSING]
        if "--model" in names and "--model" not in found:
            found += ["--model", MISSING]
        if not positional or positional[0].required:
            return found
        files = [MISSING] * _FILES.get(self.words, 1)
        return [*self.words, *files, *found[len(self.words) :]]


def every_call() -> Iterator[Call]:
    """Yield every command of the program that does something."""
    for command in commands_of(("treelm",), app):
        if command.app.default_command is not None and len(command.words) > 1:
            yield Call(command.words[1:], tuple(arguments_of(command.app)))


def is_numeric(argument: Argument) -> bool:
    """Return whether the values of an argument are numbers."""
    return value_type(argument.hint) in (int, float)


def is_written(argument: Argument) -> bool:
    """Return whether an argument names what is written."""
    return "to write" in (argument.parameter.help or "")


def _value(argument: Argument, output: str) -> str:
    choices = argument.get_choices()
    if choices:
        return choices[0]
    if is_numeric(argument):
        return "1"
    return output if is_written(argument) else MISSING
