"""Files that a reader must refuse."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from treelm.errors import CorpusFormatError


def assert_content_refused(
    read: Callable[[Path], object], path: Path, content: str | bytes, code: str
) -> None:
    """Assert that a file with this content is refused with an error of this code."""
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    with pytest.raises(CorpusFormatError) as caught:
        read(path)
    assert caught.value.code == code
