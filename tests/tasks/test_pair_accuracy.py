"""Log-odds ratios and minimal pairs."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.models.ngram_models import small_ngram
from tests.models.toy_model import SENTENCES, ToyModel, ToySentences

from treelm.corpus.score_files import ScoreTable
from treelm.corpus.vocabulary import Vocabulary
from treelm.errors import CorpusFormatError, UnsupportedTask, UsageError, VocabularyError
from treelm.models.interface.unigrams import unigram_log_probs
from treelm.tasks.evaluate.measured_text import read_measured_text, text_of_lines
from treelm.tasks.evaluate.pair_accuracy import (
    evaluate_pairs,
    evaluate_scored_pairs,
    pair_accuracy,
)
from treelm.tasks.evaluate.pair_files import (
    MinimalPairs,
    read_json_pairs,
    read_pair_files,
    read_pair_table,
)
from treelm.tasks.evaluate.significance import sign_test
from treelm.tasks.evaluate.slr import score_sentences, score_text, slr_scores

INF = math.inf
SCORES = st.one_of(st.integers(-3, 3).map(float), st.just(-INF))


def pairs_of(good: Sequence[str], bad: Sequence[str]) -> MinimalPairs:
    return MinimalPairs(text_of_lines(good, "good"), text_of_lines(bad, "bad"), {})


# -- log-odds ratio -------------------------------------------------------------------------


def test_unigram_adds_one_and_leaves_ends_out() -> None:
    model = small_ngram(["a a b", "a c"], vocabulary=Vocabulary.from_counts({"a": 3, "b": 1}))
    # a 3, b 1, c became <unk>: five words, three symbols.
    assert model.vocabulary.symbols[0] == "<unk>"
    found = dict(zip(model.vocabulary.symbols, np.exp(unigram_log_probs(model)), strict=True))
    assert found == pytest.approx({"<unk>": 2 / 8, "a": 4 / 8, "b": 2 / 8})


def test_ratio_is_per_word_and_knows_unknown_words() -> None:
    model = small_ngram(SENTENCES, vocabulary=Vocabulary.from_counts({"the": 2, "boat": 3}))
    sentence = "the ship left the boat"
    alone = unigram_log_probs(model)
    ids = model.vocabulary.encode(sentence.split())
    expected = (model.score(sentence).log_prob - alone[ids].sum()) / 5
    assert slr_scores(model, [sentence, "boat"])[0] == pytest.approx(expected, rel=1e-14)


def test_ratio_needs_counts_of_the_same_words() -> None:
    model = ToyModel.of()
    with pytest.raises(UnsupportedTask) as caught:
        slr_scores(model, ["the boat"])
    assert caught.value.code == "E_NO_COUNTS"
    counted = small_ngram(SENTENCES, vocabulary=model.vocabulary)
    assert np.isfinite(slr_scores(model, ["the boat"], unigram=counted)).all()
    with pytest.raises(VocabularyError) as mismatch:
        slr_scores(model, ["the boat"], unigram=small_ngram(["other words"]))
    assert mismatch.value.code == "E_VOCABULARY_MISMATCH"


def test_impossible_sentences_have_a_ratio() -> None:
    model = ToyModel.of(["a b"], added=0.0)
    counted = small_ngram(["a b"], vocabulary=model.vocabulary)
    found = slr_scores(model, ["b a", "a b"], unigram=counted)
    assert found[0] == -INF
    assert np.isfinite(found[1])


def test_word_order_alone_ties_under_a_unigram_model() -> None:
    model = small_ngram(SENTENCES * 5, order=1)
    words = ["the", "old", "boat", "came", "left", "the", "harbour", "a", "boat"]
    rows = score_sentences(model, [words, words[::-1], sorted(words)], with_unigram=True)
    assert len(set(rows.scores.tolist())) == 1
    assert rows.unigram is not None
    assert len(set(rows.unigram.tolist())) == 1


def test_scores_are_those_of_the_model_whatever_its_kind() -> None:
    model = ToyModel.of()
    text = [*SENTENCES, "the ship left"]
    expected = [model.score(sentence).log_prob for sentence in text]
    for each in (model, ToySentences(model)):
        table = score_sentences(each, text)
        assert table.scores == pytest.approx(expected, rel=1e-14)
        assert table.lengths is not None
        assert table.lengths.tolist() == [len(sentence.split()) for sentence in text]
    with pytest.raises(CorpusFormatError):
        score_sentences(model, ["a", ""])
    with pytest.raises(CorpusFormatError):
        score_sentences(model, [])


def test_texts_keep_lines_and_documents(tmp_path: Path) -> None:
    path = tmp_path / "text.txt"
    path.write_text("the boat\n\n\nleft\na boat\n")
    text = read_measured_text(path)
    assert text.lines == (1, 4, 5)
    assert text.documents.tolist() == [0, 1, 1]
    path.write_text("the boat\n\na </s> b\n")
    with pytest.raises(CorpusFormatError, match=r"text\.txt:3: ") as caught:
        score_text(ToyModel.of(), read_measured_text(path))
    assert caught.value.line == 3


# -- pairs ----------------------------------------------------------------------------------


@given(st.lists(st.tuples(SCORES, SCORES), min_size=1, max_size=30))
def test_accuracy_counts_pairs(scores: list[tuple[float, float]]) -> None:
    good, bad = np.array(scores).T
    found = pair_accuracy(good, bad, seed=1, rounds=100)
    wins = sum(a > b for a, b in scores)
    ties = sum(a == b for a, b in scores)
    assert (found.accuracy, found.ties, found.n) == (wins / len(scores), ties, len(scores))
    assert found.interval[0] <= found.accuracy <= found.interval[1]
    half = pair_accuracy(good, bad, seed=1, half_ties=True, rounds=100)
    assert half.accuracy == pytest.approx((wins + ties / 2) / len(scores))
    turned = pair_accuracy(bad, good, seed=1, rounds=100)
    assert turned.accuracy == pytest.approx(1 - (wins + ties) / len(scores))
    assert pair_accuracy(bad, good, seed=1, half_ties=True, rounds=100).p_value == half.p_value
    losses = len(scores) - wins - ties
    assert found.p_value == sign_test(wins, losses + ties, alternative="two-sided")
    assert turned.p_value == sign_test(losses, wins + ties, alternative="two-sided")


def test_interval_and_p_value_count_ties_alike() -> None:
    """60 of 110 pairs are decided for the good sentence, 30 for the bad one, 20 are ties."""
    good, bad = np.repeat([1.0, 0.0, 0.0], [60, 30, 20]), np.repeat([0.0, 1.0, 0.0], [60, 30, 20])
    wrong = pair_accuracy(good, bad, seed=1)
    assert (wrong.accuracy, wrong.ties, wrong.ties_count) == (60 / 110, 20, "wrong")
    # An interval that contains one half goes with a p-value above .05, and the other way round.
    assert wrong.interval.low < 0.5 < wrong.interval.high
    assert wrong.p_value == pytest.approx(0.390927, abs=1e-6)  # 2 P(X <= 50), X of 110 tosses
    half = pair_accuracy(good, bad, seed=1, half_ties=True)
    assert (half.accuracy, half.ties_count) == (70 / 110, "half")
    assert half.interval.low > 0.5
    assert half.p_value == pytest.approx(0.005447, abs=1e-6)  # 2 P(X <= 40)
    assert half.to_record()["ties_count"] == "half"


def test_impossible_sentences_lose_and_tie() -> None:
    found = pair_accuracy(np.array([-9.0, -INF, -INF]), np.array([-INF, -9.0, -INF]), seed=1)
    assert (found.accuracy, found.ties, found.infinite) == (1 / 3, 1, 3)
    assert found.p_value == 1.0


def test_a_model_prefers_what_it_knows() -> None:
    model = ToyModel.of()
    good, bad = ("the boat left", "a boat"), ("boat the left", "a boat")
    found = evaluate_pairs(model, pairs_of(good, bad), seed=1)
    assert (found.overall.accuracy, found.overall.ties, found.identical) == (0.5, 1, 1)
    assert found.right.tolist() == [True, False]
    assert found.groupings == {}
    dropped = evaluate_pairs(model, pairs_of(good, bad), seed=1, drop_identical=True)
    assert (dropped.overall.accuracy, dropped.overall.n, dropped.identical) == (1.0, 1, 1)
    with pytest.raises(CorpusFormatError):
        evaluate_pairs(model, pairs_of(good[1:], bad[1:]), seed=1, drop_identical=True)


def test_files_pair_up_line_by_line(tmp_path: Path) -> None:
    good, bad = tmp_path / "good.txt", tmp_path / "bad.txt"
    good.write_text("a b\n\nc\n\n")
    bad.write_text("b a\n \nc c\n")
    pairs = read_pair_files(good, bad)
    assert pairs.good.sentences == (("a", "b"), ("c",))
    assert pairs.bad.lines == (1, 3)
    for content, message in (("b a\nc c\nx\n", "line 2 is blank"), ("b a\n", "has 3 lines")):
        bad.write_text(content)
        with pytest.raises(CorpusFormatError, match=message) as caught:
            read_pair_files(good, bad)
        assert caught.value.code == "E_LENGTH_MISMATCH"
    good.write_text("")
    bad.write_text("")
    with pytest.raises(CorpusFormatError) as empty:
        read_pair_files(good, bad)
    assert empty.value.code == "E_NO_DATA"
    with pytest.raises(UsageError):
        read_pair_files("-", "-")


def blimp(path: Path, *records: object) -> Path:
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


def record(good: str, bad: str, **more: object) -> dict[str, object]:
    return {"sentence_good": good, "sentence_bad": bad, **more}


def test_json_pairs_are_tokenized_and_grouped(tmp_path: Path) -> None:
    path = blimp(
        tmp_path / "x.jsonl",
        record("The boat left.", "The boat leave.", UID="one", linguistics_term="agreement"),
        record("Who left?", "Left who?", UID="two", linguistics_term="islands"),
        record("It doesn't.", "It don't.", UID="three", linguistics_term="agreement"),
    )
    pairs = read_json_pairs(path)
    assert pairs.good.sentences[2] == ("It", "does", "n't", ".")
    assert read_json_pairs(path, tokenizing=False).good.sentences[0] == ("The", "boat", "left.")
    found = evaluate_pairs(ToyModel.of(), pairs, seed=1, rounds=100)
    assert list(found.groupings) == ["per_phenomenon", "per_paradigm"]
    assert {name: each.n for name, each in found.groupings["per_phenomenon"].items()} == {
        "agreement": 2,
        "islands": 1,
    }
    assert list(found.groupings["per_paradigm"]) == ["one", "two", "three"]
    json.dumps(found.to_record())


def test_json_pairs_without_terms_are_grouped_by_what_there_is(tmp_path: Path) -> None:
    path = blimp(tmp_path / "x", record("a b", "b a", UID="one"), record("a", "b", UID="one"))
    assert list(evaluate_pairs(ToyModel.of(), read_json_pairs(path), seed=1).groupings) == [
        "per_phenomenon"
    ]
    mixed = blimp(tmp_path / "y", record("a b", "b a", UID="one"), record("a", "b"))
    assert read_json_pairs(mixed).groups == {}


@pytest.mark.parametrize(
    "line",
    [
        "{",
        "[]",
        '"x"',
        "{}",
        '{"sentence_good": "a"}',
        '{"sentence_good": 1, "sentence_bad": "b"}',
        '{"sentence_good": "a", "sentence_bad": " "}',
        "[" * 100_000,
        "nan",
    ],
)
def test_what_is_no_pair_is_refused_with_its_line(tmp_path: Path, line: str) -> None:
    path = tmp_path / "x.jsonl"
    path.write_text(json.dumps(record("a", "b")) + "\n\n" + line + "\n")
    with pytest.raises(CorpusFormatError, match=r"x\.jsonl:3: ") as caught:
        read_json_pairs(path)
    assert caught.value.code == "E_PAIRS"


def test_training_text_is_refused() -> None:
    model = small_ngram(SENTENCES)
    text = text_of_lines(SENTENCES, "mine", model.corpora[0].sha256)
    with pytest.raises(UsageError) as caught:
        evaluate_pairs(model, MinimalPairs(text, text, {}), seed=1)
    assert caught.value.code == "E_TEST_IN_TRAINING"


def test_scored_pairs_are_matched_by_id() -> None:
    good = ScoreTable(("1", "2"), np.array([-1.0, -5.0]), np.array([2, 3]))
    bad = ScoreTable(("2", "1"), np.array([-4.0, -2.0]), np.array([5, 1]))
    assert evaluate_scored_pairs(good, bad, seed=1).right.tolist() == [True, False]
    with pytest.raises(CorpusFormatError) as caught:
        evaluate_scored_pairs(good, bad.take([0]), seed=1)
    assert caught.value.code == "E_SCORE_IDS"


def test_pairs_of_one_table(tmp_path: Path) -> None:
    path = tmp_path / "pairs.tsv"
    path.write_text(
        "id\tgood\tbad\tcondition\n"
        "a\tThe ferry left .\tferry left the .\torder\n"
        "b\tThe frumious left .\tfrumious left the .\tnonsense\n"
    )
    pairs = read_pair_table(path)
    assert pairs.names() == ("a", "b")
    assert pairs.good.sentences[0] == ("The", "ferry", "left", ".")
    model = small_ngram(order=2)
    found = evaluate_pairs(model, pairs, seed=1)
    assert found.overall.unknown_share == 0.5
    assert found.groupings["per_phenomenon"]["nonsense"].unknown_share == 1
    assert found.items is not None
    header, first, second = found.items.to_table().splitlines()
    assert header.split("\t") == ["id", "good", "bad", "right", "unknown", "UID"]
    name, good, bad, right, unknown, group = first.split("\t")
    assert (name, right, unknown, group) == ("a", str(int(found.right[0])), "0", "order")
    assert float(good) == pytest.approx(model.score("The ferry left .").log_prob)
    assert float(bad) == pytest.approx(model.score("ferry left the .").log_prob)
    assert second.split("\t")[4] == "1"


def test_pairs_of_one_table_may_be_csv(tmp_path: Path) -> None:
    path = tmp_path / "pairs.csv"
    path.write_text('good,bad\n"Yes, it left.",Left yes it.\n')
    pairs = read_pair_table(path, tokenizing=True)
    assert pairs.good.sentences == (("Yes", ",", "it", "left", "."),)
    assert pairs.names() == ("2",)
    path.write_text("good;bad\nYes, it left;Left yes it\n")
    assert read_pair_table(path).bad.sentences == (("Left", "yes", "it"),)


def test_pairs_of_one_table_may_be_parquet(tmp_path: Path) -> None:
    polars = pytest.importorskip("polars")
    path = tmp_path / "pairs.parquet"
    columns = {"item": [5, 6], "good": ["a b", "c"], "bad": ["b a", "d"]}
    polars.DataFrame(columns).write_parquet(path)
    pairs = read_pair_table(path)
    assert pairs.names() == ("5", "6")
    assert pairs.good.sentences == (("a", "b"), ("c",))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("good\tworse\na\tb\n", r"pairs.tsv:1: .* it has good, worse"),
        ("good\tbad\na b\n", r"pairs.tsv:2: it has 1 cells for 2 columns"),
        ("good\tbad\na\tb\n \tb\n", r'pairs.tsv:3: the cell "good" has no sentence'),
    ],
)
def test_tables_of_pairs_that_are_none_are_refused(
    tmp_path: Path, content: str, message: str
) -> None:
    path = tmp_path / "pairs.tsv"
    path.write_text(content)
    with pytest.raises(CorpusFormatError, match=message) as caught:
        read_pair_table(path)
    assert caught.value.code == "E_PAIRS"
