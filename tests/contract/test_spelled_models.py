"""Models of every system that spell unknown words keep the laws, and add spellings to symbols."""

from __future__ import annotations

import contextlib
import math
import pickle
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.contract.recipes import quietly, recipe_of

from treelm.corpus.corpus import TextCorpus
from treelm.corpus.vocabulary_file import save_vocabulary
from treelm.corpus.vocabulary_rules import VocabularyRule, build_vocabulary
from treelm.models.interface.config import WordModelConfig
from treelm.models.interface.model import LanguageModel, Task
from treelm.models.interface.scores import Sample
from treelm.models.interface.spelled import spelling_sums
from treelm.models.interface.tree_model import TreeScorer
from treelm.models.registry import SYSTEMS, load, train
from treelm.testing.contracts import laws
from treelm.testing.incremental import check_lm, incremental_cases
from treelm.testing.models import model_cases

(CASE,) = model_cases()
#: Unknown words of several forms, the first of a sentence among them.
ODD = ("Vexing frobnicators 北京 Boat", "the B-52 zzz .", "the boat", "\U0001f600 \u0301x x\u00a0y")

#: Every system with the option, and how its models sum to one.
SYSTEMS_THAT_SPELL = {
    name: {"lexicon": "closed"} if name.startswith("pcfg") else {}
    for name, system in SYSTEMS.items()
    if issubclass(system.config_class, WordModelConfig)
}
Spelled = Callable[[str], LanguageModel]


@pytest.fixture(scope="module")
def spelled(recipe_data: Path) -> Spelled:
    """Gives a model of each system that spells unknown words, and mixtures of two."""

    @cache
    def model_of(system: str) -> LanguageModel:
        with contextlib.chdir(recipe_data), quietly():
            if not Path("classes.txt").exists():
                rule = VocabularyRule(name="min-count", min_count=2, signatures=True)
                save_vocabulary(
                    build_vocabulary(TextCorpus("train.txt"), rule), Path("classes.txt")
                )
            if system in ("interpolated", "interpolated_sentences"):
                parts = [model_of("ngram"), _train(recipe_data, "ngram", data="dev.txt", order=1)]
                return train(system, parts, held_out="dev.txt")
            recipe = recipe_of(system)
            return _train(recipe_data, system, **SYSTEMS_THAT_SPELL[system], **recipe.options)

    return model_of


def _train(folder: Path, system: str, *, data: Any = None, **options: Any) -> LanguageModel:
    recipe = recipe_of(system)
    own = {**options, "vocabulary": "classes.txt", "unknown": "spelling"}
    return train(system, data or recipe.data, **own)


ALL = (*SYSTEMS_THAT_SPELL, "interpolated", "interpolated_sentences")


def test_all_language_models_take_the_option() -> None:
    assert {*SYSTEMS_THAT_SPELL} == {
        "ngram", "pcfg", "pcfg_la", "hhmm", "slm", "composite", "plsa", "treelet", "headlex",
    }  # fmt: skip


@pytest.mark.parametrize("system", ALL)
def test_model_that_spells_keeps_the_laws(system: str, spelled: Spelled) -> None:
    model = spelled(system)
    for law in laws("model"):
        # Its class is made for it; sums over words and over trees differ in the last bit.
        if law.code != "class" and (law.code, system) != ("batches", "pcfg"):
            law.check(model, CASE)


@pytest.mark.parametrize("system", ALL)
def test_incremental_model_that_spells_keeps_the_laws(system: str, spelled: Spelled) -> None:
    model = spelled(system).incremental
    if model is not None:
        check_lm(model, (*incremental_cases(2), *ODD))


@pytest.mark.parametrize("system", ALL)
def test_score_is_that_of_symbols_and_spellings(system: str, spelled: Spelled) -> None:
    model = spelled(system)
    assert model.spelling is not None
    assert model.closed.spelling is None
    opened = model.sentence_log_probs(ODD)
    assert [score.log_prob for score in model.score_many(ODD)] == pytest.approx(opened)
    assert [model.score(each).log_prob for each in ODD] == pytest.approx(opened)
    counted = model.log_probs_and_unknown(ODD)
    assert counted.log_probs == pytest.approx(opened)
    assert counted == model.closed.log_probs_and_unknown(ODD)._replace(log_probs=counted.log_probs)
    if not model.mixed_models:
        sums = spelling_sums(model.spelling, ODD)
        assert opened == pytest.approx(model.closed.sentence_log_probs(ODD) + sums)
        assert (sums[[0, 1, 3]] < -20).all()
        assert sums[2] == 0.0


@pytest.mark.parametrize("system", ALL)
def test_perplexity_of_an_open_vocabulary_stands_beside_the_closed_one(
    system: str, spelled: Spelled, tmp_path: Path
) -> None:
    model = spelled(system)
    found = model.perplexity(ODD)
    closed = model.closed.perplexity(ODD)
    assert found.closed_perplexity == pytest.approx(closed.perplexity)
    assert found.characters == sum(len(each.replace(" ", "")) + each.count(" ") + 1 for each in ODD)
    assert found.bits_per_character == pytest.approx(
        -found.log_prob / math.log(2) / found.characters
    )
    assert (found.oov, found.tokens) == (closed.oov, closed.tokens)
    assert (closed.closed_perplexity, closed.bits_per_character) == (None, None)
    file = tmp_path / "odd.txt"
    file.write_text("\n\n".join(ODD) + "\n")  # each a document
    apart = model.perplexity(TextCorpus(str(file)))
    assert apart.log_prob == pytest.approx(float(model.sentence_log_probs(ODD).sum()))
    if model.incremental is None or not model.incremental.remembers_documents:
        assert apart.log_prob == pytest.approx(found.log_prob)


