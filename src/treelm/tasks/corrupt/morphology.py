"""Other forms of verbs and nouns: from a treebank, a list of irregular forms, and regular rules.

Forms that do not exist are never returned: a form that neither the treebank nor the list of
irregular forms has comes from the rules, and only if they leave no doubt about the base form.
"""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from functools import cache, cached_property
from importlib import resources
from typing import Final

from treelm.tasks.corrupt import regular_forms

_LETTERS = re.compile(r"[^\W\d_]{2,}")
_BE: Final = {"VB": "be", "VBP": "are", "VBZ": "is", "VBD": "was", "VBN": "been", "VBG": "being"}
_FORMS_OF_BE: Final = frozenset({*_BE.values(), "am", "were"})
_UNUSUAL: Final = {("have", "VBZ"): "has"}
_VERB_TAGS: Final = ("VB", "VBP", "VBZ", "VBD", "VBN", "VBG")
#: Abstract nouns and the like: no plural unless the treebank has it.
_DOUBTFUL_ENDINGS: Final = ("ness", "ism", "hood", "ship", "ese", "sis", "itis")
#: A word that has a tag in fewer than one in this many cases has it by mistake.
_RAREST_TAG: Final = 50


class EnglishInflection:
    """The packaged list of irregular forms."""

    def __init__(self) -> None:
        source = resources.files("treelm.tasks.corrupt") / "english_inflection.toml"
        table = tomllib.loads(source.read_text(encoding="utf-8"))
        rows = [line.split() for line in table["verbs"].strip().splitlines()]
        self.past = {base: tuple(past.split("/")) for base, past, _ in rows}
        self.participle = {base: tuple(done.split("/")) for base, _, done in rows}
        nouns = [line.split() for line in table["nouns"].strip().splitlines()]
        self.plural = {singular: tuple(plural.split("/")) for singular, plural in nouns}
        self.doubling = frozenset(table["doubling"].split())
        self.invariable = frozenset(table["invariable"].split())

    @cached_property
    def singular(self) -> dict[str, str]:
        """Singular of each irregular plural."""
        return _inverse(self.plural)

    @cached_property
    def base_of_past(self) -> dict[str, str]:
        """Verb of each irregular past tense."""
        return _inverse(self.past)

    @cached_property
    def base_of_participle(self) -> dict[str, str]:
        """Verb of each irregular participle."""
        return _inverse(self.participle)


def _inverse(table: Mapping[str, tuple[str, ...]]) -> dict[str, str]:
    return {form: base for base, forms in table.items() for form in forms}


@cache
def english_inflection() -> EnglishInflection:
    """Return the packaged list, read once."""
    return EnglishInflection()


