"""Language profiles: head rules, closed classes and label sets, read from TOML.

Nothing about a language is in the code. A profile is a file that anyone can copy and change:
``load_profile("english")``, ``load_profile("neutral")`` or ``load_profile("my/german.toml")``.
"""

from __future__ import annotations

import hashlib
import tomllib
from collections.abc import Mapping
from functools import cache, cached_property
from pathlib import Path
from typing import Annotated, Literal

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    StringConstraints,
    ValidationError,
    model_validator,
)

from treelm import _native
from treelm.characters import visible
from treelm.errors import ProfileError
from treelm.trees.packaged_profiles import packaged_profiles

Side = Literal["left", "right"]

#: A profile is written by hand; a larger file is something else.
MAX_PROFILE_BYTES = 256 << 10
MAX_PROFILE_LINE = 4000

#: Text that can occur in brackets: no white space, no brackets, no control characters.
Token = Annotated[str, StringConstraints(pattern=r"^[^\s()\x00-\x1f\x7f-\x9f]+$")]

#: Short names people use for the packaged profiles.
ALIASES = {"en": "english", "es": "spanish", "is": "icelandic", "ja": "japanese"}


class _Section(BaseModel):
    # Built at the first use: only `Profile`, which holds the others, is used by itself.
    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)


class Reading(_Section):
    """What the bracket reader removes or renames."""

    root_labels: tuple[Token, ...] = ("TOP", "ROOT", "S1", "VROOT")
    empty_tags: tuple[Token, ...] = ("-NONE-",)
    drop_tags: tuple[Token, ...] = ()
    #: Characters at which labels are cut: what follows is a function, an index or the like.
    separators: Annotated[str, StringConstraints(pattern=r"^[!-'*-/:-@\[-`{-~]*$")] = "-=|"
    #: Categories that contain one of these characters.
    compounds: tuple[Token, ...] = ()
    #: Category, or its beginning and ``*``, -> the category that it is read as.
    rename: dict[Token, Token] = {}
    flatten: dict[Token, Token] = {}
    #: By tag: words, and how they are spelled instead.
    spellings: dict[Token, dict[Token, Token]] = {}


class Punctuation(_Section):
    """Which preterminals are punctuation."""

    tags: tuple[Token, ...] = ()
    by_word: bool = False


class HeadStep(_Section):
    """One way to find the head; exactly one of `priority`, `any` and `last` is given."""

    side: Side = Field("left", alias="from")
    priority: tuple[Token, ...] | None = None
    any: tuple[Token, ...] | None = None
    last: tuple[Token, ...] | None = None

    @model_validator(mode="after")
    def _one_kind(self) -> HeadStep:
        if sum(labels is not None for labels in (self.priority, self.any, self.last)) != 1:
            raise ValueError("a head step needs exactly one of priority, any, last")
        return self

    def to_native(self) -> _native.HeadStep:
        """Return the step as the kernel takes it."""
        kind = _native.HeadStepKind
        from_right = self.side == "right"
        if self.priority is not None:
            return _native.HeadStep(kind.PRIORITY, from_right, list(self.priority))
        if self.any is not None:
            return _native.HeadStep(kind.ANY, from_right, list(self.any))
        return _native.HeadStep(kind.LAST, from_right, list(self.last or ()))


class HeadRule(_Section):
    """How the head of one category is found."""

    default: Side = "left"
    steps: tuple[HeadStep, ...] = ()
    same_as: Token | None = None


class Heads(_Section):
    """Head rules and what coordination looks like."""

    default: Side = "left"
    coordinators: tuple[Token, ...] = ()
    coordination_skips: tuple[Token, ...] = ()
    rules: dict[Token, HeadRule] = {}

    @model_validator(mode="after")
    def _known_references(self) -> Heads:
        for label, rule in self.rules.items():
            if rule.same_as is None:
                continue
            target = self.rules.get(rule.same_as)
            if target is None or target.same_as is not None:
                raise ValueError(f"rule {label}: same_as must name a rule of its own")
        return self

    def rule(self, label: str) -> HeadRule:
        """Return the rule of a category, with `same_as` followed."""
        rule = self.rules[label]
        return self.rules[rule.same_as] if rule.same_as is not None else rule


