"""The immutable constituency tree.

A preterminal holds its word directly: ``(NN dog)`` is one node with label ``NN`` and word ``dog``.
Nothing here recurses, so a tree may be as deep as memory allows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeVar

from treelm.errors import CorpusFormatError
from treelm.trees.label import Label
from treelm.trees.spelling import bracket_spelling

R = TypeVar("R")


class Tree:
    """A node and everything below it.

    Args:
        label: A `Label`, or a string that becomes the base of one.
        content: The word of a preterminal, or the children of a phrase (at least one).
        head: Index of the head child, where it is known; not part of a tree's identity.

    Raises:
        CorpusFormatError: ``E_NO_WORD`` for an empty word or no children.

    Examples:
        >>> tree = Tree("NP", [Tree("DT", "the"), Tree("NN", "dog")])
        >>> print(tree)
        (NP (DT the) (NN dog))
        >>> tree.words
        ('the', 'dog')
    """

    __slots__ = ("_hash", "children", "head", "label", "word")

    label: Label
    children: tuple[Tree, ...]
    word: str | None
    head: int | None
    _hash: int

    def __init__(
        self, label: str, content: str | Iterable[Tree], *, head: int | None = None
    ) -> None:
        set_field = object.__setattr__
        set_field(self, "label", label if type(label) is Label else Label(label))
        if isinstance(content, str):
            set_field(self, "word", content)
            set_field(self, "children", ())
        else:
            set_field(self, "word", None)
            set_field(self, "children", tuple(content))
        set_field(self, "head", head)
        if not self.word and not self.children:
            raise CorpusFormatError(
                f'node "{label}" has no word and no children; every node needs one of the two.',
                code="E_NO_WORD",
            )
        if head is not None and not 0 <= head < max(1, len(self.children)):
            raise ValueError(f"head {head} of a node with {len(self.children)} children")
        set_field(self, "_hash", hash((str(self.label), self.word, self.children)))

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(
            f"a Tree is immutable; use tree.replace({name}=...) for a changed copy"
        )

    def __delattr__(self, name: str) -> None:
        raise AttributeError("a Tree is immutable")

    # -- what it is -------------------------------------------------------------------------

    @property
    def is_preterminal(self) -> bool:
        """Whether this node holds a word."""
        return self.word is not None

    @property
    def is_phrasal(self) -> bool:
        """Whether this node holds children."""
        return self.word is None

    @property
    def words(self) -> tuple[str, ...]:
        """The words from left to right."""
        return tuple(node.word for node in self.preorder() if node.word is not None)

    @property
    def tags(self) -> tuple[Label, ...]:
        """The labels of the preterminals from left to right."""
        return tuple(node.label for node in self.preorder() if node.word is not None)

    @property
    def height(self) -> int:
        """Number of nodes on the longest path down; a preterminal has height 1."""
        return self.fold(lambda _, heights: 1 + max(heights, default=0))

    def __len__(self) -> int:
        return len(self.children)

    def __iter__(self) -> Iterator[Tree]:
        return iter(self.children)

    def __getitem__(self, index: int) -> Tree:
        return self.children[index]

    def __bool__(self) -> bool:
        return True

    # -- walking ----------------------------------------------------------------------------

    def preorder(self) -> Iterator[Tree]:
        """Yield this node, then its descendants, parents before children, left to right."""
        stack = [self]
        while stack:
            node = stack.pop()
            yield node
            stack.extend(reversed(node.children))

    def fold(self, combine: Callable[[Tree, list[R]], R]) -> R:
        """Return the value of `combine` at this node, computed bottom-up without recursion.

        Args:
            combine: Called once per node with the node and its children's values.

        Examples:
            >>> Tree("NP", [Tree("DT", "the"), Tree("NN", "dog")]).fold(
            ...     lambda node, values: 1 + sum(values))
            3
        """
        values: list[R] = []
        for node in reversed(list(self.preorder())):
            count = len(node.children)
            below = values[len(values) - count :][::-1] if count else []
            del values[len(values) - count :]
            values.append(combine(node, below))
        return values[0]

    def transform(self, rewrite: Callable[[Tree, tuple[Tree, ...]], Tree | Sequence[Tree]]) -> Tree:
        """Return the tree rebuilt bottom-up by `rewrite`.

        Args:
            rewrite: Called with the old node and its new children; returns the new node, or a
                sequence of nodes that take its place in the parent.

        Raises:
            ValueError: if `rewrite` does not return exactly one node for the root.
        """

        def step(node: Tree, below: list[Sequence[Tree]]) -> Sequence[Tree]:
            result = rewrite(node, tuple(tree for part in below for tree in part))
            return (result,) if isinstance(result, Tree) else result

        top = self.fold(step)
        if len(top) != 1:
            raise ValueError(f"the root was rewritten to {len(top)} nodes; exactly one is needed")
        return top[0]

    def replace(
        self,
        *,
        label: str | None = None,
        content: str | Iterable[Tree] | None = None,
        head: int | None = None,
    ) -> Tree:
        """Return a copy with the given parts changed (the head index is kept unless given)."""
        if content is None:
            content = self.children if self.word is None else self.word
        return Tree(
            self.label if label is None else label,
            content,
            head=self.head if head is None else head,
        )

    def with_words(self, words: Iterable[str]) -> Tree:
        """Return the tree with other words, from left to right.

        Raises:
            ValueError: if there are not as many as the tree has.

        Examples:
            >>> print(Tree("NP", [Tree("DT", "the"), Tree("NN", "dog")]).with_words(["a", "cat"]))
            (NP (DT a) (NN cat))
        """
        given = list(words)
        if len(given) != len(self.words):
            raise ValueError(f"there are {len(given)} words for {len(self.words)} leaves")
        last = iter(reversed(given))  # leaves are met from right to left

        def step(node: Tree, below: list[Tree]) -> Tree:
            return node.replace(content=below if node.word is None else next(last))

        return self.fold(step)

    # -- identity ---------------------------------------------------------------------------

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, Tree):
            return NotImplemented
        if self._hash != other._hash:
            return False
        stack = [(self, other)]
        while stack:
            left, right = stack.pop()
            if left is right:
                continue
            if (
                left.label != right.label
                or left.word != right.word
                or len(left.children) != len(right.children)
            ):
                return False
            stack.extend(zip(left.children, right.children, strict=True))
        return True

    def __hash__(self) -> int:
        return self._hash

    def __reduce__(self) -> tuple[Any, ...]:
        flat = [(node.label, node.word, len(node.children), node.head) for node in self.preorder()]
        return _from_preorder, (flat,)

    # -- text -------------------------------------------------------------------------------

    def __str__(self) -> str:
        # A word is spelled so that it can be read again: "(" is -LRB-.
        parts: list[str] = []
        stack: list[Tree | str] = [self]
        while stack:
            node = stack.pop()
            if isinstance(node, str):
                parts.append(node)
            elif node.word is not None:
                parts.append(f"({bracket_spelling(node.label)} {bracket_spelling(node.word)})")
            else:
                parts.append(f"({bracket_spelling(node.label)}")
                stack.append(")")
                for child in reversed(node.children):
                    stack.append(child)
                    stack.append(" ")
        return "".join(parts)

    def __repr__(self) -> str:
        text = str(self)
        return f"Tree({text if len(text) <= 200 else text[:197] + '...'})"

    # -- other forms ------------------------------------------------------------------------

    @classmethod
    def from_string(cls, text: str) -> Tree:
        """Return the one tree written in `text`, labels and words as written.

        Raises:
            CorpusFormatError: if the text is malformed or does not contain exactly one tree.

        Examples:
            >>> Tree.from_string("(NP (DT the) (NN dog))").children[1].word
            'dog'
        """
        from treelm.corpus.brackets import parse_tree

        return parse_tree(text)

    @classmethod
    def from_nltk(cls, tree: Any) -> Tree:
        """Return a copy of an ``nltk.Tree``."""
        from treelm.interop.nltk_trees import from_nltk

        return from_nltk(tree)

    def to_nltk(self) -> Any:
        """Return a copy as an ``nltk.Tree`` (needs the extra ``nltk``)."""
        from treelm.interop.nltk_trees import to_nltk

        return to_nltk(self)

    def draw(self, *, width: int | None = None) -> str:
        """Return a picture of the tree in text, at most `width` columns wide where possible."""
        from treelm.view.text import draw_text

        return draw_text(self, width=width)

    def _repr_svg_(self) -> str:
        from treelm.view.svg import draw_svg

        return draw_svg(self)


def _from_preorder(flat: list[tuple[Label, str | None, int, int | None]]) -> Tree:
    """Rebuild a tree from (label, word, number of children, head) rows in preorder."""
    stack: list[Tree] = []
    for label, word, count, head in reversed(flat):
        if word is not None:
            stack.append(Tree(label, word, head=head))
        else:
            children = stack[len(stack) - count :][::-1]
            del stack[len(stack) - count :]
            stack.append(Tree(label, children, head=head))
    return stack[0]
