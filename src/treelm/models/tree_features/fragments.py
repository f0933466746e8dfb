"""Fragments of trees: a tree-substitution grammar, and the best way to cut trees into it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from treelm import _native
from treelm.kernel_errors import kernel_errors
from treelm.models.tree_features.config import TreeFeaturesConfig
from treelm.parallel.progress import SILENT, Progress, kernel_report
from treelm.pickling import PickledFields
from treelm.trees.tree import Tree

Ids = npt.NDArray[np.int32]
Places = npt.NDArray[np.int64]

#: Heights and numbers of open children from here on are one class.
_LARGEST = 8
_OPEN = "*"


def rule_of(node: Tree) -> str:
    """Return a node's label with those of its children, or with its word.

    Examples:
        >>> rule_of(Tree("NP", [Tree("DT", "the"), Tree("NN", "dog")]))
        'NP -> DT NN'
        >>> rule_of(Tree("DT", "the"))
        'DT => the'
    """
    if node.word is not None:
        return f"{node.label} => {node.word}"
    return f"{node.label} -> {' '.join(str(child.label) for child in node.children)}"


@dataclass(frozen=True, eq=False)
class FragmentGrammar(PickledFields):
    """Fragments with their counts.

    Args:
        rules: Rules as strings; the label ends at the first space.
        starts: First token of each fragment.
        tokens: Rules of fragments in preorder, -1 for a child that is left open.
        counts: How often each fragment was seen.
    """

    rules: tuple[str, ...]
    starts: Places
    tokens: Ids
    counts: npt.NDArray[np.uint64]

    @cached_property
    def _rule_ids(self) -> dict[str, int]:
        return {rule: number for number, rule in enumerate(self.rules)}

    @cached_property
    def _label_ids(self) -> dict[str, int]:
        labels = dict.fromkeys(rule.split(" ", 1)[0] for rule in self.rules)
        return {label: number for number, label in enumerate(labels)}

    @cached_property
    def _cover(self) -> _native.FragmentCover:
        labels = [self._label_ids[rule.split(" ", 1)[0]] for rule in self.rules]
        with kernel_errors("reading fragments"):
            return _native.FragmentCover(
                starts=self.starts,
                tokens=self.tokens,
                counts=self.counts,
                rule_labels=np.array(labels, np.int32),
                label_count=len(self._label_ids),
            )

    def __len__(self) -> int:
        return len(self.counts)

    def check(self) -> None:
        """Check that everything fits together.

        Raises:
            EstimationError: ``E_ARGUMENT`` if it does not.
        """
        assert self._cover is not None  # making it checks everything

    @classmethod
    def sample(
        cls, trees: Iterable[Tree], config: TreeFeaturesConfig, progress: Progress = SILENT
    ) -> FragmentGrammar:
        """Return fragments of trees, found by Gibbs sampling.

        Args:
            trees: The trees.
            config: How they are sampled.
            progress: Progress callback.
        """
        kept = list(trees)
        counts = Counter(rule_of(node) for tree in kept for node in tree.preorder())
        rules = tuple(sorted(counts))
        nothing = np.zeros(0, np.int64)
        made = cls(rules, nothing, nothing.astype(np.int32), nothing.astype(np.uint64))
        totals: Counter[str] = Counter()
        for rule, count in counts.items():
            totals[rule.split(" ", 1)[0]] += count
        values = [np.log(counts[rule] / totals[rule.split(" ", 1)[0]]) for rule in rules]
        with (
            progress.step("sampling fragments", total=config.sweeps, unit="sweeps") as step,
            kernel_errors("sampling fragments"),
        ):
            starts, tokens, found = _native.sample_fragments(
                **made._arrays(kept),
                rule_log_probs=np.array(values, np.float64),
                label_count=len(made._label_ids),
                concentration=config.concentration,
                stop=config.stop,
                sweeps=config.sweeps,
                seed=config.seed,
                progress=kernel_report(step),
            )
        return cls(rules, starts, tokens, found).frequent(config.min_fragment)

    def frequent(self, least: int) -> FragmentGrammar:
        """Return the grammar without rarer fragments; single rules stay, however rare."""
        sizes = np.add.reduceat((self.tokens >= 0).astype(np.int64), self.starts[:-1])
        kept = (self.counts >= least) | (sizes == 1)
        lengths = np.diff(self.starts)
        return FragmentGrammar(
            self.rules,
            np.concatenate([[0], np.cumsum(lengths[kept])]).astype(np.int64),
            self.tokens[np.repeat(kept, lengths)],
            self.counts[kept],
        )

    def _arrays(self, trees: Sequence[Tree]) -> dict[str, Any]:
        rules: list[int] = []
        labels: list[int] = []
        sizes: list[int] = []
        starts = [0]
        for tree in trees:
            nodes = list(tree.preorder())
            own = [1] * len(nodes)
            stack: list[int] = []
            for place in range(len(nodes) - 1, -1, -1):
                for _ in nodes[place].children:
                    own[place] += own[stack.pop()]
                stack.append(place)
            rules.extend(self._rule_ids.get(rule_of(node), -1) for node in nodes)
            labels.extend(self._label_ids.get(str(node.label), -1) for node in nodes)
            sizes.extend(own)
            starts.append(len(rules))
        return {
            "starts": np.array(starts, np.int64),
            "rules": np.array(rules, np.int32),
            "labels": np.array(labels, np.int32),
            "sizes": np.array(sizes, np.int32),
        }

    def features(self, trees: Sequence[Tree], *, threads: int = 1) -> list[Counter[str]]:
        """Return the fragments of the best cut of every tree, and how large they are.

        Args:
            trees: The trees.
            threads: Number of threads.
        """
        with kernel_errors("cutting trees"):
            starts, fragments, heights, opens = self._cover.derive(
                **self._arrays(trees), threads=threads
            )
        rows = zip(fragments.tolist(), heights.tolist(), opens.tolist(), strict=True)
        everything = [_shown(*row) for row in rows]
        return [
            Counter(name for names in everything[first:last] for name in names)
            for first, last in zip(starts[:-1].tolist(), starts[1:].tolist(), strict=True)
        ]

    def text(self, fragment: int) -> str:
        """Return a fragment as a string: its rules in preorder, a star for an open child."""
        part = self.tokens[self.starts[fragment] : self.starts[fragment + 1]].tolist()
        return " | ".join(_OPEN if token < 0 else self.rules[token] for token in part)


def _shown(fragment: int, height: int, opens: int) -> list[str]:
    tall, wide = min(height, _LARGEST), min(opens, _LARGEST)
    names = [f"height {tall}", f"open {wide}", f"shape {tall} {wide}"]
    names.append("large" if height > 2 or opens > 3 else "small")
    names.append("unknown rule" if fragment < 0 else f"fragment {fragment}")
    return names
