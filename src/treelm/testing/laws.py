"""The laws that exist so far. Each system and engine adds its own here."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import islice
from typing import get_args

from treelm.corpus.sample_treebank import sample_treebank
from treelm.parallel.executor import Engine, Executor
from treelm.testing import incremental, models  # noqa: F401  (they register their laws)
from treelm.testing.contracts import law
from treelm.transforms.transform import Transform, transform_from_config
from treelm.trees.heads import find_heads_all
from treelm.trees.tree import Tree


def transform_cases(count: int = 40) -> Iterator[Tree]:
    """Yield trees of the packaged treebank, heads filled in, that any transform must accept."""
    yield from find_heads_all(islice(sample_treebank(), count))


@law("transform", "purity")
def _purity(transform: Transform, tree: Tree) -> None:
    """Applying a transform twice to one tree gives equal results and leaves the tree as it was."""
    before = str(tree)
    assert transform.apply(tree) == transform.apply(tree)
    assert str(tree) == before


@law("transform", "yield")
def _yield(transform: Transform, tree: Tree) -> None:
    """The words of a sentence and their order stay the same."""
    assert transform.apply(tree).words == tree.words


@law("transform", "inverse")
def _inverse(transform: Transform, tree: Tree) -> None:
    """An invertible transform is undone exactly."""
    if transform.invertible:
        assert transform.undo(transform.apply(tree)) == tree


@law("transform", "batches")
def _batches(transform: Transform, tree: Tree) -> None:
    """Many trees at once give what one at a time gives."""
    assert list(transform.apply_all([tree, tree])) == [transform.apply(tree)] * 2


@law("transform", "manifest")
def _manifest(transform: Transform, tree: Tree) -> None:
    """A transform rebuilt from its stored description does the same."""
    stored = json.loads(json.dumps(transform.to_config()))
    again = transform_from_config(stored)
    assert again.to_config() == transform.to_config()
    assert again.apply(tree) == transform.apply(tree)


def _square(number: int) -> int:
    return number * number


def _fail_above_two(number: int) -> int:
    if number > 2:
        raise ArithmeticError(number)
    return number


@law("executor", "order")
def _order(executor: Executor, shards: list[int]) -> None:
    """Results come back in shard order, one per shard."""
    assert list(executor.map(_square, shards)) == [_square(shard) for shard in shards]


@law("executor", "errors")
def _errors(executor: Executor, shards: list[int]) -> None:
    """The error of the first failing shard is raised, after the results before it."""
    expected = [shard for shard in shards if shard > 2][:1]
    raised: list[object] = []
    done = []
    try:
        for result in executor.map(_fail_above_two, shards):
            done.append(result)  # noqa: PERF402 (what came before the error counts)
    except ArithmeticError as error:
        raised = list(error.args)
    assert raised == expected
    assert done == shards[: len(done)]


@law("executor", "name")
def _name(executor: Executor, shards: list[int]) -> None:
    """An executor has the name that the command line uses for it."""
    assert executor.name in get_args(Engine)
    assert isinstance(shards, list)
