"""All texts in parts of the same mixture: documents of every source are dealt out in turns."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from treelm.corpus.files import documents_in, read_lines, write_atomically
from treelm.corpus.tokenize import tokenize_stream

#: Texts that are tokenized already.
TOKENIZED = ("eltec", "reuters", "un-debates")
#: Sentences of other lengths are left out: headings, or more than a parser does well.
LENGTHS = range(2, 51)


def sources(data: Path, folder: Path) -> list[Path]:
    """Return all texts, tokenized, one sentence per line and blank lines between documents."""
    folder.mkdir(parents=True, exist_ok=True)
    found = [data / f"text/{name}.txt.xz" for name in TOKENIZED]
    for raw in sorted((data / "text-open").glob("*.txt.xz")):
        path = folder / raw.name.removesuffix(".xz")
        if not path.exists():
            with write_atomically(path) as file:
                for words in tokenize_stream(read_lines(raw)):
                    file.write(f"{' '.join(words)}\n".encode())
        found.append(path)
    return found


def part_order(parts: int) -> list[int]:
    """Return the part of each of so many documents in a row, neighbours far apart.

    Numbers with their bits reversed, so that the first 1, 2, 4, ... parts have documents from all
    over a source.
    """
    bits = (parts - 1).bit_length()
    return [int(f"{number:0{bits}b}"[::-1] or "0", 2) for number in range(parts)]


def deal(texts: Sequence[Path], folder: Path, parts: int) -> list[Path]:
    """Write the parts, unless they are there, and return them.

    Args:
        texts: Tokenized texts, one sentence per line.
        folder: Where they go, complete or not at all.
        parts: A power of two.
    """
    names = [folder / f"part-{number:02}.txt" for number in range(parts)]
    if all(name.exists() for name in names):
        return names
    folder.mkdir(parents=True, exist_ok=True)
    order = part_order(parts)
    with ExitStack() as stack:
        files = [stack.enter_context(write_atomically(name)) for name in names]
        for text in texts:
            for number, document in enumerate(documents_in(read_lines(text))):
                kept = [line.strip() for line in document if len(line.split()) in LENGTHS]
                if kept:
                    files[order[number % parts]].write(("\n".join(kept) + "\n\n").encode())
    return names
