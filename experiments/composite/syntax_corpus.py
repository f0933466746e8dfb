"""The parsed corpus: training and held-out trees, test text."""

from __future__ import annotations

import pickle
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Literal

import numpy as np
import numpy.typing as npt
from topic_corpus import mix64

from treelm.corpus.brackets import read_packed
from treelm.corpus.corpus import TextCorpus, TreeCorpus
from treelm.corpus.encoder import EncodedText, encode_text, sizes_between
from treelm.corpus.vocabulary import Vocabulary
from treelm.corpus.vocabulary_file import load_vocabulary, save_vocabulary
from treelm.models.composite.config import CompositeConfig
from treelm.models.composite.parsed_text import ParsedText, PreparedTrees, prepare
from treelm.models.plsa.check_text import sentence_hashes
from treelm.trees.packed import NO_WORD, PackedTrees
from treelm.trees.profile import load_profile

#: Length of the shortest sentence that should not occur in two of the texts.
SHORTEST = 5

Punctuation = Literal["keep", "remove"]


@dataclass(frozen=True)
class ParsedCorpus:
    """Texts as ids of one vocabulary.

    Args:
        vocabulary: The words of all models.
        train: Trees to train on.
        held_out: Trees on which weights are found; none of them occurs in the training text.
        test: Whole documents.
    """

    vocabulary: Vocabulary
    train: PreparedTrees
    held_out: ParsedText
    test: EncodedText

    def part(self, size: int) -> PreparedTrees:
        """Return one training document in `size`, chosen by a hash of its number."""
        if size == 1:
            return self.train
        text = self.train.text
        documents = text.document_numbers.astype(np.uint64)
        chosen = np.flatnonzero(mix64(documents) % np.uint64(size) == 0)
        return PreparedTrees(text.chosen(chosen), self.vocabulary, self.train.codes)

    @cached_property
    def is_new(self) -> npt.NDArray[np.bool_]:
        """For every test word and sentence end: whether the training text lacks the sentence."""
        new = new_sentences(self.train.text.encoded, self.test)
        return np.repeat(new, sizes_between(self.test.starts) + 1)


def documents_of(text: EncodedText) -> npt.NDArray[np.int64]:
    """Return the document of every word and sentence end of a text."""
    return np.repeat(text.documents.astype(np.int64), sizes_between(text.starts) + 1)


def new_sentences(train: EncodedText, text: EncodedText) -> npt.NDArray[np.bool_]:
    """Return for every sentence of a text whether the training text lacks it.

    Sentences of fewer than five words, which any text may share, count as new.
    """
    known = sentence_hashes(train, shortest=1)
    sizes = sizes_between(text.starts)
    return ~np.isin(sentence_hashes(text, shortest=1), known) | (sizes < SHORTEST)


def read_corpus(trees: Path, work: Path, *, punctuation: Punctuation = "keep") -> ParsedCorpus:
    """Return the corpus; prepared files are kept in `work` for the next time."""
    kept, words, test_text = (
        work / f"{name}-{punctuation}{ending}"
        for name, ending in (("corpus", ".pickle"), ("words", ".txt"), ("test", ".txt"))
    )
    if not kept.exists():
        config = CompositeConfig(punctuation=punctuation)
        train = prepare(TreeCorpus((trees / "train.mrg",), on_error="skip"), config)
        held_out = prepare(
            TreeCorpus((trees / "held-out.mrg",), on_error="skip"),
            config,
            vocabulary=train.vocabulary,
            codes=train.codes,
        )
        save_vocabulary(train.vocabulary, words)
        marks = punctuation_marks(trees / "train.mrg") if punctuation == "remove" else frozenset()
        lines = (trees / "test.txt").read_text(encoding="utf-8").splitlines()
        test_text.write_text("".join(without(marks, lines)), encoding="utf-8")
        kept.write_bytes(pickle.dumps((train.text, train.codes, held_out.text)))
    text, codes, check = pickle.loads(kept.read_bytes())
    vocabulary = load_vocabulary(words)
    test = encode_text(TextCorpus((test_text,)), vocabulary)
    check = check.chosen(np.flatnonzero(new_sentences(text.encoded, check.encoded)))
    return ParsedCorpus(vocabulary, PreparedTrees(text, vocabulary, codes), check, test)


def punctuation_marks(trees: Path) -> frozenset[str]:
    """Return the words that trees tag as punctuation more often than not.

    The test has no trees, so its punctuation is recognized by its words alone.
    """
    tags = frozenset(load_profile("english").punctuation.tags)
    total: Counter[str] = Counter()
    marks: Counter[str] = Counter()
    for batch in read_packed(trees, on_error="skip"):
        for counter, ids in ((total, word_ids(batch)), (marks, word_ids(batch, tags))):
            found, counts = np.unique(ids, return_counts=True)
            names = batch.words
            counter.update(
                {names[i]: n for i, n in zip(found.tolist(), counts.tolist(), strict=True)}
            )
    return frozenset(word for word, count in marks.items() if 2 * count > total[word])


def word_ids(batch: PackedTrees, tags: frozenset[str] | None = None) -> npt.NDArray[np.uint32]:
    """Return the words of trees, or those of them with certain tags."""
    is_word = batch.node_word != NO_WORD
    if tags is not None:
        wanted = np.array([str(label) in tags for label in batch.labels])
        is_word &= wanted[batch.node_label]
    return np.asarray(batch.node_word[is_word], np.uint32)


def without(marks: frozenset[str], lines: Iterable[str]) -> Iterable[str]:
    """Yield lines without some words; a line that had no others is left out."""
    for line in lines:
        kept = [word for word in line.split() if word not in marks]
        if kept or not line.strip():
            yield " ".join(kept) + "\n"
