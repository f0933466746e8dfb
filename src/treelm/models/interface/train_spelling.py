"""Training a spelling model on the rare words of the training data."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from treelm.corpus.corpus import TextCorpus, TreeCorpus, TreeSentences
from treelm.corpus.encoder import open_batches, open_encoder
from treelm.corpus.unknown_words import UNKNOWN
from treelm.corpus.vocabulary import RESERVED, Vocabulary
from treelm.errors import TreelmWarning
from treelm.estimation.chain import Chain, ChainCounts
from treelm.estimation.estimate import UniformBase, estimate
from treelm.estimation.kneser_ney import modified_kneser_ney
from treelm.events.counts import EventCounter
from treelm.models.interface.spelling import Characters, Floats, Spelling, known_words
from treelm.models.interface.words import WordIds
from treelm.parallel.progress import SILENT, Progress

#: Characters that the chain looks at, the predicted one included; chosen on development sets.
ORDER = 7
#: With fewer unknown types in the training data, the rarest known ones are learnt from as well.
LEAST_TYPES = 1000
#: A character of fewer types counts as unseen, so that unseen ones have a probability.
LEAST_TYPES_OF_CHARACTER = 2
#: Words that are looked up or drawn at once.
_AT_ONCE = 1 << 16
#: Spellings drawn to find out what the chain gives to each form of unknown words, and their seed.
_DRAWN, _SEED = 200_000, 0
#: Standard errors by which what was found is raised, so that nothing sums to more than one.
_ERRORS = 3.0
#: What unknown words keep at least of the chain, whatever the known ones have.
_LEAST_MASS = 1e-6


def train_spelling(
    vocabulary: Vocabulary,
    corpora: Sequence[TextCorpus | TreeCorpus],
    *,
    min_count: int = 1,
    threads: int = 1,
    progress: Progress = SILENT,
) -> Spelling:
    """Return a spelling model of the words that the symbols of a vocabulary stand for.

    Words count as often as they occur. Where the training data has few types out of the vocabulary,
    the rarest known words are learnt from as well: all of the lowest count, then of the next.

    Args:
        vocabulary: That of the model.
        corpora: The training data; read once more.
        min_count: Smallest count of sequences of four and more characters, and twice that of three.
        threads: Kernel threads; results do not depend on it.
        progress: Told how far it is.
    """
    with progress.step("learning how unknown words are spelled"):
        counts = rare_words(vocabulary, count_words(corpora))
        return spelling_of(counts, vocabulary, min_count=min_count, threads=threads)


def spelling_of(
    counts: Mapping[str, int],
    vocabulary: Vocabulary,
    *,
    order: int = ORDER,
    min_count: int = 1,
    threads: int = 1,
) -> Spelling:
    """Return the spelling model of given words.

    Args:
        counts: How often each word occurs.
        vocabulary: The words that are known.
        order: Characters that the chain looks at, the predicted one included.
        min_count: Smallest count of sequences of four and more characters, and twice that of three.
        threads: Kernel threads; results do not depend on it.
    """
    words = list(counts)
    seen = Counter(character for word in words for character in {*word})
    letters = sorted(ord(each) for each, n in seen.items() if n >= LEAST_TYPES_OF_CHARACTER)
    alphabet = np.array(letters, np.uint32)
    characters = Characters(alphabet, order - 1)
    rows, starts = characters.rows(words)
    counter = EventCounter(order, threads=threads)
    counter.add(rows, np.repeat(list(counts.values()), np.diff(starts)))
    chain = Chain(
        tuple(f"character-{back}" for back in range(1, order)),
        tuple(range(order - 1, -1, -1)),
        (characters.start,) * (order - 1),
    )
    levels = ChainCounts(counter.finish(), chain, threads=threads)
    with warnings.catch_warnings():
        # There are too few characters for counts of counts at the lowest levels, always.
        warnings.simplefilter("ignore", TreelmWarning)
        smoothing = modified_kneser_ney(levels, min_counts=_least(chain, min_count))
    table = estimate(
        levels,
        smoothing,
        UniformBase(characters.start),
        outcomes=characters.start + 1,
        first_contexts=characters.start + 1 if order > 1 else 0,
        use_up=True,
    )
    symbols = int(WordIds(vocabulary).is_oov.sum())
    whole = Spelling(table, alphabet, np.zeros(symbols), vocabulary)
    log_mass = _log_mass(whole) if symbols == 1 else _log_mass_of_forms(whole)
    return Spelling(table, alphabet, log_mass, vocabulary)


def _least(chain: Chain, min_count: int) -> tuple[int, ...]:
    """Return the smallest count of every level; none if all are kept."""
    if min_count == 1:
        return ()
    by_width = {0: 1, 1: 1, 2: (min_count + 1) // 2}
    return tuple(by_width.get(width, min_count) for width in chain.widths)


def count_words(corpora: Iterable[TextCorpus | TreeCorpus]) -> dict[str, int]:
    """Return how often every word of a training text occurs."""
    encoder = open_encoder()
    for corpus in corpora:
        text = TreeSentences(corpus) if isinstance(corpus, TreeCorpus) else corpus
        for _ in open_batches(text, encoder):
            pass
    counts = zip(encoder.words(), encoder.counts().tolist(), strict=True)
    return {word: count for word, count in counts if word != UNKNOWN}


def rare_words(vocabulary: Vocabulary, counts: Mapping[str, int]) -> dict[str, int]:
    """Return the words to learn from, with their counts."""
    known = known_words(vocabulary)
    chosen = {word: count for word, count in counts.items() if word not in known}
    by_count: dict[int, list[str]] = {}
    for word, count in counts.items():
        if word in known:
            by_count.setdefault(count, []).append(word)
    for _, words in sorted(by_count.items()):
        if len(chosen) >= LEAST_TYPES:
            break
        # They are there for their form: the frequent ones count no more than others.
        chosen.update(dict.fromkeys(words, 1))
    return dict(sorted(chosen.items()))


def _log_mass(whole: Spelling) -> Floats:
    """Return the logarithm of what is left of the chain for unknown words, exactly."""
    impossible = ["", *sorted(RESERVED), *sorted(whole.known)]
    taken = 0.0
    for start in range(0, len(impossible), _AT_ONCE):
        taken += np.exp(whole.chain_log_probs(impossible[start : start + _AT_ONCE])).sum()
    return np.log([max(1.0 - taken, _LEAST_MASS)])


def _log_mass_of_forms(whole: Spelling) -> Floats:
    """Return by unknown symbol the logarithm of what the chain gives to its words, or a bit more.

    That is the share of spellings drawn from the chain that are unknown words with the symbol,
    wherever they stand, and the bound that it exceeds once in a thousand times.
    """
    symbol_id = whole.word_ids.word
    counts = np.zeros((2, len(whole.word_ids.is_oov)))
    for start in range(0, _DRAWN, _AT_ONCE):
        words = Counter(whole.draw(_SEED, start, min(_AT_ONCE, _DRAWN - start)))
        for word, times in words.items():
            for place in (0, 1):
                counts[place, symbol_id(word, first=place == 0)] += times
    most = counts.max(axis=0)[whole.word_ids.is_oov]
    half = _ERRORS**2 / 2
    bound = most + half + _ERRORS * np.sqrt(most + half / 2)
    log_mass: Floats = np.log(np.minimum(bound / _DRAWN, 1.0))
    return log_mass
