"""From sentences to log probabilities."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from treelm.corpus.files import Source, source_name
from treelm.corpus.lengths import TooLongSentence
from treelm.corpus.words import split_words
from treelm.errors import CorpusFormatError, VocabularyError
from treelm.models.interface.model import LanguageModel, Task
from treelm.models.interface.words import WordIds
from treelm.parallel.progress import SILENT, Progress
from treelm.tasks.text_check import TextCheck


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
    check: TextCheck | None = None,
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
        check: Told the words and those that are unknown.
        progress: Called with the number of sentences.

    Raises:
        CorpusFormatError: with the line, for anything but a sentence of words.
    """
    model.require(Task.SCORE)
    rest = iter(lines)
    report = ScoringReport() if report is None else report
    check = TextCheck(model.vocabulary) if check is None else check
    size = model.sentences_at_once
    done = 0
    with progress.step(f"scoring {source_name(source)}", unit="sentences") as step:
        while batch := [split_words(line) for line in islice(rest, 1 if line_buffered else size)]:
            sentences = [words for words in batch if words]
            try:
                if bos:
                    values = _log_probs(model, sentences, report, check, eos=eos, threads=threads)
                else:
                    report.sentences += len(sentences)
                    check.add_sentences(sentences)
                    fragments = (model.continuation(each, bos=False, eos=eos) for each in sentences)
                    values = [score.log_prob for score in fragments]
                scores = iter(values)
            except VocabularyError as error:
                raise _with_line(error, model, batch, done, source) from error
            except TooLongSentence as error:
                numbers = [number for number, words in enumerate(batch, done + 1) if words]
                raise error.in_line(source_name(source), numbers[error.place]) from error
            step.advance(len(sentences))
            for words in batch:
                yield next(scores) if words else None
            done += len(batch)


def _log_probs(
    model: LanguageModel,
    sentences: Sequence[tuple[str, ...]],
    report: ScoringReport,
    check: TextCheck,
    *,
    eos: bool,
    threads: int,
) -> list[float]:
    report.sentences += len(sentences)
    if not model.sums_over_trees:
        log_probs, unknown = model.log_probs_and_unknown(sentences, eos=eos, threads=threads)
        check.add(sum(map(len, sentences)), unknown)
        for words in sentences[: check.wanted]:
            check.look(words)
        return list(map(float, log_probs))
    check.add_sentences(sentences)
    found = list(model.score_many(sentences, eos=eos, threads=threads))
    report.fallbacks += sum(score.fallback for score in found)
    return [score.log_prob for score in found]


def _with_line(
    error: VocabularyError,
    model: LanguageModel,
    batch: Sequence[tuple[str, ...]],
    done: int,
    source: Source,
) -> CorpusFormatError | VocabularyError:
    """Return the error with the first line of a batch that raises it."""
    ids = WordIds(model.vocabulary)
    name = source_name(source)
    for number, words in enumerate(batch, done + 1):
        try:
            ids.sentence(words)
        except VocabularyError as found:
            return CorpusFormatError(
                f"{name}:{number}: {found}", code=found.code, path=name, line=number
            )
    return error
