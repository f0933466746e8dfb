"""The regular inflection of English verbs and nouns, in both directions.

Every function takes a word in lower case and returns the forms that spelling allows, the most
likely first. Which of them exists is decided by a treebank (`morphology`).
"""

from __future__ import annotations

from typing import Final

_VOWELS: Final = frozenset("aeiou")
_SIBILANTS: Final = ("s", "x", "z", "ch", "sh")


def _ends_in_consonant_y(word: str) -> bool:
    return word.endswith("y") and (word[-2:-1] not in _VOWELS or word.endswith("quy"))


def _syllables(word: str) -> int:
    """Return roughly how many syllables a word has: its runs of vowels, without a silent e."""
    letters = word[:-1] if word.endswith("e") and not word.endswith("ee") else word
    count = 0
    inside = False
    for place, letter in enumerate(letters):
        # "qu" is one consonant; y is a vowel except at the start.
        vowel = letter in _VOWELS or (letter == "y" and place > 0)
        if letter == "u" and letters[place - 1 : place] == "q":
            vowel = False
        count += vowel and not inside
        inside = vowel
    return max(count, 1)


def may_double(word: str) -> bool:
    """Return whether a word ends in one vowel and one consonant that can be doubled.

    Examples:
        >>> [word for word in ("stop", "rain", "fix", "visit", "quit", "help") if may_double(word)]
        ['stop', 'visit', 'quit']
    """
    if len(word) < 3 or word[-1] in _VOWELS | set("hwxy"):
        return False
    letters = word.replace("qu", "q")
    return letters[-2] in _VOWELS and letters[-3:-2] not in _VOWELS and letters[-1] not in _VOWELS


def third_person(base: str) -> list[str]:
    """Return the present tense after *it*.

    Examples:
        >>> third_person("carry"), third_person("watch"), third_person("go"), third_person("play")
        (['carries'], ['watches'], ['goes'], ['plays'])
    """
    if _ends_in_consonant_y(base):
        return [base[:-1] + "ies"]
    if base.endswith(_SIBILANTS) or (base.endswith("o") and base[-2:-1] not in _VOWELS):
        return [base + "es"]
    return [base + "s"]


def past(base: str, *, doubles: bool = False) -> list[str]:
    """Return the past tense, which is also the participle.

    Args:
        base: The verb.
        doubles: Whether the final consonant of a longer verb is known to be doubled.

    Examples:
        >>> past("hope"), past("stop"), past("try"), past("visit"), past("refer", doubles=True)
        (['hoped'], ['stopped'], ['tried'], ['visited', 'visitted'], ['referred', 'refered'])
    """
    if base.endswith("e"):
        return [base + "d"]
    if _ends_in_consonant_y(base):
        return [base[:-1] + "ied"]
    return _doubled_or_not(base, "ed", doubles=doubles)


def gerund(base: str, *, doubles: bool = False) -> list[str]:
    """Return the form in *-ing*.

    Examples:
        >>> gerund("make"), gerund("see"), gerund("lie"), gerund("sit"), gerund("open")
        (['making'], ['seeing'], ['lying'], ['sitting'], ['opening', 'openning'])
    """
    if base.endswith("ie"):
        return [base[:-2] + "ying"]
    if base.endswith("e") and not base.endswith(("ee", "oe", "ye")) and len(base) > 2:
        return [base[:-1] + "ing"]
    return _doubled_or_not(base, "ing", doubles=doubles)


def _doubled_or_not(base: str, ending: str, *, doubles: bool) -> list[str]:
    plain = base + ending
    if base.endswith("ic"):
        return [base + "k" + ending]
    if not may_double(base):
        return [plain]
    doubled = base + base[-1] + ending
    if _syllables(base) == 1:
        return [doubled]
    return [doubled, plain] if doubles else [plain, doubled]


