"""`treelm draw`: pictures of trees."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from pathlib import Path

from tests.command_line import assert_fine, assert_refused, treelm

TREE = b"(S (NP-SBJ (DT the) (NN dog)) (VP (VBD barked) (NP (-NONE- *))))\n"


def test_draw_vertical_picture() -> None:
    picture = assert_fine(treelm("draw", stdin=TREE)).decode()
    assert picture.splitlines()[0].strip() == "ROOT"
    assert picture.splitlines()[-1].split() == ["the", "dog", "barked"]
    assert "SBJ" not in picture


def test_draw_reads_a_file_or_standard_input(tmp_path: Path) -> None:
    file = tmp_path / "trees.mrg"
    file.write_bytes(TREE)
    drawn = assert_fine(treelm("draw", file))
    assert drawn == assert_fine(treelm("draw", stdin=TREE))
    assert drawn == assert_fine(treelm("draw", "-", stdin=TREE))


def test_draw_ascii_is_plain() -> None:
    assert assert_fine(treelm("draw", "--ascii", "--heads", stdin=TREE)).isascii()
    assert not assert_fine(treelm("draw", stdin=TREE)).isascii()


def test_draw_raw_keeps_labels_and_empty_elements() -> None:
    picture = assert_fine(treelm("draw", "--raw", stdin=TREE)).decode()
    assert "NP-SBJ" in picture
    assert "-NONE-" in picture


def test_draw_heads_are_marked() -> None:
    plain, marked = treelm("draw", stdin=TREE), treelm("draw", "--heads", stdin=TREE)
    assert "┃" not in assert_fine(plain).decode()
    assert "┃" in assert_fine(marked).decode()


def test_draw_layouts() -> None:
    vertical = assert_fine(treelm("draw", "--layout", "vertical", stdin=TREE)).decode()
    indented = assert_fine(treelm("draw", "--layout", "indented", stdin=TREE)).decode()
    narrow = assert_fine(treelm("draw", "--width", "12", stdin=TREE)).decode()
    assert vertical != indented
    assert narrow == indented
    assert "DT the" in indented


def test_draw_several_trees_and_limit() -> None:
    three = assert_fine(treelm("draw", stdin=TREE * 3)).decode()
    one = assert_fine(treelm("draw", "--limit", "1", stdin=TREE * 3)).decode()
    assert three == f"{one}\n{one}\n{one}"
    assert assert_fine(treelm("draw", "--limit", "9", stdin=TREE * 3)).decode() == three


def test_draw_limit_of_nothing_draws_nothing() -> None:
    assert assert_fine(treelm("draw", "--limit", "0", stdin=TREE)) == b""


def test_draw_svg_is_one_picture(tmp_path: Path) -> None:
    target = tmp_path / "tree.svg"
    done = treelm("draw", "--format", "svg", "-o", target, stdin=TREE + b"(S (NN <&>))\n")
    assert assert_fine(done) == b""
    picture = ET.parse(target).getroot()
    assert picture.tag == "{http://www.w3.org/2000/svg}svg"
    words = [text for text in picture.itertext() if text.strip()]
    assert "barked" in words
    assert "<&>" in words
    assert list(tmp_path.iterdir()) == [target]


def test_draw_latex_is_one_forest_a_tree() -> None:
    drawn = assert_fine(
        treelm("draw", "--format", "latex", stdin=TREE + b"(S (NN 50%_$))\n")
    ).decode()
    assert drawn.count(r"\begin{forest}") == drawn.count(r"\end{forest}") == 2
    assert r"50\%\_\$" in drawn


def test_draw_reports_malformed_trees() -> None:
    done = treelm("draw", stdin=TREE + b"(S (NP a b))\n")
    assert_refused(done, 3, "standard input:2:10", "E_MULTI_WORD")
    done = treelm("draw", "--on-error", "raise", stdin=b"(S (NP a b))\n" + TREE)
    assert_refused(done, 3, "standard input:1:10", "E_MULTI_WORD")
    assert done.stdout == b""
    done = treelm("draw", "--limit", "1", stdin=TREE * 200 + b"(S (NP a b))\n")
    assert b"barked" in assert_fine(done, None)


def test_draw_output_is_untouched_on_failure(tmp_path: Path) -> None:
    target = tmp_path / "tree.txt"
    target.write_bytes(b"before")
    assert_refused(treelm("draw", "-o", target, stdin=b"(S (NP"), 3, "E_UNBALANCED")
    assert target.read_bytes() == b"before"
    assert list(tmp_path.iterdir()) == [target]


def test_draw_profile_decides_about_heads(tmp_path: Path) -> None:
    profile = tmp_path / "mine.toml"
    profile.write_text('name = "mine"\n[heads]\ndefault = "right"\n')
    tree = b"(S (A a) (B b))\n"
    mine = assert_fine(treelm("draw", "--heads", "--profile", profile, stdin=tree))
    neutral = assert_fine(treelm("draw", "--heads", "--profile", "neutral", stdin=tree))
    assert mine != neutral


def test_draw_wide_and_combining_characters() -> None:
    drawn = assert_fine(treelm("draw", stdin="(S (N 狗) (V nin\u0303a))".encode())).decode()
    assert "狗" in drawn
    assert "nin\u0303a" in drawn
