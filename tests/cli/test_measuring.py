"""`treelm evaluate pairs`, `evaluate classification`, `compare` and tables of scores."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.command_line import Done, assert_fine, assert_refused, treelm, treelm_inside
from tests.models.ngram_models import sample_sentences, small_ngram

Capture = pytest.CaptureFixture[bytes]


def shuffled(sentence: str) -> str:
    words = sentence.split()
    return " ".join(words[1::2] + words[::2])


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a model, good and bad sentences to test and to tune on, and pairs."""
    root = tmp_path_factory.mktemp("measuring")
    sentences = [line for line in sample_sentences() if len(line.split()) > 4]
    small_ngram(sentences[:200], order=3).save(root / "model")
    for name, part in (("test", sentences[200:250]), ("dev", sentences[250:])):
        (root / f"{name}.good").write_text("".join(f"{line}\n" for line in part))
        (root / f"{name}.bad").write_text("".join(f"{shuffled(line)}\n" for line in part))
    records = (
        {"sentence_good": f"The {noun} left.", "sentence_bad": f"Left {noun} the.", "UID": noun}
        for noun in ("boat", "ferry")
    )
    (root / "pairs.jsonl").write_text("".join(json.dumps(each) + "\n" for each in records))
    return root


def found(done: Done) -> dict[str, object]:
    record = json.loads(assert_fine(done))
    assert isinstance(record, dict)
    return record


def test_pairs_from_two_files(files: Path, capfdbinary: Capture) -> None:
    command = ("evaluate", "pairs", "-m", files / "model", files / "test.good", files / "test.bad")
    record = found(treelm_inside(capfdbinary, *command, "--json"))
    assert record["n"] == 50
    assert record["accuracy"] > 0.8
    assert record["interval"][0] <= record["accuracy"] <= record["interval"][1]
    # Where the model has seen none of the words next to each other, their order means nothing.
    assert (record["ties"], record["measure"]) == (3, "log_prob")
    assert "|task:pairs|" in record["signature"]
    ratio = found(treelm_inside(capfdbinary, *command, "--slr", "--json", "--seed", "2"))
    assert ratio["measure"] == "slr"
    lines = assert_fine(treelm_inside(capfdbinary, *command)).decode()
    assert lines.startswith("accuracy")


def test_pairs_from_json_lines(files: Path, tmp_path: Path, capfdbinary: Capture) -> None:
    out = tmp_path / "outcomes"
    command = ("evaluate", "pairs", "-m", files / "model", "--blimp", files / "pairs.jsonl")
    record = found(treelm_inside(capfdbinary, *command, "--json", "-o", out))
    assert record["accuracy"] == 1.0
    assert list(record["per_phenomenon"]) == ["boat", "ferry"]
    assert record["per_phenomenon"]["boat"]["n"] == 1
    assert out.read_text() == "1\n1\n"
    lines = assert_fine(treelm_inside(capfdbinary, *command)).decode()
    assert "phenomenon: boat   1.0000 [1.0000, 1.0000] n 1\n" in lines
    raw = treelm_inside(capfdbinary, *command, "--json", "--no-tokenize")
    assert json.loads(assert_fine(raw, None))["n"] == 2
    assert b"looks untokenized" in raw.stderr


def test_pairs_refuses_what_it_must(files: Path, tmp_path: Path, capfdbinary: Capture) -> None:
    model = ("-m", files / "model")
    good, bad, json_lines = files / "test.good", files / "test.bad", files / "pairs.jsonl"
    for arguments, code, part in (
        ((*model,), 2, "two files"),
        ((*model, good), 3, "test.good:1"),
        ((*model, good, bad, "--blimp", json_lines), 2, "two files"),
        (("--blimp", json_lines), 2, "-m MODEL"),
        ((*model, good, files / "dev.bad"), 3, "do not form pairs"),
        ((*model, "--blimp", good), 3, "test.good:1"),
        ((*model, good, "missing"), 3, "no such file"),
        (("-m", tmp_path, good, bad), 3, ""),
        ((good, bad), 3, "test.good:1"),
        ((*model, good, bad, "--tokenize", "perhaps"), 2, "perhaps"),
    ):
        assert_refused(treelm_inside(capfdbinary, "evaluate", "pairs", *arguments), code, part)


CLASSES = ("--good", "test.good", "--bad", "test.bad")
TUNING = ("--tune-good", "dev.good", "--tune-bad", "dev.bad")


