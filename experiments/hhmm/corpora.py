"""The texts and trees of the HHMM study, and their held-out parts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from treelm.corpus.corpus import (
    SentenceInDocument,
    TextCorpus,
    TreeCorpus,
    TreeSentences,
    sentences_in_documents,
)
from treelm.corpus.files import read_lines

TREEBANKS = ("wsj-sample", "masc", "gum", "craft")
#: Large texts with the share of their documents held out: every n-th, about 20 or more.
TEXTS = {"reuters": 50, "un-debates": 500, "eltec": 150}
CAPTIONS_AND_TALKS = {"multi30k": "mt/multi30k/val.en", "ted": "mt/ted/ref.en"}

#: Number of sentences in a block, where a text has too few documents.
BLOCK = 50
#: Number of documents needed for an interval.
ENOUGH_DOCUMENTS = 20

Sentences = list[tuple[str, ...]]
Places = npt.NDArray[np.int64]


@dataclass(frozen=True)
class TestSet:
    """All sentences to be predicted, and the tuning set of mixture weights.

    Args:
        name: Its name in the study.
        in_domain: Whether it comes from a treebank of the training set.
        test: The sentences.
        documents: Document of each sentence; blocks of sentences where there are too few documents.
        tuning: Dev sentences of the same treebank. Empty out of domain, where each half of the
            documents is scored with the weight found on the other half.
    """

    name: str
    in_domain: bool
    test: Sentences
    documents: Places
    tuning: Sentences

    __test__ = False

    @property
    def half(self) -> npt.NDArray[np.bool_]:
        """Which sentences are in the second half: every second document."""
        second: npt.NDArray[np.bool_] = self.documents % 2 == 1
        return second


def trees_of(data: Path, part: str, names: tuple[str, ...] = TREEBANKS) -> TreeCorpus:
    """Return one part of the treebanks."""
    paths = tuple(data / f"treebanks/{name}/{part}.mrg" for name in names)
    return TreeCorpus(paths, on_error="skip")


def tree_sentences(data: Path, name: str, part: str) -> Sentences:
    """Return all sentences of a part of a treebank."""
    return list(TreeSentences(trees_of(data, part, (name,))))


def every_nth(data: Path, part: str, step: int) -> Sentences:
    """Return every n-th sentence of a part of all treebanks."""
    return [words for name in TREEBANKS for words in tree_sentences(data, name, part)[::step]]


def spread(data: Path, part: str, count: int) -> Sentences:
    """Return a number of sentences, equally many of each treebank, spread over its part."""
    found: Sentences = []
    for name in TREEBANKS:
        sentences = tree_sentences(data, name, part)
        each = min(count // len(TREEBANKS), len(sentences))
        found += [sentences[place * len(sentences) // each] for place in range(each)]
    return found


def split_text(source: Path, folder: Path, every: int) -> tuple[Path, Path]:
    """Hold out every n-th document of a text, once.

    Returns:
        The file of the other documents, and that of the held-out ones.
    """
    name = source.name.split(".")[0]
    rest, held_out = folder / f"{name}.train.txt", folder / f"{name}.test.txt"
    if held_out.exists():
        return rest, held_out
    partial = held_out.with_suffix(".partial")
    with rest.open("w", encoding="utf-8") as kept, partial.open("w", encoding="utf-8") as out:
        last = -1
        for document, words in sentences_in_documents(read_lines(source)):
            text = out if document % every == every - 1 else kept
            text.write("\n" * (document != last) + " ".join(words) + "\n")
            last = document
    partial.rename(held_out)
    return rest, held_out


def blocks_of(documents: Places) -> Places:
    """Return the blocks resampled for intervals: documents, or runs of sentences.

    Runs have 50 sentences, or fewer where that would make fewer than 20 runs.
    """
    count = len(documents)
    if len(np.unique(documents)) >= ENOUGH_DOCUMENTS:
        return documents
    return np.arange(count) // max(1, min(BLOCK, count // ENOUGH_DOCUMENTS))


def in_domain(data: Path, name: str) -> TestSet:
    """Return the test set of a treebank."""
    numbers: dict[str | None, int] = {}
    documents = [
        numbers.setdefault(document, len(numbers))
        for document, _ in trees_of(data, "test", (name,)).with_documents()
    ]
    return TestSet(
        name=name,
        in_domain=True,
        test=tree_sentences(data, name, "test"),
        documents=blocks_of(np.array(documents, np.int64)),
        tuning=tree_sentences(data, name, "dev"),
    )


def out_of_domain(name: str, path: Path) -> TestSet:
    """Return an out-of-domain text."""
    read: Iterable[SentenceInDocument] = list(TextCorpus((path,)).with_documents())
    documents = np.array([each.document for each in read], np.int64)
    return TestSet(
        name=name,
        in_domain=False,
        test=[each.words for each in read],
        documents=blocks_of(documents),
        tuning=[],
    )


def test_sets(data: Path, held_out: dict[str, Path]) -> Iterator[TestSet]:
    """Yield all sets: one per treebank, and out-of-domain texts."""
    for name in TREEBANKS:
        yield in_domain(data, name)
    for name, path in held_out.items():
        yield out_of_domain(name, path)
    for name, place in CAPTIONS_AND_TALKS.items():
        if (data / place).exists():
            yield out_of_domain(name, data / place)
