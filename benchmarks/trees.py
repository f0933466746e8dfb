"""Throughput of the tree kernel: reading, treelet transforms, writing, events; and of a peer.

    python benchmarks/trees.py [--treebanks FOLDER] [--tokens 50000000]

Reads FOLDER/*/train.mrg (the packaged treebank if there is none) repeatedly until that many
tokens were processed, on one core and on two, and prints tokens per second, the resident memory
after a tenth and after all of the work, and the distance to the bound: one core copying the same
bytes. The peer is nltk's bracket reader on the same trees, in the same run.
"""

from __future__ import annotations

import argparse
import os
import time
import warnings
from collections.abc import Callable, Iterator
from itertools import cycle
from pathlib import Path
from statistics import median

from treelm.corpus.brackets import ReadOptions, ReadReport, read_packed, rewrite_brackets
from treelm.corpus.corpus import TreeCorpus, TreeSentences
from treelm.corpus.files import read_blocks
from treelm.corpus.sample_treebank import sample_path
from treelm.corpus.vocabulary_rules import VocabularyRule, build_vocabulary
from treelm.errors import TreelmWarning
from treelm.events.counts import EventCounter
from treelm.events.extract import TreeEvents
from treelm.events.template import TREELET_NONTERMINAL, TREELET_TERMINAL
from treelm.transforms.temporal_lexicon import TemporalLexicon
from treelm.transforms.treelet import Treelet
from treelm.trees.packed import PackedTrees

#: One core and two are measured in turn, several times, because a shared machine is never quiet.
ROUNDS = 5
WORK = (
    "read",
    "read, transform",
    "read, transform, write",
    "read, transform, extract",
    "read, transform, count",
)
DEFAULT_TREEBANKS = Path(__file__).resolve().parents[2] / "shared" / "data" / "treebanks"


