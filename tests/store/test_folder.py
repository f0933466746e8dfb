"""A model folder is saved whole or not at all, and opens as it was saved."""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from treelm.errors import ModelFileError, OutputFileError
from treelm.store import folder as folder_module
from treelm.store import staging
from treelm.store.folder import FolderWriter, ModelFolder, open_folder, save_folder
from treelm.store.manifest import Description, Manifest, TrainingCorpus

HASH = "0" * 64
DESCRIPTION = Description(
    "ngram", {"order": 3}, corpora=[TrainingCorpus(name="t", sha256=HASH, sentences=2, tokens=9)]
)


def content(number: int) -> Callable[[FolderWriter], None]:
    def write(writer: FolderWriter) -> None:
        writer.tables("tables.safetensors", {"x": np.full(1000, number), "none": np.zeros(0)})
        writer.text("words.txt", f"word {number}\r\n")

    return write


def save(folder: Path, number: int = 1) -> None:
    save_folder(folder, DESCRIPTION, content(number))


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def number_in(folder: Path) -> int:
    """Return which content a folder holds, all of which agrees."""
    model = open_folder(folder, verify=True)
    number = int(model.tables()["x"][0])
    words = model.file("words.txt").read_bytes()
    model.check_unchanged()
    assert words == f"word {number}\r\n".encode()
    return number


def test_folder_round_trip(tmp_path: Path) -> None:
    save(tmp_path / "model")
    model = open_folder(tmp_path / "model")
    assert (model.manifest.system, model.manifest.config) == ("ngram", {"order": 3})
    assert model.path == tmp_path / "model"
    assert np.array_equal(model.tables()["x"], np.ones(1000))
    assert model.file("words.txt") == tmp_path / "model" / "words.txt"
    model.verify()
    found = sorted(path.name for path in model.path.iterdir())
    assert found == ["README.md", "manifest.json", "tables.safetensors", "words.txt"]
    assert list(tmp_path.iterdir()) == [tmp_path / "model"]


def test_folder_checksums_and_fingerprint(tmp_path: Path) -> None:
    save(tmp_path / "model")
    model = open_folder(tmp_path / "model")
    for name, record in model.manifest.files.items():
        data = (model.path / name).read_bytes()
        assert (record.size, record.sha256) == (len(data), hashlib.sha256(data).hexdigest())
    manifest = (model.path / "manifest.json").read_bytes()
    assert model.fingerprint == hashlib.sha256(manifest).hexdigest()


def test_folder_readme_is_for_people(tmp_path: Path) -> None:
    save(tmp_path / "model")
    readme = tmp_path / "model" / "README.md"
    text = readme.read_text()
    assert "# ngram model" in text
    assert "- t: sentences 2, tokens 9" in text
    assert "treelm.load(" in text
    readme.write_text("# My model\n")
    assert number_in(tmp_path / "model") == 1
    readme.unlink()
    assert number_in(tmp_path / "model") == 1


def test_folder_parts(tmp_path: Path) -> None:
    def write(writer: FolderWriter) -> None:
        content(1)(writer)
        save(writer.part("0"), 2)
        save_folder(writer.part("1"), DESCRIPTION, lambda inner: save(inner.part("deep"), 3))
        assert (writer.files, writer.parts) == (("tables.safetensors", "words.txt"), ("0", "1"))

    for _ in range(2):
        save_folder(tmp_path / "model", DESCRIPTION, write)
        model = open_folder(tmp_path / "model", verify=True)
        assert model.manifest.parts == ("0", "1")
        assert model.part("0").tables()["x"][0] == 2
        assert model.part("1").part("deep").tables()["x"][0] == 3
        assert open_folder(tmp_path / "model" / "parts" / "0").manifest.system == "ngram"
        assert names(tmp_path) == ["model"]
        assert names(tmp_path / "model" / "parts") == ["0", "1"]


def test_folder_without_files(tmp_path: Path) -> None:
    save_folder(tmp_path / "model", DESCRIPTION, lambda _: None)
    model = open_folder(str(tmp_path / "model"))  # type: ignore[arg-type]
    assert dict(model.manifest.files) == {}
    for call in (model.tables, lambda: model.file("words.txt"), lambda: model.part("parser")):
        with pytest.raises(ModelFileError, match="lists no") as caught:
            call()
        assert caught.value.code == "E_MODEL_FILE"


