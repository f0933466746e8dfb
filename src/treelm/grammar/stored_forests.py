"""Packed forests of many sentences as a few arrays, for storage."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from treelm.grammar.k_best_arrays import Arrays, narrow, starts
from treelm.grammar.packed_forest import (
    ForestSymbols,
    PackedForest,
    check_forests,
    join_forests,
    split_forests,
)
from treelm.grammar.scored_tree import ParseStatus

_FLOATS = {"log_prob": "<f8", "node_expected": "<f8", "edge_expected": "<f4"}
_NAMES = frozenset(
    (
        *_FLOATS,
        *("symbols", "labels", "visible_start", "visible_label", "sizes", "status"),
        *("nodes", "edges", "node_symbol", "node_first", "node_last"),
        *("edge_head", "edge_left", "edge_right"),
    )
)


def joined_forests(forests: Sequence[PackedForest | None]) -> Arrays:
    """Return the arrays of forests of one parser; `parted_forests` is the inverse."""
    known = next((forest.symbols for forest in forests if forest is not None), None)
    nothing = np.zeros(1, dtype=np.uint32)
    symbols = known or ForestSymbols(("",), 0, nothing.repeat(2), nothing[:0], (), 0)
    arrays = join_forests(forests)
    return {
        "symbols": np.frombuffer("\n".join(symbols.names).encode(), dtype=np.uint8),
        "labels": np.frombuffer("\n".join(symbols.labels).encode(), dtype=np.uint8),
        "visible_start": symbols.visible_start,
        "visible_label": symbols.visible_label,
        "sizes": np.array([symbols.phrasal, symbols.max_unary], dtype=np.uint32),
        "status": np.array([forest.status if forest else 0 for forest in forests], np.uint8),
        "log_prob": np.array([forest.log_prob if forest else -np.inf for forest in forests]),
        "nodes": narrow(np.diff(arrays[1])),
        "edges": narrow(np.diff(arrays[2])),
        "node_symbol": narrow(arrays[3]),
        "node_first": narrow(arrays[4]),
        "node_last": narrow(arrays[5]),
        "node_expected": arrays[6],
        "edge_head": narrow(arrays[7]),
        "edge_left": narrow(arrays[8]),
        "edge_right": narrow(arrays[9] + np.uint32(1)),  # 0 for no node
        "edge_expected": arrays[10],
    }


def parted_forests(
    sentences: Sequence[tuple[str, ...]], arrays: Arrays
) -> list[PackedForest | None]:
    """Return the forests that `joined_forests` was given.

    Raises:
        ValueError: with the reason, if the arrays do not fit together.
        EstimationError: ``E_ARGUMENT`` for anything but a forest.
    """
    if set(arrays) != _NAMES or any(array.ndim != 1 for array in arrays.values()):
        raise ValueError("the arrays are not forests")
    for name, array in arrays.items():
        if array.dtype != _FLOATS[name] if name in _FLOATS else array.dtype.kind != "u":
            raise ValueError(f"the array {name} has the wrong type")
    counts = ("status", "log_prob", "nodes", "edges")
    if any(len(arrays[name]) != len(sentences) for name in counts) or len(arrays["sizes"]) != 2:
        raise ValueError("the number of entries is not that of the sentences")
    status = arrays["status"]
    if len(status) and status.max() > max(ParseStatus):
        raise ValueError("a status is unknown")
    nodes, edges = starts(arrays["nodes"]), starts(arrays["edges"])
    for name, array in arrays.items():
        size = nodes[-1] if name.startswith("node_") else edges[-1]
        if name.startswith(("node_", "edge_")) and len(array) != size:
            raise ValueError(f"the array {name} has the wrong length")
    phrasal, max_unary = arrays["sizes"].tolist()
    symbols = ForestSymbols(
        tuple(bytes(arrays["symbols"]).decode().split("\n")),
        phrasal,
        arrays["visible_start"].astype(np.uint32),
        arrays["visible_label"].astype(np.uint32),
        tuple(bytes(arrays["labels"]).decode().split("\n")),
        min(max_unary, 1000),
    )
    if phrasal > len(symbols.names) or len(symbols.visible_start) != len(symbols.names) + 1:
        raise ValueError("the number of symbols is wrong")
    if len(symbols.visible_label) and symbols.visible_label.max() >= len(symbols.labels):
        raise ValueError("a label is out of range")
    forests = split_forests(
        sentences,
        symbols,
        (
            starts(np.array([len(words) for words in sentences])),
            nodes,
            edges,
            *(arrays[f"node_{name}"].astype(np.uint32) for name in ("symbol", "first", "last")),
            arrays["node_expected"],
            *(arrays[f"edge_{name}"].astype(np.uint32) for name in ("head", "left")),
            arrays["edge_right"].astype(np.uint32) - np.uint32(1),
            arrays["edge_expected"],
        ),
        arrays["log_prob"],
        [ParseStatus(own) for own in status.tolist()],
    )
    check_forests(forests)
    return forests
