"""Parsers and language models of Icelandic, Spanish, Japanese and English: F1 and perplexity.

    python experiments/languages/run.py --data FOLDER --output FOLDER --models FOLDER [--split test]

Writes a report folder; see README.md beside this file.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

sys.path.append(str(Path(__file__).resolve().parents[1]))

import numpy as np
from recipe import check_kept_options, perplexity, print_report, recipe_options

from treelm.corpus.brackets import ReadOptions
from treelm.corpus.corpus import TreeCorpus, TreeSentences
from treelm.corpus.score_files import ScoreTable
from treelm.corpus.vocabulary_rules import VocabularyRule, build_vocabulary
from treelm.models.interface.model import LanguageModel
from treelm.models.interface.parser import Parser, best_trees
from treelm.models.registry import load, train
from treelm.tasks.evaluate.parse_accuracy import evaluate_parses
from treelm.tasks.evaluate.parse_intervals import parse_intervals
from treelm.tasks.report.report import Report
from treelm.tasks.report.results import Result

NGRAM, HHMM, TREELET, PARSER = "5-gram", "HHMM", "TREELET", "PCFG-LA"
WORD_MIXTURE = "5-gram + HHMM, by words"
SENTENCE_MIXTURES = {
    "5-gram + TREELET, by sentences": (NGRAM, TREELET),
    "5-gram + HHMM + TREELET, by sentences": (NGRAM, HHMM, TREELET),
}


class Language(NamedTuple):
    """A treebank, the packaged profile that reads it, and how far its grammar is split."""

    treebank: str
    profile: str
    cycles: int


LANGUAGES = {
    "spanish": Language("cess-esp", "spanish", 4),
    "japanese": Language("keyaki", "japanese", 4),
    "icelandic": Language("icepahc", "icelandic", 3),
    "english": Language("gum", "english", 4),
}


def log(*values: object) -> None:
    """Report progress on standard error."""
    print(*values, file=sys.stderr, flush=True)


class Study:
    """The models of one language, trained once, and what they are measured on."""

    def __init__(self, name: str, arguments: argparse.Namespace) -> None:
        self.name, self.arguments = name, arguments
        self.language = LANGUAGES[name]
        self.folder = arguments.models / name
        self.cycles = arguments.cycles or self.language.cycles
        self.seconds: dict[str, float] = {}
        check_kept_options(
            self.folder,
            {"cycles": self.cycles, "beam_width": arguments.beam_width, "k": arguments.k},
        )

    def corpus(self, split: str, *, simplify: bool = True) -> TreeCorpus:
        """Return a part of the treebank; gold trees keep every phrase, as evalb counts them."""
        path = self.arguments.data / "treebanks" / self.language.treebank / f"{split}.mrg"
        options = ReadOptions(profile=self.language.profile, simplify=simplify)
        return TreeCorpus((path,), options, on_error="skip")

    def sentences(self, split: str) -> list[tuple[str, ...]]:
        """Return the words of a part, or of the first sentences of it."""
        return [tree.words for tree in self.corpus(split)][: self.arguments.limit]

    def kept(self, name: str, make: Callable[[], LanguageModel]) -> LanguageModel:
        """Return a model that an earlier run has left, or train it and keep it."""
        if not (self.folder / name).exists():
            start = time.process_time()
            make().save(self.folder / name)
            self.seconds[name] = time.process_time() - start
            log(self.name, name, f"{self.seconds[name]:.0f} s of processor time")
        return load(self.folder / name)

    def models(self) -> dict[str, LanguageModel]:
        """Return all models but the mixtures of sentences."""
        threads, options = self.arguments.threads, self.arguments
        corpus = self.corpus("train")
        vocabulary = build_vocabulary(TreeSentences(corpus), VocabularyRule(name="stream"))
        parser = self.kept(
            "parser",
            lambda: train(
                "pcfg_la", corpus, cycles=self.cycles, seed=options.seed, threads=threads
            ),
        )
        ngram = self.kept("ngram", lambda: train("ngram", corpus, vocabulary=vocabulary))
        hhmm = self.kept(
            "hhmm",
            lambda: train("hhmm", corpus, vocabulary=vocabulary, beam_width=options.beam_width),
        )
        treelet = self.kept(
            "treelet",
            lambda: train(
                "treelet",
                corpus,
                vocabulary=vocabulary,
                parser=parser,
                k=options.k,
                threads=threads,
            ),
        )
        mixture = self.kept(
            "mixture",
            lambda: train(
                "interpolated",
                [ngram, hhmm],
                held_out=self.sentences("dev")[: options.tuning_sentences],
                threads=threads,
            ),
        )
        return {PARSER: parser, NGRAM: ngram, HHMM: hhmm, TREELET: treelet, WORD_MIXTURE: mixture}


def sentence_scores(
    model: LanguageModel, sentences: Sequence[Sequence[str]], threads: int
) -> np.ndarray:
    """Return the natural log probabilities of sentences."""
    return np.array([score.log_prob for score in model.score_many(sentences, threads=threads)])


def mixed(scores: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Return log probabilities of a mixture of models, sentence by sentence.

    Args:
        scores: Log probabilities: models by sentences.
        weights: Of the models.
    """
    parts = scores + np.log(weights)[:, None]
    top = parts.max(axis=0)
    summed: np.ndarray = top + np.log(np.exp(parts - top).sum(axis=0))
    return summed