def test_folder_can_be_moved_and_copied(tmp_path: Path) -> None:
    save(tmp_path / "model")
    (tmp_path / "model").rename(tmp_path / "moved")
    shutil.copytree(tmp_path / "moved", tmp_path / "copied")
    (tmp_path / "copied" / ".DS_Store").write_bytes(b"left by a file manager")
    assert number_in(tmp_path / "moved") == number_in(tmp_path / "copied") == 1
    (tmp_path / "link").symlink_to("moved")  # the user may link to a model
    assert number_in(tmp_path / "link") == 1


def test_folder_opens_as_version_control_and_hubs_leave_it(tmp_path: Path) -> None:
    save(tmp_path / "model")
    for name in (".git", ".cache"):
        (tmp_path / "model" / name).mkdir()
        (tmp_path / "model" / name / "anything").touch()
        with pytest.raises(OutputFileError, match=f"this folder holds {name}"):
            save(tmp_path / "model", 2)
    (tmp_path / "model" / ".gitattributes").touch()
    assert number_in(tmp_path / "model") == 1
    (tmp_path / "model" / ".gitignore").touch()
    with pytest.raises(ModelFileError, match="the manifest does not list"):
        open_folder(tmp_path / "model")


def into_blobs(snapshot: Path, blobs: Path) -> None:
    """Move the files of a model into the cache of a hub, and leave links as hubs do."""
    blobs.mkdir()
    for path in [path for path in snapshot.rglob("*") if path.is_file()]:
        blob = blobs / hashlib.sha256(path.read_bytes()).hexdigest()
        path.rename(blob)
        path.symlink_to(os.path.relpath(blob, path.parent))


@pytest.mark.parametrize("inside", [".", "english/large"])
def test_folder_opens_in_the_cache_of_a_hub(tmp_path: Path, inside: str) -> None:
    cache = tmp_path / "models--me--ferry"
    model = cache / "snapshots" / "5f3a" / inside
    model.parent.mkdir(parents=True)

    def write(writer: FolderWriter) -> None:
        content(1)(writer)
        save_folder(writer.part("parser"), DESCRIPTION, content(2))

    save_folder(model, DESCRIPTION, write)
    into_blobs(cache / "snapshots" / "5f3a", cache / "blobs")
    assert all(path.is_symlink() for path in model.iterdir() if path.name != "parts")
    (tmp_path / "link").symlink_to(model)
    for place in (model, tmp_path / "link"):
        assert number_in(place) == 1
        assert open_folder(place, verify=True).part("parser").tables()["x"][0] == 2
    blob = open_folder(model).file("words.txt")
    assert blob.parent == cache / "blobs"
    blob.write_bytes(b"word 7\r\n")
    with pytest.raises(ModelFileError, match=r"words\.txt: the content is not what was saved"):
        open_folder(model, verify=True)


def test_folder_follows_links_into_its_own_tree(tmp_path: Path) -> None:
    save(tmp_path / "model")
    objects = tmp_path / "model" / ".git" / "annex"
    objects.mkdir(parents=True)
    for name in ("words.txt", "manifest.json", "tables.safetensors"):
        (tmp_path / "model" / name).rename(objects / name)
        (tmp_path / "model" / name).symlink_to(f".git/annex/{name}")
    assert number_in(tmp_path / "model") == 1


OUTSIDE = {
    "beside the folder": "../words.txt",
    "absolute": "/etc/hostname",
    "another name in the blobs": "../../blobs/words.txt",
    "a folder in the blobs": f"../../blobs/deep/{HASH}",
    "a link in the blobs": f"../../blobs/{'1' * 64}",
    "another snapshot": "../6b6b/words.txt",
    "through a folder that is a link": ".cache/out/words.txt",
    "the folder itself": ".",
    "nothing": ".cache/missing",
    "itself": "words.txt",
}


