"""Answers of judges, and sentences sampled from models."""

from __future__ import annotations

from treelm.errors import UnsupportedTask
from treelm.models.interface.abilities import ExplainsDecisions, WeighsFeatures, has_ability
from treelm.models.interface.classifier import Classifier
from treelm.models.interface.model import LanguageModel
from treelm.seeds import given_or_fresh
from treelm.tasks.sample import sample_sentences
from treelm.trees.tree import Tree
from treelm.view.weighted_tree import draw_weighted_tree
from treelm.web.answers import JudgeAnswer, Piece, SampleAnswer, SampledSentence, Verdict
from treelm.web.limits import ServerLimits
from treelm.web.offered_models import OfferedModels
from treelm.web.questions import JudgeQuestion, SampleQuestion
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
        drawn = "svg" in question.formats and place < MOST_DRAWN
        verdicts.append(_verdict(model, words, drawn=drawn))
    notes = unknown_notes(text, [(name, model)], question)
    if isinstance(model, Classifier) and not model.calibration.is_calibrated:
        notes.append(
            f"{name} could not be calibrated: its probabilities are all 0.5; only labels and "
            "margins say something."
        )
    if not any(verdict.pieces for verdict in verdicts):
        notes.append(f"This {model.system} model does not tell which pieces decided.")
    return JudgeAnswer(model=name, verdicts=verdicts, notes=notes)


def _verdict(model: LanguageModel, words: Sentence, *, drawn: bool) -> Verdict:
    label, margin, probability = model.classify(words)
    pieces, svg = _pieces(model, words, drawn=drawn)
    return Verdict(
        words=list(words),
        label=label,
        margin=finite(margin),
        probability=probability,
        pieces=sorted(pieces, key=lambda piece: -abs(piece.weight))[:_MOST_PIECES],
        svg=svg,
    )


def _pieces(
    model: LanguageModel, words: Sentence, *, drawn: bool
) -> tuple[list[Piece], str | None]:
    """Return what each production or feature adds to the margin, and the tree behind it."""
    try:
        if has_ability(model, ExplainsDecisions):
            found = model.explain(words)  # type: ignore[attr-defined]  # has_ability says so
            if found is None:
                return [], None
            nodes = zip(found.tree.preorder(), found.weights, strict=True)
            pieces = [Piece(name=production(node), weight=weight) for node, weight in nodes]
            return pieces, draw_weighted_tree(found.tree, found.weights) if drawn else None
    except UnsupportedTask:
        pass  # it counts something else than productions
    if not has_ability(model, WeighsFeatures):
        return [], None
    try:
        weights = model.feature_weights(words)  # type: ignore[attr-defined]  # as above
    except UnsupportedTask:
        return [], None
    return [Piece(name=name, weight=weight) for name, weight in weights.items()], None


def production(node: Tree) -> str:
    """Return the production of a node as text.

    Examples:
        >>> production(Tree("NP", [Tree("DT", "the"), Tree("NN", "dog")]))
        'NP → DT NN'
    """
    below = node.word or " ".join(str(child.label) for child in node.children)
    return f"{node.label} → {below}"


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
            )
        )
    return SampleAnswer(model=name, seed=seed, sentences=found)
