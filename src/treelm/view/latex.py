"""Trees written as LaTeX source for the package ``forest``."""

from __future__ import annotations

import re

from treelm.characters import visible
from treelm.trees.tree import Tree
from treelm.view.text import EMPTY_LABEL

_BEGIN = r"""\begin{forest}
  for tree={parent anchor=south, child anchor=north, align=center},
  where n children=0{tier=word, font=\itshape}{}"""
_END = r"\end{forest}"

_HEAD_EDGE = ", edge={line width=1.2pt}"

# Deep trees would otherwise spend more characters on blanks than on nodes, and without bound.
_DEEPEST_INDENT = 40

_COMMANDS = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    # babel makes the straight quote an active character in many languages.
    '"': r"\symbol{34}",
    **{character: f"\\{character}" for character in "#$%&_{}"},
}
_SPECIAL = re.compile("|".join(map(re.escape, _COMMANDS)))

# Pairs that fonts join into another character. Penn quotes (`` and '') are meant to be joined.
_LIGATURE_START = re.compile("-(?=-)|,(?=,)|[?!](?=`)")


def draw_latex(tree: Tree, *, mark_heads: bool = False) -> str:
    r"""Return a ``forest`` environment that draws `tree`, words in italics on one line.

    The document needs ``\usepackage{forest}``, and XeLaTeX or LuaLaTeX with a font that has the
    letters where the text goes beyond Latin. Control characters are shown as escapes.

    Args:
        tree: The tree to draw.
        mark_heads: Draw the edge to each known head child thick.

    Examples:
        >>> print(draw_latex(Tree("NP", [Tree("CD", "5"), Tree("NN", "%")])))
        \begin{forest}
          for tree={parent anchor=south, child anchor=north, align=center},
          where n children=0{tier=word, font=\itshape}{}
          [{NP}
            [{CD} [{5}]]
            [{NN} [{\%}]]
          ]
        \end{forest}
    """
    lines = [_BEGIN]
    pending: list[tuple[Tree | None, int, str]] = [(tree, 1, "")]
    while pending:
        node, depth, edge = pending.pop()
        indent = "  " * min(depth, _DEEPEST_INDENT)
        if node is None:
            lines.append(f"{indent}]")
        elif node.word is not None:
            lines.append(f"{indent}[{_braced(node.label)}{edge} [{_braced(node.word)}]]")
        else:
            lines.append(f"{indent}[{_braced(node.label)}{edge}")
            pending.append((None, depth, ""))
            head = node.head if mark_heads else None
            for place in range(len(node.children) - 1, -1, -1):
                child_edge = _HEAD_EDGE if place == head else ""
                pending.append((node.children[place], depth + 1, child_edge))
    lines.append(_END)
    return "\n".join(lines)


def escape_latex(text: str) -> str:
    r"""Return `text` escaped so that LaTeX prints it as it is.

    Examples:
        >>> print(escape_latex("R&D_{50%} --"))
        R\&D\_\{50\%\} -{}-
    """
    escaped = _SPECIAL.sub(lambda match: _COMMANDS[match[0]], visible(text))
    return _LIGATURE_START.sub(r"\g<0>{}", escaped)


def _braced(text: str) -> str:
    # Braces hide brackets, commas and equal signs, which have a meaning in forest.
    return f"{{{escape_latex(text) or EMPTY_LABEL}}}"
