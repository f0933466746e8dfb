"""Causal language models of transformers: word boundaries, states, mixtures, commands."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest
from tests.command_line import assert_fine, assert_refused, treelm_inside

import treelm
from treelm.errors import ModelFileError, TreelmWarning, UnsupportedTask, UsageError
from treelm.models.interface.model import Task

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from tests.models.tiny_transformer import write_tiny_transformer  # noqa: E402

from treelm.models.neural.model import NeuralModel  # noqa: E402

SENTENCES = [
    "The boat was late .",
    "He saw the harbour",
    "zzgrumpf",
    "A new-old ferry left early .",
]


@pytest.fixture(scope="module", params=[False, True], ids=["plain first", "marked first"])
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("tiny")
    write_tiny_transformer(made, marks_first=request.param)
    return made


@pytest.fixture(scope="module")
def model(folder: Path) -> NeuralModel:
    return treelm.load(f"hf:{folder}", NeuralModel)


def token_log_probs(folder: Path, text: str) -> tuple[float, float]:
    """Return the log probability of a text and its end, and of a first token that may be one."""
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    network = transformers.AutoModelForCausalLM.from_pretrained(folder)
    ids = [tokenizer.bos_token_id, *tokenizer.encode(text), tokenizer.eos_token_id]
    with torch.no_grad():
        scores = network(torch.tensor([ids])).logits.double().log_softmax(-1)[0]
    total = sum(float(scores[place, ids[place + 1]]) for place in range(len(ids) - 1))
    is_spaced = tokenizer.convert_ids_to_tokens(tokenizer.encode("a"))[0].startswith("Ġ")
    names = tokenizer.convert_ids_to_tokens(range(len(tokenizer)))
    kept = [
        number
        for number, name in enumerate(names)
        if number == tokenizer.eos_token_id or name.startswith("Ġ") == is_spaced
    ]
    return total, float(scores[0, kept].logsumexp(-1))


def test_neural_sentence_has_the_probability_of_its_tokens(
    folder: Path, model: NeuralModel
) -> None:
    for text in SENTENCES:
        total, first = token_log_probs(folder, text)
        assert model.score(text).log_prob == pytest.approx(total - first, abs=1e-4)


def test_neural_words_add_up_whichever_way_they_are_asked_for(model: NeuralModel) -> None:
    for text in SENTENCES:
        words = text.split()
        score = model.score(text)
        assert score.words is not None
        state = model.initial()
        for word, expected in zip(words, score.words, strict=True):
            log_prob, state = model.advance(state, word)
            assert log_prob == pytest.approx(expected.log_prob, abs=1e-4)
            assert model.state_from_bytes(state.to_bytes()) == state
        assert model.finish(state) == pytest.approx(score.end, abs=1e-4)
        alone = model.sentence_log_probs([text])[0]
        together = model.sentence_log_probs([*SENTENCES, text])[-1]
        assert alone == pytest.approx(together, abs=1e-4)
        steps = model.advance_many([model.initial()] * 2, [words[0], "ferry"])
        assert steps.log_probs[0] == pytest.approx(score.words[0].log_prob, abs=1e-4)


def test_neural_words_that_can_follow_are_not_more_than_all(model: NeuralModel) -> None:
    """The known words and the end have at most the whole probability, and a good part of it."""
    state = model.score_phrase(model.initial(), "The boat").state
    words = list(model.vocabulary.symbols[1:])
    steps = model.advance_many([state] * len(words), words)
    total = float(np.exp(steps.log_probs).sum()) + math.exp(model.finish(state))
    assert 0.01 < total <= 1 + 1e-4


def test_neural_model_says_what_it_is(model: NeuralModel, folder: Path, tmp_path: Path) -> None:
    assert model.can(Task.SURPRISAL)
    assert not model.can(Task.PARSE)
    assert "the" in model.vocabulary.symbols
    assert model.details()["architecture"] == "GPT2LMHeadModel"
    again = treelm.load(f"hf:{folder}")
    assert isinstance(again, NeuralModel)
    assert again.fingerprint == model.fingerprint
    with pytest.raises(UnsupportedTask, match="save_pretrained"):
        model.save(tmp_path / "model")
    with pytest.raises(ModelFileError, match="there is no folder"):
        treelm.load("hf:nowhere")
    with pytest.raises(ModelFileError, match="cannot read"):
        treelm.load(f"hf:{tmp_path}")
    with pytest.raises(ModelFileError, match="NgramModel"):
        treelm.load(f"hf:{folder}", treelm.NgramModel)
    with pytest.raises(treelm.EstimationError, match="longer than the 64"):
        model.score("boat " * 100)
    ngram = treelm.train("ngram", [tree.words for tree in treelm.sample_treebank()], order=1)
    with pytest.raises(UsageError, match="belongs to the model"):
        model.advance(ngram.initial(), "a")


def test_neural_model_can_be_mixed_with_ours(model: NeuralModel) -> None:
    sentences = [tree.words for tree in treelm.sample_treebank()]
    ngram = treelm.train("ngram", sentences, order=2)
    with pytest.raises(treelm.VocabularyError):
        treelm.interpolate([ngram, model])
    mixed = treelm.interpolate([ngram, model.with_vocabulary(ngram.vocabulary)], [0.75, 0.25])
    text = SENTENCES[0]
    parts = [[w.log_prob for w in m.score(text).words or ()] for m in (ngram, model)]
    expected = np.log(0.75 * np.exp(parts[0]) + 0.25 * np.exp(parts[1]))
    found = [word.log_prob for word in mixed.score(text).words or ()]
    assert found == pytest.approx(expected.tolist(), abs=1e-4)


def test_neural_perplexity_spells_unknown_words(model: NeuralModel) -> None:
    with pytest.warns(TreelmWarning, match="do not sum to 1"):
        found = model.perplexity(SENTENCES)
    total = float(model.sentence_log_probs(SENTENCES).sum())
    assert found.log_prob == pytest.approx(total, abs=1e-3)
    assert found.oov >= 1


def test_neural_model_in_commands(
    folder: Path, model: NeuralModel, tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    text = tmp_path / "text"
    text.write_text("\n".join(SENTENCES) + "\n")
    name = f"hf:{folder}"
    done = treelm_inside(capfdbinary, "surprisal", "-m", name, text, "-q")
    rows = [line.split("\t") for line in assert_fine(done).decode().splitlines()[1:]]
    expected = [word.surprisal for each in SENTENCES for word in model.surprisal(each)]
    assert [float(row[4]) for row in rows] == pytest.approx(expected, abs=1e-3)
    bad = tmp_path / "bad"
    bad.write_text("\n".join(" ".join(reversed(s.split())) for s in SENTENCES) + "\n")
    done = treelm_inside(capfdbinary, "evaluate", "pairs", "-m", name, text, bad, "--json", "-q")
    assert json.loads(assert_fine(done))["n"] == len(SENTENCES)
    ngram = tmp_path / "ngram"
    treelm.train("ngram", [tree.words for tree in treelm.sample_treebank()], order=2).save(ngram)
    done = treelm_inside(capfdbinary, "compare", name, ngram, text, bad, "--json", "-q")
    assert_fine(done, None)
    # What is spelled and what is unknown cannot be compared as a text.
    assert_refused(treelm_inside(capfdbinary, "compare", name, ngram, text), 1, "vocabulary")
