"""Every error treelm raises on purpose: a family, a stable code, and a message that helps.

A message states the fact with its place, then the likely cause, then the next step. Tests and
callers compare `code`, never prose.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import ClassVar


class _Surface:
    """Who reads the messages: people at a command line, or in Python."""

    is_command_line: ClassVar[bool] = False


@contextmanager
def on_command_line() -> Iterator[None]:
    """Make messages name options as the command line spells them."""
    before = _Surface.is_command_line
    _Surface.is_command_line = True
    try:
        yield
    finally:
        _Surface.is_command_line = before


def option(name: str, value: str | None = None) -> str:
    """Return an option as whoever reads the message spells it.

    Args:
        name: Its name in Python.
        value: The value to give, if it is known.

    Examples:
        >>> option("held_out"), option("lexicon", "closed")
        ('held_out', 'lexicon="closed"')
        >>> with on_command_line():
        ...     option("held_out"), option("lexicon", "closed")
        ('--held-out', '--lexicon closed')
    """
    dashed = f"--{name.replace('_', '-')}"
    return spelled(
        command_line=f"{dashed} {value}" if value else dashed,
        python=f'{name}="{value}"' if value else name,
    )


def flag(name: str) -> str:
    """Return an option without a value as whoever reads the message spells it.

    Examples:
        >>> flag("resume")
        'resume=True'
        >>> with on_command_line():
        ...     flag("resume")
        '--resume'
    """
    return spelled(command_line=option(name), python=f"{name}=True")


def spelled(*, command_line: str, python: str) -> str:
    """Return the one of two ways to say what to do that whoever reads the message can follow."""
    return command_line if _Surface.is_command_line else python


class TreelmError(Exception):
    """Base of all errors raised by treelm.

    Args:
        message: What happened and where, why it usually happens, what to do.
        code: Stable identifier such as ``E_UNBALANCED``.
    """

    default_code: ClassVar[str] = "E_FAILED"
    exit_code: ClassVar[int] = 1

    def __init__(self, message: str, *, code: str | None = None) -> None:
        super().__init__(message)
        self.code = code or self.default_code


class CorpusFormatError(TreelmError):
    """Input that is malformed: brackets, text encoding, documents, score tables.

    Args:
        message: What happened.
        code: Stable identifier.
        path: Name of the file, or None when the input has no name.
        line: Line of the error, counted from 1.
        column: Byte column of the error in that line, counted from 1.
        tree: Ordinal of the tree in its file, counted from 1.
    """

    default_code = "E_FORMAT"
    exit_code = 3

    def __init__(
        self,
        message: str,
        *,
        code: str | None = None,
        path: str | None = None,
        line: int | None = None,
        column: int | None = None,
        tree: int | None = None,
    ) -> None:
        super().__init__(message, code=code)
        self.path = path
        self.line = line
        self.column = column
        self.tree = tree


class InputFileError(TreelmError):
    """An input that is missing, unreadable, or vanished while it was read."""

    default_code = "E_INPUT"
    exit_code = 3


class OutputFileError(TreelmError):
    """An output that cannot be written; what was there before is unchanged."""

    default_code = "E_OUTPUT"


class ProfileError(TreelmError):
    """A language profile that does not exist or is not valid."""

    default_code = "E_PROFILE"
    exit_code = 3


class UsageError(TreelmError):
    """Options that contradict each other or name something that does not exist."""

    default_code = "E_USAGE"
    exit_code = 2


class ModelFileError(TreelmError):
    """A model folder that is missing, damaged, forged, or of another version."""

    default_code = "E_MODEL_FILE"
    exit_code = 3


class VocabularyError(TreelmError):
    """Words or vocabularies that do not fit together."""

    default_code = "E_VOCABULARY"


class UnsupportedTask(TreelmError):
    """A task that a system declares it cannot do."""

    default_code = "E_UNSUPPORTED_TASK"
    exit_code = 2


class EstimationError(TreelmError):
    """Counts from which no probabilities can be estimated."""

    default_code = "E_ESTIMATION"


class EngineError(TreelmError):
    """A kernel, worker or cluster that failed to do its work."""

    default_code = "E_ENGINE"


class MissingExtra(TreelmError):
    """A feature whose optional package is not installed."""

    default_code = "E_MISSING_EXTRA"


class TreelmWarning(UserWarning):
    """Something the user should know although the work continues."""
