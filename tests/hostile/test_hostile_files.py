"""Files that are missing, damaged, in the way, or elsewhere than they should be."""

from __future__ import annotations

import bz2
import gzip
import lzma
import os
import resource
import stat
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.command_line import (
    SANITIZED,
    assert_fine,
    assert_refused,
    finish,
    start_treelm,
    treelm,
    treelm_inside,
    treelm_peak_memory,
)
from tests.hostile.inputs import GOOD, READ

from treelm.corpus.brackets import read_trees
from treelm.corpus.corpus import TreeCorpus
from treelm.errors import CorpusFormatError, InputFileError

Capture = pytest.CaptureFixture[bytes]
as_root = pytest.mark.skipif(os.geteuid() == 0, reason="root may do everything")

#: Commands that read one file, which follows.
READERS = {
    "transform": ["transform", "--pipeline", "clean"],
    "treelet": ["transform"],
    "markovize": ["transform", "--pipeline", "markovize"],
    "draw": ["draw"],
    "inspect": ["inspect"],
    "tokenize": ["tokenize"],
    "gold": ["evaluate", "parses", os.devnull],
    "temporal": ["transform", os.devnull, "--temporal"],
}


@pytest.mark.parametrize("command", READERS)
def test_hostile_files_missing(tmp_path: Path, capfdbinary: Capture, command: str) -> None:
    file = tmp_path / "missing.mrg"
    done = treelm_inside(capfdbinary, *READERS[command], file)
    assert_refused(done, 3, f"{file}: there is no such file")
    assert done.stdout == b""


@pytest.mark.parametrize("command", READERS)
@pytest.mark.parametrize("suffix", ["", ".mrg", ".gz", ".xz"])
def test_hostile_files_folder(
    tmp_path: Path, capfdbinary: Capture, command: str, suffix: str
) -> None:
    folder = tmp_path / f"folder{suffix}"
    folder.mkdir()
    done = treelm_inside(capfdbinary, *READERS[command], folder)
    assert_refused(done, 3, str(folder), "folder")
    assert done.stdout == b""


@as_root
@pytest.mark.parametrize("command", READERS)
def test_hostile_files_unreadable(tmp_path: Path, capfdbinary: Capture, command: str) -> None:
    file = tmp_path / "secret.mrg"
    file.write_bytes(GOOD)
    file.chmod(0)
    done = treelm_inside(capfdbinary, *READERS[command], file)
    assert_refused(done, 3, str(file), "permission")


@pytest.mark.parametrize(
    "name",
    [
        "",
        "a" * 300,
        "file.mrg/x",
        "loop",
    ],
    ids=["empty", "too long", "below a file", "loop"],
)
def test_hostile_files_impossible_names(tmp_path: Path, capfdbinary: Capture, name: str) -> None:
    (tmp_path / "file.mrg").write_bytes(GOOD)
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    source = f"{tmp_path}/{name}" if name else ""
    done = treelm_inside(capfdbinary, "draw", source)
    assert_refused(done, 3)


def test_hostile_files_name_that_is_no_text(tmp_path: Path) -> None:
    file = os.fsencode(tmp_path) + b"/\xff\xfe.mrg"
    Path(os.fsdecode(file)).write_bytes(b"(S (NP a b))\n")
    done = treelm("transform", "--pipeline", "clean", file)
    assert_refused(done, 3, "\\udcff\\udcfe.mrg:1:10", "E_MULTI_WORD")


def test_hostile_files_name_that_is_no_text_in_a_report(tmp_path: Path) -> None:
    file = os.fsencode(tmp_path) + b"/\xff\xfe.mrg"
    Path(os.fsdecode(file)).write_bytes(GOOD * 300 + b"(S (NP a b))\n")
    done = treelm("inspect", file, env={"PYTHONIOENCODING": "utf-8:strict"})
    assert b"E_MULTI_WORD" in assert_fine(done)


