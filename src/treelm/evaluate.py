"""How good a model or a parser is: one function per question, as `treelm evaluate` has commands.

A text is the name of a file with one tokenized sentence per line, a `TextCorpus`, or an iterable of
sentences. Models are models or their folders. What comes back are frozen values with the numbers,
their intervals and a signature that says what made them.

Examples:
    >>> import treelm
    >>> gold = [treelm.Tree.from_string("(S (NP (PRP I)) (VP (VBP sleep)))")]
    >>> treelm.evaluate.parses(gold, gold).labelled_f1
    1.0
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import TYPE_CHECKING

from treelm.corpus.brackets import EVALUATION_OPTIONS, read_trees
from treelm.corpus.corpus import TextCorpus
from treelm.corpus.files import Source
from treelm.corpus.words import Words, sentences_of
from treelm.errors import CorpusFormatError
from treelm.models.interface.perplexity import OovMode, Perplexity
from treelm.tasks.everyday import ModelSource, loaded

if TYPE_CHECKING:
    from treelm.tasks.evaluate.classification import Classification
    from treelm.tasks.evaluate.measured_text import MeasuredText
    from treelm.tasks.evaluate.pair_accuracy import PairResults
    from treelm.tasks.evaluate.parse_accuracy import ParseAccuracy
    from treelm.tasks.evaluate.slr import Measure
    from treelm.tasks.evaluate.suites import SuiteResults
    from treelm.trees.tree import Tree

__all__ = ["classification", "pairs", "parses", "perplexity", "suites"]

#: A text: the name of a file, a corpus, or sentences.
Text = Source | Iterable[Words]


def perplexity(
    model: ModelSource,
    text: Text,
    *,
    oov_mode: OovMode = "include",
    strict_docs: bool = False,
    allow_overlap: bool = False,
    threads: int = 1,
) -> Perplexity:
    """Return how surprised a model is by a text; see `LanguageModel.perplexity`.

    Args:
        model: A model whose probabilities add up to 1.
        text: The text; files are read in documents.
        oov_mode: ``include`` unknown words, or ``skip`` them.
        strict_docs: Refuse a text without marks between documents, if the model remembers these.
        allow_overlap: Go on if the model was trained on one of the files.
        threads: Kernel threads; results do not depend on it.

    Raises:
        UsageError: ``E_TEST_IN_TRAINING`` if the model was trained on a file.
    """
    from treelm.tasks.evaluate.measured_text import check_files_not_trained_on

    sentences = TextCorpus((text,)) if isinstance(text, (str, os.PathLike)) else text
    opened = loaded(model)
    if isinstance(sentences, TextCorpus) and not allow_overlap:
        check_files_not_trained_on(opened, sentences.paths)
    return opened.perplexity(
        sentences,
        oov_mode=oov_mode,
        strict_docs=strict_docs,
        allow_overlap=allow_overlap,
        threads=threads,
    )


def parses(
    gold: Source | Iterable[Tree], test: Source | Iterable[Tree | None], *, threads: int = 1
) -> ParseAccuracy:
    """Return the bracket scores of parses, as evalb counts them.

    Args:
        gold: The right trees, or a file of these.
        test: The trees of a parser in the same order, None where it found none, or a file of these.
            Two files may have an empty line for a sentence without a parse.
        threads: Kernel threads; results do not depend on it.

    Raises:
        CorpusFormatError: if the trees do not pair up.
    """
    from treelm.tasks.evaluate.parse_accuracy import evaluate_parses
    from treelm.tasks.evaluate.parse_files import evaluate_parse_files

    if isinstance(gold, (str, os.PathLike)) and isinstance(test, (str, os.PathLike)):
        return evaluate_parse_files(gold, test, EVALUATION_OPTIONS, threads=threads).accuracy
    right = list(
        read_trees(gold, EVALUATION_OPTIONS) if isinstance(gold, (str, os.PathLike)) else gold
    )
    found = list(
        read_trees(test, EVALUATION_OPTIONS) if isinstance(test, (str, os.PathLike)) else test
    )
    _check_pairs("trees", len(right), len(found))
    return evaluate_parses(right, found)


def pairs(
    model: ModelSource,
    good: Text,
    bad: Text | None = None,
    *,
    measure: Measure = "log_prob",
    seed: int = 0,
    allow_overlap: bool = False,
    threads: int = 1,
) -> PairResults:
    """Return how often a model prefers the good sentence of a pair to the bad one.

    Args:
        model: Any model that scores.
        good: Good sentences; or, without `bad`, a file of pairs: a table (.tsv, .csv, .parquet)
            with the columns ``good`` and ``bad``, or JSON lines with the keys of BLiMP.
        bad: The bad sentences, in the same order.
        measure: Compare log probabilities, or syntactic log-odds ratios (``slr``).
        seed: Seed of the intervals.
        allow_overlap: Go on if the model was trained on one of the files.
        threads: Kernel threads; results do not depend on it.
    """
    from treelm.tasks.evaluate.pair_accuracy import evaluate_pairs
    from treelm.tasks.evaluate.pair_files import (
        MinimalPairs,
        holds_table,
        read_json_pairs,
        read_pair_files,
        read_pair_table,
    )

    files = [each for each in (good, bad) if isinstance(each, (str, os.PathLike))]
    if bad is None and len(files) == 1:
        given = (read_pair_table if holds_table(files[0]) else read_json_pairs)(files[0])
    elif len(files) == 2:
        given = read_pair_files(*files)
    else:
        texts = _measured(good, "good sentences"), _measured(bad or (), "bad sentences")
        _check_pairs("sentences", *map(len, texts))
        given = MinimalPairs(*texts, {})
    return evaluate_pairs(
        loaded(model),
        given,
        seed=seed,
        measure=measure,
        allow_overlap=allow_overlap,
        threads=threads,
    )


def suites(
    model: ModelSource, files: Source | Iterable[Source], *, seed: int = 0, threads: int = 1
) -> SuiteResults:
    """Return for how many items of SyntaxGym's test suites the surprisals are as predicted.

    Args:
        model: An incremental model.
        files: Suites in SyntaxGym's JSON format, of raw text; one may be given alone.
        seed: Seed of the intervals.
        threads: Kernel threads; results do not depend on it.
    """
    from treelm.tasks.evaluate.suites import evaluate_suites, read_suite

    several = [files] if isinstance(files, (str, os.PathLike)) else files
    given = [read_suite(file) for file in several]
    return evaluate_suites(loaded(model), given, seed=seed, threads=threads)


def classification(
    model: ModelSource,
    good: Text,
    bad: Text,
    *,
    tuning: tuple[Text, Text] | None = None,
    seed: int = 0,
    allow_overlap: bool = False,
    threads: int = 1,
) -> Classification:
    """Return how well a model tells good and bad sentences apart.

    Args:
        model: A classifier, or a model of probabilities, which then needs `tuning`.
        good: Good sentences.
        bad: Bad ones.
        tuning: Good and bad sentences on which a threshold is tuned.
        seed: Seed of the intervals.
        allow_overlap: Go on if the model was trained on one of the files.
        threads: Kernel threads; results do not depend on it.
    """
    from treelm.tasks.evaluate.classify_texts import evaluate_classification

    return evaluate_classification(
        loaded(model),
        _measured(good, "good sentences"),
        _measured(bad, "bad sentences"),
        seed=seed,
        tuning=None
        if tuning is None
        else (
            _measured(tuning[0], "good sentences for tuning"),
            _measured(tuning[1], "bad sentences for tuning"),
        ),
        allow_overlap=allow_overlap,
        threads=threads,
    )


def _measured(text: Text, name: str) -> MeasuredText:
    from treelm.tasks.evaluate.measured_text import read_measured_text, text_of_lines

    if isinstance(text, (str, os.PathLike)):
        return read_measured_text(text)
    return text_of_lines(map(" ".join, sentences_of(text)), name)


def _check_pairs(what: str, first: int, second: int) -> None:
    if first != second:
        raise CorpusFormatError(
            f"the {what} do not pair up: there are {first} on one side, {second} on the other.",
            code="E_LENGTH_MISMATCH",
        )
