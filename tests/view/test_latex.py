"""Trees as LaTeX source."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from tests.view.any_trees import ANY_TREES, chain

from treelm.trees.tree import Tree
from treelm.view.latex import draw_latex, escape_latex


def test_latex_draws_expected_source() -> None:
    tree = Tree(
        "S",
        [
            Tree("NP", [Tree("PRP$", "its"), Tree("NN", "R&D")]),
            Tree("VP", [Tree("VBD", "barked")], head=0),
        ],
        head=1,
    )
    assert draw_latex(tree, mark_heads=True) == (
        r"""\begin{forest}
  for tree={parent anchor=south, child anchor=north, align=center},
  where n children=0{tier=word, font=\itshape}{}
  [{S}
    [{NP}
      [{PRP\$} [{its}]]
      [{NN} [{R\&D}]]
    ]
    [{VP}, edge={line width=1.2pt}
      [{VBD}, edge={line width=1.2pt} [{barked}]]
    ]
  ]
\end{forest}"""
    )
    assert "line width" not in draw_latex(tree)


@pytest.mark.parametrize(
    ("text", "escaped"),
    [
        (r"1\/2", r"1\textbackslash{}/2"),
        ("~^", r"\textasciitilde{}\textasciicircum{}"),
        ("#$%&_{}", r"\#\$\%\&\_\{\}"),
        ("<|>", r"\textless{}\textbar{}\textgreater{}"),
        ('"', r"\symbol{34}"),
        ("---", "-{}-{}-"),
        ("?`!`,,", "?{}`!{}`,{},"),
        ("``''", "``''"),
        ("\n\x1b", r"\textbackslash{}x0a\textbackslash{}x1b"),
        ("狗 é", "狗 é"),
    ],
)
def test_latex_escapes(text: str, escaped: str) -> None:
    assert escape_latex(text) == escaped


def test_latex_shows_empty_labels() -> None:
    assert "[{()} [{dog}]]" in draw_latex(Tree("", "dog"))


@given(ANY_TREES)
def test_latex_leaves_nothing_active(tree: Tree) -> None:
    source = draw_latex(tree)
    body = source.split("{}\n", 1)[1].removesuffix("\\end{forest}")
    for node in tree.preorder():
        assert f"[{{{escape_latex(node.label) or '()'}}}" in body
    bare = re.sub(r"\\(text[a-z]+\{\}|symbol\{34\}|[#$%&_{}])", "", body)
    assert not re.search(r'[\\#$%&_~^"<>|]', bare)
    assert bare.count("{") == bare.count("}")
    assert all(line.strip() for line in source.split("\n"))


def test_latex_draws_deep_and_flat_trees() -> None:
    deep = draw_latex(chain(5000))
    assert deep.count("[") == deep.count("]") == 5001
    assert draw_latex(Tree("S", [Tree("NN", "dog")] * 5000)).count("{dog}") == 5000