@pytest.mark.parametrize("exists", [True, False])
def test_hostile_files_name_with_escape_sequence(
    tmp_path: Path, capfdbinary: Capture, exists: bool
) -> None:
    file = tmp_path / "\x1b[31mred\nline.mrg"
    if exists:
        file.write_bytes(b"(S (NP a b))\n")
    assert_refused(treelm_inside(capfdbinary, "transform", "--pipeline", "clean", file), 3)


@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
def test_hostile_files_output_in_another_encoding(tmp_path: Path, encoding: str) -> None:
    file = tmp_path / "greek.mrg"
    file.write_text("(S (NN Σίσυφος))\n", encoding="utf-8")
    for arguments in (("inspect", file), ("demo",)):
        done = treelm(*arguments, env={"PYTHONIOENCODING": encoding})
        assert_fine(done, None)


def test_hostile_files_draw_in_another_encoding(tmp_path: Path) -> None:
    file = tmp_path / "greek.mrg"
    file.write_text("(S (NN Σίσυφος))\n", encoding="utf-8")
    for command in ("draw", "transform"):
        done = treelm(command, "-q", file, env={"PYTHONIOENCODING": "ascii", "LC_ALL": "C"})
        assert "Σίσυφος" in assert_fine(done).decode()


def damaged(compress: Callable[[bytes], bytes], kind: str) -> bytes:
    content = compress(b"".join(b"(S (NN word%d))\n" % (i * 7919) for i in range(5_000)))
    half = len(content) // 2
    if kind == "truncated":
        return content[:half]
    if kind == "corrupt":
        return (
            content[:half]
            + bytes(byte ^ 0x55 for byte in content[half : half + 50])
            + content[half + 50 :]
        )
    if kind == "header only":
        return content[:8]
    return GOOD * 10  # not compressed at all


@pytest.mark.parametrize("suffix", [".gz", ".bz2", ".xz"])
@pytest.mark.parametrize("kind", ["truncated", "corrupt", "header only", "wrong suffix"])
def test_hostile_files_damaged_compression(
    tmp_path: Path, capfdbinary: Capture, suffix: str, kind: str
) -> None:
    compress = {".gz": gzip.compress, ".bz2": bz2.compress, ".xz": lzma.compress}[suffix]
    file, target = tmp_path / f"trees.mrg{suffix}", tmp_path / "out.mrg"
    target.write_bytes(b"before")
    file.write_bytes(damaged(compress, kind))
    for command in ("transform", "markovize", "draw", "tokenize"):
        done = treelm_inside(capfdbinary, *READERS[command], file, "-o", target)
        assert_refused(done, 3, str(file), "damaged", "suffix")
        assert target.read_bytes() == b"before"
        assert sorted(tmp_path.iterdir()) == sorted([file, target])
    with pytest.raises(InputFileError) as caught:
        list(read_trees(file))
    assert caught.value.code == "E_COMPRESSION"


@pytest.mark.parametrize("suffix", [".gz", ".bz2", ".xz"])
def test_hostile_files_several_compressed_streams_are_one_file(
    tmp_path: Path, capfdbinary: Capture, suffix: str
) -> None:
    compress = {".gz": gzip.compress, ".bz2": bz2.compress, ".xz": lzma.compress}[suffix]
    file = tmp_path / f"trees.mrg{suffix}"
    file.write_bytes(compress(GOOD[:10]) + compress(GOOD[10:] + GOOD))
    done = treelm_inside(capfdbinary, *READERS["transform"], file)
    assert assert_fine(done) == READ * 2


@pytest.mark.skipif(SANITIZED, reason="a sanitizer needs more memory than the limit")
def test_hostile_files_decompression_bomb_in_constant_memory(tmp_path: Path) -> None:
    file = tmp_path / "bomb.mrg.xz"
    file.write_bytes(lzma.compress(b"\n" * 60_000_000, preset=0))
    done, peak = treelm_peak_memory("transform", "--pipeline", "clean", file)
    assert_refused(done, 3, "contains no trees")
    assert peak < 256


