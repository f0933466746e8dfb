"""Sentences with one error each, in the style of Foster et al. 2008."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Final, NamedTuple, get_args

from treelm.errors import UsageError, option
from treelm.tasks.corrupt.draws import Draws
from treelm.tasks.corrupt.error_types import (
    Edit,
    ErrorName,
    ErrorType,
    ExtraWord,
    MissingWord,
    SpellingError,
)
from treelm.tasks.corrupt.inflection_errors import AgreementError, VerbFormError
from treelm.tasks.corrupt.letter_case import capitalized, first_word, is_word
from treelm.tasks.corrupt.lexicon import Lexicon
from treelm.tasks.corrupt.morphology import Morphology
from treelm.tasks.corrupt.spelling import Confusions, SpellingErrors, read_confusions
from treelm.tasks.corrupt.tagged_sentences import TaggedSentence

#: Weight of each type, from the share of corrections in the error corpus of Foster et al.
PUBLISHED_WEIGHTS: Final[Mapping[ErrorName, int]] = {
    "missing": 24,
    "extra": 17,
    "spelling": 17,
    "agreement": 17,
    "verb-form": 14,
}
EQUAL_WEIGHTS: Final[Mapping[ErrorName, int]] = dict.fromkeys(PUBLISHED_WEIGHTS, 1)


class NoisySentence(NamedTuple):
    """A sentence with one error.

    Args:
        words: The words, the wrong one among them.
        error: Type of the error.
        way: The kind of error within its type, such as the class of a missing word.
        position: Place of the error, from 0: of the deleted or replaced token in the original, of
            the inserted one in the noisy sentence.
        original: The sentence as it was.
    """

    words: tuple[str, ...]
    error: ErrorName
    way: str
    position: int
    original: tuple[str, ...]


class NoiseGenerator:
    """Makes one error in a sentence, of a type sampled by weight among those that apply.

    Args:
        lexicon: Words of a treebank; inserted words come from it, and forms and spellings are
            looked up in it.
        confusions: Words that are confused; default: the packaged list.
        weights: Weight of each type of error.
        only: Make errors of this type only.

    Raises:
        UsageError: if there is no such type.

    Examples:
        >>> sentence = TaggedSentence("This dog barks .".split(), "DT NN VBZ .".split())
        >>> generator = NoiseGenerator(Lexicon([sentence]), only="agreement")
        >>> {" ".join(generator.corrupt(sentence, seed=seed).words) for seed in range(20)} == {
        ...     "These dog barks .", "This dogs barks .", "This dog bark ."}
        True
    """

    def __init__(
        self,
        lexicon: Lexicon,
        *,
        confusions: Confusions | None = None,
        weights: Mapping[ErrorName, int] = PUBLISHED_WEIGHTS,
        only: ErrorName | None = None,
    ) -> None:
        if only is not None and only not in get_args(ErrorName):
            raise UsageError(
                f'there is no type of error "{only}". Types: {", ".join(get_args(ErrorName))}.'
            )
        morphology = Morphology(lexicon.counts)
        listed = read_confusions() if confusions is None else confusions
        types: tuple[ErrorType, ...] = (
            MissingWord(),
            ExtraWord(lexicon),
            SpellingError(SpellingErrors(lexicon.frequency, listed)),
            AgreementError(morphology),
            VerbFormError(morphology),
        )
        self.types = tuple(kind for kind in types if only in (None, kind.name))
        self._weights = weights
        self._lexicon = lexicon

    def corrupt(
        self, sentence: TaggedSentence, *, seed: int, index: int = 0
    ) -> NoisySentence | None:
        """Return a sentence with one error, or None if none can be made.

        Args:
            sentence: Words and tags.
            seed: Seed of the run.
            index: Number of the sentence; the result depends on it, on the seed and the sentence.
        """
        if len(sentence.words) < 2:
            return None
        applicable = []
        for kind in self.types:
            candidates = kind.candidates(sentence)
            if candidates:
                applicable.append((kind, candidates))
        if not applicable:
            return None
        draws = Draws(seed, index)
        weights = list(accumulate(self._weights[kind.name] for kind, _ in applicable))
        kind, candidates = applicable[draws.weighted(weights)]
        edit = kind.choose(sentence, candidates, draws)
        words = tuple(self._apply(sentence, edit))
        return NoisySentence(words, kind.name, edit.way, edit.place, tuple(sentence.words))

    def _apply(self, sentence: TaggedSentence, edit: Edit) -> list[str]:
        """Return the words after an edit; a new first word gets its capital letter."""
        words = list(sentence.words)
        first = first_word(words)
        place = edit.place
        if edit.word is None:
            del words[place]
            if place == first:
                new_first = first_word(words)
                words[new_first] = capitalized(words[new_first])
        elif not edit.inserts:
            words[place] = edit.word
        elif place <= first and is_word(edit.word):
            words[first] = self._lexicon.entry(words[first], sentence.tags[first])
            words.insert(place, capitalized(edit.word))
        else:
            words.insert(place, edit.word)
        return words


@dataclass
class NoiseCounts:
    """Counts of the errors made.

    Args:
        made: Noisy sentences by type of error and way.
        too_short: Sentences of fewer than two words, left out.
        nothing_applies: Sentences to which no type of error applies, left out.
        duplicates: Noisy sentences equal to an earlier one; they are kept.
        in_corpus: Noisy sentences that also occur in the treebank; they are kept.
    """

    made: dict[ErrorName, dict[str, int]] = field(default_factory=dict)
    too_short: int = 0
    nothing_applies: int = 0
    duplicates: int = 0
    in_corpus: int = 0

    @property
    def sentences(self) -> int:
        """Number of noisy sentences made."""
        return sum(sum(ways.values()) for ways in self.made.values())

    def summary(self) -> dict[str, object]:
        """Return the counts as one JSON object."""
        return {
            "sentences": self.sentences,
            "types": {name: sum(ways.values()) for name, ways in self.made.items()},
            "ways": {name: dict(ways) for name, ways in self.made.items()},
            "skipped": {"too_short": self.too_short, "nothing_applies": self.nothing_applies},
            "duplicates": self.duplicates,
            "in_corpus": self.in_corpus,
        }


def make_noisy(
    read: Callable[[], Iterable[TaggedSentence]],
    generator: NoiseGenerator,
    lexicon: Lexicon,
    *,
    seed: int = 0,
    count: int | None = None,
    counts: NoiseCounts | None = None,
) -> Iterator[NoisySentence]:
    """Yield a noisy version of each sentence of a corpus, in order.

    Sentence i depends on the seed and on i alone. In a second reading i continues, so that a
    sentence gets another error.

    Args:
        read: Returns the sentences, from the start each time.
        generator: Makes the errors.
        lexicon: Says which sentences occur in the treebank.
        seed: Seed.
        count: Number of noisy sentences; the corpus is read as often as needed. Default: one
            reading.
        counts: Filled with counts.

    Raises:
        UsageError: ``E_NOTHING_APPLIES`` if `count` is given and no error can be made anywhere.
    """
    if seed < 0 or (count is not None and count < 0):
        raise UsageError(f"{option('count')} and {option('seed')} must be 0 or more.")
    counts = NoiseCounts() if counts is None else counts
    counts.made = {kind.name: dict.fromkeys(kind.ways, 0) for kind in generator.types}
    made: set[int] = set()  # hashes: texts would fill memory
    index = total = 0
    while count is None or total < count:
        before = total
        for sentence in read():
            noisy = generator.corrupt(sentence, seed=seed, index=index)
            index += 1
            if noisy is None:
                if len(sentence.words) < 2:
                    counts.too_short += 1
                else:
                    counts.nothing_applies += 1
                continue
            key = hash(" ".join(noisy.words))
            counts.duplicates += key in made
            counts.in_corpus += key in lexicon.sentences
            made.add(key)
            counts.made[noisy.error][noisy.way] += 1
            total += 1
            yield noisy
            if total == count:
                return
        if count is None:
            return
        if total == before:
            raise UsageError(
                "no error of this type can be made in any of these sentences. Agreement and "
                f"verb forms need Penn tags and English words; {option('lexicon')} with a larger "
                "treebank provides more forms and spellings.",
                code="E_NOTHING_APPLIES",
            )
