"""`treelm transform`: brackets in, brackets out."""

from __future__ import annotations

import bz2
import gzip
import lzma
import os
from pathlib import Path

import pytest
from tests.command_line import (
    assert_fine,
    assert_refused,
    finish,
    pipe_holding,
    read_answer,
    start_treelm,
    treelm,
)

GOOD = b"(S (NP (PRP I)) (VP (VBP sleep)))\n"
READ = b"(ROOT (S (NP (PRP I)) (VP (VBP sleep))))\n"
BAD = b"(S (NP) (VP (VBP sleep)))\n"
OPENERS = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}


def numbered(count: int) -> bytes:
    return b"".join(b"(S (NN w%d))\n" % i for i in range(count))


def test_transform_clean_reads_standard_input_by_default() -> None:
    trees = b"( (S (NP-SBJ (PRP I)) (VP (VBP sleep) (NP (-NONE- *T*-1)))) )\n"
    assert assert_fine(treelm("transform", "--pipeline", "clean", stdin=trees)) == READ


def test_transform_dash_is_standard_input_among_files(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"(S (NN a))\n")
    (tmp_path / "c").write_bytes(b"(S (NN c))\n")
    done = treelm(
        "transform", "--pipeline", "clean", "a", "-", "c", cwd=tmp_path, stdin=b"(S (NN b))"
    )
    assert (
        assert_fine(done).split()
        == b"(ROOT (S (NN a))) (ROOT (S (NN b))) (ROOT (S (NN c)))".split()
    )


def test_transform_gives_one_line_a_tree_in_order(tmp_path: Path) -> None:
    # Several trees on a line, one tree on several lines, comments between.
    trees = b"(S (NN a)) (S (NN b))\n(S\n  (NN\n c))\n*x* comment (S (NN x))\n\n(S (NN d))"
    done = treelm("transform", "--pipeline", "clean", stdin=trees)
    assert assert_fine(done) == b"".join(b"(ROOT (S (NN %c)))\n" % word for word in b"abcd")


def test_transform_treelet_is_the_default(sample_file: Path) -> None:
    default = assert_fine(treelm("transform", sample_file))
    assert default == assert_fine(treelm("transform", "--pipeline", "treelet", sample_file))
    first = default.splitlines()[0]
    assert first.startswith(b"(ROOT (S-VBD^ROOT (NP-NN (DT-the The) (JJ old) (NN ferry))")
    assert b"(NNT morning)" in first
    assert default.count(b"\n") == sample_file.read_bytes().count(b"\n")


@pytest.mark.parametrize("pipeline", ["clean", "treelet", "binarize", "markovize"])
def test_transform_threads_do_not_change_a_byte(tmp_path: Path, pipeline: str) -> None:
    # More than one chunk of the kernel's.
    many = tmp_path / "many.mrg"
    many.write_bytes(b"".join(b"(S (NP-TMP (NN day%d)) (A b) (C d))\n" % i for i in range(10_000)))
    arguments = ("transform", "--pipeline", pipeline, many)
    one = assert_fine(treelm(*arguments, "--threads", "1"))
    assert one.count(b"\n") == 10_000
    assert one == assert_fine(treelm(*arguments, "--threads", "3"))


@pytest.mark.parametrize(
    "pipeline",
    [
        "binarize",
        "unary-chains",
        "markovize",
        "right-corner",
        "lexicalize",
    ],
)
def test_transform_undo_brings_the_trees_back(sample_file: Path, pipeline: str) -> None:
    clean = assert_fine(treelm("transform", "--pipeline", "clean", sample_file))
    made = assert_fine(treelm("transform", "--pipeline", pipeline, sample_file))
    assert made != clean
    assert assert_fine(treelm("transform", "--pipeline", pipeline, "--undo", stdin=made)) == clean


@pytest.mark.parametrize("direction", ["right", "left", "head"])
@pytest.mark.parametrize("order", ["0", "1", "3"])
def test_transform_binarize_options_can_be_undone(direction: str, order: str) -> None:
    tree = b"(ROOT (NP (DT the) (JJ old) (JJ grey) (NN dog) (PP (IN of) (NN war))))\n"
    options = ("--pipeline", "binarize", "--direction", direction, "--horizontal-order", order)
    made = assert_fine(treelm("transform", *options, stdin=tree))
    assert b"@NP" in made
    assert assert_fine(treelm("transform", *options, "--undo", stdin=made)) == tree


