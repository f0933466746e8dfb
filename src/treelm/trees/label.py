"""A node's label: a string that remembers the parts it was made of."""

from __future__ import annotations

import re

_RESERVED = re.compile(r"([@+^|\\])")

#: Characters that labels built by transforms use as marks; a category may not contain them.
RESERVED_CHARACTERS = "@+^|\\"


class Label(str):
    r"""A label as it is written, with its four parts kept separate.

    The written form is ``base [-head] [-GAP] [^parent]``. It cannot be taken apart again without
    ambiguity (``:---`` is base ``:`` with head ``--``), so the parts are attributes. A label equals
    every string that is written the same way.

    Args:
        base: Bare category, such as ``NP`` or ``-LRB-``.
        head: Head annotation or number class; reserved characters in it are escaped when written.
        gap: Whether the clause lacks its subject.
        parent: Base category of the parent.

    Examples:
        >>> label = Label("S", "VBD", parent="ROOT")
        >>> label, label.base, label.parent
        ('S-VBD^ROOT', 'S', 'ROOT')
        >>> label == "S-VBD^ROOT"
        True
        >>> print(Label("SYM", "+"))
        SYM-\+
    """

    __slots__ = ("base", "gap", "head", "parent")

    base: str
    head: str | None
    gap: bool
    parent: str | None

    def __new__(  # noqa: D102 (the class says it)
        cls, base: str, head: str | None = None, *, gap: bool = False, parent: str | None = None
    ) -> Label:
        text = base if head is None else f"{base}-{escape_reserved(head)}"
        if gap:
            text += "-GAP"
        if parent is not None:
            text += f"^{parent}"
        label = super().__new__(cls, text)
        label.base = str(base)
        label.head = head
        label.gap = gap
        label.parent = parent
        return label

    def __getnewargs_ex__(self) -> tuple[tuple[str, str | None], dict[str, object]]:
        return (self.base, self.head), {"gap": self.gap, "parent": self.parent}


def escape_reserved(text: str) -> str:
    """Return `text` with a backslash before every reserved character."""
    return _RESERVED.sub(r"\\\1", text)
