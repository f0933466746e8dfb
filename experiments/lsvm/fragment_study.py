"""Why fragments judge worse than single rules: one thing changed at a time, on dev alone."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
from sentences import write_lines
from systems import LABELS, Systems

from treelm.corpus.files import read_lines
from treelm.corpus.words import split_words
from treelm.extras import import_extra
from treelm.grammar.forest_file import ForestFile
from treelm.models.interface.cached_parser import CachedParser
from treelm.models.tree_features.config import GRID, TreeFeaturesConfig
from treelm.models.tree_features.features import best_parses, length_class, rows_of
from treelm.models.tree_features.fragments import FragmentGrammar, rule_of
from treelm.models.trigram_svm.linear_svm import Chosen, choose, fit_linear
from treelm.tasks.evaluate.comparison import compare_answers
from treelm.tasks.report.report import Report
from treelm.tasks.report.results import Result
from treelm.trees.tree import Tree

TABLE = "Fragments and single rules, on dev"
RULES = "CFG rules"
#: Treebanks of fragments, unless the recipe is told others.
TREEBANKS = ("wsj-sample", "gum", "masc")
#: More than any fragment is seen: only single rules remain.
NONE_LARGER = 1 << 40

Flags = npt.NDArray[np.bool_]
Count = Callable[[Sequence[Tree]], list[Counter[str]]]
Scale = Callable[[Any], Any]


@dataclass(frozen=True)
class Variant:
    """One way to count features of trees, and to weigh them.

    Args:
        name: Its row in the table.
        count: Returns the features of trees.
        scale: What is done to the matrix of counts; None for nothing.
        least: Features of fewer training sentences are dropped.
        half: Train on the sentences that were not used to find fragments: every other one.
    """

    name: str
    count: Count
    scale: Scale | None = None
    least: int = 5
    half: bool = False


class FragmentStudy:
    """Parses of the training and dev sentences, and classifiers over features of them.

    Args:
        systems: The sentences, the parser and the treebanks.
    """

    def __init__(self, systems: Systems) -> None:
        self._systems = systems
        self._seed = systems.seed
        files = [systems.file(label, part) for part in ("train", "dev") for label in LABELS]
        text = systems.work / "data" / "train-dev.txt"
        if not text.is_file():
            lines = (line for file in files for line in read_lines(file))
            write_lines(text, dict.fromkeys(lines))
        parser = CachedParser(ForestFile(systems.parses("train-dev", text)))
        options = TreeFeaturesConfig()
        parsed = [
            [
                parse.tree
                for parse in best_parses(parser, map(split_words, read_lines(file)), options)
            ]
            for file in files
        ]
        self._train = parsed[0] + parsed[1]
        self._dev = parsed[2] + parsed[3]
        self._labels, self._dev_labels = (
            np.repeat(np.array([1, -1], np.int8), [len(good), len(bad)])
            for good, bad in (parsed[:2], parsed[2:])
        )
        self._good = parsed[0]

    # -- ways to count ----------------------------------------------------------------------

    @cache  # noqa: B019 (the one object lives as long as the study)
    def grammar(self, source: str, stop: float = 0.8) -> FragmentGrammar:
        """Return all fragments of some trees, rare ones too.

        Args:
            source: ``treebanks``, ``half`` (every other good sentence) or ``good`` (all of them).
            stop: Probability that a new fragment stops at a child; smaller makes larger ones.
        """
        trees = {
            "treebanks": lambda: self._systems.treebank(names=self._systems.fragments or TREEBANKS),
            "half": lambda: self._good[::2],
            "good": lambda: self._good,
        }[source]()
        options = TreeFeaturesConfig(features="tsg", min_fragment=1, stop=stop, seed=self._seed)
        return FragmentGrammar.sample(trees, options)

    def fragments(
        self,
        source: str,
        *,
        least: int = 5,
        stop: float = 0.8,
        rules: bool = False,
        unknown: bool = False,
        sizes: bool = True,
    ) -> Count:
        """Return what counts fragments.

        Args:
            source: Where they come from.
            least: Larger fragments seen less often are dropped.
            stop: See `grammar`.
            rules: Count all rules besides.
            unknown: Count rules that no fragment has by themselves, not as one feature.
            sizes: Count how large the fragments are.
        """

        def count(trees: Sequence[Tree]) -> list[Counter[str]]:
            grammar = self.grammar(source, stop).frequent(least)
            known = frozenset(grammar.rules)
            counted = grammar.features(trees)
            if not sizes:
                counted = [
                    Counter({name: n for name, n in own.items() if name.startswith(_OF_FRAGMENTS)})
                    for own in counted
                ]
            if rules or unknown:
                for own, tree in zip(counted, trees, strict=True):
                    names = map(rule_of, tree.preorder())
                    own.update(name for name in names if rules or name not in known)
            return counted

        return count

    def variants(self) -> Iterator[Variant]:
        """Yield everything that is compared, rules first."""
        fragments = self.fragments
        treebanks = fragments("treebanks")
        yield Variant(RULES, rules_of)
        yield Variant("fragments of treebanks", treebanks)
        # 1. What the fragments cover.
        yield Variant(
            "the same, rules that they lack by name", fragments("treebanks", unknown=True)
        )
        yield Variant(
            "single rules of treebanks", fragments("treebanks", least=NONE_LARGER, sizes=False)
        )
        yield Variant(
            "single rules of treebanks, others by name",
            fragments("treebanks", least=NONE_LARGER, sizes=False, unknown=True),
        )
        yield Variant("fragments of every other good sentence", fragments("half"), half=True)
        yield Variant(f"{RULES}, as few training sentences", rules_of, half=True)
        yield Variant("fragments of all good sentences, which train too", fragments("good"))
        # 2. What one cut of a tree hides.
        yield Variant("fragments of treebanks, and all rules", fragments("treebanks", rules=True))
        yield Variant(
            "fragments of every other good sentence, and all rules",
            fragments("half", rules=True),
            half=True,
        )
        # 3. Sizes and counts of fragments.
        for least in (2, 20, 100):
            name = f"fragments of treebanks seen {least} times or more"
            yield Variant(name, fragments("treebanks", least=least, unknown=True))
        for stop, size in ((0.5, "larger"), (0.95, "smaller")):
            name = f"{size} fragments of treebanks (stop {stop:g})"
            yield Variant(name, fragments("treebanks", stop=stop, unknown=True))
        # 4. How features are weighed.
        for scale, name in ((present, "present or not"), (of_length_one, "rows of length one")):
            yield Variant(f"{RULES}, {name}", rules_of, scale)
            yield Variant(f"fragments of treebanks, {name}", treebanks, scale)
        yield Variant("fragments of treebanks in 1 sentence or more", treebanks, least=1)

    # -- classifiers ------------------------------------------------------------------------

    def chosen(self, variant: Variant) -> tuple[Chosen[Any], int]:
        """Return the best classifier of the grid, by dev, and its number of features."""
        places = np.arange(len(self._train))
        if variant.half:
            good = len(self._good)
            places = np.concatenate([places[1:good:2], places[good + 1 :: 2]])
        trees = [self._train[place] for place in places.tolist()]
        labels = self._labels[places]
        names, points = rows_of(with_lengths(variant.count, trees), None).frequent(variant.least)
        ids = {name: number for number, name in enumerate(names)}
        held = rows_of(with_lengths(variant.count, self._dev), ids).matrix()
        if variant.scale is not None:
            points, held = variant.scale(points), variant.scale(held)

        def attempt(value: float) -> tuple[None, npt.NDArray[np.float64]]:
            weights, offset = fit_linear(points, labels, value, self._seed)
            return None, held @ weights + offset

        grid = GRID if variant.scale is not of_length_one else tuple(g / 1000 for g in GRID)
        return choose(grid, attempt, self._dev_labels), len(names)

    def unknown_share(self, source: str) -> tuple[float, float]:
        """Return the share of rules of good and of bad dev trees that no fragment has."""
        known = frozenset(self.grammar(source).rules)
        half = int((self._dev_labels > 0).sum())
        good, bad = (
            [rule_of(node) not in known for tree in trees for node in tree.preorder()]
            for trees in (self._dev[:half], self._dev[half:])
        )
        return float(np.mean(good)), float(np.mean(bad))

    def write(self, report: Report, chosen: Sequence[str] = ()) -> None:
        """Add accuracies on dev, each tested against that of single rules.

        Args:
            report: Gets the rows.
            chosen: Names of the variants to try besides single rules; none for all.
        """
        rules: Flags | None = None
        rows = []
        for variant in self.variants():
            if chosen and variant.name not in {RULES, *chosen}:
                continue
            best, features = self.chosen(variant)
            right = (best.margins > 0) == (self._dev_labels > 0)
            compared = None if rules is None else compare_answers(right, rules, seed=self._seed)
            rules = right if rules is None else rules
            done = f"{variant.name}: {best.accuracy:.4f}, {features} features"
            print(done, file=sys.stderr, flush=True)
            report.add_result(
                Result(
                    table=TABLE,
                    model=variant.name,
                    metric="accuracy",
                    data="dev",
                    value=best.accuracy,
                    n=len(right),
                    digits=4,
                )
            )
            if compared is not None:
                report.add_result(
                    Result(
                        table=TABLE,
                        model=variant.name,
                        metric=f"difference from {RULES}",
                        data="dev",
                        value=compared.difference,
                        n=len(right),
                        interval=compared.interval,
                        p=compared.p_value,
                        baseline=f"{RULES} (exact McNemar)",
                        digits=4,
                    )
                )
            rows.append((variant.name, str(features), f"{best.regularization:.3g}"))
        report.add_table(f"{TABLE}: features", ("features", "number", "regularization"), rows)
        shares = [
            (name, *(f"{share:.4f}" for share in self.unknown_share(source)))
            for source, name in (("treebanks", "treebanks"), ("half", "every other good sentence"))
        ]
        columns = ("fragments of", "good sentences", "bad sentences")
        report.add_table("Share of the rules of dev trees that no fragment has", columns, shares)


#: How the names of features begin that are fragments, not sizes.
_OF_FRAGMENTS = ("fragment ", "unknown rule")


def rules_of(trees: Sequence[Tree]) -> list[Counter[str]]:
    """Return the rules of trees."""
    return [Counter(map(rule_of, tree.preorder())) for tree in trees]


def with_lengths(count: Count, trees: Sequence[Tree]) -> Iterator[Counter[str]]:
    """Yield features of trees, and their lengths, as the package does."""
    for tree, own in zip(trees, count(trees), strict=True):
        own[length_class(len(tree.words))] += 1
        yield own


def present(matrix: Any) -> Any:
    """Return a matrix that tells whether a feature is there."""
    return matrix.sign()


def of_length_one(matrix: Any) -> Any:
    """Return a matrix whose rows have length one, so that long sentences count no more."""
    sparse = import_extra("scipy.sparse", "Scaling features")
    norms = np.sqrt(np.asarray(matrix.multiply(matrix).sum(axis=1)).ravel())
    return sparse.csr_matrix(sparse.diags(1.0 / np.maximum(norms, 1e-12)) @ matrix)


def report_fragments(report: Report, systems: Systems, chosen: Sequence[str]) -> None:
    """Add the study to a report, or some of its variants."""
    FragmentStudy(systems).write(report, chosen)
