"""The key of a blinded sheet: which side of which row shows which system."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Literal, Protocol, Self, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from treelm.corpus.files import Source, read_blocks, source_name
from treelm.errors import CorpusFormatError

FORMAT = "treelm-judge-key"
VERSION = 1

System = Literal["A", "B"]

_LARGEST_KEY_BYTES = 256 << 20


class _NamedItem(Protocol):
    @property
    def item(self) -> str: ...


class _AnyKey(Protocol):
    """A model of a key file: it has items."""

    @property
    def items(self) -> Sequence[_NamedItem]: ...

    @classmethod
    def model_validate_json(cls, json_data: bytes) -> Self: ...


K = TypeVar("K", bound=_AnyKey)


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
    key = read_json_key(source, Key)
    if set(key.systems) != {"A", "B"}:
        raise _not_a_key(source, "it does not name both systems")
    return key


def read_json_key(source: Source, kind: type[K]) -> K:
    """Return the key of one kind of sheet.

    Args:
        source: The file.
        kind: What it must hold; it has items with names.

    Raises:
        InputFileError: if it cannot be read.
        CorpusFormatError: ``E_JUDGE_KEY`` if it is not such a key, or was truncated or edited.
    """
    content = bytearray()
    for block in read_blocks(source):
        content += block
        if len(content) > _LARGEST_KEY_BYTES:
            break
    try:
        key = kind.model_validate_json(bytes(content))
    except ValidationError as error:
        raise _not_a_key(source, _first_reason(error)) from error
    names = [item.item for item in key.items]
    if len(set(names)) != len(names):
        raise _not_a_key(source, "an item is in it twice")
    return key


def _not_a_key(source: Source, reason: str) -> CorpusFormatError:
    return CorpusFormatError(
        f"{source_name(source)}: this is not the key of a sheet ({reason}). `treelm judge` writes "
        "it beside the sheet, with a name that ends in .key.json.",
        code="E_JUDGE_KEY",
        path=os.fspath(source),
    )


def _first_reason(error: ValidationError) -> str:
    first = error.errors(include_url=False, include_input=False)[0]
    place = ".".join(map(str, first["loc"]))
    return f"{place}: {first['msg']}" if place else str(first["msg"])
