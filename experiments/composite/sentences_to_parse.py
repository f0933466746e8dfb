"""The sentences of a text that a part of the corpus needs parsed, for `treelm parse`.

    python experiments/composite/sentences_to_parse.py --text FILE --one-in 8 --output FILE

Those of one training document in so many, by the hash by which syntax.py chooses, and of as many
held-out documents as it is told. Test documents need no parses.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from parsed_corpus import ONE_IN, part_of
from topic_corpus import mix64

from treelm.corpus.corpus import TextCorpus
from treelm.corpus.files import write_atomically


def sentences(text: Path, *, one_in: int, held_out_one_in: int, longest: int) -> Iterator[str]:
    """Yield the sentences to parse, in the order of the text."""
    for each in TextCorpus((text,)).with_documents():
        if len(each.words) > longest:
            continue
        part = part_of(each.document)
        if part == "train":
            number = mix64(np.array([each.document], np.uint64))[0]
            wanted = int(number) % one_in == 0
        else:
            wanted = part == "held-out" and each.document // ONE_IN % held_out_one_in == 0
        if wanted:
            yield " ".join(each.words)


def main() -> None:
    """Read the arguments and write the sentences."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("--text", type=Path, required=True, help="text in documents")
    parser.add_argument("--output", type=Path, required=True, help="file to write")
    parser.add_argument("--one-in", type=int, default=1, help="training documents: one in so many")
    parser.add_argument("--held-out-one-in", type=int, default=1, help="the same of held-out ones")
    parser.add_argument("--longest", type=int, default=40, help="leave out longer sentences")
    arguments = parser.parse_args()
    chosen = sentences(
        arguments.text,
        one_in=arguments.one_in,
        held_out_one_in=arguments.held_out_one_in,
        longest=arguments.longest,
    )
    count = words = 0
    with write_atomically(arguments.output) as out:
        for line in chosen:
            out.write(f"{line}\n".encode())
            count, words = count + 1, words + len(line.split())
    print(f"{count} sentences, {words} words")


if __name__ == "__main__":
    main()
