"""`treelm rerank`: features of models in n-best lists, totals and order."""

from __future__ import annotations

import gzip
import math
from pathlib import Path

import numpy as np
import pytest
from tests.command_line import assert_fine, assert_refused, treelm_inside
from tests.models.ngram_models import sample_sentences, small_ngram

import treelm
from treelm.corpus.nbest import read_moses_columns
from treelm.corpus.sample_treebank import sample_path
from treelm.errors import CorpusFormatError, TreelmWarning, UsageError
from treelm.models.interface.incremental import as_incremental
from treelm.models.interface.model import LanguageModel
from treelm.tasks.evaluate.slr import slr_scores
from treelm.tasks.rerank import Scorer, prefix_log_probs, rerank
from treelm.translation.weights import Weights

Capture = pytest.CaptureFixture[bytes]

LISTS = """\
0 ||| the boat left  ||| LM0= -3 WordPenalty0= -3 TM0= -1 -2 ||| -1.5
0 ||| the boat the left ||| LM0= -2 WordPenalty0= -4 TM0= -1 -2 ||| -2.5 ||| 0-0
0 ||| the boat left ||| LM0= -3 WordPenalty0= -3 TM0= -3 -2 ||| -3.5
2 ||| a boat ||| LM0= -1 WordPenalty0= -2 TM0= 0 0 ||| -0.5
"""


@pytest.fixture(scope="module")
def model() -> LanguageModel:
    return small_ngram(sample_sentences(), order=3)


@pytest.fixture(scope="module")
def hhmm() -> LanguageModel:
    return treelm.train("hhmm", sample_path(), beam_width=20)


@pytest.fixture
def lists(tmp_path: Path) -> Path:
    path = tmp_path / "lists.nbest"
    path.write_text(LISTS)
    return path


def test_a_feature_is_added_and_the_rest_stays(lists: Path, model: LanguageModel) -> None:
    first, second = rerank(read_moses_columns(lists), [Scorer(name="SynLM0", model=model)])
    old = LISTS.splitlines()
    for line, before in zip(first.columns.to_text().splitlines(), old[:3], strict=True):
        words = before.split(" ||| ")[1].strip()
        parts, given = line.split(" ||| "), before.split(" ||| ")
        name, value = parts[2].rsplit(" ", 2)[1:]
        assert name == "SynLM0="
        assert float(value) == pytest.approx(model.score(words).log_prob, abs=1e-9)
        assert parts[2].startswith(f"{given[2]} SynLM0=")
        assert parts[3:] == given[3:]
    assert second.columns.id == "2"
    assert first.scores.shape == (3, 1)


def test_totals_sort_the_list_and_ties_stay(lists: Path, model: LanguageModel) -> None:
    weights = Weights({"LM0": [0.0], "WordPenalty0": [-1.0], "TM0": [0.0, 0.0], "X": [0.0]})
    scorers = [Scorer(name="X", model=model)]
    (first, _) = rerank(read_moses_columns(lists), scorers, weights=weights)
    assert [*map(float, first.columns.scores)] == [4.0, 3.0, 3.0]
    assert [*first.columns.lines] == [2, 1, 3]
    assert first.columns.more[0] == ("0-0",)
    (kept, _) = rerank(read_moses_columns(lists), scorers, weights=weights, sort=False)
    assert [*kept.columns.lines] == [1, 2, 3]


def test_a_feature_is_replaced(lists: Path, model: LanguageModel) -> None:
    scorer = Scorer(name="TM0", model=model)
    (first, _) = rerank(read_moses_columns(lists), [scorer], replaced="TM0")
    table = first.columns.feature_table()
    assert table.layout == (("LM0", 1), ("WordPenalty0", 1), ("TM0", 1))
    assert table.values[0, 2] == pytest.approx(model.score("the boat left").log_prob)
    scorer = Scorer(name="New", model=model)
    (first, _) = rerank(read_moses_columns(lists), [scorer], replaced="LM0")
    assert first.columns.feature_table().layout[0] == ("New", 1)
    with pytest.raises(CorpusFormatError, match=r'lists.nbest:1: there is no feature "LM7"'):
        list(rerank(read_moses_columns(lists), [scorer], replaced="LM7"))
    with pytest.raises(CorpusFormatError, match=r':1: there is a feature "LM0" already'):
        list(rerank(read_moses_columns(lists), [Scorer(name="LM0", model=model)]))


@pytest.mark.parametrize("threads", [1, 3])
def test_shared_prefixes_change_nothing(hhmm: LanguageModel, threads: int) -> None:
    sentences = sample_sentences()[:6]
    texts = sorted({" ".join(line.split()[:length]) for line in sentences for length in range(7)})
    assert "" in texts
    incremental = as_incremental(hhmm)
    incremental.reset_stats()
    found = prefix_log_probs(incremental, texts)
    assert found.tolist() == pytest.approx(
        [incremental.score_sentence(text) for text in texts], abs=1e-9
    )
    scored = Scorer(name="H", model=hhmm, threads=threads).scores([texts, texts[:3], []])
    assert np.array_equal(scored[0], found)
    assert np.array_equal(scored[1], found[:3])
    assert len(scored[2]) == 0


