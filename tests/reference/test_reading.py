"""The oracle against every inline example of the spec: labels and reading (sections 1.1 and 2)."""

from __future__ import annotations

import pytest
from tests.reference import treelet
from tests.reference.bracket_reader import cut, read, tags_used_as_phrases
from tests.reference.nodes import Node, render, words, write
from tests.reference.read_texts import TMP, errors_of, raw, read_one

# --------------------------------------------------------------------------------- 1.1 labels


def test_label_rendering() -> None:
    assert render(Node("NP")) == "NP"
    assert render(Node("S", head="VB", gap=True, parent="ROOT")) == "S-VB-GAP^ROOT"
    assert render(Node(":", word="--", head="--")) == ":---"
    assert render(Node("-LRB-", word="-LRB-")) == "-LRB-"
    assert render(Node("CD", word="1.5", head="DC")) == "CD-DC"


@pytest.mark.parametrize("char", "@+^|\\")
def test_reserved_characters_are_escaped_in_head_annotations(char: str) -> None:
    assert render(Node("SYM", word=char, head=char)) == f"SYM-\\{char}"


# ---------------------------------------------------------------------------------- 2 reading


@pytest.mark.parametrize(
    ("label", "expected"),
    [
        ("NP-SBJ-1", "NP"),
        ("NP=2", "NP"),
        ("ADVP|PRT", "ADVP"),
        ("-LRB-", "-LRB-"),
        ("-RRB-", "-RRB-"),
        ("-NONE-", "-NONE-"),
        ("PRP$", "PRP$"),
        (":", ":"),
        ("=X-1", "=X"),
    ],
)
def test_cut(label: str, expected: str) -> None:
    assert cut(label) == expected


def test_paid_example() -> None:
    text = "( (S (NP-SBJ-1 (PRP He)) (VP (VBD was) (VP (VBN paid) (NP (-NONE- *-1)))) (. .)) )"
    expected = "(ROOT (S (NP (PRP He)) (VP (VBD was) (VP (VBN paid))) (. .)))"
    assert read_one(text) == expected
    assert read_one(expected) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("( (S (X a) (Y b)) )", "(ROOT (S (X a) (Y b)))"),
        ("(TOP (S (X a)))", "(ROOT (S (X a)))"),
        ("(ROOT (S (X a)))", "(ROOT (S (X a)))"),
        ("(S1 (S (X a)))", "(ROOT (S (X a)))"),
        ("(VROOT (S (X a)))", "(ROOT (S (X a)))"),
        ("(S (X a))", "(ROOT (S (X a)))"),
        ("( (X a) (Y b))", "(ROOT (X a) (Y b))"),
        ("(NN dog)", "(ROOT (NN dog))"),
        ("(TOP dog)", "(ROOT (TOP dog))"),
        ("(ROOT dog)", "(ROOT (ROOT dog))"),
        ("(ROOT (ROOT dog))", "(ROOT (ROOT dog))"),
        ("(ROOT (ROOT (NN dog)))", "(ROOT (NN dog))"),
        ("((S(X a)\t(Y\v\fb)\r\n))", "(ROOT (S (X a) (Y b)))"),
        ("(\n S ( X a))", "(ROOT (S (X a)))"),
        ("(X a\u00a0b\u2009c)", "(ROOT (X a\u00a0b\u2009c))"),
        ("(NP (NP-1 (NN (NN x))) )", "(ROOT (NP (NN x)))"),
        ("(NP (NP (-NONE- *)) (NP (NN x)))", "(ROOT (NP (NN x)))"),
        ("(S (CODE <x>) (NN a) (SU-2 b))", "(ROOT (S (NN a)))"),
        ("(S (NP (NML-1 (NML (NN a) (NN b)) (NN c)) (NN d)))", "(ROOT (S (NP {})))"),
        ("(NML-SBJ (NML (NN a) (NN b)) (NN c) (NN d))", "(ROOT (NP {}))"),
        ("(NP (NML (NP (NN x))))", "(ROOT (NP (NN x)))"),
        ("(NP (NML x) (NN y))", "(ROOT (NP (NML x) (NN y)))"),
        ("(X 1\\/2)", "(ROOT (X 1/2))"),
        ("(X \\*\\*)", "(ROOT (X **))"),
        ("(X a\\\\\\/b\\c)", "(ROOT (X a/b\\c))"),
        (
            "(X (-LRB- -LRB-) (-LRB- -LCB-) (-RRB- -RSB-))",
            "(ROOT (X (-LRB- -LRB-) (-LRB- -LCB-) (-RRB- -RSB-)))",
        ),
        ("\ufeff*x*x*x* a (b\n(X a)", "(ROOT (X a))"),
        ("*x*(\n*x*) c\n( (X a))\n*x*", "(ROOT (X a))"),
    ],
)
def test_reading(text: str, expected: str) -> None:
    expected = expected.replace("{}", "(NN a) (NN b) (NN c) (NN d)")
    assert read_one(text) == expected
    assert read_one(expected) == expected


