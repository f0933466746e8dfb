"""Every registered system keeps the laws of models and of trainings."""

from __future__ import annotations

import io
import itertools
import math
import pickle
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tests.command_line import assert_fine, treelm_inside
from tests.contract.recipes import RECIPES, Recipe, recipe_of
from tests.models.toy_model import TOY, TOY_SYSTEMS, ToyConfig, ToyModel

from treelm.corpus.corpus import TextCorpus
from treelm.corpus.words import Words
from treelm.errors import UnsupportedTask
from treelm.models.interface.abilities import has_ability
from treelm.models.interface.config import options_of
from treelm.models.interface.model import LanguageModel, Task
from treelm.models.interface.scores import Sample, SentenceScore
from treelm.models.interface.tree_model import TreeScorer
from treelm.models.registry import SYSTEMS, train
from treelm.models.run import QUIET, Run
from treelm.store.manifest import Description
from treelm.tasks.inspect.model import inspect_model
from treelm.testing.contracts import Law, check_contract, laws
from treelm.testing.models import Trial, model_cases

Trained = Callable[[str], LanguageModel]

(CASE,) = model_cases()


@pytest.mark.parametrize("law", laws("model"), ids=lambda law: law.code)
@pytest.mark.parametrize("system", SYSTEMS)
def test_model_keeps_the_law(system: str, law: Law, trained: Trained) -> None:
    law.check(trained(system), CASE)


