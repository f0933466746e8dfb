"""Reading times made up from the surprisal of a model."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np

from treelm.corpus.reading_times import TimedWord, Zone, ZonedSentence
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


#: What simulated readers do: log time for each bit of surprisal and each letter.
BIT, LETTER = 0.03, 0.02


def simulated_readers(
    readers: int = 12, sentences: int = 40
) -> tuple[list[TimedWord], list[ZonedSentence], dict[str, dict[Zone, float]]]:
    """Return times of readers whose effects are known, sentences, and columns of predictors.

    Readers differ in their mean and in the effect of surprisal. ``noise`` is surprisal that has no
    effect. Made of raw bits, so that no version of numpy changes it.
    """
    bits = np.random.PCG64(17)

    def uniform(size: int) -> list[float]:
        raw = np.asarray(bits.random_raw(size), np.uint64) >> np.uint64(11)
        return ((raw.astype(np.float64) + 0.5) / 2.0**53).tolist()

    def normal(size: int) -> list[float]:
        pairs = zip(uniform(size), uniform(size), strict=True)
        return [math.sqrt(-2 * math.log(a)) * math.cos(2 * math.pi * b) for a, b in pairs]

    names: tuple[str, ...] = ("frequency", "surprisal", "noise")
    columns: dict[str, dict[Zone, float]] = {name: {} for name in names}
    zoned, words = [], dict[Zone, str]()
    for number in range(sentences):
        item = number * 4 // sentences + 1
        zones = [(item, number * 8 + place) for place in range(1, 9)]
        sizes = [2 + int(8 * each) for each in uniform(8)]
        for zone, size, rare, free, idle in zip(
            zones, sizes, uniform(8), uniform(8), uniform(8), strict=True
        ):
            words[zone] = "x" * size
            columns["frequency"][zone] = 4 + 8 * rare
            columns["surprisal"][zone] = 3 * rare + 9 * free
            columns["noise"][zone] = 12 * idle
        zoned.append(ZonedSentence(tuple(words[zone] for zone in zones), tuple(zones)))
    times = []
    for reader, (mean, slope) in enumerate(zip(normal(readers), normal(readers), strict=True), 1):
        for (zone, word), error in zip(words.items(), normal(len(words)), strict=True):
            effect = LETTER * len(word) + (BIT + 0.01 * slope) * columns["surprisal"][zone]
            log_time = 5.5 + 0.2 * mean + effect + 0.15 * error
            times.append(TimedWord(*zone, word, math.exp(log_time), f"reader {reader}"))
    return times, zoned, columns
