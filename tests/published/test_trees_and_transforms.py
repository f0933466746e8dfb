"""Every example and table row of the specification of trees and transforms, through the kernel.

F1 and F2 are Figures 1 and 2 of Pauls & Klein (2012); E3 to E6 were computed by hand-checked script
when the specification was written. Sections are those of trees-and-transforms.md.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from pathlib import Path

import pytest
from tests.published.worked_examples import ORACLES

from treelm.corpus.brackets import ReadOptions, ReadReport, read_packed, read_trees
from treelm.errors import CorpusFormatError, TreelmWarning
from treelm.transforms.temporal_lexicon import TemporalLexicon
from treelm.transforms.treelet import TREELET_TRANSFORMS, VerbLabel, treelet
from treelm.trees.heads import find_heads
from treelm.trees.label import Label
from treelm.trees.packed import PackedTrees
from treelm.trees.tree import Tree

TMP = frozenset({"today", "monday", "months", "week"})
WHOLE = ReadOptions(strip=False, unescape=False)


def read(text: str, options: ReadOptions | None = None) -> list[str]:
    """The trees of a text, written."""
    return [str(tree) for tree in read_trees([text], options or ReadOptions())]


def annotated(text: str) -> Tree:
    """A tree below ROOT with the parts of its (simple) labels taken apart."""

    def rebuild(node: Tree, children: tuple[Tree, ...]) -> Tree:
        label, _, parent = str(node.label).partition("^")
        gap = label.endswith("-GAP")
        base, _, head = label.removesuffix("-GAP").partition("-")
        if base == "":  # a bracket tag
            base, head = label, ""
        parts = Label(base, head or None, gap=gap, parent=parent or None)
        return Tree(parts, node.word if node.word is not None else children)

    tree = Tree.from_string(text).transform(rebuild)
    assert str(tree) == text
    return Tree("ROOT", [tree])


def transformed(text: str, numbers: Collection[int], vp_label: VerbLabel = "lowest") -> str:
    """What some of the transforms make of a fragment whose labels may be annotated."""
    names = [TREELET_TRANSFORMS[number - 1] for number in numbers]
    result = treelet(annotated(text), temporal=TMP, transforms=names, vp_label=vp_label)
    return str(result.children[0])


# -- 1.1 labels -----------------------------------------------------------------------------


def test_section_1_labels() -> None:
    assert Label("S", "VB", gap=True, parent="ROOT") == "S-VB-GAP^ROOT"
    colon = Label(":", "--")
    assert (colon, colon.base, colon.head) == (":---", ":", "--")
    assert Label("SYM", "+") == r"SYM-\+"
    assert Label("SYM", "|") == r"SYM-\|"


# -- 2 reading ------------------------------------------------------------------------------

READING_TABLE = {
    "white space": ("(S\t(X\v\fa)\r\n  (Y b))(NN c)", ["(ROOT (S (X a) (Y b)))", "(ROOT (NN c))"]),
    "no-break space": ("(NN a\u00a0b\u2009c)", ["(ROOT (NN a\u00a0b\u2009c))"]),
    "empty outer label": ("( (S (NN a)) )", ["(ROOT (S (NN a)))"]),
    "TOP": ("(TOP (S (NN a)))", ["(ROOT (S (NN a)))"]),
    "ROOT": ("(ROOT (S (NN a)))", ["(ROOT (S (NN a)))"]),
    "S1": ("(S1 (S (NN a)))", ["(ROOT (S (NN a)))"]),
    "VROOT": ("(VROOT (S (NN a)))", ["(ROOT (S (NN a)))"]),
    "other outer label": ("(S (NN a))", ["(ROOT (S (NN a)))"]),
    "empties": ("(S (NP (X (-NONE- *))) (NP (-NONE- 0) (NN a)))", ["(ROOT (S (NP (NN a))))"]),
    "only empties": ("(S (NP (-NONE- *)))(NN a)", ["(ROOT (NN a))"]),
    "only dropped tags": ("(S (CODE x))(NN a)", ["(ROOT (NN a))"]),
    "function tags": (
        "(S-1 (NP-SBJ-1 (PRP$ a)) (NP=2 (NN b)) (ADVP|PRT (RB c)))",
        ["(ROOT (S (NP (PRP$ a)) (NP (NN b)) (ADVP (RB c))))"],
    ),
    "labels starting with -": (
        "(X (-LRB- -LRB-) (-RRB- -RRB-))",
        ["(ROOT (X (-LRB- -LRB-) (-RRB- -RRB-)))"],
    ),
    "escaped words": (r"(X (CD 1\/2) (SYM \*\*))", ["(ROOT (X (CD 1/2) (SYM **)))"]),
    "bracket words": (
        "(X (A -LRB-) (A -RRB-) (A -LCB-) (A -RCB-) (A -LSB-) (A -RSB-))",
        ["(ROOT (X (A -LRB-) (A -RRB-) (A -LCB-) (A -RCB-) (A -LSB-) (A -RSB-)))"],
    ),
    "self loop": ("(NP-SBJ (NP (NP-1 (NN a) (NN b))))", ["(ROOT (NP (NN a) (NN b)))"]),
    "drop_tags": ("(S (CODE <x>) (NN a) (SU-2 b))", ["(ROOT (S (NN a)))"]),
    "flatten_nml": (
        "(NP (NML (NML (NN a) (NN b)) (NN c)) (NN d))",
        ["(ROOT (NP (NN a) (NN b) (NN c) (NN d)))"],
    ),
    "NML below ROOT": ("(NML (NN a) (NN b))", ["(ROOT (NP (NN a) (NN b)))"]),
    "comments": ("*x*x*x*\n*x* (a) b\n(NN a)\n*x*", ["(ROOT (NN a))"]),
    "paid": (
        "( (S (NP-SBJ-1 (PRP He)) (VP (VBD was) (VP (VBN paid) (NP (-NONE- *-1)))) (. .)) )",
        ["(ROOT (S (NP (PRP He)) (VP (VBD was) (VP (VBN paid))) (. .)))"],
    ),
}


@pytest.mark.parametrize("row", READING_TABLE)
def test_section_2_reading(row: str) -> None:
    text, expected = READING_TABLE[row]
    assert read(text) == expected
    assert read("\n".join(expected)) == expected


def test_section_2_several_children_below_an_empty_label_warn_once() -> None:
    report = ReadReport()
    with pytest.warns(TreelmWarning) as caught:
        trees = list(read_trees(["( (X a) (Y b))", "( (X a) (Y b))"], report=report))
    assert [str(tree) for tree in trees] == ["(ROOT (X a) (Y b))"] * 2
    assert len(caught) == 1
    assert report.many_rooted == 2


def test_section_2_dropped_trees_are_counted() -> None:
    report = ReadReport()
    texts = ["(S (NP (-NONE- *)))", "(CODE x)", "(NN a)"]
    assert len(list(read_trees(texts, report=report))) == 1
    assert (report.dropped, report.failed, report.trees) == (2, 0, 1)


@pytest.mark.parametrize("profile", ["english", "en"])
def test_section_2_english_profile_is_the_default(profile: str) -> None:
    text = "(NP (NML (NN a) (NN b)) (CODE c))"
    assert read(text, ReadOptions(profile)) == read(text) == ["(ROOT (NP (NN a) (NN b)))"]
    assert read(text, ReadOptions("neutral")) == [f"(ROOT {text})"]


def test_section_2_options_off() -> None:
    text = r"(ROOT (NP-SBJ=1 (NP (-NONE- *)) (NML (CODE x\/y))) (X (X z)))"
    assert read(text, WHOLE) == [text]
    assert read(r"(CD 1\/2)", ReadOptions(unescape=False)) == [r"(ROOT (CD 1\/2))"]
    assert read(r"(CD-X 1\/2)", ReadOptions(strip=False)) == ["(ROOT (CD-X 1/2))"]


ERROR_TABLE = {
    "end of input": ("(S (NN a)\n (NN b)", ("E_UNBALANCED", 1, 1, 1)),
    "closed too often": ("(NN a)\n )", ("E_UNBALANCED", 2, 2, 2)),
    "token outside": ("(NN a) word (NN b)", ("E_TEXT_OUTSIDE", 2, 1, 8)),
    "mixed": ("(NP the (NN dog))", ("E_MIXED", 1, 1, 9)),
    "two words": ("(NN stock market)", ("E_MULTI_WORD", 1, 1, 11)),
    "no word": ("(S (NN ))", ("E_NO_WORD", 1, 1, 4)),
    "empty label": ("(S\n((NN a)))", ("E_EMPTY_LABEL", 1, 2, 1)),
    "depth": ("(X " * 1000 + "(X a)" + ")" * 1000, ("E_DEPTH", 1, 1, 3001)),
}


@pytest.mark.parametrize("row", ERROR_TABLE)
def test_section_2_errors(row: str, tmp_path: Path) -> None:
    text, place = ERROR_TABLE[row]
    path = tmp_path / "bad.mrg"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(CorpusFormatError) as caught:
        list(read_trees(path))
    error = caught.value
    assert (error.code, error.tree, error.line, error.column) == place
    assert error.path == str(path)
    for part in (str(path), f":{place[2]}:{place[3]}:", f"tree {place[1]}", place[0]):
        assert part in str(error)
    report = ReadReport()
    list(read_trees(path, on_error="skip", report=report))
    assert report.failed == 1
    (problem,) = report.problems
    assert (problem.code, problem.tree, problem.line, problem.column) == place


def test_section_2_reading_resumes() -> None:
    """At the next bracket at depth 0; after an unbalanced tree at a later line with one."""
    text = "(NN a b)(NN c) x (NN d)\n(S (NN e)\n  (NN f)\n(NN g"
    report = ReadReport()
    found = [str(tree) for tree in read_trees([text], on_error="skip", report=report)]
    assert found == ["(ROOT (NN c))", "(ROOT (NN d))"]
    assert [(problem.code, problem.line) for problem in report.problems] == [
        ("E_MULTI_WORD", 1),
        ("E_TEXT_OUTSIDE", 1),
        ("E_UNBALANCED", 2),
        ("E_UNBALANCED", 4),
    ]
    recovered = read_trees(["(S (NN e)\n  (NN f)\n(NN g)"], on_error="skip")
    assert [str(tree) for tree in recovered] == ["(ROOT (NN g))"]


def test_section_2_tag_is_phrase_can_be_seen() -> None:
    trees = list(read_trees(["(S (X a) (NP (NN b)))", "(S (X (NN c)))"]))
    tags, phrases = PackedTrees.from_trees(trees).label_sets()
    assert tags & phrases == {"X"}


def test_section_2_writer() -> None:
    text = "( (S\n  (NP (DT the) (NN dog))\n  (VP (VBZ barks))) )"
    (batch,) = read_packed([text.encode()])
    assert batch.to_brackets() == b"(ROOT (S (NP (DT the) (NN dog)) (VP (VBZ barks))))\n"


# -- 4 heads --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "head"),
    [
        ("(NP (DT the) (NN dog) (PP (IN of) (NN war)))", 1),
        ("(VP (TO to) (VP (VB go)))", 0),
        ("(NP (NP a) (CC and) (NP b))", 0),
        ("(NP (NN cat) (CC and) (NN dog))", 0),
        ("(PP (PP a) (, ,) (PP b) (CC and) (PP c))", 0),
        ("(NP (NN gain) (HYPH -) (CC and) (NN loss))", 0),
        ("(NP (NN skill) (CC and) (SYM /) (CC or) (NN luck))", 4),
    ],
)
def test_section_4_heads(text: str, head: int) -> None:
    assert find_heads(Tree.from_string(text)).head == head


def test_section_4_apostrophes() -> None:
    """A typographic apostrophe is written straight in annotations; the word is not changed."""
    assert transformed("(VP (VBZ ’s) (ADJP (JJ red)))", [2]) == (
        "(VP-'s (VBZ-'s ’s) (ADJP-JJ (JJ red)))"
    )
    for word in ("PRP$ his", "MD will", "RB not"):
        assert transformed(f"({word})", [2]) == f"({word})"


# -- 5 temporal lexicon ---------------------------------------------------------------------


def test_section_5_temporal_lexicon(tmp_path: Path) -> None:
    path = tmp_path / "trees.mrg"
    path.write_text(
        "(S (NP-SBJ (PRP He)) (VP (VBD left) (NP-TMP (NNP Monday))))\n"
        "(S (NP (NP-TMP-1 (DT this) (NN week) (NP (-NONE- *))) (NP-TMP (-NONE- 0))) (X y))\n"
        "(S (NP-TMP (NN time)) (NP (NN time)) (NP-TMP (RB now)) (PP-TMP (NP (NNS days))))\n"
    )
    lexicon = TemporalLexicon.collect([path])
    # this week heads its own phrase and the one above, whose other part is empty
    assert lexicon.counts == {"monday": (1, 1), "week": (1, 2), "time": (1, 2)}
    assert lexicon.words() == {"monday", "week", "time"}
    assert lexicon.words(min_count=2) == frozenset()
    assert lexicon.words(min_share=0.6) == {"monday"}


def test_section_5_without_a_lexicon_t1_does_nothing_and_warns() -> None:
    tree = Tree.from_string("(ROOT (NP (NN today)))")
    with pytest.warns(TreelmWarning):
        assert treelet(tree, transforms=TREELET_TRANSFORMS[:1]) == tree


# -- 6 transforms ---------------------------------------------------------------------------

DOG_AND_CAT = "(NP-NN (NP-NN (DT-the the) (NN dog)) (CC-and and) (NP-NN (DT-the the) (NN cat)))"

EXAMPLES: list[tuple[int, str, str]] = [
    (1, "(NN today)", "(NNT today)"),
    (1, "(NNS months)", "(NNTS months)"),
    (1, "(NNP Monday)", "(NNTP Monday)"),
    (1, "(NNPS Months)", "(NNTPS Months)"),
    (1, "(RB today)", "(RB today)"),
    (2, "(NP (DT The) (NN index))", "(NP-NN (DT-the The) (NN index))"),
    (2, "(PP (IN for) (NP (NNT today)))", "(PP-for (IN-for for) (NP-NNT (NNT today)))"),
    (2, "(VP (VBZ is) (ADJP (JJ red)))", "(VP-is (VBZ-is is) (ADJP-JJ (JJ red)))"),
    (2, "(VP (TO to) (VP (VB go)))", "(VP-to (TO-to to) (VP-VB (VB go)))"),
    (2, "(. ?)", "(.-? ?)"),
    (2, "(. .)", "(. .)"),
    (2, "(, ,)", "(, ,)"),
    (2, "(-LRB- -LRB-)", "(-LRB- -LRB-)"),
    (2, "(: --)", "(:--- --)"),
    (2, "(SYM +)", r"(SYM-\+ +)"),
    (2, "(SYM |)", r"(SYM-\| |)"),
    (
        3,
        "(NP-NNS (NP-NNS (NN stock) (NNS sales)) (PP-by (IN-by by) (NP-NNS (NNS traders))))",
        "(NP-NNS (NN stock) (NNS sales) (PP-by (IN-by by) (NP-NNS (NNS traders))))",
    ),
    (3, DOG_AND_CAT, DOG_AND_CAT),
    (
        3,
        "(NP-NNP (NP-NNP (NNP Smith)) (, ,) (NP-NN (NP-NN (DT-the the) (NN head)) (PP-of (IN-of of)"
        " (NP-NNP (NNP Acme)))) (, ,))",
        "(NP-NNP (NP-NNP (NNP Smith)) (, ,) (NP-NN (DT-the the) (NN head) (PP-of (IN-of of)"
        " (NP-NNP (NNP Acme)))) (, ,))",
    ),
    (
        3,
        "(NP-NN (NP-'s (DT-the the) (NN company) (POS-'s 's)) (NN profit))",
        "(NP-NN (DT-the the) (NN company) (POS-'s 's) (NN profit))",
    ),
    (
        3,
        "(NP-NNS (NP-NNS (CD 12) (NNS dollars)) (NP-NN (DT-a a) (NN share)))",
        "(NP-NNS (CD 12) (NNS dollars) (DT-a a) (NN share))",
    ),
    (
        5,
        "(SBAR-that (IN-that that) (S-VBD (NP-she (PRP-she she)) (VP-VBD (VBD left))))",
        "(SBAR-that (IN-that that) (NP-she (PRP-she she)) (VP-VBD (VBD left)))",
    ),
    (5, "(SBAR (S (S (X a)) (CC and) (S (X b))))", "(SBAR (S (X a)) (CC and) (S (X b)))"),
    (
        6,
        "(VP-MD (MD will) (VP-be (VB-be be) (VP-VBN (VBN reported) (NP-NNT (NNT today)))))",
        "(VP-VBN (MD will) (VB-be be) (VBN reported) (NP-NNT (NNT today)))",
    ),
    (
        6,
        "(VP-VBZ (VP-VBZ (VBZ eats)) (CC-and and) (VP-is (VBZ-is is) (VP-VBG (VBG drinking))))",
        "(VP-VBZ (VP-VBZ (VBZ eats)) (CC-and and) (VP-VBG (VBZ-is is) (VBG drinking)))",
    ),
    (
        6,
        "(VP-MD (MD will) (CC-and and) (MD must) (VP-VB (VB sleep)))",
        "(VP-VB (MD will) (CC-and and) (MD must) (VB sleep))",
    ),
    (
        7,
        "(SBAR-who (WHNP-who (WP-who who)) (VP-VBZ (VBZ sings)))",
        "(SBAR-who-GAP (WHNP-who (WP-who who)) (VP-VBZ (VBZ sings)))",
    ),
    (
        7,
        "(S-to (VP-VB (TO-to to) (VB leave)))",
        "(S-to-GAP (VP-VB (TO-to to) (VB leave)))",
    ),
    (
        7,
        "(S-VBZ (SBAR-that (IN-that that)) (VP-VBZ (VBZ helps)))",
        "(S-VBZ-GAP (SBAR-that (IN-that that)) (VP-VBZ (VBZ helps)))",
    ),
    (7, "(SQ-VB (VP-VB (VB a)))", "(SQ-VB (VP-VB (VB a)))"),
    (8, "(S-VBD-GAP (VP-VBD (VBD fell)))", "(S-VBD-GAP^ROOT (VP-VBD^S (VBD fell)))"),
    (8, "(UH no)", "(UH^ROOT no)"),
    (9, "(FRAG (NP (NN Hello)))", "(NN Hello)"),
]


@pytest.mark.parametrize(("number", "before", "after"), EXAMPLES)
def test_section_6_examples(number: int, before: str, after: str) -> None:
    assert transformed(before, [number]) == after


def test_section_6_vp_label_highest() -> None:
    before = "(VP-MD (MD will) (VP-be (VB-be be) (VP-VBN (VBN reported))))"
    after = "(VP-MD (MD will) (VB-be be) (VBN reported))"
    assert transformed(before, [6], "highest") == after


@pytest.mark.parametrize(
    ("number_class", "word"),
    [
        *[("YR", word) for word in ("1989", "0001")],
        *[("MX", word) for word in ("1980s", "20th", "B-52", "mid-1990s", "3.5m")],
        *[("DC", word) for word in ("109.85", ".5", "12,345.67")],
        *[("NM", word) for word in ("12", "1,200", "3/4", "10:30", "'89", "-1")],
        *[("AL", word) for word in ("ten", "million")],
    ],
)
def test_section_6_number_classes(number_class: str, word: str) -> None:
    assert transformed(f"(CD {word})", [4]) == f"(CD-{number_class} {word})"
    assert transformed(f"(QP-CD (CD {word}))", [4]) == f"(QP-CD (CD-{number_class} {word}))"


EXAMPLES = ORACLES | {"one word": ("(ROOT (FRAG (NP (NN Hello))))", "(ROOT (NN Hello))")}


@pytest.mark.parametrize("name", EXAMPLES)
def test_section_6_complete_oracles(name: str) -> None:
    before, after = EXAMPLES[name]
    (tree,) = read_trees([before])
    assert str(tree) == before
    assert str(treelet(tree, temporal=TMP)) == after
    assert read(after, WHOLE) == [after]


@pytest.mark.parametrize("name", EXAMPLES)
def test_section_6_complete_oracles_while_reading(name: str) -> None:
    before, after = EXAMPLES[name]
    recipe = ReadOptions().recipe(treelet=(1 << 9) - 1, temporal=TMP)
    for text in (before, re.sub(r"^\(ROOT ", "( ", before), before[6:-1]):
        (batch,) = read_packed([text.encode()], recipe=recipe)
        assert batch.to_brackets().decode() == after + "\n"
