"""Places that cannot be written are refused before the work, and those that can are left alone."""

from __future__ import annotations

import errno
import os
import warnings
from pathlib import Path
from typing import Any

import pytest

from treelm.corpus import temporary
from treelm.corpus.target import ADDED_TO_NAME, LEAST_SPACE, check_file_target, check_place
from treelm.corpus.temporary import remove_leftovers
from treelm.errors import OutputFileError
from treelm.store.staging import staged


def refusal(check: Any, place: object) -> str:
    with pytest.raises(OutputFileError) as caught:
        check(place)
    assert caught.value.code == "E_OUTPUT"
    return str(caught.value)


def test_check_place_leaves_no_trace(tmp_path: Path) -> None:
    check_place(tmp_path / "new")
    check_file_target(tmp_path / "new")
    assert list(tmp_path.iterdir()) == []


def test_check_place_leaves_nothing_for_long_where_it_is_killed(tmp_path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of forks beside threads
        child = os.fork()
    if not child:
        Path.unlink = lambda *_, **__: os._exit(9)  # type: ignore[method-assign]
        check_place(tmp_path / "new")
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 9
    assert len(list(tmp_path.iterdir())) == 1
    remove_leftovers(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_check_place_names_what_is_missing(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert "missing does not exist" in refusal(check_place, tmp_path / "missing" / "x")
    assert "file is no folder" in refusal(check_place, tmp_path / "file" / "x")
    assert "this is a folder" in refusal(check_file_target, tmp_path)
    assert "cannot be the name of a file" in refusal(check_place, "a\0b")


def test_check_place_takes_the_longest_name_that_can_be_written(tmp_path: Path) -> None:
    most = os.pathconf(tmp_path, "PC_NAME_MAX")
    check_file_target(tmp_path / ("x" * most))
    (tmp_path / ("x" * most)).touch()
    assert f"at most {most}" in refusal(check_file_target, tmp_path / ("x" * (most + 1)))
    longest = tmp_path / ("y" * (most - ADDED_TO_NAME))
    check_place(longest, added=ADDED_TO_NAME)
    with staged(longest) as staging:  # the name that `added` speaks of
        staging.commit(lambda _: None)
    longer = tmp_path / ("y" * (most - ADDED_TO_NAME + 1))
    with pytest.raises(OutputFileError, match="shorter name"):
        check_place(longer, added=ADDED_TO_NAME)
    with pytest.raises(OSError, match="too long"), staged(longer):
        pass


def test_check_place_refuses_a_path_that_is_too_long(tmp_path: Path) -> None:
    folder = tmp_path
    while len(os.fsencode(folder)) < os.pathconf(tmp_path, "PC_PATH_MAX") - 300:
        folder /= "d" * 200
    folder.mkdir(parents=True)
    assert "whole path is too long" in refusal(check_place, folder / ("x" * 100))


def test_check_place_refuses_a_folder_that_takes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    monkeypatch.setattr(temporary, "temporary_file", refuse)
    assert os.strerror(errno.EROFS) in refusal(check_place, tmp_path / "x")


def test_check_place_refuses_a_full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = list(os.statvfs(tmp_path))
    found[4] = (LEAST_SPACE - 1) // found[1]  # blocks that are left
    monkeypatch.setattr(os, "statvfs", lambda _: os.statvfs_result(found))
    assert "is full" in refusal(check_place, tmp_path / "x")


def test_check_file_target_takes_streams_and_devices(monkeypatch: pytest.MonkeyPatch) -> None:
    check_file_target("-")
    check_file_target(os.devnull)
    monkeypatch.setattr("sys.stdout", None)
    assert "closed" in refusal(check_file_target, "-")
