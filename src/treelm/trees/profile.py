"""Language profiles: head rules, closed classes and label sets, read from TOML.

Nothing about a language is written in code. A profile is a file that anyone can copy and change:
``load_profile("english")``, ``load_profile("neutral")`` or ``load_profile("my/german.toml")``.
"""

from __future__ import annotations

import hashlib
import tomllib
from collections.abc import Mapping
from functools import cache, cached_property
from importlib import resources
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from treelm import _native
from treelm.errors import ProfileError

Side = Literal["left", "right"]

#: Short names people use for the packaged profiles.
ALIASES = {"en": "english"}


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Reading(_Section):
    """What the bracket reader removes or renames."""

    root_labels: tuple[str, ...] = ("TOP", "ROOT", "S1", "VROOT")
    empty_tags: tuple[str, ...] = ("-NONE-",)
    drop_tags: tuple[str, ...] = ()
    flatten: dict[str, str] = {}


class Punctuation(_Section):
    """Which preterminals are punctuation."""

    tags: tuple[str, ...] = ()
    by_word: bool = False


class HeadStep(_Section):
    """One way to find the head; exactly one of `priority`, `any` and `last` is given."""

    side: Side = Field("left", alias="from")
    priority: tuple[str, ...] | None = None
    any: tuple[str, ...] | None = None
    last: tuple[str, ...] | None = None

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
    same_as: str | None = None


class Heads(_Section):
    """Head rules and what coordination looks like."""

    default: Side = "left"
    coordinators: tuple[str, ...] = ()
    coordination_skips: tuple[str, ...] = ()
    rules: dict[str, HeadRule] = {}

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

    tags: tuple[str, ...] = ()
    verb_prefixes: tuple[str, ...] = ()
    verbs: tuple[str, ...] = ()
    bracket_words: tuple[str, ...] = ()


class Treelet(_Section):
    """Labels that the nine treelet transforms look for."""

    temporal_tags: dict[str, str] = {}
    temporal_phrases: tuple[str, ...] = ()
    temporal_function: str = ""
    noun_phrases: tuple[str, ...] = ()
    noun_phrase_separators: tuple[str, ...] = ()
    apposition_marks: tuple[str, ...] = ()
    number_tags: tuple[str, ...] = ()
    clause_flattening: tuple[tuple[str, str], ...] = ()
    verb_phrases: tuple[str, ...] = ()
    gapped: tuple[str, ...] = ()
    parent_annotated: tuple[str, ...] = ()


class UnknownWords(_Section):
    """What an unknown word's signature says besides case, digits and dashes."""

    plural: str = ""
    plural_blocked: str = ""
    suffixes: tuple[str, ...] = ()
    last_character: bool = False


class Evaluation(_Section):
    """What bracket scores leave out and treat as equal."""

    delete_tags: tuple[str, ...] = ()
    delete_punctuation: bool = False
    delete_labels: tuple[str, ...] = ("ROOT",)
    equal_labels: tuple[tuple[str, ...], ...] = ()


class Profile(_Section):
    """A language profile; frozen, and the same for everything done to one corpus."""

    name: str
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
        """Return a changed copy; what was computed from the old content is forgotten."""
        copy = super().model_copy(update=update, deep=deep)
        for computed in ("native", "fingerprint"):
            copy.__dict__.pop(computed, None)
        return copy

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 of what the profile says, as stored with models."""
        return hashlib.sha256(self.model_dump_json().encode()).hexdigest()

    def to_config(self) -> str | dict[str, object]:
        """Return what a manifest stores: the name of a packaged profile, else all it says."""
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
        data.flatten = list(self.reading.flatten.items())
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


def packaged_profiles() -> list[str]:
    """Return the names of the profiles that come with treelm."""
    folder = resources.files("treelm.trees.profiles")
    return sorted(
        item.name.removesuffix(".toml") for item in folder.iterdir() if item.name.endswith(".toml")
    )


def load_profile(source: ProfileSource | None = "english") -> Profile:
    """Return a language profile.

    Args:
        source: Name of a packaged profile, path of a TOML file, what `Profile.to_config` returned,
            a `Profile` (returned as it is), or None for the neutral one.

    Raises:
        ProfileError: if there is no such profile, or it does not say what a profile must say.

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
            f'there is no language profile "{name}". Packaged profiles: '
            f"{', '.join(packaged_profiles())}; a profile of your own is a .toml file, given by "
            "its path.",
            code="E_NO_PROFILE",
        )
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ProfileError(
            f"{path}: the language profile cannot be read ({error}).", code="E_NO_PROFILE"
        ) from error
    return _parse(text, str(path))


@cache
def _load_packaged(name: str) -> Profile:
    file = resources.files("treelm.trees.profiles") / f"{name}.toml"
    return _parse(file.read_text(encoding="utf-8"), f"{name}.toml")


def _parse(text: str, where: str) -> Profile:
    try:
        content = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ProfileError(f"{where}: not valid TOML: {error}.") from error
    return _validate(content, where)


def _validate(content: Mapping[str, object], where: str) -> Profile:
    try:
        return Profile.model_validate(content)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"]) or "the whole file"
        raise ProfileError(
            f"{where}: {place}: {first['msg']}. See docs/formats/profile.md for what a profile may "
            "say; the packaged english.toml is an example."
        ) from error
