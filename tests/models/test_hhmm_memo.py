"""What the HHMM has worked out about words is kept, and changes nothing."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from tests.models.hhmm_cases import sample_model
from tests.models.ngram_models import sample_sentences

from treelm.corpus.encoder import encode_sentences
from treelm.models.hhmm.model import HhmmModel

SENTENCES = sample_sentences()


def test_words_that_come_again_are_known_and_scores_stay_the_same() -> None:
    model = sample_model(depth=2).with_search(beam_width=20)
    first = model.score_batch(SENTENCES[:30]).log_probs
    before = model.stats()
    again = model.score_batch(SENTENCES[:30]).log_probs
    after = model.stats()
    assert first.tobytes() == again.tobytes()
    words = _different_beginnings(model, SENTENCES[:30])
    assert before["words_read"] == words
    assert after["words_read"] == 2 * words
    assert after["words_known"] - before["words_known"] > words / 2
    model.reset_stats()
    assert model.stats()["words_read"] == 0


def test_wide_beams_after_narrow_ones_see_everything() -> None:
    """Plans made for heavy stacks must serve light ones too, whatever was asked before."""
    model = sample_model(depth=2)
    fresh = model.with_search(beam_width=200).score_batch(SENTENCES[:20]).log_probs
    one = model.with_search(beam_width=200)
    for sentence in (*SENTENCES[20:40], *SENTENCES[:20]):
        one.score(sentence)
    used = one.score_batch(SENTENCES[:20]).log_probs
    assert fresh.tobytes() == used.tobytes()


def _different_beginnings(model: HhmmModel, sentences: Sequence[str]) -> int:
    """Return how many words must be read: one for each beginning that differs from all others."""
    split = [model.word_ids.sentence(sentence.split()) for sentence in sentences]
    return len({tuple(words[: end + 1]) for words in split for end in range(len(words))})


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_beginnings_that_sentences_share_are_read_once(threads: int) -> None:
    """As the conditions of an item do; scores and measures are those of each sentence alone."""
    model = sample_model(depth=3).with_search(beam_width=50)
    words = " ".join(SENTENCES[:12]).split()
    long = " ".join(words[:100])
    stimuli = [
        "The old ferry left the harbour .",
        "There were storms .",
        "The old ferry left the small harbour .",
        "The old ferry",
        "The old ferry left the harbour .",
        "The old",
        "",
        f"{long} The old ferry",
        f"{long} left the harbour .",
        "Zyxt zyxt zyxt the the the",
        "Zyxt zyxt zyxt the the the left",
    ]
    text = encode_sentences([each.split() for each in stimuli], model.vocabulary)
    scores, measures = model.measure_ids(text.ids, text.starts, threads=threads)
    if threads == 1:
        read = model.stats()["words_read"]
        # Beginnings of more than 64 words are not kept.
        assert read == _different_beginnings(model, stimuli) + 100 - 64
    alone = [model.with_search() for _ in stimuli]
    first = 0
    for one, sentence in zip(alone, stimuli, strict=True):
        own = encode_sentences([sentence.split()], one.vocabulary)
        expected, measured = one.measure_ids(own.ids, own.starts)
        part = slice(first, first + len(expected.log_probs))
        assert scores.log_probs[part].tobytes() == expected.log_probs.tobytes()
        for found, wanted in zip(measures, measured, strict=True):
            assert found[part].tobytes() == wanted.tobytes()
        first = part.stop
    restarts = sum(one.stats()["dead_restarts"] for one in alone)
    assert model.stats()["dead_restarts"] == restarts
