"""Prefix probabilities of a grammar, word by word: growing charts, the latest of them kept."""

from __future__ import annotations

from collections import OrderedDict
from threading import Lock
from typing import Any

import numpy as np
import numpy.typing as npt

from treelm import _native
from treelm.grammar.chart import WORK_LIMIT
from treelm.grammar.grammar import FloatArray
from treelm.kernel_errors import kernel_errors

#: Memory limit of the kept charts, in bytes.
KEPT_BYTES = 256 << 20


class PrefixCharts:
    """Charts of sentence prefixes, by the ids of their words.

    A chart shares all its columns but the last with that of the words before, so that one more
    word costs one column. Dropped charts are made again on demand, with the same results.

    Args:
        kernel: The kernel that makes them.
        most_bytes: Memory limit of the kept charts.
    """

    def __init__(self, kernel: _native.PrefixScorer, most_bytes: int = KEPT_BYTES) -> None:
        self._kernel = kernel
        self._most_bytes = most_bytes
        self._kept: OrderedDict[tuple[int, ...], _native.PrefixChart] = OrderedDict()
        self._bytes = 0
        self._lock = Lock()
        self._start = kernel.start()

    @property
    def kept_bytes(self) -> int:
        """Memory of the charts kept now."""
        return self._bytes

    def chart(self, words: tuple[int, ...]) -> _native.PrefixChart:
        """Return the chart of some words."""
        known, chart = len(words), None
        with self._lock:
            while known and (chart := self._kept.get(words[:known])) is None:
                known -= 1
            if chart is not None:
                self._kept.move_to_end(words[:known])
        chart = chart or self._start
        for place in range(known, len(words)):
            with kernel_errors("scoring prefixes"):
                chart = self._kernel.extend(chart, words[place])
            self._keep(words[: place + 1], chart)
        return chart

    def _keep(self, words: tuple[int, ...], chart: _native.PrefixChart) -> None:
        with self._lock:
            if words not in self._kept:
                self._bytes += chart.bytes
            self._kept[words] = chart
            while self._bytes > self._most_bytes and len(self._kept) > 1:
                self._bytes -= self._kept.popitem(last=False)[1].bytes

    def next_log_probs(self, words: tuple[int, ...], ids: npt.NDArray[np.uint32]) -> FloatArray:
        """Return the natural log probability of each of some words after others."""
        chart = self.chart(words)
        if chart.log_prefix == -np.inf:
            return np.full(len(ids), -np.inf)
        with kernel_errors("scoring prefixes"):
            found: FloatArray = self._kernel.next(chart, ids) - chart.log_prefix
        return found

    def end_log_prob(self, words: tuple[int, ...]) -> float:
        """Return the natural log probability that a sentence ends after some words."""
        chart = self.chart(words)
        return -np.inf if chart.log_prefix == -np.inf else chart.log_whole - chart.log_prefix


def word_log_probs(
    kernel: _native.PrefixScorer,
    ids: npt.NDArray[np.uint32],
    starts: npt.NDArray[np.uint64],
    *,
    work_limit: int = WORK_LIMIT,
    threads: int = 1,
) -> FloatArray:
    """Return the natural log probability of every word and end of sentences.

    Args:
        kernel: The kernel that scores prefixes.
        ids: The words of all sentences.
        starts: Where each sentence begins, and the total.
        work_limit: Multiplications after which the chart of a sentence is given up.
        threads: Number of threads.

    Returns:
        The words of each sentence, then its end; NaN where a chart is too large.
    """
    with kernel_errors("scoring prefixes"):
        log_probs = kernel.score(
            np.ascontiguousarray(ids),
            starts.astype(np.uint64),
            work_limit=work_limit,
            threads=threads,
        )
    return _steps(log_probs, starts)


def _steps(log_probs: FloatArray, starts: npt.NDArray[np.unsignedinteger[Any]]) -> FloatArray:
    """Return the log probability of each word and end, given those of prefixes and sentences."""
    firsts = starts[:-1].astype(np.int64) + np.arange(len(starts) - 1)
    before = np.zeros(len(log_probs))
    before[1:] = log_probs[:-1]
    before[firsts] = 0.0
    steps = np.full(len(log_probs), -np.inf)  # where there is no continuation
    np.subtract(log_probs, before, out=steps, where=~np.isneginf(log_probs))
    return steps
