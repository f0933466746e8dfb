"""Training a spelling model on the rare words of the training data."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from treelm.corpus.corpus import TextCorpus, TreeCorpus, TreeSentences
from treelm.corpus.encoder import open_batches, open_encoder
from treelm.corpus.unknown_words import UNKNOWN
from treelm.corpus.vocabulary import RESERVED, Vocabulary
from treelm.errors import TreelmWarning
from treelm.estimation.chain import Chain, ChainCounts
from treelm.estimation.estimate import UniformBase, estimate
from treelm.estimation.kneser_ney import modified_kneser_ney
from treelm.events.counts import EventCounter
from treelm.models.interface.spelling import (
    CLASS_COLUMN,
    Characters,
    Floats,
    Spelling,
    known_words,
)
from treelm.models.interface.words import WordIds
from treelm.parallel.progress import SILENT, Progress

#: Characters that the chain looks at, the predicted one included; chosen on development sets.
ORDER = 7
#: With fewer unknown types in the training data, the rarest known ones are learnt from as well.
LEAST_TYPES = 1000
#: A character of fewer types counts as unseen, so that unseen ones have a probability.
LEAST_TYPES_OF_CHARACTER = 2
#: Known words that are looked up at once.
_AT_ONCE = 1 << 16
#: What unknown words keep at least of the chain, whatever the known ones have.
_LEAST_MASS = 1e-6


class Occurrences(NamedTuple):
    """How often a word was seen at the start of a sentence, and elsewhere."""

    first: int
    later: int


def train_spelling(
    vocabulary: Vocabulary,
    corpora: Sequence[TextCorpus | TreeCorpus],
    *,
    threads: int = 1,
    progress: Progress = SILENT,
) -> Spelling:
    """Return a spelling model of the words that the symbols of a vocabulary stand for.

    Words count as often as they occur. Where the training data has few types out of the vocabulary,
    the rarest known words are learnt from as well: all of the lowest count, then of the next.

    Args:
        vocabulary: That of the model.
        corpora: The training data; read once more.
        threads: Kernel threads; results do not depend on it.
        progress: Told how far it is.
    """
    with progress.step("learning how unknown words are spelled"):
        counts = rare_words(vocabulary, count_words(corpora))
        return spelling_of(counts, vocabulary, threads=threads)


def spelling_of(
    counts: Mapping[tuple[str, int], int],
    vocabulary: Vocabulary,
    *,
    order: int = ORDER,
    threads: int = 1,
) -> Spelling:
    """Return the spelling model of given words.

    Args:
        counts: How often each word occurs with each class, the number of its symbol among those of
            unknown words.
        vocabulary: The words that are known.
        order: Characters that the chain looks at, the predicted one included.
        threads: Kernel threads; results do not depend on it.
    """
    count = int(WordIds(vocabulary).is_oov.sum())
    words = [word for word, _ in counts]
    seen = Counter(character for word in {*words} for character in {*word})
    letters = sorted(ord(each) for each, n in seen.items() if n >= LEAST_TYPES_OF_CHARACTER)
    alphabet = np.array(letters, np.uint32)
    columns = order - 1 + (count > 1)
    characters = Characters(alphabet, columns, count)
    rows, starts = characters.rows(np.array([own for _, own in counts], np.int64), words)
    counter = EventCounter(columns + 1, threads=threads)
    counter.add(rows, np.repeat(list(counts.values()), np.diff(starts)))
    pads: list[int | None] = [characters.start] * characters.width
    names = [f"character-{back}" for back in range(1, order)]
    if characters.conditioned:
        pads.insert(CLASS_COLUMN, None)
        names.insert(CLASS_COLUMN, "class")
    chain = Chain(tuple(names), tuple(range(columns, -1, -1)), tuple(pads))
    levels = ChainCounts(counter.finish(), chain, threads=threads)
    with warnings.catch_warnings():
        # There are too few characters for counts of counts at the lowest levels, always.
        warnings.simplefilter("ignore", TreelmWarning)
        smoothing = modified_kneser_ney(levels)
    table = estimate(
        levels,
        smoothing,
        UniformBase(characters.start),
        outcomes=characters.start + 1,
        first_contexts=max(characters.start + 1, count) if columns else 0,
        use_up=True,
    )
    whole = Spelling(table, alphabet, np.zeros(count), vocabulary)
    return Spelling(table, alphabet, _log_mass(whole), vocabulary)


def count_words(corpora: Iterable[TextCorpus | TreeCorpus]) -> dict[str, Occurrences]:
    """Return how often every word of a training text occurs."""
    encoder = open_encoder()
    for corpus in corpora:
        text = TreeSentences(corpus) if isinstance(corpus, TreeCorpus) else corpus
        for _ in open_batches(text, encoder):
            pass
    first, all_ = encoder.first_counts().tolist(), encoder.counts().tolist()
    return {
        word: Occurrences(begun, total - begun)
        for word, begun, total in zip(encoder.words(), first, all_, strict=True)
        if word != UNKNOWN
    }


def rare_words(
    vocabulary: Vocabulary, counts: Mapping[str, Occurrences]
) -> dict[tuple[str, int], int]:
    """Return the words to learn from and their classes, with their counts."""
    known = known_words(vocabulary)
    chosen = [word for word in counts if word not in known]
    by_count: dict[int, list[str]] = {}
    for word, seen in counts.items():
        if word in known:
            by_count.setdefault(sum(seen), []).append(word)
    for _, words in sorted(by_count.items()):
        if len(chosen) >= LEAST_TYPES:
            break
        chosen.extend(words)
    class_of = np.cumsum(WordIds(vocabulary).is_oov) - 1
    found: dict[tuple[str, int], int] = {}
    for word in sorted(chosen):
        for place, times in enumerate(counts[word]):
            if times:
                symbol = vocabulary.ids_of([vocabulary.unknown_symbol(word, place)])[0]
                pair = word, int(class_of[symbol])
                # Known words are there for their form: the frequent ones count no more than others.
                found[pair] = 1 if word in known else found.get(pair, 0) + times
    return found


def _log_mass(whole: Spelling) -> Floats:
    """Return by class the logarithm of what is left of the chain for unknown words."""
    vocabulary = whole.vocabulary
    classes = len(whole.log_mass)
    taken = np.zeros(classes)
    for class_ in range(classes):
        impossible = ["", *sorted(RESERVED)]
        own = whole.chain_log_probs(np.full(len(impossible), class_), impossible)
        taken[class_] = np.exp(own).sum()
    known = sorted(whole.known)
    for start in range(0, len(known), _AT_ONCE):
        words, own_classes = _with_classes(known[start : start + _AT_ONCE], vocabulary, classes)
        probabilities = np.exp(whole.chain_log_probs(own_classes, words))
        taken += np.bincount(own_classes, probabilities, minlength=classes)
    left: Floats = np.log(np.maximum(1.0 - taken, _LEAST_MASS))
    return left


def _with_classes(
    words: Sequence[str], vocabulary: Vocabulary, classes: int
) -> tuple[Sequence[str], npt.NDArray[np.int64]]:
    """Return words with every class that they would have if they were unknown."""
    if classes == 1:
        return words, np.zeros(len(words), np.int64)
    class_of = np.cumsum(WordIds(vocabulary).is_oov) - 1
    pairs = dict.fromkeys(
        (word, vocabulary.unknown_symbol(word, place)) for word in words for place in (0, 1)
    )
    symbols = vocabulary.ids_of(symbol for _, symbol in pairs)
    return [word for word, _ in pairs], class_of[symbols].astype(np.int64)
