"""A training that is stopped after any of its checkpoints gives the same model, files and report."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any

import pytest

import treelm.store.checkpoint as checkpoints
from treelm.corpus.corpus import TextCorpus, TreeCorpus
from treelm.corpus.labelled import LabelledSentences
from treelm.corpus.sample_treebank import sample_path
from treelm.grammar.forest_writer import ForestWriter
from treelm.models.interface import parsed_text
from treelm.models.pcfg.config import PcfgConfig
from treelm.models.pcfg.train import train_pcfg
from treelm.models.registry import SYSTEMS
from treelm.models.run import Event, Run
from treelm.store.manifest import MANIFEST, README
from treelm.tasks.parse_file import parse_into_file
from treelm.tasks.train import Trained, train_and_save

pytestmark = pytest.mark.slow

#: Small trainings, each with several checkpoints of every kind that the system has.
CASES: dict[str, tuple[str, dict[str, object]]] = {
    "pcfg_la": (
        "pcfg_la",
        {
            "seed": 1,
            "cycles": 2,
            "split_iterations": 2,
            "merge_iterations": 1,
            "smooth_iterations": 1,
        },
    ),
    "lsvm": ("lsvm", {"start": "zero", "rounds": 4, "regularization": 0.1}),
    "lsvm in parts": ("lsvm", {"start": "zero", "rounds": 3, "parts": 2}),
    "lsvm without memory": ("lsvm", {"memory": False, "rounds": 3, "regularization": 0.1}),
    "lsvm with fixed trees": ("lsvm", {"fixed_trees": True}),
    "plsa": ("plsa", {"topics": 2, "plsa_iterations": 3}),
    "plsa with words before": (
        "plsa",
        {"topics": 3, "keep_topics": 2, "order": 2, "plsa_iterations": 2, "iterations": 3},
    ),
    "plsa that converges": (
        "plsa",
        {"topics": 2, "order": 2, "plsa_iterations": 9, "iterations": 9, "tolerance": 0.02},
    ),
    "composite": (
        "composite",
        {
            "order": 2,
            "heads": 2,
            "topics": 3,
            "keep_topics": 3,
            "test_topics": 2,
            "iterations": 2,
            "follow_up": 2,
            "stack_size": 3,
            "n_best": 3,
            "tolerance": 0.0,
        },
    ),
    "composite that converges": (
        "composite",
        {
            "order": 2,
            "heads": 1,
            "topics": 2,
            "keep_topics": 2,
            "test_topics": 2,
            "iterations": 6,
            "follow_up": 6,
            "stack_size": 3,
            "n_best": 3,
            "tolerance": 0.05,
        },
    ),
    "composite without heads": (
        "composite",
        {"order": 2, "heads": 0, "topics": 2, "keep_topics": 2, "test_topics": 2, "iterations": 2},
    ),
    "slm": ("slm", {"iterations": 2, "follow_up": 2, "stack_size": 3, "n_best": 3}),
}


class Stopped(BaseException):
    """Ends a training where a signal would."""


@contextmanager
def stopped_after(checkpoint: int, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """Stop a training as soon as so many checkpoints are complete; give the names of their files."""
    written: list[str] = []
    write = checkpoints.write_tables

    def write_and_stop(path: Path, *arguments: Any) -> None:
        write(path, *arguments)
        written.append(path.name)
        if len(written) == checkpoint:
            raise Stopped

    with monkeypatch.context() as patch:
        patch.setattr(checkpoints, "write_tables", write_and_stop)
        yield written


def _swapped(sentence: str) -> str:
    words = sentence.split()
    middle = len(words) // 2
    words[middle - 1 : middle + 1] = reversed(words[middle - 1 : middle + 1])
    return " ".join(words)


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, object]]:
    """What each system is trained on, by its name."""
    folder = tmp_path_factory.mktemp("sources")
    lines = sample_path().read_bytes().splitlines(keepends=True)
    documents = sample_path().with_suffix(".docs").read_bytes().splitlines(keepends=True)
    for name, first, last in (("train", 0, 40), ("held_out", 40, 52)):
        (folder / f"{name}.mrg").write_bytes(b"".join(lines[first:last]))
        (folder / f"{name}.docs").write_bytes(b"".join(documents[first:last]))
    train, held_out = (TreeCorpus((folder / f"{name}.mrg",)) for name in ("train", "held_out"))
    sentences = [" ".join(tree.words) for batch in train.batches() for tree in batch]
    text = folder / "text"
    groups = ["\n".join(sentences[first : first + 4]) for first in range(0, len(sentences), 4)]
    text.write_text("\n\n".join(groups) + "\n")
    labelled = []
    for first in (0, 20):
        files = []
        for kind, change in (("good", str), ("bad", _swapped)):
            file = folder / f"{kind}{first}"
            file.write_text("".join(f"{change(own)}\n" for own in sentences[first : first + 20]))
            files.append(TextCorpus((file,)))
        labelled.append(LabelledSentences(*files))
    trees = {"corpus": train, "held_out": held_out}
    return {
        "pcfg_la": trees,
        "composite": trees,
        "slm": trees,
        "plsa": {"corpus": TextCorpus((text,))},
        "lsvm": {"data": labelled[0], "tuning": labelled[1], "trees": train},
    }


def contents(folder: Path) -> dict[str, bytes]:
    """Return the files of a model, without the time at which it was made."""
    return {
        str(path.relative_to(folder)): re.sub(
            rb"\d{4}-\d\d-\d\d(T\d\d:\d\d:\d\dZ)?", b"DATE", path.read_bytes()
        )
        if path.name in (MANIFEST, README)
        else path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


Train = Callable[..., Trained]


@pytest.fixture
def train(sources: dict[str, dict[str, object]]) -> Train:
    """Trains a case into a folder."""

    def train(case: str, target: Path, **run: Any) -> Trained:
        system, options = CASES[case]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return train_and_save(SYSTEMS[system], sources[system], target, options, run=Run(**run))

    return train


def test_every_resumable_system_is_tried() -> None:
    resumable = {name for name, system in SYSTEMS.items() if system.is_resumable}
    # A ranker resumes from files of parses, as its own tests show.
    assert {system for system, _ in CASES.values()} == resumable - {"tree_ranker"}


@pytest.mark.parametrize("case", CASES)
def test_stopped_after_any_checkpoint_the_model_and_the_report_are_the_same(
    case: str, train: Train, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "model"
    heard: list[Event] = []
    with stopped_after(0, monkeypatch) as written:
        expected = train(case, target, event=heard.append)
    files = contents(target)
    assert len(written) >= (1 if "fixed" in case else 2)
    for number in range(1, len(written) + 1):
        with stopped_after(number, monkeypatch), pytest.raises(Stopped):
            train(case, target)
        assert contents(target) == files  # the model that stood there
        for name in files:
            (target / name).unlink()
        again: list[Event] = []
        resumed = train(case, target, resume=True, event=again.append)
        assert contents(target) == files, f"stopped after checkpoint {number}, {written}"
        assert resumed.record() == expected.record()
        assert again == heard[len(heard) - len(again) :]
        assert [path.name for path in tmp_path.iterdir()] == ["model"]


@pytest.mark.parametrize("case", ["composite", "plsa with words before"])
def test_stopped_again_and_again_the_model_and_the_report_are_the_same(
    case: str, train: Train, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = train(case, tmp_path / "whole")
    target = tmp_path / "model"
    for number in count():
        try:
            # Where nothing is new, the composite model writes the same checkpoint once more.
            with stopped_after(2 if case == "composite" else 1, monkeypatch):
                resumed = train(case, target, resume=True)
            break
        except Stopped:
            assert number < 20
    assert number > 2
    assert contents(target) == contents(tmp_path / "whole")
    assert resumed.record() == expected.record()


@pytest.mark.parametrize("rename", range(1, 13))
def test_stopped_while_checkpoints_move_up_the_composite_model_is_the_same(
    rename: int, train: Train, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A checkpoint of the composite model is two files, and both are needed when a round falls."""
    replace = Path.replace
    seen = 0

    def replace_and_stop(self: Path, target: Path) -> Path:
        nonlocal seen
        if self.parent.name.endswith(".training") and self.suffix == ".safetensors":
            seen += 1
            if seen == rename:
                raise Stopped
        return replace(self, target)

    expected = train("slm", tmp_path / "whole")
    target = tmp_path / "model"
    with monkeypatch.context() as patch, pytest.raises(Stopped):
        patch.setattr(Path, "replace", replace_and_stop)
        train("slm", target)
    resumed = train("slm", target, resume=True)
    assert contents(target) == contents(tmp_path / "whole")
    assert resumed.record() == expected.record()


