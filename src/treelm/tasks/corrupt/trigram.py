"""Pseudo-negative sentences: sampled from an n-gram model, locally fluent but globally not.

A sentence that is too short or too long, or contains a symbol for unknown words, is sampled again
as a whole. Sample `attempt` of sentence `index` depends on (seed, part, index, attempt) and on
nothing else, so that any number of sentences, in blocks of any size, begins with the same ones.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Final, Literal, get_args

from treelm.corpus.unknown_words import UNKNOWN
from treelm.corpus.vocabulary import Vocabulary
from treelm.corpus.words import Words, sentences_of
from treelm.errors import UnsupportedTask, UsageError, option
from treelm.models.interface.model import LanguageModel, Task
from treelm.models.interface.scores import Sample
from treelm.seeds import random_bits

#: Parts of a data set; the same seed gives each its own sentences.
Part = Literal["train", "dev", "test"]
#: Why a sentence was sampled again; where several reasons apply, the first one counts.
Reason = Literal["too_short", "unknown_word", "too_long"]

_REASONS: Final[tuple[Reason, ...]] = get_args(Reason)

LONGEST_NEGATIVE: Final = 200
#: Number of attempts for one sentence after which the model is considered unable to give any.
MOST_ATTEMPTS: Final = 1000
#: Number of sentences sampled at once.
BLOCK: Final = 4096

# A call of `sample` costs about as much as this many sentences of a larger call.
_CHEAPER_TO_DRAW_THAN_TO_SKIP = 16


@dataclass
class NegativeCounts:
    """Counts of the sampled negatives.

    Args:
        sentences: Number of negatives made.
        redraws: Number of rejected samples, by reason.
        duplicates: Number of negatives equal to an earlier one; they are kept.
        in_corpus: Number of negatives that occur in the corpus; they are kept. None if not checked.
        positives: Number of positives checked for unknown words. None if there were none.
        positives_with_unknown: Number of these with a word that no negative can have.
    """

    sentences: int = 0
    redraws: dict[Reason, int] = field(default_factory=lambda: dict.fromkeys(_REASONS, 0))
    duplicates: int = 0
    in_corpus: int | None = None
    positives: int | None = None
    positives_with_unknown: int | None = None

    def summary(self) -> dict[str, object]:
        """Return the counts as one JSON object, without those that were not checked."""
        redraws: dict[str, int] = dict(self.redraws.items())
        redraws["total"] = sum(self.redraws.values())
        found: dict[str, object] = {
            "sentences": self.sentences,
            "redraws": redraws,
            "duplicates": self.duplicates,
        }
        if self.in_corpus is not None:
            found["in_corpus"] = self.in_corpus
        if self.positives is not None and self.positives_with_unknown is not None:
            share = self.positives_with_unknown / self.positives if self.positives else 0.0
            found["positives"] = self.positives
            found["positives_with_unknown_word"] = self.positives_with_unknown
            found["share_of_positives_with_unknown_word"] = share
        return found


class TrigramNegatives:
    """Samples negatives from a model and counts them.

    Args:
        model: A model that samples; the recipe uses a trigram model.
        seed: Seed.
        part: Part of the data set that the sentences are for.
        min_words: Shortest sentence that is kept.
        max_words: Longest sentence that is kept.
        block: Number of sentences sampled at once; the result does not depend on it.

    Raises:
        UsageError: if the lengths contradict each other.
        UnsupportedTask: if the model does not sample.
    """

    def __init__(
        self,
        model: LanguageModel,
        *,
        seed: int = 0,
        part: Part = "train",
        min_words: int = 5,
        max_words: int = LONGEST_NEGATIVE,
        block: int = BLOCK,
    ) -> None:
        model.require(Task.SAMPLE)
        if model.incremental is None:
            raise UnsupportedTask(
                f"{model.system} models do not go word by word, and pseudo-negatives are sentences "
                "that are fluent from word to word. Use an n-gram model."
            )
        if not 1 <= min_words <= max_words:
            raise UsageError(
                f"{option('min_words')} is {min_words} and {option('max_words')} is {max_words}; "
                "they must be 1 or more, and the second not smaller than the first."
            )
        if part not in get_args(Part):
            raise UsageError(f'{option("part")} is "{part}"; it must be train, dev or test.')
        if seed < 0 or block < 1:
            raise UsageError(f"{option('seed')} must be 0 or more, blocks 1 or more.")
        self._model = model
        self._seed = seed
        self._part = get_args(Part).index(part)
        self._lengths = (min_words, max_words)
        self._block = block
        self._unknown = _unknown_symbols(model.vocabulary)
        self.counts = NegativeCounts()
        self._made: Counter[str] = Counter()

    def draw(self, count: int) -> Iterator[str]:
        """Yield negatives 0 to `count` - 1, words separated by spaces.

        Raises:
            UsageError: ``E_REDRAWS`` if no sentence of the model can be kept.
        """
        if count < 0:
            raise UsageError(f"{option('count')} must be 0 or more.")
        for first in range(0, count, self._block):
            for sentence in self._draw_block(range(first, min(first + self._block, count))):
                self.counts.sentences += 1
                self.counts.duplicates += sentence in self._made
                self._made[sentence] += 1
                yield sentence

    def _draw_block(self, numbers: range) -> list[str]:
        kept: dict[int, str] = {}
        wanted: Sequence[int] = numbers
        for attempt in range(MOST_ATTEMPTS):
            drawn = self._draw_once(wanted, attempt)
            for number in wanted:
                reason = self._fault(drawn[number])
                if reason is None:
                    kept[number] = " ".join(drawn[number].words)
                else:
                    self.counts.redraws[reason] += 1
            wanted = [number for number in wanted if number not in kept]
            if not wanted:
                return [kept[number] for number in numbers]
        shortest, longest = self._lengths
        raise UsageError(
            f"sentence {wanted[0]} was sampled {MOST_ATTEMPTS} times, and never had {shortest} to "
            f"{longest} known words. The model makes hardly any such sentence: lower "
            f"{option('min_words')}, raise {option('max_words')}, or train on more text.",
            code="E_REDRAWS",
        )

    def _draw_once(self, numbers: Sequence[int], attempt: int) -> dict[int, Sample]:
        """Return samples of scattered sentences; those between near ones are not used."""
        seed = random_bits(self._seed, self._part, attempt)
        drawn: dict[int, Sample] = {}
        for run in _near_runs(numbers):
            samples = self._model.sample(
                len(run), seed=seed, first=run.start, max_words=self._lengths[1]
            )
            drawn.update(zip(run, samples, strict=True))
        return drawn

    def _fault(self, sample: Sample) -> Reason | None:
        # A sentence that was cut has more words than max_words, whatever came before.
        if sample.complete and len(sample.words) < self._lengths[0]:
            return "too_short"
        if not self._unknown.isdisjoint(sample.words):
            return "unknown_word"
        return None if sample.complete else "too_long"

    def look_up(self, corpus: Iterable[Words]) -> int:
        """Return and record how many of the negatives so far occur in a corpus."""
        found = self._made.keys() & {
            sentence for sentence in map(" ".join, sentences_of(corpus)) if sentence in self._made
        }
        self.counts.in_corpus = sum(self._made[sentence] for sentence in found)
        return self.counts.in_corpus

    def look_at_positives(self, positives: Iterable[Words]) -> None:
        """Record how many positives have a word unknown to the model: no negative has one."""
        vocabulary = self._model.vocabulary
        seen = with_unknown = 0
        for words in sentences_of(positives):
            seen += 1
            with_unknown += any(word not in vocabulary or word == UNKNOWN for word in words)
        self.counts.positives, self.counts.positives_with_unknown = seen, with_unknown


def _unknown_symbols(vocabulary: Vocabulary) -> frozenset[str]:
    """Return the symbols that replace unknown words: ``<unk>`` and all signatures."""
    signatures = (entry.symbol for entry in vocabulary.entries if entry.is_signature)
    return frozenset(chain((UNKNOWN,), signatures))


def _near_runs(numbers: Sequence[int]) -> Iterator[range]:
    """Yield ranges that cover increasing numbers; near ones share a range.

    Examples:
        >>> list(_near_runs([3, 4, 9, 200]))
        [range(3, 10), range(200, 201)]
    """
    start = last = None
    for number in numbers:
        if start is None or last is None:
            start = number
        elif number - last > _CHEAPER_TO_DRAW_THAN_TO_SKIP:
            yield range(start, last + 1)
            start = number
        last = number
    if start is not None and last is not None:
        yield range(start, last + 1)
