"""Split-merge training of grammars with latent subcategories (Petrov et al. 2006).

In every cycle each subcategory is split in two, expectation-maximization separates the halves,
and the splits that help least are undone.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np

from treelm import _native
from treelm.grammar.grammar import FloatArray, IntArray
from treelm.grammar.latent_trees import Expectation, LatentRules, LatentTrees
from treelm.grammar.rare_words import RareWords
from treelm.kernel_errors import kernel_errors
from treelm.parallel.executor import SERIAL, Executor

#: The three phases of expectation-maximization in a cycle.
Phase = Literal["split", "merge", "smooth"]

#: The subcategories over which smoothing takes the mean.
SmoothingScope = Literal["all", "branch"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SplitMergeOptions:
    """Constants of the training, with the defaults of the Berkeley parser.

    Args:
        split_iterations: Number of iterations after a split.
        merge_iterations: Number of iterations after a merge.
        smooth_iterations: Number of iterations with smoothing.
        merge_fraction: Share of the splits that are undone.
        noise: Largest relative change of a weight when it is split.
        rule_smoothing: How far rules are moved towards the mean over subcategories.
        lexical_smoothing: The same for words under tags.
        smoothing_scope: all for the mean over all subcategories, branch for the mean over the
            others below the same first split, as in the Berkeley parser.
        rule_filter: Rules with smaller weights are dropped.
        seed: Seed of the noise.
    """

    split_iterations: int = 50
    merge_iterations: int = 20
    smooth_iterations: int = 10
    merge_fraction: float = 0.5
    noise: float = 0.01
    rule_smoothing: float = 0.01
    lexical_smoothing: float = 0.1
    smoothing_scope: SmoothingScope = "all"
    rule_filter: float = 1e-30
    seed: int = 0


@dataclass(frozen=True, slots=True, eq=False)
class LatentWeights:
    """A grammar during training: weights of all rules, lexical ones included.

    Args:
        substates: Subcategories of every symbol.
        weights: One block for each rule.
        split_tree: For each cycle, the number that every subcategory had before it.
    """

    substates: IntArray
    weights: FloatArray
    split_tree: tuple[IntArray, ...] = ()

    @property
    def firsts(self) -> IntArray:
        """Number of the first subcategory of every symbol, and of all at the end."""
        return np.concatenate([[0], np.cumsum(self.substates)]).astype(np.int32)

    @property
    def branches(self) -> IntArray:
        """Per subcategory, the half of its symbol's first split that it is below, 0 or 1."""
        found = np.zeros(int(self.substates.sum()), dtype=np.int32)
        symbols = np.repeat(np.arange(len(self.substates)), self.substates)
        above: IntArray = np.arange(len(found), dtype=np.int32)
        open_symbols = np.ones(len(self.substates), dtype=np.bool_)
        # From the root of the history down: the first level with two subcategories decides.
        levels = [above]
        for before in reversed(self.split_tree):
            above = before[above]
            levels.append(above)
        for level in reversed(levels):
            sizes = np.bincount(symbols[np.unique(level, return_index=True)[1]])
            decided = open_symbols & (sizes > 1)
            first = np.full(len(self.substates), np.iinfo(np.int32).max, dtype=np.int32)
            np.minimum.at(first, symbols, level)
            here = decided[symbols]
            found[here] = (level - first[symbols])[here] > 0
            open_symbols &= ~decided
        return found


@dataclass(frozen=True, slots=True)
class Iteration:
    """The state of training after one iteration.

    Args:
        cycle: Cycle, counted from 1.
        phase: What the iteration is for.
        number: Iteration within the phase, counted from 1.
        log_likelihood: Log likelihood of the trees before the iteration.
        held_out: Log likelihood of held-out trees after it, where there are any.
        impossible: Number of trees whose probability is zero.
        substates: Number of subcategories of all symbols together.
    """

    cycle: int
    phase: Phase
    number: int
    log_likelihood: float
    held_out: float | None
    impossible: int
    substates: int


#: Log likelihood of held-out trees, given a grammar and the expected counts of words.
HeldOut = Callable[[LatentWeights, FloatArray], float]


def unsplit_weights(trees: LatentTrees) -> LatentWeights:
    """Return the relative frequencies of the rules, one subcategory for each symbol."""
    substates = np.ones(trees.rules.symbols, dtype=np.int32)
    weights = trees.rule_counts.copy()
    maximize(trees.rules, substates, weights, trees.rule_counts)
    return LatentWeights(substates, weights)


