"""Two systems on the same sentences: which is better, and whether that is more than chance.

The test follows from what is compared:

* log probabilities of a text: paired bootstrap over documents, or blocks of sentences;
* right and wrong answers, also on pairs of sentences: exact McNemar test;
* scores of good and bad sentences: paired bootstrap of the average precision, within classes.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from treelm.characters import visible
from treelm.corpus.file_kinds import Wanted
from treelm.corpus.files import Source, read_lines, source_name
from treelm.corpus.score_files import (
    ScoreTable,
    align_tables,
    parse_answers,
    parse_labels,
    parse_scores,
)
from treelm.corpus.words import Words
from treelm.errors import CorpusFormatError, TreelmWarning, UsageError
from treelm.models.interface.model import LanguageModel, Task
from treelm.models.interface.raw_text import shared_tokenizing
from treelm.models.interface.words import check_vocabularies
from treelm.models.registry import load, names_model
from treelm.tasks.evaluate.classification import is_called_good
from treelm.tasks.evaluate.comparison import (
    Comparison,
    Flags,
    compare_answers,
    compare_log_probs,
    compare_rankings,
)
from treelm.tasks.evaluate.measured_text import (
    MeasuredText,
    check_not_trained_on,
    read_measured_text,
    text_of_lines,
)
from treelm.tasks.evaluate.pair_accuracy import evaluate_pairs
from treelm.tasks.evaluate.pair_files import (
    MinimalPairs,
    holds_json_lines,
    holds_table,
    read_json_pairs,
    read_pair_files,
    read_pair_table,
)
from treelm.tasks.evaluate.resampling import ROUNDS
from treelm.tasks.evaluate.slr import Measure, score_text
from treelm.tasks.text_check import TextCheck


@dataclass(frozen=True, kw_only=True)
class CompareOptions:
    """How two systems are compared.

    Args:
        seed: Seed of the random numbers.
        rounds: Number of bootstrap samples.
        measure: Measure by which the sentences of pairs are compared.
        thresholds: Smallest score of a good sentence, for A and for B.
        allow_overlap: Continue if a model was trained on the text.
        threads: Number of threads.
        max_words: Longest sentence that models score; None for their own limits.
    """

    seed: int
    rounds: int = ROUNDS
    measure: Measure = "log_prob"
    thresholds: tuple[float, float] | None = None
    allow_overlap: bool = False
    threads: int = 1
    max_words: int | None = None


def compare(a: Source, b: Source, files: Sequence[Source], options: CompareOptions) -> Comparison:
    """Compare two systems.

    Args:
        a: A model folder, or a file of scores or outcomes.
        b: The same for system B.
        files: For models a text, two files of pairs, or one file of pairs, a table (.tsv, .csv,
            .parquet) or JSON lines (.jsonl); for score files the text they are about, or the
            correct labels; none for outcomes.
        options: Options.

    Raises:
        VocabularyError: ``E_VOCABULARY_MISMATCH`` for probabilities over different words.
        UsageError: if the two are not of the same kind, or files are missing.
    """
    are_models = [names_model(source) for source in (a, b)]
    if all(are_models):
        first, second = (load(each) for each in (a, b))
        if options.max_words is not None:
            first = first.with_max_words(options.max_words)
            second = second.with_max_words(options.max_words)
        return _compare_models(first, second, files, options)
    if any(are_models):
        raise UsageError("compare two model folders or two score files, not one of each.")
    return _compare_files(a, b, files, options)


def _compare_models(
    a: LanguageModel, b: LanguageModel, files: Sequence[Source], options: CompareOptions
) -> Comparison:
    """Compare two models; files are raw text if both of them have a tokenizer."""
    if len(files) not in (1, 2):
        raise UsageError(
            "to compare two models, give a text, a table or a JSON Lines file of pairs, or two "
            "files of good and bad sentences."
        )
    is_raw = a.tokenizer is not None and b.tokenizer is not None
    how: Any = {"tokenizing": is_raw, "tokenize": shared_tokenizing((a, b) if is_raw else ())}
    a, b = (model.with_tokenizer(None) for model in (a, b))
    if len(files) == 2 or holds_json_lines(files[0]) or holds_table(files[0]):
        read: Callable[..., MinimalPairs] = read_pair_files
        if len(files) == 1:
            read = read_pair_table if holds_table(files[0]) else read_json_pairs
        # BLiMP's sentences are raw text for all models.
        pairs = read(*files, **(how if is_raw or read is not read_json_pairs else {}))
        _warn_of_words((a, b), [*pairs.good.sentences, *pairs.bad.sentences], is_raw=is_raw)
        return _compare_on_pairs(a, b, pairs, options)
    check_vocabularies([a.vocabulary, b.vocabulary])
    for model in (a, b):
        model.require(Task.PERPLEXITY)
    text = read_measured_text(files[0], **how)
    _warn_of_words((a, b), text.sentences, is_raw=is_raw)
    if not options.allow_overlap:
        for model in (a, b):
            check_not_trained_on(model, [text])
    first, second = (score_text(model, text, threads=options.threads) for model in (a, b))
    return compare_log_probs(
        first.scores,
        second.scores,
        lengths=text.lengths,
        documents=text.documents,
        seed=options.seed,
        rounds=options.rounds,
    )


def _warn_of_words(
    models: tuple[LanguageModel, LanguageModel], sentences: Sequence[Words], *, is_raw: bool
) -> None:
    """Warn where the text does not look tokenized as the text of a model was."""
    for model in models:
        check = TextCheck(model.vocabulary, tokenized=is_raw, has_option=False)
        check.add_sentences(sentences)
        for sign in check.signs():
            warnings.warn(sign, TreelmWarning, stacklevel=4)


def _compare_on_pairs(
    a: LanguageModel, b: LanguageModel, pairs: MinimalPairs, options: CompareOptions
) -> Comparison:
    first, second = (
        evaluate_pairs(
            model,
            pairs,
            seed=options.seed,
            measure=options.measure,
            allow_overlap=options.allow_overlap,
            rounds=1,  # only the difference needs an interval
            threads=options.threads,
        )
        for model in (a, b)
    )
    found = compare_answers(
        first.right, second.right, items="pairs", seed=options.seed, rounds=options.rounds
    )
    ties = {"ties_a": first.overall.ties, "ties_b": second.overall.ties}
    found.details.update(ties | {"measure": options.measure})
    return found


def _compare_files(
    a: Source, b: Source, files: Sequence[Source], options: CompareOptions
) -> Comparison:
    if len(files) > 1:
        raise UsageError("with score files, give at most one more file: the text or the labels.")
    lines = [list(read_lines(source, Wanted.SCORES)) for source in (a, b)]
    items = [parse_answers(each, source) for each, source in zip(lines, (a, b), strict=True)]
    if items[0] is not None and items[1] is not None:
        return _compare_items(items[0], items[1], (a, b), files, options)
    answers = [parse_labels(each) for each in lines]
    text_lines = list(read_lines(files[0], Wanted.TEXT)) if files else None
    labels = None if text_lines is None else parse_labels(text_lines)
    name = source_name(files[0]) if files else ""
    if answers[0] is not None and answers[1] is not None:
        if text_lines is not None and labels is None:
            raise UsageError(f"{name}: the comparison needs labels, 1 or 0, one per line.")
        return _compare_labels(answers[0], answers[1], labels, name, options)
    # A text or labels are in the order of the first file.
    first, second = align_tables(
        parse_scores(lines[0], a), parse_scores(lines[1], b), by_id=not files
    )
    if labels is not None:
        return _compare_scores_of_classes(first, second, labels, name, options)
    if first.is_classifier or second.is_classifier:
        raise UsageError(
            "scores of classifiers are not probabilities: to compare them, also give the file of "
            "the correct labels, 1 or 0, one per line."
        )
    text = None if text_lines is None else text_of_lines(text_lines, files[0])
    lengths, documents = _lengths_and_documents(first, text)
    return compare_log_probs(
        first.scores,
        second.scores,
        lengths=lengths if lengths is not None else second.lengths,
        documents=documents,
        seed=options.seed,
        rounds=options.rounds,
    )


def _compare_items(
    a: dict[str, bool],
    b: dict[str, bool],
    sources: tuple[Source, Source],
    files: Sequence[Source],
    options: CompareOptions,
) -> Comparison:
    """Compare the answers of two tables, whose rows are matched by id."""
    if files:
        raise UsageError("tables with a column right say what is right; no other file is needed.")
    if a.keys() != b.keys():
        only = next(iter(a.keys() ^ b.keys()))
        having, lacking = (source_name(each) for each in (sources if only in a else sources[::-1]))
        raise CorpusFormatError(
            f'"{visible(only)}" is in {having} and not in {lacking}; they must be about the same '
            "items.",
            code="E_SCORE_IDS",
            path=lacking,
        )
    first, second = np.array(list(a.values())), np.array([b[name] for name in a])
    return compare_answers(first, second, seed=options.seed, rounds=options.rounds)


def _lengths_and_documents(
    table: ScoreTable, text: MeasuredText | None
) -> tuple[npt.NDArray[np.int64] | None, npt.NDArray[np.int64] | None]:
    if text is None:
        return table.lengths, table.documents
    if len(text) != len(table):
        raise CorpusFormatError(
            f"{text.name} has {len(text)} sentences and {table.name} {len(table)} scores; they "
            "must be about the same text.",
            code="E_LENGTH_MISMATCH",
            path=table.name,
        )
    if table.lengths is not None and (text.lengths != table.lengths).any():
        place = int(np.flatnonzero(text.lengths != table.lengths)[0])
        raise CorpusFormatError(
            f"{text.name}:{text.lines[place]}: the sentence has {text.lengths[place]} words, but "
            f'"{table.ids[place]}" in {table.name} has {table.lengths[place]}. Are they in the '
            "same order?",
            code="E_LENGTH_MISMATCH",
            path=text.name,
            line=text.lines[place],
        )
    return text.lengths, text.documents


def _compare_labels(
    a: Flags, b: Flags, labels: Flags | None, name: str, options: CompareOptions
) -> Comparison:
    for answers in (a, b):
        if len(answers) != len(b if labels is None else labels):
            raise CorpusFormatError(
                f"there are {len(a)} answers of A and {len(b)} of B"
                + ("" if labels is None else f", and {name} has {len(labels)} labels")
                + "; they must be about the same items.",
                code="E_LENGTH_MISMATCH",
            )
    if labels is not None:
        a, b = a == labels, b == labels
    return compare_answers(a, b, seed=options.seed, rounds=options.rounds)


def _compare_scores_of_classes(
    a: ScoreTable, b: ScoreTable, labels: Flags, name: str, options: CompareOptions
) -> Comparison:
    if len(labels) != len(a):
        raise CorpusFormatError(
            f"{name} has {len(labels)} labels and {a.name} {len(a)} scores.",
            code="E_LENGTH_MISMATCH",
            path=name,
        )
    thresholds = options.thresholds
    decide_themselves = a.is_classifier and b.is_classifier and thresholds is None
    if thresholds is None and not decide_themselves:
        systems = [(table.scores[labels], table.scores[~labels]) for table in (a, b)]
        return compare_rankings(*systems, seed=options.seed, rounds=options.rounds)
    first, second = (
        is_called_good(table.scores, threshold, strict=decide_themselves) == labels
        for table, threshold in zip((a, b), thresholds or (0.0, 0.0), strict=True)
    )
    return compare_answers(
        first, second, items="sentences", seed=options.seed, rounds=options.rounds
    )
