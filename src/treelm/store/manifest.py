"""The manifest of a model folder: what the model is, what it was made from, and its files."""

from __future__ import annotations

import datetime as dt
import json
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    JsonValue,
    StringConstraints,
    ValidationError,
    model_validator,
)

from treelm.characters import visible
from treelm.corpus.files import MODEL_MANIFEST
from treelm.errors import ModelFileError
from treelm.store.untrusted import excerpt, open_regular, own_file, parse_json, read_exactly

FORMAT = "treelm-model"
VERSION = 1

#: A manifest of thousands of files is smaller.
MAX_MANIFEST_BYTES = 1 << 20

#: So many parts may lie beside a model instead of in it.
MAX_SHARED = 16

#: Names in the folder that have a meaning of their own.
MANIFEST, README, PARTS = MODEL_MANIFEST, "README.md", "parts"
RESERVED = frozenset({MANIFEST, README.lower(), PARTS})

_NAME = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$"

Exactness = Literal["exact", "beam", "lower_bound", "margin"]
Sha256 = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
#: One component of a path: no separators, no "..", nothing hidden.
EntryName = Annotated[str, StringConstraints(pattern=_NAME)]
Count = Annotated[int, Field(ge=0, le=(1 << 63) - 1)]
Text = Annotated[str, StringConstraints(max_length=4096)]


class _Record(BaseModel):
    # Built at the first use: records that are parts of others need not be built by themselves.
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, defer_build=True)


class TrainingCorpus(_Record):
    """A corpus a model was trained on, told by its content.

    Args:
        name: What people call it; never opened.
        sha256: Checksum of the content.
        sentences: Number of sentences.
        tokens: Number of words.
    """

    name: Text
    sha256: Sha256
    sentences: Count
    tokens: Count


class FileRecord(_Record):
    """Size in bytes and SHA-256 of a file of the folder."""

    size: Count
    sha256: Sha256


class SharedPart(_Record):
    """A part that is not stored in the folder: a model folder that lies beside it.

    Args:
        folder: Name of that folder.
        fingerprint: SHA-256 of its manifest, and so of everything in it.
    """

    folder: EntryName
    fingerprint: Sha256


