"""The best tree of each list, against scoring every tree by itself."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.command_line import assert_fine, assert_refused, treelm

from treelm.corpus.brackets import read_trees
from treelm.corpus.corpus import TreeCorpus
from treelm.errors import CorpusFormatError
from treelm.grammar.k_best import KBest, text_of
from treelm.grammar.parser_options import ParserOptions
from treelm.models.pcfg.model import PcfgModel
from treelm.models.registry import train
from treelm.tasks.evaluate.oracle import evaluate_oracle, read_k_best
from treelm.tasks.evaluate.parse_accuracy import score_parse
from treelm.trees.tree import Tree

LENGTHS = (1, 3, 20)


@pytest.fixture(scope="module")
def gold(sample_file: Path) -> list[Tree]:
    return list(read_trees(sample_file))[:30]


@pytest.fixture(scope="module")
def lists(sample_file: Path, gold: list[Tree]) -> list[KBest | None]:
    model = train("pcfg", TreeCorpus((sample_file,)), vertical_order=1)
    assert isinstance(model, PcfgModel)
    options = ParserOptions(pruning="accurate")
    return model.k_best_many([tree.words for tree in gold], 20, options=options)


def f1(gold: Tree, guess: Tree) -> float:
    score = score_parse(gold, guess)
    return 2 * score.matched / (score.gold + score.guessed)


def test_the_best_tree_of_each_list_is_scored(gold: list[Tree], lists: list[KBest | None]) -> None:
    scores = evaluate_oracle(gold, lists, LENGTHS)
    assert (scores.sentences, scores.unparsed) == (30, 0)
    for point, k in zip(scores.points, LENGTHS, strict=True):
        best = [
            max(found[:k], key=lambda parse, right=right: f1(right, parse.tree)).tree
            for right, found in zip(gold, lists, strict=True)
            if found
        ]
        counts = [score_parse(right, tree) for right, tree in zip(gold, best, strict=True)]
        matched = sum(score.matched for score in counts)
        assert point.labelled_precision == matched / sum(score.guessed for score in counts)
        assert point.labelled_recall == matched / sum(score.gold for score in counts)
        assert point.exact_match == sum(score.exact for score in counts) / 30
        assert point.trees == sum(len(found.first(k)) for found in lists if found) / 30
    first, _, last = (point.labelled_f1 for point in scores.points)
    assert 0.5 < first < last < 1


def test_sentences_without_a_list_count_against_recall(
    gold: list[Tree], lists: list[KBest | None]
) -> None:
    whole = evaluate_oracle(gold, lists, (20,))
    scores = evaluate_oracle(gold, [None, *lists[1:]], (20,))
    assert scores.unparsed == 1
    assert scores.points[0].labelled_recall < whole.points[0].labelled_recall


def test_lists_must_be_of_the_same_sentences(gold: list[Tree], lists: list[KBest | None]) -> None:
    for wrong, code in ((lists[:-1], "E_LENGTH_MISMATCH"), (lists[::-1], "E_YIELD_MISMATCH")):
        with pytest.raises(CorpusFormatError) as caught:
            evaluate_oracle(gold, wrong)
        assert caught.value.code == code


@pytest.mark.slow
def test_the_command_reads_lists_as_text(
    gold: list[Tree], lists: list[KBest | None], tmp_path: Path
) -> None:
    right, listed = tmp_path / "gold.mrg", tmp_path / "lists"
    right.write_text("".join(f"{tree}\n" for tree in gold))
    listed.write_bytes(text_of(lists))
    expected = evaluate_oracle(gold, lists, LENGTHS)
    assert evaluate_oracle(gold, read_k_best(listed), LENGTHS) == expected
    done = treelm("evaluate", "oracle", right, listed, "-k", "1", "3", "20", "--json")
    record = json.loads(assert_fine(done))
    assert record["points"] == [point.to_record() for point in expected.points]
    table = assert_fine(treelm("evaluate", "oracle", right, listed)).decode().splitlines()
    assert [line.split()[0] for line in table[1:5]] == ["1", "10", "100", "1000"]
    assert_refused(
        treelm("evaluate", "oracle", right, listed, "-k", "0"), 2, "-k is 0; it must be 1 or more"
    )
