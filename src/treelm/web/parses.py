"""Answers about trees: the best ones of a sentence, and the parser after each of its words."""

from __future__ import annotations

import math
from collections.abc import Mapping

from treelm.grammar.scored_tree import ParseStatus, ScoredTree
from treelm.models.interface.abilities import GivesForests, ask_for, has_ability
from treelm.models.interface.model import LanguageModel
from treelm.tasks.bracket_probabilities import bracket_probabilities, tree_brackets
from treelm.tasks.surprisal.parser_states import parser_states
from treelm.trees.constituents import Constituent
from treelm.view.bracket_tree import draw_bracket_tree
from treelm.view.latex import draw_latex
from treelm.view.parser_states import ParserState, draw_parser_states_svg
from treelm.web.answers import (
    Bracket,
    ParserStateAnswer,
    StatesAnswer,
    StepAnswer,
    TreeAnswer,
    TreesAnswer,
)
from treelm.web.limits import ServerLimits
from treelm.web.offered_models import OfferedModels
from treelm.web.questions import Question, StatesQuestion, TreesQuestion
from treelm.web.refusals import Refusal
from treelm.web.surprisal import finite, unknown_notes
from treelm.web.texts import Sentence, read_sentence
from treelm.web.work_queue import Ticket

#: What is said about trees that are not what was asked for.
_STATUS_NOTES = {
    ParseStatus.LOOSENED: "No tree was left by the usual pruning; this one was found with looser.",
    ParseStatus.UNPRUNED: "No tree was left by the usual pruning; this one was found without any.",
    ParseStatus.FAILED: "The grammar has no tree for this sentence: the one shown is flat.",
    ParseStatus.TOO_LONG: "The sentence is too long to be parsed: the tree shown is flat.",
    ParseStatus.SPLIT: "The sentence is long: it was parsed in pieces, whose trees are joined.",
}


def answer_trees(
    question: TreesQuestion, models: OfferedModels, limits: ServerLimits, ticket: Ticket
) -> TreesAnswer:
    """Return the best trees of a sentence, with the probabilities of their brackets."""
    name, model = models.one(question.model, "trees")
    words = read_sentence(
        question.text, tokenized=question.tokenized, sentence_words=limits.tree_words
    )
    k = _within("k", question.k, limits.trees)
    notes = []
    if model.most_trees is not None and k > model.most_trees:
        notes.append(f"{name} gives at most {model.most_trees} tree of a sentence.")
        k = model.most_trees
    found = model.parse(words, k)
    ticket.check()
    certain: Mapping[Constituent, float] = {}
    if has_ability(model, GivesForests):
        parser = ask_for(model, GivesForests, "keep forests")
        forest = parser.forests_many([words])[0]
        certain = {} if forest is None else bracket_probabilities(forest)
    else:
        notes.append(f"{model.system} models do not know the probabilities of brackets.")
    ticket.check()
    if found and (said := _STATUS_NOTES.get(found[0].status)):
        notes.append(said)
    trees = [_tree(each, certain, question) for each in found]
    notes += unknown_notes([words], [(name, model)], question)
    return TreesAnswer(model=name, words=list(words), trees=trees, notes=notes)


def _tree(
    found: ScoredTree, certain: Mapping[Constituent, float], question: Question
) -> TreeAnswer:
    brackets = tree_brackets(found.tree)
    chances = [certain.get(bracket) for bracket in brackets]
    posterior = found.tree_log_prob - found.sentence_log_prob
    svg = latex = None
    if "svg" in question.formats:
        svg = draw_bracket_tree(found.tree, chances)
    if "latex" in question.formats:
        latex = draw_latex(found.tree)
    return TreeAnswer(
        tree=str(found.tree),
        log_prob=finite(found.tree_log_prob),
        # A chart that was pruned has less than all trees: no more than 1 is ever meant.
        posterior=None if math.isnan(posterior) else min(1.0, math.exp(posterior)),
        brackets=[
            Bracket(label=bracket.label, start=bracket.start, end=bracket.end, probability=chance)
            for bracket, chance in zip(brackets, chances, strict=True)
        ],
        svg=svg,
        latex=latex,
    )


def answer_states(
    question: StatesQuestion, models: OfferedModels, limits: ServerLimits, ticket: Ticket
) -> StatesAnswer:
    """Return the parser after each word of a sentence."""
    name, model = models.one(question.model, "states")
    words = read_sentence(
        question.text, tokenized=question.tokenized, sentence_words=limits.tree_words
    )
    k = _within("k", question.k, limits.trees)
    steps = _steps(model, words, k)
    ticket.check()
    notes = unknown_notes([words], [(name, model)], question)
    svg = None
    if "svg" in question.formats:
        svg = draw_parser_states_svg(list(map(_drawn, steps)), title=" ".join(words))
    return StatesAnswer(model=name, steps=steps, notes=notes, svg=svg)


def _drawn(step: StepAnswer) -> ParserState:
    bits = math.inf if step.surprisal is None else step.surprisal
    return ParserState(step.word, bits, tuple((s.name, s.probability) for s in step.states))


def _steps(model: LanguageModel, words: Sentence, k: int) -> list[StepAnswer]:
    known = model.vocabulary
    return [
        StepAnswer(
            word=state.word,
            surprisal=finite(state.surprisal),
            unknown=state.word not in known,
            states=[
                ParserStateAnswer(name=stack, probability=weight) for stack, weight in state.stacks
            ],
            trees=[],
        )
        for state in parser_states(model, words, count=k)
    ]


def _within(what: str, number: int, most: int) -> int:
    if number > most:
        raise Refusal(422, "E_TOO_MANY", f"{what} is {number}; at most {most} are shown here.")
    return number
