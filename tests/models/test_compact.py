"""Models with compact tables: smaller, with the same scores, states and files."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest
from tests.models.ngram_models import sample_sentences, small_ngram
from tests.models.toy_model import ToyModel

from treelm.errors import EstimationError, ModelFileError, UnsupportedTask, UsageError
from treelm.models.mixture.model import interpolate
from treelm.models.ngram.config import NgramConfig
from treelm.models.ngram.model import NgramModel
from treelm.models.registry import load
from treelm.tasks.quantize import quantize_model
from treelm.testing.incremental import check_lm

SENTENCES = ["The old ferry left .", "frumious Bandersnatch", "", "Ruth saw it ."]


@pytest.fixture(scope="module")
def model() -> NgramModel:
    return small_ngram(order=3)


@pytest.mark.parametrize("bits", [None, 5, 8])
def test_compact_models_score_the_same_and_survive_their_folder(
    model: NgramModel, bits: int | None, tmp_path: Path
) -> None:
    full = model if bits is None else model.quantized(bits)
    compact = full if full.layout == "compact" else full.compacted()
    compact.save(tmp_path / "compact")
    again = load(tmp_path / "compact", verify=True)
    assert isinstance(again, NgramModel)
    assert again.config.layout == "compact"
    assert again.config.bits == bits
    assert again.details()["layout"] == "compact"
    copied = pickle.loads(pickle.dumps(compact))
    assert again.fingerprint == compact.fingerprint == copied.fingerprint
    assert compact.fingerprint != model.fingerprint
    assert compact.table.bytes < model.table.bytes
    for sentence in SENTENCES:
        assert again.score(sentence) == compact.score(sentence)
        if bits is None:
            assert compact.score(sentence) == model.score(sentence)
    assert check_lm(compact, SENTENCES).fine


def test_compact_models_have_the_same_states_and_arpa_files(
    model: NgramModel, tmp_path: Path
) -> None:
    compact = model.compacted()
    for sentence in sample_sentences()[:40]:
        one, two = model.initial(), compact.initial()
        for word in sentence.split():
            first, second = model.advance(one, word), compact.advance(two, word)
            assert first.log_prob == second.log_prob
            one, two = first.state, second.state
            assert one.payload() == two.payload()
        assert model.finish(one) == compact.finish(two)
    for name, each in (("one", model), ("two", compact)):
        each.write_arpa(tmp_path / f"{name}.arpa")
    one_file, two_file = (
        sorted((tmp_path / f"{name}.arpa").read_text().splitlines()) for name in ("one", "two")
    )
    assert one_file == two_file


def test_a_folder_must_say_which_layout_its_table_has(model: NgramModel, tmp_path: Path) -> None:
    compact = model.compacted()
    for table, config in ((compact.table, model.config), (model.table, compact.config)):
        NgramModel(table, model.vocabulary, model.unigram_counts, config).save(tmp_path / "forged")
        with pytest.raises(ModelFileError, match="layout") as caught:
            load(tmp_path / "forged")
        assert caught.value.code == "E_MODEL_TABLES"


def test_converting_to_compact_models(model: NgramModel, tmp_path: Path) -> None:
    source = tmp_path / "model"
    model.save(source)
    done = quantize_model(source, tmp_path / "compact", None, layout="compact")
    assert done.model.layout == "compact"
    assert done.costs() == []
    done = quantize_model(source, tmp_path / "codes", 6, layout="compact")
    assert done.model.info.bits == 6
    assert len(done.costs()) == 1
    with pytest.raises(UsageError, match="already compact"):
        quantize_model(tmp_path / "compact", tmp_path / "again", 8, layout="compact")
    with pytest.raises(UsageError, match=r"layout.* compact"):
        quantize_model(source, tmp_path / "again", 6)
    with pytest.raises(UsageError, match="nothing is to be done"):
        quantize_model(source, tmp_path / "again", None)
    with pytest.raises(UsageError, match="model folder"):
        quantize_model(source, tmp_path / "again.arpa", None, layout="compact")
    assert not (tmp_path / "again").exists()


def test_mixtures_of_compact_parts(model: NgramModel, tmp_path: Path) -> None:
    mixture = interpolate([model, small_ngram(order=2)], [0.5, 0.5])
    assert mixture.layout == "hashed"
    compact = mixture.compacted()
    assert compact.layout == "compact"
    compact.save(tmp_path / "compact")
    again = load(tmp_path / "compact")
    for sentence in SENTENCES:
        assert again.score(sentence).log_prob == mixture.score(sentence).log_prob


def test_what_cannot_be_compact(model: NgramModel) -> None:
    with pytest.raises(EstimationError):
        model.compacted().compacted()
    with pytest.raises(EstimationError):
        model.compacted().quantized(8)
    with pytest.raises(UnsupportedTask, match="ngram, hhmm, treelet"):
        ToyModel.of().compacted()
    with pytest.raises(ValueError, match=r"layout.* compact"):
        NgramConfig(bits=7)
    assert NgramConfig(bits=7, layout="compact").bits == 7
