"""What several of the hostile tests feed or expect."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import pytest
from tests.command_line import processor_time_below

from treelm.errors import ModelFileError

#: A tree, and how it is written after it was cleaned.
GOOD = b"(S (NP (PRP I)) (VP (VBP sleep)))\n"
READ = b"(ROOT (S (NP (PRP I)) (VP (VBP sleep))))\n"


@contextlib.contextmanager
def refused_at_once(code: str, *parts: str) -> Iterator[None]:
    """Check that a model's file is refused, at once, with a message fit for a terminal.

    Args:
        code: Of the error.
        parts: What the message must hold.
    """
    with processor_time_below(5), pytest.raises(ModelFileError) as caught:
        yield
    message = str(caught.value)
    assert (caught.value.code, caught.value.exit_code) == (code, 3), message
    assert message.isprintable()
    assert len(message) < 1000
    for part in parts:
        assert part in message
