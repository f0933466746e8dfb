"""The oracle against every inline example of the spec: the transforms (section 6)."""

from __future__ import annotations

import pytest
from tests.published.worked_examples import ORACLES
from tests.reference import treelet
from tests.reference.nodes import render, write
from tests.reference.read_texts import TMP, annotated, raw, read_one

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