@pytest.mark.parametrize("target", OUTSIDE.values(), ids=OUTSIDE)
def test_folder_follows_no_other_link(tmp_path: Path, target: str) -> None:
    model, blobs = tmp_path / "snapshots" / "5f3a", tmp_path / "blobs"
    model.parent.mkdir()
    save(model)
    words = (model / "words.txt").read_bytes()
    (blobs / "deep").mkdir(parents=True)
    (model / ".cache").mkdir()
    (model / ".cache" / "out").symlink_to(tmp_path)
    (tmp_path / "snapshots" / "6b6b").mkdir()
    for place in ("words.txt", f"deep/{HASH}"):
        (blobs / place).write_bytes(words)
    for folder in (tmp_path, tmp_path / "snapshots", tmp_path / "snapshots" / "6b6b"):
        (folder / "words.txt").write_bytes(words)
    (blobs / ("1" * 64)).symlink_to("words.txt")
    (model / "words.txt").unlink()
    (model / "words.txt").symlink_to(target)
    with pytest.raises(ModelFileError, match=r"words\.txt: this is") as caught:
        open_folder(model)
    assert caught.value.code == "E_MODEL_FILE"
    (model / "words.txt").unlink()
    (blobs / HASH).write_bytes(words)
    (model / "words.txt").symlink_to(f"../../blobs/{HASH}")
    assert number_in(model) == 1  # all else was as it should be


def test_folder_relative_path_survives_another_working_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    save(Path("model"))
    model = open_folder(Path("model"))
    monkeypatch.chdir("/")
    assert model.tables()["x"][0] == 1


@pytest.mark.parametrize("can_exchange", [True, False])
def test_folder_replaces_a_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, can_exchange: bool
) -> None:
    if not can_exchange:
        monkeypatch.setattr(staging, "exchange", lambda first, second: False)
    save(tmp_path / "model", 1)
    before = open_folder(tmp_path / "model")
    mapped = before.tables()["x"]
    save(tmp_path / "model", 2)
    assert number_in(tmp_path / "model") == 2
    assert mapped[-1] == 1
    assert names(tmp_path) == ["model"]
    with pytest.raises(ModelFileError, match="removed or replaced"):
        before.tables()
    with pytest.raises(ModelFileError, match="removed or replaced"):
        before.verify()


def test_folder_exchange_swaps_two_folders_or_does_nothing(tmp_path: Path) -> None:
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
        (tmp_path / name / name).touch()
    if staging.exchange(tmp_path / "first", tmp_path / "second"):
        assert (tmp_path / "first" / "second").exists()
        assert (tmp_path / "second" / "first").exists()
    else:
        assert (tmp_path / "first" / "first").exists()
    assert not staging.exchange(tmp_path / "first", tmp_path / "missing")


def test_folder_replaces_an_empty_folder_and_what_a_link_points_to(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "link").symlink_to("empty")
    save(tmp_path / "link")
    assert (tmp_path / "link").is_symlink()
    assert number_in(tmp_path / "empty") == 1
    save(tmp_path / "link", 2)
    assert number_in(tmp_path / "empty") == 2
    assert names(tmp_path) == ["empty", "link"]


def test_folder_replaces_a_damaged_or_foreign_version_of_a_model(tmp_path: Path) -> None:
    save(tmp_path / "model")
    (tmp_path / "model" / "words.txt").unlink()
    manifest = tmp_path / "model" / "manifest.json"
    manifest.write_text(manifest.read_text().replace('"version": 1', '"version": 7'))
    save(tmp_path / "model", 2)
    assert number_in(tmp_path / "model") == 2


@pytest.mark.parametrize(
    "make",
    [
        lambda path: path.write_text("thesis"),
        lambda path: (path.mkdir(), (path / "thesis.tex").write_text("thesis")),
        lambda path: (path.mkdir(), (path / "README.md").write_text("thesis")),
        lambda path: (path.mkdir(), (path / "manifest.json").write_text("{}")),
        lambda path: (path.mkdir(), (path / "manifest.json").write_text('{"format": ')),
        lambda path: (save(path), (path / "thesis.tex").write_text("thesis")),
        lambda path: (save(path), (path / "sub").mkdir()),
        lambda path: (save(path), (path / "parts").mkdir(), (path / "parts" / "x").mkdir()),
        lambda path: (save(path), (path / "words.txt").unlink(), (path / "words.txt").mkdir()),
    ],
)
def test_folder_anything_else_is_not_replaced(
    tmp_path: Path, make: Callable[[Path], object]
) -> None:
    path = tmp_path / "model"
    make(path)
    before = sorted((str(found), found.is_dir()) for found in tmp_path.rglob("*"))
    called = []
    with pytest.raises(OutputFileError, match="model") as caught:
        save_folder(path, DESCRIPTION, called.append)
    assert (caught.value.code, caught.value.exit_code) == ("E_OUTPUT", 1)
    assert not called  # refused before the work, not after it
    assert sorted((str(found), found.is_dir()) for found in tmp_path.rglob("*")) == before


