"""`--engine ray`: on this machine, and on a cluster of several nodes that lose one."""

from __future__ import annotations

import json
import signal
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.command_line import assert_fine, assert_refused, finish, start_treelm, treelm

from treelm.corpus.brackets import read_trees
from treelm.testing.model_folders import different_files, folder_contents

pytest.importorskip("ray")
#: Ray leaves files and processes to the end of the program.
pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, sample_file: Path) -> Path:
    path = tmp_path_factory.mktemp("models") / "pcfg"
    assert_fine(treelm("train", "pcfg", "--trees", sample_file, "-o", path))
    return path


@pytest.fixture(scope="module")
def text(tmp_path_factory: pytest.TempPathFactory, sample_file: Path) -> Path:
    path = tmp_path_factory.mktemp("texts") / "text"
    lines = [" ".join(tree.words) for tree in read_trees(sample_file)]
    path.write_text("\n".join([*lines, "", *lines, *lines]))
    return path


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    """Three nodes of one core each, as if they were machines of their own."""
    from ray.cluster_utils import Cluster

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        made = Cluster(initialize_head=True, head_node_args={"num_cpus": 1})
        for _ in range(2):
            made.add_node(num_cpus=1)
        made.wait_for_nodes()
        yield made
        made.shutdown()


def test_ray_on_this_machine_parses_and_counts_the_same(
    folder: Path, text: Path, tmp_path: Path
) -> None:
    engine = ("--engine", "ray", "--workers", "2")
    command = ("parse", "-m", folder, "-k", "2", text, text, "-o")
    one = treelm(*command, tmp_path / "one.forest")
    two = treelm(*command, tmp_path / "two.forest", *engine)
    assert two.returncode == 0, two.stderr
    assert two.stderr.replace(b"two.", b"one.") == one.stderr
    assert (tmp_path / "two.forest").read_bytes() == (tmp_path / "one.forest").read_bytes()
    counting = ("counts", "build", "--order", "3", "--text", text, "--json", "-o")
    alone = assert_fine(treelm(*counting, tmp_path / "one"))
    assert json.loads(assert_fine(treelm(*counting, tmp_path / "two", *engine))) == json.loads(
        alone
    )
    contents = [folder_contents(tmp_path / name) for name in ("one", "two")]
    assert not different_files(*contents)


def test_ray_names_the_line_of_what_is_wrong(
    folder: Path, text: Path, tmp_path: Path, cluster: Any
) -> None:
    bad = tmp_path / "bad.txt"
    bad.write_bytes(text.read_bytes() + b"\n<s>\n")
    command = ("parse", "-m", folder, bad, "-o", tmp_path / "a.mrg")
    serial = treelm(*command)
    found = treelm(*command, "--engine", "ray", "--address", cluster.address)
    assert serial.returncode == 3
    assert (found.returncode, found.stderr) == (serial.returncode, serial.stderr)


def test_ray_does_the_work_of_a_lost_node_again(
    folder: Path, text: Path, tmp_path: Path, cluster: Any
) -> None:
    command = ("parse", "-q", "-m", folder, "-k", "100", *[text] * 6, "-o")
    assert_fine(treelm(*command, tmp_path / "one.forest"))
    path = tmp_path / "two.forest"
    running = start_treelm(*command, path, "--engine", "ray", "--address", cluster.address)
    while not (path.exists() and path.stat().st_size > 10_000):
        assert running.poll() is None, running.communicate()
        time.sleep(0.01)
    cluster.remove_node(cluster.list_all_nodes()[-1], allow_graceful=False)
    done = finish(running)
    assert done.returncode == 0, done.stderr
    assert path.read_bytes() == (tmp_path / "one.forest").read_bytes()


def test_ray_that_is_interrupted_is_resumed(
    folder: Path, text: Path, tmp_path: Path, cluster: Any
) -> None:
    command = ("parse", "-q", "-m", folder, "-k", "100", *[text] * 6, "-o")
    path = tmp_path / "two.forest"
    engine = ("--engine", "ray", "--address", cluster.address)
    running = start_treelm(*command, path, *engine)
    while not (path.exists() and path.stat().st_size > 10_000):
        assert running.poll() is None, running.communicate()
        time.sleep(0.01)
    running.send_signal(signal.SIGINT)
    done = finish(running)
    assert (done.returncode, done.stderr) == (130, b"treelm: interrupted\n")
    assert_fine(treelm(*command, path, *engine))
    assert_fine(treelm(*command, tmp_path / "one.forest"))
    assert path.read_bytes() == (tmp_path / "one.forest").read_bytes()


def test_ray_refuses_what_the_cluster_does_not_have(folder: Path, cluster: Any) -> None:
    command = ("parse", "-m", folder, "--engine", "ray")
    for address in ("127.0.0.1:1", "127.0.0.1:99999", "no-such-host.invalid:6379"):
        done = treelm(*command, "--address", address, stdin=b"a\n")
        assert_refused(
            done, 1, f"--address {address}: there is no Ray cluster", "the program `ray`"
        )
    done = treelm(*command, "--address", cluster.address, "--threads", "64", stdin=b"a\n")
    assert_refused(
        done, 1, "no machine of the Ray cluster has the 64 cores", "the largest offers 1"
    )


def test_ray_trains_the_same_model_while_a_node_is_lost(
    tmp_path: Path, sample_file: Path, cluster: Any
) -> None:
    lines = sample_file.read_text().splitlines()
    (tmp_path / "train.mrg").write_text("\n".join(lines[:260] * 6))
    (tmp_path / "held-out.mrg").write_text("\n".join(lines[260:]))
    files = ("--trees", tmp_path / "train.mrg", "--held-out", tmp_path / "held-out.mrg")
    options = ("--order", "2", "--heads", "2", "--iterations", "1", "--follow-up", "1", "-q")
    command = ("train", "composite", *files, *options, "-o")
    assert_fine(treelm(*command, tmp_path / "one"))
    node = cluster.add_node(num_cpus=1)
    work = tmp_path / "work"
    engine = ("--engine", "ray", "--address", cluster.address, "--shards", "3", "--work", work)
    running = start_treelm(*command, tmp_path / "two", *engine)
    while not list(work.glob("round/piece-*.safetensors")):
        assert running.poll() is None, running.communicate()
        time.sleep(0.01)
    cluster.remove_node(node, allow_graceful=False)
    done = finish(running)
    assert done.returncode == 0, done.stderr
    contents = [folder_contents(tmp_path / name) for name in ("one", "two")]
    assert not different_files(*contents)
    assert_fine(treelm("em", "verify", work))
