"""Pseudo-negative sentences: drawn from an n-gram model, locally fluent and globally not.

A sentence that is too short, holds a symbol for unknown words or is too long is drawn anew as a
whole. Draw `attempt` of sentence `index` depends on (seed, part, index, attempt) and on nothing
else, so that any number of sentences, drawn in blocks of any size, begins with the same ones.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Final, Literal, get_args

from treelm.corpus.unknown_words import UNKNOWN
from treelm.corpus.vocabulary import Vocabulary
from treelm.errors import UnsupportedTask, UsageError
from treelm.models.interface.model import LanguageModel, Task
from treelm.models.interface.scores import Sample
from treelm.seeds import random_bits

#: Parts of a data set; the same seed gives each its own sentences.
Part = Literal["train", "dev", "test"]
#: Why a sentence was drawn anew; where several reasons hold, the first one counts.
Reason = Literal["too_short", "unknown_word", "too_long"]

_REASONS: Final[tuple[Reason, ...]] = get_args(Reason)

LONGEST_NEGATIVE: Final = 200
#: After so many draws for one sentence the model is taken to be unable to give any.
MOST_ATTEMPTS: Final = 1000
#: Sentences drawn at once.
BLOCK: Final = 4096

# A call of `sample` costs about as much as this many sentences of a larger call.
_CHEAPER_TO_DRAW_THAN_TO_SKIP = 16


@dataclass
class NegativeCounts:
    """What happened while negatives were drawn.

    Args:
        sentences: Negatives made.
        redraws: Rejected draws by reason.
        duplicates: Negatives equal to an earlier one; they are kept.
        in_corpus: Negatives that stand in the corpus; they are kept. None if it was not looked at.
        positives: Sentences whose words were looked up. None if there were none to look at.
        positives_with_unknown: Those of them with a word that no negative can have.
    """

    sentences: int = 0
    redraws: dict[Reason, int] = field(default_factory=lambda: dict.fromkeys(_REASONS, 0))
    duplicates: int = 0
    in_corpus: int | None = None
    positives: int | None = None
    positives_with_unknown: int | None = None

    def summary(self) -> dict[str, object]:
        """Return the counts as one JSON object; what was not looked at is left out."""
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
    """Draws negatives from a model and counts what happens.

    Args:
        model: A model that samples; the recipe wants a trigram model.
        seed: Seed.
        part: Part of the data set that the sentences are for.
        min_words: Shortest sentence that is kept.
        max_words: Longest sentence that is kept.
        block: Sentences drawn at once; the result does not depend on it.

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
                f"--min-words is {min_words} and --max-words is {max_words}; they must be 1 or "
                "more, and the second not smaller than the first."
            )
        if part not in get_args(Part):
            raise UsageError(f'--part is "{part}"; it must be train, dev or test.')
        if seed < 0 or block < 1:
            raise UsageError("--seed must be 0 or more, blocks 1 or more.")
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
            UsageError: ``E_REDRAWS`` if the model gives no sentence that can be kept.
        """
        if count < 0:
            raise UsageError("--count must be 0 or more.")
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
            f"sentence {wanted[0]} was drawn {MOST_ATTEMPTS} times, and never had {shortest} to "
            f"{longest} known words. The model gives hardly any such sentence: lower --min-words, "
            "raise --max-words, or train on more text.",
            code="E_REDRAWS",
        )

    def _draw_once(self, numbers: Sequence[int], attempt: int) -> dict[int, Sample]:
        """Return draws of scattered sentences; those between near ones are drawn and not used."""
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

    def look_up(self, corpus: Iterable[Sequence[str]]) -> int:
        """Return, and note, how many of the negatives drawn so far stand in a corpus."""
        found = self._made.keys() & {
            sentence for sentence in map(" ".join, corpus) if sentence in self._made
        }
        self.counts.in_corpus = sum(self._made[sentence] for sentence in found)
        return self.counts.in_corpus

    def look_at_positives(self, positives: Iterable[Sequence[str]]) -> None:
        """Note how many positives have a word unknown to the model: a cue, as no negative has."""
        vocabulary = self._model.vocabulary
        seen = with_unknown = 0
        for words in positives:
            seen += 1
            with_unknown += any(word not in vocabulary or word == UNKNOWN for word in words)
        self.counts.positives, self.counts.positives_with_unknown = seen, with_unknown


def _unknown_symbols(vocabulary: Vocabulary) -> frozenset[str]:
    """Return the symbols that stand for other words: ``<unk>`` and all signatures."""
    signatures = (entry.symbol for entry in vocabulary.entries if entry.is_signature)
    return frozenset(chain((UNKNOWN,), signatures))


def _near_runs(numbers: Sequence[int]) -> Iterator[range]:
    """Yield ranges that cover rising numbers; near ones share a range.

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
