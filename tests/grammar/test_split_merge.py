"""Split-merge training: laws that hold for all grammars, and the brute-force reference."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.grammar.latent_cases import (
    latent_trees,
    named,
    random_weights,
    rule_names,
    substate_array,
)
from tests.reference import latent_grammar as reference

from treelm.errors import EstimationError
from treelm.grammar.grammar import FloatArray, IntArray
from treelm.grammar.latent_trees import LatentTrees, grammar_of
from treelm.grammar.rare_words import RareWords
from treelm.grammar.split_merge import (
    Iteration,
    LatentWeights,
    SplitMerge,
    SplitMergeOptions,
    maximize,
    merge,
    sibling_shares,
    smooth,
    split,
    unsplit_weights,
)
from treelm.trees.tree import Tree

TREES = [
    "(ROOT (S (NP (DT the) (NN dog)) (VP (VB runs))))",
    "(ROOT (S (NP (NN rain)) (VP (VB falls) (NP (DT a) (NN day)))))",
    "(ROOT (NP (NP (DT the) (NN rain)) (PP (IN of) (NP (NN May)))))",
    "(ROOT (S (NP (DT a) (NN dog)) (VP (VB sees) (NP (DT the) (NN rain)) (PP (IN of) (NP (NN dog))))))",
    "(ROOT (S (VP (VB runs))))",
]


def random_tree(draw: st.DrawFn, depth: int) -> str:
    if depth == 0 or draw(st.booleans()):
        return f"({draw(st.sampled_from('ab'))} {draw(st.sampled_from('vw'))})"
    children = [random_tree(draw, depth - 1) for _ in range(draw(st.integers(1, 2)))]
    label = "XY"[depth % 2]  # a chain never repeats a label
    return f"({label} {' '.join(children)})"


@st.composite
def small_trees(draw: st.DrawFn) -> list[str]:
    return [f"(ROOT {random_tree(draw, 2)})" for _ in range(draw(st.integers(1, 11)))]


def binary_tree(trees: LatentTrees, number: int) -> Tree:
    """Return a tree as it was binarized."""
    made = trees.trees

    def build(node: int) -> Tree:
        label = made.symbols[made.node_symbol[node]]
        if made.node_left[node] == 0xFFFFFFFF:
            return Tree(label, made.words[made.node_word[node]])
        children = [made.node_left[node], made.node_right[node]]
        return Tree(label, [build(int(child)) for child in children if child != 0xFFFFFFFF])

    return build(int(made.tree_start[number]))


@settings(max_examples=40)
@given(texts=small_trees(), sizes=st.tuples(*[st.integers(1, 3)] * 4), seed=st.integers(0, 99))
def test_kernel_agrees_with_the_reference(
    texts: list[str], sizes: tuple[int, ...], seed: int
) -> None:
    trees = latent_trees(texts)
    by_label = dict(zip("XYab", sizes, strict=True))
    substates = substate_array(trees, by_label)
    weights = random_weights(trees, substates, seed)
    weights[np.random.default_rng(seed).uniform(size=len(weights)) < 0.3] = 0.0  # sparse blocks
    plain = [binary_tree(trees, number) for number in range(len(trees))]
    counted = {**by_label, "ROOT": 1}
    by_name = named(trees, substates, weights)
    found = trees.expect(substates, weights)
    for number, tree in enumerate(plain):
        expected = reference.probability(tree, counted, by_name)
        assert math.exp(found.tree_log_probs[number]) == pytest.approx(expected, rel=1e-9)
    counts = reference.expected_counts(plain, counted, by_name)
    np.testing.assert_allclose(
        found.counts, [counts.get(rule, 0.0) for rule in rule_names(trees, substates)], atol=1e-9
    )


@settings(max_examples=25)
@given(texts=small_trees(), seed=st.integers(0, 99))
def test_merge_gains_agree_with_the_reference(texts: list[str], seed: int) -> None:
    trees = latent_trees(texts)
    labels = [name for name in trees.trees.symbols if name != "ROOT"]
    substates = substate_array(trees, dict.fromkeys(labels, 2))
    weights = random_weights(trees, substates, seed)
    state = LatentWeights(substates, weights)
    shares = sibling_shares(trees.rules, state, trees.expect(substates, weights).counts)
    gains = trees.merge_gains(substates, weights, shares)
    plain = [binary_tree(trees, number) for number in range(len(trees))]
    by_name = named(trees, substates, weights)
    kinds = {**dict.fromkeys(labels, 2), "ROOT": 1}
    for symbol, label in enumerate(trees.trees.symbols):
        if label == "ROOT":
            continue
        first = int(state.firsts[symbol])
        pair = (float(shares[first]), float(shares[first + 1]))
        expected = reference.merge_gain(plain, kinds, by_name, label=label, shares=pair)
        assert gains[first] == pytest.approx(expected, abs=1e-9)


@settings(max_examples=25)
@given(texts=small_trees(), seed=st.integers(0, 999))
@example(texts=["(ROOT (X (Y (b v))))"], seed=0)
def test_likelihood_never_decreases(texts: list[str], seed: int) -> None:
    trees = latent_trees(texts)
    substates = substate_array(trees, {"X": 3, "Y": 2, "a": 2, "b": 3})
    weights = random_weights(trees, substates, seed)
    last = -math.inf
    for _ in range(8):
        found = trees.expect(substates, weights)
        # A corpus that is certain has ln 1, which rounding may make a little less.
        assert found.log_likelihood >= last - 1e-9 * max(1.0, abs(last))
        last = found.log_likelihood
        maximize(trees.rules, substates, found.counts, weights)
        weights = found.counts


def likelihoods(trees: LatentTrees, *, noise: float) -> list[float]:
    state = split(trees.rules, unsplit_weights(trees), noise=noise, seed=1, cycle=1)
    found = []
    for _ in range(12):
        step = trees.expect(state.substates, state.weights)
        found.append(step.log_likelihood)
        maximize(trees.rules, state.substates, step.counts, state.weights)
        state = LatentWeights(state.substates, step.counts, state.split_tree)
    return found


def test_a_split_without_noise_learns_nothing() -> None:
    trees = latent_trees(TREES)
    before = trees.expect(*_arrays(unsplit_weights(trees))).log_likelihood
    for value in likelihoods(trees, noise=0.0):
        assert value == pytest.approx(before, rel=1e-12)


def test_a_split_with_noise_learns_something() -> None:
    found = likelihoods(latent_trees(TREES), noise=0.01)
    assert found[-1] > found[0] + 1.0


def _arrays(state: LatentWeights) -> tuple[np.ndarray, FloatArray]:
    return state.substates, state.weights


def test_a_split_halves_children_and_keeps_sums() -> None:
    trees = latent_trees(TREES)
    before = unsplit_weights(trees)
    after = split(trees.rules, before, noise=0.01, seed=7, cycle=1)
    assert after.substates[0] == 1
    assert (after.substates[1:] == 2).all()
    old, new = (named(trees, state.substates, state.weights) for state in (before, after))
    for rule, weight in new.items():
        children = [part for part in rule[1:] if not isinstance(part, str)]
        origin = tuple(part if isinstance(part, str) else (part[0], 0) for part in rule)
        assert weight == pytest.approx(old[origin] / 2 ** len(children), rel=0.021)
    grammar = grammar_of(trees.trees, trees.rules, *_arrays(after), after.split_tree)
    grammar.check_normalized(1e-12)


def test_noise_depends_on_seed_and_cycle_only() -> None:
    trees = latent_trees(TREES)
    before = unsplit_weights(trees)
    first = split(trees.rules, before, noise=0.01, seed=7, cycle=1).weights
    assert (
        first.tolist() == split(trees.rules, before, noise=0.01, seed=7, cycle=1).weights.tolist()
    )
    assert (
        first.tolist() != split(trees.rules, before, noise=0.01, seed=8, cycle=1).weights.tolist()
    )
    assert (
        first.tolist() != split(trees.rules, before, noise=0.01, seed=7, cycle=2).weights.tolist()
    )


def train(
    *, threads: int = 1, cycles: int = 2, held_out: object = None, texts: list[str] = TREES
) -> tuple[LatentTrees, LatentWeights, list[Iteration]]:
    trees = latent_trees(texts * 40)
    options = SplitMergeOptions(split_iterations=6, merge_iterations=3, smooth_iterations=2, seed=3)
    training = SplitMerge(trees, options, threads=threads, held_out=held_out)  # type: ignore[arg-type]
    state, seen = unsplit_weights(trees), []
    for cycle in range(1, cycles + 1):
        steps = training.run_cycle(state, cycle)
        while True:
            try:
                seen.append(next(steps))
            except StopIteration as end:
                state = end.value
                break
    return trees, state, seen


def test_results_do_not_depend_on_threads() -> None:
    _, one, steps = train(threads=1)
    for threads in (2, 5):
        _, several, same = train(threads=threads)
        assert several.weights.tobytes() == one.weights.tobytes()
        assert same == steps


def test_a_cycle_splits_merges_and_keeps_its_history() -> None:
    trees, state, steps = train(cycles=2)
    assert [(step.phase, step.number) for step in steps[:11]] == [
        *(("split", number) for number in range(1, 7)),
        *(("merge", number) for number in range(1, 4)),
        *(("smooth", number) for number in range(1, 3)),
    ]
    symbols = len(trees.trees.symbols)
    after_split, after_merge = 2 * symbols - 1, 2 * symbols - 1 - (symbols - 1) // 2
    assert steps[0].substates == after_split
    assert steps[10].substates == after_merge
    grammar = grammar_of(trees.trees, trees.rules, *_arrays(state), state.split_tree)
    grammar.check_normalized()
    assert len(grammar.split_tree[0]) == after_merge
    assert len(grammar.split_tree[1]) == grammar.total_substates


def test_the_least_useful_splits_are_merged() -> None:
    trees = latent_trees(TREES)
    state = split(trees.rules, unsplit_weights(trees), noise=0.01, seed=1, cycle=1)
    firsts = state.firsts[1:-1]
    gains = np.zeros(int(state.substates.sum()))
    gains[firsts] = -np.arange(len(firsts), dtype=np.float64)  # the later, the more is lost
    merged = merge(trees.rules, state, gains, np.full(len(gains), 0.5), fraction=0.5)
    half = len(firsts) // 2
    assert merged.substates[1:].tolist() == [1] * half + [2] * (len(firsts) - half)


def test_the_best_grammar_on_held_out_trees_is_kept() -> None:
    judged: list[FloatArray] = []

    def judge(state: LatentWeights, _words: object) -> float:
        judged.append(state.weights.copy())
        return 1.0 if len(judged) == 9 + 1 else 0.0  # the first iteration of smoothing

    _, state, _ = train(cycles=1, held_out=judge)
    assert len(judged) == 11
    assert state.weights.tobytes() == judged[9].tobytes()


def test_impossible_trees_are_left_out_and_too_many_refused() -> None:
    trees = latent_trees(TREES)
    state = unsplit_weights(trees)
    weights = state.weights.copy()
    lost = len(trees.rules.binary) + len(trees.rules.unary)  # the first word of all
    weights[lost] = 0.0
    found = trees.expect(state.substates, weights)
    possible = ~np.isneginf(found.tree_log_probs)
    assert found.impossible == (~possible).sum() > 0
    assert found.log_likelihood == pytest.approx(found.tree_log_probs[possible].sum())
    tokens = found.counts[lost:].sum()
    lengths = np.diff(trees.trees.leaf_starts)
    assert tokens == pytest.approx(lengths[possible].sum())
    with pytest.raises(EstimationError) as caught:
        found.check()
    assert caught.value.code == "E_IMPOSSIBLE_TREES"


def test_overflow_names_the_tree() -> None:
    trees = latent_trees(["(ROOT (A x))", "(ROOT (A y) (A y))"])
    substates = np.ones(2, dtype=np.int32)
    weights = np.full(4, 1e308)
    with pytest.raises(EstimationError) as caught:
        trees.expect(substates, weights).check()
    assert caught.value.code == "E_NAN"


@pytest.mark.parametrize("wrong", ["short", "negative", "nan"])
def test_kernels_refuse_wrong_weights(wrong: str) -> None:
    trees = latent_trees(TREES)
    state = unsplit_weights(trees)
    weights = state.weights.copy()
    if wrong == "short":
        weights = weights[:-1]
    else:
        weights[0] = -1.0 if wrong == "negative" else math.nan
    with pytest.raises(EstimationError) as caught:
        trees.expect(state.substates, weights)
    assert caught.value.code == "E_ARGUMENT"


def test_long_trees_do_not_underflow() -> None:
    words = " ".join(f"(N w{number})" for number in range(3000))
    trees = latent_trees([f"(ROOT (X {words}))"])
    state = unsplit_weights(trees)
    found = trees.expect(state.substates, state.weights)
    assert found.log_likelihood < -10000
    assert np.isfinite(found.log_likelihood)
    np.testing.assert_allclose(found.counts, trees.rule_counts, rtol=1e-9)


def test_no_trees_are_refused() -> None:
    with pytest.raises(EstimationError) as caught:
        latent_trees(["(S (X a))"])
    assert caught.value.code == "E_NO_DATA"


def test_branches_are_the_halves_of_the_first_split() -> None:
    """A symbol of four subcategories, one whose first split was undone, and one never split."""
    substates = np.array([1, 4, 2, 1], dtype=np.int32)
    # Cycle 1: symbol 1 is split; cycle 2: both halves of symbol 1, and symbol 2, are.
    first = np.array([0, 1, 1, 2, 3], dtype=np.int32)
    second = np.array([0, 1, 1, 2, 2, 3, 3, 4], dtype=np.int32)
    state = LatentWeights(substates, np.zeros(0), (first, second))
    assert state.branches.tolist() == [0, 0, 0, 1, 1, 0, 1, 0]


@pytest.mark.parametrize("scope", ["all", "branch"])
def test_smoothing_moves_weights_towards_the_mean_of_their_scope(scope: str) -> None:
    trees = latent_trees(TREES)
    state = split(trees.rules, unsplit_weights(trees), noise=0.3, seed=1, cycle=1)
    state = split(trees.rules, state, noise=0.3, seed=1, cycle=2)
    weights = state.weights.copy()
    branches = state.branches if scope == "branch" else None
    smooth(
        trees.rules,
        state.substates,
        weights,
        rule_smoothing=0.2,
        lexical_smoothing=0.4,
        branches=branches,
    )
    at = 0
    for parent, left, right in trees.rules.rows.tolist():
        rows = int(state.substates[parent])
        columns = 1
        for child in (left, right):
            columns *= int(state.substates[child]) if child >= 0 else 1
        before = state.weights[at : at + rows * columns].reshape(rows, columns)
        after = weights[at : at + rows * columns].reshape(rows, columns)
        at += rows * columns
        share = 0.4 if left < 0 else 0.2
        for x in range(rows):
            others = range(rows) if scope == "all" else [y for y in range(rows) if y // 2 == x // 2]
            if scope == "branch":
                others = [y for y in others if y != x]
            expected = before[x]
            if others:
                expected = (1 - share) * before[x] + share * before[list(others)].mean(axis=0)
            assert after[x] == pytest.approx(expected, rel=1e-12)
    assert at == len(weights)


def test_rare_words_share_the_division_of_their_tag() -> None:
    trees = latent_trees(TREES)
    state = split(trees.rules, unsplit_weights(trees), noise=0.3, seed=1, cycle=1)
    counts = trees.rules.split_weights(state.substates, trees.expect(*_arrays(state)).counts)[2]
    tied = counts.copy()
    rare = RareWords(trees.tagged, 1)
    rare.tie(tied, state.substates)
    starts = trees.tagged.starts(state.substates)
    nn = trees.trees.symbols.index("NN")
    together = np.zeros(2)
    for pair, (word, tag) in enumerate(trees.tagged.pairs.tolist()):
        if tag == nn and rare.word_counts[word] <= 1:
            together += counts[starts[pair] : starts[pair + 1]]
    for pair, (word, tag) in enumerate(trees.tagged.pairs.tolist()):
        own = slice(int(starts[pair]), int(starts[pair + 1]))
        assert tied[own].sum() == pytest.approx(counts[own].sum())
        if rare.word_counts[word] > 1:
            assert tied[own].tolist() == counts[own].tolist()
        elif tag == nn:
            assert tied[own] == pytest.approx(counts[own].sum() * together / together.sum())


def test_tied_words_never_lower_the_likelihood() -> None:
    """Tying is expectation-maximization of a smaller model."""
    trees = latent_trees(TREES)
    options = SplitMergeOptions(
        split_iterations=12, merge_iterations=0, smooth_iterations=0, seed=3
    )
    training = SplitMerge(trees, options, rare=RareWords(trees.tagged, 2))
    found = [done.log_likelihood for done in training.run_cycle(unsplit_weights(trees), 1)]
    # The first step brings the noise of the split into the smaller model.
    assert all(later >= earlier - 1e-9 for earlier, later in pairwise(found[1:]))
    assert found[-1] > found[1]


def _arrays(state: LatentWeights) -> tuple[IntArray, FloatArray]:
    return state.substates, state.weights


def many_pieces(last: str = "") -> LatentTrees:
    """Return so many nodes that several threads score a piece each, and one adds up after another."""
    wide = " ".join(f"(NP (DT the) (NN {'dog' if i % 3 else 'rain'}))" for i in range(300))
    texts = [f"(ROOT (S {wide} (VP (VB {verb}))))" for verb in ("runs", "falls") * 70]
    trees = latent_trees(texts[:70] + ([last] if last else []) + texts[70:])
    assert len(trees.trees.node_symbol) > 4 * (1 << 15)
    return trees


def test_counts_of_many_pieces_do_not_depend_on_threads() -> None:
    trees = many_pieces()
    state = split(trees.rules, unsplit_weights(trees), noise=0.01, seed=7, cycle=1)
    one = trees.expect(state.substates, state.weights)
    assert one.counts.sum() == pytest.approx(len(trees.trees.node_symbol))
    shares = sibling_shares(trees.rules, state, one.counts)
    gains = trees.merge_gains(state.substates, state.weights, shares)
    for threads in (2, 3, 7):
        several = trees.expect(state.substates, state.weights, threads=threads)
        assert several.counts.tobytes() == one.counts.tobytes()
        assert several.tree_log_probs.tobytes() == one.tree_log_probs.tobytes()
        again = trees.merge_gains(state.substates, state.weights, shares, threads=threads)
        assert again.tobytes() == gains.tobytes()


@pytest.mark.parametrize("threads", [1, 2, 7])
def test_overflow_in_one_of_many_pieces_ends_the_others(threads: int) -> None:
    trees = many_pieces("(ROOT (A y) (A y))")
    weights = np.ones(trees.rules.ends(np.ones(len(trees.trees.symbols), dtype=np.int32))[2])
    lexical = len(trees.rules.binary) + len(trees.rules.unary)
    tag = trees.trees.symbols.index("A")
    weights[lexical:][trees.tagged.pairs[:, 1] == tag] = 1e308
    with pytest.raises(EstimationError, match="tree 71 ") as caught:
        trees.expect(np.ones(len(trees.trees.symbols), dtype=np.int32), weights, threads=threads)
    assert caught.value.code == "E_NAN"
