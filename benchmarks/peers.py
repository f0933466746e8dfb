"""Measure treelm beside the other programs that are found here, and write the tables of the page.

    python benchmarks/peers.py [--page docs/benchmarks.md] [--keep FOLDER]   (or: make bench-peers)

KenLM is found by the variable KENLM (the folder of lmplz, build_binary and query) or on the PATH,
its package by import; the Berkeley parser by the variable BERKELEY_PARSER (its jar) if there is a
java. Nothing is fetched; peers that are missing are named and left out. Everything is measured in
processor seconds on one core, in turns. --keep keeps what the measurements printed, and takes what
is kept there already instead of measuring again.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
TREEBANK = ROOT.parent / "shared/data/treebanks/wsj-sample"
MILLION = 1e6
#: Rows of scoring: what is done, our name of it, KenLM's.
SCORING = (
    ("file to scores, in process", "treelm default, in process", "kenlm probing, in process"),
    ("the same, smaller", "treelm compact, in process", "kenlm trie, in process"),
    (
        "the same, smallest",
        "treelm compact, 8 bits, in process",
        "kenlm trie -q 8 -b 8 -a 255, in process",
    ),
    ("`treelm score` and `query`", "treelm score", "kenlm query"),
)
CALLS = (
    ("`score_many(lines)` and `score`", "treelm score_many", "kenlm score(line)"),
    ("`score(line)`, one call per sentence", "treelm score(line)", "kenlm score(line)"),
    ("`advance` and `BaseScore`, one call per word", "treelm advance", "kenlm BaseScore"),
)


def find_kenlm() -> Path | None:
    """Return the folder of KenLM's programs."""
    given = os.environ.get("KENLM")
    program = Path(given) / "lmplz" if given else shutil.which("lmplz")
    return Path(program).parent if program and Path(program).exists() else None


def find_berkeley() -> Path | None:
    """Return the jar of the Berkeley parser, if java can run it."""
    given = os.environ.get("BERKELEY_PARSER")
    return Path(given) if given and Path(given).exists() and shutil.which("java") else None


def measure(name: str, arguments: Sequence[str | Path], keep: Path | None) -> dict[str, Any]:
    """Run a benchmark and return the object it prints, or what an earlier run of it printed."""
    kept = keep / f"{name}.json" if keep else None
    if kept and kept.exists():
        print(f"{name}: taken from {kept}", file=sys.stderr)
        return dict(json.loads(kept.read_text(encoding="utf-8")))
    print(f"{name}: measuring", file=sys.stderr)
    command = [sys.executable, HERE / f"{name}.py", *arguments]
    printed = subprocess.run(list(map(str, command)), stdout=subprocess.PIPE, check=True).stdout
    if kept:
        kept.parent.mkdir(parents=True, exist_ok=True)
        kept.write_bytes(printed)
    return dict(json.loads(printed))


def rate(spread: Mapping[str, float] | None) -> str:
    """Return millions per second, with the smallest and the largest of the rounds."""
    if spread is None:
        return ""
    low, high = spread["smallest"] / MILLION, spread["largest"] / MILLION
    return f"{spread['median'] / MILLION:.2f} M/s ({low:.2f} to {high:.2f})"


def ratio(ours: Mapping[str, float], theirs: Mapping[str, float] | None) -> str:
    """Return how many times our median is theirs."""
    return "" if theirs is None else f"{ours['median'] / theirs['median']:.2f}x"


