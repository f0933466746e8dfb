"""The arithmetic of the scores of sentences, one after the other."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from treelm.corpus.lengths import after_sentences
from treelm.corpus.words import Words
from treelm.models.interface.abilities import ExplainsScores, ask_for
from treelm.models.interface.model import LanguageModel
from treelm.models.interface.score_explanation import ScoreExplanation
from treelm.view.score_explanation import explanation_text


def explain_scores(
    model: LanguageModel, sentences: Iterable[Words]
) -> Iterator[ScoreExplanation | None]:
    """Yield the steps of the score of each sentence; None for one without words.

    Raises:
        UnsupportedTask: if the model does not explain its scores.
    """
    explainer = ask_for(model, ExplainsScores, "explain their scores")
    for done, sentence in enumerate(sentences):
        with after_sentences(done):
            found = explainer.explain_score(sentence) if sentence else None
        yield found


def explained_lines(
    found: Iterable[ScoreExplanation | None], *, in_bits: bool = False
) -> Iterator[str]:
    """Yield explanations as blocks of text with a blank line after each.

    Args:
        found: Explanations; a sentence without words gives a blank line.
        in_bits: Whether log probabilities are written as surprisal.
    """
    for each in found:
        yield "\n" if each is None else explanation_text(each, in_bits=in_bits) + "\n\n"
