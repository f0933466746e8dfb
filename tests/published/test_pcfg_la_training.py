"""The worked examples of sections 4 to 6 of pcfg-la.md."""

from __future__ import annotations

import math

import numpy as np
import pytest
from tests.grammar.latent_cases import latent_trees, named, substate_array, weight_array
from tests.reference.latent_grammar import Weights

from treelm.grammar.grammar import FloatArray, IntArray
from treelm.grammar.latent_trees import LatentTrees
from treelm.grammar.split_merge import LatentWeights, maximize, merge, sibling_shares, smooth

# The right child has the label of the left one, so a tag stands for each.
TREE = "(ROOT (A a) (A b))"
RULES: Weights = {
    (("ROOT", 0), ("A", 0), ("A", 0)): 0.1,
    (("ROOT", 0), ("A", 0), ("A", 1)): 0.4,
    (("ROOT", 0), ("A", 1), ("A", 0)): 0.3,
    (("ROOT", 0), ("A", 1), ("A", 1)): 0.2,
    (("A", 0), "a"): 0.9,
    (("A", 0), "b"): 0.1,
    (("A", 1), "a"): 0.2,
    (("A", 1), "b"): 0.8,
}


def example() -> tuple[LatentTrees, IntArray, FloatArray]:
    trees = latent_trees([TREE])
    substates = substate_array(trees, {"A": 2})
    return trees, substates, weight_array(trees, substates, RULES)


def test_4_1_probability_and_posteriors() -> None:
    trees, substates, weights = example()
    found = trees.expect(substates, weights)
    assert math.exp(found.tree_log_probs[0]) == pytest.approx(0.335, abs=1e-12)
    counts = named(trees, substates, found.counts)
    expected = {(0, 0): 0.0268657, (0, 1): 0.8597015, (1, 0): 0.0179104, (1, 1): 0.0955224}
    for (left, right), value in expected.items():
        rule = (("ROOT", 0), ("A", left), ("A", right))
        assert counts[rule] == pytest.approx(value, abs=5e-8)
    words = {(0, "a"): 0.8865672, (1, "a"): 0.1134328, (0, "b"): 0.0447761, (1, "b"): 0.9552239}
    for (x, word), value in words.items():
        assert counts[("A", x), word] == pytest.approx(value, abs=5e-8)


def test_4_1_one_step_of_maximization() -> None:
    trees, substates, weights = example()
    new = trees.expect(substates, weights).counts
    maximize(trees.rules, substates, new, weights)
    by_name = named(trees, substates, new)
    assert by_name[("A", 0), "a"] == pytest.approx(0.297 / 0.312, abs=1e-12)
    assert by_name[("A", 1), "b"] == pytest.approx(0.320 / 0.358, abs=1e-12)
    after = trees.expect(substates, new)
    assert math.exp(after.log_likelihood) == pytest.approx(0.7418876, abs=5e-8)


def gain_of(trees: LatentTrees, substates: IntArray, weights: FloatArray) -> FloatArray:
    state = LatentWeights(substates, weights)
    shares = sibling_shares(trees.rules, state, trees.expect(substates, weights).counts)
    return trees.merge_gains(substates, weights, shares)


def test_5_i_shares_and_gain() -> None:
    trees, substates, weights = example()
    state = LatentWeights(substates, weights)
    shares = sibling_shares(trees.rules, state, trees.expect(substates, weights).counts)
    assert shares[1:].tolist() == pytest.approx([0.4656716, 0.5343284], abs=5e-8)
    assert gain_of(trees, substates, weights)[1] == pytest.approx(-0.4535098, abs=5e-8)


def test_5_ii_merging_what_the_word_tells_is_free() -> None:
    trees = latent_trees(["(ROOT (N a))"] * 3 + ["(ROOT (N b))"])
    substates = substate_array(trees, {"N": 2})
    weights = weight_array(
        trees,
        substates,
        {
            (("ROOT", 0), ("N", 0)): 0.75,
            (("ROOT", 0), ("N", 1)): 0.25,
            (("N", 0), "a"): 1.0,
            (("N", 1), "b"): 1.0,
        },
    )
    assert gain_of(trees, substates, weights)[1] == pytest.approx(0.0, abs=1e-12)


def test_5_iii_merging_what_the_rule_tells_costs() -> None:
    trees = latent_trees(["(ROOT (N a) (N b))"] * 2)
    substates = substate_array(trees, {"N": 2})
    weights = weight_array(
        trees,
        substates,
        {(("ROOT", 0), ("N", 0), ("N", 1)): 1.0, (("N", 0), "a"): 1.0, (("N", 1), "b"): 1.0},
    )
    assert gain_of(trees, substates, weights)[1] == pytest.approx(-4 * math.log(2), abs=1e-12)


def test_5_merging_mixes_parents_and_adds_children() -> None:
    trees, substates, weights = example()
    shares = np.array([1.0, 0.25, 0.75])
    state = LatentWeights(substates, weights, (np.array([0, 1, 1], np.int32),))
    merged = merge(trees.rules, state, np.array([0.0, -1.0, 0.0]), shares, fraction=1.0)
    assert merged.substates.tolist() == [1, 1]
    by_name = named(trees, merged.substates, merged.weights)
    assert by_name[("ROOT", 0), ("A", 0), ("A", 0)] == pytest.approx(1.0)
    assert by_name[("A", 0), "a"] == pytest.approx(0.25 * 0.9 + 0.75 * 0.2)
    assert [level.tolist() for level in merged.split_tree] == [[0, 1]]


def test_6_smoothing() -> None:
    trees = latent_trees(["(ROOT (X (N a)))", "(ROOT (X (N a) (N a)))"])
    substates = substate_array(trees, {"X": 2})
    weights = weight_array(
        trees,
        substates,
        {
            (("ROOT", 0), ("X", 0)): 0.5,
            (("ROOT", 0), ("X", 1)): 0.5,
            (("X", 0), ("N", 0)): 0.9,
            (("X", 1), ("N", 0)): 0.2,
            (("X", 0), ("N", 0), ("N", 0)): 0.1,
            (("X", 1), ("N", 0), ("N", 0)): 0.8,
            (("N", 0), "a"): 1.0,
        },
    )
    smooth(trees.rules, substates, weights, rule_smoothing=0.01, lexical_smoothing=0.1)
    by_name = named(trees, substates, weights)
    assert by_name[("X", 0), ("N", 0)] == pytest.approx(0.8965, abs=1e-12)
    assert by_name[("X", 1), ("N", 0)] == pytest.approx(0.2035, abs=1e-12)
    assert by_name[("N", 0), "a"] == 1.0  # one subcategory: no change
