"""Neural models of the same text and vocabulary as treelet and n-gram models, beside them.

    python experiments/neural_anchor/run.py --output FOLDER --parsed-text REPORT --parser MODEL
        [--parsed 8] [--parts 0] [--epochs 8] [--device cpu] [--data FOLDER] [--threads 2]

REPORT is the report folder of experiments/parsed_text, whose texts, vocabulary, models and scores
are used. Needs PyTorch (`pip install torch`), as treelm does not. See README.md beside this file.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1]))
sys.path.append(str(Path(__file__).resolve().parents[1] / "blimp"))
sys.path.append(str(Path(__file__).resolve().parents[1] / "parsed_text"))

import numpy as np
import torch
from curves import DEV, FIVE_GRAM, TREELET, Curves, amount
from networks import KINDS, Ids, NetworkModel, Numbers, Sizes, new_model
from pair_results import add_anchors, preferences, report_accuracy
from recipe import check_kept_options, perplexity, print_report, recipe_options
from syntactic import Pairs, Sentences, judged_together, read_blimp, read_zorro

from treelm.corpus.corpus import TreeSentences
from treelm.models.registry import load
from treelm.tasks.report.report import Report
from treelm.tasks.report.results import Result

#: Development sets on which the best epoch is chosen; none of them is measured.
CHOSEN_ON = ("craft", "wsj-sample")
#: Rounds of EM for the weights of a mixture.
_ROUNDS = 100


class Anchors:
    """Trains networks and measures them beside other models; scores are kept.

    Args:
        curves: The other models, and the text of all.
        work: Where networks and scores are kept.
        arguments: Options of the recipe.
    """

    def __init__(self, curves: Curves, work: Path, arguments: argparse.Namespace) -> None:
        self.curves = curves
        self.work = work
        self.arguments = arguments
        self.costs: dict[str, tuple[int, float, float]] = {}

    def encoded(self, text: Sequence[Sequence[str]]) -> list[Ids]:
        """Return sentences as numbers of the words that all models know."""
        vocabulary = self.curves.vocabulary
        return [vocabulary.encode(words).astype(np.int64) for words in text]

    def network(self, kind: str) -> NetworkModel:
        """Return a trained network; its training goes on where it was interrupted."""
        arguments = self.arguments
        corpus = TreeSentences(self.curves.corpus(arguments.parts))
        text = self.encoded([words for words in corpus if words])
        held_out = self.encoded(
            [words for name in CHOSEN_ON for words in self.curves.sentences(name)]
        )
        counts = np.bincount(np.concatenate(text), minlength=len(self.curves.vocabulary))
        sizes = Sizes.of(kind, arguments.epochs)
        model = new_model(
            kind,
            counts,
            sizes,
            longest=arguments.longest,
            seed=arguments.seed,
            device=arguments.device,
        )
        began = time.process_time()
        model.learn(
            text,
            held_out,
            sizes,
            seed=arguments.seed,
            checkpoint=self.work / f"{kind}-{arguments.parts}.{arguments.seed}.pt",
            tell=lambda line: print(f"{kind}: {line}", file=sys.stderr, flush=True),
        )
        seconds = time.process_time() - began
        began = time.process_time()
        measured = self.encoded(self.curves.sentences(DEV[0]))
        model.scores(measured)
        words = sum(map(len, measured)) / (time.process_time() - began)
        self.costs[kind] = (model.parameters, seconds, words)
        return model

    def scores(
        self, networks: Mapping[str, NetworkModel], name: str, text: Sentences
    ) -> dict[str, Numbers]:
        """Return the log probabilities of sentences by every model, found now or before."""
        parts = self.arguments.parts
        found = {
            model: self.curves.scores(model, parts, name, text) for model in (FIVE_GRAM, TREELET)
        }
        for kind, network in networks.items():
            path = self.work / f"{name}.{kind}-{parts}.{self.arguments.seed}.npy"
            if not path.exists():
                with path.with_suffix(".part").open("wb") as file:
                    np.save(file, network.scores(self.encoded(text)))
                path.with_suffix(".part").replace(path)
            found[kind] = np.load(path)
        return found


def mixed(scores: Sequence[Numbers]) -> Numbers:
    """Return the log probabilities of a mixture, of which each half has its weights from the other.

    Args:
        scores: Log probabilities of the same sentences by each model.
    """
    columns = np.column_stack(scores)
    best = columns.max(axis=1, keepdims=True)
    shares = np.exp(columns - best)
    halves = np.arange(len(columns)) % 2 == 0
    found = np.empty(len(columns))
    for half in (halves, ~halves):
        weights = np.full(columns.shape[1], 1 / columns.shape[1])
        for _ in range(_ROUNDS):
            joint = shares[~half] * weights
            weights = (joint / joint.sum(axis=1, keepdims=True)).mean(axis=0)
        found[half] = best[half, 0] + np.log(shares[half] @ weights)
    return found


def report_perplexity(
    report: Report, data: str, scores: Mapping[str, Numbers], text: Sentences, seed: int
) -> None:
    """Report the perplexity of every model and of mixtures of them."""
    lengths = np.array([len(words) for words in text])
    single = dict(scores)
    networks = [name for name in scores if name in KINDS]
    together = [[FIVE_GRAM, TREELET]]
    together += [[name, other] for name in networks for other in (FIVE_GRAM, TREELET)]
    together += [[name, FIVE_GRAM, TREELET] for name in networks]
    for names in together:
        single[" + ".join(names)] = mixed([scores[name] for name in names])
    for name, values in single.items():
        value, interval = perplexity(values, lengths, seed)
        report.add_result(
            Result(
                table="Perplexity",
                model=name,
                metric="perplexity",
                data=data,
                value=value,
                n=int(lengths.sum()) + len(lengths),
                interval=interval,
                digits=1,
            )
        )


def report_pairs(report: Report, pairs: Pairs, scores: Mapping[str, Numbers], seed: int) -> None:
    """Report how every model judges pairs, alone and with others."""
    differences = {name: preferences(*np.split(both, 2)) for name, both in scores.items()}
    groups = [(FIVE_GRAM, TREELET)]
    groups += [(kind, FIVE_GRAM, TREELET) for kind in scores if kind in KINDS]
    rows = [(name, pairs.name, values) for name, values in differences.items()]
    for names in groups:
        found = judged_together(pairs, {name: differences[name] for name in names})
        halves = next(iter(found.values()))[~pairs.first]
        rows.append((" + ".join(names), f"{pairs.name}, second halves", halves))
    rows += [
        (name, f"{pairs.name}, second halves", values[~pairs.first])
        for name, values in differences.items()
    ]
    for name, data, values in rows:
        report_accuracy(report, name, data, values, seed)
    kinds = sorted(set(pairs.phenomena))
    report.add_table(
        f"{pairs.name} by phenomenon",
        ("phenomenon", "n", *differences),
        [
            (
                kind,
                int(pairs.of_phenomenon(kind).sum()),
                *(
                    f"{(each[pairs.of_phenomenon(kind)] > 0).mean():.3f}"
                    for each in differences.values()
                ),
            )
            for kind in kinds
        ],
    )


def run(arguments: argparse.Namespace) -> Path:
    """Train the networks, measure all models, and write the report."""
    torch.set_num_threads(arguments.threads)
    source = arguments.parsed_text.with_name(f"{arguments.parsed_text.name}.work")
    forests = [source / f"parsed/part-{number:02}.forest" for number in range(arguments.parsed)]
    missing = [str(path) for path in forests if not path.exists()]
    if missing:
        raise SystemExit(f"{missing[0]} is not there: run experiments/parsed_text first")
    parser = load(arguments.parser).with_tokenizer(None)
    curves = Curves(
        arguments.data, source, parser, forests, k=arguments.k, threads=arguments.threads
    )
    work = arguments.output.with_name(f"{arguments.output.name}.work")
    check_kept_options(work, {"parsed": arguments.parsed, "epochs": arguments.epochs})
    anchors = Anchors(curves, work, arguments)
    texts: dict[str, Sentences] = {name: curves.sentences(name) for name in DEV}
    collections = {
        pairs.name: pairs for pairs in (read(arguments.data) for read in (read_blimp, read_zorro))
    }
    texts |= {name: (*pairs.good, *pairs.bad) for name, pairs in collections.items()}
    held_out = [words for name in CHOSEN_ON for words in curves.sentences(name)]
    read = TreeSentences(curves.corpus(arguments.parts))
    arguments.longest = max(
        len(words) for text in (*texts.values(), held_out, read) for words in text
    )
    networks = {kind: anchors.network(kind) for kind in arguments.kinds}
    report = Report(
        arguments.output,
        f"Neural models of the same text: {amount(arguments.parts)}",
        seeds={"networks and intervals": arguments.seed},
        options={name: getattr(arguments, name) for name in ("parsed", "parts", "epochs", "kinds")},
        recipe=__doc__,
    )
    for name, text in texts.items():
        scores = anchors.scores(networks, name, text)
        if name in collections:
            report_pairs(report, collections[name], scores, arguments.seed)
        else:
            report_perplexity(report, f"{name} dev", scores, text, arguments.seed)
    report.add_table(
        "Cost",
        (
            "network",
            "parameters",
            "processor seconds of training",
            "words scored per processor second",
        ),
        [
            (name, f"{parameters:,}", f"{seconds:,.0f}", f"{words:,.0f}")
            for name, (parameters, seconds, words) in anchors.costs.items()
        ],
    )
    add_anchors(report, "Accuracy")
    return report.write()


def options() -> argparse.ArgumentParser:
    """Return the options of this recipe."""
    parser = recipe_options(__doc__, seed="seed of the networks and intervals")
    parser.add_argument("--parsed-text", type=Path, required=True, help="report of parsed_text")
    parser.add_argument("--parser", required=True, help="the parser of parsed_text")
    parser.add_argument("--parsed", type=int, default=8, help="parts that were parsed")
    parser.add_argument("--parts", type=int, default=0, help="parts that networks are trained on")
    parser.add_argument("-k", type=int, default=20, help="trees of a sentence that is scored")
    parser.add_argument("--epochs", type=int, default=8, help="how often they read the text")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=list(KINDS))
    return parser


if __name__ == "__main__":
    print_report(run, options().parse_args())
