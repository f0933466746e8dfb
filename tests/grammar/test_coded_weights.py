"""Weights of grammars as codes: almost the same numbers, a proper grammar, the same bytes again."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from tests.command_line import assert_fine, assert_refused, treelm_inside
from tests.fuzz.small_models import few

import treelm
from treelm.errors import ModelFileError, UsageError
from treelm.grammar.coded_weights import BITS, decoded, encoded
from treelm.models.interface.model import LanguageModel
from treelm.models.registry import train

WEIGHTS = arrays(
    np.float64,
    st.integers(0, 900),
    elements=st.one_of(st.just(0.0), st.floats(1e-30, 1e6)),
    fill=st.just(0.0),
)


@pytest.fixture(scope="module")
def grammar() -> LanguageModel:
    rounds = {"split_iterations": 3, "merge_iterations": 2, "smooth_iterations": 2}
    return train("pcfg_la", few(), cycles=2, seed=1, **rounds)


@given(WEIGHTS)
def test_few_distinct_weights_come_back_as_they_were(weights: np.ndarray) -> None:
    if len(np.unique(weights)) >= 1 << BITS:
        weights = np.round(weights, 1)
    found = decoded(encoded("w", weights), "w", len(weights))
    assert np.allclose(found, weights, rtol=1e-12, atol=0)


def test_many_weights_move_little() -> None:
    weights = np.exp(-np.random.default_rng(1).gamma(3.0, 2.0, 20_000))
    weights[::3] = 0.0
    found = decoded(encoded("w", weights), "w", len(weights))
    kept = weights > 0
    assert np.array_equal(found > 0, kept)
    moved = np.abs(np.log2(found[kept] / weights[kept]))
    assert moved.mean() < 0.05
    widest = np.ptp(np.log2(weights[kept])) / 128  # half of the bins share the range
    assert moved.max() <= widest


def test_small_weights_are_dropped_and_long_gaps_are_bridged() -> None:
    weights = np.zeros(5000)
    weights[[0, 254, 255, 600, 4999]] = [0.5, 0.25, 1e-9, 0.125, 1.0]
    tables = encoded("w", weights, least=1e-6)
    assert len(tables["w_codes"]) < 40
    found = decoded(tables, "w", len(weights))
    weights[255] = 0.0
    assert np.allclose(found, weights, rtol=1e-12, atol=0)


def test_codes_that_do_not_fit_are_refused() -> None:
    tables = encoded("w", np.array([0.0, 0.0, 0.0, 0.5]))
    with pytest.raises(ModelFileError, match="does not fit 3 weights"):
        decoded(tables, "w", 3)
    tables["w_gaps"][0] = 0
    with pytest.raises(ModelFileError, match="does not fit"):
        decoded(tables, "w", 4)
    with pytest.raises(ModelFileError, match="2 codes for 3 weights"):
        decoded(encoded("w", np.array([0.5, 0.5])), "w", 3)


def test_grammar_of_codes_is_proper_and_parses_alike(
    grammar: LanguageModel, tmp_path: Path
) -> None:
    small = grammar.quantized(8)
    assert (grammar.info.bits, small.info.bits) == (None, 8)
    small.grammar.check_normalized(1e-12)
    sentences = [tree.words for tree in few()]
    found = [small.parse(words)[0] for words in sentences]
    assert [each.tree for each in found] == [grammar.parse(words)[0].tree for words in sentences]
    own = grammar.sentence_log_probs(sentences)
    assert np.allclose(small.sentence_log_probs(sentences), own, atol=0.5)
    assert [name for name, _ in small.roundings] == ["rules: ", "words: "]

    small.save(tmp_path / "small")
    grammar.save(tmp_path / "full")
    again = treelm.load(tmp_path / "small")
    assert np.array_equal(again.sentence_log_probs(sentences), small.sentence_log_probs(sentences))
    again.save(tmp_path / "again")
    name = "tables.safetensors"
    assert (tmp_path / "again" / name).read_bytes() == (tmp_path / "small" / name).read_bytes()
    assert (tmp_path / "small" / name).stat().st_size < (tmp_path / "full" / name).stat().st_size


def test_closed_lexicon_keeps_its_numbers() -> None:
    closed = train("pcfg", few(), lexicon="closed")
    small = closed.quantized(8)
    assert small.info.normalized
    assert np.array_equal(small.lexicon.entry_scores, closed.lexicon.entry_scores)


def test_codes_of_grammars_have_eight_bits(grammar: LanguageModel) -> None:
    with pytest.raises(UsageError, match="codes of 8 bits, not 4"):
        grammar.quantized(4)


def test_convert_writes_grammars_as_codes(
    grammar: LanguageModel, tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    grammar.save(tmp_path / "full")
    done = treelm_inside(
        capfdbinary, "convert", tmp_path / "full", tmp_path / "small", "--bits", "8"
    )
    assert_fine(done, stderr=None)
    assert b"rules: log2 weights moved by" in done.stderr
    again = treelm_inside(
        capfdbinary, "convert", tmp_path / "small", tmp_path / "smaller", "--bits", "8"
    )
    assert_refused(again, 2, "already quantised")
