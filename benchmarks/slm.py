"""The search of the structured language model: words per second, by stack size and by threads.

    python benchmarks/slm.py [--trees FILE... --held-out FILE] [--order 1] [--text FILE]

Prints processor time on one core against its targets; a shared machine makes all of it slower.
"""

from __future__ import annotations

import argparse
import time
import warnings
from pathlib import Path

from treelm.corpus.corpus import TextCorpus, TreeCorpus, TreeSentences
from treelm.errors import TreelmWarning
from treelm.models.composite.config import CompositeConfig
from treelm.models.composite.train import train_composite

DATA = Path(__file__).resolve().parents[2] / "shared/data/treebanks/wsj-sample"
#: Number of repetitions; the best counts, because a shared machine is never quiet.
ROUNDS = 3


def main() -> None:
    """Train on trees without EM, and time the search on others."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--trees", nargs="+", default=[str(DATA / "train.mrg")])
    parser.add_argument("--held-out", default=str(DATA / "dev.mrg"))
    parser.add_argument("--text", help="text to score; default: the held-out sentences")
    parser.add_argument("--order", type=int, default=1)
    parser.add_argument("--heads", type=int, default=2)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore", TreelmWarning)
    held_out = TreeCorpus((arguments.held_out,), on_error="skip")
    config = CompositeConfig(
        order=arguments.order, heads=arguments.heads, iterations=0, follow_up=0
    )
    trees = TreeCorpus(tuple(arguments.trees), on_error="skip")
    model = train_composite(trees, config, held_out=held_out)
    text = TextCorpus((arguments.text,)) if arguments.text else TreeSentences(held_out)
    sentences = list(text)
    tokens = sum(map(len, sentences)) + len(sentences)
    print(f"{model.config.name}: {tokens:,} words and ends")
    for size, target in ((10, "target 1,500 words/s, goal 3,000"), (20, ""), (5, "")):
        for merge in (True, False):
            searched = model.with_search(stack_size=size, merge=merge)
            best, bits = float("inf"), 0.0
            for _ in range(ROUNDS):
                start = time.process_time()
                bits = float(searched.score_batch(sentences).bits().mean())
                best = min(best, time.process_time() - start)
            merged = "merged" if merge else "not merged"
            speed = f"{tokens / best:,.0f} words/s"
            print(f"stacks of {size}, {merged}: {speed}, {bits:.4f} bits  {target}")
    for threads in (1, 2):
        start = time.perf_counter()
        model.score_batch(sentences, threads=threads)
        print(f"{threads} threads: {tokens / (time.perf_counter() - start):,.0f} words/s")


if __name__ == "__main__":
    main()
