"""Text made safe for SVG and HTML, whatever characters it contains."""

from __future__ import annotations

import re

_ILLEGAL_IN_XML = re.compile(
    "[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]"
    # Legal, but obeyed by terminals (DEL, C1) or able to turn the text round (bidi controls).
    "|[\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]"
)
_ESCAPES = {"&": "&amp;", "<": "&lt;", ">": "&gt;", "\r": "&#13;"}
_ATTRIBUTE_ESCAPES = _ESCAPES | {'"': "&quot;", "'": "&#39;", "\n": "&#10;", "\t": "&#9;"}


def escape(text: str) -> str:
    r"""Return `text` as the content of an element; what XML 1.0 forbids becomes U+FFFD.

    Examples:
        >>> escape("<b> & \x00")
        '&lt;b&gt; &amp; \ufffd'
    """
    return _escaped(text, _ESCAPES)


def escape_attribute(text: str) -> str:
    """Return `text` as the value of an attribute, to be set in quotes of either kind.

    Examples:
        >>> escape_attribute('say "&"')
        'say &quot;&amp;&quot;'
    """
    return _escaped(text, _ATTRIBUTE_ESCAPES)


def _escaped(text: str, escapes: dict[str, str]) -> str:
    legal = _ILLEGAL_IN_XML.sub("\ufffd", text)
    return "".join(escapes.get(character, character) for character in legal)
