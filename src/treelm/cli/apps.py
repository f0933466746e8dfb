"""How the program and its groups of commands read their options."""

from __future__ import annotations

from cyclopts import App, Parameter


def shown_default(value: object) -> str:
    """Return a default as help shows it."""
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, list | tuple | set | frozenset):
        return " ".join(map(str, value)) or "none"
    return str(value)


#: What holds for all options: no ``--no-x`` unless it is asked for, all values up to the next one.
DEFAULTS = Parameter(negative=(), consume_multiple=True, show_default=shown_default)


def command_group(name: str, sentence: str, example: str) -> App:
    """Return the app of a command that has commands of its own.

    Args:
        name: The word that calls it.
        sentence: What it is about.
        example: How it is called.
    """
    return App(
        name=name,
        help=sentence,
        help_epilogue=example_line(example),
        default_parameter=DEFAULTS,
        version_flags=[],
    )


def example_line(example: str) -> str:
    """Return how help ends."""
    return f"Example: `{example}`"