@pytest.mark.parametrize(
    "text", ["(S (NP (-NONE- *)) (-NONE- 0))", "(CODE x)", "( (S (CODE x) (NP (-NONE- *))))"]
)
def test_trees_of_empties_are_dropped(text: str) -> None:
    result = read(text + "(NN dog)(NN )")
    assert [write(tree) for tree in result.trees] == ["(ROOT (NN dog))"]
    assert result.dropped == 1
    assert [error.tree for error in result.errors] == [3]


def test_profile_none() -> None:
    text = "(ROOT (NP (NML (NN a) (NN b)) (CODE c)))"
    trees, _ = read(text, drop_tags=frozenset(), flatten_nml=False)
    assert write(trees[0]) == text


@pytest.mark.parametrize(
    "text",
    [
        "(ROOT (S-VBD^ROOT (NP-SBJ=1 (-NONE- *)) (NML (NML (CODE x\\/y))) (X (X (X z)))))",
        "(ROOT (NML (NN a)))",
        "(ROOT (ROOT (ROOT a)))",
    ],
)
def test_strip_false_keeps_everything(text: str) -> None:
    assert write(raw(text)) == text


def test_root_rules_without_strip() -> None:
    assert write(raw("( (S-1 (X a)))")) == "(ROOT (S-1 (X a)))"
    assert write(raw("(VROOT (X a))")) == "(ROOT (X a))"
    assert write(raw("(TOP-1 (X a))")) == "(ROOT (TOP-1 (X a)))"


# ----------------------------------------------------------------------------------- 2 errors


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("(S (NN a)", ("E_UNBALANCED", 1, 1, 1)),
        (" (S (NN ) (X a b)", ("E_UNBALANCED", 1, 1, 2)),
        ("(NN a))", ("E_UNBALANCED", 2, 1, 7)),
        (")", ("E_UNBALANCED", 1, 1, 1)),
        ("foo", ("E_TEXT_OUTSIDE", 1, 1, 1)),
        ("(NN a) foo) bar ) (NN b)", ("E_TEXT_OUTSIDE", 2, 1, 8)),
        ("(NN a)\n *x*", ("E_TEXT_OUTSIDE", 2, 2, 2)),
        ("(NN a) *x*", ("E_TEXT_OUTSIDE", 2, 1, 8)),
        ("(NP the (NN dog))", ("E_MIXED", 1, 1, 9)),
        ("(NP (NN dog) the)", ("E_MIXED", 1, 1, 14)),
        ("( (NN dog) the)", ("E_MIXED", 1, 1, 12)),
        ("(NP a b (NN dog))", ("E_MIXED", 1, 1, 9)),
        ("(NN stock market)", ("E_MULTI_WORD", 1, 1, 11)),
        ("(NN b\u00e9 \u20ac c)", ("E_MULTI_WORD", 1, 1, 9)),
        ("(NN )", ("E_NO_WORD", 1, 1, 1)),
        ("(NN)", ("E_NO_WORD", 1, 1, 1)),
        ("()", ("E_NO_WORD", 1, 1, 1)),
        ("(S\n (NP the (NN )))", ("E_NO_WORD", 1, 2, 10)),
        ("(S ((NN a)))", ("E_EMPTY_LABEL", 1, 1, 4)),
        ("(S ( ))", ("E_EMPTY_LABEL", 1, 1, 4)),
        ("( ( (S a)))", ("E_EMPTY_LABEL", 1, 1, 3)),
        ("(S the ((NN a)))", ("E_EMPTY_LABEL", 1, 1, 8)),
    ],
)
def test_errors(text: str, expected: tuple[str, int, int, int]) -> None:
    assert errors_of(text) == [expected]


