"""How parsing, counting and EM scale: one process beside 1, 2, 4, 8 and 16 workers.

Every work is one command of the program, measured from start to end. What many workers write must
be what one process writes, or the benchmark fails. Efficiency is the speed-up over one process with
one thread, divided by the number of workers.

    python benchmarks/scaling.py --text text.txt --model grammar --workers 1 2 4 8 16
    python benchmarks/scaling.py --text text.txt --model grammar --quick

The trees of EM are those that the parser finds for the first lines; the treelets of the same trees
are counted, unless others are given. `--keep FOLDER` keeps what one process took and wrote, so that
another call measures further workers only.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path

from measuring import Use, run_program

from treelm.parallel.executor import available_cores
from treelm.testing.model_folders import folder_contents

#: Works by name, in the order in which they are done.
WORKS = ("parsing", "counting", "treelets", "composite", "topics")
#: Lines of text for each, and for a quick try.
LINES = {"parsing": 8192, "counting": 0, "treelets": 0, "composite": 4096, "topics": 200_000}
QUICK = {"parsing": 512, "counting": 20_000, "treelets": 0, "composite": 256, "topics": 2000}
TOPICS = "--order 3 --topics 50 --plsa-iterations 5 --iterations 3 --tolerance 0"
COMPOSITE = "--order 3 --heads 2 --iterations 1 --follow-up 1"
COUNT_TREELETS = ("counts", "build", "--treelets", "full", "--trees")
#: Lines of a document, where topics are looked for.
DOCUMENT = 20
#: One tree in so many is held out for the weights of EM.
HELD_OUT = 20


@dataclass(frozen=True)
class Measured:
    """One run of one work."""

    work: str
    engine: str
    workers: int
    seconds: float
    processor_seconds: float
    speed_up: float
    efficiency: float


@dataclass(frozen=True)
class Work:
    """A command.

    Args:
        name: Its name.
        command: Its words, without engine and output.
        output: Name of what it writes, with the end that says what it is.
    """

    name: str
    command: Sequence[str | Path]
    output: str


def first_lines(source: Path, lines: int, target: Path) -> Path:
    """Write the first lines of a text; 0 names the whole of it."""
    if not lines:
        return source
    with source.open(encoding="utf-8") as text, target.open("w", encoding="utf-8") as out:
        out.writelines(islice(text, lines))
    return target


def documents(source: Path, lines: int, target: Path) -> Path:
    """Write the first lines of a text with a blank line after every so many: documents."""
    with source.open(encoding="utf-8") as text, target.open("w", encoding="utf-8") as out:
        written = (line for line in islice(text, lines or None) if line.strip())
        for number, line in enumerate(written, 1):
            out.write(line if number % DOCUMENT else f"{line}\n")
    return target


def split_trees(trees: Path) -> tuple[Path, Path]:
    """Write every so manyth tree to a file of its own; lines without a tree are left out.

    Newswire repeats itself, and training refuses held-out sentences that it has seen: trees that
    occur twice are all trained on.
    """
    train, held_out = trees.with_name("train.mrg"), trees.with_name("held-out.mrg")
    with trees.open(encoding="utf-8") as text:
        lines = [line for line in text if line.strip()]
    times = Counter(lines)
    with train.open("w", encoding="utf-8") as most, held_out.open("w", encoding="utf-8") as few:
        for number, line in enumerate(lines):
            (few if number % HELD_OUT == 0 and times[line] == 1 else most).write(line)
    return train, held_out


def digest(path: Path) -> str:
    """Return a hash of what is compared of a result."""
    if not path.is_dir():
        return hashlib.sha256(path.read_bytes()).hexdigest()
    found = hashlib.sha256()
    for name, said in folder_contents(path).items():
        data = said if isinstance(said, bytes) else json.dumps(said, sort_keys=True).encode()
        found.update(f"{name} {len(data)}\n".encode() + data)
    return found.hexdigest()


def run_work(work: Work, name: str, folder: Path, log: Path, *options: str) -> tuple[Use, str]:
    """Run a work and return what it took, and a hash of what it wrote."""
    output = folder / f"{name}-{work.output}"
    line = [sys.executable, "-m", "treelm", *work.command, *options, "-q", "-o", output]
    used = run_program(line, log=log)
    found = digest(output)
    shutil.rmtree(output) if output.is_dir() else output.unlink()
    return used, found


def measure(
    work: Work,
    folder: Path,
    runs: Sequence[tuple[str, int]],
    *,
    address: str | None,
    log: Path,
    keep: Path | None,
) -> Iterator[Measured]:
    """Yield the measurements of a work: one process first, then every engine and number."""
    kept = None if keep is None else keep / f"{work.name}.json"
    if kept is not None and kept.exists():
        seconds, expected = json.loads(kept.read_text())
    else:
        alone, expected = run_work(work, "serial", folder, log, "--threads", "1")
        seconds = alone.wall
        yield Measured(work.name, "serial", 1, seconds, alone.seconds, 1.0, 1.0)
        if kept is not None:
            kept.write_text(json.dumps([seconds, expected]))
    for engine, workers in runs:
        joined = ["--address", address] if address is not None and engine == "ray" else []
        options = ["--engine", engine, "--workers", str(workers), *joined]
        used, found = run_work(work, f"{engine}-{workers}", folder, log, *options)
        if found != expected:
            raise SystemExit(f"{work.name}: {engine} with {workers} workers wrote something else.")
        gain = seconds / used.wall
        yield Measured(work.name, engine, workers, used.wall, used.seconds, gain, gain / workers)


def works(
    names: Sequence[str],
    text: Path,
    model: Path,
    *,
    trees: Sequence[Path],
    lines: dict[str, int],
    folder: Path,
) -> Iterator[Work]:
    """Yield the works that are asked for; trees are parsed first, where they are needed."""

    def part(name: str) -> Path:
        cut = documents if name == "topics" else first_lines
        return cut(text, lines[name], folder / f"{name}.txt")

    made: dict[str, Callable[[], Work]] = {
        "parsing": lambda: Work("parsing", ("parse", "-m", model, part("parsing")), "a.mrg"),
        "counting": lambda: Work(
            "counting", ("counts", "build", "--order", "5", "--text", part("counting")), "counts"
        ),
        "treelets": lambda: Work(
            "treelets",
            (*COUNT_TREELETS, *(trees or [parsed(part("composite"), model, folder)])),
            "counts",
        ),
        "composite": lambda: _composite(part("composite"), model, folder),
        "topics": lambda: Work(
            "topics",
            ("train", "plsa", *TOPICS.split(), "--text", part("topics")),
            "model",
        ),
    }
    for name in WORKS:
        if name in names:
            yield made[name]()


def parsed(text: Path, model: Path, folder: Path) -> Path:
    """Return the trees that a parser finds for a text, by all cores."""
    trees = folder / "parsed.mrg"
    if not trees.exists():
        made = folder / "made.mrg"
        run_program([sys.executable, "-m", "treelm", "parse", "-m", model, text, "-q", "-o", made])
        made.replace(trees)
    return trees


def _composite(text: Path, model: Path, folder: Path) -> Work:
    train, held_out = split_trees(parsed(text, model, folder))
    files = ("--trees", train, "--held-out", held_out)
    return Work("composite", ("train", "composite", *COMPOSITE.split(), *files), "model")


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure how work scales with workers.")
    parser.add_argument(
        "--text", type=Path, required=True, help="tokenized text, one sentence per line"
    )
    parser.add_argument("--model", type=Path, required=True, help="folder of a parser")
    parser.add_argument("--trees", type=Path, nargs="+", default=[], help="trees to count")
    parser.add_argument("--keep", type=Path, help="folder for what one process took and wrote")
    parser.add_argument("--workers", type=int, nargs="*", default=[1, 2, 4, 8, 16])
    parser.add_argument("--engines", nargs="+", default=["processes"], choices=["processes", "ray"])
    parser.add_argument("--works", nargs="+", default=list(WORKS), choices=WORKS)
    parser.add_argument("--address", help="Ray cluster to join")
    for name in WORKS:
        parser.add_argument(f"--{name}-lines", type=int, help="lines of text; 0 for all")
    parser.add_argument("--quick", action="store_true", help="little text, 1 and 2 workers")
    parser.add_argument("--json", type=Path, help="file for the figures, one object per line")
    given = parser.parse_args()
    lines = dict(QUICK if given.quick else LINES)
    for name in WORKS:
        if getattr(given, f"{name}_lines") is not None:
            lines[name] = getattr(given, f"{name}_lines")
    workers = [1, 2] if given.quick else given.workers
    runs = [(engine, number) for engine in given.engines for number in workers]
    text, model = given.text.resolve(), given.model.resolve()
    print(f"{available_cores()} cores, load {os.getloadavg()[0]:.1f}", flush=True)
    print("work\tengine\tworkers\tseconds\tprocessor seconds\tspeed-up\tefficiency", flush=True)
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        inputs = folder if given.keep is None else given.keep.resolve()
        inputs.mkdir(parents=True, exist_ok=True)
        trees = [path.resolve() for path in given.trees]
        for work in works(given.works, text, model, trees=trees, lines=lines, folder=inputs):
            for found in measure(
                work, folder, runs, address=given.address, log=folder / "log", keep=given.keep
            ):
                print(
                    f"{found.work}\t{found.engine}\t{found.workers}\t{found.seconds:.2f}\t"
                    f"{found.processor_seconds:.2f}\t{found.speed_up:.2f}\t{found.efficiency:.2f}",
                    flush=True,
                )
                if given.json is not None:
                    with given.json.open("a") as out:
                        out.write(json.dumps(asdict(found)) + "\n")


if __name__ == "__main__":
    main()
