"""Contracts: laws that everything of one kind must obey, ready to run on your own classes.

A law is a function that takes a subject and a case and raises `AssertionError` when the subject
breaks it. treelm runs every registered transform and executor through its laws; so can you:

    >>> from treelm.testing.contracts import check_contract
    >>> from treelm.testing.laws import transform_cases
    >>> from treelm.transforms.binarize import Binarize
    >>> check_contract("transform", Binarize(), transform_cases())
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, TypeVar


@dataclass(frozen=True, slots=True)
class Law:
    """One law of a contract."""

    kind: str
    code: str
    statement: str
    check: Callable[[Any, Any], None]

    def __str__(self) -> str:
        return f"{self.kind} {self.code}: {self.statement}"


_LAWS: dict[tuple[str, str], Law] = {}

F = TypeVar("F", bound=Callable[[Any, Any], None])


def law(kind: str, code: str) -> Callable[[F], F]:
    """Register a function as a law; its docstring is the statement.

    Args:
        kind: What the law is about, such as ``transform`` or ``model``.
        code: Short name, unique within its kind.
    """

    def register(check: F) -> F:
        if (kind, code) in _LAWS:
            raise ValueError(f"the {kind} contract already has a law {code}")
        _LAWS[kind, code] = Law(kind, code, (check.__doc__ or code).strip(), check)
        return check

    return register


def laws(kind: str) -> list[Law]:
    """Return the laws of a kind, in the order in which they were written."""
    import treelm.testing.laws  # noqa: F401  (registers them)

    found = [each for each in _LAWS.values() if each.kind == kind]
    if not found:
        kinds = ", ".join(sorted({each.kind for each in _LAWS.values()}))
        raise ValueError(f"there is no contract for {kind!r}; choose from: {kinds}")
    return found


def check_contract(kind: str, subject: object, cases: Iterable[object]) -> None:
    """Run every law of a kind on a subject.

    Raises:
        AssertionError: naming the law, the subject and the case that breaks it.
    """
    cases = list(cases)
    for each in laws(kind):
        for case in cases:
            try:
                each.check(subject, case)
            except AssertionError as error:
                raise AssertionError(f"{subject!r} breaks {each} on {case!r}: {error}") from error
