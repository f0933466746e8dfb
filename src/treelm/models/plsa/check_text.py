"""The held-out text for weights: split from the training text, or checked to be different."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from treelm.corpus.encoder import EncodedText, sizes_between
from treelm.errors import EstimationError

#: One document in this many is held out.
ONE_IN = 20
#: A larger share of held-out sentences in the training text is no accident.
LARGEST_OVERLAP = 0.01
#: Shorter sentences are often the same by accident.
SHORTEST = 8

_PRIME = np.uint64(1099511628211)


def part_of(text: EncodedText, documents: npt.NDArray[np.bool_]) -> EncodedText:
    """Return some documents of a text.

    Args:
        text: The text.
        documents: By document, whether it is wanted.
    """
    sizes = sizes_between(text.document_starts)
    return _sentences_of(text, np.repeat(documents, sizes), np.cumsum(documents) - 1)


def split_text(text: EncodedText) -> tuple[EncodedText, EncodedText]:
    """Return a text without every twentieth document, and those documents.

    From a text with fewer documents, every twentieth sentence is held out; of a very short one,
    everything is used twice.

    Args:
        text: The text.
    """
    documents = len(text.document_starts) - 1
    if documents >= ONE_IN:
        chosen = np.arange(documents) % ONE_IN == ONE_IN - 1
        return part_of(text, ~chosen), part_of(text, chosen)
    if len(text) < ONE_IN:
        return text, text
    chosen = np.arange(len(text)) % ONE_IN == ONE_IN - 1
    numbers = np.arange(documents)
    return _sentences_of(text, ~chosen, numbers), _sentences_of(text, chosen, numbers)


def _sentences_of(
    text: EncodedText, sentences: npt.NDArray[np.bool_], numbers: npt.NDArray[np.int64]
) -> EncodedText:
    """Return some sentences of a text; documents get new numbers."""
    sizes = sizes_between(text.starts)
    words = np.repeat(sentences, sizes)
    new_starts = np.concatenate([[0], np.cumsum(sizes[sentences])])
    document_sizes = sizes_between(text.document_starts)
    by_sentence = np.repeat(np.arange(len(document_sizes)), document_sizes)[sentences]
    return EncodedText(
        text.ids[words],
        new_starts.astype(np.uint64),
        numbers[by_sentence].astype(np.uint32),
        0,
        text.fingerprint,
    )


def sentence_hashes(text: EncodedText, *, shortest: int = SHORTEST) -> npt.NDArray[np.uint64]:
    """Return a hash of every sentence of some length, by its ids alone."""
    starts = text.starts.astype(np.int64)
    sizes = sizes_between(text.starts)
    chosen = sizes >= shortest
    if not chosen.any():
        return np.zeros(0, dtype=np.uint64)
    place = np.arange(len(text.ids)) - np.repeat(starts[:-1], sizes)
    with np.errstate(over="ignore"):
        mixed = (text.ids.astype(np.uint64) + np.uint64(1)) * (
            (place.astype(np.uint64) + np.uint64(1)) * _PRIME | np.uint64(1)
        )
        mixed ^= mixed >> np.uint64(29)
        mixed *= np.uint64(0xBF58476D1CE4E5B9)
        sums = np.add.reduceat(mixed, starts[:-1]) if len(mixed) else np.zeros(0, np.uint64)
    return np.asarray(sums[chosen], dtype=np.uint64)


def check_overlap(text: EncodedText, held_out: EncodedText) -> None:
    """Refuse a held-out text whose sentences occur in the training text.

    Sentences of fewer than eight words do not count: they are the same by accident.

    Raises:
        EstimationError: ``E_OVERLAP`` if more than one sentence in a hundred does; ``E_NO_DATA``
            if there is no held-out sentence.
    """
    if not len(held_out):
        raise EstimationError(
            "the held-out text contains no sentence. Is it the right file?", code="E_NO_DATA"
        )
    asked = sentence_hashes(held_out)
    if not len(asked):
        return
    share = float(np.isin(asked, sentence_hashes(text)).mean())
    if share > LARGEST_OVERLAP:
        raise EstimationError(
            f"{share:.1%} of the held-out sentences also occur in the training text, so weights "
            "found on them would trust the counts too much. Hold out other documents.",
            code="E_OVERLAP",
        )
