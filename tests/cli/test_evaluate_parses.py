"""`treelm evaluate parses`: bracket scores, against numbers computed by hand."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.command_line import assert_fine, assert_refused, treelm

GOLD = "(S (NP (X a) (X b)) (VP (X c) (NP (X d) (X e))))"
RIGHT_BRANCHING = "(Z (X a) (Z (X b) (Z (X c) (Z (X d) (X e)))))"


def evaluate(tmp_path: Path, gold: str, system: str, *options: str) -> dict[str, Any]:
    (tmp_path / "gold.mrg").write_text(gold)
    (tmp_path / "system.mrg").write_text(system)
    done = treelm(
        "evaluate", "parses", "gold.mrg", "system.mrg", "--json", "-q", *options, cwd=tmp_path
    )
    record = json.loads(assert_fine(done))
    assert isinstance(record, dict)
    return record


def test_evaluate_parses_json_keys(tmp_path: Path) -> None:
    record = evaluate(tmp_path, GOLD, GOLD)
    promised = (
        "labelled_precision labelled_recall labelled_f1 unlabelled_f1 exact_match "
        "tagging_accuracy sentences"
    )
    assert set(promised.split()) <= set(record)
    assert all(record[key] == 1 for key in promised.split())


def test_evaluate_parses_right_branching_shares_three_of_four_spans(tmp_path: Path) -> None:
    # Spans of the gold tree: 0-5 0-2 2-5 3-5; right-branching: 0-5 1-5 2-5 3-5.
    record = evaluate(tmp_path, GOLD, RIGHT_BRANCHING)
    assert record["unlabelled_precision"] == 0.75
    assert record["unlabelled_recall"] == 0.75
    assert record["unlabelled_f1"] == 0.75
    assert record["labelled_f1"] == 0
    assert record["exact_match"] == 0
    assert record["tagging_accuracy"] == 1


def test_evaluate_parses_labels_tags_and_sums_over_the_corpus(tmp_path: Path) -> None:
    # Sentence 1: 4 gold, 4 guessed, the VP is called NP: 3 match; 1 of 5 tags is wrong.
    # Sentence 2: gold S NP, guess S: 1 of 1 guessed, 1 of 2 gold; both tags right.
    gold = f"{GOLD}\n(S (NP (A f) (B g)))\n"
    system = "(S (NP (X a) (Q b)) (NP (X c) (NP (X d) (X e))))\n(S (A f) (B g))\n"
    record = evaluate(tmp_path, gold, system)
    assert record["labelled_precision"] == pytest.approx(4 / 5)
    assert record["labelled_recall"] == pytest.approx(4 / 6)
    assert record["labelled_f1"] == pytest.approx(8 / 11)
    assert record["unlabelled_precision"] == pytest.approx(5 / 5)
    assert record["unlabelled_recall"] == pytest.approx(5 / 6)
    assert record["unlabelled_f1"] == pytest.approx(10 / 11)
    assert record["tagging_accuracy"] == pytest.approx(6 / 7)
    assert record["exact_match"] == 0
    assert record["sentences"] == 2


def test_evaluate_parses_counts_spans_as_multisets(tmp_path: Path) -> None:
    # Gold has A over B over A on one span, the guess A once more: min(2, 3) + 1 of B.
    record = evaluate(tmp_path, "(A (B (A (X a))))", "(A (B (A (C (A (X a))))))")
    assert record["labelled_precision"] == pytest.approx(3 / 5)
    assert record["labelled_recall"] == 1


def test_evaluate_parses_removes_punctuation_by_the_gold_tag(tmp_path: Path) -> None:
    gold = "(S (NP (NN a) (, ,)) (VP (VB b)) (. .))"
    # The comma hangs elsewhere and is tagged differently; nothing of that counts.
    system = "(S (NP (NN a)) (VP (NN ,) (VB b)) (NN .))"
    record = evaluate(tmp_path, gold, system)
    assert record["labelled_f1"] == 1
    assert record["exact_match"] == 1
    assert record["tagging_accuracy"] == 1
    # A word tagged as punctuation by the parser alone does count.
    record = evaluate(tmp_path, "(S (NP (NN a)) (VP (VB b)))", "(S (NP (. a)) (VP (VB b)))")
    assert record["labelled_f1"] == 1
    assert record["tagging_accuracy"] == 0.5


def test_evaluate_parses_neutral_removes_what_looks_like_punctuation(tmp_path: Path) -> None:
    gold, system = "(S (A (X a) (Y --)) (B b))", "(S (A (X a)) (Y --) (B b))"
    assert evaluate(tmp_path, gold, system, "--profile", "neutral")["labelled_f1"] == 1
    assert evaluate(tmp_path, gold, system)["labelled_f1"] == 0.5


def test_evaluate_parses_advp_and_prt_are_one(tmp_path: Path) -> None:
    gold, system = "(S (ADVP (RB a)) (VP (VB b)))", "(S (PRT (RB a)) (VP (VB b)))"
    assert evaluate(tmp_path, gold, system)["labelled_f1"] == 1
    assert evaluate(tmp_path, gold, system, "--profile", "neutral")["labelled_f1"] < 1


def test_evaluate_parses_root_and_function_tags_do_not_count(tmp_path: Path) -> None:
    gold = "( (S (NP-SBJ (PRP I)) (VP (VBP sleep) (NP (-NONE- *)))) )"
    record = evaluate(tmp_path, gold, "(ROOT (S (NP (PRP I)) (VP (VBP sleep))))")
    assert record["labelled_f1"] == 1
    assert record["exact_match"] == 1


@pytest.mark.parametrize("nothing", ["", "(())", "( )", "  "])
def test_evaluate_parses_without_a_parse_counts_against_recall(
    tmp_path: Path, nothing: str
) -> None:
    record = evaluate(tmp_path, f"{GOLD}\n{GOLD}\n", f"{nothing}\n{GOLD}\n")
    assert record["labelled_precision"] == 1
    assert record["labelled_recall"] == 0.5
    assert record["labelled_f1"] == pytest.approx(2 / 3)
    assert record["exact_match"] == 0.5
    assert record["tagging_accuracy"] == 0.5
    assert record["sentences"] == 2
    assert record["unparsed"] == 1


def test_evaluate_parses_pairs_pretty_printed_trees(tmp_path: Path) -> None:
    pretty = GOLD.replace(" (VP", "\n   (VP")
    record = evaluate(tmp_path, f"{pretty}\n\n{pretty}\n", f"{GOLD}\n{GOLD}\n")
    assert record["labelled_f1"] == 1
    assert record["sentences"] == 2


def test_evaluate_parses_different_words_have_a_place(tmp_path: Path) -> None:
    (tmp_path / "gold").write_text(f"{GOLD}\n{GOLD}\n")
    (tmp_path / "system").write_text(f"{GOLD}\n{GOLD.replace('X c', 'X q')}\n")
    done = treelm("evaluate", "parses", "gold", "system", cwd=tmp_path)
    assert_refused(done, 3, "system: line 2", "word 3", "c d e", "q d e")
    assert done.stdout == b""


def test_evaluate_parses_different_lengths_are_named(tmp_path: Path) -> None:
    (tmp_path / "gold").write_text(f"{GOLD}\n{GOLD}\n")
    (tmp_path / "system").write_text(f"{GOLD}\n")
    done = treelm("evaluate", "parses", "gold", "system", cwd=tmp_path)
    assert_refused(done, 3, "gold has 2 trees", "system 1", "empty line")
    assert done.stdout == b""


def test_evaluate_parses_lines_for_people(tmp_path: Path) -> None:
    (tmp_path / "gold").write_text(GOLD)
    (tmp_path / "system").write_text(RIGHT_BRANCHING)
    shown = assert_fine(treelm("evaluate", "parses", "gold", "system", cwd=tmp_path)).decode()
    rows = dict(line.rsplit(maxsplit=1) for line in shown.splitlines())
    assert rows["unlabelled f1"] == "0.7500"
    assert rows["sentences"] == "1"
    assert rows["signature"].startswith("treelm|")


@pytest.mark.parametrize("standard", ["gold", "system"])
def test_evaluate_parses_dash_is_standard_input(tmp_path: Path, standard: str) -> None:
    file = tmp_path / "file"
    file.write_text(GOLD)
    names = ("-", file) if standard == "gold" else (file, "-")
    done = treelm("evaluate", "parses", *names, "--json", stdin=GOLD.encode())
    assert json.loads(assert_fine(done))["labelled_f1"] == 1


def test_evaluate_parses_threads_do_not_change_the_scores(sample_file: Path) -> None:
    arguments = ("evaluate", "parses", sample_file, sample_file, "--json", "--threads")
    one = assert_fine(treelm(*arguments, "1"))
    assert one == assert_fine(treelm(*arguments, "3"))
    assert json.loads(one)["labelled_f1"] == 1
    assert json.loads(one)["sentences"] == 325


def test_evaluate_parses_malformed_parse_is_reported_with_its_file(tmp_path: Path) -> None:
    (tmp_path / "gold").write_text(f"{GOLD}\n" * 2)
    (tmp_path / "system").write_text(f"{GOLD}\n(S (NP a b))\n")
    done = treelm("evaluate", "parses", "gold", "system", "--json", cwd=tmp_path)
    assert json.loads(assert_fine(done, None))["unparsed"] == 1
    assert b"system:2:10" in done.stderr
    assert b"E_MULTI_WORD" in done.stderr


def test_evaluate_parses_on_error_raise(tmp_path: Path) -> None:
    (tmp_path / "gold").write_text(GOLD)
    (tmp_path / "system").write_text("(S (NP a b))")
    done = treelm("evaluate", "parses", "gold", "system", "--on-error", "raise", cwd=tmp_path)
    assert_refused(done, 3, "system:1:10", "E_MULTI_WORD")


def test_evaluate_parses_gold_file_that_is_malformed(tmp_path: Path) -> None:
    (tmp_path / "gold").write_text("(S (NP a b))")
    (tmp_path / "system").write_text(GOLD)
    assert_refused(treelm("evaluate", "parses", "gold", "system", cwd=tmp_path), 3, "gold")


def test_evaluate_parses_pairs_wrapped_trees_by_their_order(tmp_path: Path) -> None:
    """Trees over several lines are not paired by line, even where the line counts agree."""
    gold, system = tmp_path / "gold", tmp_path / "system"
    gold.write_text("(S (NP (NN a))\n (VP (VB b)))\n(S (NP (NN c)) (VP (VB d)))\n")
    system.write_text("(S (NP (NN a)) (VP (VB b)))\n(S (NP (NN c))\n (VP (VB d)))\n")
    done = treelm("evaluate", "parses", gold, system, "--json")
    score = json.loads(done.stdout)
    assert (score["labelled_f1"], score["unparsed"], score["sentences"]) == (1.0, 0, 2)


TWO_GOLD = f"{GOLD}\n(S (NP (A f) (B g)))\n"
TWO_PARSES = "(S (NP (X a) (Q b)) (NP (X c) (NP (X d) (X e))))\n(S (A f) (B g))\n"
ALL_TABLES = ("--by-label", "--by-length", "--intervals")


def test_evaluate_parses_writes_no_more_than_asked(tmp_path: Path) -> None:
    plain = evaluate(tmp_path, TWO_GOLD, TWO_PARSES)
    assert not {"by_label", "by_length", "intervals", "comparison", "seed"} & set(plain)
    full = evaluate(tmp_path, TWO_GOLD, TWO_PARSES, *ALL_TABLES, "--against", "gold.mrg")
    assert plain.items() <= full.items()
    assert set(full) - set(plain) == {
        *("by_label", "by_length", "intervals", "comparison", "rounds", "seed")
    }


def test_evaluate_parses_tables_in_json(tmp_path: Path) -> None:
    # Gold: S NP VP NP and S NP; parses: S NP NP NP and S. The second NP over "c d e" is wrong.
    record = evaluate(tmp_path, TWO_GOLD, TWO_PARSES, *ALL_TABLES)
    rows = [
        (row["label"], row["gold"], row["guessed"], row["matched"]) for row in record["by_label"]
    ]
    assert rows == [("NP", 3, 3, 2), ("S", 2, 2, 2), ("VP", 1, 0, 0)]
    (row,) = record["by_length"]
    assert (row["words"], row["sentences"], row["exact_match"]) == ("1-10", 2, 0)
    assert row["f1"] == record["labelled_f1"] == pytest.approx(8 / 11)
    # Drawn are sentence 1 twice (3/4), both (8/11), or sentence 2 twice (2/3).
    assert record["intervals"]["labelled_f1"] == pytest.approx([2 / 3, 3 / 4])
    assert record["intervals"]["exact_match"] == [0, 0]
    assert (record["rounds"], record["seed"]) == (10000, 0)


def test_evaluate_parses_tables_for_people(tmp_path: Path) -> None:
    (tmp_path / "gold").write_text(TWO_GOLD)
    (tmp_path / "system").write_text(TWO_PARSES)
    done = treelm("evaluate", "parses", "gold", "system", *ALL_TABLES, cwd=tmp_path)
    scores, labels, lengths = assert_fine(done).decode().split("\n\n")
    assert "labelled f1           0.7273 [0.6667, 0.7500]\n" in scores
    assert "\nseed                  0\n" in scores
    assert labels.splitlines() == [
        "label  gold  guessed  matched  precision  recall      f1",
        "NP        3        3        2     0.6667  0.6667  0.6667",
        "S         2        2        2     1.0000  1.0000  1.0000",
        "VP        1        0        0     0.0000  0.0000  0.0000",
    ]
    assert lengths.splitlines() == [
        "words  sentences  precision  recall      f1  exact match",
        "1-10           2     0.8000  0.6667  0.7273       0.0000",
    ]


def test_evaluate_parses_seed_and_rounds(sample_file: Path, tmp_path: Path) -> None:
    lines = sample_file.read_text().splitlines(keepends=True)
    system = tmp_path / "system"
    system.write_text("".join("\n" if at % 3 == 0 else line for at, line in enumerate(lines)))
    arguments = ("evaluate", "parses", sample_file, system, "--intervals", "--json")
    first, again, other, fewer = (
        assert_fine(treelm(*arguments, *options))
        for options in (
            ("--rounds", "200", "--threads", "1"),
            ("--rounds", "200", "--threads", "2", "--seed", "0"),
            ("--rounds", "200", "--seed", "1"),
            ("--rounds", "100"),
        )
    )
    assert first == again
    assert json.loads(other)["seed"] == 1
    assert json.loads(fewer)["rounds"] == 100
    intervals = [json.loads(each)["intervals"] for each in (first, other, fewer)]
    assert intervals[0] != intervals[1]
    assert intervals[0] != intervals[2]


def test_evaluate_parses_against_another_parser(tmp_path: Path) -> None:
    (tmp_path / "system").write_text(f"{GOLD}\n" * 12)
    (tmp_path / "other").write_text(f"{GOLD}\n\n" * 6)
    # The gold trees come from standard input, which can be read once only.
    arguments = ("evaluate", "parses", "-", "system", "--against", "other")
    gold = f"{GOLD}\n".encode() * 12
    done = treelm(*arguments, "--json", stdin=gold, cwd=tmp_path)
    record = json.loads(assert_fine(done))
    found = record["comparison"]
    assert (record["labelled_f1"], record["unparsed"]) == (1, 0)
    assert (found["a"], found["b"], found["better"], found["n"]) == (
        1,
        pytest.approx(2 / 3),
        "A",
        12,
    )
    assert found["labelled_recall_b"] == 0.5
    shown = assert_fine(treelm(*arguments, stdin=gold, cwd=tmp_path)).decode()
    assert "\n\ncompared              labelled_f1\n" in shown


def test_evaluate_parses_rounds_must_be_positive(tmp_path: Path) -> None:
    (tmp_path / "gold").write_text(GOLD)
    for option in (("--intervals",), ("--against", "gold")):
        done = treelm("evaluate", "parses", "gold", "gold", *option, "--rounds", "0", cwd=tmp_path)
        assert_refused(done, 2, "rounds")


EVALB_TABLE = """\
  Sent.                        Matched  Bracket   Cross        Correct Tag
 ID  Len.  Stat. Recal  Prec.  Bracket gold test Bracket Words  Tags Accracy
