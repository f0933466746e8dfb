"""Held-out trees that judge grammars in training."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from tests.grammar.latent_cases import latent_trees

from treelm.errors import EstimationError
from treelm.grammar.binary_trees import BinaryTrees, build_binary_trees
from treelm.grammar.estimate_lexicon import berkeley_lexicon, lexicon_names
from treelm.grammar.grammar import FloatArray
from treelm.grammar.held_out import HeldOutTrees
from treelm.grammar.latent_trees import LatentTrees
from treelm.grammar.lexicon import Lexicon
from treelm.grammar.split_merge import LatentWeights, unsplit_weights
from treelm.grammar.tree_rules import pair_scores
from treelm.trees.packed import PackedTrees
from treelm.trees.tree import Tree

TRAINING = [
    "(ROOT (S (NP (DT the) (NN dog)) (VP (VB runs))))",
    "(ROOT (S (NP (DT a) (NN cat)) (VP (VB sees) (NP (DT the) (NN dog)))))",
    "(ROOT (S (NP (NN rain)) (VP (VB falls))))",
]


def binary(texts: list[str]) -> BinaryTrees:
    return build_binary_trees([PackedTrees.from_trees([Tree.from_string(text) for text in texts])])


def judge(training: LatentTrees, texts: list[str]) -> HeldOutTrees:
    made = training.trees
    names = lexicon_names(training.tagged, made.phrasal, len(made.symbols))

    def lexicon(counts: FloatArray, state: LatentWeights) -> Lexicon:
        return berkeley_lexicon(training.tagged, counts, made.phrasal, state.substates, names=names)

    return HeldOutTrees(binary(texts), training, names[0], lexicon)


def value_of(training: LatentTrees, held_out: HeldOutTrees) -> float:
    state = unsplit_weights(training)
    tokens = training.tagged.tokens.astype(np.float64)
    return held_out(state, tokens)


def test_a_tree_is_as_probable_as_its_rules_and_words() -> None:
    training = latent_trees(TRAINING)
    made = training.trees
    tokens = training.tagged.tokens.astype(np.float64)
    ones = np.ones(len(made.symbols), dtype=np.int32)
    lexicon = berkeley_lexicon(training.tagged, tokens, made.phrasal, ones)
    found = value_of(training, judge(training, ["(ROOT (S (NP (NN dog)) (VP (VB runs))))"]))
    expected = math.log(1 / 4) + math.log(2 / 3)  # NP -> NN, VP -> VB
    for word, tag in (("dog", "NN"), ("runs", "VB")):
        scores = dict(lexicon.scores(int(lexicon.vocabulary.ids_of([word])[0])))
        expected += math.log(scores[made.symbols.index(tag)][0])
    assert found == pytest.approx(expected, rel=1e-9)


def test_unknown_words_are_scored_and_unknown_rules_left_out() -> None:
    training = latent_trees(TRAINING)
    known = judge(training, ["(ROOT (S (NP (NN dog)) (VP (VB runs))))"])
    unknown = judge(training, ["(ROOT (S (NP (NN zebra)) (VP (VB runs))))"])
    assert (known.left_out, unknown.left_out) == (0, 0)
    assert math.isfinite(value_of(training, unknown))
    mixed = judge(
        training,
        [
            "(ROOT (S (NP (NN dog)) (VP (VB runs))))",
            "(ROOT (NP (NN dog)))",
            "(ROOT (S (NP (JJ old)) (VP (VB runs))))",
            "(ROOT (S (XP (NN dog)) (VP (VB runs))))",
        ],
    )
    assert mixed.left_out == 3
    assert value_of(training, mixed) == pytest.approx(value_of(training, known), rel=1e-12)


def test_a_tree_that_became_impossible_counts_a_thousandth() -> None:
    training = latent_trees(TRAINING)
    held_out = judge(training, ["(ROOT (S (NP (NN dog)) (VP (VB runs))))"])
    before = value_of(training, held_out)
    state = unsplit_weights(training)
    tokens = training.tagged.tokens.astype(np.float64)
    after = held_out(replace(state, weights=np.zeros_like(state.weights)), tokens)
    assert after == pytest.approx(before + math.log(0.001), rel=1e-9)


def test_trees_of_another_kind_are_refused() -> None:
    with pytest.raises(EstimationError) as caught:
        judge(latent_trees(TRAINING), ["(ROOT (XP (YY z)))"])
    assert caught.value.code == "E_NO_DATA"


def test_scores_of_pairs_are_those_of_the_lexicon() -> None:
    training = latent_trees(TRAINING)
    made = training.trees
    substates = np.arange(1, len(made.symbols) + 1, dtype=np.int32)
    substates[0] = 1
    counts = np.random.default_rng(0).uniform(size=int(training.tagged.starts(substates)[-1]))
    lexicon = berkeley_lexicon(training.tagged, counts, made.phrasal, substates)
    pairs = np.array(
        [
            [word, tag]
            for word in range(len(lexicon.vocabulary))
            for tag in range(made.phrasal, len(made.symbols))
        ]
    )
    found = pair_scores(lexicon, pairs)
    place = 0
    for word, tag in pairs.tolist():
        size = int(substates[tag])
        expected = dict(lexicon.scores(word)).get(tag, np.zeros(size))
        np.testing.assert_allclose(found[place : place + size], expected)
        place += size
    assert place == len(found)