@pytest.mark.parametrize("recipe", RECIPES, ids=str)
def test_every_way_of_training_gives_a_model_that_scores_alike_and_goes_at_once(
    recipe: Recipe, recipe_data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(recipe_data)
    model = recipe.train()
    for law in laws("model"):
        if law.code in ("fields", "copies", "freed"):
            law.check(model, CASE)
    if model.can(Task.SCORE):
        assert list(model.score_many(CASE)) == [model.score(words) for words in CASE]


@pytest.mark.parametrize("law", laws("system"), ids=lambda law: law.code)
@pytest.mark.parametrize("system", SYSTEMS)
def test_training_keeps_the_law(
    system: str, law: Law, recipe_data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(recipe_data)
    recipe = recipe_of(system)
    law.check(SYSTEMS[system], Trial(recipe.data, recipe.options))


@pytest.mark.parametrize("recipe", RECIPES, ids=str)
def test_every_parser_gives_trees_their_own_probability(
    recipe: Recipe, recipe_data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(recipe_data)
    if Task.PARSE not in SYSTEMS[recipe.system].model_class.tasks:
        return
    model = recipe.train()
    lists = model.k_best_many(CASE, min(3, model.most_trees or 3))
    for found, best, words in zip(lists, model.parse_many(CASE), CASE, strict=True):
        assert found
        assert best is not None
        if model.system == "lsvm":  # its trees have weights, no probabilities
            continue
        trees = [*found, best, model.parse(words)[0], found[-1], *found[:1]]
        own = [each.tree_log_prob for each in trees]
        assert not any(map(math.isnan, own))
        if has_ability(model, TreeScorer):
            expected = model.tree_log_probs([each.tree for each in trees])  # type: ignore[attr-defined]
            lost = [each.is_fallback for each in trees]
            assert own == np.where(lost, -np.inf, expected).tolist()
        assert all(each.tree_log_prob <= each.sentence_log_prob + 1e-6 for each in trees)
        again = pickle.loads(pickle.dumps(found))
        assert [each.score for each in again] == [each.score for each in found]


def test_abilities_are_those_of_the_model_not_of_its_system(recipe_data: Path) -> None:
    trees = recipe_data / "few.mrg"
    berkeley, closed = (train("pcfg", trees, lexicon=lexicon) for lexicon in ("berkeley", "closed"))
    assert set(closed.abilities) - set(berkeley.abilities) == {Task.PERPLEXITY, Task.SAMPLE}
    berkeley.save(recipe_data / "berkeley")
    shown = inspect_model(recipe_data / "berkeley")["abilities"]
    assert shown == ["score", "surprisal", "parse", "decode"]
    assert train("treelet", trees).abilities == (Task.SAMPLE,)  # without a parser


@pytest.mark.parametrize("system", SYSTEMS)
def test_model_survives_joblib(system: str, trained: Trained) -> None:
    joblib = pytest.importorskip("joblib")
    model, file = trained(system), io.BytesIO()
    joblib.dump(model, file)
    file.seek(0)
    again = joblib.load(file)
    assert type(again) is type(model)
    assert list(again.score_many(CASE)) == list(model.score_many(CASE))


@pytest.mark.parametrize("system", SYSTEMS)
def test_training_command_explains_itself(
    system: str, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    command = system.replace("_", "-")
    done = treelm_inside(capfdbinary, "train", command, "--help")
    shown = " ".join(assert_fine(done).decode().split())
    assert SYSTEMS[system].summary.split(" (")[0].split()[0] in shown
    for option in options_of(SYSTEMS[system].config_class):
        assert f"--{option.name.replace('_', '-')}" in shown
    for wanted in SYSTEMS[system].inputs:
        if wanted.name not in ("corpus", "data", "models", "tuning"):
            assert f"--{wanted.name.replace('_', '-')}" in shown


# -- the laws find what is wrong ----------------------------------------------------------------


class Hesitant(ToyModel):
    """Scores a sentence otherwise each time, and refuses what it says it can do."""

    asked = 0

    def score(self, sentence: Words, *, eos: bool = True) -> SentenceScore:
        type(self).asked += 1
        found = super().score(sentence, eos=eos)
        return found._replace(log_prob=found.log_prob - self.asked, exactness="beam")

    def score_many(
        self, sentences: Iterable[Words], *, eos: bool = True, threads: int = 1
    ) -> Iterator[SentenceScore]:
        return (self.score(sentence, eos=eos) for sentence in sentences)

    def sample(self, *_: object, **__: object) -> list[Sample]:
        raise UnsupportedTask("not today.")

    def summary(self) -> dict[str, object]:
        return {"system": self.system, "vocabulary": self.vocabulary}

    def description(self) -> Description:
        return replace(super().description(), corpora=())


def broken_laws(model: LanguageModel) -> set[str]:
    found = set()
    for law in laws("model"):
        try:
            law.check(model, CASE)
        except (AssertionError, UnsupportedTask, TypeError):
            found.add(law.code)
    return found


@pytest.fixture
def _toys(monkeypatch: pytest.MonkeyPatch) -> None:
    for system in TOY_SYSTEMS:
        monkeypatch.setitem(SYSTEMS, system.name, system)


@pytest.mark.usefixtures("_toys")
def test_laws_hold_for_a_model_of_another_package() -> None:
    check_contract("model", ToyModel.of(), [CASE])
    check_contract("system", TOY, [Trial([["the", "boat", "left"]], {"added": 0.5})])


@pytest.mark.usefixtures("_toys")
def test_laws_find_what_is_wrong_with_a_model() -> None:
    model = Hesitant.of()
    laws_of_answers = {"folder", "pickle", "fork", "spawn", "batches", "strings", "threads"}
    others = {"class", "manifest", "exactness", "tasks", "summary"}
    assert broken_laws(model) == laws_of_answers | others


@pytest.mark.usefixtures("_toys")
def test_laws_find_what_is_wrong_with_a_training(monkeypatch: pytest.MonkeyPatch) -> None:
    numbers = itertools.count(1)

    def train_otherwise(corpus: TextCorpus, config: ToyConfig, *, run: Run = QUIET) -> ToyModel:
        """Return a model that depends on how often it was trained.

        Args:
            corpus: The text.
        """
        del config, run
        return ToyModel.of([" ".join(words) for words in corpus], added=float(next(numbers)))

    monkeypatch.setattr("tests.models.toy_model.train_toy", train_otherwise)
    trial = Trial([["the", "boat", "left"]])
    for code in ("seed", "threads"):
        (law,) = (law for law in laws("system") if law.code == code)
        with pytest.raises(AssertionError, match=r"these files differ: manifest\.json"):
            law.check(TOY, trial)
