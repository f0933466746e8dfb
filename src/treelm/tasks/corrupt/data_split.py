"""One corpus split into random parts that share no sentence."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from treelm.corpus.words import Words, sentences_of
from treelm.errors import CorpusFormatError, UsageError
from treelm.seeds import random_bits

#: Number of sentences of each part in the experiments of Okanohara & Tsujii (2007), Cherry & Quirk
#: (2008) and Post (2011): the text of the trigram model, and the positives.
PUBLISHED_SIZES: Mapping[str, int] = {
    "gen": 450_000,
    "train": 50_000,
    "dev": 3_000,
    "test": 3_000,
}


@dataclass(frozen=True)
class DataSplit:
    """Parts of a corpus, no sentence in two of them or twice in one.

    Args:
        parts: Name of each part -> its sentences, words separated by spaces, in random order.
        rest: Sentences in no part, in random order too.
        read: Number of sentences of the corpus.
        too_short: Number with too few words.
        duplicates: Number, among the long enough ones, that repeat an earlier one.
    """

    parts: Mapping[str, Sequence[str]]
    rest: Sequence[str]
    read: int
    too_short: int
    duplicates: int

    def summary(self) -> dict[str, int]:
        """Return the counts."""
        sizes = {name: len(sentences) for name, sentences in self.parts.items()}
        counts = {"read": self.read, "too_short": self.too_short, "duplicates": self.duplicates}
        return counts | sizes | {"rest": len(self.rest)}


def split_sentences(
    corpus: Iterable[Words],
    sizes: Mapping[str, int] = PUBLISHED_SIZES,
    *,
    seed: int,
    min_words: int = 5,
) -> DataSplit:
    """Return disjoint random parts of a corpus.

    Short sentences are left out, then every repeated sentence; the others are shuffled in an order
    that depends only on the seed and their number, and parts are taken from its start, one after
    the other.

    Args:
        corpus: The words of each sentence, or strings that are split at white space.
        sizes: Number of sentences of each part, in the order in which they are taken.
        seed: Seed of the order.
        min_words: Shortest sentence that is kept.

    Raises:
        UsageError: for a negative size or seed, or fewer than one word.
        CorpusFormatError: ``E_NO_DATA`` if there are too few sentences.

    Examples:
        >>> corpus = [(letter, "is", "a", "letter", ".") for letter in "abcabc"]
        >>> split = split_sentences(corpus, {"train": 2, "test": 1}, seed=1)
        >>> split.summary()
        {'read': 6, 'too_short': 0, 'duplicates': 3, 'train': 2, 'test': 1, 'rest': 0}
    """
    if seed < 0 or min_words < 1 or any(size < 0 for size in sizes.values()):
        raise UsageError("sizes and the seed must be 0 or more, the shortest sentence 1 or more.")
    read = too_short = 0
    different: dict[str, None] = {}
    for words in sentences_of(corpus):
        read += 1
        if len(words) < min_words:
            too_short += 1
        else:
            different[" ".join(words)] = None
    sentences = list(different)
    needed = sum(sizes.values())
    if len(sentences) < needed:
        raise CorpusFormatError(
            f"the parts need {needed} different sentences of at least {min_words} words, but the "
            f"corpus has {len(sentences)}. Give more text, or smaller sizes.",
            code="E_NO_DATA",
        )
    order = sorted(range(len(sentences)), key=lambda index: (random_bits(seed, index), index))
    parts: dict[str, Sequence[str]] = {}
    first = 0
    for name, size in sizes.items():
        parts[name] = [sentences[index] for index in order[first : first + size]]
        first += size
    return DataSplit(
        parts=parts,
        rest=[sentences[index] for index in order[first:]],
        read=read,
        too_short=too_short,
        duplicates=read - too_short - len(sentences),
    )