def rows(header: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    """Return a table of the page."""
    everything = [header, ["---"] * len(header), *lines]
    return "\n".join(f"| {' | '.join(line)} |" for line in everything)


def ngram_table(found: Mapping[str, Any]) -> str:
    """Return the tables of training, size and scoring."""
    seconds, memory = found["train_seconds"], found["train_megabytes"]
    ours, theirs = found["megabytes"]["treelm"], found["megabytes"]["kenlm"]
    one = found["one_sentence_seconds"]
    trained = [
        [
            "text to a model that can be loaded",
            f"{seconds['treelm']['median']:.1f} s",
            f"{seconds['kenlm']['median']:.1f} s",
            ratio(seconds["treelm"], seconds["kenlm"]),
        ],
        [
            "peak memory of that",
            f"{memory['treelm']:,.0f} MB",
            f"{memory['kenlm']:,.0f} MB",
            f"{memory['treelm'] / memory['kenlm']:.2f}x",
        ],
        [
            "one sentence from the shell",
            f"{one['treelm score']['median']:.3f} s",
            f"{one['kenlm query']['median']:.3f} s",
            ratio(one["treelm score"], one["kenlm query"]),
        ],
    ]
    sizes = [[f"treelm, {form}", f"{size:,.0f} MB"] for form, size in ours.items()]
    sizes += [[f"KenLM, {form}", f"{size:,.0f} MB"] for form, size in theirs.items()]
    scored = []
    for key, columns in (("events_per_second", SCORING), ("python_events_per_second", CALLS)):
        for what, mine, other in columns:
            for text in ("training", "unseen"):
                rates = found[text][key]
                its = rates.get(other)
                scored.append([what, text, rate(rates[mine]), rate(its), ratio(rates[mine], its)])
    return "\n\n".join(
        (
            rows(("work", "treelm", "KenLM", "treelm / KenLM"), trained),
            rows(("form of the model", "size"), sizes),
            rows(("words scored per second", "text", "treelm", "KenLM", "ratio"), scored),
        )
    )


def parsing_table(found: Mapping[str, Any]) -> str:
    """Return the table of parsing speed and accuracy."""
    names = ("default", "fast", "accurate", "berkeley")
    lines = [
        [
            "training",
            *(
                f"{found[key]:.0f} s" if found.get(key) else ""
                for key in ("treelm_training", "", "", "berkeley_training")
            ),
        ]
    ]
    for part in ("dev", "test"):
        cells = []
        for name in names:
            one = found[part].get(name)
            cells.append(
                f"{one['f1']:.1f}, {one['sentences_per_second']:.0f} ({one['smallest']:.0f} to "
                f"{one['largest']:.0f})"
                if one
                else ""
            )
        lines.append([f"{part} ({found[part]['sentences']} sentences): F1, sentences/s", *cells])
    return rows(("", "treelm", "`--fast`", "`--accurate`", "Berkeley"), lines)


def replace_table(page: str, name: str, table: str) -> str:
    """Return the page with a table put between the marks of its name.

    Raises:
        ValueError: if the page has no such marks.
    """
    marks = re.compile(rf"(<!-- {name}: begin -->\n).*?(\n<!-- {name}: end -->)", re.DOTALL)
    if not marks.search(page):
        raise ValueError(f"the page has no marks of the table {name}")
    return marks.sub(lambda found: f"{found[1]}{table}{found[2]}", page)


def main() -> None:
    """Find the peers, measure, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--page", type=Path, default=ROOT / "docs/benchmarks.md")
    parser.add_argument("--keep", type=Path)
    parser.add_argument("--treebank", type=Path, default=TREEBANK)
    arguments, more = parser.parse_known_args()
    kenlm, jar = find_kenlm(), find_berkeley()
    package = importlib.util.find_spec("kenlm") is not None
    for name, peer in (
        ("KenLM's programs (KENLM)", kenlm),
        ("the package kenlm", package),
        ("the Berkeley parser (BERKELEY_PARSER)", jar),
    ):
        print(f"{name}: {'found' if peer else 'not found'}", file=sys.stderr)
    works: list[tuple[str, Sequence[str | Path], Callable[[Mapping[str, Any]], str]]] = []
    if kenlm:
        works.append(("ngram", ["--kenlm", kenlm, *more], ngram_table))
    berkeley = ["--berkeley", jar] if jar else []
    works.append(("parsing", ["--treebank", arguments.treebank, *berkeley], parsing_table))
    for name, options, table in works:
        found = measure(name, options, arguments.keep)
        page = arguments.page.read_text(encoding="utf-8")
        arguments.page.write_text(replace_table(page, name, table(found)), encoding="utf-8")


if __name__ == "__main__":
    main()
