"""Treelet models: speed of counting trees, making models, and scoring lists of trees.

    python benchmarks/treelet.py [--trees FILE...] [--memory 2G] [--parser MODEL]

Trains on files of trees, or repeats FOLDER/*/train.mrg (the packaged treebank if there is none)
until there are enough tokens, with one and two threads: counting alone, and everything from the
file to the saved model. From that it says what 1.3 billion tokens would take. Then takes lists of
1000 trees of sentences of 24 to 26 words, by the parser given or by a treebank grammar of the same
trees, and scores them on one core, transforms included. Processor time is printed beside wall time,
because a shared machine is never quiet.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import resource
import tempfile
import threading
import time
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import median
from typing import TypeVar

import numpy as np

from treelm.corpus.brackets import ReadReport
from treelm.corpus.corpus import TreeCorpus, TreeSentences
from treelm.corpus.sample_treebank import sample_path
from treelm.errors import TreelmWarning
from treelm.models.interface.parser import Parser, k_best_lists
from treelm.models.registry import load, train
from treelm.models.run import Run
from treelm.models.treelet.config import TreeletConfig
from treelm.models.treelet.counts import CountedTreelets
from treelm.models.treelet.events import count_treelets
from treelm.models.treelet.train import train_treelet
from treelm.parallel.memory import MemoryLimit
from treelm.trees.packed import PackedTrees

DEFAULT_TREEBANKS = Path(__file__).resolve().parents[2] / "shared" / "data" / "treebanks"
LENGTHS = range(24, 27)
TREES = 1000
ROUNDS = 5
#: Tokens of the publication's largest training set.
LARGE = 1.3e9

T = TypeVar("T")


def processor_seconds() -> float:
    """Return the processor time this process has used."""
    used = os.times()
    return used.user + used.system


def timed(work: Callable[[], T]) -> tuple[T, float, float]:
    """Return the result of the work, its wall time, and its processor time."""
    start, before = time.perf_counter(), processor_seconds()
    result = work()
    return result, time.perf_counter() - start, processor_seconds() - before


def repeated(files: list[Path], tokens: int, folder: Path) -> tuple[Path, int]:
    """Return a file that repeats others until it has enough tokens, and how many it has."""
    report = ReadReport()
    for _ in TreeCorpus(tuple(files), on_error="skip").batches(report):
        pass
    times = max(1, round(tokens / report.tokens))
    path = folder / "trees.mrg"
    with path.open("wb") as out:
        for _ in range(times):
            for file in files:
                out.write(file.read_bytes() + b"\n")
    return path, times * report.tokens


class DiskWatch:
    """Records the largest size of the files in a folder during work."""

    def __init__(self, folder: Path) -> None:
        self.largest = 0
        self._folder = folder
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def _watch(self) -> None:
        while not self._stop.wait(0.2):
            used = 0
            for file in self._folder.rglob("*"):
                with contextlib.suppress(OSError):  # deleted meanwhile
                    used += file.stat().st_size
            self.largest = max(self.largest, used)

    def __enter__(self) -> DiskWatch:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()


def measure_training(
    paths: tuple[Path, ...], tokens: int, folder: Path, memory: str | None, threads_of: list[int]
) -> None:
    """Print how fast trees are counted, and a model is made and saved."""
    # A closed vocabulary needs no separate reading.
    words = train("ngram", TreeCorpus(paths, on_error="skip"), order=1).vocabulary
    clock = used = 0.0
    watch = DiskWatch(folder)
    for threads in threads_of:
        corpus = TreeCorpus(paths, on_error="skip", threads=threads)
        limit = None if memory is None else MemoryLimit.parse(memory, folder)
        counting = partial(count_treelets, corpus, TreeletConfig(), threads=threads, memory=limit)
        _, clock, used = timed(partial(counting, vocabulary=words))
        show(f"count, {threads} threads", tokens, clock, used)
        start, before = time.perf_counter(), processor_seconds()
        watch = DiskWatch(folder)
        with watch:
            counts = counting()
            model = train_treelet(
                CountedTreelets(counts, TreeletConfig()),
                TreeletConfig(),
                run=Run(threads=threads, memory=limit),
            )
            model.save(folder / "model")
        clock, used = time.perf_counter() - start, processor_seconds() - before
        show(f"words, counts, model, files; {threads} threads", tokens, clock, used)
        del counts, model
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**10
    size = sum(file.stat().st_size for file in (folder / "model").iterdir()) / 2**20
    print(
        f"peak memory {peak:.0f} MiB, model {size:.0f} MiB, peak disk with sorted files "
        f"{watch.largest / 2**20:.0f} MiB"
    )
    times = LARGE / tokens
    print(
        f"1.3 billion tokens, in proportion: {times * clock / 3600:.2f} hours, model "
        f"{times * size / 2**10:.0f} GiB, disk {times * watch.largest / 2**30:.0f} GiB, memory as "
        "--memory says"
    )


def show(what: str, tokens: int, clock: float, used: float) -> None:
    """Print a throughput."""
    print(
        f"{what:<40} {tokens / clock / 1e6:6.2f} M tokens/s "
        f"({tokens / max(used, 0.01) / 1e6:.2f} M tokens per processor second)"
    )


def measure_scoring(files: list[Path], parser: Parser) -> None:
    """Print how long lists of trees take on one core."""
    corpus = TreeCorpus(tuple(files), on_error="skip")
    sentences = [words for words in TreeSentences(corpus) if len(words) in LENGTHS][:20]
    model = train_treelet(corpus, TreeletConfig())
    milliseconds, nodes, subtrees, found = [], [], [], 0
    for parses in k_best_lists(parser, sentences, TREES):
        if len(parses) < TREES or parses[0].is_fallback:
            continue
        found += 1
        packed = getattr(parses, "packed", None)
        if not isinstance(packed, PackedTrees):
            packed = PackedTrees.from_trees([parse.tree for parse in parses])
        starts = np.array([0, len(packed)], dtype=np.uint64)
        times = []
        for _ in range(ROUNDS):
            start = time.process_time()
            scores = model.kernel.score(packed.native, starts, transform=True, threads=1)
            times.append(time.process_time() - start)
        milliseconds.append(1000 * min(times))
        nodes.append(scores[2])
        subtrees.append(scores[3])
    if not found:
        print(f"no sentence of 24 to 26 words has {TREES} trees")
        return
    print(
        f"{found} lists of {TREES} trees of 24 to 26 words, one core: median "
        f"{median(milliseconds):.2f} ms, largest {max(milliseconds):.2f} ms; {median(nodes):.0f} "
        f"nodes, {median(subtrees):.0f} distinct subtrees scored"
    )


def main() -> None:
    """Read the options and measure."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("--treebanks", type=Path, default=DEFAULT_TREEBANKS)
    parser.add_argument("--tokens", type=int, default=20_000_000)
    parser.add_argument("--parser", type=Path, help="model folder of a parser")
    parser.add_argument("--memory", help="memory limit, such as 2G")
    parser.add_argument("--trees", type=Path, nargs="*", help="files of trees, as they are")
    parser.add_argument("--threads", type=int, nargs="*", default=[1, 2])
    parser.add_argument("--no-scoring", action="store_true", help="do not score lists of trees")
    arguments = parser.parse_args()
    files = sorted(arguments.treebanks.glob("*/train.mrg")) or [Path(sample_path())]
    with warnings.catch_warnings(), tempfile.TemporaryDirectory() as folder:
        warnings.simplefilter("ignore", TreelmWarning)
        if arguments.trees:
            paths = tuple(arguments.trees)
            tokens = sum(TreeCorpus((path,), on_error="skip").fingerprint.tokens for path in paths)
        else:
            path, tokens = repeated(files, arguments.tokens, Path(folder))
            paths = (path,)
        size = sum(path.stat().st_size for path in paths)
        print(f"{tokens} tokens, {size / 2**20:.0f} MiB")
        with tempfile.TemporaryDirectory() as work:
            measure_training(paths, tokens, Path(work), arguments.memory, arguments.threads)
        if arguments.no_scoring:
            return
        used: object
        if arguments.parser is None:
            used = train("pcfg", TreeCorpus(tuple(files), on_error="skip"))
        else:
            used = load(arguments.parser)
        assert isinstance(used, Parser)
        measure_scoring(files, used)


if __name__ == "__main__":
    main()
