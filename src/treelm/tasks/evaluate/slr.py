"""Scores of sentences, and the syntactic log-odds ratio.

The ratio says how much more likely the sentence is than its words in any order, per word:
``SLR(w) = (log p_model(w) - log p_unigram(w)) / number of words``. The unigram model is that of the
model's own training text, after unknown words were replaced, with one added to every count:
``p(w) = (c(w) + 1) / (N + V)``. Sentence ends are in the first probability and not in the second.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from treelm.corpus.encoder import EncodedText, encode_sentences
from treelm.corpus.lengths import TooLongSentence, after_sentences, check_lengths
from treelm.corpus.score_files import ScoreTable
from treelm.corpus.words import Words, sentences_of
from treelm.errors import CorpusFormatError, UnsupportedTask, VocabularyError
from treelm.models.interface.model import LanguageModel, Task
from treelm.models.interface.scores import exact_sums
from treelm.models.interface.spelled import spelling_sums
from treelm.models.interface.unigrams import unigram_log_probs
from treelm.models.interface.words import WordIds, check_vocabularies
from treelm.parallel.progress import SILENT, Progress
from treelm.tasks.evaluate.measured_text import MeasuredText
from treelm.tasks.evaluate.resampling import Numbers, checked_scores

#: The measure of sentences: the log probability (or margin) itself, or the ratio.
Measure = Literal["log_prob", "slr"]


def score_sentences(
    model: LanguageModel,
    sentences: Iterable[Words],
    *,
    with_unigram: bool = False,
    unigram: LanguageModel | None = None,
    ids: Sequence[str] | None = None,
    name: str = "scores",
    threads: int = 1,
    progress: Progress = SILENT,
) -> ScoreTable:
    """Return the scores of sentences, with everything the measures need.

    Args:
        model: Any model that scores.
        sentences: The sentences; an empty one is refused.
        with_unigram: Whether the log probabilities of the words alone are wanted too.
        unigram: The model whose counts are used; by default `model` itself.
        ids: Names of the sentences; by default their numbers from 1.
        name: What messages call the table.
        threads: Number of threads.
        progress: Called with the number of sentences.

    Raises:
        VocabularyError: ``E_VOCABULARY_MISMATCH`` if `unigram` has another vocabulary.
    """
    model.require(Task.SCORE)
    alone = None
    if with_unigram or unigram is not None:
        source = unigram or model
        check_vocabularies([model.vocabulary, source.vocabulary])
        alone = unigram_log_probs(source)
    scores: list[_Scored] = [_Scored(np.zeros(0), [], [])]
    singles: list[Numbers] = [np.zeros(0)]
    lengths: list[npt.NDArray[np.int64]] = [np.zeros(0, dtype=np.int64)]
    rest = sentences_of(model.taken(sentences))
    at_once = model.sentences_at_once
    with progress.step(f"scoring {name}", unit="sentences") as step:
        while batch := list(islice(rest, at_once)):
            text = encode_sentences(batch, model.vocabulary)
            sizes = np.diff(text.starts).astype(np.int64)
            if not sizes.all():
                raise CorpusFormatError(f"{name}: a sentence has no words.", code="E_NO_DATA")
            with after_sentences(sum(map(len, lengths))):
                check_lengths(sizes.tolist(), model.max_words, model.system)
                scores.append(_scored(model, batch, text, threads))
            lengths.append(sizes)
            if alone is not None:
                sums = exact_sums(alone[text.ids], text.starts.astype(np.int64))
                if model.spelling is not None:  # in both probabilities, so that it cancels out
                    sums += spelling_sums(model.spelling, batch)
                singles.append(sums)
            step.advance(len(batch))
    found = checked_scores(np.concatenate([part.log_probs for part in scores]), name)
    has_trees = model.sums_over_trees
    return ScoreTable(
        ids=tuple(ids) if ids is not None else tuple(map(str, range(1, len(found) + 1))),
        scores=found,
        lengths=np.concatenate(lengths),
        unigram=None if alone is None else np.concatenate(singles),
        n_trees=np.array([n for part in scores for n in part.trees]) if has_trees else None,
        fallback=np.array([flag for part in scores for flag in part.fallback], dtype=np.bool_)
        if has_trees
        else None,
        name=name,
    )


class _Scored(NamedTuple):
    """Scores of some sentences; trees and fallbacks of tree models only."""

    log_probs: Numbers
    trees: list[int]
    fallback: list[bool]


def _scored(
    model: LanguageModel, batch: Sequence[tuple[str, ...]], text: EncodedText, threads: int
) -> _Scored:
    if model.sums_over_trees:
        scores = list(model.score_many(batch, threads=threads))
        return _Scored(
            np.array([score.log_prob for score in scores]),
            [score.trees or 0 for score in scores],
            [score.fallback for score in scores],
        )
    own = model.incremental
    if own is not None:
        found = (
            own.score_batch(batch, threads=threads)
            if own.open_vocabulary
            else own.score_ids(text.ids, text.starts, threads=threads)
        )
        return _Scored(exact_sums(found.log_probs, found.starts), [], [])
    return _Scored(model.sentence_log_probs(batch, threads=threads), [], [])


def score_text(
    model: LanguageModel,
    text: MeasuredText,
    *,
    with_unigram: bool | None = False,
    threads: int = 1,
    progress: Progress = SILENT,
) -> ScoreTable:
    """Return the scores of the sentences of a file.

    Args:
        model: Any model that scores.
        text: The sentences.
        with_unigram: Whether the table has log probabilities of the words alone; None for yes where
            the model knows how often words occur.
        threads: Kernel threads; results do not depend on it.
        progress: Told the number of sentences.

    Raises:
        CorpusFormatError: with file and line for a sentence that cannot be scored.
    """
    if with_unigram is None:
        counts = model.unigram_counts
        with_unigram = counts is not None and bool(counts.any())
    try:
        return score_sentences(
            model,
            text.sentences,
            with_unigram=with_unigram,
            name=text.name,
            threads=threads,
            progress=progress,
        )
    except VocabularyError as error:
        ids = WordIds(model.vocabulary)
        for line, words in zip(text.lines, text.sentences, strict=True):
            try:
                ids.sentence(words)
            except VocabularyError as found:
                raise CorpusFormatError(
                    f"{text.name}:{line}: {found}", code=found.code, path=text.name, line=line
                ) from error
        raise
    except TooLongSentence as error:
        raise error.in_line(text.name, text.lines[error.place]) from error


def slr(table: ScoreTable) -> Numbers:
    """Return the syntactic log-odds ratio of every sentence of a table.

    Raises:
        UnsupportedTask: ``E_NO_COUNTS`` if it does not have what the ratio needs.

    Examples:
        >>> halves = np.log([1 / 4 * 1 / 8 * 1 / 8])
        >>> table = ScoreTable(("1",), np.array([-20.0]), np.array([3]), unigram=halves)
        >>> slr(table).round(6)
        array([-4.818274])
    """
    if table.lengths is None or table.unigram is None:
        raise UnsupportedTask(
            f"{table.name}: the log-odds ratio needs the columns len and logp_unigram, which these "
            "scores do not have.",
            code="E_NO_COUNTS",
        )
    ratios: Numbers = (table.scores - table.unigram) / table.lengths
    return checked_scores(ratios, table.name)


def measured_scores(table: ScoreTable, measure: Measure) -> Numbers:
    """Return the values by which sentences are compared."""
    return slr(table) if measure == "slr" else checked_scores(table.scores, table.name)


def slr_scores(
    model: LanguageModel,
    sentences: Iterable[Words],
    *,
    unigram: LanguageModel | None = None,
    threads: int = 1,
) -> Numbers:
    """Return the syntactic log-odds ratio of sentences.

    Args:
        model: A probability model.
        sentences: The sentences.
        unigram: The model whose word counts are used; by default `model` itself.
        threads: Number of threads.
    """
    return slr(
        score_sentences(model, sentences, with_unigram=True, unigram=unigram, threads=threads)
    )
