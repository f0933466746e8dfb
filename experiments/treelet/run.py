"""The tables of Pauls & Klein (2012) on open data: treelet models beside their baselines.

    python experiments/treelet/run.py --data FOLDER --parser PARSER --output FOLDER [--seed 1]

Writes a report folder; see README.md beside this file.
"""

from __future__ import annotations

import argparse
import tempfile
import warnings
from pathlib import Path

from judgement_tables import JudgementTables
from perplexity_tables import PerplexityTables
from tree_scores import (
    FIVE_GRAM,
    TREELET,
)

from treelm.errors import TreelmWarning
from treelm.tasks.report.report import Report
from treelm.tasks.sample import sample_sentences

DATA = Path(__file__).resolve().parents[3] / "shared/data"
PARTS = ("samples", "perplexity", "trigram", "noisy", "mt", "ablations", "curve")


class TreeletTables(PerplexityTables, JudgementTables):
    """All tables, each by the name of its part."""

    # -- Table 1 ----------------------------------------------------------------------------

    def samples(self) -> None:
        """Draw four sentences of 15 to 20 words from TREELET and the 5-gram."""
        rows = []
        for name in (TREELET, FIVE_GRAM):
            drawn = sample_sentences(
                self.models[name], 4, seed=self.seed, min_words=15, max_words=20, reject=True
            )
            rows += [(name, " ".join(sample.words)) for sample in drawn]
        self.report.add_table("Samples (Table 1)", ("model", "sentence"), rows)


def run(arguments: argparse.Namespace, folder: Path) -> Path:
    """Train, measure, and return the folder of the report."""
    report = Report(
        arguments.output,
        "Treelet models beside their baselines",
        seeds={"vocabulary, noise, negatives, bootstrap": arguments.seed},
        options={"k": arguments.k, "limit": arguments.limit, "parts": ",".join(arguments.parts)},
        recipe="E-SAMPLE, E-PPL, E-TRIGRAM, E-NOISY, E-MTPAIR",
    )
    experiment = TreeletTables(arguments, report, folder)
    for part in PARTS:
        if part in arguments.parts:
            getattr(experiment, part)()
    report.add_table("Training", ("model", "seconds"), list(experiment.training.seconds.items()))
    return report.write()


def main() -> None:
    """Read the options and run."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("--data", type=Path, default=DATA, help="folder of the data")
    parser.add_argument("--output", type=Path, required=True, help="report folder to write")
    parser.add_argument(
        "--parser", required=True, help="model folder of a parser, or a file of parses (cache)"
    )
    parser.add_argument("--auto", type=Path, nargs="*", default=[], help="more trees to train on")
    parser.add_argument("--k", type=int, default=1000, help="trees of a sentence")
    parser.add_argument("--limit", type=int, default=200, help="sentences of each set")
    parser.add_argument("--parts", nargs="*", choices=PARTS, default=list(PARTS))
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    with warnings.catch_warnings(), tempfile.TemporaryDirectory() as folder:
        # What is strange in the trees is counted in the report.
        warnings.simplefilter("ignore", TreelmWarning)
        print(run(arguments, Path(folder)))


if __name__ == "__main__":
    main()
