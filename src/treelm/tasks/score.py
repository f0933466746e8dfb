"""From sentences to log probabilities."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import compress, count, islice

from treelm.corpus.corpus import is_blank
from treelm.corpus.files import Source, source_name
from treelm.errors import CorpusFormatError, EstimationError, VocabularyError
from treelm.models.interface.model import LanguageModel, Task
from treelm.models.interface.words import WordIds, words_of
from treelm.parallel.progress import SILENT, Progress


@dataclass(slots=True)
class ScoringReport:
    """Counts of the sentences; filled while scores are yielded."""

    sentences: int = 0
    """All of them."""
    fallbacks: int = 0
    """Those without a parse, scored by a fallback."""


def score_lines(
    model: LanguageModel,
    lines: Iterable[str],
    *,
    eos: bool = True,
    bos: bool = True,
    threads: int = 1,
    line_buffered: bool = False,
    source: Source = "-",
    report: ScoringReport | None = None,
    progress: Progress = SILENT,
) -> Iterator[float | None]:
    """Yield one natural log probability per line, None for a blank line.

    Args:
        model: Any model that scores.
        lines: Tokenized sentences, one per line.
        eos: Whether the end of the sentence counts.
        bos: Whether the lines begin sentences; if not, they are fragments.
        threads: Number of threads.
        line_buffered: Score every line as soon as it arrives.
        source: Where the lines come from, for messages.
        report: Filled with counts of the sentences.
        progress: Called with the number of sentences.

    Raises:
        CorpusFormatError: with the line, for anything but a sentence of words.
    """
    model.require(Task.SCORE)
    rest = iter(lines)
    report = ScoringReport() if report is None else report
    size = model.sentences_at_once
    done = 0
    with progress.step(f"scoring {source_name(source)}", unit="sentences") as step:
        while batch := list(islice(rest, 1 if line_buffered else size)):
            # They stay strings, which most models have the kernel split.
            has_words = [not is_blank(line) for line in batch]
            sentences = list(compress(batch, has_words))
            try:
                if bos:
                    values = _log_probs(model, sentences, report, eos=eos, threads=threads)
                else:
                    fragments = (model.continuation(each, bos=False, eos=eos) for each in sentences)
                    values = [score.log_prob for score in fragments]
                scores = iter(values)
            except VocabularyError as error:
                raise _with_line(error, model, batch, done, source) from error
            except EstimationError as error:
                from treelm.models.interface.scoring_views import TooLongSentence

                if not isinstance(error, TooLongSentence):
                    raise
                numbers = list(compress(count(done + 1), has_words))
                name = source_name(source)
                raise CorpusFormatError(
                    f"{name}:{numbers[error.place]}: this sentence of {error.words} words is too "
                    "long for an exact score by the grammar. Split it, or score with --pruning.",
                    code=error.code,
                    path=name,
                    line=numbers[error.place],
                ) from error
            step.advance(len(sentences))
            for given in has_words:
                yield next(scores) if given else None
            done += len(batch)


def _log_probs(
    model: LanguageModel,
    sentences: Sequence[str],
    report: ScoringReport,
    *,
    eos: bool,
    threads: int,
) -> list[float]:
    report.sentences += len(sentences)
    if not model.sums_over_trees:
        values: list[float] = model.sentence_log_probs(sentences, eos=eos, threads=threads).tolist()
        return values
    found = list(model.score_many(sentences, eos=eos, threads=threads))
    report.fallbacks += sum(score.fallback for score in found)
    return [score.log_prob for score in found]


def _with_line(
    error: VocabularyError,
    model: LanguageModel,
    batch: Sequence[str],
    done: int,
    source: Source,
) -> CorpusFormatError | VocabularyError:
    """Return the error with the first line of a batch that raises it."""
    ids = WordIds(model.vocabulary)
    name = source_name(source)
    for number, line in enumerate(batch, done + 1):
        try:
            ids.sentence(words_of(line))
        except VocabularyError as found:
            return CorpusFormatError(
                f"{name}:{number}: {found}", code=found.code, path=name, line=number
            )
    return error
