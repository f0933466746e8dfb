"""Templates: what is counted, as data.

A template names a kind of place (every word, every tag, every phrase, every child of a phrase), the
attribute of the place that is predicted, and those it is predicted from, beginning with the one
that back-off drops last.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from treelm import _native
from treelm.errors import UsageError

SiteName = Literal["word", "tag", "phrase", "child"]

_SITES: dict[str, _native.EventSite] = {
    "word": _native.EventSite.WORD,
    "tag": _native.EventSite.TAG,
    "phrase": _native.EventSite.PHRASE,
    "child": _native.EventSite.CHILD,
}

_IN_TREES = ("tag", "phrase", "child")
#: Attribute -> what it is, and the places that have it.
ATTRIBUTES: dict[str, tuple[str, tuple[str, ...]]] = {
    "word": ("the word here; word-1, word-2, ... those before it", ("word", "tag")),
    "symbol": ("label of the child; symbol-1, ... of those before it, then START", ("child",)),
    "label": (
        "label of the node; at a child, of the phrase it belongs to",
        ("tag", "phrase", "child"),
    ),
    "parent": ("label of the node's parent, or <top>", _IN_TREES),
    "grandparent": ("label of the parent's parent, or <top>", _IN_TREES),
    "left": ("label of the sibling to the left, or <none>", _IN_TREES),
    "right": ("label of the sibling to the right, or <none>", _IN_TREES),
    "yield": ("labels of the children, as one symbol", ("phrase", "child")),
    "rule": ("label and labels of the children, as one symbol", ("phrase", "child")),
    "parent_rule": ("rule of the parent, or <top>", _IN_TREES),
}

_WITH_DISTANCE = frozenset({"word", "symbol"})
LARGEST_DISTANCE = 64


@dataclass(frozen=True, slots=True)
class EventTemplate:
    """What is predicted at each place of one kind, and from what.

    Args:
        name: Its name in messages and tables.
        site: ``word``, ``tag``, ``phrase`` or ``child``.
        outcome: The attribute that is predicted.
        context: The attributes it is predicted from, in order of retention.

    Raises:
        UsageError: ``E_TEMPLATE`` for an attribute that does not exist, or not at this kind of
            place.

    Examples:
        >>> EventTemplate("terminal", "tag", "word", ("label", "right", "parent_rule", "word-1"))
        ... # doctest: +ELLIPSIS
        EventTemplate(name='terminal', ...)
        >>> EventTemplate("wrong", "word", "yield", ())
        Traceback (most recent call last):
        ...
        treelm.errors.UsageError: template "wrong": a word has no attribute "yield". It has: word.
    """

    name: str
    site: SiteName
    outcome: str
    context: tuple[str, ...]

    def __post_init__(self) -> None:
        if self.site not in _SITES:
            raise UsageError(
                f'template "{self.name}": no places "{self.site}"; choose from: '
                f"{', '.join(_SITES)}.",
                code="E_TEMPLATE",
            )
        for text in (self.outcome, *self.context):
            self._parse(text)

    def _parse(self, text: str) -> tuple[str, int]:
        name, dash, distance = text.partition("-")
        valid = not dash or (
            name in _WITH_DISTANCE
            and distance.isascii()
            and distance.isdigit()
            and len(distance) <= 3
            and 1 <= int(distance) <= LARGEST_DISTANCE
        )
        if not valid or name not in ATTRIBUTES or self.site not in ATTRIBUTES[name][1]:
            there = ", ".join(key for key, (_, sites) in ATTRIBUTES.items() if self.site in sites)
            raise UsageError(
                f'template "{self.name}": a {self.site} has no attribute "{text}". '
                f"It has: {there}.",
                code="E_TEMPLATE",
            )
        return name, int(distance) if dash else 0

    @property
    def native(self) -> _native.EventTemplate:
        """The kernel's form of it."""
        columns = []
        for text in (self.outcome, *self.context):
            name, distance = self._parse(text)
            columns.append((_native.EventAttribute[name.upper()], distance))
        return _native.EventTemplate(_SITES[self.site], columns)


#: The events of Pauls & Klein's treelet model.
TREELET_TERMINAL = EventTemplate(
    "terminal", "tag", "word", ("label", "right", "parent_rule", "word-1", "word-2")
)
TREELET_NONTERMINAL = EventTemplate(
    "nonterminal", "phrase", "yield", ("label", "parent", "parent_rule")
)
