"""Speed and accuracy of a parser over thresholds, on the development sets of several treebanks.

    python benchmarks/pruning.py --model FOLDER --gold DEV.mrg... [--from fast]

Every threshold is moved by the same number of natural logarithms; more is faster. For each set and
shift it prints sentences per processor second and labelled F1, and then, for each label below the
root with at least --least sentences, the F1 that is lost. Defaults are the largest shift that
loses less than --loss on every set (test sets are not for choosing).
"""

from __future__ import annotations

import argparse
import json
import time
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

from treelm.corpus.brackets import EVALUATION_OPTIONS, read_trees
from treelm.grammar.parser_options import THRESHOLDS, ParserOptions, Thresholds
from treelm.models.pcfg.grammar_model import GrammarModel
from treelm.models.registry import load
from treelm.tasks.evaluate.parse_accuracy import evaluate_parses
from treelm.trees.tree import Tree


def moved(start: Thresholds, shift: float) -> Thresholds:
    """Return thresholds that are all moved."""
    return Thresholds(
        start.beam + shift, tuple(level + shift for level in start.levels), start.edges
    )


def root_label(tree: Tree) -> str:
    """Return the label of the whole sentence."""
    below = tree.children[0] if len(tree.children) == 1 else tree
    return below.label if isinstance(below, Tree) else tree.label


def f1(gold: Sequence[Tree], guess: Sequence[Tree | None]) -> float:
    """Return labelled F1 in per cent."""
    return 100 * evaluate_parses(gold, guess).labelled_f1


def main() -> None:
    """Measure all sets and shifts and print one JSON object."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--model", type=Path, required=True)
    parser.add_argument("--gold", type=Path, nargs="+", required=True)
    parser.add_argument("--from", dest="start", choices=("default", "fast"), default="default")
    parser.add_argument("--shifts", type=float, nargs="+", default=(0, 0.5, 1, 1.5, 2))
    parser.add_argument("--least", type=int, default=20)
    parser.add_argument("--loss", type=float, default=0.1)
    arguments = parser.parse_args()
    model = load(arguments.model)
    assert isinstance(model, GrammarModel)
    found: dict[str, dict[str, object]] = {}
    kept = set(arguments.shifts)
    labels: dict[str, dict[float, tuple[list[Tree], list[Tree | None]]]] = defaultdict(dict)
    for file in arguments.gold:
        gold = list(read_trees(file, EVALUATION_OPTIONS))
        words = [tree.words for tree in gold]
        rows: dict[float, dict[str, float]] = {}
        for shift in arguments.shifts:
            options = ParserOptions(pruning=moved(THRESHOLDS[arguments.start], shift))
            model.parse_many(words[:1], options=options)
            start = time.process_time()
            parsed = model.parse_many(words, options=options)
            seconds = time.process_time() - start
            trees = [best and best.tree for best in parsed]
            rows[shift] = {"sentences_per_second": len(words) / seconds, "f1": f1(gold, trees)}
            for right, guess in zip(gold, trees, strict=True):
                pair = labels[root_label(right)].setdefault(shift, ([], []))
                pair[0].append(right)
                pair[1].append(guess)
        best = rows[arguments.shifts[0]]["f1"]
        kept -= {shift for shift in kept if best - rows[shift]["f1"] > arguments.loss}
        found["/".join(file.parts[-2:])] = {str(shift): row for shift, row in rows.items()}
    by_label = {
        label: {str(shift): round(f1(*pair), 2) for shift, pair in shifts.items()}
        for label, shifts in labels.items()
        if len(shifts[arguments.shifts[0]][0]) >= arguments.least
    }
    print(json.dumps({"sets": found, "labels": by_label, "choice": max(kept)}, indent=1))


if __name__ == "__main__":
    main()
