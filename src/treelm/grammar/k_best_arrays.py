"""K-best lists of many sentences as few arrays, to be stored."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from treelm import _native
from treelm.corpus.k_best_lists import PackedList
from treelm.errors import UsageError
from treelm.grammar.k_best import KBest, split_k_best
from treelm.grammar.scored_tree import ParseStatus, ScoredTree
from treelm.kernel_errors import kernel_errors
from treelm.trees.packed import PackedTrees

Arrays = dict[str, npt.NDArray[Any]]

_NAMES = frozenset(
    ("labels", "status", "limited", "log_prob", "trees", "score", "nodes", "label", "size")
)


def k_best_of_trees(words: Sequence[str], trees: Sequence[ScoredTree]) -> KBest:
    """Return trees of a sentence as arrays.

    Raises:
        UsageError: ``E_YIELD_MISMATCH`` for trees whose words differ.
    """
    for found in trees:
        if found.tree.words != tuple(words):
            raise UsageError(
                f"a tree has the words {' '.join(found.tree.words)!r}, but its sentence has "
                f"{' '.join(words)!r}.",
                code="E_YIELD_MISMATCH",
            )
    packed = PackedTrees.from_trees(found.tree for found in trees)
    return KBest(
        tuple(words),
        tuple(map(str, packed.labels)),
        np.array([found.score for found in trees], dtype=np.float64),
        packed.tree_start.astype(np.uint64),
        packed.node_label,
        packed.node_size,
        trees[0].sentence_log_prob if trees else -np.inf,
        trees[0].status if trees else ParseStatus.FAILED,
    )


def reordered(found: KBest, scores: npt.NDArray[np.float64]) -> KBest:
    """Return a list with other scores, the best first; equal scores stay in their order."""
    order = np.argsort(-scores, kind="stable")
    starts = found.tree_start.astype(np.int64)
    sizes = np.diff(starts)[order]
    ends = np.cumsum(sizes)
    nodes = np.arange(ends[-1] if len(ends) else 0) + np.repeat(starts[order] - ends + sizes, sizes)
    return replace(
        found,
        scores=scores[order],
        tree_start=np.append(0, ends).astype(np.uint64),
        node_label=found.node_label[nodes],
        node_size=found.node_size[nodes],
    )


def k_best_of_list(found: PackedList) -> KBest | None:
    """Return a list that another parser made as arrays: its words have no probability."""
    if found.trees is None:
        return None
    return KBest(
        found.trees.first_words(),
        tuple(map(str, found.trees.labels)),
        np.array([np.nan if score is None else score for score in found.scores]),
        found.trees.tree_start.astype(np.uint64),
        found.trees.node_label,
        found.trees.node_size,
        np.nan,
    )


def joined_k_best(k_best: Sequence[KBest | None]) -> Arrays:
    """Return the arrays of k-best lists; `parted_k_best` is the inverse, given the sentences."""
    numbers: dict[str, int] = {}
    labels: list[npt.NDArray[np.uint32]] = []
    renumbered: dict[tuple[str, ...], npt.NDArray[np.uint32]] = {}
    for found in k_best:
        if found is None:
            continue
        if found.labels not in renumbered:
            own = [numbers.setdefault(label, len(numbers)) for label in found.labels]
            renumbered[found.labels] = np.array(own, dtype=np.uint32)
        labels.append(renumbered[found.labels][found.node_label])
    shown = [found for found in k_best if found is not None]
    names = "\n".join(numbers).encode()
    return {
        "labels": np.frombuffer(names, dtype=np.uint8),
        "status": np.array([0 if found is None else found.status for found in k_best], np.uint8),
        "limited": np.array([found is not None and found.is_limited for found in k_best], np.uint8),
        "log_prob": np.array([-np.inf if found is None else found.log_prob for found in k_best]),
        "trees": narrow(np.array([0 if found is None else len(found) for found in k_best])),
        "score": np.concatenate([np.zeros(0), *(found.scores for found in shown)]),
        "nodes": narrow(_concatenated(np.diff(found.tree_start) for found in shown)),
        "label": narrow(_concatenated(labels)),
        "size": narrow(_concatenated(found.node_size for found in shown)),
    }


def parted_k_best(sentences: Sequence[tuple[str, ...]], arrays: Arrays) -> list[KBest | None]:
    """Return the k-best lists that `joined_k_best` was given.

    Raises:
        ValueError: with the reason, if the arrays do not fit together or do not contain trees of
            the sentences.
        EstimationError: ``E_ARGUMENT`` for nodes that do not form trees of the words.
    """
    if set(arrays) != _NAMES or any(array.ndim != 1 for array in arrays.values()):
        raise ValueError("the arrays are not those of k-best lists")
    for name, array in arrays.items():
        is_float = name in {"log_prob", "score"}
        if array.dtype != np.float64 if is_float else array.dtype.kind != "u":
            raise ValueError(f"the array {name} has the wrong type")
    if any(
        len(arrays[name]) != len(sentences) for name in ("status", "limited", "log_prob", "trees")
    ):
        raise ValueError("the number of entries is not that of the sentences")
    status = arrays["status"]
    if len(status) and status.max() > max(ParseStatus):
        raise ValueError("a status is unknown")
    names = tuple(bytes(arrays["labels"]).decode().split("\n"))
    list_starts, nodes = starts(arrays["trees"]), starts(arrays["nodes"])
    label, size = arrays["label"].astype(np.uint32), arrays["size"].astype(np.uint32)
    score = arrays["score"]
    with kernel_errors("reading trees"):
        _native.check_tree_lists(
            labels=len(names),
            word_start=starts(np.array([len(words) for words in sentences])),
            list_start=list_starts,
            score=score,
            tree_start=nodes,
            label=label,
            size=size,
        )
    return split_k_best(
        sentences,
        names,
        (arrays["limited"].astype(np.uint8), list_starts, score, nodes, label, size),
        arrays["log_prob"],
        [ParseStatus(own) for own in status.tolist()],
    )


def narrow(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return non-negative numbers in as few bytes as the largest needs."""
    largest = int(array.max(initial=0))
    for dtype in (np.uint8, np.uint16, np.uint32):
        if largest <= np.iinfo(dtype).max:
            return array.astype(dtype)
    return array.astype(np.uint64)


def starts(sizes: npt.NDArray[Any]) -> npt.NDArray[np.uint64]:
    """Return where pieces of these sizes begin, and where the last ends.

    Raises:
        ValueError: for sizes beyond any memory.
    """
    if len(sizes) and float(sizes.astype(np.float64).sum()) > 2**48:
        raise ValueError("sizes are too large")
    return np.concatenate([np.zeros(1, np.uint64), np.cumsum(sizes.astype(np.uint64))])


def _concatenated(arrays: Iterable[npt.NDArray[Any]]) -> npt.NDArray[Any]:
    return np.concatenate([np.zeros(0, dtype=np.uint32), *arrays])
