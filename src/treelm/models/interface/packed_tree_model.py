"""Tree models whose kernels take whole lists of trees at once."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from typing import Literal, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt
from pydantic import Field

from treelm import _native
from treelm.characters import visible
from treelm.corpus.words import Words, sentences_of
from treelm.errors import (
    CorpusFormatError,
    ModelFileError,
    TreelmError,
    UnsupportedTask,
    UsageError,
)
from treelm.events.counts import Places
from treelm.grammar.grammar import FloatArray
from treelm.grammar.k_best import is_fallback
from treelm.grammar.scored_tree import ScoredTree
from treelm.kernel_errors import kernel_errors
from treelm.limits import LARGEST_COUNT
from treelm.models.interface.parser import k_best_lists
from treelm.models.interface.scores import SentenceScore
from treelm.models.interface.tree_model import (
    PARSED_AT_ONCE,
    TreeModel,
    TreeModelConfig,
    log_sum,
)
from treelm.store.folder import ModelFolder
from treelm.transforms.transform import Transform, transform_from_config
from treelm.trees.label import Label
from treelm.trees.packed import PackedTrees
from treelm.trees.tree import Tree

#: Label of the top of every tree, and of the phrase that replaces a missing tree.
ROOT, FLAT = "ROOT", "FRAG"

Forms = npt.NDArray[np.uint32]

_Transform = TypeVar("_Transform", bound=Transform)


class PackedTreeConfig(TreeModelConfig):
    """What the options of these models have in common."""

    on_no_parse: Literal["flat", "error", "skip"] = "flat"
    """A sentence without a tree gets a flat one, is an error, or scores NaN (skip)."""
    max_words: int = Field(default=200, ge=1, le=LARGEST_COUNT)
    """Longer sentences are not parsed."""


class TreeList(NamedTuple):
    """The trees of a sentence for the kernel."""

    trees: PackedTrees
    is_fallback: bool


class PackedTreeModel(TreeModel):
    """Scores lists of trees in one call of a kernel, each distinct subtree once."""

    _config: PackedTreeConfig

    @abstractmethod
    def score_packed(
        self, trees: PackedTrees, starts: Places, *, threads: int = 1
    ) -> tuple[FloatArray, Forms]:
        """Return the joint natural log probability of each tree and its words.

        Args:
            trees: Clean trees below ROOT, not transformed.
            starts: Where each list of trees over the same words begins, and the number of trees.
            threads: Number of threads.

        Returns:
            One number per tree, and the number of its form: within a list, trees that the
            model cannot distinguish have the same.
        """

    @abstractmethod
    def score_each(
        self, batches: Sequence[PackedTrees], *, threads: int = 1
    ) -> list[tuple[FloatArray, Forms]]:
        """Return the result of `score_packed` for batches that are one list each."""

    @abstractmethod
    def usual_tags(self, words: Sequence[str]) -> list[str]:
        """Return the most frequent tag of every word in training."""

    # -- trees ------------------------------------------------------------------------------

    def tree_log_probs(self, trees: Sequence[Tree], *, threads: int = 1) -> FloatArray:
        """Return the joint natural log probability of each tree and its words."""
        packed = pack_rooted(trees)
        return self.score_packed(
            packed, np.arange(len(trees) + 1, dtype=np.uint64), threads=threads
        )[0]

    def packed_log_probs(self, batches: Sequence[PackedTrees], *, threads: int = 1) -> FloatArray:
        """Return the log probabilities of the trees of batches, one batch after the other."""
        own = [values for values, _ in self.score_each(batches, threads=threads)]
        return np.concatenate([*own, np.zeros(0)])

    def score_lists(
        self, lists: Iterable[Sequence[ScoredTree]], *, threads: int = 1
    ) -> Iterator[SentenceScore]:
        """Yield the score of each sentence given trees of it: the sum over the distinct ones."""
        rest = iter(lists)
        while batch := list(islice(rest, PARSED_AT_ONCE)):
            yield from self._scores([self._tree_list(parses, None) for parses in batch], threads)

    def score_many(
        self, sentences: Iterable[Words], *, eos: bool = True, threads: int = 1
    ) -> Iterator[SentenceScore]:
        """Yield the scores of sentences, in order: lower bounds, from at most `k` trees each.

        Raises:
            UnsupportedTask: ``E_NO_PARSER`` without a parser; also without the end of the
                sentence, where there are only whole trees.
            UsageError: ``E_EMPTY_SENTENCE``, and ``E_NO_PARSE`` where that is an error.
        """
        parser = self._needed_parser()
        if not eos:
            raise UnsupportedTask(
                f"{self.system} models score whole sentences, their end included."
            )

        def scores() -> Iterator[SentenceScore]:
            rest = sentences_of(sentences)
            while batch := list(islice(rest, PARSED_AT_ONCE)):
                if not all(batch):
                    raise UsageError(
                        "a sentence without words has no score.", code="E_EMPTY_SENTENCE"
                    )
                # Sentences that are too long are not parsed.
                asked = [words if len(words) <= self._config.max_words else () for words in batch]
                found = k_best_lists(parser, asked, self.k, threads=threads)
                lists = [
                    self._tree_list(parses, words)
                    for parses, words in zip(found, batch, strict=True)
                ]
                yield from self._scores(lists, threads)

        return scores()

    def _scores(self, lists: Sequence[TreeList | None], threads: int) -> Iterator[SentenceScore]:
        known = [each.trees for each in lists if each is not None]
        values = iter(self.score_each(known, threads=threads))
        for each in lists:
            if each is None:
                yield SentenceScore(self._without_tree, "lower_bound", trees=0, fallback=True)
                continue
            log_probs, forms = next(values)
            _, first = np.unique(forms, return_index=True)
            yield SentenceScore(
                log_sum(log_probs[np.sort(first)]),
                "lower_bound",
                trees=len(first),
                fallback=each.is_fallback,
            )

    @property
    def _without_tree(self) -> float:
        return math.nan if self._config.on_no_parse == "skip" else -math.inf

    def _tree_list(
        self, parses: Sequence[ScoredTree], words: Sequence[str] | None
    ) -> TreeList | None:
        """Return the trees of a sentence, or a flat one, or None where no fallback is wanted."""
        if len(parses) and not is_fallback(parses):
            packed = getattr(parses, "packed", None)
            if not isinstance(packed, PackedTrees) or not _is_rooted(packed):
                packed = pack_rooted([parse.tree for parse in parses])
            return TreeList(packed, is_fallback=False)
        if words is None and len(parses):
            words = parses[0].tree.words
        if self._config.on_no_parse == "error":
            shown = " ".join(map(visible, (words or ())[:20]))
            raise UsageError(
                f'the parser has no tree for "{shown}". Choose on_no_parse flat or skip to '
                "continue.",
                code="E_NO_PARSE",
            )
        if self._config.on_no_parse == "skip" or words is None:
            return None
        leaves = [Tree(tag, word) for tag, word in zip(self.usual_tags(words), words, strict=True)]
        return TreeList(
            PackedTrees.from_trees([Tree(ROOT, [Tree(FLAT, leaves)])]), is_fallback=True
        )


def _is_rooted(trees: PackedTrees) -> bool:
    """Return whether every tree has ROOT on top."""
    tops = np.unique(trees.node_label[trees.tree_start[:-1]]).tolist()
    return [trees.labels[label] for label in tops] == [Label(ROOT)]


def pack_rooted(trees: Sequence[Tree]) -> PackedTrees:
    """Return trees as one batch, each with ROOT on top."""
    return PackedTrees.from_trees(
        tree if tree.label == Label(ROOT) else Tree(ROOT, [tree]) for tree in trees
    )


def only_transform(folder: ModelFolder, kind: type[_Transform]) -> _Transform:
    """Return the transform that the manifest of a folder names; it must name one of this kind.

    Raises:
        ModelFileError: ``E_MANIFEST`` if it does not; to be called inside `damage_in`.
    """
    steps = folder.manifest.transforms
    try:
        found = transform_from_config(steps[0]) if len(steps) == 1 else None
    except TreelmError as error:
        raise ModelFileError(str(error), code="E_MANIFEST") from error
    if not isinstance(found, kind):
        raise ModelFileError(
            f'the manifest does not name "{kind.name}" as the transform of the training trees',
            code="E_MANIFEST",
        )
    return found


@contextmanager
def tree_score_errors() -> Iterator[None]:
    """Turn the kernels' errors about trees into errors that name the cause."""
    with kernel_errors("scoring trees"):
        try:
            yield
        except _native.KernelError as error:
            code, message, *_ = error.args
            if code == "E_RESERVED_CHAR":
                raise CorpusFormatError(
                    f'the label "{visible(message)}" contains a character that transforms use as a '
                    "mark. The model transforms trees itself: give it trees as they come from a "
                    "treebank or a parser.",
                    code="E_TRANSFORM_MISMATCH",
                ) from error
            if code == "E_YIELD_MISMATCH":
                raise CorpusFormatError(
                    f'the words of a tree differ from its sentence, from "{visible(message)}" on. '
                    "All trees of a list must have the same words.",
                    code=code,
                ) from error
            if code in ("E_RESERVED_SYMBOL", "E_DEPTH"):
                raise CorpusFormatError(
                    f"a tree cannot be scored: {visible(message)}.", code=code
                ) from error
            raise