def test_hostile_files_vanishes_between_two(tmp_path: Path) -> None:
    first, second, target = tmp_path / "first", tmp_path / "second", tmp_path / "out.mrg"
    os.mkfifo(first)
    second.write_bytes(GOOD)
    process = start_treelm("transform", "--pipeline", "clean", first, second, "-o", target)
    with first.open("wb") as pipe:  # waits until the program reads it
        second.unlink()
        pipe.write(GOOD)
    assert_refused(finish(process), 3, f"{second}: there is no such file")
    assert list(tmp_path.iterdir()) == [first]


def test_hostile_files_shrinks_while_read(tmp_path: Path, capfdbinary: Capture) -> None:
    """A size that changes under the progress bar is no reason to fail."""
    file = tmp_path / "trees.mrg"
    file.write_bytes(GOOD * 100)
    trees = iter(read_trees(file))
    next(trees)
    file.write_bytes(b"")
    assert len(list(trees)) == 99


@pytest.mark.parametrize("command", ["transform", "markovize", "draw", "tokenize"])
@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_hostile_files_output_folder_missing(
    tmp_path: Path, capfdbinary: Capture, command: str, suffix: str
) -> None:
    file, target = tmp_path / "trees.mrg", tmp_path / "no" / f"out{suffix}"
    file.write_bytes(GOOD)
    done = treelm_inside(capfdbinary, *READERS[command], file, "-o", target)
    assert_refused(done, 1, str(target), "folder")
    assert list(tmp_path.iterdir()) == [file]


@as_root
def test_hostile_files_output_folder_is_read_only(tmp_path: Path, capfdbinary: Capture) -> None:
    file, folder = tmp_path / "trees.mrg", tmp_path / "folder"
    file.write_bytes(GOOD)
    folder.mkdir()
    folder.chmod(0o555)
    done = treelm_inside(capfdbinary, *READERS["transform"], file, "-o", folder / "out")
    assert_refused(done, 1, str(folder / "out"))
    folder.chmod(0o755)
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize("name", ["folder", ".", "folder/"])
def test_hostile_files_output_is_a_folder(tmp_path: Path, capfdbinary: Capture, name: str) -> None:
    file, folder = tmp_path / "trees.mrg", tmp_path / "folder"
    file.write_bytes(GOOD)
    folder.mkdir()
    done = treelm_inside(capfdbinary, *READERS["transform"], file, "-o", f"{tmp_path}/{name}")
    assert_refused(done, 1, str(tmp_path))
    assert sorted(tmp_path.iterdir()) == [folder, file]
    assert list(folder.iterdir()) == []


