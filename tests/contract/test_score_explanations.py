"""The arithmetic that every system shows adds up to the score that it gives."""

from __future__ import annotations

import json
import math
from collections.abc import Callable

import pytest
from tests.contract.recipes import RECIPES

from treelm.models.interface.abilities import ExplainsScores, ask_for
from treelm.models.interface.model import LanguageModel
from treelm.models.interface.score_explanation import ScoreExplanation, log_of_sum
from treelm.view.score_explanation import explanation_html, explanation_text

SYSTEMS = sorted({recipe.system for recipe in RECIPES})
#: The second has words that no model knows.
SENTENCES = ("The dog barked .", "The zyxt saw a qwrl in the park", "the")


def explanations(model: LanguageModel) -> list[ScoreExplanation]:
    explainer = ask_for(model, ExplainsScores, "explain scores")
    return [explainer.explain_score(sentence) for sentence in SENTENCES]


@pytest.mark.parametrize("system", SYSTEMS)
def test_steps_add_up_to_the_score(system: str, trained: Callable[[str], LanguageModel]) -> None:
    model = trained(system)
    for sentence, found in zip(SENTENCES, explanations(model), strict=True):
        score = model.score(sentence).log_prob
        assert found.words == tuple(sentence.split())
        assert found.score == score
        assert found.steps or not found.words
        total = math.fsum(step.value for step in found.steps)
        assert total == pytest.approx(score, rel=1e-6, abs=1e-6)
        assert found.story
        assert found.reference


@pytest.mark.parametrize("system", SYSTEMS)
def test_terms_give_the_value_of_their_step(
    system: str, trained: Callable[[str], LanguageModel]
) -> None:
    for found in explanations(trained(system)):
        for step in found.steps:
            if step.arithmetic is None:
                continue
            logs = [term.log_value for term in step.arithmetic.terms]
            combined = math.fsum(logs) if step.arithmetic.rule == "product" else log_of_sum(logs)
            assert combined == step.arithmetic.log_value
            assert combined == pytest.approx(step.value, rel=1e-6, abs=1e-6), step.what


@pytest.mark.parametrize("system", SYSTEMS)
def test_explanations_are_shown(system: str, trained: Callable[[str], LanguageModel]) -> None:
    for found in explanations(trained(system)):
        shown = explanation_text(found)
        for step in found.steps:
            assert step.what in shown
        assert found.reference in shown
        assert explanation_html(found).count("<tr>") == len(found.steps) + 2
        json.dumps(found.to_dict(), allow_nan=False)


def test_systems_show_how_words_are_predicted(trained: Callable[[str], LanguageModel]) -> None:
    """Word by word, all but those that have nothing to show give their terms."""
    for system in ("ngram", "hhmm", "pcfg", "plsa", "composite", "interpolated"):
        [found, *_] = explanations(trained(system))
        assert all(step.arithmetic is not None for step in found.steps), system
        assert any(len(step.arithmetic.terms) > 1 for step in found.steps if step.arithmetic)
