"""Reader for Penn brackets (spec 2): a whole string in, trees and errors out."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from .nodes import Node, postorder, render

ROOT = "ROOT"
ROOT_NAMES = frozenset({"", "TOP", "ROOT", "S1", "VROOT"})
EMPTY_TAG = "-NONE-"
ENGLISH_DROP_TAGS = frozenset({"CODE", "SU"})
COMMENT = "*x*"
BYTE_ORDER_MARK = "\ufeff"

# Whitespace is ASCII only; a no-break space is part of a word.
TOKEN = re.compile(r"[()]|[^() \t\r\n\v\f]+")
ESCAPED = re.compile(r"\\+([/*])")
# Bytes that are no UTF-8 come as lone surrogates (decoded with surrogateescape).
UNDECODABLE = re.compile(r"[\ud800-\udfff]")


class ReadError(NamedTuple):
    """One report: lines and columns from 1, columns in UTF-8 bytes."""

    code: str
    tree: int
    line: int
    column: int


class ReadResult(tuple[list[Node], list[ReadError]]):
    """The pair (trees, errors).

    `dropped` counts trees of nothing but empties, `many_rooted` those with several nodes below an
    unlabelled root; `places` holds the ordinal and the line of every good tree.
    """

    dropped: int = 0
    many_rooted: int = 0
    places: list[tuple[int, int]]

    def __init__(self, _pair: tuple[list[Node], list[ReadError]]) -> None:
        """Start with no places."""
        self.places = []

    @property
    def trees(self) -> list[Node]:
        """The good trees."""
        return self[0]

    @property
    def errors(self) -> list[ReadError]:
        """The errors in order of appearance."""
        return self[1]


class Token(NamedTuple):
    """A bracket or a run of other characters at text[start:end]."""

    text: str
    start: int
    end: int

    @property
    def is_bracket(self) -> bool:
        """True for `(` and `)`."""
        return self.text in ("(", ")")


class BadTreeError(Exception):
    """First error inside one balanced tree: code and character position."""

    def __init__(self, code: str, position: int) -> None:
        """Remember where the error is."""
        super().__init__(code)
        self.code = code
        self.position = position


class Element(NamedTuple):
    """A word or a child node, with the position where it starts."""

    content: str | Node
    start: int


@dataclass
class OpenNode:
    """A node whose closing bracket has not been seen."""

    label: str
    start: int
    elements: list[Element] = field(default_factory=list)


# ---------------------------------------------------------------------------------- scanning


def next_token(text: str, position: int) -> Token | None:
    """The first token at or after `position`."""
    match = TOKEN.search(text, position)
    return None if match is None else Token(match.group(), match.start(), match.end())


def tokens_from(text: str, position: int) -> Iterator[Token]:
    """All tokens at or after `position`."""
    while (token := next_token(text, position)) is not None:
        yield token
        position = token.end


def balanced_tokens(text: str, start: int) -> list[Token] | None:
    """Tokens from the `(` at `start` to the `)` that closes it; None if it is never closed."""
    depth = 0
    collected: list[Token] = []
    for token in tokens_from(text, start):
        collected.append(token)
        depth += {"(": 1, ")": -1}.get(token.text, 0)
        if depth == 0:
            return collected
    return None


def starts_line(text: str, position: int) -> bool:
    """True if the character at `position` is the first of its line."""
    return position == 0 or text[position - 1] == "\n"


def line_end(text: str, position: int) -> int:
    """Position of the line feed that ends the line of `position` (or the end of the text)."""
    end = text.find("\n", position)
    return len(text) if end < 0 else end


def next_line_with_bracket(text: str, position: int) -> int:
    """Start of the first line after the line of `position` that starts with `(`."""
    while (position := line_end(text, position)) < len(text):
        position += 1
        if text.startswith("(", position):
            return position
    return len(text)


def line_and_column(text: str, position: int) -> tuple[int, int]:
    """Line (by LF) and column (UTF-8 bytes), both from 1."""
    line_start = text.rfind("\n", 0, position) + 1
    before = text[line_start:position].encode("utf-8", "surrogateescape")
    return text.count("\n", 0, position) + 1, len(before) + 1


# ------------------------------------------------------------------------- one balanced tree


def close(node: OpenNode) -> Node:
    """Check a node at its closing bracket and build it."""
    if not node.elements:
        raise BadTreeError("E_NO_WORD", node.start)
    first_is_word = isinstance(node.elements[0].content, str)
    for element in node.elements:
        if isinstance(element.content, str) != first_is_word:
            raise BadTreeError("E_MIXED", element.start)
    leaves = [element.content for element in node.elements if isinstance(element.content, str)]
    if len(leaves) > 1:
        raise BadTreeError("E_MULTI_WORD", node.elements[1].start)
    if leaves:
        return Node(node.label, word=leaves[0])
    return Node(node.label, [e.content for e in node.elements if isinstance(e.content, Node)])


def label_of(tokens: list[Token], opening: int) -> str:
    """The label behind the `(` at this index; empty if a bracket follows."""
    following = tokens[opening + 1]
    return "" if following.is_bracket else following.text


def check_encoding(text: str, start: int, end: int) -> None:
    """Refuse bytes that are no UTF-8; comes before every other error of the tree."""
    bad = UNDECODABLE.search(text, start, end)
    if bad is not None:
        raise BadTreeError("E_ENCODING", bad.start())


def build(tokens: list[Token], max_depth: int) -> Node:
    """Build the tree of a balanced token list; raises BadTreeError at the first error.

    An outermost root bracket does not count as depth, so that a tree written with the ROOT that
    the reader has added can be read again.
    """
    stack: list[OpenNode] = []
    allowed = max_depth + (label_of(tokens, 0) in ROOT_NAMES)
    for index, token in enumerate(tokens):
        if token.text == "(":
            if len(stack) == allowed:
                raise BadTreeError("E_DEPTH", token.start)
            label = label_of(tokens, index)
            if not label and stack:
                raise BadTreeError("E_EMPTY_LABEL", token.start)
            stack.append(OpenNode(label, token.start))
        elif token.text == ")":
            opened = stack.pop()
            node = close(opened)
            if not stack:
                return node
            stack[-1].elements.append(Element(node, opened.start))
        elif tokens[index - 1].text != "(":  # behind `(` it was the label
            stack[-1].elements.append(Element(token.text, token.start))
    raise AssertionError("token list is not balanced")


def rooted(tree: Node, normalize_root: bool) -> Node:
    """Rename the outer label to ROOT or wrap the tree in a new ROOT.

    Without `normalize_root` only an empty outer label is renamed.
    """
    if not normalize_root:
        tree.base = tree.base or ROOT
        return tree
    if tree.is_phrasal and tree.base in ROOT_NAMES:
        tree.base = ROOT
        return tree
    return Node(ROOT, [tree])


# -------------------------------------------------------------------------------- cleaning up


def cut(label: str) -> str:
    """Cut function tags and indices; a label starting with `-` is never cut."""
    if label.startswith("-"):
        return label
    for position, char in enumerate(label):
        if position > 0 and char in "-=|":
            return label[:position]
    return label


def cut_labels(tree: Node) -> None:
    """Cut every label of the tree."""
    for node in postorder(tree):
        node.base = cut(node.base)


def delete_tags(tree: Node, tags: Collection[str]) -> bool:
    """Delete preterminals with these bases and phrases left empty; False if nothing is left."""
    nodes = postorder(tree)
    gone: set[int] = set()
    for node in nodes:
        node.children = [child for child in node.children if id(child) not in gone]
        empty_phrase = node.is_phrasal and not node.children
        unwanted_tag = node.is_preterminal and cut(node.base) in tags
        if empty_phrase or unwanted_tag:
            gone.add(id(node))
    return id(tree) not in gone


def is_nml(node: Node) -> bool:
    """True for a phrase with base NML."""
    return node.is_phrasal and cut(node.base) == "NML"


def flatten_nml_phrases(tree: Node) -> None:
    """Splice NML phrases into their parents; directly under ROOT rename them NP.

    Renaming keeps the function tags: NML-TMP becomes NP-TMP.
    """
    for child in tree.children:
        if cut(tree.base) == ROOT and is_nml(child):
            child.base = "NP" + child.base.removeprefix("NML")
    for node in postorder(tree):
        flat: list[Node] = []
        for child in node.children:
            flat.extend(child.children if is_nml(child) else [child])
        node.children = flat


def collapse_self_loops(tree: Node) -> None:
    """Collapse X -> X bottom-up; the top node never absorbs a preterminal."""
    for node in postorder(tree):
        if len(node.children) != 1:
            continue
        child = node.children[0]
        if child.base != node.base or (node is tree and child.is_preterminal):
            continue
        node.children, node.word = child.children, child.word


def unescape_words(tree: Node) -> None:
    """Remove every run of backslashes directly before `/` or `*`."""
    for node in postorder(tree):
        if node.word is not None:
            node.word = ESCAPED.sub(r"\1", node.word)


def respell_quotes(tree: Node) -> None:
    """Write quotes as the Penn Treebank does, by their tags."""
    for node in postorder(tree):
        double, single, signs = {
            "``": ("``", "`", ('"\u201c\u201e', "'\u2018")),
            "''": ("''", "'", ('"\u201d\u201c', "\u2019")),
        }.get(node.base, ("", "", ("", "")))
        if node.word is not None and len(node.word) == 1:
            if node.word in signs[0]:
                node.word = double
            elif node.word in signs[1]:
                node.word = single


def strip_tree(tree: Node, drop_tags: Collection[str], flatten_nml: bool) -> bool:
    """Everything that strip=True does, in place; False if the tree is to be dropped."""
    cut_labels(tree)
    if not delete_tags(tree, {EMPTY_TAG, *drop_tags}):
        return False
    if flatten_nml:
        flatten_nml_phrases(tree)
    collapse_self_loops(tree)
    return True


# ------------------------------------------------------------------------------ whole strings


def read(
    text: str,
    *,
    strip: bool = True,
    unescape: bool = True,
    respell: bool = True,
    drop_tags: Collection[str] = ENGLISH_DROP_TAGS,
    flatten_nml: bool = True,
    normalize_root: bool = True,
    max_depth: int = 1000,
) -> ReadResult:
    """Read all trees of a text as `on_error=skip` does; `raise` would stop at errors[0]."""
    text = text.removeprefix(BYTE_ORDER_MARK)
    result = ReadResult(([], []))
    ordinal = 1
    position = 0
    in_junk = False  # inside a stretch outside any tree that has been reported

    def report(code: str, where: int) -> None:
        result.errors.append(ReadError(code, ordinal, *line_and_column(text, where)))

    while (token := next_token(text, position)) is not None:
        if starts_line(text, token.start) and token.text.startswith(COMMENT):
            position = line_end(text, token.start)
            continue
        if token.text != "(":
            if not in_junk:
                report("E_UNBALANCED" if token.text == ")" else "E_TEXT_OUTSIDE", token.start)
            in_junk = True
            position = token.end
            continue
        in_junk = False
        tokens = balanced_tokens(text, token.start)
        if tokens is None:
            report("E_UNBALANCED", token.start)
            position = next_line_with_bracket(text, token.start)
        else:
            position = tokens[-1].end
            try:
                check_encoding(text, token.start, position)
                tree = rooted(build(tokens, max_depth), normalize_root)
            except BadTreeError as bad:
                report(bad.code, bad.position)
            else:
                result.many_rooted += not label_of(tokens, 0) and len(tree.children) > 1
                if unescape:
                    unescape_words(tree)
                if not strip or strip_tree(tree, drop_tags, flatten_nml):
                    if unescape and respell:
                        respell_quotes(tree)
                    result.trees.append(tree)
                    result.places.append((ordinal, line_and_column(text, token.start)[0]))
                else:
                    result.dropped += 1
        ordinal += 1
    return result


def tags_used_as_phrases(trees: Iterable[Node]) -> frozenset[str]:
    """Final symbols used both as preterminal and as phrasal label (E_TAG_IS_PHRASE if any)."""
    nodes = [node for tree in trees for node in postorder(tree)]
    tags = {render(node) for node in nodes if node.is_preterminal}
    phrases = {render(node) for node in nodes if node.is_phrasal}
    return frozenset(tags & phrases)
