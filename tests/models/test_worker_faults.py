"""What goes wrong with workers in every phase of the work changes nothing of the result."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.models.test_training_workers import (  # noqa: F401  (fixtures)
    TRAININGS,
    contents,
    data,
    serially,
    small_shards,
)
from tests.parallel.faulty_executor import FaultyExecutor
from tests.parallel.shard_functions import double

from treelm.corpus.corpus import TextCorpus, TreeCorpus
from treelm.corpus.sample_treebank import sample_path
from treelm.errors import OutputFileError
from treelm.events import count_runs
from treelm.models.composite.config import CompositeConfig
from treelm.models.composite.em import Data, first_parts, n_best_step
from treelm.models.composite.parsed_text import prepare
from treelm.models.composite.parts import CompositeShape
from treelm.models.composite.round_files import RoundFiles
from treelm.models.ngram.count_shards import count_in_pieces
from treelm.models.ngram.counts import NgramCounts
from treelm.models.run import Run
from treelm.models.treelet.config import TreeletConfig
from treelm.models.treelet.count_shards import count_treelets_in_pieces
from treelm.models.treelet.events import count_treelets
from treelm.parallel.executor import Engine, Executor, executor
from treelm.parallel.key_shards import KeyShards
from treelm.parallel.metrics import measured, read_metrics
from treelm.store.shared_folder import SharedFolder
from treelm.testing.model_folders import different_files

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore:a worker died"),
]

Serially = Callable[[str], dict[str, object]]
MANY = ("processes", "ray")


@pytest.fixture(params=MANY, scope="module")
def many(request: pytest.FixtureRequest) -> Iterator[Executor]:
    if request.param == "ray":
        pytest.importorskip("ray")
    with executor(request.param, workers=2) as workers:
        yield workers


def in_shards(folder: Path) -> dict[str, Any]:
    return {"shards": 3, "shard_parameters": True, "checkpoint": folder}


@pytest.mark.parametrize("name", [name for name in TRAININGS if name != "n-gram without heads"])
def test_training_is_the_same_though_a_worker_is_killed_in_every_phase(
    name: str,
    many: Executor,
    serially: Serially,  # noqa: F811
    tmp_path: Path,
) -> None:
    workers = FaultyExecutor(many, "worker killed", tmp_path / "killed")
    how = in_shards(tmp_path / "work") if name in {"composite", "slm"} else {}
    found = contents(name, tmp_path / "model", executor=workers, **how)
    assert not different_files(found, serially(name))
    assert workers.met
    assert workers.met == set(workers.maps)


def test_training_is_the_same_though_actors_are_killed_in_every_phase(
    serially: Serially,  # noqa: F811
    tmp_path: Path,
) -> None:
    pytest.importorskip("ray")
    with executor("ray", workers=2) as cluster:
        workers = FaultyExecutor(cluster, "actor killed", tmp_path / "killed")
        how = in_shards(tmp_path / "work")
        found = contents("composite", tmp_path / "model", executor=workers, **how)
    assert not different_files(found, serially("composite"))
    assert "_Keep" in workers.met


def test_a_full_disk_of_a_worker_ends_a_training_that_can_be_resumed(
    many: Executor,
    serially: Serially,  # noqa: F811
    tmp_path: Path,
) -> None:
    """In every phase that writes: each time the next one meets it."""
    how = in_shards(tmp_path / "work")
    workers = FaultyExecutor(many, "full disk", tmp_path / "full", place=0)
    for attempt in range(40):
        try:
            found = contents("slm", tmp_path / "model", executor=workers, resume=attempt > 0, **how)
            break
        except OutputFileError as error:
            assert "round" in str(error)  # noqa: PT017
        workers.maps.clear()
    assert attempt >= 2
    assert {"_Keep", "_Merge"} <= workers.met
    assert not different_files(found, serially("slm"))
    left = [path.name for path in (tmp_path / "work").rglob("*")]
    assert not [name for name in left if name.startswith(".treelm")]


def test_a_slow_worker_is_seen_and_changes_nothing(many: Executor, tmp_path: Path) -> None:
    workers = FaultyExecutor(many, "slow worker", tmp_path / "slow", place=2)
    with measured(many, tmp_path):
        assert list(workers.map(double, range(8))) == [2 * number for number in range(8)]
    [line] = [each for each in read_metrics(tmp_path) if "stragglers" in each]
    assert line["stragglers"] >= 1  # type: ignore[operator]
    assert json.loads(json.dumps(line))["shard_seconds"]["max"] >= 0.5  # type: ignore[index]


def test_counts_are_the_same_though_a_worker_is_killed_in_every_phase(
    many: Executor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(count_runs, "ROWS_A_RANGE", 50)
    trees = TreeCorpus(sample_path())
    text = tmp_path / "text"
    text.write_text("".join(f"{' '.join(tree.words)}\n" for tree in trees))
    workers = FaultyExecutor(many, "worker killed", tmp_path / "killed")
    found = count_in_pieces(TextCorpus(text), 3, workers, tmp_path, piece_bytes=3000)
    expected = NgramCounts.count(TextCorpus(text), 3)
    for array in ("rows", "counts"):
        assert np.array_equal(getattr(found.events, array), getattr(expected.events, array))
    assert workers.met == {"_CountWords", "_CountNgrams", "_MergeRange"}
    config = TreeletConfig(temporal=("monday",))
    treelets = FaultyExecutor(many, "worker killed", tmp_path / "killed too")
    made = count_treelets_in_pieces(trees, config, treelets, tmp_path, piece_bytes=9000)
    whole = count_treelets(trees, config)
    for kind in ("nonterminal", "terminal"):
        assert np.array_equal(getattr(made, kind).rows, getattr(whole, kind).rows)
        assert np.array_equal(getattr(made, kind).counts, getattr(whole, kind).counts)
    assert treelets.met == {"_CountTrees", "_Rename", "_MergeRange"}


@pytest.mark.filterwarnings("ignore::treelm.errors.TreelmWarning")
@pytest.mark.parametrize("engine", MANY)
def test_one_round_over_a_thousand_sentences_is_that_of_one_process(
    engine: Engine, tmp_path: Path
) -> None:
    """Frequencies, weights and likelihood are identical, by workers, shards and actors."""
    if engine == "ray":
        pytest.importorskip("ray")
    lines = sample_path().read_text().splitlines()
    (tmp_path / "train.mrg").write_text("\n".join((lines[:250] * 4)[:1000]))
    (tmp_path / "held-out.mrg").write_text("\n".join(lines[250:]))
    config = CompositeConfig(order=3, heads=2, n_best=5)
    prepared = prepare(TreeCorpus(tmp_path / "train.mrg"), config)
    assert len(prepared.text) == 1000
    held_out = prepare(
        TreeCorpus(tmp_path / "held-out.mrg"),
        config,
        vocabulary=prepared.vocabulary,
        codes=prepared.codes,
    )
    shape = CompositeShape(config, len(prepared.vocabulary), prepared.codes)
    train, check = Data(prepared.text), Data(held_out.text)
    parts, _ = first_parts(shape, train, check)
    alone = n_best_step(parts, train, check, None)
    files = RoundFiles(SharedFolder(str(tmp_path / "round")), "test", shape, KeyShards(4))
    with executor(engine, workers=2) as workers:
        run = Run(executor=workers, shards=4, shard_parameters=True, checkpoint=tmp_path)
        many_made = n_best_step(parts, train, check, None, run=run, files=files)
    assert many_made.log_likelihood == alone.log_likelihood
    expected = alone.parts.to_tensors()
    found = many_made.parts.to_tensors()
    assert found.keys() == expected.keys()
    assert [name for name in expected if not np.array_equal(found[name], expected[name])] == []
