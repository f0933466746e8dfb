"""Perplexity of treebank grammars, plain and latent, beside 5-grams and treelets of the same trees.

    python experiments/parsers_as_lms/run.py --data FOLDER --output FOLDER [--threads 2] [--seed 1]

Writes a report folder; see README.md beside this file.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

sys.path.append(str(Path(__file__).resolve().parents[1]))

import numpy as np
from recipe import perplexity, recipe_options

from treelm.corpus.brackets import read_trees
from treelm.corpus.corpus import TreeCorpus, TreeSentences
from treelm.corpus.score_files import ScoreTable
from treelm.corpus.temporary import temporary_folder
from treelm.corpus.vocabulary import Vocabulary
from treelm.corpus.vocabulary_file import load_vocabulary, save_vocabulary
from treelm.corpus.vocabulary_rules import VocabularyRule, build_vocabulary
from treelm.grammar.forest_file import ForestFile
from treelm.grammar.parser_options import ParserOptions
from treelm.models.interface.cached_parser import CachedParser
from treelm.models.interface.model import LanguageModel
from treelm.models.interface.parser import k_best_lists
from treelm.models.interface.scoring_views import FlooredScores
from treelm.models.interface.tree_model import TreeModel
from treelm.models.mixture.model import InterpolatedModel
from treelm.models.pcfg.grammar_model import GrammarModel
from treelm.models.pcfg.model import PcfgModel
from treelm.models.registry import load, train
from treelm.tasks.parse_file import parse_into_file
from treelm.tasks.report.report import Report
from treelm.tasks.report.results import Result
from treelm.trees.tree import Tree

TREEBANKS = ("gum", "masc", "craft", "wsj-sample")
NGRAM, PCFG, LATENT, MIXTURE = "5-gram", "PCFG", "PCFG-LA", "5-gram + PCFG"
BOUNDS = ("fast", "default", "accurate")
LIST_SIZES = (1, 10, 100, 1000)
#: Models of trees, and how they are trained: they sum over the best trees of PCFG-LA.
TREE_MODELS: dict[str, tuple[str, dict[str, object]]] = {
    "TREELET-TRANS": ("treelet", {"variant": "trans"}),
    "TREELET-RULE": ("treelet", {"variant": "rule"}),
    "TREELET": ("treelet", {}),
    "HEADLEX": ("headlex", {}),
}
#: Share of the unigram model in the probability of every sentence, for grammars.
FLOOR = 0.001


class Trained(NamedTuple):
    """The models, all over the same vocabulary."""

    ngram: LanguageModel
    pcfg: PcfgModel
    latent: GrammarModel  # type: ignore[type-arg]
    mixture: InterpolatedModel
    of_trees: Mapping[str, TreeModel]


def log(*values: object) -> None:
    """Report progress on standard error."""
    print(*values, file=sys.stderr, flush=True)


def part(data: Path, name: str, split: str) -> Path:
    """Return a file of a treebank."""
    return data / f"treebanks/{name}/{split}.mrg"


def kept_model(folder: Path | None, name: str, make: Callable[[], LanguageModel]) -> LanguageModel:
    """Return a model from a folder, or train it and keep it there."""
    if folder is None:
        return make()
    if not (folder / name).exists():
        make().save(folder / name)
    return load(folder / name)


def train_models(report: Report, arguments: argparse.Namespace) -> Trained:
    """Return all models; those kept by an earlier run are not trained again."""
    folder, threads = arguments.models, arguments.threads
    corpora = {
        split: TreeCorpus(
            tuple(part(arguments.data, name, split) for name in TREEBANKS), on_error="skip"
        )
        for split in ("train", "dev")
    }
    report.add_input("training trees", corpora["train"], role="train")
    report.add_input("development trees", corpora["dev"], role="tune")
    vocabulary = kept_vocabulary(folder, corpora["train"])
    seconds: dict[str, float] = {}

    def made(name: str, system: str, **options: object) -> LanguageModel:
        start = time.perf_counter()
        model = kept_model(
            folder,
            name,
            lambda: train(system, corpora["train"], vocabulary=vocabulary, **options),
        )
        seconds[name] = time.perf_counter() - start
        return model

    ngram = made("ngram", "ngram", order=5)
    pcfg = made("pcfg", "pcfg", lexicon="closed")
    latent = made(
        "pcfg-la",
        "pcfg_la",
        lexicon="closed",
        cycles=arguments.cycles,
        split_iterations=arguments.split_iterations,
        seed=arguments.seed,
        held_out=corpora["dev"],
        threads=threads,
    )
    assert isinstance(pcfg, PcfgModel)
    assert isinstance(latent, GrammarModel)
    mixture = train(
        "interpolated",
        [ngram, pcfg],
        held_out=list(TreeSentences(corpora["dev"])),
        threads=threads,
    )
    assert isinstance(mixture, InterpolatedModel)  # both go word by word
    of_trees: dict[str, TreeModel] = {}
    for name, (system, options) in TREE_MODELS.items():
        model = made(name.lower(), system, **options)
        assert isinstance(model, TreeModel)
        of_trees[name] = model
        report.add_model(name, system=system, vocabulary=model.vocabulary.fingerprint, **options)
    for name, model, facts in (
        (NGRAM, ngram, {"order": 5, "smoothing": "mkn"}),
        (PCFG, pcfg, {"rules": rule_count(pcfg)}),
        (
            LATENT,
            latent,
            {"cycles": arguments.cycles, "subcategories": latent.grammar.total_substates},
        ),
        (MIXTURE, mixture, {"weights": " ".join(f"{weight:.4f}" for weight in mixture.weights)}),
    ):
        log(name, facts)
        report.add_model(
            name, system=model.system, vocabulary=model.vocabulary.fingerprint, **facts
        )
    log("seconds of training", {name: round(value, 1) for name, value in seconds.items()})
    return Trained(ngram, pcfg, latent, mixture, of_trees)


def rule_count(model: GrammarModel) -> int:  # type: ignore[type-arg]
    """Return the rules of a grammar, without its words."""
    return len(model.grammar.unary_rules) + len(model.grammar.binary_rules)


def kept_vocabulary(folder: Path | None, corpus: TreeCorpus) -> Vocabulary:
    """Return the one vocabulary of all models."""
    made = None if folder is None else folder / "vocabulary.txt"
    if made is not None and made.exists():
        return load_vocabulary(made)
    vocabulary = build_vocabulary(TreeSentences(corpus), VocabularyRule(name="stream"))
    if made is not None:
        made.parent.mkdir(parents=True, exist_ok=True)
        save_vocabulary(vocabulary, made)
    return vocabulary


class Scored(NamedTuple):
    """The scores of a model on a test set."""

    table: ScoreTable
    without_parse: int
    seconds: float


def score_set(model: LanguageModel, sentences: Sequence[Sequence[str]], threads: int) -> Scored:
    """Return the scores of sentences."""
    start = time.perf_counter()
    scores = list(model.score_many(sentences, threads=threads))
    seconds = time.perf_counter() - start
    table = ScoreTable(
        ids=tuple(map(str, range(1, len(scores) + 1))),
        scores=np.array([score.log_prob for score in scores]),
        lengths=np.array([len(words) for words in sentences], dtype=np.int64),
        unigram=None,
        name="scores",
    )
    return Scored(table, sum(score.fallback for score in scores), seconds)


def with_trees(
    trained: Trained,
    sentences: Sequence[Sequence[str]],
    forest: Path,
    arguments: argparse.Namespace,
) -> dict[str, LanguageModel]:
    """Return the models of trees with the best trees of sentences, parsed once into a file."""
    parse_into_file(
        trained.latent,
        [(forest.stem, (" ".join(words) for words in dict.fromkeys(sentences)))],
        forest,
        fingerprint=LATENT,
        k=arguments.k,
        options=ParserOptions(),
        threads=arguments.threads,
    )
    parser = CachedParser(ForestFile(forest))
    return {
        label: model.with_parser(parser, arguments.k) for label, model in trained.of_trees.items()
    }


def report_perplexities(
    report: Report,
    trained: Trained,
    models: Mapping[str, LanguageModel],
    tests: Mapping[str, list[Tree]],
    *,
    arguments: argparse.Namespace,
    folder: Path,
) -> None:
    """Report the perplexity of every test set, and the speed; parses are kept in a folder."""
    costs = []
    for name, trees in tests.items():
        sentences = [tree.words for tree in trees]
        of_trees = with_trees(trained, sentences, folder / f"{name}.forest", arguments)
        for label, model in (models | of_trees).items():
            found = score_set(model, sentences, arguments.threads)
            table = found.table
            assert table.lengths is not None
            report.add_scores(label, table, data=name)
            value, interval = perplexity(table.scores, table.lengths, arguments.seed)
            report.add_result(
                Result(
                    table=f"Perplexity of {name}",
                    model=label,
                    metric=f"perplexity ({model.info.exactness.replace('_', ' ')})",
                    data=name,
                    value=value,
                    n=int(table.lengths.sum()) + len(sentences),
                    interval=interval,
                    digits=1,
                )
            )
            rate = len(sentences) / found.seconds
            row = (name, label, len(sentences), found.without_parse, f"{rate:.1f}")
            log(*row, f"{value:.1f}")
            costs.append(row)
    report.add_table(
        "Sentences without a parse, and sentences per second",
        ("test set", "model", "sentences", "without a parse", "sentences per second"),
        costs,
    )


def report_bounds(
    report: Report,
    latent: GrammarModel,  # type: ignore[type-arg]
    tests: Mapping[str, list[Tree]],
    arguments: argparse.Namespace,
) -> None:
    """Report what pruning and k-best lists lose of exact probabilities."""
    rows = []
    for name, trees in tests.items():
        short = [tree.words for tree in trees if len(tree.words) <= arguments.exact_words]
        sentences = short[:: max(1, len(short) // max(1, arguments.exact))][: arguments.exact]
        exact = score_set(latent, sentences, arguments.threads)
        found = {"nothing: exact": (exact.table.scores, exact.seconds)}
        for pruning in BOUNDS:
            bound = score_set(latent.pruned(pruning), sentences, arguments.threads)
            found[f"pruned, {pruning}"] = (bound.table.scores, bound.seconds)
        found |= list_sums(latent, sentences, arguments.threads)
        possible = ~np.isneginf(exact.table.scores)
        items = sum(len(words) + 1 for words in sentences)
        for what, (scores, seconds) in found.items():
            lost = (exact.table.scores - scores)[possible]
            row = (
                name,
                len(sentences),
                what,
                f"{lost.sum() / items / math.log(2.0):.4f}",
                f"{np.exp(-lost).mean():.4f}",
                f"{len(sentences) / seconds:.1f}",
            )
            log(*row)
            rows.append(row)
    report.add_table(
        f"What {LATENT} misses of the exact sum",
        (
            "test set",
            "sentences",
            "left out",
            "bits per word lost",
            "share of the probability kept",
            "sentences per second",
        ),
        rows,
    )


def list_sums(
    latent: GrammarModel,  # type: ignore[type-arg]
    sentences: Sequence[Sequence[str]],
    threads: int,
) -> dict[str, tuple[np.ndarray, float]]:
    """Return the sums over lists of the best trees, and how long they took."""
    found = {}
    for size in LIST_SIZES:
        start = time.perf_counter()
        lists = k_best_lists(latent, sentences, size, threads=threads)
        scores = np.array([score.log_prob for score in latent.score_lists(lists)])
        found[f"all but the {size} best trees"] = (scores, time.perf_counter() - start)
    return found


def run(arguments: argparse.Namespace) -> Path:
    """Train, score, and return the folder of the report."""
    report = Report(
        arguments.output,
        "Parsers as language models",
        seeds={"splits": arguments.seed, "bootstrap": arguments.seed},
        options={
            "cycles": arguments.cycles,
            "pruning": arguments.pruning,
            "floor": FLOOR,
            "exact_sentences": arguments.exact,
            "exact_words": arguments.exact_words,
        },
        recipe="parsers_as_lms",
    )
    trained = train_models(report, arguments)
    tests = {}
    for name in TREEBANKS:
        source = part(arguments.data, name, "test")
        report.add_input(f"{name} test", TreeCorpus((source,), on_error="skip"), role="test")
        tests[name] = list(read_trees(source, on_error="skip"))[: arguments.limit]
    latent = trained.latent if arguments.pruning == "none" else None
    models: dict[str, LanguageModel] = {
        NGRAM: trained.ngram,
        PCFG: FlooredScores(trained.pcfg, FLOOR),
        LATENT: FlooredScores(latent or trained.latent.pruned(arguments.pruning), FLOOR),
        MIXTURE: trained.mixture,
    }
    with temporary_folder() as folder:
        report_perplexities(report, trained, models, tests, arguments=arguments, folder=folder)
    report_bounds(report, trained.latent, tests, arguments)
    return report.write()


def main() -> None:
    """Read the options and run."""
    parser = recipe_options(__doc__, seed="seed of the splits and intervals")
    parser.add_argument("--cycles", type=int, default=5, help="split-merge cycles")
    parser.add_argument("--split-iterations", type=int, default=50)
    parser.add_argument("--models", type=Path, help="folder to keep models in")
    parser.add_argument("--limit", type=int, help="only the first sentences of each test set")
    parser.add_argument(
        "--pruning", choices=("none", *BOUNDS), default="accurate", help="of PCFG-LA"
    )
    parser.add_argument(
        "-k", type=int, default=1000, help="trees of a sentence that models of trees sum over"
    )
    parser.add_argument(
        "--exact", type=int, default=50, help="number of sentences also scored exactly"
    )
    parser.add_argument("--exact-words", type=int, default=30, help="their maximum number of words")
    print(run(parser.parse_args()))


if __name__ == "__main__":
    main()
