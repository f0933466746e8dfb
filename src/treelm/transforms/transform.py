r"""What all transforms share: the interface, the registry, the pipeline, and the marks in labels.

A label made by a transform is written with marks: ``@`` starts an intermediate node, ``+`` joins a
unary chain, ``^`` starts the vertical annotation, ``~T`` ends a tag that shares its name with a
phrase. A backslash removes a mark's meaning (``SYM-\+``).
"""

from __future__ import annotations

import importlib
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import MISSING, dataclass, fields
from typing import ClassVar, TypeVar

from treelm.characters import visible
from treelm.errors import CorpusFormatError, UnsupportedTask, UsageError
from treelm.trees.label import RESERVED_CHARACTERS, Label
from treelm.trees.tree import Tree

#: Characters that a category may contain only after a backslash.
CATEGORY_MARKS = RESERVED_CHARACTERS + "~"

_ESCAPABLE = CATEGORY_MARKS + "[]/"
_BUILT_IN = (
    "clean",
    "treelet",
    "unary_chains",
    "binarize",
    "markovize",
    "agreement",
    "right_corner",
    "lexicalize",
)

# -- marks in labels ------------------------------------------------------------------------


def split_unescaped(text: str, mark: str) -> list[str]:
    r"""Return the pieces of `text` between the occurrences of `mark` that are not escaped.

    Examples:
        >>> split_unescaped(r"S+SYM-\++VP", "+")
        ['S', 'SYM-\\+', 'VP']
    """
    if "\\" not in text:
        return text.split(mark)
    pieces = []
    start = 0
    for match in re.finditer(r"\\.|" + re.escape(mark), text, re.DOTALL):
        if match.group() == mark:
            pieces.append(text[start : match.start()])
            start = match.end()
    return [*pieces, text[start:]]


def split_annotation(label: str) -> tuple[str, str | None]:
    """Return a label without its vertical annotation, and the annotation (None if it has none).

    Examples:
        >>> split_annotation("S+VP^ROOT"), split_annotation("NP")
        (('S+VP', 'ROOT'), ('NP', None))
    """
    text = str(label)
    if isinstance(label, Label) and label.parent is not None:
        return text[: len(text) - len(label.parent) - 1], label.parent
    name = split_unescaped(text, "^")[0]
    return name, text[len(name) + 1 :] if len(name) < len(text) else None


def check_category(label: str, *, reserved: str = CATEGORY_MARKS) -> None:
    r"""Refuse a label whose category contains a character that transforms use as a mark.

    Only the category is checked: the head annotation and the parent of a `Label` are separate
    parts. An escaped mark (``SYM-\+``, as read back from a file) is allowed.

    Args:
        label: The label of a node.
        reserved: The marks to refuse; without ``^`` among them, what follows a ``^`` is taken to
            be the vertical annotation and not checked.

    Raises:
        CorpusFormatError: ``E_RESERVED_CHAR``.

    Examples:
        >>> check_category(Label("SYM", "+"))
        >>> check_category("NP+NN")  # doctest: +ELLIPSIS
        Traceback (most recent call last):
        ...
        treelm.errors.CorpusFormatError: category "NP+NN" contains "+", ...
    """
    text = label.base if isinstance(label, Label) else str(label)
    if not any(character in text for character in reserved):
        return
    if "^" not in reserved:
        text = split_unescaped(text, "^")[0]
    for match in re.finditer(r"\\.?|[@+^|~]", text, re.DOTALL):
        token = match.group()
        if token[0] == "\\" and len(token) == 2 and token[1] in _ESCAPABLE:
            continue
        if token[0] in reserved:
            raise CorpusFormatError(
                f'category "{visible(str(label))}" contains "{token[0]}", which transforms use '
                "as a mark in the labels they make. Was the tree transformed before, or does the "
                "treebank use this character in a category? Undo the earlier transform, or rename "
                "the category.",
                code="E_RESERVED_CHAR",
            )


# -- what nodes and options must look like --------------------------------------------------


def check_order(option: str, value: object, *, minimum: int = 0, unlimited: bool = True) -> None:
    """Refuse a Markov order that is not a whole number (or, if `unlimited`, None)."""
    if not (type(value) is int and value >= minimum) and not (unlimited and value is None):
        alternative = ", or None for no limit" if unlimited else ""
        raise UsageError(
            f"{option} is {value!r}; it must be a whole number, {minimum} or more{alternative}."
        )


def check_choice(option: str, value: object, choices: Iterable[str]) -> None:
    """Refuse a value that is not one of the choices."""
    choices = tuple(choices)
    if value not in choices:
        raise UsageError(f"{option} is {value!r}; it must be one of: {', '.join(choices)}.")