def test_classification(
    files: Path, tmp_path: Path, capfdbinary: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(files)
    out = tmp_path / "outcomes"
    command = ("evaluate", "classification", "-m", "model", *CLASSES)
    record = found(treelm_inside(capfdbinary, *command, *TUNING, "--json", "-o", out))
    assert record["n"] == 100
    assert record["accuracy"] > 0.6
    assert record["average_precision"] > 0.6
    assert isinstance(record["threshold"], float)
    assert record["interval"][0] <= record["accuracy"] <= record["interval"][1]
    assert out.read_text().count("1") == round(record["accuracy"] * 100)
    paired = found(treelm_inside(capfdbinary, *command, *TUNING, "--json", "--paired"))
    assert paired["pairwise_accuracy"] > 0.8
    for arguments, code, part in (
        ((), 2, "--tune-good"),
        (("--tune-good", "dev.good"), 2, "go together"),
        (("--tune-good", "test.good", "--tune-bad", "dev.bad"), 2, "have the same content"),
        (("--tune-good", "missing", "--tune-bad", "dev.bad"), 3, "no such file"),
    ):
        assert_refused(treelm_inside(capfdbinary, *command, *arguments), code, part)


def test_classification_tells_of_unknown_words(
    files: Path, tmp_path: Path, capfdbinary: Capture
) -> None:
    good, bad = tmp_path / "good", tmp_path / "bad"
    good.write_text("Slithy ferry left.\n" * 5)
    bad.write_text("Ferry left slithy.\n" * 5)
    done = treelm_inside(
        capfdbinary,
        *("evaluate", "classification", "-m", files / "model", "--good", good, "--bad", bad),
        *("--tune-good", files / "dev.good", "--tune-bad", files / "dev.bad"),
    )
    assert done.returncode == 0
    assert b"of the words (" in done.stderr
    assert b"looks untokenized" in done.stderr
    assert b"`treelm tokenize`" in done.stderr


def test_tables_give_the_same_numbers(
    files: Path, tmp_path: Path, capfdbinary: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(files)
    for name in ("test.good", "test.bad", "dev.good", "dev.bad"):
        out = tmp_path / name
        command = ("score", "-m", "model", name, "--format", "tsv", "-o", out)
        assert_fine(treelm_inside(capfdbinary, *command))
        assert out.read_text().startswith("id\tlen\tlogp_model\tlogp_unigram\tn_trees\tfallback\n")
    model = ("-m", "model")
    classes = ("evaluate", "classification", *CLASSES, *TUNING, "--json")
    pairs = ("evaluate", "pairs", "test.good", "test.bad", "--slr", "--json")
    expected = [found(treelm_inside(capfdbinary, *each, *model)) for each in (classes, pairs)]
    monkeypatch.chdir(tmp_path)
    measured = [found(treelm_inside(capfdbinary, *each)) for each in (classes, pairs)]
    for ours, theirs in zip(measured, expected, strict=True):
        for name in ("accuracy", "interval", "n"):
            assert ours[name] == theirs[name]
    assert measured[0]["threshold"] == expected[0]["threshold"]
    monkeypatch.chdir(files)
    refused = treelm_inside(
        capfdbinary, "score", "-m", "model", "test.good", "--format", "tsv", "--no-eos"
    )
    assert_refused(refused, 2, "--format tsv")


def test_compare_models_and_scores(files: Path, tmp_path: Path, capfdbinary: Capture) -> None:
    same = ("compare", files / "model", files / "model", files / "test.good", "--json")
    record = found(treelm_inside(capfdbinary, *same))
    assert (record["p_value"], record["difference"], record["better"]) == (1.0, 0.0, "neither")
    assert record["test"] == "paired bootstrap"
    assert record["perplexity_a"] == record["perplexity_b"]
    a, b = tmp_path / "a", tmp_path / "b"
    a.write_text("1\n" * 9)
    b.write_text("0\n" * 8 + "1\n")
    answers = found(treelm_inside(capfdbinary, "compare", a, b, "--json"))
    assert (answers["test"], answers["p_value"]) == ("exact McNemar", 2 / 2**8)
    lines = assert_fine(treelm_inside(capfdbinary, "compare", a, b)).decode()
    assert "exact McNemar" in lines


def test_compare_refuses_what_it_must(files: Path, tmp_path: Path, capfdbinary: Capture) -> None:
    model, text = files / "model", files / "test.good"
    other, trained = tmp_path / "other", tmp_path / "trained.txt"
    small_ngram(["the boat left"], order=1).save(other)
    trained.write_text("the boat left\n")
    for arguments, code, part in (
        ((model, other, text), 1, "differs from that of model 1"),
        ((other, other, trained), 2, "trained on this very text"),
        ((model, model), 2, "give a text"),
        ((model, text, text), 2, "not one of each"),
        ((text, text), 3, "test.good:1"),
        ((model, model, text, "--thresholds", "1"), 2, "two numbers"),
        ((model, model, text, "--rounds", "0"), 2, "rounds"),
    ):
        assert_refused(treelm_inside(capfdbinary, "compare", *arguments), code, part)
    fine = treelm_inside(capfdbinary, "compare", other, other, trained, "--allow-overlap")
    assert_fine(fine)


def test_results_do_not_depend_on_threads(files: Path) -> None:
    command = ("evaluate", "pairs", "-m", files / "model", files / "test.good", files / "test.bad")
    one, two = (treelm(*command, "--json", "--threads", number) for number in ("1", "2"))
    assert assert_fine(one) == assert_fine(two)


def test_perplexity_refuses_the_training_text(tmp_path: Path, capfdbinary: Capture) -> None:
    model, trained = tmp_path / "model", tmp_path / "trained.txt"
    small_ngram(["the boat left"], order=1).save(model)
    trained.write_text("the boat left\n")
    command = ("evaluate", "perplexity", "-m", model, trained)
    refused = treelm_inside(capfdbinary, *command)
    assert_refused(refused, 2, "trained on this very text")
    fine = treelm_inside(capfdbinary, *command, "--allow-overlap", "--json")
    assert json.loads(assert_fine(fine))["sentences"] == 1
