"""Write native/core/text/unicode_tables.inc from Python's own Unicode data.

Run by hand when the Unicode version should change: python native/make_unicode_tables.py
"""

from __future__ import annotations

import sys
import unicodedata
from collections.abc import Callable, Iterator
from pathlib import Path


def ranges(test: Callable[[str], bool]) -> Iterator[tuple[int, int]]:
    """Yield the (first, last) code points of every run for which `test` holds."""
    start = None
    for point in range(sys.maxunicode + 2):
        holds = point <= sys.maxunicode and test(chr(point))
        if holds and start is None:
            start = point
        elif not holds and start is not None:
            yield start, point - 1
            start = None


def lower_runs() -> Iterator[tuple[int, int, int, int]]:
    """Yield (first, last, step, offset) runs of simple lower-casing; U+0130 is left to the code."""
    pairs = [
        (point, ord(chr(point).lower()) - point)
        for point in range(sys.maxunicode + 1)
        if len(chr(point).lower()) == 1 and chr(point).lower() != chr(point)
    ]
    i = 0
    while i < len(pairs):
        first, offset = pairs[i]
        step = 1
        j = i + 1
        if j < len(pairs) and pairs[j][1] == offset and pairs[j][0] - first in (1, 2):
            step = pairs[j][0] - first
            while j < len(pairs) and pairs[j] == (pairs[j - 1][0] + step, offset):
                j += 1
        yield first, pairs[j - 1][0], step, offset
        i = j


def table(name: str, rows: list[str], kind: str) -> str:
    body = ",\n".join("    " + ", ".join(rows[i : i + 4]) for i in range(0, len(rows), 4))
    return f"constexpr {kind} {name}[] = {{\n{body}}};\n"


def is_case_ignorable(char: str) -> bool:
    """Return whether lower-casing skips `char` when it looks for the end of a word."""
    return f"a\u03a3{char}".lower()[1] == "\u03c2" and f"a\u03a3{char}a".lower()[1] == "\u03c3"


def main() -> None:
    parts = [
        f"// Written by native/make_unicode_tables.py from Unicode {unicodedata.unidata_version}.\n"
        "// clang-format off\n"
    ]
    tests: dict[str, Callable[[str], bool]] = {
        "letters": str.isalpha,
        "alphanumerics": str.isalnum,
        "lower_case": str.islower,
        "upper_or_title_case": lambda c: c.isupper() or c.istitle(),
        "case_ignorable": is_case_ignorable,
    }
    for name, test in tests.items():
        rows = [f"{{{first}, {last}}}" for first, last in ranges(test)]
        parts.append(table(f"{name}_ranges", rows, "CodeRange"))
    rows = [f"{{{a}, {b}, {s}, {o}}}" for a, b, s, o in lower_runs()]
    parts.append(table("lower_runs", rows, "LowerRun"))
    parts.append("// clang-format on\n")
    target = Path(__file__).parent / "core" / "text" / "unicode_tables.inc"
    target.write_text("\n".join(parts), encoding="utf-8")


if __name__ == "__main__":
    main()
