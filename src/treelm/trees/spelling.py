"""How words and labels are spelled in bracket files, where brackets and spaces have a meaning."""

from __future__ import annotations

import re

_SPELLINGS = {"(": "-LRB-", ")": "-RRB-"}
#: What the bracket reader takes for the end of a token.
_ENDS_TOKEN = re.compile(r"[()\t-\r ]")


def bracket_spelling(token: str) -> str:
    r"""Return a word or label as bracket files write it: one token, whatever is in it.

    Brackets become ``-LRB-`` and ``-RRB-``, as in the Penn Treebank, and white space becomes ``_``.
    A word ``-LRB-`` is written the same way as ``(``: in bracket files they are one word.

    Examples:
        >>> [bracket_spelling(word) for word in ("(", ":)", "-LRB-", "New York", "[x]")]
        ['-LRB-', ':-RRB-', '-LRB-', 'New_York', '[x]']
    """
    if not _ENDS_TOKEN.search(token):
        return token
    return _ENDS_TOKEN.sub(lambda found: _SPELLINGS.get(found[0], "_"), token)
