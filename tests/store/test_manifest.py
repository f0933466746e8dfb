"""A manifest says everything about a model, and is believed only when it says nothing else."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest

from treelm.errors import ModelFileError
from treelm.store.manifest import (
    MAX_MANIFEST_BYTES,
    VERSION,
    Description,
    FileRecord,
    Manifest,
    TrainingCorpus,
    is_entry_name,
    make_manifest,
    read_manifest,
)
from treelm.store.untrusted import MAX_JSON_DEPTH, parse_json
from treelm.version import __version__

HASH = "0123456789abcdef" * 4
CORPUS = TrainingCorpus(name="harbour.txt", sha256=HASH, sentences=3, tokens=9)
DESCRIPTION = Description(
    "ngram",
    {"order": 3, "discounts": [0.5, 1.0], "name": "Σίσυφος"},
    "exact",
    "91be02",
    [CORPUS],
    [{"name": "binarize", "side": "left"}],
    7,
)


def made() -> dict[str, Any]:
    """Return a manifest as JSON, to be spoilt."""
    files = {"tables.safetensors": FileRecord(size=8, sha256=HASH)}
    value = json.loads(make_manifest(DESCRIPTION, files, ["parser"]).to_bytes())
    assert isinstance(value, dict)
    return value


def refused(value: object, code: str = "E_MANIFEST") -> str:
    data = value if isinstance(value, bytes) else json.dumps(value).encode()
    with pytest.raises(ModelFileError) as caught:
        read_manifest(data, "folder/manifest.json")
    assert caught.value.code == code
    assert caught.value.exit_code == 3
    message = str(caught.value)
    assert message.startswith("folder/manifest.json: ")
    assert message.isprintable()
    assert len(message) < 600
    return message


def test_manifest_round_trip() -> None:
    manifest = make_manifest(DESCRIPTION, {"a.txt": FileRecord(size=0, sha256=HASH)}, ["0", "1"])
    again = read_manifest(manifest.to_bytes(), "manifest.json")
    assert again == manifest
    assert again.to_bytes() == manifest.to_bytes()
    assert again.config == {"order": 3, "discounts": [0.5, 1.0], "name": "Σίσυφος"}
    assert (again.treelm, again.seed, again.parts) == (__version__, 7, ("0", "1"))
    assert (again.corpora, again.units) == ((CORPUS,), "nats")


def test_manifest_is_readable_by_eye() -> None:
    text = make_manifest(DESCRIPTION, {}, []).to_bytes().decode()
    assert text.startswith('{\n  "format": "treelm-model",\n  "version": 1,\n  "system": "ngram"')
    assert "Σίσυφος" in text
    assert text.endswith("}\n")


def test_manifest_is_frozen() -> None:
    manifest = make_manifest(DESCRIPTION, {}, [])
    with pytest.raises(ValueError, match="frozen"):
        manifest.system = "pcfg"  # type: ignore[misc]


def test_manifest_tuples_become_lists() -> None:
    manifest = make_manifest(Description("ngram", {"widths": (2, 1, 0)}), {}, [])
    assert manifest.config == {"widths": [2, 1, 0]}


@pytest.mark.parametrize(
    "config",
    [
        {"x": float("nan")},
        {"x": float("inf")},
        {"x": object()},
        {"x": {1, 2}},
        {1: 2, "1": 3},
        {"x": "x" * MAX_MANIFEST_BYTES},
        {"x": b"bytes"},
        {"x": "\ud800"},
    ],
    ids=["nan", "inf", "object", "set", "number key", "huge", "bytes", "surrogate"],
)
def test_manifest_config_that_json_cannot_say(config: Any) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 (several reasons)
        make_manifest(Description("ngram", config), {}, [])


@pytest.mark.parametrize(
    "description",
    [
        Description("N-gram"),
        Description(""),
        Description("ngram", exactness="certain"),  # type: ignore[arg-type]
        Description("ngram", seed=1 << 64),
        Description("ngram", seed=1.5),  # type: ignore[arg-type]
        Description("ngram", vocabulary=3),  # type: ignore[arg-type]
    ],
)
def test_manifest_impossible_descriptions(description: Description) -> None:
    with pytest.raises(ValueError, match="validation error"):
        make_manifest(description, {}, [])


def test_manifest_deep_config_is_refused_when_saved_and_when_read() -> None:
    config: dict[str, object] = {}
    for _ in range(MAX_JSON_DEPTH):
        config = {"x": config}
    with pytest.raises(ValueError, match="nested deeper"):
        make_manifest(Description("ngram", config), {}, [])
    assert "nested deeper" in refused(made() | {"config": config})


def test_manifest_of_an_older_version_names_no_tokenizer() -> None:
    value = made()
    del value["tokenizer"]
    assert read_manifest(json.dumps(value).encode(), "x").tokenizer is None


@pytest.mark.parametrize(
    "key", [key for key in Manifest.model_fields if key not in ("tokenizer", "shared")]
)
def test_manifest_every_field_is_required(key: str) -> None:
    value = made()
    del value[key]
    refused(value, "E_MODEL_VERSION" if key == "version" else "E_MANIFEST")


@pytest.mark.parametrize(
    ("key", "wrong"),
    [
        ("format", "other"),
        ("format", None),
        ("system", "../ngram"),
        ("system", ["ngram"]),
        ("config", []),
        ("config", None),
        ("exactness", "certain"),
        ("units", "bits"),
        ("vocabulary", 3),
        ("corpora", {}),
        ("corpora", [{"name": "x"}]),
        ("corpora", [CORPUS.model_dump() | {"tokens": -1}]),
        ("corpora", [CORPUS.model_dump() | {"tokens": 1.5}]),
        ("corpora", [CORPUS.model_dump() | {"sentences": "3"}]),
        ("corpora", [CORPUS.model_dump() | {"sha256": HASH.upper()}]),
        ("corpora", [CORPUS.model_dump() | {"name": "x" * 5000}]),
        ("transforms", ["binarize"]),
        ("transforms", "binarize"),
        ("treelm", 1),
        ("seed", "1"),
        ("seed", True),
        ("seed", 10**30),
        ("date", "yesterday"),
        ("date", "2026-01-01T00:00:00Z\n"),
        ("files", []),
        ("files", {"x": {"size": 1}}),
        ("files", {"x": {"size": True, "sha256": HASH}}),
        ("files", {"x": {"size": 1, "sha256": HASH + "\n"}}),
        ("parts", "parser"),
        ("parts", [3]),
        ("parts", ["parser", "parser"]),
        ("parts", ["parser", "Parser"]),
        ("pickle", "payload"),
    ],
)
def test_manifest_wrong_values(key: str, wrong: object) -> None:
    assert key in refused(made() | {key: wrong}) or key == "parts"


@pytest.mark.parametrize("version", [0, 2, 99, "1", 1.0, True, None, [1], "x" * 10_000])
def test_manifest_other_versions(version: object) -> None:
    message = refused(made() | {"version": version, "treelm": "9.8.7"}, "E_MODEL_VERSION")
    assert "9.8.7" in message
    assert f"treelm {__version__}" in message
    assert f"reads version {VERSION}" in message
    assert "train the model again" in message


def test_manifest_of_another_version_may_say_anything_else() -> None:
    refused({"format": "treelm-model", "version": 2}, "E_MODEL_VERSION")
    refused({"format": "treelm-model", "version": 2, "treelm": "\x1b[31m"}, "E_MODEL_VERSION")


@pytest.mark.parametrize(
    ("name", "possible"),
    [
        ("words.txt", True),
        ("0", True),
        ("a" * 100, True),
        ("a" * 101, False),
        ("", False),
        (".", False),
        ("..", False),
        (".hidden", False),
        ("a/b", False),
        ("a\\b", False),
        ("a b", False),
        ("a\n", False),
        ("a\0", False),
        ("ä", False),
        ("-o", False),
        ("C:x", False),
    ],
)
def test_manifest_entry_names(name: str, possible: bool) -> None:
    assert is_entry_name(name) is possible
    value = made() | {"files": {name: {"size": 1, "sha256": HASH}}, "parts": [name]}
    if possible:
        assert read_manifest(json.dumps(value).encode(), "x").parts == (name,)
    else:
        refused(value)


@pytest.mark.parametrize("name", ["manifest.json", "Manifest.JSON", "README.md", "parts"])
def test_manifest_reserved_names(name: str) -> None:
    assert "reserved" in refused(made() | {"files": {name: {"size": 1, "sha256": HASH}}})


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "line 1"),
        (b"[]", "format"),
        (b"{", "line 1"),
        (b"{}", "format"),
        (b"\xff{}", "UTF-8"),
        (b'{"a": NaN}', "NaN"),
        (b'{"a": -Infinity}', "Infinity"),
        (b'{"a": 1e999}', "too large"),
        (b'{"a": 1, "a": 1}', "twice"),
        (b'{"a": {"b": 1, "\\u0062": 1}}', "twice"),
        (b"[" * 500_000, "nested"),
        (b'{"a":' * 100_000, "nested"),
        (b"[" + b"[]," * 300_000, "lists and objects"),
        (b"[" + b"{}," * 300_000, "lists and objects"),
        (b"9" * 500_000, "limit"),
        (b'"' + b'\\"' * 500_000, "line 1"),
        (b" " * (MAX_MANIFEST_BYTES + 1), "longer"),
        (b"{} {}", "line 1"),
    ],
    ids=lambda value: repr(value)[:24],
)
def test_manifest_malformed_json(data: bytes, reason: str) -> None:
    assert reason in refused(data)


def test_manifest_brackets_in_strings_are_no_nesting() -> None:
    text = "[" * 100 + '\\"{' * 100
    assert parse_json(json.dumps({"x": text}).encode()) == {"x": text}
    assert parse_json(b"[" * MAX_JSON_DEPTH + b"]" * MAX_JSON_DEPTH)


def test_manifest_pydantic_is_not_loaded_with_treelm() -> None:
    code = "import sys, treelm, treelm.store; print('pydantic' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
