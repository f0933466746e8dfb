"""The tables of Pauls & Klein (2012) on open data: treelet models beside their baselines.

    python experiments/treelet/run.py --data FOLDER --parser PARSER --auto FILE... --output FOLDER

Writes a report folder; see README.md beside this file.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1]))

from ablation_tables import AblationTables
from generator_tables import GeneratorTables
from model_store import FIVE_GRAM, PCFG, RULE, TRANS, TREELET, Stopped
from recipe import print_report, recipe_options
from rival_tables import RivalTables
from training_sets import ALL, replace_text

from treelm.tasks.report.report import Report
from treelm.tasks.sample import SamplingReport, sample_sentences

PARTS = (
    "samples",
    "examples",
    "perplexity",
    "trees",
    "trigram",
    "generators",
    "noisy",
    "rival",
    "mt",
    "curve",
    "ablations",
)

#: Exit status when the time limit is reached; the same command resumes.
GO_ON = 75


class TreeletTables(AblationTables, GeneratorTables, RivalTables):
    """All tables, each by the name of its part."""

    # -- Table 1 ----------------------------------------------------------------------------

    def samples(self) -> None:
        """Sample four sentences of 15 to 20 words from each model that can."""
        rows, rejected = [], []
        for name in (FIVE_GRAM, TREELET, RULE, TRANS, PCFG):
            counts = SamplingReport()
            drawn = sample_sentences(
                self.models.get(self.small, name),
                4,
                seed=self.seed,
                min_words=15,
                max_words=20,
                reject=True,
                report=counts,
            )
            rows += [(name, " ".join(sample.words)) for sample in drawn]
            rejected.append((name, counts.drawn, counts.too_short, counts.too_long))
        self.report.add_table("Samples (Table 1)", ("model", "sentence"), rows)
        self.report.add_table(
            "Samples drawn", ("model", "drawn", "under 15 words", "over 20 words"), rejected
        )


def run(arguments: argparse.Namespace) -> Path:
    """Train, measure, and return the folder of the report."""
    report = Report(
        arguments.output,
        "Treelet models beside their baselines",
        seeds={"order of trees, vocabulary, noise, negatives, bootstrap": arguments.seed},
        options={
            "k": arguments.k,
            "pruning": arguments.pruning,
            "limit": arguments.limit,
            "parts": ",".join(arguments.parts),
            "negatives": arguments.negatives,
            "latent cycles": arguments.latent_cycles,
        },
        recipe="E-SAMPLE, E-PPL, E-TRIGRAM, E-NOISY, E-MTPAIR",
    )
    experiment = TreeletTables(arguments, report)
    for part in PARTS:
        if part in arguments.parts:
            getattr(experiment, part)()
    models = experiment.models
    rows = []
    for path in sorted(models.folder.glob("*/manifest.json")):
        size = sum(file.stat().st_size for file in path.parent.glob("*"))
        rows.append((path.parent.name, f"{size / 1e6:.1f}"))
    report.add_table("Models on disk", ("training set and model", "megabytes"), rows)
    report.add_table(
        "Training sets",
        ("name", "words"),
        [(name, experiment.sets.tokens(name)) for name in experiment.sets.names],
    )
    fingerprint = experiment.sets.vocabulary().fingerprint
    report.add_model(TREELET, vocabulary=fingerprint, seconds=models.seconds(ALL, TREELET))
    return report.write()


def main() -> int:
    """Read the options and run."""
    parser = recipe_options(__doc__)
    parser.add_argument(
        "--work",
        type=Path,
        help="folder of models and scores, kept for the next run; default: OUTPUT.work",
    )
    parser.add_argument("--parser", required=True, help="model folder of a parser, or a parse file")
    parser.add_argument(
        "--auto", type=Path, nargs="*", default=[], help="parsed text to train on as well"
    )
    parser.add_argument("--k", type=int, default=1000, help="trees per sentence")
    parser.add_argument(
        "--pruning", choices=("fast", "default", "accurate"), default="default", help="the parser's"
    )
    parser.add_argument("--limit", type=int, help="sentences of each set; default: all")
    parser.add_argument(
        "--latent-cycles",
        type=int,
        default=0,
        help="split-merge cycles of a latent grammar of the treebanks that judges beside the "
        "others, over the same words; none by default",
    )
    parser.add_argument("--negatives", default="un-debates", help="text of the trigram model")
    parser.add_argument("--parts", nargs="*", choices=PARTS, default=list(PARTS))
    parser.add_argument(
        "--allow-overlap",
        action="store_true",
        help="continue if test sentences occur in the training text",
    )
    parser.add_argument("--minutes", type=float, help="time limit; run again to resume")
    arguments = parser.parse_args()
    if arguments.work is None:
        arguments.work = arguments.output.with_name(arguments.output.name + ".work")
    options = {
        name: str(vars(arguments)[name])
        for name in ("data", "auto", "seed", "limit", "parser", "pruning")
    }
    arguments.work.mkdir(parents=True, exist_ok=True)
    kept = arguments.work / "options.txt"
    text = "".join(f"{name}\t{value}\n" for name, value in options.items())
    if kept.is_file() and kept.read_text() != text:
        parser.error(
            f"{arguments.work} belongs to a run with different options:\n{kept.read_text()}"
        )
    replace_text(kept, text)
    try:
        print_report(run, arguments)
    except Stopped:
        print("Time limit reached; run the same command again to resume.", file=sys.stderr)
        return GO_ON
    return 0


if __name__ == "__main__":
    sys.exit(main())
