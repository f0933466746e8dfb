"""Train the models of treelm-en from open data: ``make pretrained``.

Every step writes one file or folder and is left out if that is there, so an interrupted run is
resumed by the same command. Seeds, names and dates are fixed and nothing depends on the number of
threads, so that the same data give the same bytes.

Documents are counted within each source. Every hundredth is held out: it finds weights of mixtures
and measures perplexity, and no model is trained on it. One of twenty is parsed, by a first grammar
of the same treebanks; all but those held out train the n-gram model.
"""

from __future__ import annotations

import argparse
import json
import lzma
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

HERE = Path(__file__).resolve().parent
MODELS = HERE / "src/treelm_en"
DATA = HERE.parents[2] / "shared/data"

#: Genres of GUM whose texts may be used for anything, with attribution.
GUM_GENRES = ("academic", "bio", "court", "interview", "news", "voyage")
#: Of every hundred documents this one is held out.
HELD_OUT = 99
#: Of every twenty documents this one is parsed.
PARSED = 0
#: Sentences of other lengths are not parsed: headings and lists, or more than a parser does well.
LENGTHS = range(3, 51)
#: Saved models carry this date, 2026-11-18, so that training again gives the same bytes.
DATE = "1794960000"


class Recipe:
    """Runs steps whose results are not there yet, and keeps what each took.

    Args:
        data: Folder of treebanks and texts.
        work: Folder for everything on the way to the models.
        threads: Number of threads; results do not depend on it.
    """

    def __init__(self, data: Path, work: Path, threads: int) -> None:
        self.data, self.work, self.threads = data.resolve(), work.resolve(), threads
        work.mkdir(parents=True, exist_ok=True)
        MODELS.mkdir(parents=True, exist_ok=True)

    def treelm(self, result: Path, *arguments: object) -> Path:
        """Run treelm, unless its result is there already."""
        if result.exists():
            return result
        # Manifests name what models were trained on: names that do not depend on the machine.
        words = [
            os.path.relpath(argument, self.work) if isinstance(argument, Path) else str(argument)
            for argument in arguments
        ]
        print("treelm", *words, file=sys.stderr, flush=True)
        begin, before = time.monotonic(), os.times()
        environment = {**os.environ, "SOURCE_DATE_EPOCH": DATE}
        program = [sys.executable, "-m", "treelm", *words]
        subprocess.run(program, check=True, env=environment, cwd=self.work)
        after = os.times()
        processor = sum(after[2:4]) - sum(before[2:4])
        line = {
            "result": result.name,
            "seconds": round(time.monotonic() - begin, 1),
            "processor_seconds": round(processor, 1),
        }
        with (self.work / "times.jsonl").open("a", encoding="utf-8") as times:
            times.write(json.dumps(line) + "\n")
        return result

    def train(self, result: Path, system: str, *arguments: object) -> Path:
        """Train a model that takes raw text."""
        running = ("--tokenizer", "penn", "--threads", self.threads, "-o", result, "-q")
        return self.treelm(result, "train", system, *arguments, *running)

    # -- data -------------------------------------------------------------------------------

    def trees(self, part: str = "train") -> list[Path]:
        """Return the treebanks: CRAFT, MASC, and the open genres of GUM."""
        folder = self.data / "treebanks"
        gum = self.work / f"gum-open.{part}.mrg"
        if not gum.exists():
            documents = _lines(folder / f"gum/{part}.docs")
            trees = _lines(folder / f"gum/{part}.mrg")
            kept = [
                tree
                for name, tree in zip(documents, trees, strict=True)
                if name.split("_")[1] in GUM_GENRES
            ]
            _write(gum, kept)
        return [self._linked(folder / f"{name}/{part}.mrg") for name in ("craft", "masc")] + [gum]

    def _linked(self, path: Path) -> Path:
        """Return a file of the data under a name in the work folder."""
        link = self.work / f"{path.parent.name}.{path.name}"
        if not link.exists():
            link.symlink_to(path.resolve())
        return link

    def tokenized(self) -> list[Path]:
        """Return the open texts as tokens, one sentence per line."""
        folder = self.work / "text"
        folder.mkdir(exist_ok=True)
        sources = sorted((self.data / "text-open").glob("*.txt.xz"))
        found = [
            self.treelm(
                folder / source.name.removesuffix(".xz"),
                *("tokenize", source, "-o", folder / source.name.removesuffix(".xz"), "-q"),
            )
            for source in sources
        ]
        return [*found, self.data / "text/eltec.txt.xz"]

    def text(self, name: str) -> Path:
        """Return the text named train, held-out or parsed."""
        path = self.work / f"{name}.txt"
        if path.exists():
            return path
        sources = self.tokenized()
        if name == "parsed":
            lines = _chosen(sources[:-1], lambda i: i % 20 == PARSED, LENGTHS)
        else:
            held_out = name == "held-out"
            lines = _chosen(sources, lambda i: (i % 100 == HELD_OUT) == held_out)
        _write(path, lines)
        return path

    def vocabulary(self) -> Path:
        """Return the words that all language models know: they can be mixed and compared."""
        path = self.work / "english.vocabulary"
        options = ("--rule", "top", "--size", 40_000, "--signatures", "--threads", self.threads)
        return self.treelm(
            path, "vocabulary", "--text", self.text("train"), *options, "-o", path, "-q"
        )

    # -- models -----------------------------------------------------------------------------

    def parser(self) -> Path:
        """Train the parser, and store its weights in codes of eight bits."""
        options = ("--seed", 1, "--cycles", 5, *PARSER_OPTIONS)
        full = self.train(self.work / "en-parser", "pcfg-la", "--trees", *self.trees(), *options)
        small = MODELS / "en-parser"
        return self.treelm(small, "convert", full, small, "--bits", 8, "-q")

    def parses(self) -> Path:
        """Parse text by a first grammar; a parse file that was interrupted is resumed."""
        first = self.work / "first-parser"
        options = ("--seed", 1, "--cycles", 5)
        self.train(first, "pcfg-la", "--trees", *self.trees(), *options)
        text, forest = self.text("parsed"), self.work / "parsed.forest"
        done = self.work / "parsed.mrg"
        running = ("--fast", "--tokenized", "--threads", self.threads, "-q")
        self.treelm(done, "parse", "-m", first, text, "-o", forest, *running)
        return self.treelm(done, "convert", forest, done)

    def ngram(self) -> Path:
        """Train the n-gram model of all text."""
        sizes = ("--order", 4, "--min-count", 1, 5, 14, 28, "--no-measure", *spelling(64))
        small = (*SMALL, "--no-sentence-hashes")
        text = ("--text", self.text("train"), "--vocabulary", self.vocabulary())
        return self.train(MODELS / "en-ngram", "ngram", *text, *sizes, *small)

    def hhmm(self) -> Path:
        """Train the incremental parser, and make its tables compact."""
        trees = ("--trees", *self.trees(), self.parses(), "--vocabulary", self.vocabulary())
        full = self.train(self.work / "en-hhmm", "hhmm", *trees, *HHMM_OPTIONS)
        small = MODELS / "en-hhmm"
        return self.treelm(small, "convert", full, small, *SMALL, "-q")

    def treelet(self) -> Path:
        """Train the treelet model on the treebanks and half of the text; it shares the parser."""
        half = self.work / "half.mrg"
        if not half.exists():
            _write(half, _lines(self.parses())[::2])
        trees = ("--trees", *self.trees(), half, "--vocabulary", self.vocabulary())
        stored = self.work / "en-treelet"
        parser = ("--parser", self.parser())
        self.train(stored, "treelet", *trees, *parser, *TREELET_OPTIONS, *SMALL)
        return self.shared(stored, MODELS / "en-treelet")

    def mixture(self) -> Path:
        """Mix the n-gram model and the incremental parser, with weights from held-out text."""
        parts = ("--models", self.ngram(), self.hhmm())
        stored = self.work / "en-mixture"
        held_out = ("--held-out", self._short(self.text("held-out")))
        running = ("--threads", self.threads, "-o", stored, "-q")
        self.treelm(stored, "train", "interpolated", *parts, *held_out, *running)
        return self.shared(stored, MODELS / "en-mixture")

    def judge(self) -> Path:
        """Train the classifier on sentences and on the same with one error each."""
        good, bad = self.work / "good.txt", self.work / "bad.txt"
        if not bad.exists():
            rows = [row for kind, count in ERRORS.items() for row in self._noisy(kind, count)]
            _write(good, (f"{row[3]}\n" for row in rows))
            _write(bad, (f"{row[0]}\n" for row in rows))
        stored = self.work / "en-judge"
        sentences = ("--good", good, "--bad", bad, "--parser", self.parser())
        self.train(stored, "tree-features", *sentences, *JUDGE_OPTIONS)
        return self.shared(stored, MODELS / "en-judge")

    def _noisy(self, kind: str, count: int) -> list[list[str]]:
        """Return sentences with an error of one kind: noisy sentence, kind, place, original."""
        path = self.work / f"noisy.{kind}.tsv"
        seed = 2 + list(ERRORS).index(kind)
        options = ("--only", kind, "--count", count, "--seed", seed, "-o", path, "-q")
        lexicon = ("--lexicon", *self.trees())
        self.treelm(path, "corrupt", "noisy", "--trees", self.parses(), *lexicon, *options)
        return [line.rstrip("\n").split("\t") for line in _lines(path)]

    def shared(self, stored: Path, target: Path) -> Path:
        """Put a model beside those that are its parts, without a second copy of these."""
        return self.treelm(target, "convert", stored, target, "--share-parts", "-q")

    def _short(self, text: Path, sentences: int = 6000) -> Path:
        path = self.work / f"short-{text.name}"
        if not path.exists():
            lines = [line for line in _lines(text) if line.strip()]
            step = max(1, len(lines) // sentences)
            _write(path, lines[::step][:sentences])
        return path


#: Copies of trees without full stops and capitals, for chat, headlines and commands.
PARSER_OPTIONS = ("--copies", "unpunctuated", "lowercase", "--copy-share", 0.1)


def spelling(min_count: int) -> tuple[object, ...]:
    """Return the options that give every word a probability, in half a megabyte or a bit more."""
    return ("--unknown", "spelling", "--spelling-min-count", min_count)


#: Compact tables with codes of six bits.
SMALL = ("--bits", 6, "--layout", "compact")
HHMM_OPTIONS = (
    *("--word-context", 2, "--tag-context", 1, "--rule-min-count", 10, "--context-min-count", 3),
    *("--beam-width", 500, "--no-sentence-hashes", *spelling(6)),
)
TREELET_OPTIONS = (
    *("--base-counts", "types", "--min-count", 4, "-k", 100, "--no-sentence-hashes"),
    *spelling(6),
)
JUDGE_OPTIONS = ("--min-sentences", 60, "--no-sentence-hashes")
#: Errors that the judge learns, and sentences with each.
ERRORS = {"agreement": 20_000, "verb-form": 12_000, "missing": 12_000, "extra": 8_000}


def _lines(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").splitlines(keepends=True)


def _write(path: Path, lines: Iterable[str]) -> None:
    """Write a file that appears only when it is complete."""
    unfinished = path.with_name(f"{path.name}.unfinished")
    with unfinished.open("w", encoding="utf-8") as file:
        file.writelines(lines)
    unfinished.replace(path)


def _chosen(sources: Sequence[Path], wanted: object, lengths: range | None = None) -> Iterator[str]:
    """Yield the lines of chosen documents of every source, a blank line after each document."""
    assert callable(wanted)
    for source in sources:
        opened = lzma.open if source.suffix == ".xz" else open
        with opened(source, "rt", encoding="utf-8") as file:
            for number, document in enumerate(_documents(file)):
                if not wanted(number):
                    continue
                kept = [x for x in document if lengths is None or len(x.split()) in lengths]
                yield from (*kept, "\n") if kept else ()


def _documents(lines: Iterable[str]) -> Iterator[list[str]]:
    document: list[str] = []
    for line in lines:
        if line.strip():
            document.append(line)
        elif document:
            yield document
            document = []
    if document:
        yield document


def main() -> None:
    """Train what is not there yet."""
    parser = argparse.ArgumentParser(description="Train the models of treelm-en.")
    parser.add_argument("--data", type=Path, default=DATA, help="folder of treebanks and texts")
    parser.add_argument("--work", type=Path, default=Path("build/treelm-en"), help="work folder")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--only", nargs="*", help="models to train, without en-; default: all")
    parser.add_argument("--restart", action="store_true", help="remove the models first")
    arguments = parser.parse_args()
    recipe = Recipe(arguments.data, arguments.work, arguments.threads)
    steps = {
        "parser": recipe.parser,
        "ngram": recipe.ngram,
        "hhmm": recipe.hhmm,
        "treelet": recipe.treelet,
        "mixture": recipe.mixture,
        "judge": recipe.judge,
    }
    for name in arguments.only or steps:
        if arguments.restart:
            shutil.rmtree(MODELS / f"en-{name}", ignore_errors=True)
    for name in arguments.only or steps:
        print(steps[name]())


if __name__ == "__main__":
    main()
