"""Model folders that are incomplete, forged or booby-trapped: refused, quickly and politely."""

from __future__ import annotations

import json
import os
import pickle
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.hostile.inputs import refused_at_once

from treelm.errors import ModelFileError
from treelm.store.folder import FolderWriter, open_folder, save_folder
from treelm.store.manifest import MAX_MANIFEST_BYTES, Description
from treelm.store.replacement import MAX_LEVELS

DESCRIPTION = Description("ngram", {"order": 3})
as_root = pytest.mark.skipif(os.geteuid() == 0, reason="root may do everything")


def fill(writer: FolderWriter) -> None:
    writer.tables("tables.safetensors", {"x": np.arange(1000), "y": np.ones((3, 5), np.uint8)})
    writer.text("words.txt", "the\nferry\n")


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """A good model with a part, to be spoilt."""

    def write(writer: FolderWriter) -> None:
        fill(writer)
        save_folder(writer.part("parser"), DESCRIPTION, fill)

    save_folder(tmp_path / "model", DESCRIPTION, write)
    return tmp_path / "model"


def refused(path: Path, code: str, *parts: str, verify: bool = False) -> None:
    """Check that a folder is refused at once with a message fit for a terminal."""
    with refused_at_once(code, *parts):
        open_folder(path, verify=verify)


def edit(folder: Path, change: Callable[[dict[str, Any]], object]) -> None:
    """Change the manifest of a folder."""
    path = folder / "manifest.json"
    value = json.loads(path.read_bytes())
    change(value)
    path.write_text(json.dumps(value))


# -- no model at all -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "kind", ["missing", "file", "empty", "text", "loop", "long", "nul", "fifo"]
)
def test_hostile_folder_is_no_model(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "model"
    if kind == "file":
        path.write_bytes(pickle.dumps({"weights": [1, 2]}))
    elif kind == "empty":
        path.mkdir()
    elif kind == "text":
        path.mkdir()
        (path / "thesis.tex").touch()
    elif kind == "loop":
        path.symlink_to(path)
    elif kind == "long":
        path = tmp_path / ("x" * 300)
    elif kind == "nul":
        path = tmp_path / "a\0b"
    elif kind == "fifo":
        os.mkfifo(path)
    refused(path, "E_NO_MODEL", "Name the folder")


def test_hostile_folder_name_with_escape_sequence(tmp_path: Path) -> None:
    refused(tmp_path / "\x1b[31mred\nline", "E_NO_MODEL", "\\x1b")
    save_folder(tmp_path / "\x1b[31mred\nline", DESCRIPTION, fill)
    (tmp_path / "\x1b[31mred\nline" / "words.txt").unlink()
    refused(tmp_path / "\x1b[31mred\nline", "E_MODEL_FILE", "\\x1b")


# -- the manifest --------------------------------------------------------------------------------


def test_hostile_folder_manifest_truncated_anywhere(model: Path) -> None:
    path = model / "manifest.json"
    data = path.read_bytes().rstrip()
    for size in range(len(data)):
        path.write_bytes(data[:size])
        refused(model, "E_MANIFEST")


def test_hostile_folder_manifest_every_flipped_byte(model: Path) -> None:
    """A damaged manifest is refused, or says something else that is possible; nothing breaks."""
    path = model / "manifest.json"
    data = path.read_bytes()
    for place in range(0, len(data), 3):
        for flip in (1, 0x20, 0x80):
            damaged = bytearray(data)
            damaged[place] ^= flip
            path.write_bytes(damaged)
            try:
                open_folder(model)
            except ModelFileError as error:
                assert error.code in ("E_MANIFEST", "E_MODEL_VERSION", "E_MODEL_FILE")  # noqa: PT017


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"null",
        b"[" * 1_000_000,
        b'{"format": "treelm-model", "format": "treelm-model", "version": 1}',
        b'{"format": "treelm-model", "version": 1, "seed": NaN}',
        b"\x80\x04\x95",
        b"\0" * 1000,
        b'{"format": "treelm-model", "version": 1}' + b" " * MAX_MANIFEST_BYTES,
    ],
    ids=lambda data: repr(data)[:40],
)
def test_hostile_folder_manifest_is_none(model: Path, data: bytes) -> None:
    (model / "manifest.json").write_bytes(data)
    refused(model, "E_MANIFEST", "manifest.json")


def test_hostile_folder_manifest_of_a_terabyte_is_not_read(model: Path) -> None:
    os.truncate(model / "manifest.json", 1 << 40)
    refused(model, "E_MANIFEST", "longer than")


@pytest.mark.parametrize("kind", ["link", "outside", "dangling", "fifo", "folder", "device"])
def test_hostile_folder_manifest_is_no_regular_file(model: Path, kind: str) -> None:
    path = model / "manifest.json"
    path.rename(model.parent / "outside.json")
    if kind == "fifo":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    else:
        targets = {
            "link": "parts/../../outside.json",
            "outside": "../outside.json",
            "device": "/dev/zero",
        }
        path.symlink_to(targets.get(kind, "missing"))
    refused(model, "E_MANIFEST", "manifest.json", "regular file")