@pytest.mark.parametrize("forests", [False, True])
def test_stopped_after_any_batch_a_parse_file_is_the_same(
    forests: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trees = list(TreeCorpus((sample_path(),)))[:12]
    model = train_pcfg(TreeCorpus.of_trees(trees), PcfgConfig())
    lines = [" ".join(tree.words) for tree in trees]

    def parse(path: Path) -> None:
        # Files are batched apart: several of them make several batches of few sentences.
        sources = [(f"{first}", lines[first : first + 3]) for first in range(0, len(lines), 3)]
        parse_into_file(model, sources, path, fingerprint="p", k=2, forests=forests)

    parse(tmp_path / "whole.forest")
    whole = (tmp_path / "whole.forest").read_bytes()
    write = ForestWriter._write
    left = 0

    def write_and_stop(self: ForestWriter, data: bytes) -> None:
        nonlocal left
        write(self, data)
        left -= 1
        if not left:
            raise Stopped

    path = tmp_path / "part.forest"
    for stop in range(1, 7):  # the header, four batches, the end
        left = stop
        path.unlink(missing_ok=True)
        with monkeypatch.context() as patch, pytest.raises(Stopped):
            patch.setattr(ForestWriter, "_write", write_and_stop)
            parse(path)
        parse(path)
        assert path.read_bytes() == whole


@pytest.mark.parametrize("system", ["treelet", "headlex"])
def test_stopped_after_any_parsed_file_a_model_of_text_is_the_same(
    system: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Such a training begins again; nothing that the stopped one did changes what comes out."""
    trees = list(TreeCorpus((sample_path(),)))[:30]
    texts = []
    for number in range(3):
        own = trees[9 * number : 9 * number + 9]
        texts.append(tmp_path / f"text{number}")
        texts[-1].write_text("".join(" ".join(tree.words) + "\n" for tree in own))
    corpus = TreeCorpus.of_trees(trees)
    parser = train_pcfg(corpus, PcfgConfig())
    inputs = {"corpus": corpus, "text": TextCorpus(tuple(texts)), "parser": parser}
    (tmp_path / "models").mkdir()
    target = tmp_path / "models" / "model"
    parse = parsed_text._parse
    left = 0

    def parse_and_stop(*arguments: Any) -> None:
        nonlocal left
        parse(*arguments)
        left -= 1
        if not left:
            raise Stopped

    def train_once() -> dict[str, bytes]:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            train_and_save(SYSTEMS[system], inputs, target, {}, run=Run())
        return contents(target)

    expected = train_once()
    for stop in (1, 2, 3):
        left = stop
        with monkeypatch.context() as patch, pytest.raises(Stopped):
            patch.setattr(parsed_text, "_parse", parse_and_stop)
            train_once()
        assert contents(target) == expected
        assert train_once() == expected
        assert [path.name for path in target.parent.iterdir()] == ["model"]
