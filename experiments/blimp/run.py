"""BLiMP minimal pairs, judged by 5-gram models of open text and by their mixture.

    python experiments/blimp/run.py --data FOLDER --output FOLDER [--threads 2] [--seed 1]

Writes a report folder; see README.md beside this file.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Mapping
from itertools import chain
from pathlib import Path
from typing import NamedTuple

sys.path.append(str(Path(__file__).resolve().parents[1]))

import numpy as np
from pair_results import MIXTURE, Flags, PairScores, report_groups, report_overall, report_phenomena
from recipe import recipe_options

from treelm.corpus.corpus import Fingerprint, TextCorpus
from treelm.corpus.files import read_lines
from treelm.corpus.vocabulary import Vocabulary
from treelm.corpus.vocabulary_rules import VocabularyRule, build_vocabulary
from treelm.models.interface.model import LanguageModel
from treelm.models.mixture.model import InterpolatedModel
from treelm.models.ngram.config import NgramConfig
from treelm.models.ngram.model import NgramModel
from treelm.models.ngram.train import train_ngram
from treelm.models.registry import train
from treelm.models.run import Run
from treelm.tasks.evaluate.pair_files import MinimalPairs, read_json_pairs
from treelm.tasks.evaluate.slr import score_sentences
from treelm.tasks.report.report import Report
from treelm.tasks.report.results import Result

TEXTS = ("reuters", "un-debates", "eltec")


class SplitText(NamedTuple):
    """The documents of a text: training and held-out."""

    train: TextCorpus
    held_out: TextCorpus


def split_documents(source: Path, folder: Path, every: int) -> SplitText:
    """Write every n-th document of a text to one file, the others to another."""
    name = source.name.split(".")[0]
    train, held_out = folder / f"{name}.train.txt", folder / f"{name}.held-out.txt"
    document, starts = -1, True
    with train.open("w", encoding="utf-8") as kept, held_out.open("w", encoding="utf-8") as rest:
        for line in read_lines(source):
            if not line.strip():
                starts = True
                continue
            document += starts
            target = rest if document % every == every - 1 else kept
            target.write(f"\n{line.strip()}\n" if starts else f"{line.strip()}\n")
            starts = False
    return SplitText(TextCorpus((train,)), TextCorpus((held_out,)))


def score_pairs(model: LanguageModel, pairs: MinimalPairs, threads: int) -> PairScores:
    """Return the scores of all sentences."""
    good, bad = (
        score_sentences(model, text.sentences, with_unigram=True, threads=threads)
        for text in (pairs.good, pairs.bad)
    )
    return PairScores(good, bad)


def train_models(
    report: Report, texts: Mapping[str, SplitText], vocabulary: Vocabulary, order: int, threads: int
) -> dict[str, NgramModel]:
    """Return one model for each text, all over the same vocabulary."""
    models = {}
    for name, text in texts.items():
        start = time.perf_counter()
        model = train_ngram(
            text.train, NgramConfig(order=order), vocabulary=vocabulary, run=Run(threads=threads)
        )
        trained = model.corpora[0]
        fingerprint = Fingerprint(trained.sha256, trained.sentences, trained.tokens)
        report.add_input(name, fingerprint, role="train")
        report.add_input(f"{name} held out", text.held_out, role="tune")
        report.add_model(
            f"5-gram {name}",
            system="ngram",
            order=order,
            smoothing="mkn",
            vocabulary=vocabulary.fingerprint,
            seconds=round(time.perf_counter() - start, 1),
        )
        models[f"5-gram {name}"] = model
    return models


def mix_models(
    report: Report, models: Mapping[str, NgramModel], texts: Mapping[str, SplitText], threads: int
) -> InterpolatedModel:
    """Return the mixture that makes the held-out documents of all texts most likely."""
    held_out = chain.from_iterable(text.held_out for text in texts.values())
    mixture = train("interpolated", list(models.values()), held_out=list(held_out), threads=threads)
    assert isinstance(mixture, InterpolatedModel)  # all parts go word by word
    weights = {name: round(w, 4) for name, w in zip(models, mixture.weights, strict=True)}
    report.add_model(
        MIXTURE,
        system="interpolated",
        vocabulary=mixture.vocabulary.fingerprint,
        weights=", ".join(f"{name} {weight}" for name, weight in weights.items()),
    )
    report.add_table("Weights of the mixture", ("model", "weight"), list(weights.items()))
    return mixture


def report_perplexities(
    report: Report,
    models: Mapping[str, LanguageModel],
    texts: Mapping[str, SplitText],
    threads: int,
) -> None:
    """Report how well each model predicts the held-out documents of each text."""
    for name, model in models.items():
        for text, parts in texts.items():
            found = model.perplexity(parts.held_out, threads=threads)
            report.add_result(
                Result(
                    table="Held-out documents",
                    model=name,
                    metric="perplexity",
                    data=text,
                    value=found.perplexity,
                    n=found.tokens + found.sentences,
                    digits=1,
                )
            )


def report_unknown_words(report: Report, pairs: MinimalPairs, vocabulary: Vocabulary) -> Flags:
    """Report how many words are unknown, and return which pairs have none."""
    unknown: Counter[str] = Counter()
    tokens = 0
    known = np.ones(len(pairs), dtype=np.bool_)
    with_unknown = 0
    for place, both in enumerate(zip(pairs.good.sentences, pairs.bad.sentences, strict=True)):
        for words in both:
            missing = [word for word in words if word not in vocabulary]
            unknown.update(missing)
            tokens += len(words)
            with_unknown += bool(missing)
            known[place] &= not missing
    rows = [
        ("words", unknown.total(), tokens),
        ("sentences with one", with_unknown, 2 * len(pairs)),
        ("pairs with one", int((~known).sum()), len(pairs)),
    ]
    report.add_table(
        "Unknown words in BLiMP",
        ("what", "unknown", "of", "share"),
        [(what, found, total, f"{found / total:.4f}") for what, found, total in rows],
    )
    frequent = unknown.most_common(20)
    report.add_table("Most frequent unknown words", ("word", "times"), frequent)
    return known


def run(arguments: argparse.Namespace, folder: Path) -> Path:
    """Split, train, mix and score; return the folder of the report."""
    threads, seed = arguments.threads, arguments.seed
    report = Report(
        arguments.output,
        "BLiMP: 5-gram models of open text and their mixture",
        seeds={"bootstrap": seed},
        options={
            "order": arguments.order,
            "smoothing": "mkn",
            "vocabulary": "min-count 2",
            "signatures": arguments.signatures,
            "held_out_every": arguments.held_out_every,
        },
        recipe="blimp",
    )
    pairs = read_json_pairs(arguments.data / "grammaticality/blimp.jsonl.xz")
    report.add_input("BLiMP", arguments.data / "grammaticality/blimp.jsonl.xz", role="test")
    texts = {}
    for name in TEXTS:
        source = arguments.data / f"text/{name}.txt.xz"
        texts[name] = split_documents(source, folder, arguments.held_out_every)
    files = tuple(path for text in texts.values() for path in text.train.paths)
    together = TextCorpus(files)
    rule = VocabularyRule(name="min-count", min_count=2, signatures=arguments.signatures)
    vocabulary = build_vocabulary(together, rule)
    singles = train_models(report, texts, vocabulary, arguments.order, threads)
    mixture = mix_models(report, singles, texts, threads)
    models: dict[str, LanguageModel] = {**singles, MIXTURE: mixture}
    report.check_overlap(
        together, chain(pairs.good.sentences, pairs.bad.sentences), name="BLiMP, good and bad"
    )
    report_perplexities(report, models, texts, threads)
    known = report_unknown_words(report, pairs, vocabulary)
    scores = {}
    for name, model in models.items():
        scores[name] = score_pairs(model, pairs, threads)
        for table, data in zip(scores[name].tables, ("good", "bad"), strict=True):
            report.add_scores(name, table, data=data)
    subsets = {"all pairs": np.ones(len(pairs), dtype=np.bool_), "no unknown word": known}
    report_overall(report, scores, subsets, seed)
    report_phenomena(report, scores, pairs.groups["linguistics_term"], seed)
    report_groups(report, scores, pairs.groups["UID"], "paradigm", seed)
    return report.write()


def main() -> None:
    """Read the options and run."""
    parser = recipe_options(__doc__, seed="seed of the intervals")
    parser.add_argument("--order", type=int, default=5)
    parser.add_argument(
        "--held-out-every", type=int, default=50, help="hold out every n-th document"
    )
    parser.add_argument(
        "--signatures",
        action="store_true",
        help="replace unknown words by signatures of their shape",
    )
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        print(run(arguments, Path(folder)))


if __name__ == "__main__":
    main()
