"""The word error rate of recognised text, and of n-best lists with their oracle."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from treelm.corpus.nbest import NBestColumns
from treelm.errors import CorpusFormatError
from treelm.seeds import generator
from treelm.signature import signature
from treelm.tasks.evaluate.resampling import ROUNDS, Interval, percentile_interval, resampled_sums
from treelm.translation.bleu import check_line_counts
from treelm.translation.metrics import WER
from treelm.translation.word_errors import WordErrors, list_errors, word_errors


@dataclass(frozen=True, slots=True)
class WordErrorRate:
    """How many words of a text are wrong.

    Args:
        counts: Errors by kind, words and sentences.
        interval: Where the rate is in 95 of 100 bootstrap samples of the sentences.
        oracle: Rate of the hypotheses with the fewest errors, for n-best lists.
        signature: How it was computed.
    """

    counts: WordErrors
    interval: Interval
    oracle: float | None
    signature: str

    @property
    def rate(self) -> float:
        """Errors per hundred words of the references."""
        return 100 * self.counts.errors / max(self.counts.words, 1)

    @property
    def sentence_rate(self) -> float:
        """Sentences with an error, of a hundred."""
        return 100 * self.counts.wrong_sentences / max(self.counts.sentences, 1)

    def to_record(self) -> dict[str, object]:
        """Return names and values in reading order."""
        return {
            "wer": self.rate,
            "interval": list(self.interval),
            **({} if self.oracle is None else {"oracle_wer": self.oracle}),
            "errors": self.counts.errors,
            "substitutions": self.counts.substitutions,
            "insertions": self.counts.insertions,
            "deletions": self.counts.deletions,
            "words": self.counts.words,
            "sentence_error_rate": self.sentence_rate,
            "sentences": self.counts.sentences,
            "signature": self.signature,
        }


def word_error_rate(
    references: Sequence[str],
    hypotheses: Sequence[str],
    *,
    seed: int = 0,
    rounds: int = ROUNDS,
    oracle: float | None = None,
) -> WordErrorRate:
    """Return how many words of a text are wrong.

    Args:
        references: What was said, a line for each sentence, words separated by white space.
        hypotheses: What was recognised, in the same order.
        seed: Seed of the bootstrap.
        rounds: Bootstrap samples.
        oracle: What is reported as the rate of the best hypotheses.

    Raises:
        CorpusFormatError: ``E_LENGTH_MISMATCH`` if they are not equally many; ``E_NO_DATA`` if
            there are none.
    """
    check_line_counts(len(hypotheses), [len(references)], what="hypotheses")
    if not references:
        raise CorpusFormatError("there is nothing to measure.", code="E_NO_DATA")
    rows = [word_errors(*pair) for pair in zip(references, hypotheses, strict=True)]
    total = WordErrors()
    for row in rows:
        total = total.added(row)
    items = np.array([(row.errors, row.words) for row in rows], dtype=np.float64)
    drawn = resampled_sums(items, rounds=rounds, generator=generator(seed, 0))
    return WordErrorRate(
        total,
        percentile_interval(-WER.value(drawn)),
        oracle,
        signature(task="wer", tok="none", seed=seed),
    )


def list_error_rate(
    references: Sequence[str], lists: Iterable[tuple[int, NBestColumns]], *, seed: int = 0
) -> WordErrorRate:
    """Return the error rate of the first hypotheses of n-best lists, and of the best ones.

    Args:
        references: What was said, a line for each sentence.
        lists: The lists with the numbers of their sentences; a sentence without one has no words.
        seed: Seed of the bootstrap.
    """
    first = [""] * len(references)
    fewest = [len(text.split()) for text in references]
    for number, each in lists:
        first[number] = each.texts[0]
        errors = list_errors(each.texts, WER.reference([references[number]]))
        fewest[number] = int(errors[:, 0].min())
    words = sum(len(text.split()) for text in references)
    return word_error_rate(references, first, seed=seed, oracle=100 * sum(fewest) / max(words, 1))