def maximize(
    rules: LatentRules,
    substates: IntArray,
    counts: FloatArray,
    previous: FloatArray,
    *,
    rule_filter: float = 0.0,
    threads: int = 1,
) -> None:
    """Turn counts into relative frequencies for every subcategory of a parent, in place.

    Args:
        rules: The rules.
        substates: Subcategories of all symbols.
        counts: Expected counts; overwritten with weights.
        previous: Weights that a subcategory without counts keeps.
        rule_filter: Smaller weights become zero.
        threads: Number of threads.
    """
    with kernel_errors("dividing counts"):
        _native.normalize_rules(
            rules.rows, substates, counts, previous, rule_filter=rule_filter, threads=threads
        )


def smooth(
    rules: LatentRules,
    substates: IntArray,
    weights: FloatArray,
    *,
    rule_smoothing: float,
    lexical_smoothing: float,
    branches: IntArray | None = None,
    threads: int = 1,
) -> None:
    """Move weights towards their mean over the subcategories of the parent, in place.

    Args:
        rules: The rules.
        substates: Subcategories of all symbols.
        weights: Weights of all rules.
        rule_smoothing: How far rules are moved.
        lexical_smoothing: How far words under tags are moved.
        branches: The branch of each subcategory, where the mean is over the others of its branch.
        threads: Number of threads.
    """
    one_group = np.zeros(int(substates.sum()), dtype=np.int32)
    with kernel_errors("smoothing rules"):
        _native.smooth_rules(
            rules.rows,
            substates,
            weights,
            groups=one_group if branches is None else branches,
            others=branches is not None,
            phrasal_share=rule_smoothing,
            lexical_share=lexical_smoothing,
            threads=threads,
        )