def test_hostile_files_output_into_a_named_pipe(tmp_path: Path) -> None:
    """What is no regular file cannot be replaced; as root not even /dev/null would survive."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reading = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        done = treelm("transform", "--pipeline", "clean", "-o", pipe, stdin=GOOD)
        assert_fine(done)
        assert stat.S_ISFIFO(pipe.stat().st_mode)
        assert os.read(reading, 1000) == READ
    finally:
        os.close(reading)


@pytest.fixture
def full_device(tmp_path: Path) -> Path:
    """A device that is always full; for root a copy, because a mistake would destroy the real one."""
    if os.geteuid():
        return Path("/dev/full")
    device = tmp_path / "full"
    try:
        os.mknod(device, stat.S_IFCHR | 0o666, os.makedev(1, 7))
        device.open("wb").close()
    except OSError:
        pytest.skip("no device can be made here")
    return device


def test_hostile_files_output_device_is_full(full_device: Path) -> None:
    done = treelm("transform", "--pipeline", "clean", "-o", full_device, stdin=GOOD)
    assert_refused(done, 1, str(full_device))
    assert stat.S_ISCHR(full_device.stat().st_mode)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")
@pytest.mark.parametrize(
    ("command", "size"),
    [
        ("transform", 1),
        ("transform", 50_000),
        ("markovize", 500),
        ("draw", 1),
        ("draw", 500),
        ("tokenize", 1),
        ("inspect", 1),
    ],
)
def test_hostile_files_standard_output_is_full(tmp_path: Path, command: str, size: int) -> None:
    file = tmp_path / "input"
    file.write_bytes(b"It rained .\n" if command == "tokenize" else GOOD * size)
    with Path("/dev/full").open("wb") as full:
        done = finish(start_treelm(*READERS[command], file, stdout=full.fileno()))
    assert_refused(done, 1, "No space left")


@pytest.mark.parametrize(
    ("command", "suffix"),
    [*(("transform", suffix) for suffix in ("", ".gz", ".bz2", ".xz")), ("tokenize", "")],
)
def test_hostile_files_disk_is_full(tmp_path: Path, command: str, suffix: str) -> None:
    """A limit on the size of files acts as a full disk does."""
    file, target = tmp_path / "trees.mrg", tmp_path / f"out{suffix}"
    line = b"word%d .\n" if command == "tokenize" else b"(S (NN word%d))\n"
    file.write_bytes(b"".join(line % (i * 7919) for i in range(20_000)))
    target.write_bytes(b"before")
    process = start_treelm(
        *READERS[command], file, "-o", target, limits={resource.RLIMIT_FSIZE: 20_000}
    )
    assert_refused(finish(process), 1, str(target), "nothing was changed")
    assert target.read_bytes() == b"before"
    assert sorted(tmp_path.iterdir()) == sorted([file, target])


def test_hostile_files_docs_that_do_not_match(tmp_path: Path, capfdbinary: Capture) -> None:
    file = tmp_path / "trees.mrg"
    file.write_bytes(GOOD * 3)
    for names in (b"one\none\n", b"one\none\ntwo\ntwo\n", b""):
        (tmp_path / "trees.docs").write_bytes(names)
        with pytest.raises(CorpusFormatError, match=r"trees\.docs") as caught:
            list(TreeCorpus((file,)).with_documents())
        assert caught.value.code == "E_DOCUMENTS"
        assert_fine(treelm_inside(capfdbinary, *READERS["transform"], file))


def test_hostile_files_docs_that_do_not_match_are_reported(
    tmp_path: Path, capfdbinary: Capture
) -> None:
    file = tmp_path / "trees.mrg"
    file.write_bytes(GOOD * 3)
    (tmp_path / "trees.docs").write_bytes(b"one\none\n")
    done = treelm_inside(capfdbinary, "inspect", file)
    assert b"trees.docs" in done.stdout + done.stderr


def test_hostile_files_docs_that_are_no_text(tmp_path: Path, capfdbinary: Capture) -> None:
    file = tmp_path / "trees.mrg"
    file.write_bytes(GOOD * 3)
    (tmp_path / "trees.docs").write_bytes(b"one\n\xff\nthree\n")
    done = treelm_inside(capfdbinary, "inspect", file)
    assert_refused(done, 3, "trees.docs:2:1", "UTF-8")


@pytest.mark.parametrize(
    ("content", "code"),
    [(b"week\t1\n", 3), (b"week\tx\ty\n", 3), (b"\xff\n", 3), (b"\n\n", 0), (b"a b c\n", 3)],
)
def test_hostile_files_temporal_lexicon(
    tmp_path: Path, capfdbinary: Capture, content: bytes, code: int
) -> None:
    file, words = tmp_path / "trees.mrg", tmp_path / "words"
    file.write_bytes(GOOD)
    words.write_bytes(content)
    done = treelm_inside(capfdbinary, "transform", file, "--temporal", words)
    if code:
        assert_refused(done, code, f"{words}:1")
    else:
        assert_fine(done)


def test_hostile_files_text_of_ten_megabytes_without_a_line_end(tmp_path: Path) -> None:
    file = tmp_path / "text"
    for content in (b"a" * 10_000_000, b"." * 100_000, b"a. " * 60_000, b"\"'(" * 30_000):
        file.write_bytes(content)
        done = treelm("tokenize", file, processor_seconds=30)
        assert_fine(done)
