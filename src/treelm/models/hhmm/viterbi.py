"""The best trees of sentences: from the moves of the stack back to trees."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from treelm import _native
from treelm.corpus.encoder import encode_sentences
from treelm.grammar.scored_tree import ParseStatus, ScoredTree
from treelm.kernel_errors import kernel_errors
from treelm.transforms.binarize import undo_binarize
from treelm.transforms.markovize import undo_annotate_parents
from treelm.transforms.transform import Pipeline
from treelm.transforms.unary_chains import undo_disambiguate_tags, undo_merge_unary_chains
from treelm.trees.tree import Tree

if TYPE_CHECKING:
    from treelm.models.hhmm.model import HhmmModel

#: A completed constituent began a new one in its own element of the stack; else in the one above.
WITHIN = 1

ROOT = "ROOT"

#: Words of the longest sentence that is parsed as a whole: its stacks must all be kept.
LONGEST_PARSE = 1000


@dataclass(slots=True)
class _Element:
    """An element of the stack while its tree grows: nodes of its right spine, from the top."""

    awaited: str
    spine: list[tuple[str, Tree]] = field(default_factory=list)

    def complete(self, last: Tree) -> Tree:
        """Return the tree of the element, given what comes at the end of its spine."""
        tree = last
        for label, left in reversed(self.spine):
            tree = Tree(label, [left, tree])
        return tree


def tree_of_moves(
    moves: Sequence[Sequence[int]], words: Sequence[str], symbols: Sequence[str], pipeline: Pipeline
) -> Tree:
    """Return the tree that the moves of a stack have built, below ROOT.

    Args:
        moves: For each word: kind, parent, what is awaited after it, and the tag of the word.
        words: The words.
        symbols: Names of the symbols.
        pipeline: What was done to the training trees; it is undone.
    """
    _, done = _stack_of_moves(moves, words, symbols)
    return restore(Tree(ROOT, [done]), pipeline)


def _stack_of_moves(
    moves: Sequence[Sequence[int]], words: Sequence[str], symbols: Sequence[str]
) -> tuple[list[_Element], Tree]:
    """Return the elements that are open after some moves, and what is complete below them."""
    stack: list[_Element] = []
    done = Tree(symbols[moves[0][3]], words[0])
    for (kind, parent, awaited, tag), word in zip(moves[1:], words[1:], strict=True):
        if kind == WITHIN:
            stack.append(_Element(symbols[awaited]))
        stack[-1].awaited = symbols[awaited]
        stack[-1].spine.append((symbols[parent], done))
        leaf = Tree(symbols[tag], word)
        # A word below what is awaited begins a new element; one that is awaited ends its own.
        done = stack.pop().complete(leaf) if awaited == tag else leaf
    return stack, done


def restore(tree: Tree, pipeline: Pipeline) -> Tree:
    """Return a tree as it would stand in a treebank; labels that were dropped stay dropped."""
    names = {step.name for step in pipeline.steps}
    tree = undo_disambiguate_tags(undo_binarize(tree))
    if all(step.invertible for step in pipeline.steps):
        tree = undo_merge_unary_chains(tree)
    marked = names & {"annotate_parents", "annotate_agreement"}
    return undo_annotate_parents(tree) if marked else tree


def flat_parse(
    model: HhmmModel, words: Sequence[str], status: ParseStatus, log_prob: float = -math.inf
) -> ScoredTree:
    """Return a flat tree for a sentence that has no other."""
    leaves = [Tree(tag, word) for tag, word in zip(_likely_tags(model, words), words, strict=True)]
    tree = undo_disambiguate_tags(Tree(ROOT, leaves))
    return ScoredTree(tree, -math.inf, log_prob, status, -math.inf)


def parse_sentences(
    model: HhmmModel,
    search: _native.HhmmSearch,
    sentences: Sequence[Sequence[str]],
    *,
    threads: int,
) -> list[ScoredTree | None]:
    """Return the best tree of every sentence, None for one without words.

    Of trees with the same probability the one whose brackets come first is taken.
    """
    text = encode_sentences(sentences, model.vocabulary)
    with kernel_errors("parsing sentences"):
        log_probs, trees, moves = search.parse(text.ids, text.starts, threads=threads)
    totals = model.score_ids(text.ids, text.starts, threads=threads).sentence_log_probs()
    pipeline, symbols = model.config.pipeline(), model.tables.rules.symbols
    places = np.searchsorted(trees, np.arange(len(sentences) + 1)).tolist()
    lengths = np.array([len(words) for words in sentences], np.int64)
    rows = np.concatenate([[0], np.cumsum(lengths[trees])]).astype(np.int64).tolist()
    found: list[ScoredTree | None] = []
    for number, words in enumerate(sentences):
        if not words:
            found.append(None)
            continue
        tied = [
            tree_of_moves(moves[rows[place] : rows[place + 1]].tolist(), words, symbols, pipeline)
            for place in range(places[number], places[number + 1])
        ]
        total = float(totals[number])
        if tied:
            best = min(tied, key=lambda tree: str(tree).encode())
            own = float(log_probs[number])  # a tree has one sequence of stacks
            found.append(ScoredTree(best, own, total, tree_log_prob=own))
        else:
            found.append(flat_parse(model, words, ParseStatus.FAILED, total))
    return found


def _likely_tags(model: HhmmModel, words: Sequence[str]) -> list[str]:
    """Return the most frequent tag of every word, whatever stands around it."""
    table, symbols = model.tables.words, model.tables.rules.symbols
    tags = []
    for word_id in model.word_ids.sentence(words):
        part = slice(int(table.start[word_id]), int(table.start[word_id + 1]))
        counts = table.value[part] * table.tag_counts[table.tag[part]]
        tags.append(symbols[int(table.tag[part][int(np.argmax(counts))])] if len(counts) else "X")
    return tags
