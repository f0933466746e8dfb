"""Which sentences a model was trained on, kept with it as hashes, and how many a test text shares.

A model that was trained by `treelm.train` or ``treelm train`` remembers them, unless it is told not
to; of one that was made from counts, of an ARPA file or by hand nothing is known.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from itertools import islice
from typing import NamedTuple

import numpy as np

from treelm.corpus.corpus import TextCorpus
from treelm.corpus.sentence_filter import LEAST_WORDS, SentenceFilter, line_hashes, sentence_hashes
from treelm.corpus.words import Words, words_of
from treelm.errors import ModelFileError, TreelmWarning, flag
from treelm.store.folder import FolderWriter, ModelFolder
from treelm.store.schema import ANY, Tensor, damage_in, read_tensors

#: File of the hashes in a model folder.
SENTENCES = "sentences.safetensors"
#: Sentences of a test text that are looked at.
MOST_LOOKED_AT = 50_000
#: A larger share of known sentences, and more of them, are worth a warning.
LARGEST_SHARE, FEWEST_KNOWN = 0.05, 3

_SCHEMA = (Tensor("bits", np.uint8, (ANY,)), Tensor("shape", np.uint64, (2,)))


def write_sentences(writer: FolderWriter, sentences: SentenceFilter) -> None:
    """Write the hashes of the training sentences of a model."""
    shape = np.array([sentences.shift, sentences.sentences], np.uint64)
    writer.tables(SENTENCES, {"bits": sentences.bits, "shape": shape})


def read_sentences(folder: ModelFolder) -> SentenceFilter | None:
    """Return the hashes of the training sentences of a model; None if there are none.

    Raises:
        ModelFileError: ``E_MODEL_TABLES`` if they are damaged.
    """
    if SENTENCES not in folder.manifest.files:
        return None
    with damage_in(folder):
        found = read_tensors(folder.tables(SENTENCES), _SCHEMA, only=True)
        shift, sentences = found["shape"].tolist()
        if shift >= 64 or not len(found["bits"]):
            raise ModelFileError(f"{SENTENCES} is no filter of sentences", code="E_MODEL_TABLES")
    return SentenceFilter(found["bits"], shift, sentences)


class KnownSentences(NamedTuple):
    """How many sentences of a text a model was trained on."""

    known: int
    looked_at: int

    @property
    def share(self) -> float:
        """Share of the sentences that were looked at."""
        return self.known / self.looked_at if self.looked_at else 0.0


def find_known(filters: Sequence[SentenceFilter], sentences: Iterable[Words]) -> KnownSentences:
    """Return how many sentences of a text stand in the training data of a model.

    Args:
        filters: The training data: those of every part of a mixture.
        sentences: The text; the first `MOST_LOOKED_AT` sentences are looked at, without those that
            are shorter than five words.
    """
    if isinstance(sentences, TextCorpus):
        hashes = line_hashes(islice(sentences.lines(), MOST_LOOKED_AT))
    else:
        hashes = sentence_hashes(islice(map(words_of, sentences), MOST_LOOKED_AT))
    best = KnownSentences(0, 0)
    for each in filters:
        some = each.looks_at(hashes)
        best = max(
            best,
            KnownSentences(int(each.contains(some).sum()), len(some)),
            key=lambda found: found.share,
        )
    return best


def warn_of_overlap(
    filters: Sequence[SentenceFilter], sentences: Iterable[Words], name: str, *, level: int = 2
) -> None:
    """Warn if many sentences of a text stand in the training data of a model.

    Args:
        filters: The training data; nothing is said if it is not known.
        sentences: The text.
        name: What the warning calls it.
        level: Whose line the warning shows, counted from here.
    """
    consequence = (
        "so the results are better than on new text. Leave them out, or use "
        f"{flag('allow_overlap')}."
    )
    _warn_of_known(filters, sentences, name, consequence, level=level + 1)


def warn_of_tuning_text(
    filters: Sequence[SentenceFilter], sentences: Iterable[Words], name: str
) -> None:
    """Warn if many sentences that a training was tuned on stand in its training data.

    Args:
        filters: The training data.
        sentences: The held-out text, or that of a tuning set.
        name: What the warning calls it.
    """
    consequence = (
        "so what was found on them suits these sentences better than others. Hold out text that "
        "no model is trained on."
    )
    _warn_of_known(filters, sentences, name, consequence, level=3)


def _warn_of_known(
    filters: Sequence[SentenceFilter],
    sentences: Iterable[Words],
    name: str,
    consequence: str,
    *,
    level: int,
) -> None:
    if not filters:
        return
    found = find_known(filters, sentences)
    if found.known >= FEWEST_KNOWN and found.share > LARGEST_SHARE:
        warnings.warn(
            f"{name}: {found.known} of {found.looked_at} sentences of {LEAST_WORDS} words or more "
            f"({found.share:.0%}) stand in the training data of the model, {consequence}",
            TreelmWarning,
            stacklevel=level + 1,
        )
