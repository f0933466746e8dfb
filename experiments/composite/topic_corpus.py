"""The text of the topic experiment: training, held-out and test documents."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from treelm.corpus.corpus import TextCorpus
from treelm.corpus.encoder import EncodedText, encode_open
from treelm.corpus.vocabulary import Vocabulary
from treelm.models.plsa.check_text import part_of

#: Files of the data folder, in this order.
FILES = ("reuters", "eltec", "un-debates")
#: One document in this many is held out, and another one is for the test.
ONE_IN = 100
#: Size of the vocabulary, as in the paper.
WORDS = 60_000
#: Parts of the training documents on the learning curve: powers of four.
SIZES = (64, 16, 4, 1)


@dataclass(frozen=True)
class TopicCorpus:
    """Texts as ids of one vocabulary."""

    vocabulary: Vocabulary
    train: EncodedText
    held_out: EncodedText
    test: EncodedText

    def part(self, size: int) -> EncodedText:
        """Return one training document in `size`, chosen by a hash of its number."""
        documents = np.arange(len(self.train.document_starts) - 1, dtype=np.uint64)
        return part_of(self.train, mix64(documents) % np.uint64(size) == 0)


def mix64(x: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """Return pseudo-random numbers, the same on every machine."""
    with np.errstate(over="ignore"):
        x = x + np.uint64(0x9E3779B97F4A7C15)
        x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return x ^ (x >> np.uint64(31))


def read_corpus(data: Path, work: Path, *, words: int = WORDS) -> TopicCorpus:
    """Return the corpus; encoded texts are kept in `work` for the next time."""
    kept = work / f"corpus-{words}.npz"
    if not kept.exists():
        work.mkdir(parents=True, exist_ok=True)
        _prepare(data, kept, words)
    stored = np.load(kept)
    symbols = bytes(stored["words"]).decode().split("\n")
    counts = dict(zip(symbols, stored["counts"].tolist(), strict=True))
    texts = [
        EncodedText(stored[f"{name}.ids"], stored[f"{name}.starts"], stored[f"{name}.documents"], 0)
        for name in ("train", "held_out", "test")
    ]
    return TopicCorpus(Vocabulary.from_counts(counts), *texts)


def _prepare(data: Path, target: Path, words: int) -> None:
    corpus = TextCorpus(tuple(data / f"text/{name}.txt.xz" for name in FILES))
    everything, text = encode_open(corpus)
    place = np.arange(len(text.document_starts) - 1) % ONE_IN
    train = part_of(text, (place != 0) & (place != ONE_IN // 2))
    counts = np.bincount(train.ids, minlength=len(everything))
    counts[0] = 0
    # The most frequent words of the training documents; those with equal counts by their id.
    chosen = np.argsort(-counts, kind="stable")[: words - 1]
    chosen = chosen[counts[chosen] > 0]
    symbols = everything.decode(chosen.tolist())
    vocabulary = Vocabulary.from_counts(dict(zip(symbols, counts[chosen].tolist(), strict=True)))
    new_ids = np.zeros(len(everything), dtype=np.uint32)
    new_ids[chosen] = vocabulary.ids_of(list(symbols))
    arrays: dict[str, Any] = {}
    parts = {
        "train": train,
        "held_out": part_of(text, place == 0),
        "test": part_of(text, place == ONE_IN // 2),
    }
    for name, part in parts.items():
        arrays[f"{name}.ids"] = new_ids[part.ids]
        arrays[f"{name}.starts"] = part.starts
        arrays[f"{name}.documents"] = part.documents
    arrays["words"] = np.frombuffer("\n".join(symbols).encode(), np.uint8)
    arrays["counts"] = counts[chosen]
    np.savez(target, **arrays)
