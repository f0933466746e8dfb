"""Reading times made up from the surprisal of a model."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np

from treelm.corpus.sample_treebank import sample_treebank
from treelm.models.interface.incremental import IncrementalModel


def write_reading_data(
    folder: Path, model: IncrementalModel, *, shift: int, sentences: int = 150
) -> tuple[Path, Path]:
    """Write a table of times and trees with zones, as Natural Stories has them.

    Times grow with length and surprisal; they stand `shift` words too late.
    """
    random = np.random.default_rng(11)
    words: list[str] = []
    times: list[float] = []
    lines = []
    for tree in list(sample_treebank())[:sentences]:
        zones = [f"{word}/1.{len(words) + place}" for place, word in enumerate(tree.words, 1)]
        parts = " ".join(f"(X {leaf})" for leaf in zones)
        lines.append(f"(ROOT (S {parts}))\n")
        for row in model.surprisal(tree.words):
            effect = 0.02 * len(row.word) + 0.02 * row.surprisal
            times.append(math.exp(5.7 + effect + 0.05 * random.normal()))
            words.append(row.word)
    moved = times[-shift:] + times[:-shift] if shift else times
    table = folder / "words.tsv"
    rows = zip(words, moved, strict=True)
    table.write_text(
        "item\tzone\tword\tn\tmean_rt\tgmean_rt\n"
        + "".join(f"1\t{n}\t{word}\t9\t{time}\t{time}\n" for n, (word, time) in enumerate(rows, 1))
    )
    trees = folder / "trees.mrg"
    trees.write_text("".join(lines))
    return table, trees
