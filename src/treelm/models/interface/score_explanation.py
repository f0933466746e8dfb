"""The arithmetic of a score, step by step: what each step adds, and how it is worked out.

The values of all steps add up to the score. The terms of a step give its value: their logarithms
are added for a product of probabilities, their probabilities for a sum.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

#: How the terms of a step are combined.
Rule = Literal["product", "sum"]
#: Terms of a sum that are shown; the rest is one term.
SHOWN_TERMS = 5


class ScoreTerm(NamedTuple):
    """A probability that enters a step.

    Args:
        text: What it is, in words and symbols.
        log_value: Its natural logarithm.
    """

    text: str
    log_value: float


class Arithmetic(NamedTuple):
    """How the value of a step is worked out.

    Args:
        rule: Whether the terms are multiplied or added.
        terms: The terms.
    """

    rule: Rule
    terms: tuple[ScoreTerm, ...]

    @property
    def log_value(self) -> float:
        """What the terms give."""
        if self.rule == "product":
            return math.fsum(term.log_value for term in self.terms)
        return log_of_sum([term.log_value for term in self.terms])


@dataclass(frozen=True, slots=True)
class ScoreStep:
    """A part of a score.

    Args:
        what: What it is, such as ``P(dog | the)``.
        value: What it adds to the score: a natural logarithm, or a part of a margin.
        arithmetic: How it is worked out; None where nothing is to be said.
    """

    what: str
    value: float
    arithmetic: Arithmetic | None = None


@dataclass(frozen=True, slots=True)
class ScoreExplanation:
    """A score, and the steps that add up to it.

    Args:
        system: The system of the model.
        words: The sentence.
        unit: What the score is.
        score: The score.
        steps: Its parts, in the order of the story that the model tells.
        story: What is added up, in a sentence.
        reference: Where the equations are.
    """

    system: str
    words: tuple[str, ...]
    unit: Literal["log probability", "margin"]
    score: float
    steps: tuple[ScoreStep, ...]
    story: str
    reference: str

    def to_dict(self) -> dict[str, Any]:
        """Return everything as what JSON can hold; an infinite number as None."""
        return {
            "system": self.system,
            "words": list(self.words),
            "unit": self.unit,
            "score": _finite(self.score),
            "story": self.story,
            "reference": self.reference,
            "steps": [
                {
                    "what": step.what,
                    "value": _finite(step.value),
                    "rule": None if step.arithmetic is None else step.arithmetic.rule,
                    "terms": [
                        {"text": term.text, "log_value": _finite(term.log_value)}
                        for term in (() if step.arithmetic is None else step.arithmetic.terms)
                    ],
                }
                for step in self.steps
            ],
        }

    def _repr_html_(self) -> str:
        from treelm.view.score_explanation import explanation_html

        return explanation_html(self)


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def log_of_sum(log_values: Sequence[float]) -> float:
    """Return the logarithm of a sum of probabilities, given their logarithms.

    Examples:
        >>> log_of_sum([]), log_of_sum([0.0])
        (-inf, 0.0)
    """
    largest = max(log_values, default=-math.inf)
    if largest == -math.inf:
        return -math.inf
    return largest + math.log(math.fsum(math.exp(value - largest) for value in log_values))


def log_of(value: float) -> float:
    """Return the logarithm of a probability that may be 0."""
    return math.log(value) if value > 0 else -math.inf


def sum_of(terms: Sequence[ScoreTerm], *, rest: str) -> Arithmetic:
    """Return a sum: its largest terms, and the others as one.

    Args:
        terms: All terms.
        rest: What the others are called.
    """
    ordered = sorted((term for term in terms if term.log_value > -math.inf),
                     key=lambda term: -term.log_value)  # fmt: skip
    shown, others = ordered[:SHOWN_TERMS], ordered[SHOWN_TERMS:]
    if others:
        left = log_of_sum([term.log_value for term in others])
        shown.append(ScoreTerm(f"{len(others)} {rest}", left))
    return Arithmetic("sum", tuple(shown))


def given(words: Sequence[str], outcome: str, *, shown: int = 3) -> str:
    """Return the name of a conditional probability, with the last words before.

    Examples:
        >>> given(["the", "old", "dog"], "barks", shown=2), given([], "the")
        ('P(barks | … old dog)', 'P(the)')
    """
    if not words:
        return f"P({outcome})"
    last = words[-shown:]
    dots = "… " if len(last) < len(words) else ""
    return f"P({outcome} | {dots}{' '.join(last)})"
