"""The oracle against every inline example of the spec (sections 1.1, 2, 4, 5, 6, 9.1)."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.published.worked_examples import ORACLES
from tests.reference import treelet
from tests.reference.bracket_reader import ReadError, cut, read, tags_used_as_phrases
from tests.reference.heads import TABLE, ann, closed, head_index, lexical_head, lower, names
from tests.reference.nodes import Node, clone, postorder, render, words, write
from tests.reference.signature import sig
from tests.reference.temporal import collect, function_tags

TMP = frozenset({"today", "monday", "months", "week"})


def raw(text: str) -> Node:
    """The only tree of a text, labels whole, with its ROOT."""
    trees, errors = read(text, strip=False, unescape=False)
    assert errors == []
    assert len(trees) == 1
    return trees[0]


def fragment(text: str) -> Node:
    """The tree below the ROOT that the reader has put on top."""
    return raw(text).children[0]


def annotated(text: str) -> Node:
    """A tree whose labels `base-head-GAP^parent` are taken apart (simple labels only)."""
    tree = raw(text)
    for node in postorder(tree):
        node.base, _, parent = node.base.partition("^")
        node.parent = parent or None
        node.gap = node.base.endswith("-GAP")
        node.base = node.base.removesuffix("-GAP")
        if not node.base.startswith("-"):
            node.base, _, head = node.base.partition("-")
            node.head = head or None
    assert write(tree) == write(raw(text))
    return tree


def read_one(text: str) -> str:
    """The only tree of a text, written, read with default options."""
    trees, errors = read(text)
    assert errors == []
    assert len(trees) == 1
    return write(trees[0])


def errors_of(text: str, max_depth: int = 1000) -> list[ReadError]:
    """The errors of a text (named tuples, equal to plain ones)."""
    return read(text, max_depth=max_depth).errors


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


# ------------------------------------------------------------------------------------ 4 heads


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("(NP (DT the) (NN dog) (PP (IN of) (NN x)))", 1),
        ("(VP (TO to) (VP (VB go)))", 0),
        ("(NP (NP a) (CC and) (NP b))", 0),
        ("(NP (NN cat) (CC and) (NN dog))", 0),
        ("(PP (PP a) (, ,) (PP b) (CC and) (PP c))", 0),
        ("(NP (NN gain) (HYPH -) (CC and) (NN loss))", 0),
        ("(NP (NN skill) (CC and) (SYM /) (CC or) (NN luck))", 4),
        ("(NP (NNT day) (CC and) (, ,) (NN night))", 3),
        ("(NP (NN night) (, ,) (CC and) (NNT day))", 0),
        ("(NP (JJ old) (CC and) (NN dog))", 0),
        ("(NP (, ,) (CC and) (NN dog))", 2),
        ("(NP (NN a) (CC and) (POS 's))", 0),
        ("(NP (DT the) (NN dog) (POS 's))", 2),
        ("(NP (NN a) (NNTS b) (DT c))", 1),
        ("(NP (DT a) (DT b) (. .))", 1),
        ("(NP (, ,) (. .))", 1),
        ("(FRAG (, ,) (. .))", 1),
        ("(FRAG (NN a) (, ,) (CC and) (NN b) (. .))", 3),
        ("(ZZZ (`` ``) (DT a) (NN b))", 1),
        ("(ZZZ (`` ``) (. .))", 0),
        ("(S (NP a) (IN b) (VP c))", 1),
        ("(PP (RB x) (PP a) (PP b))", 1),
        ("(PP (IN a) (VBG b) (IN c))", 2),
        ("(PP (NN x) (JJ y) (. .))", 1),
        ("(ADVP (RB a) (RB b) (NN c))", 1),
        ("(LST (LS 1) (: :))", 0),
        ("(ROOT (NP x) (S y))", 1),
    ],
)
def test_heads(text: str, expected: int) -> None:
    tree = raw(text)
    assert head_index(tree if text.startswith("(ROOT") else tree.children[0]) == expected


def test_table_is_complete() -> None:
    assert len(TABLE) == 30
    assert all("+" not in cat for row in TABLE.values() for s in row.steps for cat in s.categories)


@pytest.mark.parametrize(
    ("tag", "word", "expected"),
    [
        (",", ",", True),
        ("NFP", ":-)", True),
        ("$", "$", False),
        ("#", "#", False),
        ("HYPH", "-", False),
        ("IN", "of", True),
        ("WP$", "whose", True),
        ("PRP", "He", True),
        ("PRP$", "his", False),
        ("MD", "will", False),
        ("RB", "not", False),
        ("VBZ", "Is", True),
        ("VBZ", "\u2019s", True),
        ("VBP", "\u2018ve", True),
        ("VBD", "fell", False),
        ("AUX", "will", True),
        ("AUXG", "having", True),
        ("AUXG", "going", False),
        ("NN", "being", False),
    ],
)
def test_closed(tag: str, word: str, expected: bool) -> None:
    assert closed(tag, word) is expected


def test_lower_and_ann() -> None:
    assert lower("-LRB-") == "-LRB-"
    assert lower("\u2019S") == "'s"
    assert ann(fragment("(VP (VBZ \u2019s) (ADJP (JJ red)))")) == "'s"
    assert ann(fragment("(PP (IN Of) (NP (NN x)))")) == "of"
    assert ann(fragment("(S (NP (PRP He)) (VP (VBD fell)))")) == "VBD"
    assert lexical_head(raw("(S (NP (PRP He)) (VP (VBD fell)))")).word == "fell"


# --------------------------------------------------------------------------------- 5 temporal


def test_function_tags() -> None:
    assert function_tags("NP-TMP-1") == {"TMP", "1"}
    assert function_tags("NP-SBJ=2") == {"SBJ", "2"}
    assert function_tags("NP") == frozenset()
    assert function_tags("-NONE-") == frozenset()


TEMPORAL_CORPUS = """
(S (NP-SBJ (PRP He)) (VP (VBD left) (NP-TMP (NNP Monday))))
(S (NP (NP-TMP-1 (DT this) (NN week) (NP (-NONE- *))) (NP-TMP (NP (-NONE- 0)))) (X y))
(S (NP-TMP (NN time) (CODE z)) (NP (NN time)) (NP-TMP (RB now)) (PP-TMP (NP (NNS days))))
(S (NP-TMP (NN week)) (NP-TMP (NML (JJ last) (NN year)) (-NONE- *)) (VP (VB x)))
(NML-TMP (NN noon))
(-NONE- *)
"""


def test_temporal_lexicon() -> None:
    trees, errors = read(TEMPORAL_CORPUS, strip=False)
    assert errors == []
    assert collect(trees) == {"monday", "week", "time", "year", "noon"}
    assert collect(trees, min_count=2) == {"week"}
    assert collect(trees, min_share=0.6) == {"monday", "week", "year", "noon"}
    assert collect(trees, min_share=0.5) == {"monday", "week", "time", "year", "noon"}


# ------------------------------------------------------------------------------- 6 transforms


def t1_out(text: str) -> str:
    return write(treelet.t1(raw(text), TMP).children[0])


def test_t1() -> None:
    assert t1_out("(NN today)") == "(NNT today)"
    assert t1_out("(NNS months)") == "(NNTS months)"
    assert t1_out("(NNP Monday)") == "(NNTP Monday)"
    assert t1_out("(NNPS Months)") == "(NNTPS Months)"
    assert t1_out("(RB today)") == "(RB today)"
    for lexicon in (None, frozenset[str]()):
        assert write(treelet.t1(raw("(NN today)"), lexicon)) == "(ROOT (NN today))"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("(NP (DT The) (NN index))", "(NP-NN (DT-the The) (NN index))"),
        ("(PP (IN for) (NP (NNT today)))", "(PP-for (IN-for for) (NP-NNT (NNT today)))"),
        ("(VP (VBZ is) (ADJP (JJ red)))", "(VP-is (VBZ-is is) (ADJP-JJ (JJ red)))"),
        ("(VP (TO to) (VP (VB go)))", "(VP-to (TO-to to) (VP-VB (VB go)))"),
        ("(. ?)", "(.-? ?)"),
        ("(. .)", "(. .)"),
        ("(, ,)", "(, ,)"),
        ("(-LRB- -LRB-)", "(-LRB- -LRB-)"),
        ("(-LRB- -LSB-)", "(-LRB---LSB- -LSB-)"),
        ("(: --)", "(:--- --)"),
        ("(SYM +)", "(SYM-\\+ +)"),
        ("(SYM |)", "(SYM-\\| |)"),
        ("(VBZ \u2019s)", "(VBZ-'s \u2019s)"),
        ("(FRAG (. .) (. .))", "(FRAG-. (. .) (. .))"),
    ],
)
def test_t2(text: str, expected: str) -> None:
    result = treelet.t2(raw(text))
    assert result.head is None
    assert write(result.children[0]) == expected


DOG_AND_CAT = "(NP-NN (NP-NN (DT-the the) (NN dog)) (CC-and and) (NP-NN (DT-the the) (NN cat)))"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "(NP-NNS (NP-NNS (NN stock) (NNS sales)) (PP-by (IN-by by) (NP-NNS (NNS x))))",
            "(NP-NNS (NN stock) (NNS sales) (PP-by (IN-by by) (NP-NNS (NNS x))))",
        ),
        (DOG_AND_CAT, DOG_AND_CAT),
        (
            "(NP-NNP (NP-NNP (NNP Smith)) (, ,) (NP-NN (NP-NN (DT-the the) (NN head))"
            " (PP-of (IN-of of) (NNP A))) (, ,))",
            "(NP-NNP (NP-NNP (NNP Smith)) (, ,) (NP-NN (DT-the the) (NN head)"
            " (PP-of (IN-of of) (NNP A))) (, ,))",
        ),
        (
            "(NP-NN (NP-'s (DT-the the) (NN company) (POS-'s 's)) (NN profit))",
            "(NP-NN (DT-the the) (NN company) (POS-'s 's) (NN profit))",
        ),
        (
            "(NP-NNS (NP-NNS (CD 12) (NNS dollars)) (NP-NN (DT-a a) (NN share)))",
            "(NP-NNS (CD 12) (NNS dollars) (DT-a a) (NN share))",
        ),
        # coordination with a non-NP, on either side, across punctuation
        ("(NP (NP (X a)) (, ,) (CC or) (NN b))", "(NP (NP (X a)) (, ,) (CC or) (NN b))"),
        ("(NP (NN b) (CONJP c) (. .) (NP (X a)))", "(NP (NN b) (CONJP c) (. .) (NP (X a)))"),
        # foreign material or no link between the NPs
        ("(NP (NP (X a)) (, ,) (PP p) (NP (Y b)))", "(NP (X a) (, ,) (PP p) (Y b))"),
        ("(NP (NP (X a)) (RB p) (NP (Y b)))", "(NP (X a) (RB p) (Y b))"),
        ("(NP (NP (X a)) (RB p) (: :) (NP (Y b)))", "(NP (NP (X a)) (RB p) (: :) (NP (Y b)))"),
        # only the base NP, and other phrases are left alone
        ("(NX (NP (X a)) (Y b))", "(NX (NP (X a)) (Y b))"),
        ("(NP (WHNP (X a)) (NX (Y b)))", "(NP (WHNP (X a)) (NX (Y b)))"),
        # coordinated NPs of a spliced NP stay
        ("(NP (NP (NP (X a)) (CC c) (NP (X b))) (Y d))", "(NP (NP (X a)) (CC c) (NP (X b)) (Y d))"),
    ],
)
def test_t3(text: str, expected: str) -> None:
    assert write(treelet.t3(annotated(text)).children[0]) == expected


@pytest.mark.parametrize(
    ("word_list", "expected"),
    [
        ("1989 0001", "YR"),
        ("1980s 20th B-52 mid-1990s 3.5m", "MX"),
        ("109.85 .5 12,345.67", "DC"),
        ("12 1,200 3/4 10:30 '89 -1 12345 5.", "NM"),
        ("ten million \u0661\u0669\u0668\u0669 --", "AL"),
        ("3\u5341", "MX"),
    ],
)
def test_t4(word_list: str, expected: str) -> None:
    for word in word_list.split():
        assert write(treelet.t4(raw(f"(CD {word})"))) == f"(ROOT (CD-{expected} {word}))"


def test_t4_leaves_phrases_alone() -> None:
    text = "(QP-CD (CD ten) (CD million))"
    assert write(treelet.t4(annotated(text)).children[0]) == "(QP-CD (CD-AL ten) (CD-AL million))"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "(SBAR-that (IN-that that) (S-VBD (NP-she (PRP-she she)) (VP-VBD (VBD left))))",
            "(SBAR-that (IN-that that) (NP-she (PRP-she she)) (VP-VBD (VBD left)))",
        ),
        ("(SBAR (S (X a)) (CC and) (S (X b)))", "(SBAR (X a) (CC and) (X b))"),
        ("(SBAR (S (S (X a)) (CC c) (S (X b))))", "(SBAR (S (X a)) (CC c) (S (X b)))"),
        ("(SBAR (SINV (X a)) (SQ (X b)))", "(SBAR (SINV (X a)) (SQ (X b)))"),
        ("(SBARQ (S (X a)))", "(SBARQ (S (X a)))"),
    ],
)
def test_t5(text: str, expected: str) -> None:
    assert write(treelet.t5(annotated(text)).children[0]) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "(VP-MD (MD will) (VP-be (VB-be be) (VP-VBN (VBN reported) (NP-NNT (NNT today)))))",
            "(VP-VBN (MD will) (VB-be be) (VBN reported) (NP-NNT (NNT today)))",
        ),
        (
            "(VP-VBZ (VP-VBZ (VBZ eats)) (CC-and and) (VP-is (VBZ-is is) (VP-VBG (VBG drinking))))",
            "(VP-VBZ (VP-VBZ (VBZ eats)) (CC-and and) (VP-VBG (VBZ-is is) (VBG drinking)))",
        ),
        (
            "(VP-MD (MD will) (CC-and and) (MD must) (VP-VB (VB sleep)))",
            "(VP-VB (MD will) (CC-and and) (MD must) (VB sleep))",
        ),
        ("(VP-X (X a) (CC c) (, ,) (VP-Y (Y b)))", "(VP-X (X a) (CC c) (, ,) (VP-Y (Y b)))"),
        ("(VP-X (VP-Y (Y b)) (CONJP c) (X a))", "(VP-X (VP-Y (Y b)) (CONJP c) (X a))"),
        (
            "(VP-MD (MD will) (VP-VB (VP-VB (VB a)) (CC or) (VP-VB (VB b))))",
            "(VP-VB (MD will) (VP-VB (VB a)) (CC or) (VP-VB (VB b)))",
        ),
    ],
)
def test_t6(text: str, expected: str) -> None:
    assert write(treelet.t6(annotated(text)).children[0]) == expected


def test_t6_highest() -> None:
    tree = annotated("(VP-MD (MD will) (VP-be (VB-be be) (VP-VBN (VBN reported))))")
    expected = "(ROOT (VP-MD (MD will) (VB-be be) (VBN reported)))"
    assert write(treelet.t6(tree, "highest")) == expected


@pytest.mark.parametrize(
    ("text", "label"),
    [
        ("(SBAR-who (WHNP-who (WP-who who)) (VP-VBZ (VBZ sings)))", "SBAR-who-GAP"),
        ("(S-to (VP-VB (TO-to to) (VB leave)))", "S-to-GAP"),
        ("(S-VBZ (SBAR-that (IN-that that) (X x)) (VP-VBZ (VBZ is)))", "S-VBZ-GAP"),
        ("(S-VBZ (NP-NN (NN a)) (VP-VBZ (VBZ b)))", "S-VBZ"),
        ("(S-NN (NN a))", "S-NN"),
        ("(SQ-VB (VP-VB (VB a)))", "SQ-VB"),
        ("(SINV-VB (VP-VB (VB a)))", "SINV-VB"),
        ("(SBARQ-VB (VP-VB (VB a)))", "SBARQ-VB"),
    ],
)
def test_t7(text: str, label: str) -> None:
    assert render(treelet.t7(annotated(text)).children[0]) == label


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "(S-VBD-GAP (VP-VBD (VP a) (VP (X b))))",
            "(S-VBD-GAP^ROOT (VP-VBD^S (VP a) (VP^VP (X b))))",
        ),
        ("(ROOT (UH no) (VP (X a)))", "(ROOT (UH^ROOT no) (VP^ROOT (X a)))"),
        ("(NP (S (NN x)))", "(NP^ROOT (S (NN x)))"),
    ],
)
def test_t8(text: str, expected: str) -> None:
    tree = treelet.t8(annotated(text))
    assert write(tree if expected.startswith("(ROOT") else tree.children[0]) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("(ROOT (FRAG (NP (NN Hello))))", "(ROOT (NN Hello))"),
        ("(ROOT (S (NP (QP (X a) (X b)))))", "(ROOT (QP (X a) (X b)))"),
        ("(ROOT (S (NP (NN a)) (VP (VP (VB b)))))", "(ROOT (S (NN a) (VB b)))"),
        ("(ROOT (NN a))", "(ROOT (NN a))"),
    ],
)
def test_t9(text: str, expected: str) -> None:
    assert write(treelet.t9(raw(text))) == expected


def test_hello_loses_its_root_mark() -> None:
    assert write(treelet.apply(raw("(FRAG (NP (NN Hello)))"), TMP)) == "(ROOT (NN Hello))"
    assert write(treelet.apply(raw("(NN Hello)"), TMP)) == "(ROOT (NN^ROOT Hello))"


# ------------------------------------------------------------------------------- 6.10 oracles


@pytest.mark.parametrize("name", ORACLES)
def test_complete_oracles(name: str) -> None:
    source, expected = ORACLES[name]
    tree = raw(source)
    assert write(treelet.apply(tree, TMP)) == expected
    assert write(tree) == source
    assert read_one(source) == source


def test_enabled_subset_and_order() -> None:
    tree = raw(ORACLES["F1"][0])
    assert write(treelet.apply(tree, TMP, enabled=())) == ORACLES["F1"][0]
    shuffled = treelet.apply(tree, TMP, enabled=(9, 8, 7, 6, 5, 4, 3, 2, 1, 1))
    assert write(shuffled) == ORACLES["F1"][1]
    assert "NNTP" in write(treelet.apply(tree, TMP, enabled=[1]))
    highest = treelet.apply(raw(ORACLES["E3"][0]), TMP, vp_label="highest")
    assert "(VP-MD^S (MD will)" in write(highest)


# ------------------------------------------------------------------------------- 9 signatures


@pytest.mark.parametrize(
    ("word", "position", "known", "expected"),
    [
        ("vexing", 3, "", "UNK-LC-ing"),
        ("Vexing", 2, "", "UNK-CAPS-ing"),
        ("Vexing", 0, "vexing", "UNK-INITC-KNOWNLC-ing"),
        ("Vexing", 0, "", "UNK-INITC-ing"),
        ("80s", 2, "", "UNK-LC-NUM-s"),
        ("B-52", 1, "", "UNK-CAPS-NUM-DASH"),
        ("1,234", 1, "", "UNK-NUM"),
        ("U.S.", 3, "", "UNK-CAPS"),
        ("abacus", 1, "", "UNK-LC"),
        ("glass", 1, "", "UNK-LC"),
        ("dogs", 1, "", "UNK-LC-s"),
        ("ability", 1, "", "UNK-LC-ity"),
        ("co-founder", 1, "", "UNK-LC-DASH"),
        ("McDonald", 0, "", "UNK-CAPS"),
        ("iPod", 1, "", "UNK-LC"),
        ("%", 1, "", "<unk>"),
        ("", 0, "", "<unk>"),
        ("is", 1, "", "UNK-LC"),
        ("'Tis", 1, "", "UNK-CAPS"),
        ("DOGS", 1, "", "UNK-CAPS-s"),
        ("walk", 1, "", "UNK-LC"),
        ("early", 1, "", "UNK-LC-ly"),
        ("X2ing", 1, "", "UNK-CAPS-NUM"),
        ("x2ing", 1, "", "UNK-LC-NUM-ing"),
        ("\u6f22\u5b57", 1, "", "<unk>"),
        ("3\u6f22", 1, "", "UNK-CAPS-NUM"),
        ("\u01c5abc", 0, "", "UNK-INITC"),
        # lower case although no letter, upper case although no letter, letters of no case
        ("\u24d0", 1, "", "<unk>"),
        ("\u24b6", 0, "", "UNK-CAPS"),
        ("a\u00aa", 1, "", "UNK-LC"),
        ("1\u00aa", 1, "", "UNK-LC-NUM"),
    ],
)
def test_signatures(word: str, position: int, known: str, expected: str) -> None:
    assert sig(word, position, frozenset({known})) == expected


def test_paper_style() -> None:
    assert sig("vexing", 3, sig_style="paper") == "UNK-ing"
    assert sig("Vexing", 3, sig_style="paper") == "UNK-CAPS-ing"
    assert sig("abacus", 3, sig_style="paper") == "<unk>"


def test_language_neutral() -> None:
    assert sig("hallo", 3, language_neutral=True) == "UNK-LC-o"
    assert sig("Hallo", 0, {"hallo"}, language_neutral=True) == "UNK-INITC-KNOWNLC-o"
    assert sig("B-52", 3, language_neutral=True) == "UNK-CAPS-NUM-DASH-2"
    assert sig("hallo", 3, sig_style="paper", language_neutral=True) == "UNK-o"
    assert sig("%", 3, language_neutral=True) == "UNK-%"


# -------------------------------------------------------------------------------- properties

PHRASE_NAMES = sorted(names("NP VP S SBAR NML PP CONJP PRN ADVP WHNP FRAG ROOT SQ QP"))
TAG_NAMES = sorted(
    names("NN NNS NNP DT CD CC , . : -LRB- RB VBZ MD POS HYPH SYM IN -NONE- CODE NNT")
)
WORDS = sorted(names("today Monday 1989 3.5 12 is the , . -LRB- 's \u2019s + | - a\\/b B-52 dog"))


def preterminals() -> st.SearchStrategy[Node]:
    """Random tags with random words."""
    return st.builds(
        lambda t, w: Node(t, word=w), st.sampled_from(TAG_NAMES), st.sampled_from(WORDS)
    )


def phrases(children: st.SearchStrategy[Node]) -> st.SearchStrategy[Node]:
    """Random phrases over these children."""
    kids = st.lists(children, min_size=1, max_size=5)
    return st.builds(lambda b, c: Node(b, list(c)), st.sampled_from(PHRASE_NAMES), kids)


def trees() -> st.SearchStrategy[Node]:
    """Random trees below a ROOT, without shared nodes."""
    below = st.recursive(preterminals(), phrases, max_leaves=25)
    roots = st.lists(below, min_size=1, max_size=3)
    # Going through text makes sure that no node occurs twice.
    return roots.map(lambda kids: raw(write(Node("ROOT", kids))))


@settings(max_examples=60, deadline=None)
@given(trees())
def test_transform_properties(tree: Node) -> None:
    result = treelet.apply(tree, TMP)
    assert words(result) == words(tree)
    for node in postorder(result):
        assert node is result or node.is_preterminal or len(node.children) > 1
    assert write(raw(write(result))) == write(result)


@settings(max_examples=60, deadline=None)
@given(trees())
def test_idempotence(tree: Node) -> None:
    treelet.t2(tree)
    for transform in (treelet.t3, treelet.t6, treelet.t9):
        once = transform(clone(tree))
        assert write(transform(clone(once))) == write(once)


@settings(max_examples=60, deadline=None)
@given(trees())
def test_reading_is_idempotent(tree: Node) -> None:
    result = read(write(tree))
    assert len(result.trees) + result.dropped == 1
    for once in result.trees:
        assert read_one(write(once)) == write(once)


@settings(max_examples=60, deadline=None)
@given(st.text(alphabet="()ab-\\/* \n\u00e9", max_size=40))
def test_reader_never_fails_and_good_trees_round_trip(text: str) -> None:
    for tree in read(text, strip=False, unescape=False).trees:
        assert write(raw(write(tree))) == write(tree)
