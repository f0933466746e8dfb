"""Smaller n-gram models: pruned and quantised, and what that costs."""

from __future__ import annotations

import math
import pickle
import warnings
from pathlib import Path

import numpy as np
import pytest
from tests.models.ngram_models import sample_sentences, small_ngram
from tests.models.toy_model import ToyModel

from treelm.corpus.corpus import TextCorpus, TreeCorpus
from treelm.errors import (
    CorpusFormatError,
    EstimationError,
    ModelFileError,
    TreelmWarning,
    UnsupportedTask,
    UsageError,
)
from treelm.models.mixture.model import interpolate
from treelm.models.ngram.arpa import read_arpa, write_arpa
from treelm.models.ngram.config import NgramConfig
from treelm.models.ngram.model import NgramModel
from treelm.models.ngram.train import train_ngram
from treelm.models.registry import load
from treelm.tasks.quantize import quantize_model
from treelm.testing.incremental import check_lm

SENTENCES = ["The old ferry left .", "frumious Bandersnatch", "", "Ruth saw it ."]


@pytest.fixture(scope="module")
def model() -> NgramModel:
    return small_ngram(order=3)


@pytest.fixture
def text(tmp_path: Path) -> Path:
    path = tmp_path / "train.txt"
    path.write_text("".join(f"{sentence}\n" for sentence in sample_sentences()))
    return path


def train(text: Path, measure: TextCorpus | None = None, **options) -> NgramModel:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TreelmWarning)
        corpus = TextCorpus((text,))
        return train_ngram(corpus, NgramConfig(**options), measure=measure)


@pytest.mark.parametrize("bits", [8, 16])
def test_a_quantised_model_survives_its_folder(
    model: NgramModel, tmp_path: Path, bits: int
) -> None:
    small = model.quantized(bits)
    assert small.config == model.config.model_copy(
        update={"bits": bits, "rounding": small.config.rounding}
    )
    assert small.fingerprint != model.fingerprint
    assert small.info.bits == bits
    small.save(tmp_path / "small")
    again = load(tmp_path / "small", verify=True)
    assert isinstance(again, NgramModel)
    assert again.config == small.config
    assert again.fingerprint == small.fingerprint == pickle.loads(pickle.dumps(small)).fingerprint
    for sentence in SENTENCES:
        assert again.score(sentence) == small.score(sentence)
        assert small.score(sentence).log_prob == pytest.approx(
            model.score(sentence).log_prob, abs=0.5 if bits == 8 else 1e-6
        )
    assert check_lm(small, SENTENCES).left_out == ("L2",)
    assert check_lm(small, SENTENCES).fine
    assert [len(drawn.words) > 0 for drawn in again.sample(3, seed=1)] == [True] * 3


def test_probabilities_add_up_nearly(model: NgramModel) -> None:
    small = model.quantized(8)
    state = small.initial()
    for word in ["The", "old", "ferry", "left", "."]:
        total = np.exp(small.distribution(state)).sum()
        assert total == pytest.approx(1.0, abs=0.05)
        state = small.advance(state, word).state


def test_states_are_those_of_the_full_model(model: NgramModel) -> None:
    small = model.quantized(8)
    for sentence in sample_sentences()[:40]:
        one, two = model.initial(), small.initial()
        for word in sentence.split():
            one, two = model.advance(one, word).state, small.advance(two, word).state
            assert one.payload() == two.payload()


def test_a_quantised_model_as_an_arpa_file(model: NgramModel, tmp_path: Path) -> None:
    small = model.quantized(8)
    write_arpa(small, tmp_path / "small.arpa")
    again = read_arpa(tmp_path / "small.arpa")
    assert again.config.bits is None
    for sentence in SENTENCES:
        expected = small.score(sentence).log_prob
        assert again.score(sentence).log_prob == pytest.approx(expected, abs=1e-4)


def test_a_folder_must_say_what_its_table_is(model: NgramModel, tmp_path: Path) -> None:
    small = model.quantized(8)
    for table, config in (
        (small.table, model.config),
        (model.table, small.config),
        (small.table, small.config.model_copy(update={"bits": 16})),
    ):
        forged = NgramModel(table, model.vocabulary, model.unigram_counts, config)
        forged.save(tmp_path / "forged")
        with pytest.raises(ModelFileError) as caught:
            load(tmp_path / "forged")
        assert caught.value.code == "E_MODEL_TABLES"


def test_quantising_twice_is_refused(model: NgramModel, tmp_path: Path) -> None:
    small = model.quantized(8)
    with pytest.raises(EstimationError):
        small.quantized(16)
    small.save(tmp_path / "small")
    with pytest.raises(UsageError, match="already"):
        quantize_model(tmp_path / "small", tmp_path / "smaller", 8)
    assert not (tmp_path / "smaller").exists()


