"""The factors of a treelet model's score: a second way to the same number."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from tests.models.treelet_models import sample_trees, small_treelet, two_trees

from treelm.models.treelet.explain import TreeletExplainer
from treelm.trees.tree import Tree


@pytest.mark.parametrize("variant", ["full", "rule", "trans", "pcfg"])
@pytest.mark.parametrize("smoothing", ["kn", "mkn"])
@pytest.mark.filterwarnings("ignore:no discount can be estimated")
def test_factors_multiply_to_the_score(tmp_path: Path, variant: str, smoothing: str) -> None:
    model = small_treelet(tmp_path, variant=variant, smoothing=smoothing)
    explainer = TreeletExplainer(model)
    trees = [*sample_trees()[55:90], Tree.from_string("(ROOT (NEW (S (NN dogs)) (ODD zzz)))")]
    for tree, expected in zip(trees, model.tree_log_probs(trees), strict=True):
        factors = explainer.factors(tree)
        assert math.fsum(each.log_prob for each in factors) == pytest.approx(expected, abs=1e-9)
        words = [each.outcome for each in factors if each.kind == "word"]
        assert words == list(tree.words)


def test_every_event_of_the_training_trees_is_known_with_its_whole_context(tmp_path: Path) -> None:
    explainer = TreeletExplainer(small_treelet(tmp_path))
    for tree in sample_trees(60):
        for factor in explainer.factors(tree):
            # Nothing is counted after two pads.
            columns = 3 if factor.kind == "phrase" else 4 if factor.given[3][1] == "<s>" else 5
            assert len(factor.given) == columns, factor
            assert factor.given[0] == ("label", factor.label)


def test_what_decides_is_the_longest_context_that_saw_the_outcome(tmp_path: Path) -> None:
    explainer = TreeletExplainer(two_trees(tmp_path))
    [root, sentence, cats, _] = explainer.factors(Tree.from_string("(ROOT (S (N cats) (V bark)))"))
    assert (root.outcome, sentence.outcome, cats.outcome) == ("S", "N V", "cats")
    assert cats.given[3] == ("word-1", "<s>")
    unseen = explainer.factors(Tree.from_string("(ROOT (S (V bark) (N cats)))"))
    assert unseen[1].given == ()  # no S has these children
    known = {each.outcome: [name for name, _ in each.given] for each in unseen[2:]}
    assert known["cats"] == ["label"]  # a noun, but none was last, under this rule, after a verb


def test_very_long_phrases_have_a_number(tmp_path: Path) -> None:
    model = small_treelet(tmp_path)
    tree = Tree.from_string(f"(ROOT (NP {' '.join(['(NN dog)'] * 400)}))")
    factors = TreeletExplainer(model).factors(tree)
    total = math.fsum(each.log_prob for each in factors)
    assert math.isfinite(total)
    assert total == pytest.approx(float(model.tree_log_probs([tree])[0]), rel=1e-12)


def test_words_alone_are_those_of_the_log_odds_ratio(tmp_path: Path) -> None:
    model = small_treelet(tmp_path)
    [factor] = [
        each
        for each in TreeletExplainer(model).factors(Tree.from_string("(ROOT (NN zzz))"))
        if each.kind == "word"
    ]
    counts = model.unigram_counts[:-1]
    [word] = model.vocabulary.encode(["zzz"])
    expected = math.log((int(counts[word]) + 1) / (int(counts.sum()) + len(counts)))
    assert factor.word_log_prob == pytest.approx(expected)
