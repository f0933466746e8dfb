"""From sentences to log probabilities."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import compress, count, islice
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from treelm import _native
from treelm.corpus.corpus import have_words
from treelm.corpus.encoder import TextPiece, encode_piece, text_pieces
from treelm.corpus.file_kinds import Wanted
from treelm.corpus.files import Source, lines_of, read_lines, source_name
from treelm.corpus.lengths import TooLongSentence
from treelm.corpus.words import SPACE, split_words, words_of
from treelm.errors import CorpusFormatError, VocabularyError
from treelm.models.interface.incremental import IncrementalModel
from treelm.models.interface.model import LanguageModel, Task
from treelm.models.interface.words import WordIds
from treelm.parallel.progress import SILENT, Progress
from treelm.tasks.text_check import TextCheck

#: Bytes of text that the kernel reads at once.
_PIECE_BYTES = 1 << 20
#: What a line without words may consist of.
_BLANK = SPACE.encode()


@dataclass(slots=True)
class ScoringReport:
    """Counts of the sentences; filled while scores are yielded."""

    sentences: int = 0
    """All of them."""
    fallbacks: int = 0
    """Those without a parse, scored by a fallback."""


class ScoredLines(NamedTuple):
    """Lines that were scored together.

    Args:
        log_probs: Natural log probability of every line with words.
        has_words: Which of the lines have words.
    """

    log_probs: npt.NDArray[np.float64]
    has_words: Sequence[bool]

    def to_text(self) -> str:
        r"""Return one number per line as `repr` writes it, nothing for a blank line.

        Examples:
            >>> ScoredLines(np.array([-2.5, -1.0]), [True, False, True]).to_text()
            '-2.5\n\n-1.0\n'
        """
        text = _native.numbers_text(self.log_probs)
        blank = [place for place, given in enumerate(self.has_words) if not given]
        if not blank:
            return text
        numbers, done = text.split("\n"), 0
        lines: list[str] = []
        for before, place in enumerate(blank):  # so many lines without a number come before it
            lines += numbers[done : place - before]
            lines.append("")
            done = place - before
        return "\n".join([*lines, *numbers[done:]])


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
    for batch in score_batches(
        model,
        lines,
        eos=eos,
        bos=bos,
        threads=threads,
        line_buffered=line_buffered,
        source=source,
        report=report,
        check=check,
        progress=progress,
    ):
        scores = iter(batch.log_probs.tolist())
        for given in batch.has_words:
            yield next(scores) if given else None


def score_batches(
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
    lines_before: int = 0,
) -> Iterator[ScoredLines]:
    """Yield what `score_lines` does, as many lines together as the model scores at once.

    `lines_before` lines of the source come before the first of these, which messages count too; all
    else is as there.
    """
    model.require(Task.SCORE)
    rest = iter(lines)
    report = ScoringReport() if report is None else report
    check = TextCheck(model.vocabulary) if check is None else check
    size = model.sentences_at_once
    done = lines_before
    with progress.step(f"scoring {source_name(source)}", unit="sentences") as step:
        while batch := list(islice(rest, 1 if line_buffered else size)):
            # They stay strings, which most models have the kernel split.
            has_words = have_words(batch)
            sentences = list(compress(batch, has_words))
            try:
                if bos:
                    values = _log_probs(model, sentences, report, check, eos=eos, threads=threads)
                else:
                    report.sentences += len(sentences)
                    check.add_sentences(map(split_words, sentences))
                    fragments = (model.continuation(each, bos=False, eos=eos) for each in sentences)
                    values = np.array([score.log_prob for score in fragments])
            except VocabularyError as error:
                raise _with_line(error, model, batch, done, source) from error
            except TooLongSentence as error:
                numbers = list(compress(count(done + 1), has_words))
                raise error.in_line(source_name(source), numbers[error.place]) from error
            step.advance(len(sentences))
            yield ScoredLines(values, has_words)
            done += len(batch)


def score_file(
    model: LanguageModel,
    source: Source,
    *,
    eos: bool = True,
    threads: int = 1,
    report: ScoringReport | None = None,
    check: TextCheck | None = None,
    progress: Progress = SILENT,
) -> Iterator[ScoredLines]:
    """Yield what `score_batches` does of the lines of a file of tokenized text.

    The kernel reads the file itself where a model needs nothing but the ids of words.

    Args:
        model: Any model that scores.
        source: The file.
        eos: Whether the end of the sentence counts.
        threads: Number of threads.
        report: Filled with counts of the sentences.
        check: Told the words and those that are unknown.
        progress: Called with the number of sentences.

    Raises:
        CorpusFormatError: with the line, for anything but a sentence of words.
    """
    model.require(Task.SCORE)
    report = ScoringReport() if report is None else report
    check = TextCheck(model.vocabulary) if check is None else check

    def line_by_line(lines: Iterable[str], before: int, shown: Progress) -> Iterator[ScoredLines]:
        return score_batches(
            model,
            lines,
            eos=eos,
            threads=threads,
            source=source,
            report=report,
            check=check,
            progress=shown,
            lines_before=before,
        )

    if not (isinstance(model, IncrementalModel) and _reads_ids(model)):
        yield from line_by_line(read_lines(source, Wanted.TEXT), 0, progress)
        return
    with progress.step(f"scoring {source_name(source)}", unit="sentences") as step:
        for piece in text_pieces([source], _PIECE_BYTES):
            before = report.sentences
            scored = _scored_piece(model, piece, report, check, eos=eos, threads=threads)
            if scored is not None:
                yield scored
            else:
                lines = lines_of([piece.data], source, piece.lines_before)
                yield from line_by_line(lines, piece.lines_before, SILENT)
            step.advance(report.sentences - before)


def _reads_ids(model: IncrementalModel) -> bool:
    """Return whether a model reads any number of words at once, and nothing but their ids."""
    return model.words_are_cheap and not (model.reads_spelling or model.remembers_documents)


def _scored_piece(
    model: IncrementalModel,
    piece: TextPiece,
    report: ScoringReport,
    check: TextCheck,
    *,
    eos: bool,
    threads: int,
) -> ScoredLines | None:
    """Return the scores of a piece of text; None if its lines must be looked at one by one."""
    try:
        text, _ = encode_piece(piece, model.vocabulary)
    except CorpusFormatError:
        return None
    sentences = len(text.starts) - 1
    lines = piece.data.split(b"\n")
    if not lines[-1]:  # what is behind the last line end
        lines.pop()
    has_words = [True] * sentences
    if len(lines) != sentences:
        is_plain = len(lines) - lines.count(b"") == sentences
        has_words = [bool(line if is_plain else line.strip(_BLANK)) for line in lines]
        if sum(has_words) != sentences:  # a byte order mark is no word
            return None
    scores = model.score_ids(text.ids, text.starts, threads=threads)
    report.sentences += sentences
    check.add(len(text.ids), text.unknown)
    if check.wanted > 0:
        first = lines_of([piece.data], piece.source, piece.lines_before)
        for line in islice(first, check.wanted):
            check.look(split_words(line))
    return ScoredLines(scores.sentence_log_probs(eos=eos), has_words)


def _log_probs(
    model: LanguageModel,
    sentences: Sequence[str],
    report: ScoringReport,
    check: TextCheck,
    *,
    eos: bool,
    threads: int,
) -> npt.NDArray[np.float64]:
    report.sentences += len(sentences)
    if not model.sums_over_trees:
        found = model.log_probs_and_unknown(sentences, eos=eos, threads=threads)
        check.add(found.words, found.unknown)
        for line in sentences[: check.wanted]:
            check.look(split_words(line))
        return found.log_probs
    check.add_sentences(map(split_words, sentences))
    scores = list(model.score_many(sentences, eos=eos, threads=threads))
    report.fallbacks += sum(score.fallback for score in scores)
    return np.array([score.log_prob for score in scores])


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
