"""What the server answers: the bodies of responses."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict

#: How far a model is.
LoadingState = Literal["ready", "offered", "loading", "failed"]


class Answer(BaseModel):
    """What all answers have in common: the description of the API says what fields mean."""

    model_config = ConfigDict(use_attribute_docstrings=True)


class ModelAnswer(Answer):
    """A model that can be asked."""

    name: str
    system: str
    tasks: list[str]
    """What it does, of: surprisal, trees, states, judge, sample; before it is loaded, what models
    of its system do."""
    most_trees: int | None
    """Trees of a sentence that it gives at most; None for any number, or before it is loaded."""
    brackets: bool
    """Whether it knows the probabilities of brackets."""
    exactness: str
    words: int | None
    """Words it knows; None before it is loaded."""
    state: LoadingState
    """ready; or offered: it is loaded when it is asked for; or loading; or failed."""
    at_start: bool
    """Whether it was loaded from the start: such models answer where a question names none."""
    package: str | None = None
    """What brought it, if it is a ready model that is loaded when it is asked for."""
    megabytes: float | None = None
    """Size of its files, if it is loaded when it is asked for."""
    problem: str | None = None
    """Why it is not loaded, if it failed."""


class ModelsAnswer(Answer):
    """The models of the server, and its limits."""

    version: str
    models: list[ModelAnswer]
    limits: dict[str, float]


class Series(Answer):
    """What one model says about the words of a sentence."""

    model: str
    surprisal: list[float | None]
    """In bits; None for a word that the model takes for impossible."""
    unknown: list[bool]
    """Whether each word is unknown to the model."""
    total: float | None
    """Sum, in bits."""


class SurprisalSentence(Answer):
    """A sentence with the figures of each model."""

    words: list[str]
    series: list[Series]
    svg: str | None = None
    latex: str | None = None


class SurprisalAnswer(Answer):
    """The sentences of a text."""

    sentences: list[SurprisalSentence]
    notes: list[str]


class Bracket(Answer):
    """A bracket of a tree, from a word up to the one before another."""

    label: str
    start: int
    end: int
    probability: float | None
    """Given the words, summed over all trees; None if the model does not know."""


class TreeAnswer(Answer):
    """A tree of a sentence."""

    tree: str
    """In brackets."""
    log_prob: float | None
    """Natural log probability of the tree with its words."""
    posterior: float | None
    """Probability of the tree, given the words."""
    brackets: list[Bracket]
    svg: str | None = None
    latex: str | None = None


class TreesAnswer(Answer):
    """The trees of a sentence, the best first."""

    model: str
    words: list[str]
    trees: list[TreeAnswer]
    notes: list[str]


class ParserStateAnswer(Answer):
    """A state that the parser may be in."""

    name: str
    """Its stack: A/B is an A that still lacks a B."""
    probability: float


class PartialTreeAnswer(Answer):
    """What the parser has built so far, at its best."""

    tree: str
    probability: float
    """Given the words so far."""
    came_from: int | None
    """Rank of the tree it grew from among those shown after the word before."""
    survives: bool
    """Whether one of the best trees of the whole sentence grows from it."""
    wins: bool
    """Whether the best tree of the whole sentence grows from it."""
    marks: list[str]
    """What is to be said about it in words."""
    svg: str | None = None


class StepAnswer(Answer):
    """The parser after a word."""

    word: str
    surprisal: float | None
    unknown: bool
    states: list[ParserStateAnswer]
    trees: list[PartialTreeAnswer]
    winner_rank: int | None = None
    """Rank at this point of the tree that wins in the end; None if it had not begun."""
    winner_probability: float | None = None
    """Its probability at this point; None if the model does not show trees."""
    collapse: bool = False
    """Whether the best tree did not grow from the one that was the best before this word."""
    note: str = ""
    """What is to be said about the word."""


class StatesAnswer(Answer):
    """The parser after each word of a sentence."""

    model: str
    steps: list[StepAnswer]
    disambiguation: int | None = None
    """Place of the word, from 0, that brought the tree to the top for good that wins."""
    legend: str
    """What signs in the trees mean."""
    notes: list[str]
    svg: str | None = None
    latex: str | None = None


class PairAnswer(Answer):
    """Words at the same place of two sentences; None where one of them has no such word."""

    first: str | None
    second: str | None
    first_surprisal: float | None
    second_surprisal: float | None
    difference: float | None
    """Second minus first, in bits."""


class Comparison(Answer):
    """Two sentences as one model sees them."""

    model: str
    pairs: list[PairAnswer]
    first_total: float | None
    second_total: float | None
    difference: float | None
    svg: str | None = None
    latex: str | None = None


class CompareAnswer(Answer):
    """Two sentences side by side, by each model."""

    comparisons: list[Comparison]
    notes: list[str]


class Piece(Answer):
    """A production or another feature, and what it adds to the margin."""

    name: str
    weight: float


class Verdict(Answer):
    """What a classifier says about a sentence."""

    words: list[str]
    label: str
    margin: float | None
    """Above zero for good sentences; None for one that cannot be analysed."""
    probability: float
    """That it is good."""
    pieces: list[Piece]
    """What decided, the heaviest first."""
    elsewhere: float | None = None
    """What belongs to no node of the tree in the picture and adds to the margin."""
    svg: str | None = None
    latex: str | None = None


class JudgeAnswer(Answer):
    """Verdicts on the sentences of a text."""

    model: str
    verdicts: list[Verdict]
    notes: list[str]


class SampledSentence(Answer):
    """A sentence sampled from a model."""

    words: list[str]
    log_prob: float | None
    complete: bool
    tree: str | None
    svg: str | None = None
    latex: str | None = None


class SampleAnswer(Answer):
    """Sampled sentences."""

    model: str
    seed: int
    sentences: list[SampledSentence]
    latex: str | None = None


class ErrorAnswer(Answer):
    """Why there is no answer."""

    code: str
    """Stable, such as ``E_TOO_LONG``."""
    message: str