@pytest.mark.parametrize("system", ALL)
def test_model_that_spells_is_saved_pickled_and_deterministic(
    system: str, spelled: Spelled, tmp_path: Path
) -> None:
    model = spelled(system)
    model.save(tmp_path / "model")
    expected = model.sentence_log_probs(ODD).tolist()
    loaded = load(tmp_path / "model")
    assert type(loaded) is type(model)
    for other in (loaded, pickle.loads(pickle.dumps(model)), model.with_tokenizer("penn")):
        assert other.sentence_log_probs([each.split(" ") for each in ODD]).tolist() == expected
    assert model.sentence_log_probs(ODD, threads=2).tolist() == expected
    load(tmp_path / "model").with_tokenizer("penn").save(tmp_path / "raw")
    raw = load(tmp_path / "raw")
    model.closed.save(tmp_path / "closed")
    closed = load(tmp_path / "closed")
    assert closed.spelling is None
    assert closed.sentence_log_probs(ODD).tolist() == model.closed.sentence_log_probs(ODD).tolist()
    assert raw.tokenizer == "penn"
    assert raw.spelling is not None
    assert raw.score("Vexing boats.").log_prob == model.score("Vexing boats .").log_prob
    assert raw.closed.score("Vexing ox.") == model.closed.score("Vexing ox .")
    assert pickle.loads(pickle.dumps(raw)).score("Ox.") == raw.score("Ox.")


@pytest.mark.parametrize("system", ALL)
def test_samples_have_words_not_symbols(system: str, spelled: Spelled) -> None:
    model = spelled(system)
    if not model.can(Task.SAMPLE):
        pytest.skip("does not sample")
    marks = [*model.vocabulary.signature_marks]
    symbols = {model.vocabulary.symbols[0]} | {
        symbol for symbol, mark in zip(model.vocabulary.symbols, marks, strict=True) if mark
    }
    found = model.sample(40, seed=3, max_words=30)
    plain = model.closed.sample(40, seed=3, max_words=30)
    respelled = 0
    for sample, before in zip(found, plain, strict=True):
        assert len(sample.words) == len(before.words)
        assert sample.complete == before.complete
        new = [
            place
            for place, (word, old) in enumerate(zip(sample.words, before.words, strict=True))
            if word != old
        ]
        assert all(before.words[place] in symbols for place in new)
        for place in new:
            had = [model.vocabulary.symbol(sample.words[place], at) for at in (0, 1)]
            assert before.words[place] in had
        respelled += len(new)
        if new and sample.complete:
            assert _log_prob_of(model, sample) == pytest.approx(sample.log_prob)
    left = sum(word in symbols for sample in found for word in sample.words)
    assert respelled > 0
    assert left <= 0.1 * respelled
    assert model.sample(3, seed=3, first=5, max_words=30) == found[5:8]


def _log_prob_of(model: LanguageModel, sample: Sample) -> float:
    if sample.tree is None or (model.incremental is not None and not isinstance(model, TreeScorer)):
        return model.score(sample.words).log_prob
    assert sample.tree.words == sample.words
    assert isinstance(model, TreeScorer)
    if model.system == "treelet":  # the tree is transformed already
        return float(model.tree_log_probs_of_distinct([sample.tree])[0])
    return float(model.tree_log_probs([sample.tree])[0])


def test_mixture_adds_up_open_probabilities(spelled: Spelled) -> None:
    mixture: Any = spelled("interpolated")
    one, two = mixture.parts
    assert one.spelling.fingerprint != two.spelling.fingerprint
    share, other = mixture.weights
    state = [one.initial(), two.initial()]
    for row in mixture.surprisal(ODD[0], eos=False):
        steps = [one.advance(state[0], row.word), two.advance(state[1], row.word)]
        expected = math.log(
            share * math.exp(steps[0].log_prob) + other * math.exp(steps[1].log_prob)
        )
        assert row.log_prob == pytest.approx(expected)
        assert row.oov == (row.word not in mixture.vocabulary)
        state = [step.state for step in steps]


def test_documents_are_read_with_spellings(spelled: Spelled) -> None:
    from treelm.corpus.encoder import encode_sentences
    from treelm.models.interface.document_reader import DocumentReader

    model = spelled("plsa").incremental
    assert model is not None
    assert model.remembers_documents
    text = encode_sentences(ODD, model.vocabulary, written=True)
    scores = model.score_documents(text)
    read = DocumentReader(model).score(text)
    assert np.allclose(read.log_probs, scores.log_probs)
    assert scores.closed is not None
    assert np.allclose(scores.closed, model.closed.incremental.score_documents(text).log_probs)  # type: ignore[union-attr]
