"""Good sentences of a text, and bad ones sampled from a trigram model of other sentences."""

from __future__ import annotations

import json
from pathlib import Path
from typing import get_args

from treelm.corpus.corpus import TextCorpus
from treelm.models.ngram.config import NgramConfig
from treelm.models.ngram.train import train_ngram
from treelm.tasks.corrupt.data_split import split_sentences
from treelm.tasks.corrupt.trigram import Part, TrigramNegatives

#: Lengths of the shortest and the longest sentence.
LENGTHS = (5, 40)
_COUNTS = "counts.json"


def write_lines(path: Path, lines: object) -> None:
    """Write sentences; the file appears only when it is complete."""
    part = path.with_suffix(".part")
    with part.open("w", encoding="utf-8") as out:
        out.writelines(f"{line}\n" for line in lines)  # type: ignore[attr-defined]
    part.rename(path)


def make_sentences(
    source: Path, folder: Path, *, train: int, held: int, generator: int | None, seed: int
) -> dict[str, dict[str, object]]:
    """Split a text and sample negatives, unless already done; return the counts.

    Dev and test sentences are the same for every size of the training set, and a smaller training
    set is the first part of a larger one. All other sentences train the trigram model, so that the
    negatives come from text that no classifier sees.

    Args:
        source: A text, one sentence per line.
        folder: Where ``pos_*.txt``, ``neg_*.txt`` and ``gen.txt`` are written.
        train: Number of good training sentences; there will be as many bad ones.
        held: Number of good sentences each of the tuning and the test set.
        generator: Number of sentences of the trigram model, evenly from all others; None for all.
        seed: Seed of the split and the negatives.
    """
    if (folder / _COUNTS).is_file():
        found: dict[str, dict[str, object]] = json.loads((folder / _COUNTS).read_text())
        return found
    folder.mkdir(parents=True, exist_ok=True)
    low, high = LENGTHS
    short = (words for words in TextCorpus((source,)) if len(words) <= high)
    sizes = {"test": held, "dev": held, "train": train}
    split = split_sentences(short, sizes, seed=seed, min_words=low)
    step = max(1, len(split.rest) // (generator or len(split.rest)))
    rest = split.rest[::step][:generator]
    counts: dict[str, dict[str, object]] = {"split": {**split.summary(), "gen": len(rest)}}
    write_lines(folder / "gen.txt", rest)
    config = NgramConfig(order=3, smoothing="kn")
    trigram = train_ngram(TextCorpus((folder / "gen.txt",)), config)
    for part in get_args(Part):
        positives = split.parts[part]
        negatives = TrigramNegatives(trigram, seed=seed, part=part, min_words=low, max_words=high)
        write_lines(folder / f"pos_{part}.txt", positives)
        write_lines(folder / f"neg_{part}.txt", negatives.draw(len(positives)))
        negatives.look_up(TextCorpus((source,)))
        negatives.look_at_positives([line.split(" ") for line in positives])
        counts[part] = negatives.counts.summary()
    (folder / _COUNTS).write_text(json.dumps(counts, indent=1))
    return counts
