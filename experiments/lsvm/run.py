"""The tables of Cherry & Quirk (2008) on open data: latent SVMs and their rivals.

    python experiments/lsvm/run.py --data FOLDER --parser PARSER --work FOLDER --output FOLDER

Models, parses and scores stay in the work folder, so an interrupted run resumes; see
README.md beside this file.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1]))

from brackets import bracket_rows, measure_brackets
from fragment_study import report_fragments
from kernels import report_kernels
from lists import list_rows
from recipe import print_report, recipe_options
from retagging import report_retagging
from systems import LABELS, Systems
from tables import (
    classified,
    report_ablations,
    report_not_run,
    report_order,
    report_pairs,
    report_rounds,
    report_samples,
    with_length,
)

import published
from treelm.corpus.corpus import TextCorpus
from treelm.errors import MissingExtra
from treelm.tasks.report.report import Report

#: Short names of the systems, in the order of the tables.
SYSTEMS = {
    "mle": published.MLE,
    "mle-length": published.MLE_LENGTH,
    "linear": published.LINEAR,
    "poly": published.POLY,
    "gx": published.GX,
    "gt": published.GT,
    "lsvm-mle": published.LATENT_MLE,
    "no-memory": published.NO_MEMORY,
    "fixed": published.FIXED,
    "cfg": published.CFG,
    "tsg": published.TSG,
    "rerank": published.RERANK,
    "ngram": published.NGRAM,
    "treelet": published.TREELET,
    "parser": published.PARSER,
}


def run(arguments: argparse.Namespace) -> Path:
    """Train what is missing, measure, and return the folder of the report."""
    systems = Systems(arguments)
    names = [SYSTEMS[short] for short in arguments.systems]
    scores = {}
    for name in names:
        own = systems.scores(name)
        scores[name] = with_length(systems, own) if name == published.MLE_LENGTH else own
    if arguments.output is None:
        return systems.work
    report = Report(
        arguments.output,
        "Latent support vector machines, their rivals, and features of trees",
        seeds={"split, negatives, solvers, bootstrap": arguments.seed},
        options={
            "text": arguments.text,
            "train": arguments.train,
            "held": arguments.held,
            "trees": " ".join(arguments.trees),
            "fragments": " ".join(arguments.fragments) or "every other good sentence",
            "h": arguments.horizontal_order,
            "v": arguments.vertical_order,
            "regularization": arguments.regularization or "grid",
            "rounds": arguments.rounds,
            "patience": arguments.patience,
            "parts": arguments.parts,
        },
        recipe="C-SAMPLE, C-SMT, C-BRACKET, C-MEMORY, C-LENGTH, C-FIXED",
    )
    roles = {"train": "train", "dev": "tune", "test": "test"}
    for part, role in roles.items():
        for label in LABELS:
            report.add_input(
                f"{label}_{part}".upper(),
                TextCorpus((systems.file(label, part),)),
                role=role,  # type: ignore[arg-type]
                stands_for="BLLIP",
            )
    report.add_input("treebank", systems.treebank(), role="train", stands_for="WSJ 2-21")
    report.add_table(
        "Sentences",
        ("part", "what", "number"),
        [
            (part, what, str(number))
            for part, counts in systems.counts.items()
            for what, number in counts.items()
        ],
    )
    found = {name: classified(name, scores[name], arguments.seed) for name in names}
    report_samples(report, found, f"{arguments.text}, 5 to 40 words", arguments.seed)
    report_order(report, found, arguments.seed)
    report_ablations(report, found, f"{arguments.text}, 5 to 40 words", arguments.seed)
    report_pairs(report, scores, arguments.seed)
    report_rounds(report, systems, names)
    report_retagging(report, systems, names)
    if arguments.landmarks:
        report_kernels(report, systems, arguments.landmarks)
    if arguments.fragment_study is not None:
        report_fragments(report, systems, arguments.fragment_study)
    if "brackets" not in arguments.without:
        report.add_table(
            "Unlabelled F1 of hidden trees (Table 3)",
            (
                "system",
                "at most 10 words",
                "test, any length",
                "without a tree",
                "published, at most 10",
                "published, any length",
            ),
            bracket_rows(measure_brackets(systems, names)),
        )
    lists = _report_lists(report, systems, names)
    report.add_table(
        "Training",
        ("system", "seconds"),
        [
            (name, f"{sum(fact.get('seconds', 0) for fact in systems.facts(name)):.0f}")
            for name in names
            if name != published.MLE_LENGTH
        ],
    )
    report_not_run(report, found, lists)
    return report.write()


def _report_lists(report: Report, systems: Systems, names: Sequence[str]) -> list[str]:
    """Report BLEU of reranked lists; return the rows of Table 2 that this covers."""
    try:
        rows = list_rows(systems, names)
    except MissingExtra as error:
        report.warn(f"no BLEU: {error}")
        return []
    if rows:
        report.add_table(
            "Reranked n-best lists (Table 2): multi30k, 100 best of Moses, BLEU",
            ("score", "weight, tuned on val", "val", "test", "published"),
            rows,
        )
    return [row[0] for row in rows]


def main() -> None:
    """Read the options and run."""
    parser = recipe_options(
        __doc__, output="report folder; without it, only train and score", needs_output=False
    )
    parser.add_argument(
        "--work", type=Path, help="folder of models and scores; default: OUTPUT.work"
    )
    parser.add_argument("--parser", help="model folder of a parser, for tree features")
    parser.add_argument("--text", default="reuters", help="name of the text")
    parser.add_argument("--train", type=int, default=20_000, help="good sentences to train on")
    parser.add_argument(
        "--held", type=int, default=2_000, help="good sentences each of dev and of test"
    )
    parser.add_argument(
        "--generator", type=int, help="sentences of the trigram model; default: all others"
    )
    parser.add_argument("--trees", nargs="+", default=["wsj-sample"], help="treebanks of Gt and Gx")
    parser.add_argument(
        "--fragments", nargs="*", default=[], help="treebanks of fragments; default: good sentences"
    )
    parser.add_argument("--horizontal-order", type=int, default=1)
    parser.add_argument("--vertical-order", type=int, default=2)
    parser.add_argument("--regularization", type=float, help="default: best of the first round")
    parser.add_argument(
        "--rounds", type=int, default=30, help="maximum number of rounds of a latent SVM"
    )
    parser.add_argument(
        "--patience", type=int, default=5, help="rounds without an improvement before stopping"
    )
    parser.add_argument("--parts", type=int, default=1, help="pieces, each followed by a fit")
    parser.add_argument("--k", type=int, default=100, help="trees per sentence, for treelets")
    parser.add_argument("--systems", nargs="+", choices=list(SYSTEMS), default=list(SYSTEMS))
    parser.add_argument(
        "--landmarks",
        type=int,
        nargs="*",
        default=[],
        help="compare the exact polynomial kernel with approximations of so many landmarks",
    )
    parser.add_argument(
        "--fragment-study",
        nargs="*",
        metavar="VARIANT",
        help="compare fragments with single rules on dev, one thing changed at a time; "
        "default: all variants",
    )
    parser.add_argument("--without", nargs="*", choices=["brackets"], default=[])
    arguments = parser.parse_args()
    if arguments.work is None:
        if arguments.output is None:
            parser.error("give --work or --output")
        arguments.work = arguments.output.with_name(f"{arguments.output.name}.work")
    print_report(run, arguments)


if __name__ == "__main__":
    main()
