"""The arithmetic of scores, as text and as a piece of a page."""

from __future__ import annotations

import math
from collections.abc import Iterator

from treelm.characters import visible
from treelm.models.interface.score_explanation import ScoreExplanation, ScoreStep
from treelm.models.interface.scores import bits
from treelm.view.markup import escape

#: Beyond this a probability is written as a power of e.
_SMALL = -600.0


def explanation_text(explanation: ScoreExplanation, *, in_bits: bool = False) -> str:
    """Return the steps of a score, each with its terms, and their sum.

    Args:
        explanation: The steps.
        in_bits: Whether log probabilities are written as surprisal in bits.

    Examples:
        >>> from treelm.models.interface.score_explanation import Arithmetic, ScoreTerm
        >>> half = ScoreTerm("heads", math.log(0.5))
        >>> step = ScoreStep("P(heads)", math.log(0.25), Arithmetic("product", (half, half)))
        >>> found = ScoreExplanation(
        ...     "coin", ("heads",), "log probability", step.value, (step,), "Throws.", "none")
        >>> print(explanation_text(found))
        coin: heads
        Throws.
          -1.386294  P(heads) = 0.25
                       0.5          heads
                     × 0.5          heads
        ---------
          -1.386294  natural log probability
        See none.
    """
    return "\n".join(_lines(explanation, in_bits=in_bits))


def _lines(explanation: ScoreExplanation, *, in_bits: bool) -> Iterator[str]:
    margin = explanation.unit == "margin"
    in_bits = in_bits and not margin
    yield visible(f"{explanation.system}: {' '.join(explanation.words)}")
    yield explanation.story
    for step in explanation.steps:
        shown = f" = {_probability(step.value)}" if not margin else ""
        yield f"{_number(step.value, in_bits=in_bits)}  {visible(step.what)}{shown}"
        yield from _terms(step)
    yield "-" * 9
    unit = "bits" if in_bits else f"natural {explanation.unit}" if not margin else "margin"
    yield f"{_number(explanation.score, in_bits=in_bits)}  {unit}"
    yield f"See {explanation.reference}."


def _terms(step: ScoreStep) -> Iterator[str]:
    if step.arithmetic is None:
        return
    sign = "×" if step.arithmetic.rule == "product" else "+"
    for place, term in enumerate(step.arithmetic.terms):
        mark = sign if place else " "
        yield f"             {mark} {_probability(term.log_value):<12} {visible(term.text)}"


def _number(value: float, *, in_bits: bool) -> str:
    return f"{bits(value) if in_bits else value:11.6f}"


def _probability(log_value: float) -> str:
    return f"{math.exp(log_value):.6g}" if log_value > _SMALL else f"e^{log_value:.6g}"


def explanation_html(explanation: ScoreExplanation) -> str:
    """Return the steps of a score as a table, for a notebook."""
    margin = explanation.unit == "margin"
    rows = []
    for step in explanation.steps:
        terms = "<br>".join(escape(line.strip()) for line in _terms(step))
        probability = "" if margin else _probability(step.value)
        rows.append(
            f"<tr><td>{escape(step.what)}</td><td>{probability}</td>"
            f"<td>{step.value:.4f}</td><td>{terms}</td></tr>"
        )
    return (
        f"<table><caption>{escape(explanation.system)}: {escape(' '.join(explanation.words))}. "
        f"{escape(explanation.story)}</caption><thead><tr><th>step</th><th>probability</th>"
        f"<th>adds</th><th>how</th></tr></thead><tbody>{''.join(rows)}</tbody><tfoot><tr>"
        f"<th>{escape(explanation.unit)}</th><td></td><td>{explanation.score:.4f}</td>"
        f"<td>{escape(explanation.reference)}</td></tr></tfoot></table>"
    )
