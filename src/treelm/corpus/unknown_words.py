"""Unknown-word signatures: the shape of a word in place of the word (Berkeley level 5)."""

from __future__ import annotations

from collections.abc import Container
from functools import cached_property
from typing import TYPE_CHECKING, Literal

from treelm import _native
from treelm.characters import visible
from treelm.errors import UsageError, VocabularyError
from treelm.trees.packaged_profiles import FINGERPRINTS

if TYPE_CHECKING:
    from treelm.trees.profile import Profile, ProfileSource

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
        self._source = profile
        self._packaged_fingerprint = FINGERPRINTS.get(profile) if isinstance(profile, str) else None
        self.style: SignatureStyle = style
        if self._packaged_fingerprint is None:
            self.profile  # noqa: B018 (refused now, if there is no such profile)

    @cached_property
    def profile(self) -> Profile:
        """The profile; one that comes with treelm is read when it is first needed."""
        from treelm.trees.profile import load_profile

        return load_profile(self._source)

    @property
    def profile_fingerprint(self) -> str:
        """What tells the profile from others."""
        return self._packaged_fingerprint or self.profile.fingerprint

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
