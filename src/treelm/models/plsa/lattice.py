"""The lattice of a predictor with topics, and a text as its kernel takes it."""

from __future__ import annotations

from treelm import _native
from treelm.corpus.encoder import Ids, Places
from treelm.estimation.lattice import Lattice
from treelm.models.plsa.config import PlsaConfig


def predictor_lattice(words: int, config: PlsaConfig) -> Lattice:
    """Return the lattice of a predictor: last words, and perhaps a topic.

    Args:
        words: Number of words that can be predicted, the sentence end included.
        config: Order and topics.
    """
    return Lattice.grid(words, words=config.order - 1, topics=config.topics > 0)


def topic_text(
    ids: Ids, starts: Places, documents: Places, order: int, end: int
) -> _native.TopicText:
    """Return a text as the kernel of topics takes it; the start has the id after the end."""
    return _native.TopicText(ids, starts, documents, order=order, start=end + 1, end=end)
