"""Binary trees as strings of actions: a tag for every word, then moves until ``null``.

A move adjoins the two rightmost constituents, with the head word of the left or of the right one,
or puts a label over the rightmost one. Every binary tree has exactly one string.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

from treelm.errors import CorpusFormatError, UsageError
from treelm.trees.heads import head_index
from treelm.trees.tree import Tree

#: The move that ends the work on a word.
NULL = 0
#: Maximum number of unary moves in a row.
MOST_UNARIES = 2


@dataclass(frozen=True)
class ActionCodes:
    """Numbers of tags and moves; the sets are closed.

    Args:
        tags: Labels of words.
        phrases: Labels of constituents, those that binarization made included.
        unary_moves: Whether a move may put a label over a single constituent.

    Examples:
        >>> codes = ActionCodes(("N", "V"), ("NP", "S"))
        >>> codes.moves
        ('null', 'adjoin-left NP', 'adjoin-left S', 'adjoin-right NP', 'adjoin-right S')
    """

    tags: tuple[str, ...]
    phrases: tuple[str, ...]
    unary_moves: bool = False

    @cached_property
    def tag_ids(self) -> dict[str, int]:
        """Tags by their numbers."""
        return {tag: number for number, tag in enumerate(self.tags)}

    @cached_property
    def phrase_ids(self) -> dict[str, int]:
        """Phrase labels by their numbers."""
        return {phrase: number for number, phrase in enumerate(self.phrases)}

    @property
    def moves(self) -> tuple[str, ...]:
        """Names of the moves, by number."""
        kinds = ("adjoin-left", "adjoin-right", "unary")[: 3 if self.unary_moves else 2]
        return ("null", *(f"{kind} {phrase}" for kind in kinds for phrase in self.phrases))

    def adjoin(self, label: str, *, left: bool) -> int:
        """Return the move that adjoins, with the head of the left constituent or the right one."""
        return 1 + self._phrase(label) + (0 if left else len(self.phrases))

    def unary(self, label: str) -> int:
        """Return the move that puts a label over one constituent."""
        return 1 + self._phrase(label) + 2 * len(self.phrases)

    def tag(self, label: str) -> int:
        """Return the number of a tag.

        Raises:
            CorpusFormatError: ``E_NEW_LABEL`` if there is no such tag.
        """
        found = self.tag_ids.get(label)
        if found is None:
            raise _new_label("tag", label)
        return found

    def _phrase(self, label: str) -> int:
        found = self.phrase_ids.get(label)
        if found is None:
            raise _new_label("phrase label", label)
        return found


def _new_label(kind: str, label: str) -> CorpusFormatError:
    return CorpusFormatError(
        f'the {kind} "{label}" does not occur in the training trees. The sets of labels are '
        "closed: train on trees that have it, or leave these trees out.",
        code="E_NEW_LABEL",
    )


def codes_of(trees: Iterable[Tree], *, unary_moves: bool = False) -> ActionCodes:
    """Return the codes of all labels of prepared trees, in alphabetical order."""
    tags: set[str] = set()
    phrases: set[str] = set()
    for tree in trees:
        for node in tree.preorder():
            (phrases if node.word is None else tags).add(str(node.label))
    return ActionCodes(tuple(sorted(tags)), tuple(sorted(phrases)), unary_moves)


class NumbersActions(Protocol):
    """Gives tags and moves their numbers."""

    @property
    def unary_moves(self) -> bool:
        """Whether a move may put a label over a single constituent."""
        ...

    def tag(self, label: str) -> int:
        """Return the number of a tag."""
        ...

    def adjoin(self, label: str, *, left: bool) -> int:
        """Return the move that adjoins."""
        ...

    def unary(self, label: str) -> int:
        """Return the move that puts a label over one constituent."""
        ...


def actions_of(tree: Tree, codes: NumbersActions) -> list[int]:
    """Return the action string of a binary tree with heads: for each word a tag, moves, `NULL`.

    Raises:
        UsageError: ``E_NOT_BINARY`` if a node has more than two children, or one and there are no
            unary moves, or more than two unary nodes are above each other; ``E_NO_HEAD`` if a
            head is not known.
        CorpusFormatError: ``E_NEW_LABEL`` for a label without a code.

    Examples:
        >>> tree = Tree("S", [Tree("N", "dogs"), Tree("V", "bark")], head=1)
        >>> codes = codes_of([tree])
        >>> actions_of(tree, codes), codes.moves[2]
        ([0, 0, 1, 2, 0], 'adjoin-right S')
    """
    actions: list[int] = []
    # What is still to be done, the next last: a tree, or a node whose children are done.
    rest: list[tuple[Tree, bool]] = [(tree, False)]
    while rest:
        node, done = rest.pop()
        if node.word is not None:
            if actions:
                actions.append(NULL)
            actions.append(codes.tag(str(node.label)))
        elif not done:
            _check_binary(node, codes)
            rest.append((node, True))
            rest.extend((child, False) for child in reversed(node.children))
        elif len(node.children) == 1:
            actions.append(codes.unary(str(node.label)))
        else:
            actions.append(codes.adjoin(str(node.label), left=head_index(node) == 0))
    return [*actions, NULL]


def _check_binary(node: Tree, codes: NumbersActions) -> None:
    count = len(node.children)
    below, unaries = node, 0
    while len(below.children) == 1:
        below, unaries = below.children[0], unaries + 1
    if count > 2 or (count == 1 and not codes.unary_moves) or unaries > MOST_UNARIES:
        raise UsageError(
            f'node "{node.label}" has {count} child{"" if count == 1 else "ren"} and cannot be '
            "built by moves. Prepare trees with `CompositeConfig.pipeline()` first.",
            code="E_NOT_BINARY",
        )


def trees_of(actions: Sequence[int], words: Sequence[str], codes: ActionCodes) -> list[Tree]:
    """Return the constituents that a string of actions leaves, from left to right.

    Raises:
        ValueError: if it is not a string of actions for that many words.

    Examples:
        >>> codes = ActionCodes(("N", "V"), ("S",))
        >>> print(*trees_of([0, 0, 1, 2, 0], ["dogs", "bark"], codes))
        (S (N dogs) (V bark))
    """
    stack: list[Tree] = []
    rest = iter(actions)
    size = len(codes.phrases)
    try:
        for word in words:
            stack.append(Tree(codes.tags[next(rest)], word))
            while (move := next(rest)) != NULL:
                kind, phrase = divmod(move - 1, size)
                label = codes.phrases[phrase]
                if kind == 2:
                    stack.append(Tree(label, [stack.pop()], head=0))
                else:
                    right, left = stack.pop(), stack.pop()
                    stack.append(Tree(label, [left, right], head=kind))
    except (StopIteration, IndexError):
        raise ValueError("this is not a string of actions for these words") from None
    if next(rest, None) is not None:
        raise ValueError("the string of actions continues after the last word")
    return stack
