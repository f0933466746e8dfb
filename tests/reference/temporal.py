"""Temporal lexicon (spec 5), collected from trees that still have function tags."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable

from .bracket_reader import (
    EMPTY_TAG,
    ENGLISH_DROP_TAGS,
    cut,
    cut_labels,
    delete_tags,
    flatten_nml_phrases,
)
from .heads import lexical_head, lower
from .nodes import Node, clone, postorder

NOUN_TAGS = frozenset({"NN", "NNS", "NNP", "NNPS"})


def function_tags(label: str) -> frozenset[str]:
    """The parts of a whole label behind its base: NP-TMP-1 has TMP and 1."""
    return frozenset(re.split(r"[-=|]", label[len(cut(label)) :])) - {""}


def count_heads(
    raw: Node, drop_tags: Collection[str], flatten_nml: bool
) -> tuple[Counter[str], Counter[str]]:
    """Per lower-cased word: how often it heads an NP-TMP (as a noun), how often any NP."""
    temporal: Counter[str] = Counter()
    anything: Counter[str] = Counter()
    tree = clone(raw)
    # Skipping empty children while looking for heads is the same as deleting them.
    if not delete_tags(tree, {EMPTY_TAG, *drop_tags}):
        return temporal, anything
    if flatten_nml:
        flatten_nml_phrases(tree)
    phrases = [(node, function_tags(node.base)) for node in postorder(tree) if node.is_phrasal]
    cut_labels(tree)
    for node, tags in phrases:
        if node.base != "NP":
            continue
        head = lexical_head(node)
        assert head.word is not None
        anything[lower(head.word)] += 1
        if "TMP" in tags and head.base in NOUN_TAGS:
            temporal[lower(head.word)] += 1
    return temporal, anything


def collect(
    raw_trees: Iterable[Node],
    *,
    min_count: int = 1,
    min_share: float = 0.0,
    drop_tags: Collection[str] = ENGLISH_DROP_TAGS,
    flatten_nml: bool = True,
) -> frozenset[str]:
    """The set TMP from trees read with strip=False."""
    temporal: Counter[str] = Counter()
    anything: Counter[str] = Counter()
    for raw in raw_trees:
        of_tmp, of_any = count_heads(raw, drop_tags, flatten_nml)
        temporal.update(of_tmp)
        anything.update(of_any)
    return frozenset(
        word
        for word, count in temporal.items()
        if count >= min_count and count / anything[word] >= min_share
    )
