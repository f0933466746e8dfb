"""Worked examples and rules of the specification of measuring."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from tests.models.ngram_models import small_ngram

from treelm.corpus.score_files import ScoreTable, read_scores
from treelm.errors import CorpusFormatError, UsageError
from treelm.tasks.compare import CompareOptions, compare
from treelm.tasks.evaluate.average_precision import average_precision
from treelm.tasks.evaluate.classification import tune_threshold
from treelm.tasks.evaluate.comparison import compare_answers, compare_log_probs
from treelm.tasks.evaluate.measured_text import text_of_lines
from treelm.tasks.evaluate.pair_accuracy import evaluate_pairs, pair_accuracy
from treelm.tasks.evaluate.pair_files import MinimalPairs
from treelm.tasks.evaluate.significance import (
    mcnemar,
    paired_bootstrap,
    paired_bootstrap_average_precision,
    sign_test,
)
from treelm.tasks.evaluate.slr import slr

INF = math.inf


def array(*values: float) -> np.ndarray:
    return np.array(values, dtype=np.float64)


def test_mcnemar() -> None:
    assert mcnemar(1, 8) == 0.0390625
    assert mcnemar(0, 0) == mcnemar(7, 7) == 1.0


def test_bootstrap_of_certain_differences() -> None:
    assert paired_bootstrap(np.ones(9), np.zeros(9), seed=0).p_one_sided == 1 / 10_001
    assert paired_bootstrap(np.ones(9), np.zeros(9), seed=0).p_value == 2 / 10_001
    assert paired_bootstrap(np.ones(9), np.ones(9), seed=0).p_value == 1.0


def test_average_precision() -> None:
    assert average_precision(array(3, 1), array(2)) == pytest.approx(28 / 33, abs=1e-15)
    for number in (1, 7, 100):
        assert average_precision(np.zeros(number), np.zeros(number)) == 0.5


def test_log_odds_ratio() -> None:
    unigram = math.log(1 / 4) + 2 * math.log(1 / 8)
    assert unigram == pytest.approx(-5.545177, abs=5e-7)
    table = ScoreTable(("1",), array(-20.0), np.array([3]), unigram=array(unigram))
    assert slr(table)[0] == pytest.approx(-4.818274, abs=5e-7)


def test_perplexity_with_ends() -> None:
    found = compare_log_probs(array(-10, -14), array(-10, -14), lengths=np.array([3, 5]), seed=0)
    assert found.details["perplexity_a"] == pytest.approx(11.0232, abs=5e-5)
    assert found.p_value == 1.0


def test_threshold_ties_leave_one() -> None:
    # Every threshold is right on half of the four: the one that rejects half of them is taken.
    assert tune_threshold(array(1, 3), array(1, 3)).value == 2.0
    # Thresholds 0.5 and 2.5 are as good and as far from the middle: the smaller is taken.
    assert tune_threshold(array(1, 3), array(0, 2)).value == 0.5
    assert tune_threshold(array(2), array(2)).value == -INF


def test_impossible_sentences_are_rejected_last_and_tie() -> None:
    assert tune_threshold(array(-INF, 1), array(-INF, 0)).value == 0.5
    assert average_precision(array(0, -INF), array(-1, -2)) == pytest.approx(
        (6 * 1 + 5 * 1 / 2) / 11
    )
    assert pair_accuracy(array(-INF), array(-INF), seed=0).ties == 1
    assert compare_log_probs(array(-1, -INF), array(-1, -2), seed=0).difference == -INF


def test_majority_of_four_hundred() -> None:
    assert sign_test(217, 183, alternative="greater") < 0.05
    assert sign_test(216, 184, alternative="greater") >= 0.05


def test_identical_systems_have_no_p_value_below_one() -> None:
    scores = array(*np.random.default_rng(1).normal(size=200))
    answers = scores > 0
    assert compare_log_probs(scores, scores, seed=1).p_value == 1.0
    assert compare_answers(answers, answers, seed=1).p_value == 1.0
    system = scores[:100], scores[100:]
    assert paired_bootstrap_average_precision(system, system, seed=1, rounds=100).p_value == 1.0


def test_agreement_across_a_long_phrase_is_out_of_reach_of_a_5_gram() -> None:
    """Subject and verb are separated by four words, so both verbs look alike to the model."""
    middle = "near the old harbour"
    subjects = {"boat": "sinks", "boats": "sink", "ship": "leaks", "ships": "leak"}
    text = [f"the {noun} {middle} {verb}" for noun, verb in subjects.items()]
    model = small_ngram(text * 10, order=5)
    wrong = {"sinks": "sink", "sink": "sinks", "leaks": "leak", "leak": "leaks"}
    good = text_of_lines(text, "good")
    bad = text_of_lines(
        [f"the {noun} {middle} {wrong[verb]}" for noun, verb in subjects.items()], "bad"
    )
    found = evaluate_pairs(model, MinimalPairs(good, bad, {}), seed=1)
    wins = found.overall.accuracy * 4
    assert wins + found.overall.ties / 2 == 2


# -- what must be rejected ------------------------------------------------------------------


def test_score_files_of_other_sentences_are_rejected(tmp_path: Path) -> None:
    one, two = tmp_path / "one.tsv", tmp_path / "two.tsv"
    one.write_text("id\tlen\tscore\n1\t3\t0.5\n2\t3\t0.5\n")
    two.write_text("id\tlen\tscore\n1\t3\t0.5\n3\t3\t0.5\n")
    with pytest.raises(CorpusFormatError) as caught:
        compare(one, two, [], CompareOptions(seed=1))
    assert caught.value.code == "E_SCORE_IDS"


def test_nan_is_rejected(tmp_path: Path) -> None:
    path = tmp_path / "one.txt"
    path.write_text("-1.0\nnan\n")
    with pytest.raises(CorpusFormatError, match=":2: ") as caught:
        read_scores(path)
    assert caught.value.code == "E_NAN"


def test_missing_seed_is_rejected() -> None:
    for function in (paired_bootstrap, pair_accuracy, compare_answers, compare_log_probs):
        with pytest.raises(TypeError, match="seed"):
            function(array(1.0), array(0.0))  # type: ignore[operator]
    with pytest.raises(TypeError, match="seed"):
        CompareOptions()  # type: ignore[call-arg]


def test_training_file_is_rejected(tmp_path: Path) -> None:
    text = ["the boat left", "a boat"]
    path, folder = tmp_path / "text.txt", tmp_path / "model"
    path.write_text("".join(f"{line}\n" for line in text))
    small_ngram(text).save(folder)
    with pytest.raises(UsageError) as caught:
        compare(folder, folder, [path], CompareOptions(seed=1))
    assert caught.value.code == "E_TEST_IN_TRAINING"
    assert compare(folder, folder, [path], CompareOptions(seed=1, allow_overlap=True)).p_value == 1
