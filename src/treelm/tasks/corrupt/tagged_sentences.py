"""Words and tags of treebanks, sentence by sentence, without a Python object per node."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from treelm.corpus.corpus import TreeCorpus
from treelm.trees.packed import NO_WORD, PackedTrees
from treelm.trees.tree import Tree


class TaggedSentence(NamedTuple):
    """The words of a sentence and their tags."""

    words: list[str]
    tags: list[str]


def tagged(tree: Tree) -> TaggedSentence:
    """Return the words and tags of a tree.

    Examples:
        >>> tagged(Tree.from_string("(NP (DT the) (NN dog))"))
        TaggedSentence(words=['the', 'dog'], tags=['DT', 'NN'])
    """
    leaves = [node for node in tree.preorder() if node.word is not None]
    return TaggedSentence(
        [node.word or "" for node in leaves], [node.label.base for node in leaves]
    )


def tagged_corpus(corpus: TreeCorpus) -> Iterator[TaggedSentence]:
    """Yield the words and tags of every tree of a corpus."""
    return tagged_batches(corpus.batches())


def tagged_batches(batches: Iterable[PackedTrees]) -> Iterator[TaggedSentence]:
    """Yield the words and tags of every tree of packed batches."""
    for batch in batches:
        word_forms, tag_names = batch.words, [label.base for label in batch.labels]
        leaves = np.flatnonzero(batch.node_word != NO_WORD)
        words = [word_forms[index] for index in batch.node_word[leaves].tolist()]
        tags = [tag_names[index] for index in batch.node_label[leaves].tolist()]
        starts = np.searchsorted(leaves, batch.tree_start).tolist()
        for first, last in pairwise(starts):
            yield TaggedSentence(words[first:last], tags[first:last])