def mixture_weights(scores: np.ndarray, rounds: int = 200) -> np.ndarray:
    """Return the weights under which sentences are most probable, by EM from equal ones."""
    weights = np.full(len(scores), 1.0 / len(scores))
    for _ in range(rounds):
        shares = np.exp(scores + np.log(weights)[:, None] - mixed(scores, weights))
        weights = np.maximum(shares.mean(axis=1), 1e-12)
        weights /= weights.sum()
    return weights


def add_perplexity(
    report: Report,
    place: tuple[str, str],
    model: str,
    scores: np.ndarray,
    lengths: np.ndarray,
    *,
    metric: str,
    seed: int,
) -> float:
    """Report a perplexity per word and end of sentence, with its bootstrap interval."""
    table, data = place
    value, interval = perplexity(scores, lengths, seed)
    result = Result(
        table=table,
        model=model,
        metric=metric,
        data=data,
        value=value,
        n=int(lengths.sum()) + len(lengths),
        interval=interval,
        digits=1,
    )
    report.add_result(result)
    return value


def report_parses(report: Report, study: Study, parser: LanguageModel) -> None:
    """Report how well the parser finds the trees of the measured part."""
    arguments, data = study.arguments, f"{study.language.treebank} {study.arguments.split}"
    gold = list(study.corpus(arguments.split, simplify=False))[: arguments.limit]
    assert isinstance(parser, Parser)
    start = time.process_time()
    found = best_trees(parser, [tree.words for tree in gold], threads=arguments.threads)
    seconds = time.process_time() - start
    guesses = [None if best is None else best.tree for best in found]
    accuracy = evaluate_parses(gold, guesses, study.language.profile)
    intervals = parse_intervals(accuracy, seed=arguments.seed)
    for metric in ("labelled_precision", "labelled_recall", "labelled_f1", "exact_match"):
        report.add_result(
            Result(
                table=f"Parses, {study.name}",
                model=PARSER,
                metric=metric.replace("_", " "),
                data=data,
                value=getattr(accuracy, metric),
                n=len(gold),
                interval=intervals[metric],
                digits=4,
            )
        )
    log(study.name, f"F1 {accuracy.labelled_f1:.4f}, {accuracy.unparsed} without a parse")
    log(study.name, f"{sum(len(tree.words) for tree in gold) / seconds:.0f} words per second")


