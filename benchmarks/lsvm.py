"""Parsing with weights of any sign: seconds per thousand sentences, beside a dense chart.

    python benchmarks/lsvm.py --text FILE [--trees FILE...] [--json]

Prints processor time of one thread, and peak memory. The dense chart is
the plain one of the same library: every rule at every split.
"""

from __future__ import annotations

import argparse
import json
import resource
import time
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from treelm import _native
from treelm.corpus.corpus import TextCorpus, TreeCorpus
from treelm.models.lsvm.config import LatentSvmConfig
from treelm.models.lsvm.features import LatentFeatures
from treelm.models.lsvm.grammar import Floats, read_grammar

DATA = Path(__file__).resolve().parents[2] / "shared/data"
LENGTHS = ((5, 10), (11, 20), (21, 30), (31, 40))
GRAMMARS: dict[str, dict[str, object]] = {
    "treebank, h=1, v=1": {"vertical_order": 1},
    "treebank, h=1, v=2": {"vertical_order": 2},
    "uninformed": {"grammar": "uninformed", "start": "zero"},
}


def seconds_of(
    features: LatentFeatures, sentences: list[tuple[str, ...]], weights: Floats
) -> float:
    """Return processor seconds of parsing, including the Python code around it."""
    given = features.sentences(sentences)
    given.parse(weights)  # the sentences that need the second lexicon are found once
    start = time.process_time()
    given.parse(weights)
    return time.process_time() - start


def charts(
    features: LatentFeatures, sentences: list[tuple[str, ...]], weights: Floats
) -> tuple[float, float]:
    """Return processor seconds of the chart and of the dense one, on the same input."""
    grammar = features.grammar
    given = features.sentences(sentences)
    first, table = given._table(second=False)
    sizes = np.diff(first)[given.tokens]
    starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    index = np.repeat(first[given.tokens] - starts[:-1], sizes) + np.arange(starts[-1])
    tops = np.full(len(grammar.symbols), -np.inf)
    tops[grammar.tops] = weights[len(grammar.rules) : grammar.first_word]
    tables: dict[str, Any] = {
        "symbols": len(grammar.symbols),
        "rules": grammar.rules,
        "weights": np.ascontiguousarray(weights[: len(grammar.rules)]),
        "root_weights": tops,
        "threads": 1,
    }
    text: dict[str, Any] = {
        "tags": table[index, 0].astype(np.int32),
        "tag_weights": weights[table[index, 1]],
        "tag_starts": starts,
        "sentence_starts": given.starts,
    }
    nothing = {name: array[: name.endswith("starts")] for name, array in text.items()}
    start = time.process_time()
    _native.best_weighted_trees(**tables, **nothing)
    preparing = time.process_time() - start  # once per grammar, and the same for both
    found = []
    used = []
    for plain in (False, True):
        start = time.process_time()
        found.append(_native.best_weighted_trees(**tables, **text, plain=plain))
        used.append(max(time.process_time() - start - preparing, 1e-6))
    for one, two in zip(*found, strict=True):
        if not np.array_equal(one, two):
            raise SystemExit("the two charts do not agree")
    return used[0], used[1]


def main() -> None:
    """Read the options, measure, print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("--text", type=Path, default=DATA / "text/reuters.txt.xz")
    wsj = DATA / "treebanks/wsj-sample/train.mrg"
    parser.add_argument("--trees", type=Path, nargs="+", default=[wsj])
    parser.add_argument("--sentences", type=int, default=100, help="sentences of each length")
    parser.add_argument(
        "--dense", type=int, default=5, help="sentences of each length, for the dense chart"
    )
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    by_length = {
        lengths: list(
            islice(
                (s for s in TextCorpus((arguments.text,)) if lengths[0] <= len(s) <= lengths[1]),
                arguments.sentences,
            )
        )
        for lengths in LENGTHS
    }
    rows = []
    for name, options in GRAMMARS.items():
        config = LatentSvmConfig.model_validate(options)
        corpus = TreeCorpus(tuple(arguments.trees), on_error="skip")
        features = LatentFeatures(read_grammar(corpus, config))
        weights = features.grammar.frequencies
        if options.get("grammar") == "uninformed":
            weights = np.random.default_rng(1).normal(size=len(features))
        for (low, high), sentences in by_length.items():
            if not sentences:
                continue
            used = seconds_of(features, sentences, weights)
            fast, dense = charts(features, sentences[: arguments.dense], weights)
            rows.append(
                {
                    "grammar": name,
                    "rules": len(features.grammar.rules),
                    "words": f"{low}-{high}",
                    "seconds_per_thousand": round(1000 * used / len(sentences), 3),
                    "dense_over_chart": round(dense / fast, 1),
                }
            )
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    if arguments.json:
        print(json.dumps({"rows": rows, "peak_mib": round(peak, 1)}, indent=1))
        return
    for row in rows:
        print(
            f"{row['grammar']} ({row['rules']} rules), {row['words']} words: "
            f"{row['seconds_per_thousand']} s for 1000 sentences, dense chart "
            f"{row['dense_over_chart']} times as long"
        )
    print(f"peak memory {peak:.0f} MiB")


if __name__ == "__main__":
    main()
