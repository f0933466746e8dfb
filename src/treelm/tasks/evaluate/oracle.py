"""Oracle scores: what a perfect choice among the k best trees would score."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass

import numpy as np
import numpy.typing as npt

from treelm.corpus.brackets import EVALUATION_OPTIONS, ReadOptions
from treelm.corpus.files import Source, is_forest
from treelm.corpus.k_best_lists import read_packed_lists
from treelm.errors import CorpusFormatError
from treelm.grammar.forest_file import ForestFile
from treelm.grammar.k_best import KBest
from treelm.grammar.k_best_arrays import k_best_of_list
from treelm.signature import signature
from treelm.tasks.evaluate.parse_accuracy import precision_recall_f1, score_parse
from treelm.trees.constituents import Constituent
from treelm.trees.counted_brackets import bracket_spans, ignored_positions
from treelm.trees.profile import Profile, ProfileSource, load_profile
from treelm.trees.tree import Tree

#: Default lengths of lists.
LENGTHS = (1, 10, 100, 1000)


@dataclass(frozen=True, slots=True)
class OraclePoint:
    """The score of the best trees among the first `k` of each list; shares are between 0 and 1."""

    k: int
    labelled_precision: float
    labelled_recall: float
    labelled_f1: float
    exact_match: float
    trees: float
    """Average number of trees per sentence to choose from."""
    mean_rank: float
    """Average place of the chosen tree in its list, counted from 1."""

    def to_record(self) -> dict[str, float]:
        """Return the numbers by name."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class OracleScores:
    """Scores by length of list."""

    points: tuple[OraclePoint, ...]
    sentences: int
    unparsed: int
    """Number of sentences without any tree; they count against recall."""
    signature: str


def evaluate_oracle(
    gold: Iterable[Tree],
    k_best: Iterable[KBest | None],
    lengths: Sequence[int] = LENGTHS,
    profile: ProfileSource = "english",
) -> OracleScores:
    """Return bracket scores of the best tree of each list, by evalb's conventions.

    The best is the one with the highest labelled F1, the first of several.

    Args:
        gold: The gold trees.
        k_best: The parser's trees of the same sentences, None or empty where it found none.
        lengths: Numbers of trees of each list to consider.
        profile: Language profile.

    Raises:
        CorpusFormatError: ``E_YIELD_MISMATCH`` if the words of a list differ,
            ``E_LENGTH_MISMATCH`` if there is not one list for each tree.
    """
    rules = load_profile(profile)
    rows = []  # gold, and per length: matched, guessed, chosen, trees
    try:
        for right, found in zip(gold, k_best, strict=True):
            rows.append(_best_of(right, found, lengths, rules))
    except ValueError as error:
        raise CorpusFormatError(
            "there must be one k-best list for each gold tree, of the same sentences. "
            "Parse the words of the gold trees, one sentence per line.",
            code="E_LENGTH_MISMATCH",
        ) from error
    total = sum(row.gold for row in rows)
    points = []
    for place, k in enumerate(lengths):
        chosen = [row.chosen[place] for row in rows]
        matched, guessed = sum(c.matched for c in chosen), sum(c.guessed for c in chosen)
        parsed = [c for c in chosen if c.rank]
        exact = sum(
            bool(c.rank) and row.gold == c.guessed == c.matched
            for row, c in zip(rows, chosen, strict=True)
        )
        points.append(
            OraclePoint(
                k,
                *precision_recall_f1(matched, guessed, total),
                exact_match=exact / len(rows) if rows else 0.0,
                trees=sum(min(k, row.trees) for row in rows) / len(rows) if rows else 0.0,
                mean_rank=sum(c.rank for c in parsed) / len(parsed) if parsed else 0.0,
            )
        )
    return OracleScores(
        tuple(points),
        len(rows),
        sum(row.trees == 0 for row in rows),
        signature(task="oracle", profile=rules.short_name, n=len(rows)),
    )


@dataclass(frozen=True, slots=True)
class _Chosen:
    matched: int
    guessed: int
    rank: int  # from 1; 0 for none


@dataclass(frozen=True, slots=True)
class _Row:
    gold: int
    trees: int
    chosen: tuple[_Chosen, ...]


def _best_of(gold: Tree, found: KBest | None, lengths: Sequence[int], rules: Profile) -> _Row:
    ignored = ignored_positions(gold, rules)
    right = bracket_spans(gold, ignored, rules)
    total = right.total()
    if not found:
        return _Row(total, 0, (_Chosen(0, 0, 0),) * len(lengths))
    score_parse(gold, found[0].tree, rules)  # checks the words
    matched, guessed = _matches(ignored, right, found, rules)
    sums = guessed + total
    f1 = np.where(sums > 0, 2 * matched / np.maximum(sums, 1), 1.0)
    chosen = []
    for k in lengths:
        place = int(np.argmax(f1[:k]))
        chosen.append(_Chosen(int(matched[place]), int(guessed[place]), place + 1))
    return _Row(total, len(found), tuple(chosen))


def _matches(
    ignored: frozenset[int], right: Counter[Constituent], found: KBest, rules: Profile
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return the number of correct constituents, and of all, of every tree of a list."""
    words = len(found.words)
    counts = np.array([position not in ignored for position in range(words)], dtype=np.int64)
    is_leaf = found.node_size == 1
    kept = np.zeros(len(is_leaf) + 1, dtype=np.int64)
    kept[1:][is_leaf] = np.tile(counts, len(found))
    kept = np.cumsum(kept)  # words that count before each node
    starts = found.tree_start.astype(np.int64)
    tree = np.repeat(np.arange(len(found)), starts[1:] - starts[:-1])
    before = tree * int(counts.sum())
    node = np.arange(len(is_leaf))
    start, end = kept[node] - before, kept[node + found.node_size] - before
    same = {label: group[0] for group in rules.evaluation.equal_labels for label in group}
    numbers: dict[str, int] = {}
    names = [numbers.setdefault(same.get(name, name), len(numbers)) for name in found.labels]
    dropped = np.array([name in rules.evaluation.delete_labels for name in found.labels])
    is_phrase = ~is_leaf & (end > start) & ~dropped[found.node_label]
    side = words + 1
    code = (np.array(names)[found.node_label] * side + start) * side + end
    codes = len(numbers) * side * side
    keys, times = np.unique(tree[is_phrase] * codes + code[is_phrase], return_counts=True)
    wanted = np.zeros(codes, dtype=np.int64)
    for (label, first, last), count in right.items():
        if label in numbers:
            wanted[(numbers[label] * side + first) * side + last] = count
    matched = np.bincount(
        keys // codes, np.minimum(times, wanted[keys % codes]), minlength=len(found)
    )
    guessed = np.bincount(tree[is_phrase], minlength=len(found))
    return matched.astype(np.int64), guessed.astype(np.int64)


def read_k_best(
    source: Source, options: ReadOptions = EVALUATION_OPTIONS
) -> Iterator[KBest | None]:
    """Yield the k-best lists in a file: of parses (``.forest``), or as parsers print them."""
    if is_forest(source):
        with ForestFile(source) as file:
            yield from file
        return
    yield from map(k_best_of_list, read_packed_lists(source, options=options))