def test_folder_foreign_file_in_a_part_is_not_removed(tmp_path: Path) -> None:
    def write(writer: FolderWriter) -> None:
        save(writer.part("parser"))

    save_folder(tmp_path / "model", DESCRIPTION, write)
    save_folder(tmp_path / "model", DESCRIPTION, write)
    (tmp_path / "model" / "parts" / "parser" / "thesis.tex").touch()
    with pytest.raises(OutputFileError, match=r"parts/parser/thesis\.tex"):
        save_folder(tmp_path / "model", DESCRIPTION, write)


def test_folder_file_that_appears_while_saving_is_not_removed(tmp_path: Path) -> None:
    save(tmp_path / "model")

    def write(writer: FolderWriter) -> None:
        (tmp_path / "model" / "thesis.tex").touch()

    with pytest.raises(OutputFileError, match=r"thesis\.tex"):
        save_folder(tmp_path / "model", DESCRIPTION, write)
    assert (tmp_path / "model" / "thesis.tex").exists()
    assert names(tmp_path) == ["model"]


@pytest.mark.parametrize("exists", [True, False])
@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt, MemoryError, SystemExit])
def test_folder_failure_leaves_what_stood_there(
    tmp_path: Path, exists: bool, error: type[BaseException]
) -> None:
    if exists:
        save(tmp_path / "model")

    def write(writer: FolderWriter) -> None:
        content(2)(writer)
        save(writer.part("parser"))
        raise error

    with pytest.raises(error):
        save_folder(tmp_path / "model", DESCRIPTION, write)
    assert names(tmp_path) == (["model"] if exists else [])
    assert not exists or number_in(tmp_path / "model") == 1


@pytest.mark.parametrize("failing", [1, 2])
def test_folder_failed_rename_brings_the_old_model_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failing: int
) -> None:
    save(tmp_path / "model")
    rename = Path.rename
    calls = 0

    def fail(self: Path, target: Path) -> Path:
        nonlocal calls
        if self.parent.name == "parts" or self.name not in ("new", "model"):
            return rename(self, target)
        if self.name == "model" or calls:
            calls += 1
        if calls == failing:
            raise OSError(5, "Input/output error")
        return rename(self, target)

    monkeypatch.setattr(staging, "exchange", lambda first, second: False)
    monkeypatch.setattr(Path, "rename", fail)
    with pytest.raises(OutputFileError, match="Input/output error"):
        save(tmp_path / "model", 2)
    assert number_in(tmp_path / "model") == 1
    assert names(tmp_path) == ["model"]


def test_folder_nothing_is_visible_while_a_save_runs(tmp_path: Path) -> None:
    seen: list[object] = []

    def write(writer: FolderWriter) -> None:
        content(1)(writer)
        seen.append((tmp_path / "model").exists())
        seen.extend(path.name[0] for path in tmp_path.iterdir())
        for path in tmp_path.rglob("*"):
            if path.is_dir():
                with pytest.raises(ModelFileError) as caught:
                    open_folder(path)
                assert caught.value.code == "E_NO_MODEL"

    save_folder(tmp_path / "model", DESCRIPTION, write)
    assert seen == [False, "."]


@pytest.mark.parametrize("name", ["", "..", "a/b", "/etc/passwd", "README.md", "parts", "ä", ".x"])
def test_folder_impossible_names(tmp_path: Path, name: str) -> None:
    with pytest.raises(ValueError, match="name"):
        save_folder(tmp_path / "model", DESCRIPTION, lambda writer: writer.text(name, ""))
    assert not names(tmp_path)


def test_folder_same_name_twice(tmp_path: Path) -> None:
    def write(writer: FolderWriter) -> None:
        writer.text("words.txt", "")
        with pytest.raises(ValueError, match="taken"):
            writer.file("Words.txt")
        save(writer.part("a"))
        with pytest.raises(ValueError, match="taken"):
            writer.part("A")

    save_folder(tmp_path / "model", DESCRIPTION, write)