class Morphology:
    """Finds other forms of English words, in lower case.

    Args:
        counts: How often each (word, tag) occurs in a treebank.

    Examples:
        >>> known = Morphology({("walk", "VB"): 3, ("men", "NNS"): 1})
        >>> known.verb("walked", "VBD", "VBG"), known.verb("went", "VBD", "VB")
        ('walking', 'go')
        >>> known.other_number("man", "NN"), known.other_number("advice", "NN")
        ('men', None)
    """

    def __init__(self, counts: Mapping[tuple[str, str], int]) -> None:
        self._seen: dict[str, Counter[str]] = {}
        self._seen_anywhere: Counter[str] = Counter()
        for (word, tag), count in counts.items():
            self._seen.setdefault(tag, Counter())[word.lower()] += count
            self._seen_anywhere[word.lower()] += count
        self._irregular = english_inflection()
        self._known: dict[tuple[str, str, str], str | None] = {}

    # -- verbs --------------------------------------------------------------------------------

    def verb(self, word: str, tag: str, wanted: str) -> str | None:
        """Return another form of a verb, or None if it is not known or the same.

        Args:
            word: The verb, in lower case.
            tag: Its tag.
            wanted: Tag of the wanted form.
        """
        key = (word, tag, wanted)
        if key not in self._known:
            start, last = _last_part(word)
            base = None if self._is_mistagged(word, tag) else self.base(last, tag)
            form = None if base is None else self._inflect(base, wanted)
            same = form is None or form == last
            self._known[key] = None if same else f"{start}{form}"
        return self._known[key]

    def base(self, word: str, tag: str) -> str | None:
        """Return the base form of a verb, or None if it is not known."""
        if tag not in _VERB_TAGS:
            return None
        if word in _FORMS_OF_BE:
            return "be"
        if not _LETTERS.fullmatch(word):
            return None
        if tag in ("VB", "VBP"):
            return word
        irregular = self._irregular
        if tag == "VBZ":
            if word == "has":
                return "have"
            bases = regular_forms.from_s(word)[:2]
            return self._base_of(word, bases, regular_forms.third_person) or _only(bases)
        if tag == "VBG":
            return self._base_of(word, regular_forms.from_ing(word), self._gerunds)
        listed = irregular.base_of_past if tag == "VBD" else irregular.base_of_participle
        if word in listed:
            return listed[word]
        bases = [base for base in regular_forms.from_ed(word) if base not in irregular.past]
        return self._base_of(word, bases, self._pasts)

    def _base_of(
        self, word: str, bases: Iterable[str], inflect: Callable[[str], list[str]]
    ) -> str | None:
        """Return the base that the treebank has, as a verb if possible, and that gives the word."""
        possible = [base for base in bases if word in inflect(base)]
        for counts in (*map(self._seen.get, ("VB", "VBP")), self._seen_anywhere):
            seen = [base for base in possible if counts and counts[base]]
            if seen and counts:
                return max(seen, key=counts.__getitem__)
        certain = regular_forms.certain_base(word)
        listed = (base for base in possible if base in self._irregular.past or base == certain)
        return next(listed, None)

    def _inflect(self, base: str, wanted: str) -> str | None:
        if base == "be":
            return _BE[wanted]
        if wanted in ("VB", "VBP"):
            return base
        if (base, wanted) in _UNUSUAL:
            return _UNUSUAL[base, wanted]
        if wanted == "VBZ":
            return self._likeliest(regular_forms.third_person(base), wanted)
        if wanted == "VBG":
            return self._likeliest(self._gerunds(base), wanted)
        listed = self._irregular.past if wanted == "VBD" else self._irregular.participle
        return self._likeliest(listed.get(base) or self._pasts(base), wanted)

    def _pasts(self, base: str) -> list[str]:
        return regular_forms.past(base, doubles=base in self._irregular.doubling)

    def _gerunds(self, base: str) -> list[str]:
        return regular_forms.gerund(base, doubles=base in self._irregular.doubling)

    # -- nouns --------------------------------------------------------------------------------

    def other_number(self, word: str, tag: str) -> str | None:
        """Return the plural of a singular noun (NN) or the singular of a plural (NNS), or None."""
        key = (word, tag, "")
        if key not in self._known:
            start, last = _last_part(word)
            form = None
            is_noun = last not in self._irregular.invariable and _LETTERS.fullmatch(last)
            if is_noun and not self._is_mistagged(word, tag):
                form = self._plural(last) if tag == "NN" else self._singular(last)
            self._known[key] = None if form is None or form == last else f"{start}{form}"
        return self._known[key]

    def _plural(self, noun: str) -> str | None:
        listed = self._irregular.plural.get(noun)
        forms = listed or regular_forms.plural(noun)
        if listed is None and _has_doubtful_plural(noun):
            forms = [form for form in forms if self._count(form, "NNS")]
        return self._likeliest(forms, "NNS") if forms else None

    def _singular(self, noun: str) -> str | None:
        if noun in self._irregular.singular:
            return self._irregular.singular[noun]
        forms = [
            form
            for form in regular_forms.from_s(noun)
            if form not in self._irregular.invariable and noun in regular_forms.plural(form)
        ]
        return self._likeliest(forms, "NN") if forms else None

    # -- what the treebank shows --------------------------------------------------------------

    def _is_mistagged(self, word: str, tag: str) -> bool:
        return 0 < self._count(word, tag) * _RAREST_TAG < self._seen_anywhere[word]

    def _count(self, form: str, tag: str) -> int:
        counts = self._seen.get(tag)
        return counts[form] if counts else 0

    def _likeliest(self, forms: Iterable[str], tag: str) -> str:
        """Return the form seen most often with the tag; the first of those never seen."""
        return max(forms, key=lambda form: self._count(form, tag))


def _has_doubtful_plural(noun: str) -> bool:
    in_s = noun.endswith("s") and not noun.endswith(("ss", "us"))
    return in_s or noun.endswith(_DOUBTFUL_ENDINGS)


def _last_part(word: str) -> tuple[str, str]:
    """Return the part up to the last hyphen, and the rest, which is inflected."""
    start, hyphen, last = word.rpartition("-")
    return start + hyphen, last


def _only(bases: list[str]) -> str | None:
    return bases[0] if bases else None