class ClosedClass(_Section):
    """Words so frequent that annotations name them instead of their tags."""

    tags: tuple[Token, ...] = ()
    verb_prefixes: tuple[Token, ...] = ()
    verbs: tuple[Token, ...] = ()
    bracket_words: tuple[Token, ...] = ()


class Treelet(_Section):
    """Labels that the nine treelet transforms look for."""

    temporal_tags: dict[Token, Token] = {}
    temporal_phrases: tuple[Token, ...] = ()
    temporal_function: str = ""
    noun_phrases: tuple[Token, ...] = ()
    noun_phrase_separators: tuple[Token, ...] = ()
    apposition_marks: tuple[Token, ...] = ()
    number_tags: tuple[Token, ...] = ()
    clause_flattening: tuple[tuple[Token, Token], ...] = ()
    verb_phrases: tuple[Token, ...] = ()
    gapped: tuple[Token, ...] = ()
    parent_annotated: tuple[Token, ...] = ()


class UnknownWords(_Section):
    """What an unknown word's signature says besides case, digits and dashes."""

    plural: str = ""
    plural_blocked: str = ""
    suffixes: tuple[Token, ...] = ()
    last_character: bool = False


class Evaluation(_Section):
    """What bracket scores leave out and treat as equal."""

    delete_tags: tuple[Token, ...] = ()
    delete_punctuation: bool = False
    delete_labels: tuple[Token, ...] = ("ROOT",)
    equal_labels: tuple[tuple[Token, ...], ...] = ()


