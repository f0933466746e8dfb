"""Signatures of unknown words: the table of the specification, and any word against the oracle."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.reference.signature import sig

from treelm.corpus.unknown_words import UNKNOWN, Signatures
from treelm.errors import UsageError
from treelm.testing.strategies import words
from treelm.trees.profile import load_profile

STYLES = ("full", "paper")
PROFILES = ("english", "neutral")
SIGNATURES = {
    (profile, style): Signatures(profile, style=style) for profile in PROFILES for style in STYLES
}
# The kernel's tables are of one version of Unicode; Python's may be newer, never older.
KERNEL_UNICODE = 14


def same_in_every_version(text: str) -> bool:
    """Whether no character is one that Python knows and the kernel cannot know."""
    version = int(unicodedata.unidata_version.split(".")[0])
    return version == KERNEL_UNICODE or all(ord(char) < 0x0800 for char in text)


suffixes = st.sampled_from(
    [
        *("", "s", "ss", "is", "us", "es", "S", "ed", "ing", "ion", "er", "est", "ly", "ity", "y"),
        *("al", "ING", "Ed", "ſ", "İs", "ﬁs", "ıs", "ß", "-", "1", "Σ", "ity."),
    ]
)
shapes = st.text(st.sampled_from("abkIKXİıǅΣσςẞ-1٣.,'ªⓐⒶⅰ犬𝐀\u0345\u0301"), max_size=6)
any_word = (
    words()
    | st.builds(lambda start, end: start + end, shapes, suffixes)
    | st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
).filter(same_in_every_version)


@settings(max_examples=80)
@given(any_word, st.integers(0, 2), st.booleans())
@example("ⓐ", 1, False)  # lower case, yet no letter
@example("𝐀", 0, True)  # a capital that is its own lower case
@example("𝐀Ⓐ", 0, True)
def test_unknown_words_like_the_oracle(word: str, position: int, known: bool) -> None:
    vocabulary = {word.lower()} if known else {"vexing"}
    for (profile, style), signatures in SIGNATURES.items():
        expected = sig(
            word,
            position,
            vocabulary,
            sig_style=style,
            language_neutral=profile == "neutral",
        )
        assert signatures(word, position, known=vocabulary) == expected


def test_unknown_words_every_character() -> None:
    signatures = SIGNATURES["english", "full"]
    points = [*range(0xD800), *range(0xE000, 0x20000), *range(0xE0000, 0xE0200)]
    wrong = [
        word
        for char in filter(same_in_every_version, map(chr, points))
        for word in (char, f"{char}abs", f"1{char}")
        if signatures(word, 0) != sig(word, 0)
    ]
    assert wrong == []


TABLE = {
    ("vexing", 3): "UNK-LC-ing",
    ("Vexing", 2): "UNK-CAPS-ing",
    ("Vexing", 0): "UNK-INITC-ing",
    ("80s", 2): "UNK-LC-NUM-s",
    ("B-52", 1): "UNK-CAPS-NUM-DASH",
    ("1,234", 4): "UNK-NUM",
    ("U.S.", 3): "UNK-CAPS",
    ("abacus", 1): "UNK-LC",
    ("glass", 1): "UNK-LC",
    ("dogs", 1): "UNK-LC-s",
    ("ability", 1): "UNK-LC-ity",
    ("co-founder", 1): "UNK-LC-DASH",
    ("McDonald", 0): "UNK-CAPS",
    ("iPod", 1): "UNK-LC",
    ("%", 1): UNKNOWN,
    ("", 0): UNKNOWN,
}


@pytest.mark.parametrize(("word", "position"), TABLE)
def test_unknown_words_table_of_section_9_1(word: str, position: int) -> None:
    assert Signatures()(word, position) == TABLE[word, position]


def test_unknown_words_known_in_lower_case() -> None:
    signatures = Signatures("english")
    assert signatures("Vexing", 0, known={"vexing"}) == "UNK-INITC-KNOWNLC-ing"
    assert signatures("Vexing", 0, known={"Vexing"}) == "UNK-INITC-ing"
    assert signatures("Vexing", 1, known={"vexing"}) == "UNK-CAPS-ing"
    assert signatures("VEXING", 0, known={"vexing"}) == "UNK-CAPS-ing"
    assert signatures("vexing", 0, known={"vexing"}) == "UNK-LC-ing"


def test_unknown_words_style_of_the_paper() -> None:
    signatures = Signatures(style="paper")
    assert signatures("vexing", 3) == "UNK-ing"
    assert signatures("Vexing", 3) == "UNK-CAPS-ing"
    assert signatures("abacus", 3) == UNKNOWN
    with pytest.raises(UsageError):
        Signatures(style="short")  # type: ignore[arg-type]


def test_unknown_words_neutral_mode_takes_the_last_character() -> None:
    signatures = Signatures("neutral")
    assert signatures("hallo", 3) == "UNK-LC-o"
    assert signatures("Hallo", 0, known={"hallo"}) == "UNK-INITC-KNOWNLC-o"
    assert signatures("B-52", 3) == "UNK-CAPS-NUM-DASH-2"
    assert signatures("dogs", 3) == "UNK-LC-s"
    assert signatures("glass", 3) == "UNK-LC-s"
    assert signatures("%", 3) == "UNK-%"
    assert signatures("犬", 3) == "UNK-犬"
    assert signatures("", 3) == UNKNOWN


@settings(max_examples=100)
@given(any_word, st.integers(0, 2))
def test_unknown_words_are_one_token(word: str, position: int) -> None:
    """Plain UNK is never written, and equal shapes at later positions are equal signatures."""
    for (profile, _), signatures in SIGNATURES.items():
        result = signatures(word, position)
        assert result == UNKNOWN or result.startswith("UNK-")
        if profile == "english":
            assert result.isascii()
        assert signatures(word, 1) == signatures(word, 7)


def test_unknown_words_blocked_letters_are_characters_not_bytes() -> None:
    english = load_profile("english")
    rules = english.unknown_words.model_copy(update={"plural_blocked": "é"})
    signatures = Signatures(english.model_copy(update={"unknown_words": rules}))
    assert signatures("abés", 1) == "UNK-LC"
    assert signatures("abĩs", 1) == "UNK-LC-s"
