"""Executors and progress."""

from __future__ import annotations

import pytest

from treelm.parallel.executor import SERIAL, Executor, SerialExecutor
from treelm.parallel.progress import SILENT, Progress
from treelm.testing.contracts import check_contract


def test_serial_executor_keeps_its_contract() -> None:
    check_contract("executor", SERIAL, [[], [1], [1, 2], [2, 1, 3, 4], list(range(100))])


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


def test_defaults_fit_their_protocols() -> None:
    assert isinstance(SERIAL, Executor)
    assert isinstance(SILENT, Progress)
    with SILENT.step("counting", total=3, unit="trees") as step:
        assert step.advance(3, note="done") is None