def plural(noun: str) -> list[str]:
    """Return the plural.

    Examples:
        >>> plural("city"), plural("church"), plural("policeman"), plural("human"), plural("zero")
        (['cities'], ['churches'], ['policemen'], ['humans'], ['zeros', 'zeroes'])
    """
    if noun.endswith("man") and noun not in _NO_MEN:
        return [noun[:-2] + "en"]
    if _ends_in_consonant_y(noun):
        return [noun[:-1] + "ies"]
    if noun.endswith("sis"):
        return [noun[:-2] + "es"]
    if noun.endswith("o"):
        return [noun + "s", noun + "es"]
    return [noun + "es"] if noun.endswith(_SIBILANTS) else [noun + "s"]


_NO_MEN: Final = frozenset({"human", "german", "roman", "shaman", "talisman", "caiman", "ottoman"})


def from_s(form: str) -> list[str]:
    """Return what may precede *-s*: a verb or the singular of a noun.

    Examples:
        >>> from_s("houses"), from_s("cities"), from_s("boxes"), from_s("dogs"), from_s("glass")
        (['house', 'hous', 'housis'], ['city', 'citie'], ['box', 'boxe'], ['dog'], [])
    """
    if not form.endswith("s") or form.endswith(("ss", "us", "is")) or len(form) < 3:
        return [form[:-2] + "an"] if form.endswith("men") else []
    stem = form[:-1]
    if form.endswith("ies") and len(form) > 4:
        return [form[:-3] + "y", stem]
    if form.endswith("ses"):
        return [stem, form[:-2], form[:-2] + "is"]
    if form.endswith("zes") and not form.endswith("zzes"):
        return [stem, form[:-2]]
    if form.endswith(("xes", "zzes", "ches", "shes", "oes")):
        return [form[:-2], stem]
    return [stem]


def from_ed(form: str) -> list[str]:
    """Return the verbs whose regular past may be this form.

    Examples:
        >>> from_ed("stopped"), from_ed("hoped"), from_ed("tried")
        (['stopp', 'stoppe', 'stop'], ['hop', 'hope'], ['try', 'trie', 'tri'])
    """
    return _from_ending(form, "ed", before_y="i")


def from_ing(form: str) -> list[str]:
    """Return the verbs whose form in *-ing* may be this one.

    Examples:
        >>> from_ing("making"), from_ing("lying")
        (['mak', 'make'], ['ly', 'lye', 'lie'])
    """
    found = _from_ending(form, "ing", before_y="")
    return [*found, form[:-4] + "ie"] if form.endswith("ying") else found


#: A verb that ends like this has no silent e and doubles nothing.
_WHOLE_STEMS: Final = (
    *(
        "tch",
        "sh",
        "ck",
        "lk",
        "nk",
        "rk",
        "sk",
        "wk",
        "nd",
        "rd",
        "ld",
        "nt",
        "rt",
        "ct",
        "pt",
        "ft",
    ),
    *("lt", "lp", "mp", "rp", "lm", "rm", "rn", "wn", "ay", "ey", "oy", "ow", "aw", "ew", "x"),
)


def certain_base(form: str) -> str | None:
    """Return the verb of a regular form in *-ed* or *-ing*, where spelling leaves no choice.

    Examples:
        >>> [certain_base(form) for form in ("watched", "carried", "playing", "hoped", "stopping")]
        ['watch', 'carry', 'play', None, None]
    """
    if form.endswith("ied") and len(form) > 5:
        return form[:-3] + "y"
    for ending in ("ed", "ing"):
        stem = form.removesuffix(ending)
        if stem != form and len(stem) > 2 and stem.endswith(_WHOLE_STEMS):
            return stem
    return None


def _from_ending(form: str, ending: str, *, before_y: str) -> list[str]:
    if not form.endswith(ending) or len(form) < len(ending) + 2:
        return []
    stem = form[: -len(ending)]
    found = [stem, stem + "e"]
    if before_y and stem.endswith(before_y):
        found = [stem[:-1] + "y", stem + "e", stem]
    if len(stem) > 2 and stem[-1] == stem[-2]:
        found.append(stem[:-1])
    if stem.endswith("ck"):
        found.append(stem[:-1])
    return found
