"""The state of an n-gram model between words: a handle of the kernel.

It has the ids of the words that matter for the next one (`context`, the latest first, no more than
the table has a context for), whether no word has been seen yet, where that changes the symbol of a
word (`first`), and the model it belongs to (`model`).
"""

from __future__ import annotations

from treelm._native import NgramState

__all__ = ["NONE", "NgramState"]

#: Means "no word" in a context.
NONE = 0xFFFFFFFF
