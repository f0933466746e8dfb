"""The key of a blinded sheet: which side of which row shows which system."""

from __future__ import annotations

import os
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from treelm.corpus.files import Source, read_blocks, source_name
from treelm.errors import CorpusFormatError

FORMAT = "treelm-judge-key"
VERSION = 1

System = Literal["A", "B"]

_LARGEST_KEY_BYTES = 256 << 20


class KeyItem(BaseModel):
    """A row of the sheet.

    Args:
        item: Name of the row.
        pair: Line of the files that it shows, counted from 1.
        left: The system whose text is on the left.
        repeated: Whether the pair is shown a second time, to see whether raters agree with
            themselves.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    item: str = Field(min_length=1)
    pair: int = Field(ge=1)
    left: System
    repeated: bool = False


class Key(BaseModel):
    """Everything raters must not see."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    format: Literal["treelm-judge-key"] = "treelm-judge-key"
    version: Literal[1] = 1
    export: str
    seed: int
    systems: dict[System, str]
    sha256: dict[str, str]
    pairs: int = Field(ge=0)
    identical: int = Field(ge=0)
    items: list[KeyItem]

    def to_json(self) -> bytes:
        """Return the content of the key file."""
        return self.model_dump_json(indent=1).encode() + b"\n"


def read_key(source: Source) -> Key:
    """Return the key in a file.

    Raises:
        InputFileError: if it cannot be read.
        CorpusFormatError: ``E_JUDGE_KEY`` if it is not a key, or was truncated or edited.
    """
    name = source_name(source)
    content = bytearray()
    for block in read_blocks(source):
        content += block
        if len(content) > _LARGEST_KEY_BYTES:
            break
    try:
        key = Key.model_validate_json(bytes(content))
        if len({item.item for item in key.items}) != len(key.items):
            raise ValueError("an item is in it twice")
        if set(key.systems) != {"A", "B"}:
            raise ValueError("it does not name both systems")
    except (ValidationError, ValueError) as error:
        reason = _first_reason(error)
        raise CorpusFormatError(
            f"{name}: this is not the key of a sheet ({reason}). `treelm judge export` writes it "
            "beside the sheet, with a name that ends in .key.json.",
            code="E_JUDGE_KEY",
            path=os.fspath(source),
        ) from error
    return key


def _first_reason(error: ValueError) -> str:
    if not isinstance(error, ValidationError):
        return str(error)
    first = error.errors(include_url=False, include_input=False)[0]
    place = ".".join(map(str, first["loc"]))
    return f"{place}: {first['msg']}" if place else str(first["msg"])