def report_perplexities(report: Report, study: Study, models: Mapping[str, LanguageModel]) -> None:
    """Report the perplexities of all models and mixtures on the measured part."""
    arguments, table = study.arguments, f"Perplexity, {study.name}"
    sentences = study.sentences(arguments.split)
    data = f"{study.language.treebank} {arguments.split}"
    lengths = np.array([len(words) for words in sentences], dtype=np.int64)
    singles = [name for name in models if name != PARSER]
    scores = {}
    for name in singles:
        start = time.process_time()
        scores[name] = sentence_scores(models[name], sentences, arguments.threads)
        seconds = time.process_time() - start
        report.add_scores(
            f"{name}, {study.name}",
            ScoreTable(
                ids=tuple(map(str, range(1, len(sentences) + 1))),
                scores=scores[name],
                lengths=lengths,
                unigram=None,
                name="scores",
            ),
            data=data,
        )
        metric = f"perplexity ({models[name].info.exactness.replace('_', ' ')})"
        value = add_perplexity(
            report, (table, data), name, scores[name], lengths, metric=metric, seed=arguments.seed
        )
        log(study.name, name, f"perplexity {value:.1f}, {lengths.sum() / seconds:.0f} words/s")
    most = arguments.tuning_sentences
    if arguments.split == "dev":
        tuned = {name: scores[name][:most] for name in singles}
    else:
        tuning = study.sentences("dev")[:most]
        tuned = {
            name: sentence_scores(models[name], tuning, arguments.threads)
            for name in (NGRAM, HHMM, TREELET)
        }
    for name, parts in SENTENCE_MIXTURES.items():
        weights = mixture_weights(np.stack([tuned[part] for part in parts]))
        value = add_perplexity(
            report,
            (table, data),
            name,
            mixed(np.stack([scores[part] for part in parts]), weights),
            lengths,
            metric="perplexity (lower bound)",
            seed=arguments.seed,
        )
        log(study.name, name, f"perplexity {value:.1f}", weights.round(3).tolist())
        report.add_model(
            f"{name}, {study.name}", weights=" ".join(f"{weight:.3f}" for weight in weights)
        )


def run(arguments: argparse.Namespace) -> Path:
    """Train, measure, and return the folder of the report."""
    report = Report(
        arguments.output,
        "Parsers and language models of four languages",
        seeds={"splits": arguments.seed, "bootstrap": arguments.seed},
        options={
            "split": arguments.split,
            "cycles": arguments.cycles or "by language",
            "k": arguments.k,
            "beam_width": arguments.beam_width,
            "tuning_sentences": arguments.tuning_sentences,
        },
        recipe="languages",
    )
    for name in arguments.languages:
        study = Study(name, arguments)
        report.add_input(f"{name} training trees", study.corpus("train"), role="train")
        if arguments.split == "test":
            report.add_input(f"{name} development trees", study.corpus("dev"), role="tune")
            report.add_input(f"{name} test trees", study.corpus("test"), role="test")
        models = study.models()
        for label, model in models.items():
            report.add_model(
                f"{label}, {name}",
                system=model.system,
                profile=study.language.profile,
                vocabulary=model.vocabulary.fingerprint,
                seconds=round(study.seconds.get(label, 0.0)),
            )
        report_parses(report, study, models[PARSER])
        report_perplexities(report, study, models)
    return report.write()


def main() -> None:
    """Read the options and run."""
    parser = recipe_options(__doc__, threads=1, seed="seed of the splits and intervals")
    parser.add_argument("--models", type=Path, required=True, help="folder to keep models in")
    parser.add_argument("--languages", nargs="+", choices=tuple(LANGUAGES), default=list(LANGUAGES))
    parser.add_argument("--split", choices=("dev", "test"), default="dev", help="what is measured")
    parser.add_argument("--cycles", type=int, help="split-merge cycles (default: by language)")
    parser.add_argument("--k", type=int, default=100, help="trees that TREELET sums over")
    parser.add_argument("--beam-width", type=int, default=500, help="of the HHMM")
    parser.add_argument(
        "--tuning-sentences", type=int, default=500, help="of dev, for the weights of mixtures"
    )
    parser.add_argument("--limit", type=int, help="only the first sentences of the measured part")
    print_report(run, parser.parse_args())


if __name__ == "__main__":
    main()
