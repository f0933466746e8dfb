"""Linear systems of grammars: every way to solve one gives what a dense solver gives."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from treelm.errors import EstimationError
from treelm.models.hhmm import linear
from treelm.models.hhmm.linear import LinearSystem, heads_of_cycles


def system_of(seed: int, size: int, *, least: int = 0, loops: float = 0.1) -> LinearSystem:
    """Return a system whose entries mostly lead to larger numbers, and now and then back."""
    generator = np.random.default_rng(seed)
    row, column = [], []
    for node in range(least, size):
        for _ in range(int(generator.integers(0, 4))):
            back = generator.random() < loops or node == size - 1
            row.append(node)
            column.append(int(generator.integers(0, size) if back else node + 1))
    weight = generator.random(len(row)) * 0.3
    return LinearSystem(np.array(row, np.int64), np.array(column, np.int64), weight, size)


def dense(system: LinearSystem, constants: np.ndarray) -> np.ndarray:
    matrix = np.zeros((system.size, system.size))
    np.add.at(matrix, (system.row, system.column), system.weight)
    found: np.ndarray = np.linalg.solve(np.eye(system.size) - matrix, constants.T).T
    return found


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10_000), st.integers(2, 60), st.sampled_from([0, 2, 30]))
def test_elimination_and_iteration_give_the_same(seed: int, size: int, most: int) -> None:
    system = system_of(seed, size)
    constants = np.random.default_rng(seed).random((3, size))
    expected = dense(system, constants)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(linear, "_DENSE", 0)
        patch.setattr(linear, "_MOST_HEADS", most)
        np.testing.assert_allclose(system.solve(constants), expected, rtol=1e-12)


def test_large_systems_are_solved_by_elimination(monkeypatch: pytest.MonkeyPatch) -> None:
    system = system_of(1, 3000, loops=0.05)
    constants = np.random.default_rng(1).random((5, 3000))
    monkeypatch.setattr(linear, "_MOST_ITERATIONS", 0)
    for given_ in (constants, np.asfortranarray(constants)):
        np.testing.assert_allclose(system.solve(given_), dense(system, constants), rtol=1e-12)


def test_a_system_without_entries_is_what_it_is_given() -> None:
    nothing = np.zeros(0, np.int64)
    constants = np.random.default_rng(1).random((2, 1000))
    for size in (3, 1000):
        system = LinearSystem(nothing, nothing, np.zeros(0), size)
        np.testing.assert_array_equal(system.solve(constants[:, :size]), constants[:, :size])


def test_iteration_refuses_what_does_not_settle(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(linear, "_DENSE", 0)
    monkeypatch.setattr(linear, "_MOST_HEADS", 0)
    loop = LinearSystem(np.array([0, 1]), np.array([1, 0]), np.ones(2), 2)
    monkeypatch.setattr(linear, "_MOST_ITERATIONS", 100)
    with pytest.raises(EstimationError, match="do not settle"):
        loop.solve(np.ones((1, 2)))


@given(st.lists(st.lists(st.integers(0, 7), max_size=4), min_size=8, max_size=8))
def test_without_the_heads_there_is_no_cycle(children: list[list[int]]) -> None:
    heads = heads_of_cycles(children)
    left = {node for node in range(8) if node not in heads}
    while left:
        ends = {node for node in left if not any(child in left for child in children[node])}
        assert ends
        left -= ends
    if not any(children):
        assert not heads