class Manifest(_Record):
    """What ``manifest.json`` says."""

    format: Literal["treelm-model"]
    version: Literal[1]
    system: Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]{0,49}$")]
    config: dict[str, JsonValue]
    exactness: Exactness
    units: Literal["nats"]
    vocabulary: Text | None
    corpora: tuple[TrainingCorpus, ...]
    transforms: tuple[dict[str, JsonValue], ...]
    treelm: Text
    native: Text
    tokenizer: Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]{0,49}$")] | None = None
    seed: Annotated[int, Field(ge=-(1 << 63), lt=1 << 64)] | None
    date: Annotated[str, StringConstraints(pattern=r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$")]
    files: dict[EntryName, FileRecord]
    parts: tuple[EntryName, ...]
    shared: Annotated[dict[EntryName, SharedPart], Field(max_length=MAX_SHARED)] = Field(
        default_factory=dict
    )

    @model_validator(mode="after")
    def _names_are_distinct(self) -> Self:
        # Upper and lower case are the same file on some systems.
        parts = (*self.parts, *self.shared)
        for names, reserved in ((list(self.files), RESERVED), (parts, frozenset[str]())):
            seen = set(reserved)
            for name in names:
                if name.lower() in seen:
                    raise ValueError(f'the name "{name}" is reserved or occurs twice')
                seen.add(name.lower())
        return self

    def to_bytes(self) -> bytes:
        """Return the content of ``manifest.json``."""
        value = self.model_dump(mode="json")
        if not self.shared:  # only packages of models have any
            del value["shared"]
        return _encode(value)

    def to_readme(self) -> str:
        """Return a few lines for people who look into the folder."""
        corpora = [
            f"- {visible(corpus.name)}: sentences {corpus.sentences:,}, tokens {corpus.tokens:,}"
            for corpus in self.corpora
        ]
        lines = [
            f"# {self.system} model",
            "",
            f"Saved by treelm {self.treelm} on {self.date[:10]}. Scores: {self.exactness}.",
            "",
            *(["Trained on:", "", *corpora, ""] if corpora else []),
            "Load it in Python, where `model` is the name of this folder:",
            "",
            "    import treelm",
            '    model = treelm.load("model")',
            "",
            f"`{MANIFEST}` says everything else, with the checksum of every file but this one.",
            "Loading a model runs no code from its folder.",
        ]
        return "\n".join(lines) + "\n"


@dataclass(frozen=True, slots=True)
class Description:
    """What a model says about itself when it is saved; the rest of the manifest follows from it.

    Args:
        system: Name of the system, such as ``ngram``.
        config: Its configuration: what JSON can say.
        exactness: What its scores are.
        vocabulary: Fingerprint of its vocabulary, or None if it has none.
        corpora: What it was trained on.
        transforms: The transforms of its training trees, as ``to_config`` gives them.
        seed: Seed of its training, or None if nothing was random.
        tokenizer: Name of the tokenizer of raw text, or None if it takes tokenized text.
    """

    system: str
    config: Mapping[str, object] = field(default_factory=dict)
    exactness: Exactness = "exact"
    vocabulary: str | None = None
    corpora: Sequence[TrainingCorpus] = ()
    transforms: Sequence[Mapping[str, object]] = ()
    seed: int | None = None
    tokenizer: str | None = None


def is_entry_name(name: str) -> bool:
    """Return whether a file or part of a model folder may have this name.

    Examples:
        >>> is_entry_name("words.txt"), is_entry_name("../words.txt"), is_entry_name(".words")
        (True, False, False)
    """
    return re.fullmatch(_NAME.strip("^$"), name) is not None


def make_manifest(
    description: Description, files: Mapping[str, FileRecord], parts: Sequence[str]
) -> Manifest:
    """Return the manifest of a model that is saved now.

    Raises:
        ValueError: if the description holds what a manifest cannot: it is read back as a stranger
            would read it.
    """
    from treelm import _native
    from treelm.version import __version__

    try:
        data = _encode(
            {
                "format": FORMAT,
                "version": VERSION,
                "system": description.system,
                "config": dict(description.config),
                "exactness": description.exactness,
                "units": "nats",
                "vocabulary": description.vocabulary,
                "corpora": [corpus.model_dump() for corpus in description.corpora],
                "transforms": [dict(transform) for transform in description.transforms],
                "tokenizer": description.tokenizer,
                "treelm": __version__,
                "native": _native.CORE_VERSION,
                "seed": description.seed,
                "date": _date(),
                "files": {name: record.model_dump() for name, record in files.items()},
                "parts": list(parts),
            }
        )
    except (TypeError, RecursionError) as error:
        raise ValueError(f"a manifest holds what JSON can say, and no more: {error}") from error
    if len(data) > MAX_MANIFEST_BYTES:
        raise ValueError(f"a manifest of {len(data)} bytes; at most {MAX_MANIFEST_BYTES} are read")
    parse_json(data)
    return Manifest.model_validate_json(data)


def _date() -> str:
    """Return the time of saving: now, or SOURCE_DATE_EPOCH, by which builds repeat their bytes."""
    fixed = os.environ.get("SOURCE_DATE_EPOCH", "")
    if fixed.isascii() and fixed.isdigit() and len(fixed) < 12:
        moment = dt.datetime.fromtimestamp(int(fixed), dt.UTC)
    else:
        moment = dt.datetime.now(dt.UTC)
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def manifest_bytes(folder: Path) -> bytes:
    """Return the content of the manifest of a folder, a little more than is read if it is longer.

    Raises:
        ModelFileError: ``E_MANIFEST`` if there is none that can be read.
    """
    with open_regular(own_file(folder / MANIFEST), "E_MANIFEST") as descriptor:
        return read_exactly(descriptor, MAX_MANIFEST_BYTES + 1)


def read_manifest(data: bytes, shown: str) -> Manifest:
    """Return the manifest that bytes hold; `shown` is what messages call their place.

    Raises:
        ModelFileError: ``E_MANIFEST`` if they hold none, ``E_MODEL_VERSION`` if it is of a version
            that this treelm does not read.
    """
    if len(data) > MAX_MANIFEST_BYTES:
        raise _malformed(shown, f"it is longer than {MAX_MANIFEST_BYTES} bytes")
    try:
        value = parse_json(data)
    except ValueError as error:
        raise _malformed(shown, str(error)) from error
    if not isinstance(value, dict) or value.get("format") != FORMAT:
        raise _malformed(shown, f'it does not say "format": "{FORMAT}"')
    version = value.get("version")
    if type(version) is not int or version != VERSION:
        from treelm.version import __version__

        raise ModelFileError(
            f"{shown}: the model has version {excerpt(version)} of the format and was written by "
            f"treelm {excerpt(value.get('treelm'))}; this is treelm {__version__}, which reads "
            f"version {VERSION}. Install the treelm that wrote it, or train the model again.",
            code="E_MODEL_VERSION",
        )
    try:
        return Manifest.model_validate_json(data)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        place = excerpt(".".join(map(str, first["loc"])) or "manifest")
        raise _malformed(shown, f"{place}: {excerpt(first['msg'])}") from error
    except RecursionError as error:
        raise _malformed(shown, "it is nested too deep") from error


def _encode(value: object) -> bytes:
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, indent=2)
    return f"{text}\n".encode()


def _malformed(shown: str, what: str) -> ModelFileError:
    return ModelFileError(
        f"{shown}: the manifest is malformed ({what}). Was it edited or copied incompletely? "
        "Copy or train the model again.",
        code="E_MANIFEST",
    )
