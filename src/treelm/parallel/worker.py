"""What a worker does: the same in a process of this machine and on a node of a cluster."""

from __future__ import annotations

import functools
import hashlib
import pickle  # nosec B403 (what is unpacked comes from the process that gives the work)
import time
import traceback
import warnings
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any, Generic, NamedTuple, TypeVar

from treelm import _native
from treelm.errors import EngineError, on_command_line, spelled
from treelm.parallel.metrics import ShardUse, own_name, peak_bytes

S = TypeVar("S")
R = TypeVar("R")


class Build(NamedTuple):
    """Which treelm runs somewhere. Two of them need not give the same results."""

    version: str
    native: str
    """Hash of the file of the native core."""

    def __str__(self) -> str:
        return f"treelm {self.version} (native core {self.native[:12]})"


@functools.cache
def own_build() -> Build:
    """Return which treelm runs here."""
    from treelm.version import __version__

    with Path(_native.__file__).open("rb") as file:
        return Build(__version__, hashlib.file_digest(file, "sha256").hexdigest())


class Outcome(NamedTuple, Generic[R]):
    """What became of a shard."""

    value: R | None
    error: Exception | None
    warnings: Sequence[Warning]
    use: ShardUse


def packed(function: Callable[..., R]) -> bytes:
    """Return a function as it is sent to workers, with what they have to agree on."""
    is_command_line = bool(spelled(command_line="yes", python=""))
    # The function is unpacked only where it is known what it will find.
    return pickle.dumps((tuple(own_build()), is_command_line, pickle.dumps(function, protocol=5)))


class _Held(NamedTuple):
    """The function that a worker has."""

    key: str
    function: Callable[[Any], Any]
    is_command_line: bool


_held: list[_Held] = []


def perform(key: str, fetch: Callable[[], bytes], shard: S) -> Outcome[Any]:
    """Apply a function to a shard, in a worker.

    Errors and warnings are handed back, for the process that hears them.

    Args:
        key: Tells the function from others that the worker may have.
        fetch: Gets the function, as `packed` gave it, if the worker does not have it yet.
        shard: The shard.
    """
    return _performed(lambda: _held_function(key, fetch), shard)


_answering: dict[str, _Held] = {}


def answered(key: str, made_by: bytes, question: object) -> Outcome[Any]:
    """Ask a holder of this process, which is made at the first question.

    Args:
        key: Tells the holder from others.
        made_by: What makes it, as `packed` gave it.
        question: What it is asked.
    """

    def holder() -> _Held:
        if key not in _answering:
            made = _unpacked(key, made_by)
            make: Any = made.function
            _answering[key] = made._replace(function=make())
        return _answering[key]

    return _performed(holder, question)


def _held_function(key: str, fetch: Callable[[], bytes]) -> _Held:
    if not _held or _held[0].key != key:
        _held[:] = [_unpacked(key, fetch())]
    return _held[0]


def _performed(find: Callable[[], _Held], shard: object) -> Outcome[Any]:
    """Apply what is found to a shard; errors and warnings are handed back."""
    began, processor = time.monotonic(), time.process_time()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        value, failure = None, None
        try:
            held = find()
            with on_command_line() if held.is_command_line else nullcontext():
                value = held.function(shard)
        except Exception as error:
            failure = _portable(error)
    heard = [each.message for each in caught if isinstance(each.message, Warning)]
    use = ShardUse(
        time.monotonic() - began, time.process_time() - processor, peak_bytes(), own_name()
    )
    return Outcome(value, failure, heard, use)


def sendable(perform: Callable[[], Outcome[Any]]) -> bytes:
    """Return what became of a shard as it is sent, be it that it cannot be."""
    try:
        return pickle.dumps(perform(), protocol=5)
    except Exception as error:
        use = ShardUse(0.0, 0.0, peak_bytes(), own_name())
        return pickle.dumps(Outcome(None, _portable(error), (), use), protocol=5)


def settled(outcome: Outcome[R]) -> R:
    """Return the result of a shard; warn and raise what the worker would have."""
    for warning in outcome.warnings:
        warnings.warn(warning, stacklevel=2)
    if outcome.error is not None:
        raise outcome.error
    value: Any = outcome.value
    result: R = value
    return result


def _unpacked(key: str, sent: bytes) -> _Held:
    build, is_command_line, function = pickle.loads(sent)  # nosec B301
    if tuple(build) != tuple(own_build()):
        raise EngineError(
            f"a worker has {own_build()}, but the work was sent by {Build(*build)}; their results "
            "may differ. Install the same build on all machines.",
            code="E_OTHER_BUILD",
        )
    return _Held(key, pickle.loads(function), is_command_line)  # nosec B301


def _portable(error: Exception) -> Exception:
    """Return an error as one that can be sent, with the place in the worker where it arose."""
    place = "".join(traceback.format_exception(error))
    try:
        # What cannot be read again would end the process that waits for it.
        pickle.loads(pickle.dumps(error))  # nosec B301
    except Exception:
        error = EngineError(f"a worker failed: {type(error).__name__}: {error}")
    error.add_note(f"In a worker:\n{place}")
    return error
