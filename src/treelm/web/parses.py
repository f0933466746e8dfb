"""Answers about trees: the best ones of a sentence, and the parser after each of its words."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from treelm.grammar.scored_tree import ParseStatus, ScoredTree
from treelm.models.interface.abilities import GivesForests, ask_for, has_ability
from treelm.models.interface.model import LanguageModel
from treelm.models.interface.partial_parses import PartialParses, PartialTree
from treelm.tasks.bracket_probabilities import bracket_probabilities, tree_brackets
from treelm.tasks.partial_parses import partial_parser
from treelm.tasks.surprisal.measures import parsing_part
from treelm.tasks.surprisal.parser_states import parser_states
from treelm.trees.constituents import Constituent
from treelm.view.bracket_tree import draw_bracket_tree
from treelm.view.latex import draw_latex, escape_latex
from treelm.view.partial_parses import (
    LEGEND,
    draw_partial_parses_svg,
    step_note,
    tree_marks,
)
from treelm.view.svg import draw_svg
from treelm.web.answers import (
    Bracket,
    ParserStateAnswer,
    PartialTreeAnswer,
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
    parses = partial_parser(model).partial_parses(words, k)
    ticket.check()
    stacks = _stacks(model, words, k)
    ticket.check()
    svg = draw_partial_parses_svg(parses) if "svg" in question.formats else None
    notes = unknown_notes([words], [(name, model)], question)
    if not parses.whole:
        notes.append("The parser has no tree for the whole sentence.")
    known = model.vocabulary
    steps = [
        StepAnswer(
            word=step.word,
            surprisal=finite(step.surprisal),
            unknown=step.word not in known,
            states=stacks[place] if stacks else [],
            trees=[_partial_tree(each, parses, place, question) for each in step.trees],
            winner_rank=step.winner_rank,
            winner_probability=step.winner_probability if parses.whole else None,
            collapse=_collapses(parses, place),
            note=step_note(parses, place),
        )
        for place, step in enumerate(parses.steps)
    ]
    return StatesAnswer(
        model=name,
        steps=steps,
        disambiguation=parses.disambiguation,
        legend=LEGEND,
        notes=notes,
        svg=svg,
        latex=steps_table(steps) if "latex" in question.formats else None,
    )


def steps_table(steps: Sequence[StepAnswer]) -> str:
    r"""Return the words as a LaTeX table: bits, the best tree's probability, the winner's rank.

    Examples:
        >>> tree = PartialTreeAnswer(
        ...     tree="(X x)", probability=0.5, came_from=None, survives=True, wins=True, marks=[]
        ... )
        >>> step = StepAnswer(
        ...     word="50%", surprisal=2.0, unknown=False, states=[], trees=[tree], winner_rank=1
        ... )
        >>> print(steps_table([step]))
        \begin{tabular}{lrrr}
        word & bits & best tree & rank of the winner \\ \hline
        50\% & 2.00 & 0.500 & 1 \\
        \end{tabular}
    """
    lines = [r"\begin{tabular}{lrrr}", r"word & bits & best tree & rank of the winner \\ \hline"]
    for step in steps:
        bits = r"$\infty$" if step.surprisal is None else f"{step.surprisal:.2f}"
        best = f"{step.trees[0].probability:.3f}" if step.trees else "--"
        rank = "--" if step.winner_rank is None else str(step.winner_rank)
        lines.append(rf"{escape_latex(step.word)} & {bits} & {best} & {rank} \\")
    return "\n".join([*lines, r"\end{tabular}"])


def _partial_tree(
    found: PartialTree, parses: PartialParses, place: int, question: Question
) -> PartialTreeAnswer:
    return PartialTreeAnswer(
        tree=str(found.tree),
        probability=found.probability,
        came_from=found.came_from,
        survives=found.survives,
        wins=found.wins,
        marks=list(tree_marks(parses, place, found)),
        svg=draw_svg(found.tree, font_size=13) if "svg" in question.formats else None,
    )


def _collapses(parses: PartialParses, place: int) -> bool:
    """Return whether the best tree after a word does not grow from the best one before it."""
    trees = parses.steps[place].trees
    return place > 0 and bool(trees) and trees[0].came_from != 1


def _stacks(model: LanguageModel, words: Sentence, k: int) -> list[list[ParserStateAnswer]]:
    """Return the best stacks after each word; nothing where the parser has none."""
    if parsing_part(model) is None:
        return []
    return [
        [ParserStateAnswer(name=stack, probability=weight) for stack, weight in state.stacks]
        for state in parser_states(model, words, count=k)
    ]


def _within(what: str, number: int, most: int) -> int:
    if number > most:
        raise Refusal(422, "E_TOO_MANY", f"{what} is {number}; at most {most} are shown here.")
    return number