def test_transform_vertical_order_reaches_the_labels() -> None:
    options = ("--pipeline", "markovize", "--vertical-order")
    assert b"^" not in assert_fine(treelm("transform", *options, "1", stdin=GOOD))
    assert b"(NP+PRP^S I)" in assert_fine(treelm("transform", *options, "2", stdin=GOOD))


def test_transform_undo_of_what_drops_labels_is_refused() -> None:
    done = treelm("transform", "--pipeline", "treelet", "--undo", "-q", stdin=GOOD)
    assert_refused(done, 2, "cannot be undone")
    assert done.stdout == b""


def test_transform_undo_of_trees_the_pipeline_never_made() -> None:
    tree = b"(A (B (C (NN x) (NN y)) (NN z)) (D (NN v) (NN w)))\n"
    done = treelm("transform", "--pipeline", "right-corner", "--undo", stdin=tree)
    assert_refused(done, 3, "standard input:1", "E_NOT_RIGHT_CORNER")


def test_transform_without_takes_several_values_after_one_flag(sample_file: Path) -> None:
    left_out = ("temporal_nouns", "vp_flattening", "head_annotation")
    together = treelm("transform", sample_file, "--without", *left_out)
    apart = treelm("transform", sample_file, *(f"--without={name}" for name in left_out))
    assert assert_fine(together) == assert_fine(apart)
    assert b"NNT" not in together.stdout
    assert together.stdout != assert_fine(treelm("transform", sample_file))


def test_transform_unknown_step_and_pipeline_name_what_there_is() -> None:
    done = treelm("transform", "-", "--without", "gravity", stdin=GOOD)
    assert_refused(done, 2, '"gravity"', "temporal_nouns", "unary_deletion")
    done = treelm("transform", "--pipeline", "gravity", stdin=GOOD)
    assert_refused(done, 2, '"gravity"', "treelet", "right-corner")


def test_transform_says_that_no_temporal_nouns_are_known() -> None:
    done = treelm("transform", stdin=GOOD)
    assert assert_fine(done, None) == b"(ROOT (S-VBP^ROOT (PRP-i I) (VBP sleep)))\n"
    assert done.stderr.startswith(b"treelm: warning: no temporal nouns")
    assert done.stderr.count(b"\n") == 1
    assert assert_fine(treelm("transform", "-q", stdin=GOOD)) == done.stdout


def test_transform_temporal_takes_a_lexicon_or_a_treebank(tmp_path: Path) -> None:
    tree = b"(S (NP (NN week)) (VP (VBD passed)))\n"
    (tmp_path / "words").write_bytes(b"week\t3\t9\nday\n")
    (tmp_path / "bank.mrg").write_bytes(b"(S (NP-TMP (DT a) (NN week)))\n")
    for lexicon in ("words", "bank.mrg"):
        done = treelm("transform", "-", "--temporal", lexicon, stdin=tree, cwd=tmp_path)
        assert b"(NNT week)" in assert_fine(done)
    (tmp_path / "words").write_bytes(b"week\tmany\n")
    done = treelm("transform", "-", "--temporal", "words", stdin=tree, cwd=tmp_path)
    assert_refused(done, 3, "words:1")


@pytest.mark.parametrize("suffix", [".gz", ".bz2", ".xz"])
def test_transform_compression_follows_the_suffix(tmp_path: Path, suffix: str) -> None:
    source, target = tmp_path / f"in.mrg{suffix}", tmp_path / f"out.mrg{suffix}"
    with OPENERS[suffix](source, "wb") as file:
        file.write(GOOD * 3)
    assert assert_fine(treelm("transform", "--pipeline", "clean", source)) == READ * 3
    done = treelm("transform", "--pipeline", "clean", source, "-o", target)
    assert assert_fine(done) == b""
    with OPENERS[suffix](target, "rb") as file:
        assert file.read() == READ * 3
    assert sorted(tmp_path.iterdir()) == sorted([source, target])


