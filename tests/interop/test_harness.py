"""The evaluation harness: what is scored of a text, and the same results as ours."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import treelm
from treelm.errors import UnsupportedTask
from treelm.interop.harness import Continuation, HarnessScorer, continuations, harness_class

PAIRS = [
    ("The boat was late.", "The boat were late."),
    ("He saw the harbour.", "Him saw the harbour."),
    ("The ferry left early.", "The ferry leave early."),
    ("She came back.", "She came backed."),
    ("They were in the boat.", "They was in the boat."),
    ("It didn't rain.", "It didn't rains."),
]


@pytest.fixture(scope="module")
def model() -> treelm.LanguageModel:
    sentences = [tree.words for tree in treelm.sample_treebank()]
    return treelm.train("ngram", sentences, order=3)


def test_harness_scores_what_follows_the_context() -> None:
    assert list(continuations("The boat", " was late. It")) == [
        Continuation(("The", "boat"), ("was", "late", "."), True),
        Continuation((), ("It",), False),
    ]
    # The last sentence of the context is given, and so is its end.
    assert list(continuations("He left.", " She didn't.")) == [
        Continuation((), ("She", "did", "n't", "."), False)
    ]
    assert list(continuations("ferr", "y left")) == [Continuation((), ("ferry", "left"), False)]
    assert list(continuations("", "  ")) == []


def test_harness_log_likelihood_is_that_of_the_words(model: treelm.LanguageModel) -> None:
    scorer = HarnessScorer(model)
    (found,) = scorer.loglikelihood([("The boat", " was late. It")])
    words = [("The boat", "was late .", True), ("", "It", False)]
    expected = sum(model.continuation(w, c, eos=end).log_prob for c, w, end in words)
    assert found[0] == pytest.approx(expected)
    (best,) = model.top(1, "The boat")
    answers = scorer.loglikelihood([("The boat", f" {best.word}"), ("The boat", " zzgrumpf")])
    assert [greedy for _, greedy in answers] == [best.word != "</s>", False]
    assert scorer.rolling(["The boat was late. He left."]) == pytest.approx(
        [model.score("The boat was late .").log_prob + model.score("He left .").log_prob]
    )


def test_harness_ties_are_those_of_pairs(model: treelm.LanguageModel, tmp_path: Path) -> None:
    """Sentences of the same probabilities in another order: their sums must not be rounded."""
    unknown = [f"zz{letter}" for letter in "abcdefgh"]
    pairs = [
        (
            " ".join([*unknown[:cut], word, *unknown[cut:]]),
            " ".join([*unknown[:last], word, *unknown[last:]]),
        )
        for word in ("boat", "ferry", "harbour", "late", "left")
        for cut, last in ((3, 4), (3, 5), (4, 6))
    ]
    rows = [{"sentence_good": good, "sentence_bad": bad} for good, bad in pairs]
    (tmp_path / "pairs.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    ours = treelm.evaluate.pairs(model, tmp_path / "pairs.jsonl").overall
    scorer = HarnessScorer(model)
    sides = [
        [total for total, _ in scorer.loglikelihood([("", f" {text}") for text in side])]
        for side in zip(*pairs, strict=True)
    ]
    assert ours.ties == sum(good == bad for good, bad in zip(*sides, strict=True))
    assert ours.ties >= 5


def test_harness_generates_the_most_probable_words(model: treelm.LanguageModel) -> None:
    scorer = HarnessScorer(model)
    text = scorer.generate("She", [], 5)
    (first,) = model.top(1, "She")
    assert text.split()[0] == first.word
    assert 1 < len(treelm.tokenize(text)) <= 5
    assert scorer.generate("She", [text[2:4], ""], 5) == text[: text.index(text[2:4])]
    assert scorer.generate("She", [], 1) == first.word


def test_harness_models_of_whole_sentences_take_no_context() -> None:
    pcfg = treelm.train("pcfg", list(treelm.sample_treebank())[:30])
    scorer = HarnessScorer(pcfg)
    text = " ".join(next(iter(treelm.sample_treebank())).words)
    assert scorer.rolling([text])[0] < 0
    if pcfg.incremental is None:
        with pytest.raises(UnsupportedTask):
            scorer.loglikelihood([("The", " boat")])


# -- the harness itself -------------------------------------------------------------------------


@pytest.fixture(scope="module")
def task(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a task like those of BLiMP."""
    folder = tmp_path_factory.mktemp("task")
    rows = [{"sentence_good": good, "sentence_bad": bad} for good, bad in PAIRS]
    (folder / "pairs.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (folder / "pairs.yaml").write_text(
        "task: our_pairs\n"
        "dataset_path: json\n"
        f"dataset_kwargs:\n  data_files:\n    train: {folder / 'pairs.jsonl'}\n"
        "output_type: multiple_choice\n"
        "validation_split: train\n"
        'doc_to_text: ""\n'
        "doc_to_target: 0\n"
        'doc_to_choice: "{{[sentence_good, sentence_bad]}}"\n'
        "num_fewshot: 0\n"
        "metric_list:\n  - metric: acc\n    aggregation: mean\n    higher_is_better: true\n"
    )
    return folder


def test_harness_program_gives_our_accuracy(
    task: Path, model: treelm.LanguageModel, tmp_path: Path
) -> None:
    pytest.importorskip("lm_eval")
    model.save(tmp_path / "model")
    done = subprocess.run(
        [
            *(sys.executable, "-m", "treelm.interop.harness", "--model", "treelm"),
            *("--model_args", f"path={tmp_path / 'model'}", "--tasks", "our_pairs"),
            *("--include_path", str(task), "--output_path", str(tmp_path / "results")),
        ],
        capture_output=True,
        text=True,
        timeout=600,
        env={
            **os.environ,
            "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
            "HF_HUB_OFFLINE": "1",
            "HF_HOME": str(tmp_path / "home"),
        },
    )
    assert done.returncode == 0, done.stderr[-3000:]
    (written,) = (tmp_path / "results").rglob("*.json")
    found = json.loads(written.read_text())["results"]["our_pairs"]["acc,none"]
    ours = treelm.evaluate.pairs(model, task / "pairs.jsonl")
    assert ours.overall.ties == 0
    assert found == pytest.approx(ours.overall.accuracy)
    assert found > 0


def test_harness_class_is_registered_once() -> None:
    pytest.importorskip("lm_eval")
    from lm_eval.api.registry import get_model

    assert get_model("treelm") is harness_class() if harness_class() else False
    assert get_model("dummy") is not None
