"""Phrase-based translation with a syntactic language model inside, and lists reranked by models.

    python experiments/translation/run.py --output FOLDER [--data FOLDER] [--threads 2]
        [--seeds 5] [--parts tuning tables times reranking] [--alignment LINKS]

Writes a report folder, and keeps models, weights and translations in FOLDER.work, from which an
interrupted run resumes; see README.md beside this file.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1]))

from dataclasses import replace

from decoded import PAPER, System, report_systems
from judged import report_sheet
from language_models import LanguageModels
from lists import ScoredLists
from negatives import Negatives
from recipe import check_kept_options, print_report, recipe_options
from reranked import report_reranking
from tables import report_tables
from times import report_times

from treelm.tasks.report.report import Report
from treelm.translation.mira import EPOCHS
from treelm.translation.weights import Weights

PARTS = ("tuning", "tables", "times", "reranking")


def options() -> argparse.ArgumentParser:
    """Return the options of this recipe."""
    parser = recipe_options(__doc__, seed="seed of the reranking")
    parser.add_argument("--seeds", type=int, default=5, help="seeds of tuning")
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS)
    parser.add_argument("--method", choices=("mert", "mira"), default="mert")
    parser.add_argument("--pops", type=int, default=300, help="pop limit with an HHMM")
    parser.add_argument("--beam", type=int, default=50, help="beam of the HHMM while tuning")
    parser.add_argument(
        "--equal-pops",
        type=int,
        default=20_000,
        help="pop limit of the n-gram model that takes as much time",
    )
    parser.add_argument(
        "--test-pops", type=int, help="pop limit with an HHMM on the test set, besides --pops"
    )
    parser.add_argument("--beams", type=int, nargs="+", default=(50, 2000), help="beams timed")
    parser.add_argument(
        "--beam-pops", type=int, nargs="+", default=(100, 20), help="pop limit of each beam timed"
    )
    parser.add_argument(
        "--stacks", type=int, nargs="+", default=(50, 100, 200, 400, 800, 1600), help="sizes timed"
    )
    parser.add_argument("--timed", type=int, default=20, help="sentences timed per length")
    parser.add_argument("--cycles", type=int, default=5, help="cycles of the parser's grammar")
    parser.add_argument(
        "--reranked", choices=("val", "test_2016_flickr"), default="test_2016_flickr"
    )
    parser.add_argument("--list-size", type=int, default=1000, help="hypotheses reranked")
    parser.add_argument("--rerankers", nargs="+", help="models that rerank; default: all")
    parser.add_argument("--rerank-method", choices=("mert", "mira"), default="mira")
    parser.add_argument("--rerank-seeds", type=int, default=3, help="seeds of reranking")
    parser.add_argument("--epochs", type=int, default=EPOCHS, help="passes of MIRA, reranking")
    parser.add_argument(
        "--alignment", type=Path, help="word alignments of the training text; default: eflomal"
    )
    parser.add_argument("--pairs", type=int, default=10_000, help="pairs that classifiers see")
    parser.add_argument("--rounds", type=int, default=6, help="rounds of the latent SVM")
    return parser


def run(arguments: argparse.Namespace) -> Path:
    """Run the parts that are wanted and write the report."""
    report = Report(
        arguments.output,
        "Translation with syntactic language models",
        seeds={"reranking": arguments.seed, "tuning": arguments.seeds},
        options={"parts": list(arguments.parts), "beam": arguments.beam},
        recipe=__doc__,
    )
    work = arguments.output.with_name(f"{arguments.output.name}.work")
    check_kept_options(
        work,
        {
            name: getattr(arguments, name)
            for name in ("cycles", "method", "pops", "beam", "equal_pops", "pairs", "rounds")
        },
    )
    models = LanguageModels(
        arguments.data,
        work / "models",
        cycles=arguments.cycles,
        threads=arguments.threads,
        negatives=Negatives(
            arguments.data, work / "negatives", arguments.alignment, arguments.threads
        ),
        pairs=arguments.pairs,
        rounds=arguments.rounds,
    )
    if "reranking" in arguments.parts:
        report_reranking(
            report,
            ScoredLists(
                arguments.data,
                arguments.reranked,
                arguments.list_size,
                work / "lists",
                arguments.threads,
            ),
            {
                name: model
                for name, model in models.rerankers().items()
                if arguments.rerankers is None or name in arguments.rerankers
            },
            seeds=range(arguments.seed, arguments.seed + arguments.rerank_seeds),
            method=arguments.rerank_method,
            epochs=arguments.epochs,
        )
    if "tables" in arguments.parts:
        report_tables(
            report,
            System("n-gram", (models.ngram,), replace(PAPER, search="cube")),
            arguments.data,
            work / "tables",
            alignment=arguments.alignment,
            seeds=range(1, arguments.seeds + 1),
            method=arguments.method,
            threads=arguments.threads,
        )
    if not {"tuning", "times"} & {*arguments.parts}:
        return report.write()
    pair = (models.ngram, models.hhmm.with_search(beam_width=arguments.beam))
    plain = replace(PAPER, search="cube")
    narrow = replace(plain, pop_limit=arguments.pops)
    wide = replace(plain, pop_limit=arguments.equal_pops, stack_size=2000, distortion_limit=20)
    systems = [
        System("n-gram", pair[:1], plain),
        System(f"n-gram, HHMM beam {arguments.beam}", pair, narrow),
        System("n-gram, as much time as with the HHMM", pair[:1], wide, tuned_as="n-gram"),
    ]
    if arguments.test_pops is not None:
        name = f"{systems[1].name}, {arguments.test_pops} pops"
        config = replace(plain, pop_limit=arguments.test_pops)
        systems.append(System(name, pair, config, tuned_as=systems[1].name))
    if "tuning" in arguments.parts:
        translated = report_systems(
            report,
            systems,
            arguments.data,
            work / "tuned",
            seeds=arguments.seeds,
            method=arguments.method,
            threads=arguments.threads,
        )
        report_sheet(report, translated, arguments.data, work / "judge", arguments.seed)
    if "times" in arguments.parts:
        weights = Weights.read(work / "tuned" / f"{systems[1].file_name}.seed1.json")
        timed = [
            System("n-gram, stack", pair[:1], PAPER),
            System("n-gram, cube", pair[:1], plain),
        ]
        for beam, pops in zip(arguments.beams, arguments.beam_pops, strict=True):
            both = (models.ngram, models.hhmm.with_search(beam_width=beam))
            name = f"n-gram, HHMM beam {beam}"
            config = replace(plain, pop_limit=pops, min_pops_per_coverage=0)
            timed.append(System(f"{name}, cube, {pops} pops", both, config))
            if beam == min(arguments.beams):
                config = replace(PAPER, early_discard=True)
                timed.append(System(f"{name}, stack, early discard", both, config))
        report_times(
            report,
            timed,
            weights,
            arguments.data,
            number=arguments.timed,
            stacks=arguments.stacks,
        )
    return report.write()


if __name__ == "__main__":
    print_report(run, options().parse_args())
