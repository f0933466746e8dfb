"""Reads documents with a model that depends on them, sentence after sentence."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from treelm.corpus.encoder import EncodedText
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
            text: The sentences; a change of the document number begins a new document.
        """
        log_probs: list[float] = []
        for document, sentence in zip(text.documents.tolist(), text, strict=True):
            if document != self._document:
                self._document, self._context = document, None
            state = self._model.initial(self._context)
            for word in sentence.tolist():
                log_prob, state = self._model.advance(state, word)
                log_probs.append(log_prob)
            log_probs.append(self._model.finish(state))
            self._context = self._model.end_sentence(state)
        scores = np.array(log_probs, dtype=np.float64)
        return self._model.batch_scores(scores, text.ids, text.starts)
