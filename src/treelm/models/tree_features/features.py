"""What is counted in a tree, as names with counts, and as rows of a sparse matrix."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

import numpy as np
import numpy.typing as npt

from treelm.extras import import_extra
from treelm.grammar.parser_options import ParserOptions
from treelm.grammar.scored_tree import ParseStatus, ScoredTree
from treelm.models.interface.parser import Parser, best_trees
from treelm.models.tree_features.config import TreeFeaturesConfig
from treelm.models.tree_features.fragments import FragmentGrammar, rule_of
from treelm.models.tree_features.rerank import rerank_features
from treelm.parallel.progress import SILENT, Progress
from treelm.trees.heads import find_heads_all
from treelm.trees.tree import Tree

#: Number of sentences parsed and processed together.
_BATCH = 512


def length_class(words: int) -> str:
    """Return the number of words, from 20 on in steps of five, as a feature.

    Examples:
        >>> length_class(7), length_class(23), length_class(99)
        ('length 7', 'length 20', 'length 60')
    """
    return f"length {words if words < 20 else min(words - words % 5, 60)}"


def best_parses(
    parser: Parser,
    sentences: Iterable[Sequence[str]],
    config: TreeFeaturesConfig,
    *,
    threads: int = 1,
) -> Iterator[ScoredTree]:
    """Yield the best parse of every sentence; a flat tree where there is none.

    Args:
        parser: The parser.
        sentences: Each a sequence of words, at least one.
        config: Options, with the pruning of a grammar.
        threads: Number of threads.
    """
    rest = iter(sentences)
    own = getattr(parser, "parser_options", None) or ParserOptions()
    options = ParserOptions(pruning=config.pruning, max_words=own.max_words)
    while batch := list(islice(rest, _BATCH)):
        found = best_trees(parser, batch, options=options, threads=threads)
        for words, parse in zip(batch, found, strict=True):
            yield _flat(words) if parse is None else parse


def _flat(words: Sequence[str]) -> ScoredTree:
    tree = Tree("ROOT", [Tree("X", [Tree("X", word) for word in words])])
    return ScoredTree(tree, -math.inf, -math.inf, ParseStatus.FAILED)


def tree_features(
    parses: Iterable[ScoredTree],
    config: TreeFeaturesConfig,
    grammar: FragmentGrammar | None,
    *,
    threads: int = 1,
) -> Iterator[Counter[str]]:
    """Yield how often each feature occurs in each tree.

    Args:
        parses: The trees, each with the log probability of its words.
        config: Options: which features are counted.
        grammar: Fragments, if they are counted.
        threads: Number of threads.
    """
    rest = iter(parses)
    while found := list(islice(rest, _BATCH)):
        batch = [parse.tree for parse in found]
        if config.features == "cfg":
            counted = [Counter(map(rule_of, tree.preorder())) for tree in batch]
        elif config.features == "rerank":
            chances = [parse.sentence_log_prob for parse in found]
            counted = list(map(rerank_features, find_heads_all(batch), chances))
        elif grammar is not None:
            counted = grammar.features(batch, threads=threads)
        else:
            raise ValueError("there are no fragments to count")
        for tree, counts in zip(batch, counted, strict=True):
            counts[length_class(len(tree.words))] += 1
            yield counts


class FeatureMatrix:
    """Rows of counts that grow sentence by sentence, without the names.

    Args:
        ids: Numbers of features; None to give new ones a number.
    """

    def __init__(self, ids: Mapping[str, int] | None = None) -> None:
        self._fixed = ids
        self.ids: dict[str, int] = {}
        self._columns: list[npt.NDArray[np.int32]] = []
        self._values: list[npt.NDArray[np.float64]] = []

    def add(self, counts: Mapping[str, int]) -> None:
        """Add the features of a sentence."""
        if self._fixed is None:
            own, given = self.ids, counts.items()
            pairs = [(own.setdefault(name, len(own)), count) for name, count in given]
        else:
            known = self._fixed
            pairs = [(known[name], count) for name, count in counts.items() if name in known]
        pairs.sort()
        self._columns.append(np.array([column for column, _ in pairs], np.int32))
        self._values.append(np.array([value for _, value in pairs], np.float64))

    def margins(self, weights: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """Return the weighted sum of every row, which needs no matrix and so no extra package."""
        sums = [
            float(values @ weights[columns])
            for columns, values in zip(self._columns, self._values, strict=True)
        ]
        return np.array(sums, np.float64)

    def matrix(self) -> Any:
        """Return the sparse matrix."""
        sparse = import_extra("scipy.sparse", "Training a classifier by tree features")
        width = len(self.ids if self._fixed is None else self._fixed)
        starts = np.concatenate([[0], np.cumsum([len(row) for row in self._columns])])
        return sparse.csr_matrix(
            (
                np.concatenate([*self._values, np.zeros(0)]),
                np.concatenate([*self._columns, np.zeros(0, np.int32)]),
                starts.astype(np.int64),
            ),
            shape=(len(self._columns), width),
        )

    def frequent(self, least: int) -> tuple[tuple[str, ...], Any]:
        """Return the names of features in enough sentences, sorted, and their matrix."""
        matrix = self.matrix()
        sentences = np.bincount(matrix.indices, minlength=len(self.ids))
        names = sorted(name for name, column in self.ids.items() if sentences[column] >= least)
        return tuple(names), matrix[:, [self.ids[name] for name in names]]


def rows_of(
    counted: Iterable[Mapping[str, int]],
    ids: Mapping[str, int] | None,
    *,
    total: int | None = None,
    progress: Progress = SILENT,
) -> FeatureMatrix:
    """Return the features of sentences as rows."""
    rows = FeatureMatrix(ids)
    with progress.step("counting features", total=total, unit="sentences") as step:
        for counts in counted:
            rows.add(counts)
            step.advance(1)
    return rows
