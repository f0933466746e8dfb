"""Latent grammars side by side with the Berkeley parser: training, accuracy, speed; one run.

    python benchmarks/parsing.py --treebank FOLDER [--berkeley JAR] [--rounds 3] [--work FOLDER]

FOLDER contains train.mrg, dev.mrg and test.mrg. Both are trained on the same file, one thread each,
and parse the words of the same trees. Times are processor seconds. The start-up and warm-up of the
Berkeley parser are subtracted: it parses each set once and three times over, and the
difference counts. Speeds are medians of several rounds in which the programs take turns, with the
smallest and the largest. Then: tokens per second by length, speed against accuracy over thresholds,
what two threads gain in parsing and in training, and the time that a billion words would take.
Models are kept in --work, and existing ones are not trained again.
"""

from __future__ import annotations

import argparse
import functools
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from measuring import run_program

from treelm.corpus.brackets import EVALUATION_OPTIONS, read_trees
from treelm.corpus.corpus import TreeCorpus
from treelm.grammar.binary_trees import build_binary_trees
from treelm.grammar.latent_trees import LatentTrees
from treelm.grammar.parser_options import THRESHOLDS, ParserOptions, Pruning, Thresholds
from treelm.grammar.split_merge import split, unsplit_weights
from treelm.models.pcfg_la.model import PcfgLaModel
from treelm.models.registry import load
from treelm.tasks.evaluate.parse_accuracy import evaluate_parses

SETS = ("dev", "test")
LENGTHS = (10, 20, 40, 80)
PRUNINGS: tuple[Pruning, ...] = ("fast", "default", "accurate")
#: Added to the logarithms of the default thresholds for the curve of speed against accuracy.
SHIFTS = (2.5, 2.0, 1.5, 1.0, 0.5, 0.0, -1.0, -2.0, -4.0)
BILLION = 1_000_000_000


def train_ours(train: Path, work: Path, cycles: int) -> float | None:
    """Train with treelm and return processor seconds; None if the model exists."""
    if (work / "treelm").exists():
        return None
    program = Path(sys.executable).with_name("treelm")
    command: list[str | Path] = [
        program,
        "train",
        "pcfg-la",
        "--trees",
        train,
        "--cycles",
        str(cycles),
    ]
    command += ["--seed", "1", "--threads", "1", "--quiet", "-o", work / "treelm"]
    return run_program(command, log=work / "log").seconds


def java(jar: Path, name: str) -> list[str]:
    """Return the command of a program of the Berkeley parser."""
    options = ["-server", "-Xmx3g", "-XX:+UseSerialGC", "-cp", str(jar)]
    return ["java", *options, f"edu.berkeley.nlp.PCFGLA.{name}"]


def train_berkeley(jar: Path, train: Path, work: Path, cycles: int) -> float | None:
    """Train the Berkeley parser and return processor seconds; None if the grammar exists."""
    if (work / "berkeley.gr").exists():
        return None
    command: list[str | Path] = [
        *java(jar, "GrammarTrainer"),
        "-treebank",
        "SINGLEFILE",
        "-path",
        train,
    ]
    command += ["-out", work / "berkeley.gr", "-SMcycles", str(cycles)]
    return run_program(command, log=work / "log").seconds


def accuracy(gold: Path, guess: Path) -> float:
    """Return labelled F1 in per cent."""
    right, found = (read_trees(file, EVALUATION_OPTIONS) for file in (gold, guess))
    return 100 * evaluate_parses(right, found).labelled_f1


def parse_ours(
    model: PcfgLaModel,
    sentences: list[tuple[str, ...]],
    pruning: Pruning | Thresholds,
    out: Path,
) -> float:
    """Parse on one thread, write the trees, and return sentences per processor second."""
    options = ParserOptions(pruning=pruning)
    model.parse_many(sentences[:1], options=options)
    start = time.process_time()
    parsed = model.parse_many(sentences, options=options)
    seconds = time.process_time() - start
    trees = "".join(f"{best.tree}\n" for best in parsed if best is not None)
    out.write_text(trees, encoding="utf-8")
    return len(sentences) / seconds


def parse_berkeley(jar: Path, work: Path, sentences: list[tuple[str, ...]], out: Path) -> float:
    """Parse once and three times over; return sentences per processor second, without start-up."""
    lines = "".join(" ".join(words) + "\n" for words in sentences)
    seconds = []
    for times in (1, 3):
        text, parsed = work / f"words{times}.txt", work / f"parsed{times}.mrg"
        text.write_text(lines * times, encoding="utf-8")
        command: list[str | Path] = [*java(jar, "BerkeleyParser"), "-gr", work / "berkeley.gr"]
        command += ["-inputFile", text, "-outputFile", parsed]
        seconds.append(run_program(command, log=work / "log").seconds)
    out.write_bytes((work / "parsed1.mrg").read_bytes())
    return 2 * len(sentences) / (seconds[1] - seconds[0])


