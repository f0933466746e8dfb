"""What is reached from the top of the package: parse, surprisal, interpolate, evaluate."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from pathlib import Path

import pytest
from tests.models.latent_models import sample_corpus
from tests.models.ngram_models import small_ngram
from tests.models.plsa_models import train_small, two_topics
from tests.models.toy_model import SENTENCES, ToyModel

import treelm
from treelm import errors
from treelm.models.registry import SYSTEMS


@pytest.fixture(scope="module")
def grammar(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models") / "pcfg"
    treelm.train("pcfg", sample_corpus()).save(folder)
    return folder


def test_every_system_and_every_error_is_public() -> None:
    public = {getattr(treelm, name) for name in treelm.__all__ if name != "__version__"}
    assert {system.model_class for system in SYSTEMS.values()} <= public
    raised = {
        each
        for each in vars(errors).values()
        if isinstance(each, type) and issubclass(each, Exception)
    }
    assert len(raised) > 10
    assert raised <= public


def test_evaluate_is_a_module_that_is_loaded_when_it_is_used() -> None:
    code = (
        "import sys, treelm\n"
        "assert 'treelm.evaluate' not in sys.modules and 'numpy' not in sys.modules\n"
        "assert treelm.evaluate.perplexity and treelm.parse and treelm.UnsupportedTask\n"
        "from treelm.evaluate import parses\n"
        "assert treelm.evaluate.parses is parses\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


# -- parse ----------------------------------------------------------------------------------


def test_parse_gives_trees(grammar: Path, tmp_path: Path) -> None:
    model = treelm.load(grammar)
    sentences = ["The ferry left .", "", ("She", "sleeps", ".")]
    trees = treelm.parse(model, sentences, threads=2)
    assert trees[1] is None
    assert [tree.words for tree in trees if tree] == [
        ("The", "ferry", "left", "."),
        ("She", "sleeps", "."),
    ]
    assert trees[0] == model.parse(sentences[0])[0].tree
    assert treelm.parse(grammar, "The ferry left .") == trees[0]
    assert treelm.parse(str(grammar), "") is None
    text = tmp_path / "text"
    text.write_text("The ferry left .\nShe sleeps .\n")
    from_file = treelm.parse(model, text)
    assert from_file == [trees[0], trees[2]]
    assert treelm.parse(model, treelm.TextCorpus((text,))) == from_file
    with pytest.raises(treelm.UnsupportedTask, match=r"pcfg, pcfg_la, hhmm, tree_ranker\."):
        treelm.parse(small_ngram(order=2), "a")


# -- surprisal ------------------------------------------------------------------------------


def test_surprisal_is_that_of_the_model(tmp_path: Path) -> None:
    model = small_ngram(order=2)
    rows = treelm.surprisal(model, "The zebra left .")
    assert rows == model.surprisal("The zebra left .")
    assert [row.word for row in rows] == ["The", "zebra", "left", "."]
    assert [row.oov for row in rows] == [False, True, False, False]
    with_end = treelm.surprisal(model, ["The ferry left .", "left"], eos=True, threads=2)
    assert with_end == [model.surprisal(each, eos=True) for each in ("The ferry left .", "left")]
    assert with_end[1][-1].word == "</s>"
    model.save(tmp_path / "model")
    assert treelm.surprisal(tmp_path / "model", "left") == model.surprisal("left")
    with pytest.raises(treelm.UnsupportedTask) as caught:
        treelm.surprisal(model.floored(), "left")
    assert caught.value.code == "E_NOT_INCREMENTAL"


def test_documents_of_files_are_remembered(tmp_path: Path) -> None:
    model = train_small(two_topics())
    line = two_topics().splitlines()[0]
    one, two = tmp_path / "one", tmp_path / "two"
    one.write_text(f"{line}\n{line}\n")
    two.write_text(f"{line}\n\n{line}\n")
    together, apart = treelm.surprisal(model, one), treelm.surprisal(model, two)
    assert together[0] == apart[0] == apart[1]
    assert together[1] != apart[1]
    assert treelm.surprisal(model, [line, line]) == apart


# -- interpolate ----------------------------------------------------------------------------


def test_interpolate_takes_weights_or_finds_them(tmp_path: Path) -> None:
    one = ToyModel.of()
    two = ToyModel.of(["left the boat", "the harbour"], one.vocabulary, added=0.1)
    assert treelm.interpolate([one, two]).weights == (0.5, 0.5)
    assert treelm.interpolate([one, two], [0.25, 0.75]).weights == (0.25, 0.75)
    found = treelm.interpolate([one, two], held_out=SENTENCES)
    assert found.weights[0] > 0.5
    text = tmp_path / "held-out"
    text.write_text("".join(f"{sentence}\n" for sentence in SENTENCES))
    for held_out in (text, str(text), treelm.TextCorpus((text,))):
        other = treelm.interpolate([one, two], held_out=held_out, threads=2)
        assert other.weights == pytest.approx(found.weights)
    with pytest.raises(treelm.UsageError, match="one of the two"):
        treelm.interpolate([one, two], [0.5, 0.5], held_out=SENTENCES)
    with pytest.raises(treelm.UsageError, match="at least one model"):
        treelm.interpolate([])
    small_ngram(order=2).save(tmp_path / "ngram")
    mixed = treelm.interpolate([tmp_path / "ngram", str(tmp_path / "ngram")])
    assert isinstance(mixed, treelm.InterpolatedModel)


# -- evaluate -------------------------------------------------------------------------------


def test_evaluate_perplexity_reads_files_and_sentences(tmp_path: Path) -> None:
    model = small_ngram(order=2)
    sentences = ["The ferry left .", "The zebra left ."]
    text = tmp_path / "text"
    text.write_text("".join(f"{each}\n" for each in sentences))
    model.save(tmp_path / "model")
    expected = model.perplexity(sentences)
    total = sum(model.sentence_log_probs(sentences))
    assert expected.perplexity == pytest.approx(math.exp(-total / 10))
    for given in (sentences, text, str(text), treelm.TextCorpus((text,))):
        assert treelm.evaluate.perplexity(tmp_path / "model", given, threads=2) == expected
    known = treelm.evaluate.perplexity(model, sentences, oov_mode="skip")
    assert (known.oov, known.oov_mode) == (1, "skip")


def test_evaluate_parses_takes_trees_and_files(tmp_path: Path) -> None:
    gold = [
        treelm.Tree.from_string("(S (NP (X a) (X b)) (VP (X c) (NP (X d) (X e))))"),
        treelm.Tree.from_string("(S (NP (X a)) (VP (X b)))"),
    ]
    guess = [treelm.Tree.from_string("(S (NP (X a) (X b)) (VP (X c) (X d) (X e)))"), None]
    found = treelm.evaluate.parses(gold, guess)
    assert (found.sentences, found.unparsed) == (2, 1)
    assert found.labelled_precision == 1.0
    assert found.labelled_recall == pytest.approx(3 / 7)
    first, second = tmp_path / "gold.mrg", tmp_path / "test.mrg"
    first.write_text("".join(f"{tree}\n" for tree in gold))
    second.write_text(f"{guess[0]}\n\n")
    assert treelm.evaluate.parses(first, second, threads=2).labelled_f1 == found.labelled_f1
    assert treelm.evaluate.parses(gold, first).labelled_f1 == 1.0
    with pytest.raises(treelm.CorpusFormatError, match="2 on one side, 1 on the other") as caught:
        treelm.evaluate.parses(gold, second)
    assert caught.value.code == "E_LENGTH_MISMATCH"


def test_evaluate_pairs_takes_sentences_files_and_json(tmp_path: Path) -> None:
    model = small_ngram(order=2)
    good = ["The ferry left .", "She sleeps ."]
    bad = ["left . The ferry", ". She sleeps"]
    found = treelm.evaluate.pairs(model, good, bad)
    right = [a > b for a, b in zip(*map(model.sentence_log_probs, (good, bad)), strict=True)]
    assert found.right.tolist() == right
    assert found.overall.accuracy == sum(right) / 2
    files = [tmp_path / "good", tmp_path / "bad"]
    for path, lines in zip(files, (good, bad), strict=True):
        path.write_text("".join(f"{line}\n" for line in lines))
    assert treelm.evaluate.pairs(model, *files).overall == found.overall
    pairs = tmp_path / "pairs.jsonl"
    records = [
        {"sentence_good": one, "sentence_bad": two} for one, two in zip(good, bad, strict=True)
    ]
    pairs.write_text("".join(f"{json.dumps(record)}\n" for record in records))
    assert treelm.evaluate.pairs(model, pairs).overall.n == 2
    with pytest.raises(treelm.CorpusFormatError, match="2 on one side, 1 on the other"):
        treelm.evaluate.pairs(model, good, bad[:1])


def test_evaluate_classification_tunes_or_asks_for_it() -> None:
    model = small_ngram(order=2)
    good = ["The ferry left .", "She sleeps .", "The old man saw the boat ."]
    bad = [" ".join(reversed(each.split())) for each in good]
    found = treelm.evaluate.classification(model, good, bad, tuning=(good[:2], bad[:2]))
    assert (found.n, found.measure) == (6, "slr")
    assert found.accuracy > 0.5
    with pytest.raises(treelm.UsageError, match="ngram models need a threshold"):
        treelm.evaluate.classification(model, good, bad)
