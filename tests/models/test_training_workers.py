"""Training by many workers: the bytes of one process, whoever does the work and whoever dies."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.contract.recipes import make_data, quietly
from tests.parallel.sending_executor import SendingExecutor

import treelm.models.composite.em as n_best
import treelm.models.composite.train as training
import treelm.models.lsvm.features as latent
import treelm.models.plsa.em as topics
from treelm.errors import UsageError
from treelm.models.composite import follow_up, parameter_shards, parsed_text
from treelm.models.composite.parts import CompositeParts
from treelm.models.plsa import trainer as topic_trainer
from treelm.models.registry import SYSTEMS, train
from treelm.parallel.executor import SERIAL, Engine, Executor, executor
from treelm.parallel.key_shards import KeyShards, mix64
from treelm.testing.model_folders import different_files, folder_contents

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore::ResourceWarning")]

#: Trainings by name: the system, what it is trained on, and its options.
TRAININGS: dict[str, tuple[str, Any, dict[str, Any]]] = {
    "composite": (
        "composite",
        "few.mrg",
        {
            "held_out": "fewer.mrg",
            "order": 2,
            "heads": 1,
            "topics": 4,
            "keep_topics": 2,
            "iterations": 2,
            "follow_up": 2,
            "n_best": 3,
            "tolerance": 0.0,
        },
    ),
    "slm": (
        "slm",
        "few.mrg",
        {"held_out": "fewer.mrg", "iterations": 2, "follow_up": 1, "n_best": 3},
    ),
    "slm without punctuation": (
        "slm",
        "few.mrg",
        {"punctuation": "remove", "unary_moves": True, "follow_up": 0, "n_best": 2},
    ),
    "plsa": (
        "plsa",
        "documents.txt",
        {"topics": 3, "plsa_iterations": 4, "tolerance": 0.0},
    ),
    "n-gram/PLSA": (
        "plsa",
        "documents.txt",
        {"topics": 3, "order": 2, "keep_topics": 2, "iterations": 3, "plsa_iterations": 3}
        | {"tolerance": 0.0},
    ),
    "n-gram/PLSA with a cut-off": (
        "plsa",
        "documents.txt",
        {"topics": 3, "order": 2, "keep_topics": 2, "iterations": 2, "cutoff": 0.01},
    ),
    "pcfg_la": (
        "pcfg_la",
        ["few.mrg"] * 30,  # more than one piece
        {"cycles": 2, "split_iterations": 2, "merge_iterations": 1, "smooth_iterations": 1}
        | {"seed": 1},
    ),
    "lsvm": (
        "lsvm",
        ("good.txt", "bad.txt"),
        {"tuning": ("dev-good.txt", "dev-bad.txt"), "trees": "few.mrg", "rounds": 2},
    ),
    "n-gram without heads": ("composite", "few.mrg", {"heads": 0, "order": 2}),
}


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("data")
    make_data(folder)
    lines = (folder / "train.txt").read_text().splitlines()
    # More documents than one block has.
    documents = [f"{line}\n{other}\n" for line in lines[:20] for other in lines[20:50]]
    (folder / "documents.txt").write_text("\n".join(documents))
    return folder


@pytest.fixture(autouse=True)
def small_shards(monkeypatch: pytest.MonkeyPatch, data: Path) -> None:
    """Cut small data into many shards, and let files be named as recipes name them."""
    monkeypatch.setattr(parsed_text, "TREES_A_SHARD", 9)
    monkeypatch.setattr(n_best, "SENTENCES_A_SHARD", 7)
    monkeypatch.setattr(follow_up, "SENTENCES_AT_ONCE", 14)
    monkeypatch.setattr(follow_up, "SENTENCES_A_SHARD", 7)
    monkeypatch.setattr(latent, "SENTENCES_A_SHARD", 7)
    monkeypatch.setattr(topics, "WORDS_A_SHARD", 0)  # blocks of documents
    monkeypatch.setattr(topic_trainer, "EVENTS_A_SHARD", 500)
    monkeypatch.setattr(topic_trainer, "TYPES_AN_EVENT", 1 << 20)
    monkeypatch.chdir(data)


def contents(name: str, folder: Path, **how: Any) -> dict[str, object]:
    """Return the files of a model that is trained as `how` says."""
    system, source, options = TRAININGS[name]
    with quietly():
        train(system, source, **options, **how).save(folder)
    return folder_contents(folder)


@pytest.fixture(scope="module")
def serially(
    data: Path, tmp_path_factory: pytest.TempPathFactory
) -> Callable[[str], dict[str, object]]:
    """What one process makes of a training, made once."""
    made: dict[str, dict[str, object]] = {}

    def serial(name: str) -> dict[str, object]:
        if name not in made:
            made[name] = contents(name, tmp_path_factory.mktemp("serial") / "model")
        return made[name]

    return serial


@pytest.mark.parametrize("name", TRAININGS)
def test_training_is_the_same_where_everything_is_sent(
    name: str, serially: Callable[[str], dict[str, object]], tmp_path: Path
) -> None:
    workers = SendingExecutor()
    found = contents(name, tmp_path / "model", executor=workers)
    assert not different_files(found, serially(name))
    assert workers.shards >= 2 * len(workers.maps) or name == "n-gram without heads"


@pytest.fixture(scope="module", params=["1 process", "2 processes", "7 processes", "2 ray"])
def many(request: pytest.FixtureRequest) -> Iterator[Executor]:
    """Some workers; those of Ray where it is installed."""
    number, kind = request.param.split()
    if kind == "ray":
        pytest.importorskip("ray")
    engine = "ray" if kind == "ray" else "processes"
    with executor(engine, workers=int(number)) as made:
        yield made


@pytest.mark.parametrize("name", [name for name in TRAININGS if name != "n-gram without heads"])
def test_training_is_the_same_by_any_number_of_workers(
    many: Executor, name: str, serially: Callable[[str], dict[str, object]], tmp_path: Path
) -> None:
    found = contents(name, tmp_path / "model", executor=many)
    assert not different_files(found, serially(name))


@pytest.mark.parametrize("shards", [1, 4, 7])
@pytest.mark.parametrize("name", ["composite", "slm"])
def test_training_is_the_same_with_any_number_of_shards(
    name: str, shards: int, serially: Callable[[str], dict[str, object]], tmp_path: Path
) -> None:
    workers = SendingExecutor()
    kept = tmp_path / "training"
    found = contents(name, tmp_path / "model", executor=workers, shards=shards, checkpoint=kept)
    assert not different_files(found, serially(name))
    assert workers.maps.count("_Merge") >= 2
    assert not (kept / "round").exists()  # the last round is in the checkpoint


@pytest.mark.parametrize("shards", [1, 4, 7])
@pytest.mark.parametrize("name", ["composite", "slm", "slm without punctuation"])
def test_training_is_the_same_with_tables_held_in_shards(
    name: str,
    shards: int,
    serially: Callable[[str], dict[str, object]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[int] = []
    whole = parameter_shards.ShardedParts.of_text

    def noted(*arguments: Any) -> CompositeParts:
        found = whole(*arguments)
        asked.append(found.models["predictor"].tables.types())
        return found

    monkeypatch.setattr(parameter_shards.ShardedParts, "of_text", noted)
    how = {"shards": shards, "shard_parameters": True, "checkpoint": tmp_path / "work"}
    found = contents(name, tmp_path / "model", executor=SendingExecutor(), **how)
    assert not different_files(found, serially(name))
    assert min(asked) < max(asked)  # sentences get what they need


@pytest.mark.parametrize("heavy", [0, 5, 1000])
@pytest.mark.parametrize("engine", ["processes", "ray"])
def test_tables_are_held_in_shards_by_every_engine(
    heavy: int,
    engine: Engine,
    serially: Callable[[str], dict[str, object]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if engine == "ray":
        pytest.importorskip("ray")
    monkeypatch.setattr(parameter_shards, "KeyShards", lambda count: KeyShards(count, heavy=heavy))
    how = {"shards": 3, "shard_parameters": True, "checkpoint": tmp_path / "work"}
    with executor(engine, workers=2) as workers:
        found = contents("composite", tmp_path / "model", executor=workers, **how)
    assert not different_files(found, serially("composite"))


def test_tables_held_in_shards_need_a_number_of_shards(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="give both"):
        contents("slm", tmp_path / "model", shard_parameters=True, checkpoint=tmp_path / "work")


def test_shards_of_one_process_are_the_same(
    serially: Callable[[str], dict[str, object]], tmp_path: Path
) -> None:
    found = contents("composite", tmp_path / "model", shards=3, checkpoint=tmp_path / "training")
    assert not different_files(found, serially("composite"))


class ByOutcome(KeyShards):
    """Divides events by what they predict."""

    def places(self, keys, outcomes):  # type: ignore[no-untyped-def]
        return super().places(outcomes, keys)


@pytest.mark.parametrize("heavy", [0, 5, 1000])
@pytest.mark.parametrize("kind", [KeyShards, ByOutcome])
def test_counts_do_not_depend_on_where_they_are_added_up(
    kind: type[KeyShards],
    heavy: int,
    serially: Callable[[str], dict[str, object]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(training, "KeyShards", lambda count: kind(count, heavy))
    found = contents("slm", tmp_path / "model", shards=4, checkpoint=tmp_path / "training")
    assert not different_files(found, serially("slm"))


def test_shards_share_the_work_of_frequent_words() -> None:
    """D7: with a word that is half of the text, no shard has twice as much as the median."""
    generator = np.random.default_rng(1)
    keys = np.where(generator.random(200_000) < 0.5, 3, generator.integers(0, 5000, 200_000))
    outcomes = generator.integers(0, 5000, 200_000)
    for heavy, is_even in ((0, False), (1000, True)):
        loads = np.bincount(KeyShards(4, heavy).places(keys, outcomes), minlength=4)
        assert (loads.max() <= 2 * np.median(loads)) == is_even


def test_key_shards_place_keys_as_specified() -> None:
    assert [int(number) for number in mix64([0, 1, 2])] == [
        0xE220A8397B1DCDAF,
        0x910A2DEC89025CC1,
        0x975835DE1C9756CE,
    ]
    assert (mix64(np.arange(6)) % np.uint64(4)).tolist() == [3, 1, 2, 1, 2, 2]
    split = mix64(mix64([2, 2]) ^ np.array([0, 1], np.uint64))
    assert split.tolist() == [0x64684C4F0FD784B4, 0xE06DD043328BD285]
    # a=0, b=1, <s>=2 in two shards.
    assert KeyShards(2, heavy=0).places(np.arange(3), np.zeros(3, int)).tolist() == [1, 1, 0]


class Killed(BaseException):
    """The death of the process that gives the work."""


@pytest.mark.parametrize("shards", [None, 2])
def test_training_is_resumed_wherever_it_was_killed(
    shards: int | None, serially: Callable[[str], dict[str, object]], tmp_path: Path
) -> None:
    """By another engine, too: a checkpoint does not know who did the work."""
    whole = SendingExecutor()
    checkpoint = None if shards is None else tmp_path / "whole.training"
    contents("composite", tmp_path / "whole", executor=whole, shards=shards, checkpoint=checkpoint)
    for place in range(1, whole.shards + 1, 9):

        def die(shard: int, place: int = place) -> None:
            if shard == place:
                raise Killed

        kept = tmp_path / f"{place}.training"
        how: dict[str, Any] = {"checkpoint": kept, "shards": shards}
        with pytest.raises(Killed):
            contents("composite", tmp_path / "no", executor=SendingExecutor(die), **how)
        again = SERIAL if place % 2 else SendingExecutor()
        found = contents("composite", tmp_path / f"{place}", executor=again, resume=True, **how)
        assert not different_files(found, serially("composite"))


def test_a_round_goes_on_where_it_was_killed(
    serially: Callable[[str], dict[str, object]], tmp_path: Path
) -> None:
    """Pieces that were done are not done again, unless their file was damaged."""

    def kill(_: int) -> None:
        if len(list(kept.glob("round/piece-*"))) == 4:
            raise Killed

    kept = tmp_path / "training"
    how: dict[str, Any] = {"shards": 2, "checkpoint": kept}
    whole = SendingExecutor()
    contents("slm", tmp_path / "whole", executor=whole, shards=2, checkpoint=tmp_path / "other")
    with pytest.raises(Killed):
        contents("slm", tmp_path / "no", executor=SendingExecutor(kill), **how)
    pieces = sorted((kept / "round").iterdir())
    assert [path.name for path in pieces] == [f"piece-{number}.safetensors" for number in range(4)]
    damaged = bytearray(pieces[0].read_bytes())
    damaged[-5] ^= 1
    pieces[0].write_bytes(damaged)
    rest = SendingExecutor()
    found = contents("slm", tmp_path / "model", executor=rest, resume=True, **how)
    assert not different_files(found, serially("slm"))
    assert rest.shards == whole.shards - 3


def test_systems_say_that_they_take_no_workers(data: Path) -> None:
    assert not SYSTEMS["trigram_svm"].takes_workers
    with pytest.raises(UsageError, match="pcfg: its training has no option executor"):
        train("pcfg", "few.mrg", executor=SendingExecutor())
    with pytest.raises(UsageError, match="plsa: its training has no option shards"):
        train("plsa", "documents.txt", shards=2, checkpoint="work")
    with pytest.raises(UsageError, match="shards needs a checkpoint folder"):
        train("slm", "few.mrg", shards=2)
    with pytest.raises(UsageError, match="shards is 0"):
        train("slm", "few.mrg", shards=0, checkpoint="work")