def test_transform_compressed_bytes_depend_on_nothing_else(tmp_path: Path) -> None:
    done = treelm("transform", "--pipeline", "clean", "-o", "a.gz", stdin=GOOD, cwd=tmp_path)
    assert_fine(done)
    first = (tmp_path / "a.gz").read_bytes()
    assert b".a.gz." not in first
    assert first[4:8] == b"\0\0\0\0"  # the time
    assert gzip.decompress(first) == READ


def test_transform_output_appears_only_when_complete(tmp_path: Path) -> None:
    target = tmp_path / "out.mrg"
    target.write_bytes(b"before")
    done = treelm("transform", "--pipeline", "clean", "-o", target, stdin=GOOD + BAD)
    assert_refused(done, 3, "E_NO_WORD")
    assert target.read_bytes() == b"before"
    assert list(tmp_path.iterdir()) == [target]
    done = treelm("transform", "--pipeline", "clean", "-o", target, stdin=GOOD)
    assert assert_fine(done) == b""
    assert target.read_bytes() == READ
    assert list(tmp_path.iterdir()) == [target]


def test_transform_output_may_be_the_input(tmp_path: Path) -> None:
    file = tmp_path / "trees.mrg"
    file.write_bytes(GOOD * 1000)
    assert_fine(treelm("transform", "--pipeline", "clean", file, "-o", file))
    assert file.read_bytes() == READ * 1000


def test_transform_output_has_the_usual_permissions(tmp_path: Path) -> None:
    target = tmp_path / "out.mrg"
    assert_fine(treelm("transform", "--pipeline", "clean", "-o", target, stdin=GOOD))
    mask = os.umask(0)
    os.umask(mask)
    assert target.stat().st_mode & 0o777 == 0o666 & ~mask


def test_transform_output_keeps_the_permissions_of_the_file_it_replaces(tmp_path: Path) -> None:
    target = tmp_path / "private.mrg"
    target.write_bytes(b"secret")
    target.chmod(0o600)
    assert_fine(treelm("transform", "--pipeline", "clean", "-o", target, stdin=GOOD))
    assert target.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    ("bad", "total", "code"), [(1, 201, 0), (1, 100, 0), (1, 99, 3), (2, 100, 3)]
)
def test_transform_tolerates_one_malformed_tree_in_a_hundred(
    bad: int, total: int, code: int
) -> None:
    trees = GOOD * (total - bad) + BAD * bad
    done = treelm("transform", "--pipeline", "clean", stdin=trees)
    assert done.returncode == code
    assert done.stdout == READ * (total - bad)
    report = done.stderr.decode()
    assert f"standard input:{total}:4: tree {total}: " in report
    assert f"{bad} of {total} trees were malformed" in report


def test_transform_quiet_hides_tolerated_trees_but_not_errors() -> None:
    done = treelm("transform", "--pipeline", "clean", "-q", stdin=GOOD * 200 + BAD)
    assert assert_fine(done) == READ * 200
    done = treelm("transform", "--pipeline", "clean", "--quiet", stdin=BAD)
    assert_refused(done, 3, "1 of 1 trees")


def test_transform_verbose_lists_every_malformed_tree() -> None:
    trees = GOOD * 1000 + BAD * 9
    short = treelm("transform", "--pipeline", "clean", stdin=trees)
    full = treelm("transform", "--pipeline", "clean", "-v", stdin=trees)
    assert short.stderr.count(b"E_NO_WORD") == 5
    assert full.stderr.count(b"E_NO_WORD") == 9


@pytest.mark.parametrize("pipeline", ["clean", "binarize"])
def test_transform_on_error_raise_stops_at_the_first(tmp_path: Path, pipeline: str) -> None:
    target = tmp_path / "out.mrg"
    trees = GOOD * 500 + BAD + b"(S (NP a b))\n" + GOOD
    arguments = ("transform", "--pipeline", pipeline, "--on-error", "raise", "-o", target)
    message = assert_refused(
        treelm(*arguments, stdin=trees), 3, "standard input:501:4", "E_NO_WORD"
    )
    assert "E_MULTI_WORD" not in message
    assert list(tmp_path.iterdir()) == []


