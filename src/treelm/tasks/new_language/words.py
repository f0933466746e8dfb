"""What words say: punctuation, closed classes, numbers, quotes, endings, script."""

from __future__ import annotations

import math
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

from treelm.tasks.new_language.notes import Note, listed, percent

#: A tag is punctuation if at least this share of its words has no letter and no digit.
PUNCTUATION_SHARE = 0.9
#: A tag is closed if the chance that its next word is a new one is below this (Good and Turing).
CLOSED_CHANCE = 0.01
#: Fewer words than this say nothing about a tag.
FEWEST_WORDS = 50
#: How many endings are proposed, and how long they may be.
MOST_ENDINGS, LONGEST_ENDING = 30, 5
#: Words seen at most this often are like unknown ones.
RARE = 3
_QUOTES = "\"'`“”„‘’‚«»‹›「」『』"
_BRACKET_WORDS = frozenset({"-LRB-", "-RRB-", "-LCB-", "-RCB-", "-LSB-", "-RSB-"})


@dataclass(frozen=True)
class WordProposal:
    """What a profile says about words."""

    punctuation: tuple[str, ...]
    closed: tuple[str, ...]
    numbers: tuple[str, ...]
    endings: tuple[str, ...]
    spaced: bool
    notes: tuple[Note, ...]


def is_mark(word: str) -> bool:
    """Return whether a word has no letter, digit or currency, or stands for a bracket."""
    if word in _BRACKET_WORDS:
        return True
    kinds = {"L" if each.isalnum() else unicodedata.category(each) for each in word}
    return not kinds & {"L", "Sc"}  # a currency is read aloud


def propose_words(words: Mapping[str, Counter[str]]) -> WordProposal:
    """Return what words by tag say about a language.

    Args:
        words: Words and their counts by tag.
    """
    notes: list[Note] = []
    punctuation = _punctuation(words, notes)
    rest = {tag: counts for tag, counts in words.items() if tag not in punctuation}
    numbers = _numbers(rest, notes)
    closed = _closed(rest, numbers, notes)
    _quotes(words, notes)
    spaced = _script(rest, notes)
    # Words without spaces between them are short: their last character says enough.
    endings = _endings(rest, closed, notes) if spaced else ()
    return WordProposal(punctuation, closed, numbers, endings, spaced, tuple(notes))


def _punctuation(words: Mapping[str, Counter[str]], notes: list[Note]) -> tuple[str, ...]:
    found, doubtful = [], []
    for tag, counts in sorted(words.items()):
        marks = sum(count for word, count in counts.items() if is_mark(word))
        share = marks / counts.total()
        if share >= PUNCTUATION_SHARE:
            found.append(tag)
            if share < 1 or counts.total() < 5:
                doubtful.append(f"{tag} ({percent(marks, counts.total())} of {counts.total()})")
        elif share >= 0.1 and marks >= 5:
            doubtful.append(f"{tag} ({percent(marks, counts.total())}, left out)")
    notes.append(
        Note(
            "punctuation.tags",
            sure=bool(found) and not any("left out" in each for each in doubtful),
            evidence=f"tags of which at least {PUNCTUATION_SHARE:.0%} of the words have no "
            "letter and no "
            f"digit: {' '.join(found) or 'none'}."
            + (f" Less clear: {', '.join(doubtful[:8])}." if doubtful else ""),
        )
    )
    return tuple(found)


def _numbers(words: Mapping[str, Counter[str]], notes: list[Note]) -> tuple[str, ...]:
    found = []
    for tag, counts in sorted(words.items()):
        digits = sum(count for word, count in counts.items() if any(map(str.isdecimal, word)))
        share = digits / counts.total()
        if share >= 0.3 and digits >= 5:
            found.append(tag)
            notes.append(
                Note(
                    "treelet.number_tags",
                    sure=share >= 0.6,
                    evidence=f"{tag}: {percent(digits, counts.total())} of {counts.total()} "
                    "words have a "
                    f"digit ({listed(counts, 4)}).",
                )
            )
    return tuple(found)


def _closed(
    words: Mapping[str, Counter[str]], numbers: tuple[str, ...], notes: list[Note]
) -> tuple[str, ...]:
    found, doubtful = [], []
    for tag, counts in sorted(words.items()):
        lower = Counter[str]()
        for word, count in counts.items():
            lower[word.lower()] += count
        total = lower.total()
        if tag in numbers or total < FEWEST_WORDS:
            continue
        once = sum(count == 1 for count in lower.values())
        if once <= max(1.0, CLOSED_CHANCE * total):
            found.append(tag)
        elif once < 3 * CLOSED_CHANCE * total:
            doubtful.append(f"{tag} ({len(lower)} words, {once} of them once in {total})")
    notes.append(
        Note(
            "closed_class.tags",
            sure=not doubtful,
            evidence="tags whose words seen once are less than "
            f"{CLOSED_CHANCE:.0%} of all, so that a new word is that improbable (Good 1953): "
            f"{' '.join(found) or 'none'}."
            + (f" Close: {', '.join(doubtful[:8])}." if doubtful else ""),
        )
    )
    return tuple(found)


