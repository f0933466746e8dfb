"""A long text out of a short one: copies in which a share of the words are others.

    python benchmarks/repeated_text.py TEXT --copies 10 --share 0.3 > LONG_TEXT

In the second copy and all later ones, a share of the different words, the same in each copy, get
the number of the copy as a suffix. So n-grams are new wherever such a word is in them, as they are
in a text that goes on. Lines stay lines.
"""

from __future__ import annotations

import argparse
import sys
import zlib
from collections.abc import Iterator
from pathlib import Path

from treelm.corpus.files import read_lines


class Renamed(dict[str, str]):
    """The words of a copy by those of the text."""

    def __init__(self, copy: int, share: float) -> None:
        super().__init__()
        self._suffix = f"~{copy}" if copy else ""
        self._below = share * 2**32

    def __missing__(self, word: str) -> str:
        changed = zlib.crc32(word.encode()) < self._below
        self[word] = word + self._suffix if changed else word
        return self[word]


def copies(text: Path, number: int, share: float) -> Iterator[str]:
    """Yield the lines of all copies."""
    for copy in range(number):
        renamed = Renamed(copy, share)
        for line in read_lines(text):
            yield " ".join([renamed[word] for word in line.split()])


def main() -> None:
    """Write the text."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("text", type=Path)
    parser.add_argument("--copies", type=int, default=10)
    parser.add_argument("--share", type=float, default=0.3, help="words that change (default 0.3)")
    options = parser.parse_args()
    for line in copies(options.text, options.copies, options.share):
        sys.stdout.write(f"{line}\n")


if __name__ == "__main__":
    main()
