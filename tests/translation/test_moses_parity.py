"""The decoder beside Moses: same table, weights and 5-gram model, same translations and scores."""

from __future__ import annotations

from itertools import islice
from pathlib import Path

import pytest

from treelm.corpus.nbest import read_moses
from treelm.models.ngram.arpa import read_arpa
from treelm.translation.decoder import Decoder, DecoderConfig
from treelm.translation.phrase_table import PhraseTable
from treelm.translation.weights import Weights

SENTENCES = 100


@pytest.fixture(scope="module")
def multi30k(shared_data: Path) -> Path:
    """The data of a Moses system, with what it said about the development set."""
    folder = shared_data / "mt" / "multi30k"
    if not folder.is_dir():
        pytest.skip(f"no data of a Moses system at {folder}")
    return folder


@pytest.mark.slow
def test_decoder_translates_as_moses_does(multi30k: Path) -> None:
    decoder = Decoder(
        PhraseTable.read(multi30k / "phrase-table.gz"),
        [read_arpa(multi30k / "lm5.arpa.gz")],
        Weights.read(multi30k / "weights.ini"),
        DecoderConfig(distortion_limit=6),  # as it was tuned
    )
    source = (multi30k / "val.de").read_text("utf-8").splitlines()[:SENTENCES]
    moses = list(islice(read_moses(multi30k / "val.nbest.xz"), SENTENCES))
    ours = list(decoder.translate(source, n_best=100, distinct=True, threads=2))
    same = sum(a.words == b.hypotheses[0].words for a, b in zip(ours, moses, strict=True))
    assert same >= 0.95 * SENTENCES
    compared = 0
    for mine, theirs in zip(ours, moses, strict=True):
        # Moses scores its best translation no higher than we do ours, as far as it writes digits.
        assert theirs.hypotheses[0].score is not None
        assert mine.score is not None
        assert mine.score >= theirs.hypotheses[0].score - 1e-3
        known = {entry.words: entry for entry in mine.entries}
        for each in theirs.hypotheses[:100]:
            entry = known.get(each.words)
            if entry is None or each.score is None:
                continue
            phrases = float(each.features["PhrasePenalty0"][0])
            scores = [float(value) for value in each.features["TranslationModel0"]]
            if entry.features["PhrasePenalty0"] == (phrases,) and entry.features[
                "TranslationModel0"
            ] == pytest.approx(scores, abs=2e-3):
                compared += 1
                assert entry.score == pytest.approx(each.score, abs=1e-3)
    assert compared > 50 * SENTENCES
