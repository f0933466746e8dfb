"""Treelet and n-gram models of growing amounts of parsed text: perplexity and minimal pairs.

    python experiments/parsed_text/run.py --output FOLDER --parser MODEL [--data FOLDER]
        [--threads 2] [--parts 32] [--parsed 8] [--only-parse]

Writes a report folder, and keeps texts, parses, models and scores in FOLDER.work, from which an
interrupted run resumes; see README.md beside this file.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1]))
sys.path.append(str(Path(__file__).resolve().parents[1] / "blimp"))

from curves import Curves
from recipe import check_kept_options, print_report, recipe_options
from texts import deal, sources

from treelm.corpus.files import read_lines
from treelm.grammar.parser_options import ParserOptions
from treelm.models.interface.model import LanguageModel
from treelm.models.ready import model_folder
from treelm.models.registry import load
from treelm.tasks.parse_file import parse_into_file, parser_fingerprint
from treelm.tasks.report.report import Report


def parsed_part(
    parser: LanguageModel, fingerprint: str, folder: Path, text: Path, threads: int
) -> Path:
    """Return the best trees of a part of the text; a file that was begun is resumed."""
    done = folder / f"{text.stem}.forest"
    if done.exists():
        return done
    folder.mkdir(parents=True, exist_ok=True)
    begun = done.with_name(f"begun-{done.name}")
    start, before = time.monotonic(), time.process_time()
    found = parse_into_file(
        parser,
        [(text, (line for line in read_lines(text) if line.strip()))],
        begun,
        fingerprint=fingerprint,
        options=ParserOptions(pruning="fast"),
        threads=threads,
    )
    wall, processor = time.monotonic() - start, time.process_time() - before
    with (folder / "times.tsv").open("a", encoding="utf-8") as times:
        times.write(
            f"{text.stem}\t{found.before}\t{found.sentences}\t{found.fallbacks}\t"
            f"{wall:.1f}\t{processor:.1f}\n"
        )
    begun.replace(done)
    return done


def sizes(parsed: int) -> Sequence[int]:
    """Return how many parts the models have: none, then powers of two.

    Examples:
        >>> sizes(5)
        [0, 1, 2, 4]
    """
    return [0, *(1 << power for power in range(parsed.bit_length()) if 1 << power <= parsed)]


def run(arguments: argparse.Namespace) -> Path:
    """Parse, train, judge, and write the report."""
    work = arguments.output.with_name(f"{arguments.output.name}.work")
    folder = model_folder(arguments.parser)
    fingerprint = parser_fingerprint(folder)
    check_kept_options(work, {"parts": arguments.parts, "parser": fingerprint})
    texts = deal(sources(arguments.data, work / "text"), work / "parts", arguments.parts)
    parser = load(folder).with_tokenizer(None)
    forests = [
        parsed_part(parser, fingerprint, work / "parsed", text, arguments.threads)
        for text in texts[: arguments.parsed]
    ]
    report = Report(
        arguments.output,
        "Models of growing amounts of parsed text",
        seeds={"intervals": arguments.seed},
        options={name: getattr(arguments, name) for name in ("parts", "parsed", "k")},
        recipe=__doc__,
    )
    if not arguments.only_parse:
        curves = Curves(
            arguments.data, work, parser, forests, k=arguments.k, threads=arguments.threads
        )
        curves.report(report, sizes(len(forests)), arguments.seed)
    return report.write()


def options() -> argparse.ArgumentParser:
    """Return the options of this recipe."""
    parser = recipe_options(__doc__)
    parser.add_argument("--parser", required=True, help="model folder, or name of a ready model")
    parser.add_argument("--parts", type=int, default=32, help="a power of two")
    parser.add_argument("--parsed", type=int, default=8, help="parts that are parsed")
    parser.add_argument("-k", type=int, default=20, help="trees of a sentence that is scored")
    parser.add_argument("--only-parse", action="store_true")
    return parser


if __name__ == "__main__":
    print_report(run, options().parse_args())