def test_mixtures_quantise_their_parts(model: NgramModel, tmp_path: Path) -> None:
    other = small_ngram(sample_sentences()[:150], order=2, vocabulary=model.vocabulary)
    mixture = interpolate([model, interpolate([other], [1.0])], [0.25, 0.75])
    mixture.save(tmp_path / "mixture")
    done = quantize_model(tmp_path / "mixture", tmp_path / "small", 8)
    assert [name for name, _ in done.roundings] == ["part 0: ", "part 1: part 0: "]
    assert done.costs()[0].startswith("part 0: stored log2 probabilities moved by")
    again = load(tmp_path / "small")
    assert again.info.bits == 8
    assert again.score(SENTENCES[0]).log_prob == done.model.score(SENTENCES[0]).log_prob
    assert again.score(SENTENCES[0]).log_prob == pytest.approx(
        mixture.score(SENTENCES[0]).log_prob, abs=0.5
    )


def test_only_tables_can_be_quantised() -> None:
    toy = ToyModel.of()
    for model in (toy, interpolate([toy], [1.0])):
        with pytest.raises(UnsupportedTask, match="toy"):
            model.quantized(8)


@pytest.mark.parametrize(
    "options",
    [
        {"order": 3, "bits": 8},
        {"order": 3, "min_count": (1, 2)},
        {"order": 3, "min_count": (1, 1, 2), "bits": 8, "smoothing": "kn"},
        {"order": 1, "bits": 16},
    ],
)
def test_the_loss_is_that_of_both_models(text: Path, options: dict[str, object]) -> None:
    small = train(text, **options)
    full = train(text, **{**options, "bits": None, "min_count": (1,)})
    assert full.config.loss is None
    loss = small.config.loss
    assert loss is not None
    assert (loss.text, loss.sentences, loss.tokens) == (str(text), 325, 3860)
    before, after = (each.perplexity(TextCorpus((text,))) for each in (full, small))
    assert loss.full_bits_per_word == pytest.approx(before.bits_per_word, rel=1e-12)
    assert loss.bits_per_word == pytest.approx(after.bits_per_word, rel=1e-12)
    assert loss.full_perplexity == pytest.approx(before.perplexity, rel=1e-12)
    assert loss.perplexity == pytest.approx(after.perplexity, rel=1e-12)
    assert f"{after.bits_per_word:.4f} ({after.perplexity:.2f}) as saved" in str(loss)


def test_the_loss_on_another_text(text: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.txt"
    other.write_text("The ferry left .\nA frumious Bandersnatch !\n")
    small = train(text, TextCorpus((other,)), order=3, min_count=(1, 2))
    loss = small.config.loss
    assert loss is not None
    assert (loss.text, loss.sentences, loss.tokens) == (str(other), 2, 8)
    found = small.perplexity(TextCorpus((other,)))
    assert loss.bits_per_word == pytest.approx(found.bits_per_word, rel=1e-12)
    small.save(tmp_path / "small")
    assert load(tmp_path / "small").config == small.config
    other.write_text("\n")
    with pytest.raises(CorpusFormatError, match=r"other\.txt"):
        train(text, TextCorpus((other,)), order=3, bits=8)


def test_training_without_measuring_gives_the_same_table(text: Path) -> None:
    measured = train(text, order=3, bits=8, min_count=(1, 2))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TreelmWarning)
        plain = train_ngram(
            TextCorpus((text,)), NgramConfig(order=3, bits=8, min_count=(1, 2)), no_measure=True
        )
    assert plain.config.loss is None
    assert plain.config.rounding == measured.config.rounding
    for name, array in plain.table.to_tensors("t").items():
        assert np.array_equal(array, measured.table.to_tensors("t")[name])


def test_a_text_that_is_impossible(text: Path, tmp_path: Path) -> None:
    """Berkeley's smoothing gives words never seen no probability; that must not break the folder."""
    other = tmp_path / "other.txt"
    other.write_text("frumious Bandersnatch\n")
    small = train(text, TextCorpus((other,)), order=2, smoothing="berkeley", bits=8)
    loss = small.config.loss
    assert loss is not None
    assert loss.full_bits_per_word is loss.bits_per_word is None
    assert math.isinf(loss.perplexity)
    assert "inf" in str(loss)
    assert loss.to_record()["perplexity"] is None
    small.save(tmp_path / "small")
    assert load(tmp_path / "small").config.loss == loss


def test_trees_are_measured_too(tmp_path: Path) -> None:
    path = tmp_path / "some.mrg"
    path.write_text("(S (NP (DT the) (NN boat)) (VP (VBD left)))\n" * 3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TreelmWarning)
        model = train_ngram(TreeCorpus((path,)), NgramConfig(order=2, bits=8))
    assert model.config.loss is not None
    assert model.config.loss.tokens == 9