def side_by_side(
    model: PcfgLaModel, gold: Path, work: Path, jar: Path | None, rounds: int
) -> dict[str, object]:
    """Parse the words of some trees with all parsers, in turns; return speeds and accuracies."""
    sentences = [tree.words for tree in read_trees(gold)]
    speeds: dict[str, list[float]] = {}
    guesses: dict[str, Path] = {}
    for _ in range(rounds):
        for pruning in PRUNINGS:
            guesses[pruning] = work / f"{gold.stem}.{pruning}.mrg"
            speed = parse_ours(model, sentences, pruning, guesses[pruning])
            speeds.setdefault(pruning, []).append(speed)
        if jar is not None:
            guesses["berkeley"] = work / f"{gold.stem}.berkeley.mrg"
            speed = parse_berkeley(jar, work, sentences, guesses["berkeley"])
            speeds.setdefault("berkeley", []).append(speed)
    found: dict[str, object] = {"sentences": len(sentences)}
    for name, guess in guesses.items():
        found[name] = {
            "sentences_per_second": statistics.median(speeds[name]),
            "smallest": min(speeds[name]),
            "largest": max(speeds[name]),
            "f1": accuracy(gold, guess),
        }
    return found


def median_seconds(work: Callable[[], object], rounds: int) -> float:
    """Return the median of processor seconds that some work takes."""
    seconds = []
    for _ in range(rounds):
        start = time.process_time()
        work()
        seconds.append(time.process_time() - start)
    return statistics.median(seconds)


def by_length(
    model: PcfgLaModel, sentences: list[tuple[str, ...]], rounds: int
) -> dict[int, float]:
    """Return tokens per processor second for sentences of about some lengths."""
    words = [word for sentence in sentences for word in sentence]
    found = {}
    for length in LENGTHS:
        exact = [s for s in sentences if abs(len(s) - length) <= length // 10][:100]
        # Too few sentences are that long: join several.
        while len(exact) < 20:
            first = len(exact) * length % (len(words) - length)
            exact.append(tuple(words[first : first + length]))
        seconds = median_seconds(functools.partial(model.parse_many, exact), rounds)
        found[length] = sum(map(len, exact)) / seconds
    return found


def curve(
    model: PcfgLaModel, sentences: list[tuple[str, ...]], gold: Path, work: Path, rounds: int
) -> list[dict[str, float]]:
    """Return speed and accuracy for thresholds around the default ones."""
    found = []
    default = THRESHOLDS["default"]
    for shift in SHIFTS:
        moved = Thresholds(
            default.beam + shift, tuple(level + shift for level in default.levels), default.edges
        )
        guess = work / "curve.mrg"
        speed = statistics.median(parse_ours(model, sentences, moved, guess) for _ in range(rounds))
        f1 = accuracy(gold, guess)
        found.append({"shift": shift, "sentences_per_second": speed, "f1": f1})
    return found


def two_threads(
    model: PcfgLaModel, sentences: list[tuple[str, ...]], train: Path
) -> dict[str, float]:
    """Return how many times faster two threads are than one, by wall time."""

    def wall(work: Callable[[int], object]) -> list[float]:
        seconds = []
        for threads in (1, 2):
            best = float("inf")
            for _ in range(3):
                start = time.perf_counter()
                work(threads)
                best = min(best, time.perf_counter() - start)
            seconds.append(best)
        return seconds

    corpus = TreeCorpus((str(train),), on_error="skip")
    trees = LatentTrees(build_binary_trees(corpus.batches()))
    state = unsplit_weights(trees)
    for cycle in range(1, 5):
        state = split(trees.rules, state, noise=0.01, seed=1, cycle=cycle)
    model.parse_many(sentences[:1])
    one, two = wall(lambda threads: model.parse_many(sentences, threads=threads))
    single, double = wall(
        lambda threads: trees.expect(state.substates, state.weights, threads=threads)
    )
    return {"parsing": one / two, "expectation": single / double}


def main() -> None:
    """Measure both and print one JSON object with ratios."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--treebank", type=Path, required=True)
    parser.add_argument("--berkeley", type=Path)
    parser.add_argument(
        "--berkeley-train", type=Path, help="training file of the Berkeley parser, if different"
    )
    parser.add_argument("--cycles", type=int, default=5)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--work", type=Path)
    parser.add_argument("--core", type=int, default=0)
    arguments = parser.parse_args()
    everywhere = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {arguments.core})
    work = arguments.work or Path(tempfile.mkdtemp())
    work.mkdir(exist_ok=True)
    train = arguments.treebank / "train.mrg"
    result: dict[str, object] = {"treelm_training": train_ours(train, work, arguments.cycles)}
    if arguments.berkeley:
        result["berkeley_training"] = train_berkeley(
            arguments.berkeley, arguments.berkeley_train or train, work, arguments.cycles
        )
    model = load(work / "treelm")
    assert isinstance(model, PcfgLaModel)
    for name in SETS:
        gold = arguments.treebank / f"{name}.mrg"
        result[name] = side_by_side(model, gold, work, arguments.berkeley, arguments.rounds)
    dev = [tree.words for tree in read_trees(arguments.treebank / "dev.mrg")]
    result["tokens_per_second_by_length"] = by_length(model, dev, arguments.rounds)
    result["curve"] = curve(model, dev, arguments.treebank / "dev.mrg", work, arguments.rounds)
    speed = sum(map(len, dev)) / median_seconds(lambda: model.parse_many(dev), arguments.rounds)
    result["tokens_per_second"] = speed
    result["days_for_a_billion_words_on_one_core"] = BILLION / speed / 86_400
    os.sched_setaffinity(0, everywhere)
    result["times_faster_with_two_threads"] = two_threads(model, dev, train)
    print(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()