def test_transform_neutral_profile_knows_no_english() -> None:
    tree = b"(S (NML (NN a) (NN b)) (CODE c))\n"
    english = assert_fine(treelm("transform", "--pipeline", "clean", stdin=tree))
    assert english == b"(ROOT (S (NN a) (NN b)))\n"
    neutral = treelm("transform", "--pipeline", "clean", "--profile", "neutral", stdin=tree)
    assert assert_fine(neutral) == b"(ROOT (S (NML (NN a) (NN b)) (CODE c)))\n"


def test_transform_profile_of_ones_own(tmp_path: Path) -> None:
    profile = tmp_path / "mine.toml"
    profile.write_text('name = "mine"\n[heads.rules]\nS = { default = "right" }\n')
    tree = b"(S (A a) (B b))\n"
    arguments = ("transform", "--pipeline", "lexicalize", "--profile")
    assert b"S[b]" in assert_fine(treelm(*arguments, profile, stdin=tree))
    assert b"S[a]" in assert_fine(treelm(*arguments, "neutral", stdin=tree))


def test_transform_broken_profile(tmp_path: Path) -> None:
    profile = tmp_path / "mine.toml"
    profile.write_text('name = "mine"\n[heads\n')
    assert_refused(treelm("transform", "--profile", profile, stdin=GOOD), 3, "mine.toml", "line 2")
    assert_refused(treelm("transform", "--profile", "klingon", stdin=GOOD), 3, "klingon", "neutral")


def test_transform_line_buffered_answers_before_the_input_ends() -> None:
    process = start_treelm("transform", "--pipeline", "clean", "--line-buffered")
    assert process.stdin is not None
    try:
        for number in range(3):
            process.stdin.write(b"(S (NN w%d))\n" % number)
            process.stdin.flush()
            assert read_answer(process) == b"(ROOT (S (NN w%d)))\n" % number
    finally:
        done = finish(process)
    assert assert_fine(done) == b""


def test_transform_line_buffered_in_every_pipeline() -> None:
    process = start_treelm("transform", "--pipeline", "binarize", "--line-buffered")
    assert process.stdin is not None
    try:
        process.stdin.write(GOOD)
        process.stdin.flush()
        assert read_answer(process).startswith(b"(")
    finally:
        finish(process)


def test_transform_several_files_are_checked_each(tmp_path: Path) -> None:
    (tmp_path / "good.mrg").write_bytes(GOOD * 300)
    (tmp_path / "bad.mrg").write_bytes(GOOD * 10 + BAD)
    done = treelm("transform", "--pipeline", "clean", "good.mrg", "bad.mrg", cwd=tmp_path)
    assert_refused(done, 3, "bad.mrg:11:4", "1 of 11 trees")


def test_transform_reads_a_pipe_by_name() -> None:
    with pipe_holding(b"(S (NP-TMP (NN week)) (VP (VBD passed)))\n") as pipe:
        done = finish(start_treelm("transform", f"/dev/fd/{pipe}", passed=[pipe]))
    assert b"(VBD passed)" in assert_fine(done, None)


@pytest.mark.parametrize("pipeline", ["clean", "treelet"])
def test_transform_that_drops_things_cannot_be_undone(pipeline: str) -> None:
    done = treelm("transform", "--pipeline", pipeline, "--undo", stdin=b"(ROOT (NN a))\n")
    assert done.returncode == 2
    assert b"cannot be undone" in done.stderr
    assert done.stdout == b""


def test_transform_temporal_treebank_is_known_by_its_content(tmp_path: Path) -> None:
    treebank, lexicon = tmp_path / "rain.txt", tmp_path / "words.mrg"
    treebank.write_text("(S (NP-TMP (NNP Monday)))\n")
    lexicon.write_text("Monday\n")
    for given in (treebank, lexicon):
        done = treelm("transform", "--temporal", given, stdin=b"(ROOT (NNP Monday))\n")
        assert done.stdout == b"(ROOT (NNTP^ROOT Monday))\n", done.stderr


def test_transform_without_goes_with_treelet_only() -> None:
    done = treelm("transform", "--pipeline", "clean", "--without", "vp_flattening", stdin=b"(A a)")
    assert done.returncode == 2
