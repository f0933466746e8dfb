"""Three Ray nodes on one machine, of which one is lost in the middle of every work.

Parsing, counting treelets and composite EM are done by one process, and then on three nodes with a
few cores each. In the middle of each work one node is killed, with all workers on it. What the
cluster writes must be what one process wrote, or the benchmark fails.

    python benchmarks/three_nodes.py --text text.txt --trees trees.mrg --model grammar --work folder

The first words of the text are parsed, and EM is done on the first of these trees.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from measuring import run_program
from scaling import COMPOSITE, COUNT_TREELETS, digest, split_trees

from treelm.corpus.pieces import LEAST_TREE_BYTES, piece_size
from treelm.models.composite.em import SENTENCES_A_SHARD
from treelm.models.composite.parts import shard_sentences

#: Works, in the order in which they are done.
WORKS = ("parsing", "treelets", "composite")
NODES = 3
#: Shards of EM.
SHARDS = 4


@dataclass(frozen=True)
class Measured:
    """One work."""

    work: str
    words: int
    alone: float
    """Seconds of one process, with all its threads."""
    nodes: float
    """Seconds of three nodes, of which one was lost."""
    lost_after: float
    """Seconds after which it was lost."""
    is_same: bool


class Nodes:
    """A head and two more nodes, with processes and ports of their own.

    Args:
        cores: Cores of each.
    """

    def __init__(self, cores: int) -> None:
        from ray.cluster_utils import Cluster

        self._cores = cores
        self._cluster: Any = Cluster(initialize_head=True, head_node_args={"num_cpus": cores})
        self._others = [self._cluster.add_node(num_cpus=cores) for _ in range(NODES - 1)]
        self._cluster.wait_for_nodes()

    @property
    def address(self) -> str:
        """Where to join."""
        return str(self._cluster.address)

    def lose_one(self) -> None:
        """Kill a node and everything on it."""
        self._cluster.remove_node(self._others.pop(), allow_graceful=False)

    def restore(self) -> None:
        """Start a node in place of the one that was lost."""
        while len(self._others) < NODES - 1:
            self._others.append(self._cluster.add_node(num_cpus=self._cores))
        self._cluster.wait_for_nodes()

    def end(self) -> None:
        """End all nodes."""
        self._cluster.shutdown()


@contextmanager
def three_nodes(cores: int) -> Iterator[Nodes]:
    """Give three nodes, which are ended afterwards."""
    nodes = Nodes(cores)
    try:
        yield nodes
    finally:
        nodes.end()


def run_and_lose(
    command: Sequence[str | Path], nodes: Nodes, is_midway: Callable[[], bool], log: Path
) -> tuple[float, float]:
    """Run a program and kill a node in the middle; return its seconds, and when that was.

    Raises:
        SystemExit: if it fails, or ends before its middle was seen.
    """
    began, lost = time.perf_counter(), None
    with log.open("ab") as written:
        process = subprocess.Popen([*map(str, command)], stdout=written, stderr=written)
        while process.poll() is None:
            if lost is None and is_midway():
                nodes.lose_one()
                lost = time.perf_counter() - began
            time.sleep(0.05)
    if process.returncode != 0 or lost is None:
        what = "failed" if process.returncode else "ended before a node was lost"
        raise SystemExit(f"{' '.join(map(str, command))}: {what}; see {log}.")
    return time.perf_counter() - began, lost


def first_words(source: Path, words: int, target: Path) -> int:
    """Write the first lines of a text, with about so many words; return how many."""
    found = 0
    with source.open(encoding="utf-8") as text, target.open("w", encoding="utf-8") as out:
        for line in text:
            if found >= words:
                break
            found += len(line.split())
            out.write(line)
    return found


def words_of_trees(path: Path) -> int:
    """Return the number of words of trees."""
    with path.open(encoding="utf-8") as text:
        return sum(sum(not part.startswith("(") for part in line.split()) for line in text)


def first_trees(source: Path, words: int, target: Path) -> int:
    """Write the first trees of a file with one per line; return how many words they have."""
    found = 0
    with source.open(encoding="utf-8") as text, target.open("w", encoding="utf-8") as out:
        for line in text:
            if found >= words:
                break
            found += sum(not part.startswith("(") for part in line.split())
            out.write(line)
    return found


def options() -> argparse.Namespace:
    """Return what was asked for."""
    parser = argparse.ArgumentParser(description="Lose one of three Ray nodes in every work.")
    parser.add_argument("--text", type=Path, required=True, help="tokenized text")
    parser.add_argument("--trees", type=Path, nargs="+", required=True, help="trees to count")
    parser.add_argument("--model", type=Path, required=True, help="folder of a parser")
    parser.add_argument("--work", type=Path, required=True, help="folder for everything")
    parser.add_argument("--works", nargs="+", default=list(WORKS), choices=WORKS)
    parser.add_argument("--words", type=int, default=2_000_000, help="words to parse")
    parser.add_argument("--em-words", type=int, default=1_000_000, help="words of EM")
    parser.add_argument("--cores", type=int, default=1, help="cores of a node")
    parser.add_argument("--threads", type=int, default=1, help="threads of the one process")
    parser.add_argument("--json", type=Path, help="file for the figures, one object per line")
    return parser.parse_args()


def main() -> None:
    given = options()
    folder = given.work.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    log = folder / "log"
    program = (sys.executable, "-m", "treelm")
    text, parses = folder / "text.txt", folder / "one.forest"
    words = first_words(given.text, given.words, text)

    def parse(target: Path) -> tuple[str | Path, ...]:
        return (*program, "parse", "-m", given.model, "--fast", text, "-q", "-o", target)

    def composite(target: Path) -> tuple[str | Path, ...]:
        files = ("--trees", folder / "train.mrg", "--held-out", folder / "held-out.mrg")
        return (*program, "train", "composite", *COMPOSITE.split(), *files, "-q", "-o", target)

    def treelets(target: Path) -> tuple[str | Path, ...]:
        return (*program, *COUNT_TREELETS, *given.trees, "-q", "-o", target)

    def work_on(
        name: str,
        amount: int,
        command: Callable[[Path], tuple[str | Path, ...]],
        output: str,
        is_midway: Callable[[], bool],
        *more: str | Path,
    ) -> Measured:
        one, three = folder / f"one{output}", folder / f"three{output}"
        alone = run_program([*command(one), "--threads", str(given.threads)], log=log).wall
        engine = ("--engine", "ray", "--address", nodes.address, *more)
        seconds, lost = run_and_lose([*command(three), *engine], nodes, is_midway, log)
        nodes.restore()
        return Measured(name, amount, alone, seconds, lost, digest(one) == digest(three))

    def parsed_half() -> bool:
        made = folder / "three.forest"
        return made.exists() and made.stat().st_size > parses.stat().st_size / 2

    def counted_some() -> bool:
        found = len(list(folder.glob(".treelm-folder-*/*.counts")))
        return found * piece_size(tree_bytes, LEAST_TREE_BYTES) >= tree_bytes / 2

    def searched_some() -> bool:
        found = len(list((folder / "em").glob("round/piece-*.safetensors")))
        return found * shard_sentences(sentences, SENTENCES_A_SHARD) > sentences / 2

    sentences, tree_bytes = 0, sum(path.stat().st_size for path in given.trees)
    with three_nodes(given.cores) as nodes:
        for name in given.works:
            if name == "parsing":
                found = work_on(name, words, parse, ".forest", parsed_half)
            elif name == "treelets":
                counted = sum(words_of_trees(path) for path in given.trees)
                found = work_on(name, counted, treelets, ".counts", counted_some)
            else:
                best, some = folder / "best.mrg", folder / "parsed.mrg"
                if not parses.exists():
                    run_program(parse(parses), log=log)
                run_program([*program, "parse", "--from", parses, "-q", "-o", best], log=log)
                amount = first_trees(best, given.em_words, some)
                train, _ = split_trees(some)
                sentences = sum(1 for _ in train.open(encoding="utf-8"))
                shards = ("--shards", str(SHARDS), "--work", folder / "em")
                found = work_on(name, amount, composite, ".model", searched_some, *shards)
            print(json.dumps(asdict(found)), flush=True)
            if given.json is not None:
                with given.json.open("a") as out:
                    out.write(json.dumps(asdict(found)) + "\n")
            if not found.is_same:
                raise SystemExit(f"{name}: three nodes wrote something else than one process.")


if __name__ == "__main__":
    main()