@pytest.mark.parametrize("version", [0, 2, 10**30, "1", None, True])
def test_hostile_folder_other_version(model: Path, version: object) -> None:
    edit(model, lambda value: value.update(version=version, treelm="7.7"))
    refused(model, "E_MODEL_VERSION", "7.7", "reads version 1")


@pytest.mark.parametrize(
    "name",
    [
        "../words.txt",
        "..",
        ".",
        "/etc/passwd",
        "parts/parser/words.txt",
        "a\\b",
        "C:\\words.txt",
        ".hidden",
        "manifest.json",
        "README.md",
        "Words.txt",
        "words.txt\n",
        "words.txt\0",
        "\u202ewords",
        "x" * 5000,
        "",
    ],
    ids=lambda name: repr(name)[:24],
)
def test_hostile_folder_listed_names_that_lead_elsewhere(model: Path, name: str) -> None:
    (model.parent / "words.txt").write_bytes((model / "words.txt").read_bytes())
    record = json.loads((model / "manifest.json").read_bytes())["files"]["words.txt"]
    edit(model, lambda value: value["files"].update({name: record}))
    refused(model, "E_MANIFEST")


@pytest.mark.parametrize("name", ["..", "../..", ".", "parser/parts/x", "/", "", "\0", "Parser"])
def test_hostile_folder_parts_that_lead_elsewhere(model: Path, name: str) -> None:
    edit(model, lambda value: value["parts"].append(name))
    refused(model, "E_MANIFEST")


def test_hostile_folder_asked_for_what_is_not_listed(model: Path) -> None:
    opened = open_folder(model)
    for name in ("manifest.json", "../model/words.txt", "parts", "\x1b[31m", "README.md", ""):
        for ask in (opened.file, opened.tables, opened.part):
            with pytest.raises(ModelFileError, match="lists no") as caught:
                ask(name)
            assert str(caught.value).isprintable()


# -- the set of files ----------------------------------------------------------------------------


def spoil_size(model: Path) -> None:
    with (model / "words.txt").open("ab") as file:
        file.write(b"x")


def instead(name: str, make: Callable[[Path], object]) -> Callable[[Path], None]:
    """Return what puts something else in the place of a file or folder of a model."""

    def spoil(model: Path) -> None:
        path = model / name
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink()
        make(path)

    return spoil


def linked(target: str) -> Callable[[Path], None]:
    return lambda path: path.symlink_to(target)


def moved_out(name: str, target: str) -> Callable[[Path], None]:
    """Return what moves a file or folder out of a model and leaves a link to it."""

    def spoil(model: Path) -> None:
        path = model / name
        path.rename(model.parent / path.name)
        path.symlink_to(target)

    return spoil


SPOILT: dict[str, Callable[[Path], object]] = {
    "missing file": lambda model: (model / "words.txt").unlink(),
    "missing tables": lambda model: (model / "tables.safetensors").unlink(),
    "missing parts": lambda model: shutil.rmtree(model / "parts"),
    "missing part": lambda model: shutil.rmtree(model / "parts" / "parser"),
    "missing manifest of a part": lambda model: (model / "parts/parser/manifest.json").unlink(),
    "unlisted file": lambda model: (model / "extra.pkl").touch(),
    "unlisted hidden file": lambda model: (model / ".extra").touch(),
    "unlisted folder": lambda model: (model / "code").mkdir(),
    "unlisted part": lambda model: shutil.copytree(model / "parts/parser", model / "parts/other"),
    "unlisted file in parts": lambda model: (model / "parts" / "extra").touch(),
    "unlisted file in a part": lambda model: (model / "parts/parser/extra.py").touch(),
    "unlisted name with escapes": lambda model: (model / "\x1b[31m\n").touch(),
    "unlisted name that is no text": lambda model: Path(
        os.fsdecode(bytes(model) + b"/\xff")
    ).touch(),
    "longer file": spoil_size,
    "shorter file": lambda model: os.truncate(model / "words.txt", 3),
    "empty file": lambda model: os.truncate(model / "tables.safetensors", 0),
    "shorter file in a part": lambda model: os.truncate(model / "parts/parser/words.txt", 3),
    "terabyte": lambda model: os.truncate(model / "words.txt", 1 << 40),
    "folder instead of file": instead("words.txt", Path.mkdir),
    "pipe instead of file": instead("words.txt", os.mkfifo),
    "pipe instead of readme": instead("README.md", os.mkfifo),
    "link to a folder inside": instead("words.txt", linked("parts/parser")),
    "link to a file outside": moved_out("words.txt", "../words.txt"),
    "dangling link": instead("words.txt", linked("missing")),
    "link to a device": instead("words.txt", linked("/dev/zero")),
    "link instead of readme": instead("README.md", linked("/etc/passwd")),
    "parts are a link": moved_out("parts", "../parts"),
    "part is a link": moved_out("parts/parser", "../../parser"),
    "part is the model itself": instead("parts/parser", linked("../..")),
    "parts are a file": instead("parts", Path.touch),
    "part is a file": instead("parts/parser", Path.touch),
    "parts that are not listed": lambda model: edit(model, lambda value: value.update(parts=[])),
    "part that is not there": lambda model: edit(
        model, lambda value: value["parts"].append("missing")
    ),
    "file that is not there": lambda model: edit(
        model, lambda value: value["files"].update(missing=value["files"]["words.txt"])
    ),
    "largest size": lambda model: edit(
        model, lambda value: value["files"]["words.txt"].update(size=(1 << 63) - 1)
    ),
}


