"""ARPA files: n-gram models of other toolkits, and ours for them.

The file has log10 probabilities and back-off weights, but nothing about the text behind them, so a
model read from one has no counts and its corpora are unknown.
"""

from __future__ import annotations

import math
import re
import warnings
from collections.abc import Callable

import numpy as np

from treelm import _native
from treelm.corpus.file_kinds import Wanted
from treelm.corpus.files import Source, read_blocks, source_name, write_atomically
from treelm.corpus.vocabulary import SENTENCE_END, SENTENCE_START, Vocabulary, VocabularyEntry
from treelm.errors import CorpusFormatError, TreelmWarning, option
from treelm.estimation.backoff_table import BackoffTable
from treelm.estimation.estimate import Precision
from treelm.kernel_errors import kernel_errors
from treelm.models.interface.states import State
from treelm.models.ngram.config import LARGEST_ORDER, NgramConfig
from treelm.models.ngram.model import NgramModel

#: How many sums of probabilities are checked in a file, and how many terms they may have together.
_FEWEST_SUMS, _MOST_SUMS, _MOST_TERMS = 8, 200, 20_000_000


#: Natural log probability of unknown words where a file has no ``<unk>``: KenLM's 10^-100.
OOV_LOG_PROB = -100 * math.log(10)


def read_arpa(
    source: Source,
    *,
    precision: Precision = "single",
    oov_log_prob: float | None = OOV_LOG_PROB,
    threads: int = 1,
) -> NgramModel:
    """Return the model of an ARPA file, perhaps compressed.

    Args:
        source: The file.
        precision: How probabilities are stored; the file has single precision.
        oov_log_prob: Natural log probability of unknown words, before back-off weights, if the file
            has no ``<unk>``; None for a probability of 0.
        threads: Number of threads.

    Raises:
        CorpusFormatError: ``E_ARPA`` with the line if the file is malformed.

    Whether probabilities sum to one is checked in some contexts; `ModelInfo.normalized` says it.
    """
    name = source_name(source)
    reader = _native.ArpaReader()
    try:
        for block in read_blocks(source, wanted=Wanted.ARPA):
            reader.feed(block)
        reader.finish()
        words, order = reader.words, reader.order
        if order > LARGEST_ORDER:
            raise _malformed(name, 1, f"its order is {order}; models go up to {LARGEST_ORDER}")
        native = reader.build(double_precision=precision == "double", threads=threads)
    except _native.KernelError as error:
        code, message, line, _ = error.args
        if code != "E_ARPA":
            with kernel_errors(f"reading {name}"):
                raise
        raise _malformed(name, int(line), str(message)) from error
    vocabulary = Vocabulary(
        tuple(VocabularyEntry(word, 0) for word in words),
        source={"arpa": name},
    )
    config = NgramConfig(order=order, smoothing="arpa")
    counts = np.zeros(len(words) + 1, dtype=np.uint64)
    model = NgramModel(BackoffTable(native), vocabulary, counts, config)
    sums = probability_sums(model)
    model = model.with_sums((min(sums), max(sums)))
    if reader.has_unknown or oov_log_prob is None:
        return model
    if oov_log_prob == OOV_LOG_PROB:
        warnings.warn(
            f"{name} has no <unk>, so unknown words get the log probability {oov_log_prob:.3f} "
            "(10^-100, as in KenLM) and the back-off weights of their contexts. "
            f"{option('oov_log_prob')} gives them another.",
            TreelmWarning,
            stacklevel=2,
        )
    return model.with_oov_log_prob(oov_log_prob)


def probability_sums(model: NgramModel) -> list[float]:
    """Return the sum of the probabilities of all words and the end in some contexts.

    These are the start of a sentence, single words, and what most probably follows each of them, in
    a number that keeps the time bounded.
    """
    words = model.vocabulary.symbols
    left = max(_FEWEST_SUMS, min(_MOST_SUMS, _MOST_TERMS // (len(words) + 1)))
    chosen = range(0, len(words), max(1, len(words) * model.config.order // left))
    sums = []
    for first in (None, *chosen):
        state: State = model.initial()
        following = first
        for _ in range(model.config.order):
            if following is not None:
                state = model.advance(state, words[following]).state
            terms = np.exp(model.distribution(state))
            sums.append(float(terms.sum()))
            if len(sums) == left or not words:
                return sums
            following = int(terms[: len(words)].argmax())
    return sums


def write_arpa(model: NgramModel, target: Source) -> None:
    """Write a model as an ARPA file, compressed if its name says so; it appears only when complete.

    Args:
        model: The model.
        target: The file.
    """
    if any(item.is_signature for item in model.vocabulary.entries):
        warnings.warn(
            "the model replaces unknown words by signatures, which an ARPA file cannot express: "
            "its readers will take all unknown words for <unk>, unless they are replaced in the "
            "text first.",
            TreelmWarning,
            stacklevel=2,
        )
    words = [*model.vocabulary.symbols, SENTENCE_END, SENTENCE_START]
    oov_log_prob = model.config.oov_log_prob
    with write_atomically(target) as file, kernel_errors("writing an ARPA file"):
        write = file.write if oov_log_prob is None else _UnknownWord(file.write, oov_log_prob).write
        _native.write_arpa(model.table.native, words, write)


class _UnknownWord:
    """Passes an ARPA file on, with what the model gives unknown words and its table does not have.

    What is KenLM's own is left out of the file, as it was when it was read.

    Args:
        write: Writes blocks.
        oov_log_prob: Natural log probability of unknown words.
    """

    _NONE = re.compile(rb"ngram 1=(\d+)(.*?\n)-99\t<unk>[^\n]*\n", re.DOTALL)

    def __init__(self, write: Callable[[bytes], object], oov_log_prob: float) -> None:
        self._write, self._oov_log_prob = write, oov_log_prob
        self._start: bytes | None = b""

    def write(self, block: bytes) -> None:
        """Write a block; the first ones together, until the unknown word is among them."""
        if self._start is None:
            self._write(block)
            return
        self._start += block
        if self._NONE.search(self._start):
            self._write(self._NONE.sub(self._replaced, self._start, count=1))
            self._start = None

    def _replaced(self, found: re.Match[bytes]) -> bytes:
        if self._oov_log_prob == OOV_LOG_PROB:
            return b"ngram 1=%d%b" % (int(found[1]) - 1, found[2])
        row = f"{self._oov_log_prob / math.log(10):.8g}\t<unk>\t0\n"
        return b"ngram 1=%b%b%b" % (found[1], found[2], row.encode())


def _malformed(name: str, line: int, what: str) -> CorpusFormatError:
    return CorpusFormatError(
        f"{name}:{line}: {what}. An ARPA file begins with \\data\\ and ends with \\end\\, and "
        "`lmplz` or `treelm convert` write such files.",
        code="E_ARPA",
        path=name,
        line=line,
    )
