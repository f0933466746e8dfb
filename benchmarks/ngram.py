"""n-gram models side by side with KenLM: training, size, loading, scoring; one text, one run.

    python benchmarks/ngram.py --kenlm FOLDER [--text FILE] [--order 5] [--memory 4G] [--cores 0]

FOLDER contains KenLM's programs lmplz, build_binary and query. Both sides are pinned to the same
cores with taskset, and get the same --memory. Training is timed from the text to a model that can
be loaded; scoring is timed without loading. Hashed and compact tables are compared with KenLM's
probing and trie files in processor seconds, in turns, on the text and on --other. If the package
kenlm is installed, its `score` is timed beside our `score_many`, both from Python strings.
--share 0.25 takes a quarter of the text.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from treelm.corpus.encoder import encode_text
from treelm.corpus.files import read_lines
from treelm.models.ngram.model import NgramModel
from treelm.models.registry import load

DEFAULT_TEXT = Path(__file__).resolve().parents[2] / "shared/data/text/un-debates.txt.xz"
#: Number of timings of each way of scoring; the best counts: other work only ever adds time.
REPEATS = 3
#: Tables that are compared in size and in scoring, ours and KenLM's.
OUR_LAYOUTS = ("treelm-model", "treelm-compact", "treelm-8-bits", "treelm-compact-8-bits")
THEIR_LAYOUTS = ("kenlm.bin", "kenlm.trie", "kenlm.trie8", "kenlm.trie8a")


def run(command: Sequence[str | Path], cores: str, *, stdin: Path | None = None) -> float:
    """Run a program on the given cores and return its seconds."""
    with stdin.open("rb") if stdin else open(os.devnull, "rb") as source:  # noqa: PTH123
        start = time.perf_counter()
        subprocess.run(
            ["taskset", "-c", cores, *map(str, command)],
            stdin=source,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            check=True,
        )
        return time.perf_counter() - start


def peak_megabytes() -> int:
    """Return the largest memory of any program run so far."""
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss // 1024


def folder_bytes(folder: Path) -> int:
    """Return the size of all files of a folder."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def train_ours(
    text: Path, folder: Path, *, order: int, cores: str, memory: str
) -> dict[str, float]:
    """Train with treelm and return seconds, size and the seconds until the model is ready."""
    model = folder / "treelm-model"
    threads = str(len(cores.split(",")))
    command = [Path(sys.executable).with_name("treelm"), "train", "ngram", "--order", str(order)]
    command += ["--smoothing", "mkn", "--text", text, "-o", model, "--threads", threads]
    command += ["--memory", memory]
    seconds = run(command, cores)
    peak = peak_megabytes()
    ready = []
    for _ in range(REPEATS):
        start = time.perf_counter()
        load(model)
        ready.append(time.perf_counter() - start)
    small = folder / "treelm-8-bits"
    program = Path(sys.executable).with_name("treelm")
    convert = [program, "convert", model, "-o"]
    quantizing = run([*convert, small, "--bits", "8"], cores)
    compact, both = folder / "treelm-compact", folder / "treelm-compact-8-bits"
    compacting = run([*convert, compact, "--layout", "compact"], cores)
    run([*convert, both, "--layout", "compact", "--bits", "8"], cores)
    return {
        "train_seconds": seconds,
        "peak_megabytes": peak,
        "megabytes": folder_bytes(model) / 1e6,
        "megabytes_8_bits": folder_bytes(small) / 1e6,
        "quantizing_seconds": quantizing,
        "megabytes_compact": folder_bytes(compact) / 1e6,
        "megabytes_compact_8_bits": folder_bytes(both) / 1e6,
        "compacting_seconds": compacting,
        "ready_seconds": min(ready),
    }


def train_kenlm(
    programs: Path, text: Path, folder: Path, *, order: int, cores: str, memory: str
) -> dict[str, float]:
    """Train with KenLM and return seconds and size of its probing file."""
    arpa, binary = folder / "kenlm.arpa", folder / "kenlm.bin"
    lmplz = [programs / "lmplz", "-o", str(order), "--discount_fallback", "-S", memory]
    seconds = run([*lmplz, "-T", folder, "--text", text, "--arpa", arpa], cores)
    building = run([programs / "build_binary", "-T", folder, "probing", arpa, binary], cores)
    trie, small, smallest = (folder / f"kenlm.{name}" for name in ("trie", "trie8", "trie8a"))
    build = [programs / "build_binary", "-T", folder]
    run([*build, "trie", arpa, trie], cores)
    run([*build, "-q", "8", "-b", "8", "trie", arpa, small], cores)
    run([*build, "-a", "255", "-q", "8", "-b", "8", "trie", arpa, smallest], cores)
    arpa.unlink()
    return {
        "megabytes_8_bits": small.stat().st_size / 1e6,
        "megabytes_compact": trie.stat().st_size / 1e6,
        "megabytes_compact_8_bits": smallest.stat().st_size / 1e6,
        "train_seconds": seconds + building,
        "lmplz_seconds": seconds,
        "megabytes": binary.stat().st_size / 1e6,
    }