# -- the interface --------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Transform(ABC):
    """A way to rewrite trees, with its options fixed.

    A subclass is a frozen dataclass whose fields are the options, all of them JSON values or
    collections of strings. A transform never changes the trees it is given.
    """

    name: ClassVar[str]

    @property
    def invertible(self) -> bool:
        """Whether `undo` restores the tree that `apply` was given, with these options."""
        return True

    @abstractmethod
    def apply(self, tree: Tree) -> Tree:
        """Return the rewritten tree."""

    def undo(self, tree: Tree) -> Tree:  # noqa: ARG002 (subclasses use it)
        """Return the tree from which `apply` made this one.

        Raises:
            UnsupportedTask: if the transform does not keep what the inverse would need.
        """
        raise UnsupportedTask(
            f'the transform "{self.name}" cannot be undone, because it drops labels or nodes. '
            "Keep the original trees, or choose options under which the transform is invertible."
        )

    def apply_all(self, trees: Iterable[Tree]) -> Iterator[Tree]:
        """Yield the rewritten trees one by one."""
        for tree in trees:
            yield self.apply(tree)

    def to_config(self) -> dict[str, object]:
        """Return the name and the options as they are stored in a manifest."""
        config: dict[str, object] = {"name": self.name}
        for field in fields(self):
            if not field.init:
                continue
            value = getattr(self, field.name)
            config[field.name] = sorted(value) if isinstance(value, frozenset) else value
        return config


#: Transforms by name; complete after `load_built_in`.
TRANSFORMS: dict[str, type[Transform]] = {}

T = TypeVar("T", bound=type[Transform])


def register(transform: T) -> T:
    """Enter a transform class into `TRANSFORMS` under its name (a class decorator)."""
    if transform.name in TRANSFORMS:
        raise UsageError(f'a transform called "{transform.name}" is already registered.')
    TRANSFORMS[transform.name] = transform
    return transform


def load_built_in() -> None:
    """Import every transform of this package, so that `TRANSFORMS` names them all."""
    for module in _BUILT_IN:
        importlib.import_module(f"treelm.transforms.{module}")


def transform_from_config(config: Mapping[str, object]) -> Transform:
    """Return the transform that `Transform.to_config` described.

    Raises:
        UsageError: if no transform has that name or an option is unknown, missing or wrong.

    Examples:
        >>> transform_from_config({"name": "binarize", "direction": "left"})
        Binarize(direction='left', horizontal_order=None)
    """
    load_built_in()
    options = dict(config)
    name = options.pop("name", None)
    if not isinstance(name, str) or name not in TRANSFORMS:
        raise UsageError(
            f"there is no transform called {name!r}. Available: {', '.join(sorted(TRANSFORMS))}."
        )
    known = {
        field.name: field.default is MISSING and field.default_factory is MISSING
        for field in fields(TRANSFORMS[name])
        if field.init
    }
    _check_options(name, options.keys(), known)
    make: Callable[..., Transform] = TRANSFORMS[name]
    try:
        return make(**options)
    except (AttributeError, TypeError, ValueError) as error:
        raise UsageError(f'the transform "{name}" has an invalid option: {error}.') from error


def _check_options(name: str, given: Collection[str], known: Mapping[str, bool]) -> None:
    """Refuse options outside `known`, and the lack of one that `known` requires."""
    unknown = sorted(option for option in given if option not in known)
    missing = sorted(
        option for option, required in known.items() if required and option not in given
    )
    if unknown or missing:
        fault = f"has no option {unknown[0]!r}" if unknown else f"needs the option {missing[0]!r}"
        available = ", ".join(known) or "none"
        raise UsageError(f'the transform "{name}" {fault}. Available options: {available}.')


@dataclass(frozen=True, slots=True)
class Pipeline:
    """Transforms applied one after the other, and undone in reverse.

    Examples:
        >>> config = [{"name": "merge_unary_chains"}, {"name": "binarize", "horizontal_order": 2}]
        >>> pipeline = Pipeline.from_config(config)
        >>> tree = Tree("NP", [Tree("NX", [Tree("NN", word)]) for word in "abc"])
        >>> print(pipeline.apply(tree))
        (NP (NX+NN a) (@NP>NX+NN_NX+NN (NX+NN b) (NX+NN c)))
        >>> pipeline.undo(pipeline.apply(tree)) == tree
        True
    """

    steps: tuple[Transform, ...]

    @property
    def invertible(self) -> bool:
        """Whether every step is invertible."""
        return all(step.invertible for step in self.steps)

    def apply(self, tree: Tree) -> Tree:
        """Return the tree after all steps."""
        for step in self.steps:
            tree = step.apply(tree)
        return tree

    def undo(self, tree: Tree) -> Tree:
        """Return the tree before all steps.

        Raises:
            UnsupportedTask: if a step cannot be undone.
        """
        for step in reversed(self.steps):
            tree = step.undo(tree)
        return tree

    def apply_all(self, trees: Iterable[Tree]) -> Iterator[Tree]:
        """Yield the trees after all steps; kernels among them take many trees per call."""
        for step in self.steps:
            trees = step.apply_all(trees)
        yield from trees

    def to_config(self) -> list[dict[str, object]]:
        """Return the steps' names and options in order."""
        return [step.to_config() for step in self.steps]

    @classmethod
    def from_config(cls, config: Iterable[Mapping[str, object]]) -> Pipeline:
        """Return the pipeline that `to_config` described."""
        return cls(tuple(transform_from_config(step) for step in config))
