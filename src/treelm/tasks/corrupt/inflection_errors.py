"""Inflection errors: agreement in number, and verb forms."""

from __future__ import annotations

from typing import Final

from treelm.tasks.corrupt.draws import Draws
from treelm.tasks.corrupt.error_types import Edit, ErrorType
from treelm.tasks.corrupt.letter_case import cased_like, first_word, inflected_like
from treelm.tasks.corrupt.morphology import Morphology
from treelm.tasks.corrupt.tagged_sentences import TaggedSentence

_NUMBERED_DETERMINERS: Final = frozenset(
    {"a", "an", "this", "that", "these", "those", "each", "every"}
)
_OTHER_DETERMINER: Final = {"this": "these", "these": "this", "that": "those", "those": "that"}
_OTHER_PAST_OF_BE: Final = {"was": "were", "were": "was"}
_OTHER_PRESENT: Final = {"VBZ": "VBP", "VBP": "VBZ"}
_BEFORE_NOUN: Final = frozenset(
    {"JJ", "JJR", "JJS", "RB", "CD", "VBN", "VBG", "NN", "NNS", "NNP", "NNPS"}
)


class AgreementError(ErrorType):
    """A verb, a noun after a determiner, or a determiner changes its number.

    Args:
        morphology: The forms of words.
    """

    name = "agreement"
    ways = ("verb", "noun", "determiner")

    def __init__(self, morphology: Morphology) -> None:
        self._morphology = morphology

    def candidates(self, sentence: TaggedSentence) -> list[tuple[str, int]]:
        """Return the words whose number can change; a noun must follow its determiner."""
        words, tags = sentence
        found: list[tuple[str, int]] = []
        for place, tag in enumerate(tags):
            if tag == "DT":
                word = words[place].lower()
                if word in _NUMBERED_DETERMINERS:
                    noun = _noun_after(tags, place)
                    if noun is not None and self._other("noun", words[noun], tags[noun]):
                        found.append(("noun", noun))
                    if word in _OTHER_DETERMINER:
                        found.append(("determiner", place))
            elif tag in ("VBZ", "VBP", "VBD") and self._other("verb", words[place], tag):
                found.append(("verb", place))
        return found

    def _other(self, way: str, word: str, tag: str) -> str | None:
        lower = word.lower()
        if way == "determiner":
            return _OTHER_DETERMINER[lower]
        if way == "noun":
            return self._morphology.other_number(lower, tag)
        if tag == "VBD":
            return _OTHER_PAST_OF_BE.get(lower)
        return self._morphology.verb(lower, tag, _OTHER_PRESENT[tag])

    def choose(
        self, sentence: TaggedSentence, candidates: list[tuple[str, int]], draws: Draws
    ) -> Edit:
        """Return a replacement by the other number."""
        way, place = draws.one_of(candidates)
        word = sentence.words[place]
        other = self._other(way, word, sentence.tags[place])
        assert other is not None  # it is a candidate
        is_first = place == first_word(sentence.words)
        written = inflected_like if way == "noun" else cased_like
        return Edit(way, place, written(other, word, first=is_first))


def _noun_after(tags: list[str], place: int) -> int | None:
    """Return the last word of the longest run of adjectives, nouns and the like, if a noun."""
    last = place
    while last + 1 < len(tags) and tags[last + 1] in _BEFORE_NOUN:
        last += 1
    return last if tags[last] in ("NN", "NNS") else None


#: The role of a verb, by its tag and the word before it, and the forms it can take by mistake.
_MISTAKES: Final = {
    "infinitive": ("VBD", "VBG", "VBZ"),
    "participle": ("VB", "VBD", "VBG"),
    "progressive": ("VB", "VBN"),
    "past": ("VB",),
}
_FORMS_OF_BE: Final = frozenset(
    {"be", "am", "is", "are", "was", "were", "been", "being", "'m", "'s", "'re"}
)
_FORMS_OF_HAVE: Final = frozenset({"have", "has", "had", "having", "'ve", "'s", "'d"})
_VERB_TAGS: Final = frozenset({"VB", "VBP", "VBZ", "VBD", "VBN", "VBG"})


class VerbFormError(ErrorType):
    """A verb takes a form that does not agree with the word before it.

    Args:
        morphology: The forms of words.
    """

    name = "verb-form"
    ways = tuple(_MISTAKES)

    def __init__(self, morphology: Morphology) -> None:
        self._morphology = morphology

    def candidates(self, sentence: TaggedSentence) -> list[tuple[str, int]]:
        """Return the verbs that have a wrong form for their place."""
        words, tags = sentence
        found: list[tuple[str, int]] = []
        for place, tag in enumerate(tags):
            if tag not in _VERB_TAGS:
                continue
            way = _kind_of_verb(sentence, place)
            if way is not None and self._others(way, words[place], tag):
                found.append((way, place))
        return found

    def _others(self, way: str, word: str, tag: str) -> list[str]:
        """Return the different wrong forms of a verb."""
        lower = word.lower()
        forms = (self._morphology.verb(lower, tag, wanted) for wanted in _MISTAKES[way])
        return list(dict.fromkeys(form for form in forms if form is not None))

    def choose(
        self, sentence: TaggedSentence, candidates: list[tuple[str, int]], draws: Draws
    ) -> Edit:
        """Return a replacement by a wrong form."""
        way, place = draws.one_of(candidates)
        word = sentence.words[place]
        form = draws.one_of(self._others(way, word, sentence.tags[place]))
        is_first = place == first_word(sentence.words)
        return Edit(way, place, cased_like(form, word, first=is_first))


def _kind_of_verb(sentence: TaggedSentence, place: int) -> str | None:
    """Return the rule that applies to a verb, by the nearest non-adverb to the left."""
    words, tags = sentence
    tag = tags[place]
    if tag == "VBD":
        return "past"
    before = place - 1
    while before >= 0 and tags[before] == "RB":
        before -= 1
    if before < 0:
        return None
    if tag == "VB":
        return "infinitive" if tags[before] in ("MD", "TO") else None
    if tags[before] not in _VERB_TAGS:
        return None
    word = words[before].lower().replace("’", "'")
    if tag == "VBG":
        return "progressive" if word in _FORMS_OF_BE else None
    if tag == "VBN":
        return "participle" if word in _FORMS_OF_BE or word in _FORMS_OF_HAVE else None
    return None
