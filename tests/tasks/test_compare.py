"""Comparisons of models and of files."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest
from tests.models.ngram_models import sample_sentences, small_ngram
from tests.models.toy_model import TOY, ToyModel

from treelm.corpus.score_files import write_score_table
from treelm.errors import (
    CorpusFormatError,
    TreelmWarning,
    UnsupportedTask,
    UsageError,
    VocabularyError,
)
from treelm.models.registry import SYSTEMS, load
from treelm.tasks.compare import CompareOptions, compare
from treelm.tasks.evaluate.comparison import BLOCK, compare_answers, compare_log_probs
from treelm.tasks.evaluate.measured_text import read_measured_text
from treelm.tasks.evaluate.slr import score_text

OPTIONS = CompareOptions(seed=1, rounds=500)


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A trigram and a unigram model of the same words."""
    root = tmp_path_factory.mktemp("models")
    trained = sample_sentences()[:200]
    trigram = small_ngram(trained, order=3)
    trigram.save(root / "trigram")
    small_ngram(trained, order=1, vocabulary=trigram.vocabulary).save(root / "unigram")
    return root / "trigram", root / "unigram"


@pytest.fixture
def text(tmp_path: Path) -> Path:
    path = tmp_path / "text.txt"
    path.write_text("".join(f"{line}\n" for line in sample_sentences()[200:]))
    return path


def write(path: Path, *lines: object) -> Path:
    path.write_text("".join(f"{line}\n" for line in lines))
    return path


# -- models ---------------------------------------------------------------------------------


def test_models_are_compared_by_perplexity(folders: tuple[Path, Path], text: Path) -> None:
    found = compare(*folders, [text], OPTIONS)
    assert (found.compared, found.test) == ("log_perplexity", "paired bootstrap")
    assert found.items == f"blocks of {BLOCK} sentences"
    assert found.n == math.ceil(125 / BLOCK)
    for name, folder in zip("ab", folders, strict=True):
        perplexity = load(folder).perplexity(read_measured_text(text).sentences)
        assert found.details[f"perplexity_{name}"] == pytest.approx(perplexity.perplexity)
    assert found.p_value < 0.05
    assert found.better == "neither"
    record = found.to_record()
    assert record["note"] == "only 3 items: too few to call a difference significant"
    assert record["significant"] is False
    json.dumps(record, allow_nan=False)


def test_few_items_that_agree_are_not_significant() -> None:
    for number, better in ((2, "neither"), (5, "neither"), (6, "A"), (10, "A")):
        scores = -np.arange(1.0, number + 1)
        found = compare_log_probs(scores, scores - 1, seed=1)
        assert found.better == better
        # The exact test that swaps the systems agrees.
        swapped = found.details["p_value_randomization"]
        assert swapped == pytest.approx(2 * 0.5**number, abs=0.02)
        back = compare_log_probs(scores - 1, scores, seed=1)
        assert back.better == better.replace("A", "B")
    assert found.to_record()["note"] is None


def test_documents_are_the_items_where_a_text_has_them(
    folders: tuple[Path, Path], tmp_path: Path
) -> None:
    lines = sample_sentences()[200:260]
    path = tmp_path / "documents.txt"
    path.write_text(
        "\n".join(line + ("\n" if place % 5 == 4 else "") for place, line in enumerate(lines))
    )
    found = compare(*folders, [path], OPTIONS)
    assert (found.items, found.n, found.details["sentences"]) == ("documents", 12, 60)
    path.write_text("\n".join(lines[:20]))
    assert compare(*folders, [path], OPTIONS).items == "sentences"


def test_models_of_other_words_are_refused(
    folders: tuple[Path, Path], text: Path, tmp_path: Path
) -> None:
    other = tmp_path / "other"
    small_ngram(["the boat sank"], order=1).save(other)
    with pytest.raises(VocabularyError) as caught:
        compare(folders[0], other, [text], OPTIONS)
    assert caught.value.code == "E_VOCABULARY_MISMATCH"
    # What they choose can be compared all the same.
    good, bad = write(tmp_path / "good", "the boat left"), write(tmp_path / "bad", "boat the left")
    assert compare(folders[0], other, [good, bad], OPTIONS).test == "exact McNemar"