def resident_megabytes() -> float:
    """Return the memory this process uses now."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


def endless(files: list[Path]) -> Iterator[bytes]:
    """Yield the blocks of the files, over and over."""
    for file in cycle(files):
        yield from read_blocks(file)


def measure(
    work: str, files: list[Path], tokens: int, threads: int, temporal: frozenset[str]
) -> float:
    """Run one kind of work on `tokens` tokens and return tokens per second."""
    options = ReadOptions()
    transformed = Treelet(temporal=temporal).recipe_with(options)
    recipe = options.recipe() if work == "read" else transformed
    report = ReadReport()
    early = None
    count = event_work(work, files)
    start = time.perf_counter()
    if work == "read, transform, write":
        per_tree = tokens_per_tree(files)
        output = rewrite_brackets(
            endless(files), transformed, on_error="skip", report=report, threads=threads
        )
        written = 0
        for text in output:
            written += len(text)
            if early is None and report.trees * per_tree > tokens / 10:
                early = resident_megabytes()
            if report.trees * per_tree >= tokens:
                break
        done = report.trees * per_tree
    else:
        batches = read_packed(
            endless(files), recipe=recipe, on_error="skip", report=report, threads=threads
        )
        for batch in batches:
            count(batch)
            if early is None and report.tokens > tokens / 10:
                early = resident_megabytes()
            if report.tokens >= tokens:
                break
        done = report.tokens
    seconds = time.perf_counter() - start
    rate = done / seconds
    print(
        f"{work:<24} {threads} thread{'s' if threads > 1 else ' '} {done / 1e6:7.1f} M tokens "
        f"{seconds:7.2f} s {rate / 1e6:6.2f} M tokens/s   "
        f"memory {early or 0:.0f} -> {resident_megabytes():.0f} MB",
        flush=True,
    )
    return rate


def event_work(work: str, files: list[Path]) -> Callable[[PackedTrees], None]:
    """Return the work on each batch: nothing, treelet events as rows, or counted events."""
    if not work.endswith(("extract", "count")):
        return lambda _: None
    templates = (TREELET_TERMINAL, TREELET_NONTERMINAL)
    sentences = TreeSentences(TreeCorpus(tuple(files), on_error="skip"))
    events = TreeEvents(templates, build_vocabulary(sentences, VocabularyRule()))
    counters = [EventCounter(1 + len(template.context)) for template in templates]

    def extract(batch: PackedTrees) -> None:
        for counter, rows in zip(counters, events.extract(batch), strict=True):
            if work == "read, transform, count":
                counter.add(rows)

    return extract


def tokens_per_tree(files: list[Path]) -> float:
    """Return the mean length of the sentences, to count tokens where only text comes out."""
    report = ReadReport()
    for file in files:
        for _ in read_packed(file, on_error="skip", report=report):
            pass
    return report.tokens / report.trees


def measure_copy(files: list[Path], tokens: int, bytes_per_token: float) -> float:
    """Return tokens per second of reading the same bytes into memory and doing nothing else."""
    total = 0
    start = time.perf_counter()
    for block in endless(files):
        total += len(bytearray(block))
        if total >= tokens * bytes_per_token:
            break
    return total / bytes_per_token / (time.perf_counter() - start)


def measure_nltk(files: list[Path], lines: int = 3000) -> float | None:
    """Return tokens per second of nltk's reader on the first lines of the files."""
    try:
        from nltk.tree import Tree
    except ImportError:
        return None
    tokens = 0
    seconds = 0.0
    for file in files:
        with file.open(encoding="utf-8") as text:
            for line, _ in zip(text, range(lines // len(files)), strict=False):
                start = time.perf_counter()
                tree = Tree.fromstring(line, remove_empty_top_bracketing=True)
                seconds += time.perf_counter() - start
                tokens += len(tree.leaves())
    return tokens / seconds


def main() -> None:
    """Measure everything and print it."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--treebanks", type=Path, default=DEFAULT_TREEBANKS)
    parser.add_argument("--tokens", type=int, default=50_000_000)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore", TreelmWarning)
    files = sorted(arguments.treebanks.glob("*/train.mrg")) or [sample_path()]
    report = ReadReport()
    for file in files:
        for _ in read_packed(file, on_error="skip", report=report):
            pass
    size = sum(file.stat().st_size for file in files)
    print(
        f"{len(files)} files, {report.trees} trees, {report.tokens} tokens, {size / 1e6:.1f} MB, "
        f"{size / report.tokens:.1f} bytes per token, {report.failed} malformed"
    )
    temporal = TemporalLexicon.collect(files, on_error="skip").words()
    cores = sorted(os.sched_getaffinity(0))
    rates: dict[tuple[str, int], list[float]] = {}
    ratios: dict[str, list[float]] = {work: [] for work in WORK}
    for _ in range(ROUNDS):
        for work in WORK:
            for threads in (1, 2):
                os.sched_setaffinity(0, cores[:threads])
                share = arguments.tokens // ROUNDS
                rate = measure(work, files, share, threads, temporal)
                rates.setdefault((work, threads), []).append(rate)
            ratios[work].append(rates[work, 2][-1] / rates[work, 1][-1])
    os.sched_setaffinity(0, cores[:1])
    bound = measure_copy(files, arguments.tokens, size / report.tokens)
    peer = measure_nltk(files)
    os.sched_setaffinity(0, cores)
    print(f"medians of {ROUNDS} rounds, {arguments.tokens / 1e6:g} M tokens each in all:")
    for work in WORK:
        one, two = (median(rates[work, threads]) / 1e6 for threads in (1, 2))
        print(
            f"{work:<24} 1 thread {one:.2f} M tokens/s, 2 threads {two:.2f} M tokens/s, "
            f"2 threads over 1: {median(ratios[work]):.2f}x "
            f"({min(ratios[work]):.2f} to {max(ratios[work]):.2f})"
        )
    reading = median(rates["read", 1])
    print(f"bound (copying the bytes, one core): {bound / 1e6:.1f} M tokens/s; ", end="")
    print(f"reading is {bound / reading:.0f}x from it")
    if peer is not None:
        print(f"nltk.Tree.fromstring: {peer / 1e6:.3f} M tokens/s; ", end="")
        print(f"treelm reads {reading / peer:.0f}x as fast")


if __name__ == "__main__":
    main()
