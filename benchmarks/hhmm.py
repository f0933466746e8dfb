"""The HHMM: time of a word, of a cached word, by length and by threads.

    python benchmarks/hhmm.py [--model FOLDER | --trees FILE...] [--text FILE] [--wide]

Prints processor time on one core against its targets; a shared machine makes all of it slower.
"""

from __future__ import annotations

import argparse
import time
import warnings
from pathlib import Path

import numpy as np

from treelm.corpus.corpus import TextCorpus, TreeCorpus, TreeSentences
from treelm.corpus.sample_treebank import sample_path
from treelm.errors import TreelmWarning
from treelm.models.hhmm.config import HhmmConfig
from treelm.models.hhmm.model import HhmmModel
from treelm.models.hhmm.train import train_hhmm
from treelm.models.interface.states import State

DATA = Path(__file__).resolve().parents[2] / "shared/data/treebanks"
TREEBANKS = ("wsj-sample", "masc", "gum", "craft")
#: Number of repetitions; the best counts, because a shared machine is never quiet.
ROUNDS = 3

Sentences = list[tuple[str, ...]]


def seconds(model: HhmmModel, sentences: Sentences, threads: int = 1) -> tuple[float, float, float]:
    """Return processor and wall seconds, the best of a few, and bits per word."""
    best, wall = float("inf"), float("inf")
    bits = 0.0
    for _ in range(ROUNDS):
        fresh = model.with_search()  # with an empty cache
        began, start = time.perf_counter(), time.process_time()
        bits = float(fresh.score_batch(sentences, threads=threads).bits().mean())
        best = min(best, time.process_time() - start)
        wall = min(wall, time.perf_counter() - began)
    return best, wall, bits


def beams(model: HhmmModel, sentences: Sentences, *, wide: bool) -> None:
    """Print the time per word by beam."""
    words = sum(map(len, sentences))
    exact = 0.0
    for width, ratio, target in (
        (2000, 0.0, "target 6 ms, goal 1,500 words/s"),
        (2000, 1e-5, "target 2 ms, 0.01 bits"),
        (500, 0.0, "target 1,000 words/s, goal 4,000"),
        (50, 0.0, ""),
        *(((20000, 0.0, "target: within 0.05 bits of 2000"),) if wide else ()),
    ):
        used, _, bits = seconds(model.with_search(beam_width=width, beam_ratio=ratio), sentences)
        exact = exact or bits
        print(
            f"beam {width}, ratio {ratio:g}: {1000 * used / words:.3f} ms per word, "
            f"{words / used:,.0f} words/s, {bits:.4f} bits ({bits - exact:+.4f})  {target}"
        )


def cached(model: HhmmModel, sentences: Sentences) -> None:
    """Print the time of single steps from Python, new and cached."""
    pairs: list[tuple[State, str]] = []
    first = model.with_search()
    start = time.process_time()
    for words in sentences[:20]:
        state: State = first.initial()
        for word in words:
            pairs.append((state, word))
            state = first.advance(state, word).state
    new = (time.process_time() - start) / len(pairs)
    start = time.process_time()
    for state, word in pairs:
        first.advance(state, word)
    again = (time.process_time() - start) / len(pairs)
    print(f"advance, one word: new {1e3 * new:.3f} ms, cached {1e6 * again:.1f} us (target 20 us)")


def lengths(model: HhmmModel, sentences: Sentences) -> None:
    """Print the time of sentences by their length, and how linear it is."""
    words = [word for sentence in sentences for word in sentence]
    words = (words * (1 + 2000 // len(words)))[:2000]
    sizes, times = [10, 20, 50, 100, 200], []
    for size in sizes:
        cut = [tuple(words[place : place + size]) for place in range(0, 800, size)]
        used, _, _ = seconds(model, cut)
        times.append(1000 * used / len(cut))
    fit = np.corrcoef(sizes, times)[0, 1] ** 2
    shown = ", ".join(f"{size}: {each:.1f}" for size, each in zip(sizes, times, strict=True))
    print(f"ms per sentence by its words, beam 500: {shown}; r^2 of a line {fit:.4f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("--model", type=Path, help="model folder")
    parser.add_argument("--trees", type=Path, nargs="+", help="training trees")
    parser.add_argument("--text", type=Path, help="text to read; default: that of the dev trees")
    parser.add_argument("--sentences", type=int, default=100)
    parser.add_argument("--wide", action="store_true", help="also beam 20000")
    options = parser.parse_args()
    warnings.simplefilter("ignore", TreelmWarning)
    default = [DATA / f"{name}/train.mrg" for name in TREEBANKS]
    trees = options.trees or (default if default[0].exists() else [sample_path()])
    if options.model is not None:
        model = HhmmModel.load(options.model)
    else:
        start = time.process_time()
        model = train_hhmm(TreeCorpus(tuple(trees), on_error="skip"), HhmmConfig(observation="unk"))
        print(f"training: {time.process_time() - start:.1f} s")
    if options.text is not None:
        sentences = list(TextCorpus((options.text,)))[: options.sentences]
    else:
        dev = [path.with_name("dev.mrg") for path in trees]
        each = max(1, options.sentences // len(dev))
        files = [path if path.exists() else sample_path() for path in dev]
        parts = [list(TreeSentences(TreeCorpus((path,), on_error="skip"))) for path in files]
        sentences = [sentence for part in parts for sentence in part[:each]]
    print(f"{model}, {len(sentences)} sentences, {sum(map(len, sentences))} words")
    beams(model, sentences, wide=options.wide)
    cached(model, sentences)
    lengths(model.with_search(beam_width=500), sentences)
    one, two = (
        seconds(model.with_search(beam_width=500), sentences, threads)[1] for threads in (1, 2)
    )
    print(f"2 threads over 1, wall time, beam 500: {one / two:.2f}x")


if __name__ == "__main__":
    main()