def test_depth() -> None:
    def nested(depth: int) -> str:
        return "(X " * (depth - 1) + "(NN a)" + ")" * (depth - 1)

    assert errors_of(nested(1000)) == []
    assert errors_of(nested(1001)) == [("E_DEPTH", 1, 1, 3001)]
    assert errors_of(nested(4), max_depth=3) == [("E_DEPTH", 1, 1, 10)]
    assert errors_of("(X (X (X ((NN a)))))", max_depth=3) == [("E_DEPTH", 1, 1, 10)]
    assert errors_of("(X (((NN a))))", max_depth=2) == [("E_EMPTY_LABEL", 1, 1, 4)]
    for root in ("", "TOP", "ROOT", "S1", "VROOT"):
        assert errors_of(f"({root} {nested(3)})", max_depth=3) == []
        column = len(f"({root} (X (X (X ") + 1
        assert errors_of(f"({root} {nested(4)})", max_depth=3) == [("E_DEPTH", 1, 1, column)]
    assert errors_of(f"(TOP-1 {nested(3)})", max_depth=3) == [("E_DEPTH", 1, 1, 14)]
    assert errors_of(f"(ROOT (ROOT {nested(2)}))", max_depth=3) == []
    assert errors_of(write(raw(nested(1000)))) == []
    deep = raw(nested(1000))
    assert words(treelet.apply(deep, TMP)) == ["a"]


def test_encoding() -> None:
    assert errors_of("(S\n (NN \u00e9\udce9) (NN ))") == [("E_ENCODING", 1, 2, 8)]
    assert errors_of("\udce9") == [("E_TEXT_OUTSIDE", 1, 1, 1)]


def test_without_normalized_root() -> None:
    texts = {
        "( (S (X a)))": "(ROOT (S (X a)))",
        "(TOP (S (X a)))": "(TOP (S (X a)))",
        "(S-1 (NML (X a)) (S (X b)))": "(S (X a) (S (X b)))",
        "(NN dog)": "(NN dog)",
        "(NN-1 (NN dog))": "(NN (NN dog))",
    }
    for text, expected in texts.items():
        assert write(read(text, normalize_root=False).trees[0]) == expected


def test_places_and_many_rooted() -> None:
    result = read("(NN a) (NN )\n(-NONE- *) ( (X a) (Y b))\n( (X a))")
    assert result.places == [(1, 1), (4, 2), (5, 3)]
    assert (result.dropped, result.many_rooted) == (1, 1)


def test_tag_is_phrase() -> None:
    trees, _ = read("(S (X a) (NP (NN b)))(S (X (NN c)))")
    assert tags_used_as_phrases(trees) == {"X"}
    assert tags_used_as_phrases(trees[:1]) == frozenset()


def test_resume() -> None:
    text = "\n".join(
        [
            "(NN one) junk ) more",
            "*x* comment (",
            "junk",
            "(S (NN a) (NN ))(NN two)",
            "(-NONE- *)",
            "(S (NN b)",
            " (NN no)",
            "(NN three))",
            ") (NN four)",
            "(S (NN c d",
        ]
    )
    result = read(text)
    assert [write(tree.children[0]) for tree in result.trees] == [
        "(NN one)",
        "(NN two)",
        "(S (NN b) (NN no) (NN three))",
        "(NN four)",
    ]
    assert result.dropped == 1
    assert result.errors == [
        ("E_TEXT_OUTSIDE", 2, 1, 10),
        ("E_NO_WORD", 2, 4, 11),
        ("E_UNBALANCED", 6, 9, 1),
        ("E_UNBALANCED", 7, 10, 1),
    ]


def test_resume_after_unbalanced() -> None:
    result = read("(S (NN a) (NN x)\n (NN b)\nfoo (NN c)\n(NN d)\n((NN e)\n(NN f)")
    assert [write(tree) for tree in result.trees] == ["(ROOT (NN d))", "(ROOT (NN f))"]
    assert result.errors == [("E_UNBALANCED", 1, 1, 1), ("E_UNBALANCED", 3, 5, 1)]
