"""Unknown-word signatures: the shape of a word in place of the word (Berkeley level 5)."""

from __future__ import annotations

from collections.abc import Container
from functools import cached_property
from typing import Literal

from treelm import _native
from treelm.characters import visible
from treelm.errors import UsageError, VocabularyError
from treelm.trees.profile import ProfileSource, load_profile

SignatureStyle = Literal["full", "paper"]

#: Replaces a word whose shape says nothing.
UNKNOWN = "<unk>"


class Signatures:
    """Gives signatures by the rules of a language profile.

    Args:
        profile: Its `unknown_words` say which endings count; the neutral profile takes the last
            character instead.
        style: ``full``, or ``paper`` for the form printed by Pauls & Klein (without ``-LC``).

    Examples:
        >>> signatures = Signatures("english")
        >>> signatures("vexing", 3), signatures("B-52", 1), signatures("%", 4)
        ('UNK-LC-ing', 'UNK-CAPS-NUM-DASH', '<unk>')
        >>> signatures("Vexing", 0, known={"vexing"})
        'UNK-INITC-KNOWNLC-ing'
    """

    def __init__(
        self, profile: ProfileSource = "english", *, style: SignatureStyle = "full"
    ) -> None:
        if style not in ("full", "paper"):
            raise UsageError(f'unknown signature style "{style}"; choose full or paper.')
        self.profile = load_profile(profile)
        self.style: SignatureStyle = style

    @cached_property
    def rules(self) -> _native.SignatureRules:
        """The same rules for the kernels."""
        rules = self.profile.unknown_words
        return _native.SignatureRules(
            suffixes=list(rules.suffixes),
            plural=rules.plural,
            plural_blocked=rules.plural_blocked,
            lower_case_mark=self.style == "full",
            last_character=rules.last_character,
        )

    def __call__(self, word: str, position: int, *, known: Container[str] = ()) -> str:
        """Return the signature of `word` at `position` of its sentence (0 is the first).

        Args:
            word: The word as written.
            position: Counted from 0; only the first position is special.
            known: The vocabulary so far, in which the lower-cased word is looked up.

        Raises:
            VocabularyError: ``E_BAD_TOKEN`` if it cannot be written as UTF-8.
        """
        known_lower = position == 0 and word.lower() in known
        try:
            return self.rules.signature(word, position, known_lower=known_lower)
        except TypeError as error:  # what the kernel says of a lone surrogate
            raise not_a_word(word) from error


def not_a_word(word: str) -> VocabularyError:
    """Return the error for what cannot be a word of any text."""
    return VocabularyError(
        f'"{visible(word)}" is not a word: a word has at least one character, no white space and '
        "no lone surrogates. Split sentences into words first, for example with `treelm tokenize`.",
        code="E_BAD_TOKEN",
    )
