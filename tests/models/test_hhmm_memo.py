"""What the HHMM has worked out about words is kept, and changes nothing."""

from __future__ import annotations

from tests.models.hhmm_cases import sample_model
from tests.models.ngram_models import sample_sentences

SENTENCES = sample_sentences()


def test_words_that_come_again_are_known_and_scores_stay_the_same() -> None:
    model = sample_model(depth=2).with_search(beam_width=20)
    first = model.score_batch(SENTENCES[:30]).log_probs
    before = model.stats()
    again = model.score_batch(SENTENCES[:30]).log_probs
    after = model.stats()
    assert first.tobytes() == again.tobytes()
    words = sum(len(sentence.split()) for sentence in SENTENCES[:30])
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
