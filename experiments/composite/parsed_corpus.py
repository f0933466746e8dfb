"""Parsed text as treebanks with documents: training and held-out trees, and test text.

    python experiments/composite/parsed_corpus.py --text FILE --forest FILE --output FOLDER

The forest is the parse file of `treelm parse` for sentences of the text; the text says which
document each belongs to. Test documents are complete, including sentences that were not parsed.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from contextlib import ExitStack
from itertools import islice
from pathlib import Path

from treelm.corpus.corpus import SentenceInDocument, TextCorpus
from treelm.grammar.forest_file import ForestFile
from treelm.trees.packed import NO_WORD, PackedTrees

#: One document in this many is held out, and another one is for the test.
ONE_IN = 50


def part_of(document: int) -> str:
    """Return whether a document is for training, held out, or for the test."""
    place = document % ONE_IN
    return {0: "held-out", ONE_IN // 2: "test"}.get(place, "train")


def trees_with_words(batches: Iterator[PackedTrees]) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield every tree as a line, and its words."""
    for batch in batches:
        lines = batch.to_brackets().decode().splitlines()
        starts, node_word, words = batch.tree_start.tolist(), batch.node_word, batch.words
        for line, first, last in zip(lines, starts, starts[1:], strict=False):
            ids = node_word[first:last]
            yield line, tuple(words[i] for i in ids[ids != NO_WORD].tolist())


def write_parts(text: Path, forest: Path, output: Path, most: int | None) -> dict[str, int]:
    """Write trees and documents of every part, and the text of the test; return tokens by part."""
    output.mkdir(parents=True, exist_ok=True)
    sentences: Iterator[SentenceInDocument] = TextCorpus((text,)).with_documents()
    tokens = {"train": 0, "held-out": 0, "test": 0}
    with ForestFile(forest) as parsed, ExitStack() as files:
        trees = {
            part: files.enter_context((output / f"{part}.mrg").open("w", encoding="utf-8"))
            for part in ("train", "held-out")
        }
        documents = {
            part: files.enter_context((output / f"{part}.docs").open("w", encoding="utf-8"))
            for part in trees
        }
        test = files.enter_context((output / "test.txt").open("w", encoding="utf-8"))
        last = -1

        def pass_over(sentence: SentenceInDocument) -> None:
            nonlocal last
            if part_of(sentence.document) == "test":
                test.write("\n" * (sentence.document != last) + " ".join(sentence.words) + "\n")
                tokens["test"] += len(sentence.words) + 1
                last = sentence.document

        for line, words in islice(trees_with_words(parsed.best_trees()), most):
            for sentence in sentences:
                pass_over(sentence)
                if sentence.words == words:
                    break
            else:
                raise SystemExit(f"{text} does not contain the parsed sentence: {' '.join(words)}")
            part = part_of(sentence.document)
            if part == "test":
                continue
            trees[part].write(line + "\n")
            documents[part].write(f"{sentence.document}\n")
            tokens[part] += len(words) + 1
    return tokens


def main() -> None:
    """Read the arguments and write the parts."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--text", type=Path, required=True, help="text in documents")
    parser.add_argument("--forest", type=Path, required=True, help="its parses")
    parser.add_argument("--output", type=Path, required=True, help="folder to write")
    parser.add_argument("--most", type=int, help="use only this many sentences")
    arguments = parser.parse_args()
    print(write_parts(arguments.text, arguments.forest, arguments.output, arguments.most))


if __name__ == "__main__":
    main()
