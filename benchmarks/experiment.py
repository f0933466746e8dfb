"""An experiment's words through an HHMM and a 5-gram: `treelm surprisal` from the shell.

    python benchmarks/experiment.py --work FOLDER [--words 100000] [--beam-width 2000] [--threads 2]

Both models are those of the training sets of four treebanks; they are kept in the work folder. The
words are those of the dev sets, and of novels where these are too few. Prints processor seconds,
which other work on the machine changes little, seconds, and the load that they were measured under.
"""

from __future__ import annotations

import argparse
import lzma
import os
import sys
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

from measuring import run_program

from treelm.corpus.corpus import TreeCorpus, TreeSentences
from treelm.corpus.sample_treebank import sample_path

DATA = Path(__file__).resolve().parents[2] / "shared/data"
TREEBANKS = ("wsj-sample", "masc", "gum", "craft")
TREELM = (sys.executable, "-m", "treelm")


def dev_sentences(paths: list[Path]) -> Iterator[list[str]]:
    """Yield the sentences of trees."""
    for path in paths:
        for words in TreeSentences(TreeCorpus((path,), on_error="skip")):
            yield list(words)


def novel_sentences(path: Path) -> Iterator[list[str]]:
    """Yield the sentences of a compressed text, if it is there."""
    if path.exists():
        with lzma.open(path, "rt", encoding="utf-8") as text:
            yield from (words for line in text if (words := line.split()))


def write_inputs(work: Path, sentences: Iterator[list[str]], wanted: int) -> int:
    """Write so many words as a text and as a table of stimuli; return how many there are."""
    written = 0
    with (
        (work / "words.txt").open("w", encoding="utf-8") as text,
        (work / "stimuli.tsv").open("w", encoding="utf-8") as table,
    ):
        table.write("item\tposition\tword\n")
        for item, words in enumerate(sentences, start=1):
            cut = words[: wanted - written]
            if not cut:
                break
            text.write(" ".join(cut) + "\n")
            table.writelines(f"{item}\t{place}\t{word}\n" for place, word in enumerate(cut, 1))
            written += len(cut)
    return written


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("--work", type=Path, required=True, help="folder that keeps the models")
    parser.add_argument("--trees", type=Path, nargs="+", help="training trees")
    parser.add_argument("--words", type=int, default=100_000)
    parser.add_argument("--beam-width", type=int, default=2000)
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    work: Path = options.work
    work.mkdir(parents=True, exist_ok=True)
    default = [DATA / f"treebanks/{name}/train.mrg" for name in TREEBANKS]
    trees: list[Path] = options.trees or (default if default[0].exists() else [sample_path()])
    given = ("--trees", *trees, "--on-error", "skip", "--threads", "1")
    for name, how in (("hhmm", ("--observation", "unk")), ("ngram", ("--order", "5"))):
        if not (work / name).exists():
            run_program((*TREELM, "train", name, *given, *how, "-o", work / name), log=work / "log")
    dev = [
        path.with_name("dev.mrg") if path.with_name("dev.mrg").exists() else path for path in trees
    ]
    found = chain(dev_sentences(dev), novel_sentences(DATA / "text/eltec.txt.xz"))
    words = write_inputs(work, found, options.words)
    print(f"{words:,} words, beam {options.beam_width}, {options.threads} threads")
    hhmm = ("-m", work / "hhmm", "--beam-width", str(options.beam_width))
    ngram = ("-m", work / "ngram")
    for what, how in (
        ("text, HHMM", (work / "words.txt", *hhmm)),
        ("text, 5-gram", (work / "words.txt", *ngram)),
        ("stimuli, both", ("--stimuli", work / "stimuli.tsv", *hhmm, *ngram)),
        (
            "the same, all measures",
            ("--stimuli", work / "stimuli.tsv", *hhmm, *ngram, "--measures", "all"),
        ),
    ):
        command = (
            *TREELM,
            "surprisal",
            *how,
            "--threads",
            str(options.threads),
            "-o",
            work / "out.tsv",
        )
        use = run_program(command, log=work / "log")
        rows = sum(1 for _ in (work / "out.tsv").open("rb")) - 1
        print(
            f"{what}: {use.seconds:.1f} processor s, {use.wall:.1f} s, {rows:,} rows, "
            f"{use.megabytes:.0f} MB, load {os.getloadavg()[0]:.1f}"
        )


if __name__ == "__main__":
    main()
