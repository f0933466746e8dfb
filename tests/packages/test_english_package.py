"""The English package: its models open, take raw text, and do what their cards say."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from tests.command_line import assert_fine, treelm
from tests.packages.installed_package import PACKAGES, as_installed, model_names

import treelm as package
from treelm.models.interface.classifier import Classifier
from treelm.store.folder import open_folder

FOLDERS = PACKAGES / "treelm-en/src/treelm_en"
NAMES = model_names("treelm-en")
#: What the repository gives to models, in bytes.
MOST = 40e6


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The package as an installer leaves it, on the path of every Python that is started."""
    as_installed("treelm-en", tmp_path)
    paths = [str(tmp_path), *os.environ.get("PYTHONPATH", "").split(os.pathsep)]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(path for path in paths if path))


@pytest.mark.parametrize("name", NAMES)
def test_english_models_are_whole(name: str) -> None:
    folder = open_folder(FOLDERS / name, verify=True)
    assert folder.manifest.tokenizer == "penn"
    card = (FOLDERS / name / "README.md").read_text()
    assert 'license: "' in card
    assert "scores: {" in card


def test_english_models_are_those_that_are_named_and_small() -> None:
    assert sorted(path.name for path in FOLDERS.iterdir() if path.name.startswith("en-")) == NAMES
    size = sum(path.stat().st_size for path in FOLDERS.rglob("*") if path.is_file())
    assert size < MOST


def test_english_parser_reads_raw_text() -> None:
    parser = package.load(FOLDERS / "en-parser")
    assert str(parser.parse("The dog barked at us.")[0].tree) == (
        "(ROOT (S (NP (DT The) (NN dog)) (VP (VBD barked) (PP (IN at) (NP (PRP us)))) (. .)))"
    )
    question = str(parser.parse("Did she say that we can't stay?")[0].tree)
    assert question.startswith("(ROOT (SQ (VBD Did) (NP (PRP she))")
    assert "(MD ca) (RB n't)" in question


def test_english_hhmm_stumbles_over_a_garden_path() -> None:
    model = package.load(FOLDERS / "en-hhmm")
    hard = model.surprisal("The horse raced past the barn fell.")
    easy = model.surprisal("The horse that was raced past the barn fell.")
    assert [word.word for word in hard][-2:] == ["fell", "."]
    assert hard[-2].surprisal > easy[-2].surprisal


#: Sentences, and the same with an error.
PAIRS = (
    ("The dogs near the house bark.", "The dogs near the house barks."),
    ("The man who likes cats sleeps.", "The man who likes cats sleep."),
    ("I am very happy to see you.", "I very happy to see you."),
    ("He goes to school every day.", "He go to school every day."),
    ("Cats like fish.", "Cats likes fish."),
    ("She has gone home.", "She has went home."),
)


def test_english_treelets_know_agreement() -> None:
    treelet = package.load(FOLDERS / "en-treelet")
    right = [treelet.score(good).log_prob > treelet.score(bad).log_prob for good, bad in PAIRS]
    assert sum(right) >= 5


def test_english_judge_prefers_good_sentences() -> None:
    judge = package.load(FOLDERS / "en-judge")
    assert isinstance(judge, Classifier)
    good, bad = (
        judge.margins([judge_words(each) for each in side]) for side in zip(*PAIRS, strict=True)
    )
    assert (good > bad).sum() >= 4
    assert judge.classify("Cats like fish.").label == "good"
    assert judge.classify("Cats likes fish.").label == "bad"


def judge_words(sentence: str) -> tuple[str, ...]:
    return tuple(package.tokenize(sentence))


def test_english_mixture_is_better_than_its_parts() -> None:
    text = [
        "The committee will meet again in the spring.",
        "I don't think that anybody knows what happened to them.",
        "Most of these islands are covered by dense forest.",
    ]
    mixture, *parts = (
        package.load(FOLDERS / f"en-{name}") for name in ("mixture", "ngram", "hhmm")
    )
    best = max(sum(part.score(line).log_prob for line in text) for part in parts)
    assert sum(mixture.score(line).log_prob for line in text) > best - 5


@pytest.mark.parametrize("name", ["ngram", "hhmm", "mixture", "treelet"])
def test_english_models_spell_unknown_words(name: str) -> None:
    """A word that looks like English is likelier than one that does not, and neither is easy."""
    model = package.load(FOLDERS / f"en-{name}")
    known, likely, unlikely = (
        model.score(f"The {word} left.").log_prob for word in ("train", "blinders", "bxqzders")
    )
    assert not {"blinders", "bxqzders"} & set(model.vocabulary.symbols)
    assert known > likely + 5
    assert likely > unlikely + 5
    assert model.spelling is not None


def test_english_surprisal_of_an_unknown_word_is_large_and_marked() -> None:
    rows = package.load(FOLDERS / "en-hhmm").surprisal("The blinders left.")
    assert [row.oov for row in rows][:3] == [False, True, False]
    assert rows[1].surprisal > 20


def test_english_models_work_by_name_in_every_command(installed: None) -> None:
    found = json.loads(assert_fine(treelm("models", "--json"), None))["models"]
    assert [model["name"] for model in found] == NAMES
    assert all(model["license"] and model["scores"] for model in found)
    done = treelm("parse", stdin=b"The horse raced past the barn fell.\n")
    assert assert_fine(done, None).startswith(b"(ROOT (S ")
    rows = assert_fine(treelm("surprisal", "-m", "en-hhmm", stdin=b"The old man the boat.\n"), None)
    assert [line.split("\t")[3] for line in rows.decode().splitlines()[1:]] == [
        *("The", "old", "man", "the", "boat.")
    ]
    judged = assert_fine(treelm("classify", stdin=b"Cats like fish.\nCats likes fish.\n"), None)
    good, bad = (float(line.split("\t")[2]) for line in judged.decode().splitlines())
    assert good > bad
    shown = assert_fine(treelm("demo"), None).decode()
    assert "Good and bad sentences, by en-judge" in shown
