"""BLEU from additive statistics, as sacreBLEU computes it.

The statistics of sentences add up to those of a text, so that a text is measured again after any
change in time that does not depend on its length: tuning and bootstraps do that thousands of times.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from treelm.errors import CorpusFormatError, UsageError
from treelm.extras import import_extra

#: Longest n-grams that are compared.
ORDER = 4
#: Columns of the statistics: matches and n-grams of each order, length, length of the reference.
COLUMNS = 2 * ORDER + 2
#: What separates the words: white space only, or what sacreBLEU calls 13a.
Tokenizer = Literal["none", "13a"]
#: What is done about orders without a match: nothing, so that BLEU is 0, or what NIST does.
Smoothing = Literal["none", "exp"]

Statistics = npt.NDArray[np.int64]
Numbers = npt.NDArray[np.float64]

_HYPOTHESIS_LENGTH, _REFERENCE_LENGTH = 2 * ORDER, 2 * ORDER + 1


def tokenizer(name: Tokenizer) -> Callable[[str], str]:
    """Return what puts spaces between the words of a text.

    Raises:
        MissingExtra: for 13a, if sacreBLEU is not installed.
        UsageError: for a name that is not known.
    """
    if name == "none":
        return str
    if name == "13a":
        metrics = import_extra("sacrebleu.metrics", "Tokenizing as 13a does")
        tokenize: Callable[[str], str] = metrics.BLEU(tokenize="13a").tokenizer
        return tokenize
    raise UsageError(f'"{name}" is not a tokenizer of BLEU; there are none and 13a.')


@dataclass(frozen=True, slots=True)
class References:
    """The references of one sentence, ready for comparison.

    Their n-grams are the nodes of a trie, and node 0 is what is in none of them: the next node of
    every n-gram of many hypotheses is then one look into an array.

    Args:
        ids: Number of each word that is in a reference, from 1.
        steps: Node of an n-gram, by order, node of the n-gram without its last word, and word.
        most: How often an n-gram counts at most, by order and node.
        lengths: Number of words of each reference, in ascending order.
    """

    ids: dict[str, int]
    steps: tuple[npt.NDArray[np.int32], ...]
    most: tuple[Statistics, ...]
    lengths: tuple[int, ...]

    @classmethod
    def of(cls, texts: Sequence[str]) -> References:
        """Return those of the references of one sentence, words separated by white space."""
        if not texts:
            raise UsageError("BLEU needs a reference for each sentence.")
        sentences = [text.split() for text in texts]
        ids: dict[str, int] = {}
        for words in sentences:
            for word in words:
                ids.setdefault(word, len(ids) + 1)
        nodes: list[dict[tuple[int, int], int]] = [{} for _ in range(ORDER)]
        counts: list[dict[int, int]] = [{} for _ in range(ORDER)]
        for words in sentences:
            found = _node_counts([ids[word] for word in words], nodes)
            for highest, here in zip(counts, found, strict=True):
                for node, count in here.items():
                    highest[node] = max(highest.get(node, 0), count)
        sizes = [1, *(len(each) + 1 for each in nodes)]
        steps = tuple(np.zeros((size, len(ids) + 1), dtype=np.int32) for size in sizes[:-1])
        for table, each in zip(steps, nodes, strict=True):
            for place, node in each.items():
                table[place] = node
        most = tuple(np.zeros(size, dtype=np.int64) for size in sizes[1:])
        for row, count_of in zip(most, counts, strict=True):
            for node, count in count_of.items():
                row[node] = count
        return cls(ids, steps, most, tuple(sorted(map(len, sentences))))

    def closest_length(self, lengths: Statistics) -> Statistics:
        """Return the length of the reference that is closest in length; the shorter of two."""
        own = np.array(self.lengths, dtype=np.int64)
        closest: Statistics = own[np.abs(lengths[:, None] - own).argmin(axis=1)]
        return closest


def _node_counts(
    words: Sequence[int], nodes: Sequence[dict[tuple[int, int], int]]
) -> list[dict[int, int]]:
    """Return how often each n-gram is in a reference, by its node; new ones are added."""
    counts: list[dict[int, int]] = [{} for _ in range(ORDER)]
    for first in range(len(words)):
        node = 0
        for order, word in enumerate(words[first : first + ORDER]):
            node = nodes[order].setdefault((node, word), len(nodes[order]) + 1)
            counts[order][node] = counts[order].get(node, 0) + 1
    return counts


def list_statistics(hypotheses: Sequence[str], references: References) -> Statistics:
    """Return the statistics of hypotheses for one sentence, a row each.

    Args:
        hypotheses: Texts whose words are separated by white space.
        references: Those of the sentence.

    Examples:
        >>> references = References.of(["the cat sat on a mat"])
        >>> list_statistics(["the cat sat on the mat"], references).tolist()
        [[5, 3, 2, 1, 6, 5, 4, 3, 6, 6]]
    """
    look_up = references.ids.get
    number = len(hypotheses)
    lengths = np.empty(number, dtype=np.int64)
    tokens: list[int] = []
    for place, text in enumerate(hypotheses):
        before = len(tokens)
        tokens += [look_up(word, 0) for word in text.split()]
        lengths[place] = len(tokens) - before
    found = np.zeros((number, COLUMNS), dtype=np.int64)
    found[:, _HYPOTHESIS_LENGTH] = lengths
    found[:, _REFERENCE_LENGTH] = references.closest_length(lengths)
    words = np.array(tokens, dtype=np.int32)
    owners = np.repeat(np.arange(number), lengths)
    nodes = np.zeros(len(words), dtype=np.int32)
    for order in range(ORDER):
        found[:, ORDER + order] = np.maximum(lengths - order, 0)
        # The n-grams that begin at each word; those that would run into the next text are dropped.
        size = max(len(words) - order, 0)
        nodes = references.steps[order][nodes[:size], words[order:]]
        nodes[owners[:size] != owners[order:]] = 0
        most = references.most[order]
        counts = np.bincount(
            owners[:size] * len(most) + nodes, minlength=number * len(most)
        ).reshape(number, len(most))
        found[:, order] = np.minimum(counts, most).sum(axis=1)
    return found


def text_statistics(hypotheses: Sequence[str], references: Sequence[Sequence[str]]) -> Statistics:
    """Return the statistics of a text, a row per sentence.

    Args:
        hypotheses: One text per sentence.
        references: One or more translations of the whole text.

    Raises:
        CorpusFormatError: ``E_LENGTH_MISMATCH`` if they are not equally long.
    """
    check_line_counts(len(hypotheses), map(len, references))
    rows = [
        list_statistics([hypothesis], References.of(of_one))
        for hypothesis, of_one in zip(hypotheses, zip(*references, strict=True), strict=True)
    ]
    return np.concatenate([np.zeros((0, COLUMNS), dtype=np.int64), *rows])


def check_line_counts(
    hypotheses: int, references: Iterable[int], *, what: str = "translations"
) -> None:
    """Refuse references that are not as many as what they are compared with.

    Raises:
        CorpusFormatError: ``E_LENGTH_MISMATCH``, with both numbers.
    """
    numbers = list(references)
    if not numbers:
        raise UsageError("BLEU needs references.")
    for place, number in enumerate(numbers, 1):
        if number != hypotheses:
            which = "the references" if len(numbers) == 1 else f"the references number {place}"
            raise CorpusFormatError(
                f"there are {hypotheses} {what}, but {which} are {number}; line n of the one "
                "belongs to line n of the other.",
                code="E_LENGTH_MISMATCH",
            )


def bleu(statistics: npt.ArrayLike, *, smoothing: Smoothing = "none") -> Numbers:
    """Return BLEU, from 0 to 100, of statistics that were added up.

    Args:
        statistics: Any number of rows of `COLUMNS` sums.
        smoothing: What is done about an order without a match.

    Returns:
        One number per row.

    Examples:
        >>> bleu([5, 3, 2, 1, 6, 5, 4, 3, 6, 6]).round(6)
        np.float64(53.728497)
    """
    sums = np.asarray(statistics, dtype=np.float64)
    matches, totals = sums[..., :ORDER], sums[..., ORDER : 2 * ORDER]
    length, reference = sums[..., _HYPOTHESIS_LENGTH], sums[..., _REFERENCE_LENGTH]
    none = (matches == 0) & (totals > 0)
    if smoothing == "exp":
        matches = np.where(none, 0.5 ** np.cumsum(none, axis=-1), matches)
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.where((matches > 0) & (totals > 0), np.log(matches / totals), -np.inf)
        penalty = np.where(length > 0, np.minimum(0.0, 1 - reference / length), -np.inf)
        found: Numbers = 100 * np.exp(logs.mean(axis=-1) + penalty)
    # Without any matched word there is nothing to smooth.
    known: Numbers = np.where(sums[..., 0] > 0, found, 0.0)[()]
    return known
