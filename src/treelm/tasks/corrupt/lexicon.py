"""The words of a treebank with their tags and frequencies, and random words from among them."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable
from itertools import accumulate
from typing import Final

from treelm.tasks.corrupt.draws import Draws
from treelm.tasks.corrupt.letter_case import PROPER_TAGS, first_word
from treelm.tasks.corrupt.tagged_sentences import TaggedSentence


class TagWords:
    """The words of one tag, to be sampled by frequency.

    Args:
        counts: Words with their counts.
    """

    def __init__(self, counts: dict[str, int]) -> None:
        self._words = sorted(counts)
        self._counts = [counts[word] for word in self._words]
        self._cumulative = list(accumulate(self._counts))
        self._place = {word: place for place, word in enumerate(self._words)}

    def has_other_than(self, word: str) -> bool:
        """Return whether there is a word besides this one."""
        return len(self._words) > (word in self._place)

    def draw_other_than(self, word: str, draws: Draws) -> str:
        """Return another word, by its frequency among the others."""
        total = self._cumulative[-1]
        place = self._place.get(word)
        if place is None:
            return self._words[draws.weighted(self._cumulative)]
        own = self._counts[place]
        before = self._cumulative[place] - own
        number = draws.below(total - own)
        # The word's own interval is cut out of the cumulative frequencies.
        return self._words[
            bisect_right(self._cumulative, number if number < before else number + own)
        ]


class Lexicon:
    """Words of a treebank by tag, as they are written inside a sentence.

    Words are lower-cased, except proper nouns, *I*, and words that are written with capitals
    inside sentences more often than without (*American*, *DNA*).

    Args:
        sentences: Words and tags, read once.
    """

    def __init__(self, sentences: Iterable[TaggedSentence]) -> None:
        pairs: Counter[tuple[str, str]] = Counter()
        inside: Counter[str] = Counter()
        self.sentences: Final[set[int]] = set()
        for words, tags in sentences:
            self.sentences.add(hash(" ".join(words)))
            pairs.update(zip(words, tags, strict=True))
            first = first_word(words)
            inside.update(words)
            if tags[first] not in PROPER_TAGS:
                inside[words[first]] -= 1
        # Words of proper names say nothing about how the same letters are written elsewhere.
        for (word, tag), count in pairs.items():
            if tag in PROPER_TAGS:
                inside[word] -= count
        self._keeps_capitals: Final = frozenset(
            word
            for word, count in inside.items()
            if count > 0 and word != word.lower() and count > inside[word.lower()]
        )
        self.counts: Final[Counter[tuple[str, str]]] = Counter()
        for (word, tag), count in pairs.items():
            self.counts[self.entry(word, tag), tag] += count
        by_tag: dict[str, dict[str, int]] = {}
        words_alone: Counter[str] = Counter()
        for (word, tag), count in self.counts.items():
            by_tag.setdefault(tag, {})[word] = count
            words_alone[word] += count
        self.frequency: Final = words_alone
        self._by_tag = {tag: TagWords(words) for tag, words in by_tag.items()}
        items = sorted(self.counts.items())
        self._pairs = [pair for pair, _ in items]
        self._cumulative = list(accumulate(count for _, count in items))

    def __bool__(self) -> bool:
        return bool(self._pairs)

    def entry(self, word: str, tag: str) -> str:
        """Return how a word is written inside a sentence."""
        if tag in PROPER_TAGS or word == "I" or word in self._keeps_capitals:
            return word
        return word.lower()

    def has_other(self, word: str, tag: str) -> bool:
        """Return whether the tag has a word besides this one."""
        words = self._by_tag.get(tag)
        return words is not None and words.has_other_than(self.entry(word, tag))

    def draw_other(self, word: str, tag: str, draws: Draws) -> str:
        """Return another word of the tag, by frequency; there must be one."""
        return self._by_tag[tag].draw_other_than(self.entry(word, tag), draws)

    def draw_token(self, draws: Draws) -> str:
        """Return a random token of the treebank."""
        return self._pairs[draws.weighted(self._cumulative)][0]