============================================================================
   1    2    0   75.00 100.00     3      4    3      0      2     2   100.00
   2    4    0   50.00  50.00     1      2    2      1      3     2    66.67
   3    1    1    0.00   0.00     0      0    0      0      0     0     0.00
   4    1    2    0.00   0.00     0      0    0      0      0     0     0.00
============================================================================
                 66.67  80.00      4     6     5      1      5     4    80.00
=== Summary ===

-- All --
Number of sentence        =      4
Number of Error sentence  =      1
Number of Skip  sentence  =      1
Number of Valid sentence  =      2
Bracketing Recall         =  66.67
Bracketing Precision      =  80.00
Bracketing FMeasure       =  72.73
Complete match            =   0.00
Average crossing          =   0.50
No crossing               =  50.00
2 or less crossing        = 100.00
Tagging accuracy          =  80.00

-- len<=40 --
"""


def test_evaluate_parses_evalb_table(tmp_path: Path) -> None:
    (tmp_path / "gold").write_text(
        "(TOP (S (NP (NP (NN rain)) (SBAR (-NONE- 0))) (VP (VBD fell))))\n"
        "(TOP (S (A (X a) (X b)) (X c) (. .)))\n"
        "(TOP (S (X a)))\n(TOP (S (X a)))\n"
    )
    (tmp_path / "system").write_text(
        "(TOP (S (NP (NN rain)) (VP (VBD fell))))\n"
        "(TOP (S (X a) (A (Y b) (X c) (. .))))\n"
        "(TOP (S (X b)))\n\n"
    )
    arguments = ("evaluate", "parses", "gold", "system", "--evalb")
    done = treelm(*arguments, cwd=tmp_path)
    shown = assert_fine(done, None).decode()
    assert shown.startswith(EVALB_TABLE)
    # All sentences are short, so that both summaries are the same.
    head, short = shown.split("-- len<=40 --\n")
    assert head.split("-- All --\n")[1].strip() == short.strip()
    assert b"sentence 3 left out" in done.stderr
    record = json.loads(assert_fine(treelm(*arguments, "--json", cwd=tmp_path), None))
    assert record["all"] == record["at_most_40"]
    assert (record["all"]["errors"], record["all"]["average_crossing"]) == (1, 0.5)
    assert [row["status"] for row in record["per_sentence"]] == [
        *("valid", "valid", "error", "skipped")
    ]


def test_evaluate_parses_evalb_stands_alone(tmp_path: Path) -> None:
    (tmp_path / "gold").write_text(GOLD)
    for other in (("--by-label",), ("--intervals",), ("--against", "gold")):
        done = treelm("evaluate", "parses", "gold", "gold", "--evalb", *other, cwd=tmp_path)
        assert_refused(done, 2, "--evalb cannot be combined")


def test_evaluate_parses_tells_tags_of_unknown_words_apart(tmp_path: Path) -> None:
    # The model knows a, b and c, but not d and e. One tag of each kind is wrong; the second
    # sentence has no parse, so that all its tags are.
    (tmp_path / "train.mrg").write_text("(S (NP (X a) (X b)) (VP (X c)))\n" * 3)
    assert_fine(treelm("train", "pcfg", "--trees", "train.mrg", "-o", "m", cwd=tmp_path))
    wrong = "(S (NP (Q a) (X b)) (VP (X c) (NP (Q d) (X e))))"
    record = evaluate(tmp_path, f"{GOLD}\n{GOLD}\n", f"{wrong}\n\n", "--known-to", "m")
    assert record["known_tagging_accuracy"] == pytest.approx(2 / 6)
    assert record["unknown_tagging_accuracy"] == pytest.approx(1 / 4)
    assert record["unknown_words"] == 4
    assert record["tagging_accuracy"] == pytest.approx(3 / 10)
    known = "(S (X a) (X b))"
    record = evaluate(tmp_path, known, known, "--known-to", "m")
    assert record["unknown_tagging_accuracy"] is None
    done = treelm(
        *("evaluate", "parses", "gold.mrg", "system.mrg", "--evalb", "--known-to", "m"),
        cwd=tmp_path,
    )
    assert_refused(done, 2, "--evalb cannot be combined")
