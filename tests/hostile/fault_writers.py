"""Every writer of the package, each tried with every call that changes the disk failing.

Run as a program under the layer of fault_layer.c: ``python -m tests.hostile.fault_writers WRITER
FOLDER``. What must hold is asserted here; the last line says how many calls were tried.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
from tests.models.composite_models import sample_parts
from tests.models.ngram_models import small_ngram

from treelm.corpus.corpus import TreeCorpus
from treelm.corpus.files import read_blocks, write_atomically
from treelm.corpus.sample_treebank import sample_path
from treelm.corpus.score_files import write_outcomes
from treelm.corpus.vocabulary_file import save_vocabulary
from treelm.errors import OutputFileError
from treelm.grammar.forest_file import ForestFile
from treelm.grammar.forest_format import ForestHeader
from treelm.grammar.forest_writer import open_forest
from treelm.models.composite.checkpoint import Checkpoint, TrainingState
from treelm.models.composite.config import CompositeConfig
from treelm.models.composite.em import Data, first_parts
from treelm.models.composite.parts import CompositeShape
from treelm.models.mixture.model import interpolate
from treelm.models.ngram.arpa import write_arpa
from treelm.models.pcfg.config import PcfgConfig
from treelm.models.pcfg.train import train_pcfg
from treelm.store.folder import open_folder
from treelm.store.tables import open_tables, write_tables
from treelm.tasks.report.folder import FORMAT, SCORES, json_text, write_folder
from treelm.transforms.temporal_lexicon import TemporalLexicon

#: No case needs more calls; a writer that never ends is wrong.
MOST_CALLS = 2000


class Writer(NamedTuple):
    """A writer of one file or folder.

    Args:
        name: What it writes, in the folder.
        write: Writes it, given its path and which of two contents.
        content: Returns what is there.
    """

    name: str
    write: Callable[[Path, int], None]
    content: Callable[[Path], object]


class Layer:
    """The layer, armed for a while."""

    def __init__(self) -> None:
        self._library = ctypes.CDLL(None)
        self._library.fault_from.argtypes = (ctypes.c_long, ctypes.c_long, ctypes.c_int)
        self._library.fault_calls.restype = ctypes.c_long

    @contextlib.contextmanager
    def armed(self, first: int, last: int, error: int) -> Iterator[None]:
        self._library.fault_from(first, last, error)
        try:
            yield
        finally:
            self._library.fault_stop()

    @property
    def calls(self) -> int:
        return int(self._library.fault_calls())


def file_bytes(path: Path) -> bytes:
    return b"".join(read_blocks(path))


def folder_bytes(path: Path) -> dict[str, bytes]:
    return {
        str(file.relative_to(path)): file.read_bytes()
        for file in sorted(path.rglob("*"))
        if file.is_file() and file.name not in ("manifest.json", "README.md")
    }


def model_bytes(path: Path) -> dict[str, bytes]:
    open_folder(path, verify=True)
    return folder_bytes(path)


def plain(path: Path, which: int) -> None:
    with write_atomically(path) as file:
        for _ in range(3):
            file.write(b"%d" % which * 100_000)


def tables(path: Path, which: int) -> None:
    write_tables(path, {"a": np.full(50_000, which), "b": np.arange(9)}, {"which": str(which)})


def table_content(path: Path) -> object:
    return file_bytes(path), open_tables(path).metadata


MODELS = [small_ngram(["the boat left", text], order=2) for text in ("a boat came", "it left")]


def mixture(path: Path, which: int) -> None:
    interpolate([MODELS[which], MODELS[which]], weights=[0.25, 0.75]).save(path)


def report(path: Path, which: int) -> None:
    def fill(folder: Path) -> None:
        (folder / "tables.md").write_text(f"{which}" * 1000)
        (folder / SCORES).mkdir()
        (folder / SCORES / "model.tsv").write_text("x")

    write_folder(path, fill, lambda files: json_text({"format": FORMAT, "files": files}))


def lexicon(path: Path, which: int) -> None:
    TemporalLexicon({"today": (which + 1, 5)}).save(path)


def training_states() -> tuple[CompositeShape, list[TrainingState]]:
    train, _ = sample_parts()
    text = train.text.part(0, 20)
    config = CompositeConfig(order=2, heads=1, stack_size=3, n_best=2)
    shape = CompositeShape(config, len(train.vocabulary), train.codes)
    parts, _ = first_parts(shape, Data(text), None)
    start = TrainingState(parts)
    return shape, [start, start.ended()]


def checkpoint_writer() -> Writer:
    shape, states = training_states()

    def content(path: Path) -> object:
        found = Checkpoint(path).load(shape, "key")
        return None if found is None else found.stage

    def write(path: Path, which: int) -> None:
        Checkpoint(path).save(states[which], "key")

    return Writer("model.training", write, content)


WRITERS: dict[str, Callable[[], Writer]] = {
    "file": lambda: Writer("file", plain, file_bytes),
    "gzip": lambda: Writer("file.gz", plain, file_bytes),
    "bzip2": lambda: Writer("file.bz2", plain, file_bytes),
    "xz": lambda: Writer("file.xz", plain, file_bytes),
    "tables": lambda: Writer("x.safetensors", tables, table_content),
    "scores": lambda: Writer("x", lambda p, w: write_outcomes(p, [bool(w)] * 9), file_bytes),
    "vocabulary": lambda: Writer(
        "words", lambda p, w: save_vocabulary(MODELS[w].vocabulary, p), file_bytes
    ),
    "lexicon": lambda: Writer("lexicon", lexicon, file_bytes),
    "arpa": lambda: Writer("x.arpa", lambda p, w: write_arpa(MODELS[w], p), file_bytes),
    "model": lambda: Writer("model", lambda p, w: MODELS[w].save(p), model_bytes),
    "model with parts": lambda: Writer("model", mixture, model_bytes),
    "report": lambda: Writer("report", report, folder_bytes),
    "checkpoint": checkpoint_writer,
}


def try_every_call(writer: Writer, folder: Path, *, replaces: bool, lasts: bool) -> int:
    """Let every call fail in turn; the target is the old one or the new one, and nothing else."""
    layer, path = Layer(), folder / writer.name
    contents = []
    for which in (1, 0):
        writer.write(path, which)
        contents.append(writer.content(path))
    new, old = contents
    assert new != old
    for number in range(1, MOST_CALLS):
        if not replaces:
            remove(path)
        failed = False
        with layer.armed(number, MOST_CALLS if lasts else number, errno.ENOSPC):
            try:
                writer.write(path, 1)
            except OutputFileError:
                failed = True
        tried = layer.calls
        left = {each.name for each in folder.iterdir()} - {writer.name}
        assert not left, f"call {number} left {left}"
        if failed:
            if replaces:
                found = writer.content(path)
                assert found in (old, new), f"call {number} changed it"
            elif path.exists() and writer.name.endswith(".training"):
                assert writer.content(path) in (None, new)
            else:
                assert not path.exists(), f"call {number} left the target"
            if replaces and writer.content(path) != old:
                writer.write(path, 0)
        else:
            assert writer.content(path) == new
            writer.write(path, 0)
            assert writer.content(path) == old
        if tried < number:
            assert not failed
            return number - 1
    raise AssertionError("it never ends")


def remove(path: Path) -> None:
    if path.is_dir():
        for each in sorted(path.rglob("*"), reverse=True):
            each.rmdir() if each.is_dir() else each.unlink()
        path.rmdir()
    else:
        path.unlink(missing_ok=True)


def try_every_forest_call(folder: Path, *, lasts: bool) -> int:
    """Let every call fail in turn; what is whole stays, and the next run finishes the file."""
    trees = list(TreeCorpus((sample_path(),)))[:9]
    sentences = [tree.words for tree in trees]
    found = train_pcfg(TreeCorpus.of_trees(trees), PcfgConfig()).k_best_many(sentences, 2)
    header = ForestHeader(k=2, parser="p", options={})
    layer, path = Layer(), folder / "x.forest"

    def write() -> None:
        with open_forest(path, header) as writer:
            writer.skip(iter(sentences))
            for first in range(writer.sentences, len(sentences), 3):
                writer.add(sentences[first : first + 3], found[first : first + 3])
            writer.finish()

    write()
    whole = path.read_bytes()
    for number in range(1, MOST_CALLS):
        path.unlink()
        failed = False
        with layer.armed(number, MOST_CALLS if lasts else number, errno.ENOSPC):
            try:
                write()
            except OutputFileError:
                failed = True
        tried = layer.calls
        if failed and path.stat().st_size:
            with ForestFile(path) as file:
                file.verify()
            assert whole.startswith(path.read_bytes()[: file.end])
        write()
        assert path.read_bytes() == whole, f"call {number}"
        if tried < number:
            assert not failed
            return number - 1
    raise AssertionError("it never ends")


def main(name: str, place: str) -> None:
    warnings.simplefilter("ignore")
    tried = 0
    for number, lasts in enumerate((False, True)):
        for replaces in (False, True):
            if name == "model with parts" and lasts == replaces:
                continue  # hundreds of calls each
            folder = Path(place) / f"{number}{replaces}"
            folder.mkdir()
            if name == "forest":
                tried += try_every_forest_call(folder, lasts=lasts)
            else:
                own = WRITERS[name]()
                tried += try_every_call(own, folder, replaces=replaces, lasts=lasts)
    sys.stdout.write(f"{tried}\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
