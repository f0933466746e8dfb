"""Reads documents with a model that depends on them, sentence after sentence."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from treelm.corpus.encoder import EncodedText
from treelm.corpus.words import Word
from treelm.models.interface.scores import BatchScores
from treelm.models.interface.states import Context

if TYPE_CHECKING:
    from treelm.models.interface.incremental import IncrementalModel


class DocumentReader:
    """Scores a text piece by piece; a document may continue from one piece to the next.

    Args:
        model: An incremental model.
    """

    def __init__(self, model: IncrementalModel) -> None:
        self._model = model
        self._document: int | None = None
        self._context: Context | None = None

    def score(self, text: EncodedText) -> BatchScores:
        """Return the log probability of every word and end of the next sentences.

        Args:
            text: The sentences; a change of the document number begins a new document. Unknown
                words are read as they are written, if the text says how.
        """
        log_probs: list[float] = []
        words: list[Word] = text.ids.tolist()
        if text.written is not None:
            places = np.flatnonzero(self._model.word_ids.is_oov[text.ids])
            for place, unknown in zip(places.tolist(), text.written, strict=True):
                words[place] = unknown
        bounds = pairwise(text.starts.tolist())
        for document, (begin, end) in zip(text.documents.tolist(), bounds, strict=True):
            if document != self._document:
                self._document, self._context = document, None
            state = self._model.initial(self._context)
            for word in words[begin:end]:
                log_prob, state = self._model.advance(state, word)
                log_probs.append(log_prob)
            log_probs.append(self._model.finish(state))
            self._context = self._model.end_sentence(state)
        scores = np.array(log_probs, dtype=np.float64)
        return self._model.batch_scores(scores, text.ids, text.starts)
