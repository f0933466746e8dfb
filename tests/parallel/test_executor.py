"""Executors and progress."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from itertools import product
from multiprocessing import connection
from multiprocessing.connection import Connection
from pathlib import Path
from types import SimpleNamespace

import pytest
from tests.parallel import shard_functions
from tests.parallel.shard_functions import Asking, Counting, Holding

from treelm.errors import (
    CorpusFormatError,
    EngineError,
    MissingExtra,
    TreelmWarning,
    UsageError,
    on_command_line,
)
from treelm.parallel import worker
from treelm.parallel.executor import SERIAL, Engine, Executor, SerialExecutor, executor
from treelm.parallel.processes import ProcessExecutor
from treelm.parallel.progress import SILENT, Progress
from treelm.parallel.ray_cluster import RayExecutor, check_version
from treelm.testing.contracts import check_contract

#: Ray leaves files and processes to the end of the program.
pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning")

CASES: list[list[int]] = [[], [1], [1, 2], [2, 1, 3, 4], list(range(100))]


@pytest.fixture(scope="module", params=["serial", "processes", "ray"])
def engine(request: pytest.FixtureRequest) -> Iterator[Executor]:
    """Every engine; Ray where it is installed."""
    name: Engine = request.param
    if name == "ray":
        pytest.importorskip("ray")
    with executor(name, workers=None if name == "serial" else 2) as made:
        yield made


def test_executors_keep_their_contract(engine: Executor) -> None:
    assert isinstance(engine, Executor)
    check_contract("executor", engine, CASES)


def test_all_workers_start_with_the_first_shard() -> None:
    """The first may have to wait for a large shard until it is ready; the others do not."""
    before = len(multiprocessing.active_children())
    with ProcessExecutor(3) as workers:
        assert list(workers.map(len, ["one"])) == [3]
        assert len(multiprocessing.active_children()) == before + 3


def test_contract_catches_an_executor_out_of_order() -> None:
    class Backwards(SerialExecutor):
        def map(self, function, shards):  # type: ignore[no-untyped-def]
            return super().map(function, reversed(list(shards)))

    with pytest.raises(AssertionError, match="breaks executor order"):
        check_contract("executor", Backwards(), [[1, 2]])


def test_serial_executor_works_shard_by_shard() -> None:
    seen: list[int] = []
    results = SERIAL.map(lambda shard: seen.append(shard) or shard, [1, 2, 3])
    assert next(results) == 1
    assert seen == [1]


def test_executors_read_only_so_many_shards_ahead(engine: Executor) -> None:
    taken: list[int] = []

    def shards() -> Iterator[int]:
        for number in range(100):
            taken.append(number)
            yield number

    results = engine.map(shard_functions.double, shards())
    assert [next(results), next(results)] == [0, 2]
    assert len(taken) <= 2 + 4
    assert list(results) == [2 * number for number in range(2, 100)]


def test_executors_raise_the_error_of_the_first_shard_that_fails(engine: Executor) -> None:
    done = []
    with on_command_line(), pytest.raises(CorpusFormatError) as caught:
        for result in engine.map(shard_functions.fail_with_a_place, range(8)):
            done.append(result)  # noqa: PERF402 (what came before the error counts)
    assert done == [0, 1, 2]
    # The error has all it had, and speaks to whoever asked.
    assert (str(caught.value), caught.value.code) == ("a.txt:3: see --max-words.", "E_TEST")
    assert caught.value.line == 3
    # The workers are still there.
    assert list(engine.map(shard_functions.double, [4])) == [8]


def test_executors_raise_an_error_of_reading_after_the_results_before_it(engine: Executor) -> None:
    def shards() -> Iterator[int]:
        yield from (1, 2)
        raise OSError("the disk is gone")

    results = engine.map(shard_functions.double, shards())
    assert [next(results), next(results)] == [2, 4]
    with pytest.raises(OSError, match="the disk is gone"):
        next(results)


def test_executors_hand_on_warnings(engine: Executor) -> None:
    with pytest.warns(TreelmWarning) as heard:
        assert list(engine.map(shard_functions.warn, [1, 2])) == [1, 2]
    assert [str(each.message) for each in heard] == ["beware of 1", "beware of 2"]


def test_workers_keep_a_function_while_it_is_mapped(engine: Executor, tmp_path: Path) -> None:
    assert list(engine.map(Counting(tmp_path), range(30))) == list(range(30))
    marks = [mark.name.partition("-")[0] for mark in tmp_path.iterdir()]
    assert 1 <= len(marks) == len(set(marks)) <= 2
    assert (str(os.getpid()) in marks) == (engine.name == "serial")


def test_executors_hold_shards_that_functions_ask(engine: Executor) -> None:
    with (
        engine.hold([Holding(1), Holding(10)]) as some,
        engine.hold([Holding(100)]) as others,
    ):
        found = list(engine.map(Asking(some, others), range(5)))
    assert found == [[number, 10 * number, 100 * number] for number in range(5)]


def test_executors_make_holders_once_in_a_process(engine: Executor) -> None:
    if engine.name == "ray":
        pytest.skip("actors are made where they live")
    with engine.hold([Holding(1)]) as some, engine.hold([Holding(2)]) as others:
        asking = Asking(some, others, counts=True)
        # By two workers at most, two each.
        assert sum(made for [made] in engine.map(asking, range(8))) in {2, 4}


def test_defaults_fit_their_protocols() -> None:
    assert isinstance(SERIAL, Executor)
    assert isinstance(SILENT, Progress)
    with SILENT.step("counting", total=3, unit="trees") as step:
        assert step.advance(3, note="done") is None


# -- processes ------------------------------------------------------------------------------------


@pytest.fixture
def processes() -> Iterator[ProcessExecutor]:
    with ProcessExecutor(2) as made:
        yield made


def test_processes_do_not_send_what_cannot_be_made_again(processes: ProcessExecutor) -> None:
    with pytest.raises(EngineError, match="Unportable: this and that") as caught:
        list(processes.map(shard_functions.fail_unportably, [1]))
    assert "fail_unportably" in "".join(caught.value.__notes__)


def test_processes_do_the_work_of_one_that_was_killed_again(
    processes: ProcessExecutor, tmp_path: Path
) -> None:
    marker = tmp_path / "marker"

    def kill() -> None:
        while not marker.exists():
            time.sleep(0.01)
        os.kill(int(marker.read_text()), signal.SIGKILL)

    killer = threading.Thread(target=kill)
    killer.start()
    with pytest.warns(TreelmWarning, match="a worker died; its work is done again"):
        found = list(
            processes.map(
                shard_functions.wait_to_be_killed_once, [None, None, marker, *[None] * 20]
            )
        )
    killer.join()
    assert found == [*["unharmed"] * 2, "done again", *["unharmed"] * 20]


def test_a_worker_that_dies_in_the_middle_of_a_result_holds_nobody_up(tmp_path: Path) -> None:
    """The rest of the result never comes, and the other worker could not hand over its own."""
    shards = [tmp_path / "marker", *[None] * 20]
    found: list[str] = []

    def work() -> None:
        with (
            pytest.warns(TreelmWarning, match="a worker died; its work is done again"),
            ProcessExecutor(2) as made,
        ):
            found.extend(made.map(shard_functions.die_in_the_middle_of_a_result, shards))

    working = threading.Thread(target=work, daemon=True)
    working.start()
    working.join(timeout=100)
    assert found == ["done again", *["unharmed"] * 20]


def test_a_worker_that_dies_with_nothing_to_do_is_replaced(processes: ProcessExecutor) -> None:
    first = set(processes.map(shard_functions.process_of, range(8)))
    for process in multiprocessing.active_children():
        process.kill()
        process.join()
    again = set(processes.map(shard_functions.process_of, range(8)))
    assert again
    assert not again & first


def test_processes_tell_of_results_that_cannot_be_sent(processes: ProcessExecutor) -> None:
    with pytest.raises(Exception, match="pickle") as caught:
        list(processes.map(shard_functions.give_what_cannot_be_sent, [1]))
    assert "In a worker" in "".join(caught.value.__notes__)
    assert list(processes.map(shard_functions.double, [1])) == [2]


def test_results_larger_than_what_a_pipe_holds_come_in_order(processes: ProcessExecutor) -> None:
    shards = [bytes([number]) * 3_000_000 for number in range(12)]
    for shard, found in zip(shards, processes.map(bytes, shards), strict=True):
        assert found == shard


def test_what_a_dropped_map_left_behind_disturbs_no_other(processes: ProcessExecutor) -> None:
    dropped = processes.map(shard_functions.double, range(100))
    assert next(dropped) == 0
    dropped.close()  # type: ignore[attr-defined]
    both = (processes.map(shard_functions.double, range(50)) for _ in range(2))
    assert all(one == other == 2 * n for n, (one, other) in enumerate(zip(*both, strict=True)))


def test_an_interruption_at_any_step_ends_the_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    """And the executor still works afterwards, if somebody goes on with it."""
    steps = ("wait", "recv_bytes", "send_bytes")
    with ProcessExecutor(2) as made:
        for count, step in product(range(1, 6), steps):
            place = connection if step == "wait" else Connection
            calls = 0
            call = getattr(place, step)

            def interrupted(*given: object, **options: object) -> object:
                nonlocal calls
                calls += 1
                if calls == count:  # noqa: B023
                    raise KeyboardInterrupt
                return call(*given, **options)  # noqa: B023

            with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
                patch.setattr(place, step, interrupted)
                list(made.map(shard_functions.double, range(40)))
            assert not multiprocessing.active_children()
        assert list(made.map(shard_functions.double, range(40))) == list(range(0, 80, 2))


@pytest.mark.slow
def test_processes_give_up_on_a_shard_that_kills_its_workers(processes: ProcessExecutor) -> None:
    results = processes.map(shard_functions.die, [1, 2, 3])
    with (
        pytest.warns(TreelmWarning, match="a worker died"),
        pytest.raises(EngineError, match="workers died 4 times") as caught,
    ):
        list(results)
    assert caught.value.code == "E_WORKER_DIED"
    assert list(processes.map(shard_functions.die, [1])) == [1]


def test_processes_end_with_their_executor() -> None:
    with ProcessExecutor(2) as made:
        found = set(made.map(shard_functions.process_of, range(8)))
        assert os.getpid() not in found
    for process in found:
        with pytest.raises(ProcessLookupError):
            os.kill(process, 0)


def test_processes_end_at_once_after_an_error(tmp_path: Path) -> None:
    marker = tmp_path / "marker"
    with pytest.raises(KeyboardInterrupt), ProcessExecutor(1) as made:
        results = made.map(shard_functions.wait_to_be_killed_once, [None, marker])
        assert next(results) == "unharmed"
        while not marker.exists():
            time.sleep(0.01)
        raise KeyboardInterrupt
    with pytest.raises(ProcessLookupError):
        os.kill(int(marker.read_text()), 0)


def test_workers_of_another_build_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    sent = worker.packed(shard_functions.double)
    monkeypatch.setattr(worker, "_held", [])
    assert worker.settled(worker.perform("1", lambda: sent, 3)) == 6
    own = worker.own_build()
    for other in (own._replace(version="0.0.1"), own._replace(native="0" * 64)):
        monkeypatch.setattr(worker, "own_build", lambda other=other: other)
        with pytest.raises(EngineError, match="Install the same build") as caught:
            worker.settled(worker.perform(str(other), lambda: sent, 3))
        assert caught.value.code == "E_OTHER_BUILD"
        assert str(own) in str(caught.value)
        assert str(other) in str(caught.value)


# -- options --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"engine": "threads"}, "engine threads: choose one of serial, processes, ray"),
        ({"engine": "serial", "workers": 2}, "workers is used with"),
        ({"engine": "processes", "address": "auto"}, "address names a Ray cluster"),
        ({"engine": "serial", "address": "auto"}, "address names a Ray cluster"),
        ({"engine": "processes", "workers": 0}, "workers 0: give 1 to"),
        ({"engine": "ray", "address": "ray://host:10001"}, "give HOST:PORT, or auto"),
        ({"engine": "ray", "address": "host"}, "give HOST:PORT, or auto"),
    ],
)
def test_executor_refuses_options_that_do_not_go_together(
    options: dict[str, object], message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        executor(**options)  # type: ignore[arg-type]


def test_ray_executor_says_how_to_install_ray(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(MissingExtra, match=r'pip install "treelm\[cluster\]"'):
        RayExecutor(1).__enter__()


@pytest.mark.parametrize("version", ["1.13.0", "2.9.3", "3.0.0.dev0", "10.1"])
def test_ray_executor_refuses_versions_that_were_not_tested(
    version: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "ray", SimpleNamespace(__version__=version))
    with pytest.raises(MissingExtra, match=f"Ray {version} is installed"):
        RayExecutor(1).__enter__()


def test_versions_of_ray_in_range_are_taken() -> None:
    for version in ("2.50.0", "2.60.1", "2.99"):
        check_version(version)
