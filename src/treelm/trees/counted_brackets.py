"""The constituents that count when parses are compared with gold trees."""

from __future__ import annotations

from collections import Counter

import numpy as np
import numpy.typing as npt

from treelm.trees.constituents import Constituent, constituents
from treelm.trees.packed import NO_WORD, PackedTrees
from treelm.trees.profile import Profile
from treelm.trees.tree import Tree

Numbers = npt.NDArray[np.int64]


def ignored_positions(gold: Tree, profile: Profile) -> frozenset[int]:
    """Return the places of the words that do not count, given the gold tree."""
    rules = profile.evaluation
    return frozenset(
        position
        for position, (tag, word) in enumerate(zip(gold.tags, gold.words, strict=True))
        if tag.base in rules.delete_tags
        or (rules.delete_punctuation and not any(character.isalnum() for character in word))
    )


def bracket_spans(tree: Tree, ignored: frozenset[int], profile: Profile) -> Counter[Constituent]:
    """Return the constituents of a tree that count; equal labels are merged."""
    found = constituents(
        tree, ignore_positions=ignored, ignore_labels=profile.evaluation.delete_labels
    )
    same = _same_labels(profile)
    renamed: Counter[Constituent] = Counter()
    for (label, start, end), count in found.items():
        renamed[Constituent(same.get(label, label), start, end)] += count
    return renamed


def _same_labels(profile: Profile) -> dict[str, str]:
    """Return the first of equal labels, by label."""
    return {label: group[0] for group in profile.evaluation.equal_labels for label in group}


def bracket_counts(gold: Tree, trees: PackedTrees, profile: Profile) -> tuple[Numbers, Numbers]:
    """Return how many constituents trees of a sentence have, and how many are in the gold tree too.

    Args:
        gold: The gold tree.
        trees: Trees of the same words.
        profile: Says which words and labels do not count, and which labels are equal.

    Examples:
        >>> from treelm.trees.profile import load_profile
        >>> gold = Tree.from_string("(S (NP (X a) (X b)) (VP (X c) (NP (X d) (X e))))")
        >>> guess = Tree.from_string("(S (X a) (Z (X b) (VP (X c) (NP (X d) (X e)))))")
        >>> guessed, matched = bracket_counts(
        ...     gold, PackedTrees.from_trees([gold, guess]), load_profile("english")
        ... )
        >>> guessed.tolist(), matched.tolist()
        ([4, 4], [4, 3])
    """
    ignored = ignored_positions(gold, profile)
    spans = bracket_spans(gold, ignored, profile)
    same, left_out = _same_labels(profile), profile.evaluation.delete_labels
    numbers: dict[str, int] = {}
    bases = [same.get(label.base, label.base) for label in trees.labels]
    label_number = np.array([numbers.setdefault(base, len(numbers)) for base in bases], np.int64)
    counts = np.array([label.base not in left_out for label in trees.labels], np.bool_)

    words = len(gold.words)
    is_kept = np.array([place not in ignored for place in range(words)], np.int64)
    is_word = trees.node_word != NO_WORD
    kept = np.zeros(len(is_word), np.int64)
    kept[is_word] = np.tile(is_kept, len(trees))
    before = np.concatenate([np.zeros(1, np.int64), np.cumsum(kept)])
    starts: Numbers = trees.tree_start.astype(np.int64)
    tree = np.repeat(np.arange(len(trees)), starts[1:] - starts[:-1])
    base = before[starts[:-1]][tree]
    start = before[:-1] - base
    end = before[np.arange(len(is_word)) + trees.node_size.astype(np.int64)] - base

    phrase = ~is_word & (end > start) & counts[trees.node_label]
    width = words + 1
    keys = (label_number[trees.node_label[phrase]] * width + start[phrase]) * width + end[phrase]
    limit = max(1, len(numbers)) * width * width
    found, times = np.unique(tree[phrase] * limit + keys, return_counts=True)
    right = np.zeros(len(found), np.int64)
    wanted = {
        (numbers[label] * width + first) * width + last: count
        for (label, first, last), count in spans.items()
        if label in numbers
    }
    if wanted:
        gold_keys = np.array(sorted(wanted), np.int64)
        gold_times = np.array([wanted[key] for key in gold_keys.tolist()], np.int64)
        place = np.minimum(np.searchsorted(gold_keys, found % limit), len(gold_keys) - 1)
        hit = gold_keys[place] == found % limit
        right[hit] = np.minimum(times[hit], gold_times[place[hit]])
    owner = found // limit
    guessed = np.bincount(owner, weights=times, minlength=len(trees)).astype(np.int64)
    matched = np.bincount(owner, weights=right, minlength=len(trees)).astype(np.int64)
    return guessed, matched
