"""PLSA and n-gram/PLSA: events per second and core, memory against the plan, effect of threads.

    python benchmarks/topics.py [--text FILE...] [--documents 2000] [--topics 200] [--order 3]

Trains on some documents of a text and prints processor seconds of each part: an iteration of PLSA,
the counting of events, an E-step, and the reading of held-out documents with all topics.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import numpy as np

from treelm.corpus.corpus import TextCorpus
from treelm.corpus.encoder import encode_open
from treelm.models.composite.memory_plan import plan_topics
from treelm.models.plsa.check_text import part_of, split_text
from treelm.models.plsa.config import PlsaConfig
from treelm.models.plsa.em import document_words, plsa_step, start_plsa
from treelm.models.plsa.trainer import PlsaTrainer

DEFAULT_TEXT = Path(__file__).resolve().parents[2] / "shared/data/text/reuters.txt.xz"
Result = TypeVar("Result")
#: Number of PLSA iterations before events are counted.
ITERATIONS = 10


def timed(name: str, work: Callable[[], Result], size: int) -> Result:
    """Do some work; print its processor time and speed."""
    wall, start = time.perf_counter(), time.process_time()
    result = work()
    seconds = time.process_time() - start
    print(
        f"{name:<28} {seconds:8.2f} s {size / max(seconds, 1e-9):12,.0f} per second and core"
        f" ({time.perf_counter() - wall:.2f} s on the clock)",
        flush=True,
    )
    return result


def main() -> None:
    """Read the options, train, and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("--text", type=Path, nargs="*", default=[DEFAULT_TEXT])
    parser.add_argument("--documents", type=int, default=2000)
    parser.add_argument("--topics", type=int, default=200)
    parser.add_argument("--keep-topics", type=int, default=5)
    parser.add_argument("--order", type=int, default=3)
    arguments = parser.parse_args()
    vocabulary, text = encode_open(TextCorpus(tuple(arguments.text)))
    documents = len(text.document_starts) - 1
    train, held_out = split_text(part_of(text, np.arange(documents) < arguments.documents))
    config = PlsaConfig(
        order=arguments.order, topics=arguments.topics, keep_topics=arguments.keep_topics
    )
    words = len(vocabulary)
    plan = plan_topics(train, words, config)
    counts = document_words(train, words)
    state = start_plsa(words, len(counts), config.topics, seed=1)
    for _ in range(ITERATIONS - 1):
        state = plsa_step(counts, state)
    state = timed("PLSA, one iteration (pairs)", lambda: plsa_step(counts, state), counts.pairs)
    trainer = PlsaTrainer(train, held_out, config, words)
    timed("counting (events)", lambda: trainer.count(state), trainer.events)
    trainer.refit()
    print(f"types {trainer.tables.types():,}, planned {plan.nodes[-1].types:,}")
    print(f"bytes of tables {trainer.tables.bytes:,}, planned {plan.table_bytes:,}")
    likelihood, found, _ = timed("E-step (events)", trainer.expect, trainer.events)
    trainer.threads = 2
    again, same, _ = timed("E-step, 2 threads (events)", trainer.expect, trainer.events)
    print("1 and 2 threads agree:", likelihood == again and bool(np.array_equal(found, same)))
    model = trainer.model(vocabulary, ())
    size = len(held_out.ids) + len(held_out)
    timed("reading (events)", lambda: model.score_documents(held_out), size)


if __name__ == "__main__":
    main()
