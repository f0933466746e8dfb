"""Best trees under weights of any sign, against all trees, and the rule for ties.

Both charts are looked at: the one that is used, and the plain one that it is measured against.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from treelm import _native

Rules = dict[tuple[int, int, int], float]
Shape = tuple[int, tuple["Shape", ...]]


def best(
    symbols: int, rules: Rules, roots: list[float], words: list[dict[int, float]]
) -> tuple[float, int, Shape] | None:
    """Return score, branching and tree of the kernel, which both charts agree on."""
    order = sorted(rules)
    found = [
        _native.best_weighted_trees(
            symbols=symbols,
            rules=np.array(order, dtype=np.int32).reshape(-1, 3),
            weights=np.array([rules[rule] for rule in order], dtype=np.float64),
            root_weights=np.array(roots, dtype=np.float64),
            tags=np.array([tag for word in words for tag in sorted(word)], dtype=np.int32),
            tag_weights=np.array(
                [word[tag] for word in words for tag in sorted(word)], dtype=float
            ),
            tag_starts=np.cumsum([0, *map(len, words)]).astype(np.int64),
            sentence_starts=np.array([0, len(words)], dtype=np.int64),
            threads=1,
            plain=plain,
        )
        for plain in (False, True)
    ]
    for one, two in zip(*found, strict=True):
        assert one.tolist() == two.tolist()
    scores, branching, _, labels, used = found[0]
    if scores[0] == -np.inf:
        assert not len(labels)
        return None
    nodes = iter(zip(labels.tolist(), used.tolist(), strict=True))

    def build() -> Shape:
        label, rule = next(nodes)
        return (label, ()) if rule == 0xFFFFFFFF else (label, (build(), build()))

    return float(scores[0]), int(branching[0]), build()


def all_trees(
    rules: Rules, words: list[dict[int, float]], symbol: int, first: int, last: int
) -> Iterator[tuple[float, int]]:
    """Yield score and branching of every tree of a symbol over a span."""
    if last - first == 1 and symbol in words[first]:
        yield words[first][symbol], 0
    for (parent, left, right), weight in rules.items():
        if parent != symbol:
            continue
        for split in range(first + 1, last):
            for one, turn in all_trees(rules, words, left, first, split):
                for two, other in all_trees(rules, words, right, split, last):
                    yield (one + two) + weight, turn + other - (split - first)


small = st.integers(-3, 3).map(float)


@given(
    rules=st.dictionaries(
        st.tuples(st.integers(0, 1), st.integers(0, 1), st.integers(0, 1)), small, max_size=8
    ),
    words=st.lists(
        st.dictionaries(st.integers(0, 1), small, min_size=1, max_size=2), min_size=1, max_size=5
    ),
    roots=st.lists(small, min_size=2, max_size=2),
)
def test_pair_of_score_and_branching_is_that_of_all_trees(
    rules: Rules, words: list[dict[int, float]], roots: list[float]
) -> None:
    found = best(2, rules, roots, words)
    pairs = [
        (score + roots[top], branching)
        for top in (0, 1)
        for score, branching in all_trees(rules, words, top, 0, len(words))
    ]
    if not pairs:
        assert found is None
    else:
        assert found is not None
        assert found[:2] == max(pairs)


def test_equal_weights_branch_to_the_right() -> None:
    """The uninformed grammar of one tag, all weights 0: X = 0, X' = 1."""
    rules = {(1, 0, 0): 0.0, (1, 0, 1): 0.0, (1, 1, 0): 0.0, (1, 1, 1): 0.0}
    found = best(2, rules, [0.0, 0.0], [{0: 0.0}] * 4)
    assert found == (0.0, -3, (1, ((0, ()), (1, ((0, ()), (1, ((0, ()), (0, ()))))))))


def test_worked_example() -> None:
    """A->B C (2), A->C B (-1); a: B 1, C -3; b: B 0.5, C 4: f = 7."""
    impossible = -np.inf
    found = best(
        3,
        {(0, 1, 2): 2.0, (0, 2, 1): -1.0},
        [0.0, impossible, impossible],
        [{1: 1.0, 2: -3.0}, {1: 0.5, 2: 4.0}],
    )
    assert found == (7.0, -1, (0, ((1, ()), (2, ()))))


def test_nothing_to_parse() -> None:
    assert best(1, {}, [0.0], []) is None
    assert best(1, {}, [0.0], [{0: 1.0}, {0: 1.0}]) is None


@pytest.mark.parametrize(
    "change",
    [
        {"rules": np.array([[0, 0, 5]], dtype=np.int32)},
        {"weights": np.array([np.nan])},
        {"tags": np.array([7], dtype=np.int32)},
        {"tag_starts": np.array([0, 9], dtype=np.int64)},
        {"root_weights": np.zeros(3)},
        {"sentence_starts": np.array([0, 5], dtype=np.int64)},
    ],
)
def test_forged_arrays_are_refused(change: dict[str, np.ndarray]) -> None:
    arrays = {
        "rules": np.array([[0, 0, 0]], dtype=np.int32),
        "weights": np.zeros(1),
        "root_weights": np.zeros(1),
        "tags": np.zeros(1, dtype=np.int32),
        "tag_weights": np.zeros(1),
        "tag_starts": np.array([0, 1], dtype=np.int64),
        "sentence_starts": np.array([0, 1], dtype=np.int64),
    }
    with pytest.raises(_native.KernelError, match="E_ARGUMENT"):
        _native.best_weighted_trees(symbols=1, threads=1, **{**arrays, **change})