def test_other_measures(model: LanguageModel) -> None:
    texts = ["the boat left .", "a boat"]
    (bits,) = Scorer(name="S", model=model, measure="surprisal").scores([texts])
    assert bits[1] == pytest.approx(-model.score("a boat").log_prob / math.log(2))
    (ratios,) = Scorer(name="S", model=model, measure="slr").scores([texts])
    assert ratios.tolist() == slr_scores(model, texts).tolist()


def test_what_has_no_score_gets_a_low_one() -> None:
    pcfg = treelm.train("pcfg", sample_path())
    with pytest.warns(TreelmWarning, match="some hypotheses have no score"):
        (found,) = Scorer(name="P", model=pcfg).scores([["", "the boat left ."]])
    assert found.tolist() == [-100.0, pytest.approx(pcfg.score("the boat left .").log_prob)]


def test_an_empty_hypothesis_ends_at_once(model: LanguageModel) -> None:
    (found,) = Scorer(name="N", model=model).scores([["", "a boat"]])
    incremental = as_incremental(model)
    assert found[0] == incremental.finish(incremental.initial())


def test_what_cannot_be_scored_is_refused_with_its_line(
    lists: Path, model: LanguageModel, hhmm: LanguageModel
) -> None:
    lists.write_text(LISTS.replace("a boat", "a </s> boat"))
    for scorer in (Scorer(name="N", model=model), Scorer(name="H", model=hhmm)):
        with pytest.raises(CorpusFormatError, match=r"lists.nbest:4: .*</s>"):
            list(rerank(read_moses_columns(lists), [scorer]))


def test_names_must_differ(model: LanguageModel, lists: Path) -> None:
    twice = [Scorer(name="A", model=model)] * 2
    with pytest.raises(UsageError, match="same feature name"):
        list(rerank(read_moses_columns(lists), twice))


def test_the_command_reads_and_writes_lists(
    lists: Path, model: LanguageModel, tmp_path: Path, capfdbinary: Capture
) -> None:
    model.save(tmp_path / "model")
    (tmp_path / "weights.ini").write_text(
        "[weight]\nLM0= 0\nWordPenalty0= -1\nTM0= 0 0\nSynLM0= 0\nUnknownWordPenalty0= 1\n"
    )
    done = treelm_inside(
        capfdbinary,
        *("rerank", "-m", tmp_path / "model", "--weights", tmp_path / "weights.ini", lists),
        *("-o", tmp_path / "out.gz", "--best", tmp_path / "best"),
    )
    assert_fine(done, None)
    lines = gzip.decompress((tmp_path / "out.gz").read_bytes()).decode().splitlines()
    assert [line.split(" ||| ")[1] for line in lines] == [
        "the boat the left",
        "the boat left",
        "the boat left",
        "a boat",
    ]
    assert (tmp_path / "best").read_text() == "the boat the left\na boat\n"


def test_the_command_does_not_advise_to_tokenize_lists(
    model: LanguageModel, tmp_path: Path, capfdbinary: Capture
) -> None:
    model.save(tmp_path / "model")
    (tmp_path / "lists").write_text("0 ||| quite other words ||| LM0= -1 ||| -1\n")
    call = ("rerank", "-m", tmp_path / "model", tmp_path / "lists", "-o", tmp_path / "out")
    done = treelm_inside(capfdbinary, *call)
    assert b"66.7 % of the words" in done.stderr
    assert b"--tokenize" not in done.stderr


def test_the_command_writes_columns(
    lists: Path, model: LanguageModel, tmp_path: Path, capfdbinary: Capture
) -> None:
    model.save(tmp_path / "model")
    call = ("rerank", "-m", tmp_path / "model", "-m", tmp_path / "model", lists, "--columns")
    rows = assert_fine(treelm_inside(capfdbinary, *call), None).decode().splitlines()
    assert len(rows) == 4
    one, two = rows[3].split("\t")
    assert one == two
    assert float(one) == pytest.approx(model.score("a boat").log_prob)


def test_the_command_refuses_what_does_not_fit(
    lists: Path, model: LanguageModel, tmp_path: Path, capfdbinary: Capture
) -> None:
    model.save(tmp_path / "model")
    done = treelm_inside(capfdbinary, "rerank", lists)
    assert_refused(done, 2, "name a model with -m")
    done = treelm_inside(
        capfdbinary, "rerank", "-m", tmp_path / "model", "--name", "A", "--name", "B", lists
    )
    assert_refused(done, 2, "1 models but 2 names")
    (tmp_path / "weights.json").write_text('{"LM0": [1], "WordPenalty0": [1], "TM0": [1]}')
    done = treelm_inside(
        capfdbinary, "rerank", "--weights", tmp_path / "weights.json", lists, "-o", tmp_path / "out"
    )
    assert_refused(done, 3, "weights.json", '"TM0"', "1 weight, but 2 values")
    assert not (tmp_path / "out").exists()