class Profile(_Section):
    """A language profile; immutable, and the same for everything done to one corpus."""

    name: Token
    description: str = ""
    reading: Reading = Reading()
    punctuation: Punctuation = Punctuation()
    heads: Heads = Heads()
    closed_class: ClosedClass = ClosedClass()
    treelet: Treelet = Treelet()
    unknown_words: UnknownWords = UnknownWords()
    evaluation: Evaluation = Evaluation()

    def model_copy(
        self, *, update: Mapping[str, object] | None = None, deep: bool = False
    ) -> Profile:
        """Return a changed copy; values computed from the old content are dropped."""
        copy = super().model_copy(update=update, deep=deep)
        for computed in ("native", "fingerprint"):
            copy.__dict__.pop(computed, None)
        return copy

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 of the profile's content, as stored with models.

        Spellings, which came later and change no rule, are left out, and so is what says how
        labels are read where it has its default: vocabularies and models of earlier versions
        keep their fingerprints.
        """
        later = {
            name
            for name in ("separators", "compounds", "rename")
            if getattr(self.reading, name) == Reading.model_fields[name].default
        }
        content = self.model_dump_json(exclude={"reading": {"spellings", *later}})
        return hashlib.sha256(content.encode()).hexdigest()

    @property
    def short_name(self) -> str:
        """The name, with the start of the fingerprint if the profile is not a packaged one."""
        packaged = isinstance(self.to_config(), str)
        return self.name if packaged else f"{self.name}-{self.fingerprint[:8]}"

    def to_config(self) -> str | dict[str, object]:
        """Return what a manifest stores: the name of a packaged profile, else its whole content."""
        if self.name in packaged_profiles() and self == _load_packaged(self.name):
            return self.name
        return self.model_dump(mode="json", by_alias=True, exclude_defaults=True) | {
            "name": self.name
        }

    @cached_property
    def native(self) -> _native.Profile:
        """The profile as the kernels use it."""
        data = _native.ProfileData()
        data.root_labels = list(self.reading.root_labels)
        data.empty_tags = list(self.reading.empty_tags)
        data.drop_tags = list(self.reading.drop_tags)
        data.separators = self.reading.separators
        data.compounds = list(self.reading.compounds)
        data.renamed = list(self.reading.rename.items())
        data.flatten = list(self.reading.flatten.items())
        data.spellings = [
            (tag, word, spelling)
            for tag, spellings in self.reading.spellings.items()
            for word, spelling in spellings.items()
        ]
        data.punctuation_tags = list(self.punctuation.tags)
        data.punctuation_by_word = self.punctuation.by_word
        data.default_right = self.heads.default == "right"
        data.coordinators = list(self.heads.coordinators)
        data.coordination_skips = list(self.heads.coordination_skips)
        data.head_rows = [self._native_row(label) for label in self.heads.rules]
        data.closed_tags = list(self.closed_class.tags)
        data.closed_prefixes = list(self.closed_class.verb_prefixes)
        data.closed_words = list(self.closed_class.verbs)
        data.bracket_words = list(self.closed_class.bracket_words)
        self._fill_treelet(data)
        return _native.Profile(data)

    def _native_row(self, label: str) -> _native.HeadRow:
        rule = self.heads.rule(label)
        steps = [step.to_native() for step in rule.steps]
        return _native.HeadRow(label, rule.default == "right", steps)

    def _fill_treelet(self, data: _native.ProfileData) -> None:
        data.temporal_tags = list(self.treelet.temporal_tags.items())
        data.temporal_phrases = list(self.treelet.temporal_phrases)
        data.temporal_function = self.treelet.temporal_function
        data.noun_phrases = list(self.treelet.noun_phrases)
        data.noun_phrase_separators = list(self.treelet.noun_phrase_separators)
        data.apposition_marks = list(self.treelet.apposition_marks)
        data.number_tags = list(self.treelet.number_tags)
        data.clause_flattening = list(self.treelet.clause_flattening)
        data.verb_phrases = list(self.treelet.verb_phrases)
        data.gapped = list(self.treelet.gapped)
        data.parent_annotated = list(self.treelet.parent_annotated)


#: Anything `load_profile` takes.
ProfileSource = str | Path | Mapping[str, object] | Profile


def load_profile(source: ProfileSource | None = "english") -> Profile:
    """Return a language profile.

    Args:
        source: Name of a packaged profile, path of a TOML file, what `Profile.to_config` returned,
            a `Profile` (returned as it is), or None for the neutral one.

    Raises:
        ProfileError: if there is no such profile, or it is not valid.

    Examples:
        >>> load_profile("english").heads.rule("PP").default
        'right'
    """
    if isinstance(source, Profile):
        return source
    if isinstance(source, Mapping):
        return _validate(source, "stored profile")
    name = "neutral" if source is None else ALIASES.get(str(source), str(source))
    if name in packaged_profiles():
        return _load_packaged(name)
    path = Path(name)
    if path.suffix != ".toml":
        raise ProfileError(
            f'there is no language profile "{visible(name)}". Packaged profiles: '
            f"{', '.join(packaged_profiles())}; a profile of your own is a .toml file, given by "
            "its path.",
            code="E_NO_PROFILE",
        )
    try:
        if path.stat().st_size > MAX_PROFILE_BYTES:
            raise ProfileError(
                f"{visible(name)}: larger than {MAX_PROFILE_BYTES >> 10} KiB, more labels "
                "than any language has; is this a profile?"
            )
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ProfileError(
            f"{visible(name)}: the language profile cannot be read ({_reason(error)}).",
            code="E_NO_PROFILE",
        ) from error
    return _parse(text, visible(name))


@cache
def _load_packaged(name: str) -> Profile:
    from importlib import resources

    file = resources.files("treelm.trees.profiles") / f"{name}.toml"
    return _parse(file.read_text(encoding="utf-8"), f"{name}.toml")


def _parse(text: str, where: str) -> Profile:
    # Python's TOML reader takes quadratic time over one key of very many parts.
    if max(map(len, text.splitlines()), default=0) > MAX_PROFILE_LINE:
        raise ProfileError(f"{where}: a line is longer than {MAX_PROFILE_LINE} characters.")
    try:
        content = tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # endless nesting and numbers included
        raise ProfileError(f"{where}: not valid TOML: {visible(str(error))}.") from error
    return _validate(content, where)


def _reason(error: Exception) -> str:
    return (error.strerror if isinstance(error, OSError) else None) or visible(str(error))


def _validate(content: Mapping[str, object], where: str) -> Profile:
    try:
        profile = Profile.model_validate(content)
        profile.native  # noqa: B018 (compiled now, while it is known where it came from)
    except _native.KernelError as error:
        raise ProfileError(f"{where}: {error.args[1]}.") from error
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"]) or "the whole file"
        raise ProfileError(
            f"{where}: {visible(place)}: {first['msg']}. See docs/formats/profile.md for what "
            "a profile may contain; the packaged english.toml is an example."
        ) from error
    return profile
