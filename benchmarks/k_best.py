"""k-best lists side by side with the Berkeley parser's: speed, length, oracle F1, mass; one run.

    python benchmarks/k_best.py --model FOLDER --gold FILE.mrg [--berkeley JAR --grammar FILE.gr]

One thread, one core, processor seconds. The start-up and warm-up of the Berkeley parser are
subtracted: it lists the sentences once and three times over, and the difference counts.
Both write their lists as text. Oracle F1 is that of the best tree among the first 1, 10, 100 and
1000. Mass: the probability of the words summed over the list, over the pruned forest, and over
everything.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import tempfile
import time
from collections.abc import Iterable
from itertools import islice
from pathlib import Path

import numpy as np

from treelm.corpus.brackets import EVALUATION_OPTIONS, read_trees
from treelm.grammar.k_best import KBest, text_of
from treelm.grammar.parser_options import ParserOptions
from treelm.models.pcfg.grammar_model import GrammarModel
from treelm.models.registry import load
from treelm.tasks.evaluate.oracle import evaluate_oracle, read_k_best
from treelm.trees.tree import Tree

K = 1000
#: Number of lists in memory at once.
BATCH = 64


def oracle(gold: list[Tree], lists: Iterable[KBest | None]) -> dict[int, float]:
    """Return F1 in per cent by length of list."""
    points = evaluate_oracle(gold, lists).points
    return {point.k: round(100 * point.labelled_f1, 2) for point in points}


def ours(model: GrammarModel, gold: list[Tree], out: Path) -> dict[str, object]:  # type: ignore[type-arg]
    """Return the figures of treelm, best of three."""
    sentences = [tree.words for tree in gold]
    options = ParserOptions()
    model.k_best_many(sentences[:2], K, options=options)
    best = {"one": np.inf, "arrays": np.inf, "text": np.inf}
    lists: list[KBest | None] = []
    for _ in range(3):
        start = time.process_time()
        model.parse_many(sentences, options=options)
        best["one"] = min(best["one"], time.process_time() - start)
        arrays = text = 0.0
        lists = []
        with out.open("wb") as file:
            for first in range(0, len(sentences), BATCH):
                start = time.process_time()
                some = model.k_best_many(sentences[first : first + BATCH], K, options=options)
                between = time.process_time()
                file.write(text_of(some))
                arrays += between - start
                text += time.process_time() - between
                lists += some
        best["arrays"], best["text"] = min(best["arrays"], arrays), min(best["text"], text)
    sizes = [0 if found is None else len(found) for found in lists]
    count = len(sentences)
    return {
        "sentences_per_second": count / (best["arrays"] + best["text"]),
        "milliseconds": {
            "best_tree_alone": 1000 * best["one"] / count,
            "list_as_arrays": 1000 * best["arrays"] / count,
            "list_as_text_on_top": 1000 * best["text"] / count,
        },
        "mean_trees": float(np.mean(sizes)),
        "full_lists": sum(size == K for size in sizes),
        "oracle_f1": oracle(gold, lists),
    }


def berkeley(jar: Path, grammar: Path, gold: list[Tree], work: Path) -> dict[str, object]:
    """Return the figures of the Berkeley parser."""
    lines = "".join(" ".join(tree.words) + "\n" for tree in gold)
    seconds = {}
    for times in (1, 3):
        text, out = work / f"words{times}.txt", work / f"berkeley{times}.lists"
        text.write_text(lines * times, encoding="utf-8")
        command = ["java", "-server", "-Xmx3g", "-XX:+UseSerialGC", "-cp", str(jar)]
        command += ["edu.berkeley.nlp.PCFGLA.BerkeleyParser", "-gr", str(grammar)]
        command += ["-kbest", str(K), "-inputFile", str(text), "-outputFile", str(out)]
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(command, check=True, capture_output=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        seconds[times] = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    lists = list(read_k_best(work / "berkeley1.lists"))
    distinct = [len(set(text_of([found], scores=False).split(b"\n")) - {b""}) for found in lists]
    return {
        "sentences_per_second": 2 * len(gold) / (seconds[3] - seconds[1]),
        "mean_trees": float(np.mean(distinct)),
        "full_lists": sum(size == K for size in distinct),
        "oracle_f1": oracle(gold, lists),
    }


def mass(model: GrammarModel, gold: list[Tree]) -> dict[str, object]:  # type: ignore[type-arg]
    """Return bits per word that lists and forests lose, and the share of the mass they keep."""
    sentences = [tree.words for tree in gold]
    words = sum(map(len, sentences))
    exact = model.sentence_log_probs(sentences)
    sums: dict[str, list[float]] = {
        "forest": model.forest_log_probs(model.forests_many(sentences)).tolist()
    }
    for found in model.k_best_many(sentences, K):
        assert found is not None
        values = model.tree_log_probs([each.tree for each in found])
        for k in (1, 10, 100, K):
            sums.setdefault(f"list_{k}", []).append(float(np.logaddexp.reduce(values[:k])))
    return {
        name: {
            "bits_missed_a_word": float((exact - own).sum() / words / np.log(2)),
            "mean_share": float(np.exp(own - exact).mean()),
        }
        for name, own in ((name, np.array(values)) for name, values in sums.items())
    }


def main() -> None:
    """Measure both and print one JSON object with their ratio."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--model", type=Path, required=True)
    parser.add_argument("--gold", type=Path, required=True)
    parser.add_argument("--berkeley", type=Path)
    parser.add_argument("--grammar", type=Path)
    parser.add_argument("--limit", type=int)
    parser.add_argument(
        "--mass", type=int, default=50, help="number of sentences to compute masses for"
    )
    parser.add_argument("--core", type=int)
    arguments = parser.parse_args()
    if arguments.core is not None:
        os.sched_setaffinity(0, {arguments.core})
    gold = list(islice(read_trees(arguments.gold, EVALUATION_OPTIONS), arguments.limit))
    model = load(arguments.model)
    assert isinstance(model, GrammarModel)
    with tempfile.TemporaryDirectory() as name:
        work = Path(name)
        result: dict[str, object] = {"sentences": len(gold), "k": K}
        result["treelm"] = own = ours(model, gold, work / "treelm.lists")
        if arguments.berkeley:
            result["berkeley"] = peer = berkeley(arguments.berkeley, arguments.grammar, gold, work)
            result["ratio"] = float(own["sentences_per_second"]) / float(  # type: ignore[arg-type]
                peer["sentences_per_second"]  # type: ignore[arg-type]
            )
    short = sorted(gold, key=lambda tree: len(tree.words))[: arguments.mass * 2 : 2]
    result["mass"] = mass(model, short)
    print(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()