def score_ours(model: NgramModel, text: Path) -> dict[str, float]:
    """Return words and ends scored per second: from known ids, and from the text."""
    start = time.perf_counter()
    encoded = encode_text(text, model.vocabulary)
    encoding = time.perf_counter() - start
    best = float("inf")
    for _ in range(REPEATS):
        start = time.perf_counter()
        scores = model.score_ids(encoded.ids, encoded.starts)
        best = min(best, time.perf_counter() - start)
    events = len(scores.log_probs)
    return {
        "score_ids_per_second": events / best,
        "score_text_per_second": events / (encoding + best),
    }


def score_kenlm(programs: Path, binary: Path, text: Path, events: float, cores: str) -> float:
    """Return words and ends that KenLM's query scores per second, without loading."""
    query = [programs / "query", "-v", "summary", binary]
    loading = min(run(query, cores) for _ in range(REPEATS))
    return events / (min(run(query, cores, stdin=text) for _ in range(REPEATS)) - loading)


def score_compact(
    programs: Path, folder: Path, texts: dict[str, Path | None], core: str
) -> dict[str, dict[str, list[float]]]:
    """Return events per processor second of our layouts and KenLM's, in turns, from text."""
    ours = {name: load(folder / name) for name in OUR_LAYOUTS}
    found: dict[str, dict[str, list[float]]] = {}
    for kind, text in texts.items():
        if text is None:
            continue
        rates = found.setdefault(kind, {name: [] for name in (*OUR_LAYOUTS, *THEIR_LAYOUTS)})
        for _ in range(REPEATS):
            for name, model in ours.items():
                assert isinstance(model, NgramModel)
                start = time.process_time()
                encoded = encode_text(text, model.vocabulary)
                events = len(model.score_ids(encoded.ids, encoded.starts).log_probs)
                rates[name].append(events / (time.process_time() - start))
            for name in THEIR_LAYOUTS:
                query = [programs / "query", "-v", "summary", folder / name]
                before = processor_seconds()
                run(query, core)
                loaded = processor_seconds()
                run(query, core, stdin=text)
                scored = processor_seconds() - loaded - (loaded - before)
                rates[name].append(events / scored)
    return found


def processor_seconds() -> float:
    """Return the processor time of all programs run so far."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def score_python(
    ours: NgramModel, binary: Path, text: Path, events: float
) -> dict[str, float | None]:
    """Return words per second of `score_many`, and of the package kenlm if it is installed."""
    lines = list(read_lines(text))

    def best(score: Callable[[], float]) -> float:
        seconds = []
        for _ in range(REPEATS):
            start = time.perf_counter()
            score()
            seconds.append(time.perf_counter() - start)
        return events / min(seconds)

    many = best(lambda: sum(score.log_prob for score in ours.score_many(lines)))
    try:
        import kenlm
    except ImportError:
        return {"treelm_score_many": many, "kenlm_score": None, "ratio": None}
    theirs = kenlm.Model(str(binary))
    single = best(lambda: sum(map(theirs.score, lines)))
    return {"treelm_score_many": many, "kenlm_score": single, "ratio": many / single}


def main() -> None:
    """Measure both and print one JSON object with ratios."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--kenlm", type=Path, required=True)
    parser.add_argument("--text", type=Path, default=DEFAULT_TEXT)
    parser.add_argument("--other", type=Path, help="plain text of another kind, to score as well")
    parser.add_argument("--order", type=int, default=5)
    parser.add_argument("--memory", default="4G", help="memory limit for both sides")
    parser.add_argument("--share", type=float, default=1.0, help="share of the lines of the text")
    parser.add_argument("--cores", default="0", help="cores for both, such as 0 or 0,1")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        plain = folder / "text.txt"
        with plain.open("w", encoding="utf-8") as file:
            lines = [line for line in read_lines(arguments.text) if line.strip()]
            lines = lines[: round(len(lines) * arguments.share)]
            file.writelines(f"{line}\n" for line in lines)
            del lines
        ours = train_ours(
            plain,
            folder,
            order=arguments.order,
            cores=arguments.cores,
            memory=arguments.memory,
        )
        theirs = train_kenlm(
            arguments.kenlm,
            plain,
            folder,
            order=arguments.order,
            cores=arguments.cores,
            memory=arguments.memory,
        )
        model = load(folder / "treelm-model")
        assert isinstance(model, NgramModel)
        os.sched_setaffinity(0, {int(arguments.cores.split(",")[0])})
        ours |= score_ours(model, plain)
        events = model.corpora[0].tokens + model.corpora[0].sentences
        binary = folder / "kenlm.bin"
        core = arguments.cores.split(",")[0]
        theirs["score_text_per_second"] = score_kenlm(arguments.kenlm, binary, plain, events, core)
        compact = score_compact(
            arguments.kenlm, folder, {"training": plain, "other": arguments.other}, core
        )
        through_python = score_python(model, binary, plain, events)
    shared = [key for key in ours if key in theirs]
    print(
        json.dumps(
            {
                "tokens": model.corpora[0].tokens,
                "treelm": ours,
                "compact_events_per_processor_second": compact,
                "kenlm": theirs,
                "python_scores_per_second": through_python,
                "treelm_over_kenlm": {key: ours[key] / theirs[key] for key in shared},
            },
            indent=1,
        )
    )


if __name__ == "__main__":
    main()
