"""The oracle against every inline example of the spec: heads, temporal nouns and signatures (sections 4, 5 and 9.1)."""

from __future__ import annotations

import pytest
from tests.reference.bracket_reader import read
from tests.reference.heads import TABLE, ann, closed, head_index, lexical_head, lower
from tests.reference.read_texts import fragment, raw
from tests.reference.signature import sig
from tests.reference.temporal import collect, function_tags

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
