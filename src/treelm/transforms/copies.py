"""Training copies: trees once more, as people write without full stops or capitals.

Treebanks are edited text. A grammar of it alone takes the final full stop for a part of a sentence,
and an imperative without one for a verb phrase. Copies of some trees show it the other ways.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from itertools import pairwise
from typing import Literal, get_args

import numpy as np
import numpy.typing as npt

from treelm import _native
from treelm.corpus.corpus import TreeCorpus
from treelm.corpus.files import Content
from treelm.trees.packed import NO_WORD, PackedTrees
from treelm.trees.profile import Profile, load_profile

#: unpunctuated: without the punctuation at the end; lowercase: words in lower case; bare: both.
Copy = Literal["unpunctuated", "lowercase", "bare"]

#: Share of the trees that is copied, unless told otherwise.
COPY_SHARE = 0.1

#: What closes a quotation or a bracket belongs to what was opened, and stays.
_CLOSING_WORDS = frozenset({"-RRB-", "-RCB-", "-RSB-"})
_CLOSING_KINDS = frozenset({"Pe", "Pf", "Pi"})
_QUOTES = frozenset("\"'`")

Marks = npt.NDArray[np.bool_]


def with_copies(corpus: TreeCorpus, copies: Sequence[Copy], share: float) -> TreeCorpus:
    """Return a corpus whose trees are followed by copies of some of them.

    Trees from which a copy would not differ, or of which nothing would be left, are not copied.

    Args:
        corpus: The trees.
        copies: Kinds of copies.
        share: Share of the trees that each kind copies, spread evenly; other trees for each kind.

    Examples:
        >>> from treelm.trees.tree import Tree
        >>> tree = Tree("S", [Tree("VP", [Tree("VB", "Stop")]), Tree(".", "!")])
        >>> for copy in with_copies(TreeCorpus.of_trees([tree]), ["unpunctuated", "bare"], 1.0):
        ...     print(copy)
        (ROOT (S (VP (VB Stop)) (. !)))
        (ROOT (S (VP (VB Stop))))
        (ROOT (S (VP (VB stop))))
    """
    # In one order, whatever the order in which they were asked for.
    kinds = [kind for kind in get_args(Copy) if kind in copies]
    if not kinds or not share:
        return corpus
    profile = load_profile(corpus.options.profile)
    made: dict[Copy, list[bytes]] = {kind: [] for kind in kinds}
    before = 0
    for batch in corpus.batches():
        for number, kind in enumerate(kinds):
            chosen = _spread(before, len(batch), share, number / len(kinds))
            made[kind].append(copied(batch, kind, profile, chosen).to_brackets())
        before += len(batch)
    content = b"".join(text for kind in kinds for text in made[kind])
    name = f"<copies of trees: {' '.join(kinds)}>"
    # Reading them cleans them: a phrase left alone below one of its own label becomes one phrase.
    paths = (*corpus.paths, Content(name, content))
    return TreeCorpus(paths, corpus.options, corpus.on_error, corpus.threads)


def copied(
    trees: PackedTrees, kind: Copy, profile: Profile, chosen: Marks | None = None
) -> PackedTrees:
    """Return the copies of trees, where they differ from them and have words.

    Args:
        trees: The trees.
        kind: What the copies are like.
        profile: Says what punctuation is.
        chosen: Which trees are copied. Default: all.
    """
    spelled, own_word = _lower(trees, profile) if kind != "unpunctuated" else (trees.words, None)
    node_word = trees.node_word
    if own_word is not None:
        node_word = np.append(own_word, np.uint32(NO_WORD))[np.minimum(node_word, len(own_word))]
    gone = np.zeros(len(node_word), dtype=np.bool_)
    if kind != "lowercase":
        gone = _final_punctuation(trees, profile)
    changed = gone.copy()
    if own_word is not None:
        same = [word == spelled[new] for word, new in zip(trees.words, own_word, strict=True)]
        words = node_word != NO_WORD
        changed[words] |= ~np.array(same, dtype=np.bool_)[trees.node_word[words]]
    kept = _number_in_trees(changed, trees) > 0
    if chosen is not None:
        kept &= chosen
    return _without(trees, tuple(spelled), node_word, gone, kept)


def _spread(first: int, count: int, share: float, offset: float) -> Marks:
    """Return which of some trees are chosen so that the chosen ones are evenly spread."""
    steps = np.floor(np.arange(first, first + count + 1) * share + offset)
    return np.asarray(np.diff(steps) > 0)


def _lower(trees: PackedTrees, profile: Profile) -> tuple[tuple[str, ...], npt.NDArray[np.uint32]]:
    """Return the words in lower case, all different, and which of them each word becomes."""
    kept = profile.closed_class.bracket_words
    lower: dict[str, int] = {}
    own = [
        lower.setdefault(word if word in kept else word.lower(), len(lower)) for word in trees.words
    ]
    return tuple(lower), np.array(own, dtype=np.uint32)


def _final_punctuation(trees: PackedTrees, profile: Profile) -> Marks:
    """Return which nodes are punctuation at the end of a tree."""
    gone = np.zeros(len(trees.node_word), dtype=np.bool_)
    words, labels = trees.words, trees.labels
    is_tag = [label.base in profile.punctuation.tags for label in labels]
    signs = [profile.punctuation.by_word and not any(map(str.isalnum, word)) for word in words]
    closes = [_closes(word) for word in words]
    leaves = np.flatnonzero(trees.node_word != NO_WORD)
    ends = np.searchsorted(leaves, trees.tree_start)
    node_word, node_label = trees.node_word.tolist(), trees.node_label.tolist()
    for first, last in pairwise(ends.tolist()):
        for leaf in leaves[first:last][::-1].tolist():
            word = node_word[leaf]
            if closes[word]:
                continue
            if not (is_tag[node_label[leaf]] or signs[word]):
                break
            gone[leaf] = True
    return gone


def _closes(word: str) -> bool:
    """Return whether a word closes a quotation or a bracket."""
    return word in _CLOSING_WORDS or all(
        sign in _QUOTES or unicodedata.category(sign) in _CLOSING_KINDS for sign in word
    )


def _number_in_trees(marks: Marks, trees: PackedTrees) -> npt.NDArray[np.int64]:
    """Return how many nodes of each tree are marked."""
    before = np.append(0, np.cumsum(marks))
    return np.diff(before[trees.tree_start])


def _without(
    trees: PackedTrees,
    words: tuple[str, ...],
    node_word: npt.NDArray[np.uint32],
    gone: Marks,
    kept: Marks,
) -> PackedTrees:
    """Return some of the trees without nodes and whatever has no words then."""
    first = np.arange(len(node_word))
    last = first + trees.node_size

    def below(marks: Marks) -> npt.NDArray[np.int64]:
        before = np.append(0, np.cumsum(marks))
        return np.asarray(before[last] - before[first])

    left = below((node_word != NO_WORD) & ~gone) > 0
    sizes = below(left).astype(np.uint32)
    kept = kept & left[trees.tree_start[:-1]]
    counts = np.where(kept, _number_in_trees(left, trees), 0)
    stays = left & np.repeat(kept, np.diff(trees.tree_start))
    return PackedTrees(
        _native.PackedTrees(
            trees.native.labels,
            list(words),
            trees.node_label[stays],
            sizes[stays],
            node_word[stays],
            np.append(0, np.cumsum(counts[kept])).astype(np.uint32),
        )
    )