@pytest.mark.parametrize(
    "write",
    [
        lambda writer: writer.file("words.txt"),
        lambda writer: writer.file("words.txt").mkdir(),
        lambda writer: writer.file("words.txt").symlink_to("/etc/passwd"),
        lambda writer: os.mkfifo(writer.file("words.txt")),
        lambda writer: (writer.file("a.txt").parent / "b.txt").touch(),
        lambda writer: (writer.text("a", ""), (writer.file("b").parent / "c").mkdir()),
        lambda writer: writer.part("parser"),
        lambda writer: writer.part("parser").mkdir(),
        lambda writer: (save(writer.part("a")), (writer.part("b").parent / "a" / "x").touch()),
        lambda writer: (save(writer.part("a")), (writer.part("b").parent / "c").touch()),
    ],
)
def test_folder_what_is_written_must_be_a_model(
    tmp_path: Path, write: Callable[[FolderWriter], None]
) -> None:
    with pytest.raises(ValueError, match=r"not written|no model"):
        save_folder(tmp_path / "model", DESCRIPTION, write)
    assert not names(tmp_path)


def test_folder_impossible_description_is_refused_before_the_work(tmp_path: Path) -> None:
    called: list[FolderWriter] = []
    with pytest.raises(ValueError, match="system"):
        save_folder(tmp_path / "model", Description("No System"), called.append)
    assert not called
    assert not names(tmp_path)


def test_folder_around_must_exist(tmp_path: Path) -> None:
    with pytest.raises(OutputFileError, match="Does the folder around it exist"):
        save(tmp_path / "missing" / "model")
    assert not names(tmp_path)


def test_folder_error_names_the_place_the_user_knows(tmp_path: Path) -> None:
    def write(writer: FolderWriter) -> None:
        save(writer.part("parser") / "below" / "model")

    with pytest.raises(OutputFileError) as caught:
        save_folder(tmp_path / "model", DESCRIPTION, write)
    assert str(caught.value).startswith(f"{tmp_path}/model/parts/parser/below/model: ")


def test_folder_several_savers_of_one_name(tmp_path: Path) -> None:
    """The last one wins; nobody sees a mixture, and nothing is left over."""
    path = tmp_path / "model"
    save(path, 0)
    errors: list[Exception] = []

    def work(number: int) -> None:
        try:
            for _ in range(5):
                save(path, number)
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(1, 4)]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        try:
            assert number_in(path) in range(4)
        except FileNotFoundError:  # replaced between asking for the path and reading
            pass
        except ModelFileError as error:  # replaced between opening and reading
            assert error.code in ("E_MODEL_FILE", "E_MODEL_TABLES")  # noqa: PT017
    for thread in threads:
        thread.join()
    assert not errors
    assert number_in(path) in range(1, 4)
    assert names(tmp_path) == ["model"]


def test_folder_replaced_while_it_is_opened_is_opened_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither a mixture of two models nor an error about one that is gone."""
    save(tmp_path / "model", 1)
    check_entries = folder_module.check_entries

    def replace_first(folder: Path, manifest: Manifest) -> None:
        monkeypatch.setattr(folder_module, "check_entries", check_entries)
        save(tmp_path / "model", 22222)
        check_entries(folder, manifest)

    monkeypatch.setattr(folder_module, "check_entries", replace_first)
    model = open_folder(tmp_path / "model", verify=True)
    assert model.tables()["x"][0] == 22222


def test_folder_permissions_are_the_usual_ones(tmp_path: Path) -> None:
    save(tmp_path / "model")
    (tmp_path / "usual").mkdir()
    (tmp_path / "usual" / "file").touch()
    assert (tmp_path / "model").stat().st_mode == (tmp_path / "usual").stat().st_mode
    for path in (tmp_path / "model").iterdir():
        assert path.stat().st_mode == (tmp_path / "usual" / "file").stat().st_mode


def test_folder_is_immutable(tmp_path: Path) -> None:
    save(tmp_path / "model")
    model = open_folder(tmp_path / "model")
    assert isinstance(model, ModelFolder)
    with pytest.raises(AttributeError):
        model.path = tmp_path  # type: ignore[misc]


def test_folder_place_that_another_save_takes_for_a_leftover_is_made_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[str] = []

    def make(**options: str) -> str:
        made.append(mkdtemp(**options))
        if len(made) == 1:
            Path(made[0]).rmdir()
        return made[-1]

    mkdtemp = tempfile.mkdtemp
    monkeypatch.setattr(tempfile, "mkdtemp", make)
    save(tmp_path / "model", 3)
    assert number_in(tmp_path / "model") == 3
    assert len(made) == 2
    assert names(tmp_path) == ["model"]
