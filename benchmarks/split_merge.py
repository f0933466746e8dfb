"""Training of latent grammars: seconds of processor time, likelihoods, and the effect of threads.

    python benchmarks/split_merge.py [--trees FILE] [--cycles 5] [--threads 2]

Trains on one thread and prints a line for each cycle, then the time of one expectation step on one
thread and on several, the best of a few because a shared machine is never quiet.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

from treelm.corpus.corpus import TreeCorpus
from treelm.corpus.sample_treebank import sample_path
from treelm.grammar.binary_trees import build_binary_trees
from treelm.grammar.latent_trees import LatentTrees
from treelm.grammar.split_merge import (
    Iteration,
    LatentWeights,
    SplitMerge,
    SplitMergeOptions,
    split,
    unsplit_weights,
)

DEFAULT_TREES = Path(__file__).resolve().parents[2] / "shared/data/treebanks/wsj-sample/train.mrg"
#: Number of iterations in the comparison of threads.
ROUNDS = 5


def run_cycle(
    training: SplitMerge, state: LatentWeights, cycle: int
) -> tuple[LatentWeights, Iteration | None]:
    """Run a cycle; return the grammar after it and the last iteration."""
    steps = training.run_cycle(state, cycle)
    last = None
    while True:
        try:
            last = next(steps)
        except StopIteration as end:
            return end.value, last


def expectation_seconds(
    trees: LatentTrees, state: LatentWeights, threads: int
) -> tuple[float, float]:
    """Return wall and processor seconds of one expectation step."""
    best = (float("inf"), float("inf"))
    for _ in range(ROUNDS):
        wall, processor = time.perf_counter(), time.process_time()
        trees.expect(state.substates, state.weights, threads=threads)
        best = min(best, (time.perf_counter() - wall, time.process_time() - processor))
    return best


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    default = DEFAULT_TREES if DEFAULT_TREES.exists() else sample_path()
    parser.add_argument("--trees", type=Path, default=default)
    parser.add_argument("--cycles", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    trees = LatentTrees(build_binary_trees(TreeCorpus((options.trees,)).batches()))
    print(f"{len(trees)} trees, {len(trees.trees.leaves)} words, {len(trees.rules.rows)} rules")
    training = SplitMerge(trees, SplitMergeOptions(seed=1))
    state, started, before = unsplit_weights(trees), time.process_time(), unsplit_weights(trees)
    for cycle in range(1, options.cycles + 1):
        before = state
        state, last = run_cycle(training, state, cycle)
        assert last is not None
        print(
            f"cycle {cycle}: {time.process_time() - started:.1f} s of processor time, "
            f"log likelihood {last.log_likelihood:.1f}, {last.substates} subcategories"
        )
    state = split(trees.rules, before, noise=0.01, seed=1, cycle=options.cycles)
    for threads in (1, options.threads):
        wall, processor = expectation_seconds(trees, state, threads)
        print(
            f"expectation step, {threads} threads: {1000 * wall:.0f} ms, "
            f"{1000 * processor:.0f} ms of processor time"
        )


if __name__ == "__main__":
    main()