def split(
    rules: LatentRules, before: LatentWeights, *, noise: float, seed: int, cycle: int
) -> LatentWeights:
    """Return the grammar with every subcategory but ROOT's split in two.

    The history gets one level: the number of each half's origin.
    """
    substates = before.substates * 2
    substates[0] = 1
    with kernel_errors("splitting subcategories"):
        weights = _native.split_rules(
            rules.rows,
            before.substates,
            substates,
            before.weights,
            noise=noise,
            seed=seed,
            stream=cycle,
        )
    origin = np.repeat(np.arange(len(before.substates)), substates)
    within = np.arange(len(origin)) - np.repeat(np.cumsum(substates) - substates, substates)
    halves = np.where(substates[origin] > before.substates[origin], 2, 1)
    level = (before.firsts[origin] + within // halves).astype(np.int32)
    return LatentWeights(substates, weights, (*before.split_tree, level))


def sibling_shares(rules: LatentRules, state: LatentWeights, counts: FloatArray) -> FloatArray:
    """Return the share of each subcategory in itself and its sibling together."""
    totals = _native.substate_totals(rules.rows, state.substates, counts)
    firsts = _even_places(state.substates)
    both = totals[firsts] + totals[firsts + 1]
    shares = np.ones(len(totals))
    used = both > 0
    shares[firsts] = np.where(used, totals[firsts] / np.where(used, both, 1), 0.5)
    shares[firsts + 1] = 1 - shares[firsts]
    return shares


def merge(
    rules: LatentRules,
    state: LatentWeights,
    gains: FloatArray,
    shares: FloatArray,
    fraction: float,
) -> LatentWeights:
    """Return the grammar after undoing the splits that cost the least likelihood.

    Args:
        rules: The rules.
        state: The grammar after a split.
        gains: What each merge gains (mostly a loss), at the even subcategories.
        shares: Share of each subcategory in itself and its sibling together.
        fraction: Share of the pairs of siblings that are merged.
    """
    firsts = _even_places(state.substates)
    order = np.argsort(-gains[firsts], kind="stable")
    chosen = firsts[order[: int(fraction * len(firsts))]]
    kept = np.ones(len(shares), dtype=np.bool_)
    kept[chosen + 1] = False
    parts = np.ones(len(shares))
    parts[chosen], parts[chosen + 1] = shares[chosen], shares[chosen + 1]
    target = (np.cumsum(kept) - 1).astype(np.int32)
    substates = np.add.reduceat(kept.astype(np.int32), state.firsts[:-1]).astype(np.int32)
    with kernel_errors("merging subcategories"):
        weights = _native.merge_rules(
            rules.rows, state.substates, substates, state.weights, target, parts
        )
    return LatentWeights(
        substates, weights, (*state.split_tree[:-1], state.split_tree[-1][kept].copy())
    )


def _even_places(substates: IntArray) -> IntArray:
    """Return the first of every pair of siblings among all subcategories after a split."""
    first = np.repeat(np.cumsum(substates) - substates, substates)
    within = np.arange(len(first)) - first
    paired = np.repeat(substates > 1, substates)
    return np.flatnonzero(paired & (within % 2 == 0)).astype(np.int32)


@dataclass(frozen=True, eq=False)
class SplitMerge:
    """The training of a grammar; cycles can be run one by one.

    Args:
        trees: What it is trained on.
        options: Constants.
        threads: Number of threads.
        held_out: Evaluates the grammars of a phase, of which the best is kept; None: the last is.
        rare: Words that share the distribution over the subcategories of their tags; None: all
            learn their own.
        executor: Does expectation steps.
    """

    trees: LatentTrees
    options: SplitMergeOptions = field(default_factory=SplitMergeOptions)
    threads: int = 1
    held_out: HeldOut | None = None
    rare: RareWords | None = None
    executor: Executor = SERIAL

    def run_cycle(
        self, state: LatentWeights, cycle: int
    ) -> Generator[Iteration, None, LatentWeights]:
        """Run one cycle: split, learn, merge, learn, smooth.

        Args:
            state: The grammar before the cycle.
            cycle: Number of the cycle, from 1; chooses the noise.

        Yields:
            Every iteration.

        Returns:
            The grammar after the cycle.
        """
        options = self.options
        state = split(self.trees.rules, state, noise=options.noise, seed=options.seed, cycle=cycle)
        state = yield from self._learn(state, cycle, "split", options.split_iterations)
        state = self.merged(state)
        state = yield from self._learn(state, cycle, "merge", options.merge_iterations)
        state = yield from self._learn(state, cycle, "smooth", options.smooth_iterations)
        return state

    def merged(self, state: LatentWeights) -> LatentWeights:
        """Return the grammar with the least useful splits undone (5.1 to 5.4)."""
        found = self.expect(state)
        shares = sibling_shares(self.trees.rules, state, found.counts)
        gains = self.trees.merge_gains(state.substates, state.weights, shares, threads=self.threads)
        return merge(self.trees.rules, state, gains, shares, self.options.merge_fraction)

    def expect(self, state: LatentWeights, counts: FloatArray | None = None) -> Expectation:
        """Return expected counts, checked; `counts` is an array to fill."""
        found = self.trees.expect(
            state.substates,
            state.weights,
            counts=counts,
            threads=self.threads,
            executor=self.executor,
        )
        found.check()
        return found

    def _learn(
        self, state: LatentWeights, cycle: int, phase: Phase, iterations: int
    ) -> Generator[Iteration, None, LatentWeights]:
        """Run expectation-maximization and return the best grammar, or the last."""
        best, best_value = state, -np.inf
        spare = np.empty_like(state.weights)  # two arrays take turns as counts and as weights
        for number in range(1, iterations + 1):
            before = state
            found = self.expect(before, spare)
            lexical = self._lexical_counts(before.substates, found.counts)
            state = replace(before, weights=self._maximized(before, found.counts, phase))
            value = None
            if self.held_out is not None:
                value = self.held_out(state, lexical)
                if value > best_value:
                    best, best_value = state, value
            spare = before.weights
            if number == 1 or before is best:  # the caller's array
                spare = np.empty_like(spare)
            yield Iteration(
                cycle,
                phase,
                number,
                found.log_likelihood,
                value,
                found.impossible,
                int(state.substates.sum()),
            )
        return best if best_value > -np.inf else state

    def _lexical_counts(self, substates: IntArray, counts: FloatArray) -> FloatArray:
        return self.trees.rules.split_weights(substates, counts)[2].copy()

    def _maximized(self, before: LatentWeights, counts: FloatArray, phase: Phase) -> FloatArray:
        """Turn expected counts into the next weights, in place."""
        rules, options = self.trees.rules, self.options
        if self.rare is not None:
            self.rare.tie(rules.split_weights(before.substates, counts)[2], before.substates)
        maximize(
            rules,
            before.substates,
            counts,
            before.weights,
            rule_filter=options.rule_filter,
            threads=self.threads,
        )
        if phase == "smooth":
            smooth(
                rules,
                before.substates,
                counts,
                rule_smoothing=options.rule_smoothing,
                lexical_smoothing=options.lexical_smoothing,
                branches=before.branches if options.smoothing_scope == "branch" else None,
                threads=self.threads,
            )
        return counts
