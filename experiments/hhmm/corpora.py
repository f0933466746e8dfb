"""The texts and trees of the store-model study, and what is held out of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from treelm.corpus.corpus import TextCorpus, TreeCorpus, TreeSentences
from treelm.corpus.files import read_lines

TREEBANKS = ("wsj-sample", "masc", "gum", "craft")
TEXTS = ("reuters", "un-debates", "eltec")

Sentences = list[tuple[str, ...]]


@dataclass(frozen=True)
class TestSet:
    """Sentences to be predicted, and others of the same kind for the weights of mixtures."""

    name: str
    in_domain: bool
    tuning: Sentences
    test: Sentences

    __test__ = False


def trees_of(data: Path, part: str, names: tuple[str, ...] = TREEBANKS) -> TreeCorpus:
    """Return one part of the treebanks."""
    paths = tuple(data / f"treebanks/{name}/{part}.mrg" for name in names)
    return TreeCorpus(paths, on_error="skip")


def tree_sentences(data: Path, name: str, part: str, most: int) -> Sentences:
    """Return the first sentences of a part of a treebank."""
    return list(islice(TreeSentences(trees_of(data, part, (name,))), most))


def split_text(source: Path, folder: Path, every: int, most: int) -> tuple[Path, Sentences]:
    """Hold out every n-th document of a text.

    Returns:
        The file of the others, and the first sentences of what is held out.
    """
    rest = folder / f"{source.name.split('.')[0]}.train.txt"
    held_out: Sentences = []
    document, starts = -1, True
    with rest.open("w", encoding="utf-8") as kept:
        for line in read_lines(source):
            if not line.strip():
                starts = True
                continue
            document += starts
            if document % every == every - 1:
                held_out.append(tuple(line.split()))
            else:
                kept.write(f"\n{line.strip()}\n" if starts else f"{line.strip()}\n")
            starts = False
    return rest, held_out[: 2 * most]


def text_sentences(path: Path) -> Sentences:
    """Return the sentences of a text file."""
    return list(TextCorpus((path,)))


def halves(sentences: Sentences, most: int) -> tuple[Sentences, Sentences]:
    """Return sentences for tuning, and others for testing: blocks of up to 25 in turn."""
    size = min(25, max(1, len(sentences) // 4))
    blocks = [sentences[place : place + size] for place in range(0, len(sentences), size)]
    tuning = [sentence for block in blocks[::2] for sentence in block]
    test = [sentence for block in blocks[1::2] for sentence in block]
    return tuning[:most], test[:most]


def out_of_domain(name: str, sentences: Sentences, most: int) -> TestSet:
    """Return a set of text that no treebank is like."""
    tuning, test = halves(sentences, most)
    return TestSet(name=name, in_domain=False, tuning=tuning, test=test)


def test_sets(data: Path, held_out: dict[str, Sentences], most: int) -> Iterator[TestSet]:
    """Yield all sets: of each treebank its own, and texts of other kinds."""
    for name in TREEBANKS:
        tuning = tree_sentences(data, name, "dev", most)
        test = tree_sentences(data, name, "test", most)
        yield TestSet(name=name, in_domain=True, tuning=tuning, test=test)
    for name, sentences in held_out.items():
        yield out_of_domain(name, sentences, most)
    for name, path in {
        "multi30k": data / "mt/multi30k/val.en",
        "ted": data / "mt/ted/ref.en",
    }.items():
        if path.exists():
            yield out_of_domain(name, text_sentences(path), most)
