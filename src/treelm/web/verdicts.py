"""Answers of judges, and sentences sampled from models."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from treelm.errors import UnsupportedTask
from treelm.models.interface.abilities import (
    ExplainsDecisions,
    ExplainsScores,
    ask_for,
    has_ability,
)
from treelm.models.interface.classifier import Classifier, Explanation
from treelm.models.interface.model import LanguageModel
from treelm.seeds import given_or_fresh
from treelm.tasks.sample import sample_sentences
from treelm.view.latex import draw_latex, escape_latex
from treelm.view.svg import draw_svg
from treelm.view.weighted_tree import draw_weighted_tree, with_weights
from treelm.web.answers import JudgeAnswer, Piece, SampleAnswer, SampledSentence, Verdict
from treelm.web.limits import ServerLimits
from treelm.web.offered_models import OfferedModels
from treelm.web.questions import Format, JudgeQuestion, SampleQuestion
from treelm.web.refusals import Refusal
from treelm.web.surprisal import MOST_DRAWN, finite, unknown_notes
from treelm.web.texts import Sentence, read_text
from treelm.web.work_queue import Ticket

#: Pieces that are listed of a sentence.
_MOST_PIECES = 40


def answer_judge(
    question: JudgeQuestion, models: OfferedModels, limits: ServerLimits, ticket: Ticket
) -> JudgeAnswer:
    """Return whether sentences are good, and what decided."""
    name, model = models.one(question.model, "judge")
    text = read_text(
        question.text,
        tokenized=question.tokenized,
        words=limits.words,
        sentence_words=limits.tree_words,
    )
    verdicts = []
    for place, words in enumerate(text):
        ticket.check()
        drawn = question.formats if place < MOST_DRAWN else ()
        verdicts.append(_verdict(model, words, drawn))
    notes = unknown_notes(text, [(name, model)], question)
    if isinstance(model, Classifier) and not model.calibration.is_calibrated:
        notes.append(
            f"{name} could not be calibrated: its probabilities are all 0.5; only labels and "
            "margins say something."
        )
    if not any(verdict.pieces for verdict in verdicts):
        notes.append(f"This {model.system} model does not tell which pieces decided.")
    return JudgeAnswer(model=name, verdicts=verdicts, notes=notes)


def _verdict(model: LanguageModel, words: Sentence, formats: Sequence[Format]) -> Verdict:
    label, margin, probability = model.classify(words)
    behind = _tree_behind(model, words) if formats else None
    svg = latex = None
    if behind is not None and "svg" in formats:
        svg = draw_weighted_tree(behind.tree, behind.weights)
    if behind is not None and "latex" in formats:
        latex = draw_latex(with_weights(behind.tree, behind.weights))
    return Verdict(
        words=list(words),
        label=label,
        margin=finite(margin),
        probability=probability,
        pieces=_pieces(model, words) if finite(margin) is not None else [],
        elsewhere=None if behind is None else behind.elsewhere,
        svg=svg,
        latex=latex,
    )


def _pieces(model: LanguageModel, words: Sentence) -> list[Piece]:
    """Return what each part adds to the margin, the heaviest first; nothing if it has no parts."""
    if not has_ability(model, ExplainsScores):
        return []
    steps = ask_for(model, ExplainsScores, "explain scores").explain_score(words).steps
    if len(steps) < 2:
        return []
    pieces = [Piece(name=step.what, weight=step.value) for step in steps]
    return sorted(pieces, key=lambda piece: -abs(piece.weight))[:_MOST_PIECES]


def _tree_behind(model: LanguageModel, words: Sentence) -> Explanation | None:
    """Return the tree that decided, if the model weighs its parts."""
    if not has_ability(model, ExplainsDecisions):
        return None
    try:
        return ask_for(model, ExplainsDecisions, "weigh productions").explain(words)
    except UnsupportedTask:  # it counts something else than parts of a tree
        return None


def answer_sample(
    question: SampleQuestion, models: OfferedModels, limits: ServerLimits, ticket: Ticket
) -> SampleAnswer:
    """Return sentences sampled from a model."""
    name, model = models.one(question.model, "sample")
    if question.count > limits.samples:
        raise Refusal(
            422, "E_TOO_MANY", f"at most {limits.samples} sentences are sampled here at once."
        )
    seed = given_or_fresh(question.seed)
    found = []
    for sample in sample_sentences(model, question.count, seed=seed, max_words=question.max_words):
        ticket.check()
        found.append(
            SampledSentence(
                words=list(sample.words),
                log_prob=finite(sample.log_prob),
                complete=sample.complete,
                tree=None if sample.tree is None else str(sample.tree),
                svg=draw_svg(sample.tree) if sample.tree and "svg" in question.formats else None,
                latex=(
                    draw_latex(sample.tree) if sample.tree and "latex" in question.formats else None
                ),
            )
        )
    latex = sentence_list(each.words for each in found) if "latex" in question.formats else None
    return SampleAnswer(model=name, seed=seed, sentences=found, latex=latex)


def sentence_list(sentences: Iterable[Sequence[str]]) -> str:
    r"""Return sentences as a numbered list of LaTeX.

    Examples:
        >>> print(sentence_list([["50", "%", "fell"]]))
        \begin{enumerate}
        \item 50 \% fell
        \end{enumerate}
    """
    items = [rf"\item {' '.join(map(escape_latex, words))}" for words in sentences]
    return "\n".join([r"\begin{enumerate}", *items, r"\end{enumerate}"])