def _quotes(words: Mapping[str, Counter[str]], notes: list[Note]) -> None:
    seen: Counter[str] = Counter()
    tags: dict[str, set[str]] = defaultdict(set)
    for tag, counts in words.items():
        for word, count in counts.items():
            if word and all(character in _QUOTES for character in word):
                seen[word] += count
                tags[word].add(tag)
    several = sorted(word for word in seen if seen[word] >= 5)
    if not seen:
        notes.append(Note("reading.spellings", sure=True, evidence="no quotation mark occurs."))
        return
    where = ", ".join(f"{word} below {' '.join(sorted(tags[word])[:3])}" for word in several[:6])
    notes.append(
        Note(
            "reading.spellings",
            sure=len(several) <= 2,
            evidence=f"quotation marks: {listed(seen)} ({where}). Raw text must use the same, or "
            "[reading.spellings] make them one.",
        )
    )


def _script(words: Mapping[str, Counter[str]], notes: list[Note]) -> bool:
    """Return whether words are separated by spaces in raw text, judged by the script."""
    letters: Counter[str] = Counter()
    joined: Counter[str] = Counter()
    for counts in words.values():
        for word, count in counts.items():
            if "_" in word.strip("_"):
                joined[word] += count
            for character in word:
                if character.isalpha():
                    letters[unicodedata.name(character, "UNKNOWN").split()[0]] += count
    total = letters.total()
    unspaced = sum(
        letters[each] for each in ("CJK", "HIRAGANA", "KATAKANA", "THAI", "LAO", "KHMER")
    )
    spaced = unspaced <= 0.5 * total
    scripts = ", ".join(f"{name} {percent(count, total)}" for name, count in letters.most_common(3))
    notes.append(
        Note(
            "script",
            sure=True,
            evidence=f"letters: {scripts}. "
            + (
                "Words are separated by spaces in raw text: the tokenizer `simple` fits."
                if spaced
                else "Raw text has no spaces between words: the tokenizer `segment` finds those "
                "that a model knows."
            ),
        )
    )
    if joined:
        notes.append(
            Note(
                "words with spaces",
                sure=joined.total() < 10,
                evidence=f"{joined.total()} words contain _ ({listed(joined, 4)}): where that "
                "stands for a "
                "space, no tokenizer of raw text makes such words.",
            )
        )
    return spaced


def _endings(
    words: Mapping[str, Counter[str]], closed: tuple[str, ...], notes: list[Note]
) -> tuple[str, ...]:
    """Return the endings of rare words that say most about tags.

    An ending is worth the number of rare words that have it, times the divergence of their tags
    from those of all rare words: the information gained.
    """
    tags: Counter[str] = Counter()
    by_ending: dict[str, Counter[str]] = defaultdict(Counter)
    for tag, counts in words.items():
        if tag in closed:
            continue
        for word, count in counts.items():
            if count > RARE or not word.isalpha() or len(word) < 5:
                continue
            tags[tag] += 1
            for length in range(1, min(LONGEST_ENDING, len(word) - 1) + 1):
                by_ending[word[-length:].lower()][tag] += 1
    total = tags.total()

    def gain(counts: Counter[str]) -> float:
        mine = counts.total()
        return sum(
            count * math.log(count / mine / (tags[tag] / total)) for tag, count in counts.items()
        )

    worth = {
        ending: gain(counts)
        for ending, counts in by_ending.items()
        if counts.total() >= max(5, 0.001 * total)
    }
    kept: list[str] = []
    for ending in sorted(worth, key=lambda each: (-worth[each], each)):
        inside = max(
            (by_ending[other].total() for other in kept if other.endswith(ending)), default=0
        )
        if inside < 0.7 * by_ending[ending].total():
            kept.append(ending)
        if len(kept) == MOST_ENDINGS:
            break
    shown = ", ".join(
        f"-{ending} ({by_ending[ending].total()}, mostly {by_ending[ending].most_common(1)[0][0]})"
        for ending in kept[:5]
    )
    notes.append(
        Note(
            "unknown_words.suffixes",
            sure=bool(kept),
            evidence=f"of {total} rare words, the endings that say most about tags (information "
            "gain): "
            f"{shown or 'none, so the last character is written'}.",
        )
    )
    return tuple(sorted(kept, key=lambda each: (-len(each), -worth[each], each)))