def test_models_without_probabilities_are_refused(
    text: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(SYSTEMS, "toy", TOY)
    ToyModel.of().save(tmp_path / "toy")
    info = ToyModel.of().info
    monkeypatch.setattr(
        ToyModel, "info", type(info)(exactness="margin", normalized=False, vocabulary="x")
    )
    with pytest.raises(UnsupportedTask) as caught:
        compare(tmp_path / "toy", tmp_path / "toy", [text], OPTIONS)
    assert caught.value.code == "E_NOT_NORMALIZED"


def test_pairs_are_compared_by_mcnemar(folders: tuple[Path, Path], tmp_path: Path) -> None:
    good = sample_sentences()[200:260]
    bad = [" ".join(reversed(line.split())) for line in good]
    files = [write(tmp_path / "good", *good), write(tmp_path / "bad", *bad)]
    found = compare(*folders, files, OPTIONS)
    assert (found.test, found.items, found.n) == ("exact McNemar", "pairs", 60)
    assert found.b == 0.0  # word order means nothing to a unigram model
    assert found.details["ties_b"] == 60
    assert found.details["only_b_right"] == 0
    assert found.better == "A"
    lines = (
        json.dumps({"sentence_good": g, "sentence_bad": b}) for g, b in zip(good, bad, strict=True)
    )
    path = write(tmp_path / "pairs.jsonl", *lines)
    assert compare(*folders, [path], OPTIONS).items == "pairs"
    assert compare(*folders, files, CompareOptions(seed=1, measure="slr")).test == "exact McNemar"


# -- files ----------------------------------------------------------------------------------


def test_pairs_of_one_table_are_compared(folders: tuple[Path, Path], tmp_path: Path) -> None:
    table = tmp_path / "pairs.tsv"
    table.write_text("good\tbad\nThe boat left .\tboat the left .\nIt was old .\told was it .\n")
    good = write(tmp_path / "good", "The boat left .", "It was old .")
    bad = write(tmp_path / "bad", "boat the left .", "old was it .")
    found = compare(*folders, [table], OPTIONS)
    assert found.to_record() == compare(*folders, [good, bad], OPTIONS).to_record()


def test_raw_pairs_are_tokenized_by_models_that_do(
    folders: tuple[Path, Path], tmp_path: Path
) -> None:
    rows = "good\tbad\nThe boat left.\tboat the left.\nIt was old.\told was it.\n"
    raw = write(tmp_path / "raw.tsv", rows)
    with pytest.warns(TreelmWarning, match="looks untokenized.*`treelm tokenize` tokenizes"):
        compare(*folders, [raw], OPTIONS)
    tokens = write(tmp_path / "tokens.tsv", rows.replace(".", " ."))
    made = []
    for folder in folders:
        made.append(tmp_path / folder.name)
        load(folder).with_tokenizer("penn").save(made[-1])
    found = compare(made[0], made[1], [raw], OPTIONS)
    assert found.to_record() == compare(*folders, [tokens], OPTIONS).to_record()


def test_score_files_give_what_the_models_give(
    folders: tuple[Path, Path], text: Path, tmp_path: Path
) -> None:
    expected = compare(*folders, [text], OPTIONS)
    plain, tables = [], []
    for name, folder in zip("ab", folders, strict=True):
        table = score_text(load(folder), read_measured_text(text), with_unigram=True)
        tables.append(tmp_path / f"{name}.tsv.xz")
        write_score_table(tables[-1], table)
        plain.append(write(tmp_path / f"{name}.txt", *map(repr, table.scores.tolist())))
    for sources, files in ((tables, []), (tables, [text]), (plain, [text])):
        found = compare(*sources, files, OPTIONS)
        assert found.interval == pytest.approx(expected.interval, rel=1e-12)
        assert found.p_value == expected.p_value
        assert found.details == expected.details
    bare = compare(*plain, [], OPTIONS)
    assert bare.compared == "log_likelihood"
    assert bare.difference == pytest.approx(
        expected.details["log_prob_a"] - expected.details["log_prob_b"]
    )  # type: ignore[operator]


def test_labels_are_compared_by_mcnemar(tmp_path: Path) -> None:
    a = write(tmp_path / "a", *([1] * 9))
    b = write(tmp_path / "b", 0, *([1] * 0), *([0] * 7), 1)
    gold = write(tmp_path / "gold", *(["+1"] * 8), "-1")
    found = compare(a, b, [gold], OPTIONS)
    assert (found.test, found.a, found.b) == ("exact McNemar", 8 / 9, 0.0)
    assert found.p_value == 2 / 2**8
    outcomes = compare(a, b, [], OPTIONS)
    assert (outcomes.a, outcomes.b, outcomes.p_value) == (1.0, 1 / 9, 2 / 2**8)


def test_scores_of_classes(tmp_path: Path) -> None:
    gold = write(tmp_path / "gold", *(["good"] * 20), *(["bad"] * 20))
    rows = range(1, 41)
    header = "id\tlen\tscore"
    a = write(tmp_path / "a", header, *(f"{i}\t5\t{20.5 - i}" for i in rows))
    b = write(tmp_path / "b", header, *(f"{i}\t5\t{i - 20.5}" for i in rows))
    found = compare(a, b, [gold], OPTIONS)
    assert (found.test, found.a, found.b) == ("exact McNemar", 1.0, 0.0)
    moved = compare(a, b, [gold], CompareOptions(seed=1, thresholds=(-100.0, -100.0)))
    assert (moved.a, moved.b, moved.p_value) == (0.5, 0.5, 1.0)
    plain = [
        write(tmp_path / name, *(sign * i + 0.5 for i in rows))
        for name, sign in (("c", -1), ("d", 1))
    ]
    ranked = compare(*plain, [gold], OPTIONS)
    assert (ranked.compared, ranked.a) == ("average_precision", 1.0)
    with pytest.raises(UsageError, match="labels"):
        compare(a, b, [], OPTIONS)


def test_what_does_not_fit_together_is_refused(
    folders: tuple[Path, Path], text: Path, tmp_path: Path
) -> None:
    scores = write(tmp_path / "scores", -1.5, -2.5)
    labels = write(tmp_path / "labels", 1, 0)
    more = write(tmp_path / "more", 1, 0, 1)
    for sources, files in (
        ((folders[0], scores), [text]),
        (folders, []),
        (folders, [text, text, text]),
        ((scores, scores), [text, text]),
        ((labels, labels), [text]),
    ):
        with pytest.raises(UsageError):
            compare(*sources, files, OPTIONS)
    for sources, files in (
        ((labels, more), []),
        ((labels, labels), [more]),
        ((scores, scores), [more]),
        ((scores, scores), [text]),
    ):
        with pytest.raises(CorpusFormatError) as caught:
            compare(*sources, files, OPTIONS)
        assert caught.value.code == "E_LENGTH_MISMATCH"
    table = write(
        tmp_path / "t",
        "id\tlen\tlogp_model\tlogp_unigram\tn_trees\tfallback",
        "1\t9\t-1.0\t-2.0\t0\t0",
    )
    two = write(tmp_path / "two", "one word more")
    with pytest.raises(CorpusFormatError, match="has 3 words"):
        compare(table, table, [two], OPTIONS)


def test_impossible_texts(tmp_path: Path) -> None:
    a, b = np.full(100, -3.0), np.full(100, -4.0)
    a[3] = -math.inf
    found = compare_log_probs(a, b, lengths=np.full(100, 5), seed=1)
    assert (found.a, found.difference) == (math.inf, -math.inf)
    assert found.to_record()["interval"][0] is None  # type: ignore[index]
    json.dumps(found.details["perplexity_ratio_interval"], allow_nan=False)
    with pytest.raises(CorpusFormatError, match="not defined"):
        compare_log_probs(a, a, seed=1)
    with pytest.raises(CorpusFormatError):
        compare_log_probs(b, b, documents=np.zeros(3, dtype=np.int64), seed=1)


def test_answers_need_the_same_items() -> None:
    with pytest.raises(CorpusFormatError):
        compare_answers(np.array([True]), np.array([True, False]), seed=1)


def test_tables_of_items_are_matched_by_id(tmp_path: Path) -> None:
    a, b = tmp_path / "a.tsv", tmp_path / "b.tsv"
    a.write_text("id\tgood\tbad\tright\n" + "".join(f"{n}\t1\t0\t1\n" for n in range(8)))
    rows = [f"{n}\t0\t1\t{int(n < 1)}\n" for n in reversed(range(8))]
    b.write_text("id\tgood\tbad\tright\n" + "".join(rows))
    found = compare(a, b, [], CompareOptions(seed=1, rounds=200)).to_record()
    assert (found["only_a_right"], found["only_b_right"]) == (7, 0)
    assert found["better"] == "A"
    b.write_text("id\tright\n" + "".join(f"{n}\t1\n" for n in range(1, 9)))
    with pytest.raises(CorpusFormatError, match="must be about the same items") as caught:
        compare(a, b, [], CompareOptions(seed=1))
    assert caught.value.code == "E_SCORE_IDS"
    b.write_text("id\tright\n1\t2\n")
    with pytest.raises(CorpusFormatError, match=r"b.tsv:2: right is \"2\""):
        compare(a, b, [], CompareOptions(seed=1))