@pytest.mark.parametrize("how", SPOILT)
def test_hostile_folder_files_are_not_those_listed(model: Path, how: str) -> None:
    opened = open_folder(model)
    SPOILT[how](model)
    refused(model, "E_MODEL_FILE")
    with pytest.raises(ModelFileError):
        opened.verify()


def test_hostile_folder_part_that_is_no_model(model: Path) -> None:
    (model / "parts/parser/manifest.json").write_bytes(b"{}")
    refused(model, "E_MANIFEST", "parts/parser/manifest.json")


@as_root
@pytest.mark.parametrize("name", ["words.txt", "manifest.json", "parts/parser", ""])
def test_hostile_folder_unreadable(model: Path, name: str) -> None:
    (model / name).chmod(0)
    with pytest.raises(ModelFileError):
        open_folder(model, verify=True)
    (model / name).chmod(0o755)


def test_hostile_folder_parts_of_parts_of_parts(tmp_path: Path) -> None:
    """Real folders, each inside the other, deeper than any model needs."""
    save_folder(tmp_path / "0", DESCRIPTION, lambda _: None)
    for level in range(1, MAX_LEVELS + 1):
        save_folder(tmp_path / f"{level}", DESCRIPTION, nested_in(tmp_path / f"{level - 1}"))
    deepest = open_folder(tmp_path / f"{MAX_LEVELS}")
    for _ in range(MAX_LEVELS):
        deepest = deepest.part("x")
    deepest.verify()
    with pytest.raises(ValueError, match="nested deeper"):
        save_folder(tmp_path / "more", DESCRIPTION, nested_in(tmp_path / f"{MAX_LEVELS}"))
    shutil.copytree(tmp_path / f"{MAX_LEVELS}", tmp_path / "1" / "parts" / "x", dirs_exist_ok=True)
    refused(tmp_path / "1", "E_MODEL_FILE", "nested deeper")


def nested_in(part: Path) -> Callable[[FolderWriter], None]:
    return lambda writer: (shutil.copytree(part, writer.part("x")), None)[1]


# -- the content of files ------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["words.txt", "tables.safetensors", "parts/parser/words.txt"])
@pytest.mark.parametrize("place", [0, 5, -1])
def test_hostile_folder_changed_byte_is_found_by_verify(model: Path, name: str, place: int) -> None:
    data = bytearray((model / name).read_bytes())
    data[place] ^= 1
    (model / name).write_bytes(data)
    opened = open_folder(model)
    refused(model, "E_CHECKSUM", name, "SHA-256", verify=True)
    with pytest.raises(ModelFileError) as caught:
        opened.verify()
    assert caught.value.code == "E_CHECKSUM"


def test_hostile_folder_checksum_of_something_else(model: Path) -> None:
    edit(model, lambda value: value["files"]["words.txt"].update(sha256="0" * 64))
    open_folder(model)
    refused(model, "E_CHECKSUM", "words.txt", verify=True)


def test_hostile_folder_swapped_files(model: Path) -> None:
    def swap(value: dict[str, Any]) -> None:
        files = value["files"]
        files["words.txt"], files["tables.safetensors"] = files.values()

    edit(model, swap)
    (model / "words.txt").rename(model / "x")
    (model / "tables.safetensors").rename(model / "words.txt")
    (model / "x").rename(model / "tables.safetensors")
    with pytest.raises(ModelFileError) as caught:
        open_folder(model).tables()
    assert caught.value.code in ("E_MODEL_TABLES", "E_MODEL_FILE")


def test_hostile_folder_tables_are_a_text_of_the_right_size(model: Path) -> None:
    path = model / "tables.safetensors"
    path.write_bytes(b"x" * path.stat().st_size)
    opened = open_folder(model)
    for name in ("tables.safetensors", "words.txt"):
        with pytest.raises(ModelFileError) as caught:
            opened.tables(name)
        assert caught.value.code == "E_MODEL_TABLES"


def test_hostile_folder_spoilt_after_it_was_opened(model: Path) -> None:
    opened = open_folder(model)
    outside = model.parent / "tables.safetensors"
    (model / "tables.safetensors").rename(outside)
    (model / "tables.safetensors").symlink_to(outside)
    with pytest.raises(ModelFileError, match="symbolic link"):
        opened.tables()
    with pytest.raises(ModelFileError, match="symbolic link"):
        opened.file("tables.safetensors")
    shutil.rmtree(model)
    with pytest.raises(ModelFileError, match="removed or replaced"):
        opened.tables()
