"""What follows from initial, advance and finish, on a model that anyone can check by hand."""

from __future__ import annotations

import math
import pickle
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from tests.models.toy_model import SENTENCES, ToyModel, ToySentences

from treelm.corpus.vocabulary import Vocabulary
from treelm.errors import ModelFileError, UnsupportedTask, UsageError, VocabularyError
from treelm.models.interface.model import Task
from treelm.models.interface.states import Context
from treelm.models.interface.words import WordIds, check_vocabularies

HOUSES = ("the house", "the dog", "a house dog", "a dog")


def test_worked_example_of_the_specification() -> None:
    model = ToyModel.of(HOUSES, added=0.0)
    assert model.score_sentence("the house") == pytest.approx(-2.0794415416798357, abs=1e-15)
    after = [model.score_phrase(model.initial(), words).state for words in ("the house", "a house")]
    assert model.key(after[0]) == model.key(after[1])


def test_score_gives_words_end_and_kind() -> None:
    model = ToyModel.of()
    score = model.score("the  ship\tleft")
    assert [row.word for row in score.words or ()] == ["the", "ship", "left"]
    assert [row.oov for row in score.words or ()] == [False, True, False]
    assert score.end is not None
    assert score.log_prob == pytest.approx(model.score_sentence(["the", "ship", "left"]))
    assert score.exactness == "exact"
    short = model.score("the ship left", eos=False)
    assert short.end is None
    assert short.log_prob == pytest.approx(score.log_prob - score.end)
    assert score.surprisal == pytest.approx(-score.log_prob / math.log(2))


def test_sentence_of_no_words_is_its_end() -> None:
    model = ToyModel.of()
    assert model.score("").log_prob == model.finish(model.initial())
    assert model.score([], eos=False).log_prob == 0.0
    assert model.surprisal("") == []


def test_no_break_space_is_part_of_a_word() -> None:
    assert len(ToyModel.of().score("the\u00a0boat left").words or ()) == 2


def test_score_many_keeps_order_over_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("treelm.models.interface.incremental.BATCH", 3)
    model = ToyModel.of()
    sentences = [*SENTENCES, "", *SENTENCES]
    scores = list(model.score_many(iter(sentences), threads=2))
    assert [score.log_prob for score in scores] == [model.score(s).log_prob for s in sentences]
    flat = model.sentence_log_probs(sentences)
    assert flat == pytest.approx([score.log_prob for score in scores])
    without = model.sentence_log_probs(sentences, eos=False)
    assert without == pytest.approx([model.score(s, eos=False).log_prob for s in sentences])
    assert model.sentence_log_probs([]).shape == (0,)


def test_surprisal_is_in_bits_and_the_end_a_row_when_asked() -> None:
    model = ToyModel.of(HOUSES, added=0.0)
    rows = model.surprisal("the house", eos=True)
    assert [(row.word, row.surprisal) for row in rows] == [
        ("the", 1.0),
        ("house", 1.0),
        ("</s>", 1.0),
    ]
    assert len(model.surprisal("the house")) == 2


def test_impossible_words_are_minus_infinity_and_never_nan() -> None:
    model = ToyModel.of(HOUSES, added=0.0)
    assert model.score("dog the").log_prob == -math.inf
    assert model.score("house a the").log_prob == -math.inf
    assert model.surprisal("dog")[0].surprisal == math.inf


def test_advance_many_computes_equal_pairs_once() -> None:
    model = ToyModel.of()
    start = model.initial()
    model.reset_stats()
    steps = model.advance_many([start] * 4, ["the", "a", "the", "the"])
    assert model.stats() == {"advances": 2, "cache_hits": 2}
    assert steps.log_probs.tolist() == [
        model.advance(start, w).log_prob for w in ("the", "a", "the", "the")
    ]
    assert len(model.advance_many([], []).states) == 0
    model.reset_stats()
    assert model.stats() == {}


def test_advance_many_names_both_lengths() -> None:
    model = ToyModel.of()
    with pytest.raises(ValueError, match="2 states and 3 words"):
        model.advance_many([model.initial()] * 2, ["a", "b", "c"])


@pytest.mark.parametrize(
    ("word", "code"),
    [
        ("<s>", "E_RESERVED_SYMBOL"),
        ("</s>", "E_RESERVED_SYMBOL"),
        ("", "E_BAD_TOKEN"),
        ("two words", "E_BAD_TOKEN"),
        ("line\n", "E_BAD_TOKEN"),
        (-1, "E_BAD_TOKEN"),
        (10_000, "E_BAD_TOKEN"),
        (8, "E_RESERVED_SYMBOL"),
        (9, "E_RESERVED_SYMBOL"),
    ],
)
def test_what_is_no_word_is_refused(word: str | int, code: str) -> None:
    model = ToyModel.of()
    assert len(model.vocabulary) == 8
    with pytest.raises(VocabularyError) as caught:
        model.advance(model.initial(), word)
    assert caught.value.code == code
    if isinstance(word, str):
        with pytest.raises(VocabularyError) as caught:
            model.score(["the", word])
        assert caught.value.code == code


def test_ids_are_words_too() -> None:
    model = ToyModel.of()
    start = model.initial()
    number = model.vocabulary.symbols.index("boat")
    assert model.advance(start, number) == model.advance(start, "boat")


def test_state_of_another_model_is_refused() -> None:
    model, other = ToyModel.of(), ToyModel.of(HOUSES)
    state = other.initial()
    calls = [
        lambda: model.advance(state, "the"),
        lambda: model.finish(state),
        lambda: model.key(state),
        lambda: model.end_sentence(state),
        lambda: model.advance_many([state], ["the"]),
        lambda: model.distribution(state),
        lambda: model.state_from_bytes(state.to_bytes()),
    ]
    for call in calls:
        with pytest.raises(UsageError) as caught:
            call()
        assert caught.value.code == "E_STATE_MODEL"


def test_states_outlive_their_model() -> None:
    model = ToyModel.of()
    state = model.score_phrase(model.initial(), "the old").state
    again = pickle.loads(pickle.dumps(model))
    assert again.advance(state, "boat") == model.advance(state, "boat")


def test_distribution_of_some_words_and_of_all() -> None:
    model = ToyModel.of()
    state = model.initial()
    everything = model.distribution(state)
    assert np.exp(everything).sum() == pytest.approx(1.0)
    some = model.distribution(state, ["boat", "ship", 1])
    assert some[1] == everything[0]
    assert some[2] == everything[1]


def test_documents_begin_with_empty_contexts() -> None:
    model = ToyModel.of()
    state = model.score_phrase(model.initial(Context("news")), "the boat").state
    assert model.end_sentence(state) == Context()
    assert model.initial(model.end_sentence(state)) == model.initial()


def test_estimate_expects_the_best_unless_a_system_knows_more() -> None:
    model = ToyModel.of()
    assert model.estimate("the boat") == 0.0
    with pytest.raises(VocabularyError):
        model.estimate(["a b"])


def test_samples_depend_on_seed_and_number_alone() -> None:
    model = ToyModel.of()
    ten = model.sample(10, seed=3)
    assert model.sample(4, seed=3, first=6) == ten[6:]
    assert model.sample(10, seed=4) != ten
    for each in ten:
        assert each.complete
        known = [word for word in each.words if word != "<unk>"]
        assert each.log_prob == pytest.approx(model.score(each.words).log_prob)
        assert set(known) <= set(model.vocabulary.symbols)


def test_samples_are_cut_and_marked() -> None:
    cut = [each for each in ToyModel.of().sample(50, seed=1, max_words=2) if not each.complete]
    assert cut
    assert {len(each.words) for each in cut} == {2}
    model = ToyModel.of()
    for each in cut:
        assert each.log_prob == pytest.approx(model.score(each.words, eos=False).log_prob)


def test_samples_follow_the_distribution() -> None:
    model = ToyModel.of(HOUSES, added=0.0)
    drawn = [each.words[0] for each in model.sample(2000, seed=1)]
    assert drawn.count("the") == pytest.approx(1000, abs=100)


def test_one_state_in_many_threads() -> None:
    model = ToyModel.of()
    state = model.initial()
    with ThreadPoolExecutor(4) as pool:
        steps = list(pool.map(lambda word: model.advance(state, word), ["the", "a"] * 200))
    assert len(set(steps)) == 2


def test_whole_sentence_models_do_not_advance() -> None:
    model = ToySentences(ToyModel.of())
    assert model.score("the boat").log_prob == model.inner.score("the boat").log_prob
    assert model.sentence_log_probs(["the boat"]).tolist() == [model.score("the boat").log_prob]
    state = model.inner.initial()
    for call in (model.initial, lambda: model.advance(state, "a"), lambda: model.finish(state)):
        with pytest.raises(UnsupportedTask) as caught:
            call()
        assert caught.value.code == "E_NOT_INCREMENTAL"
        assert caught.value.exit_code == 2


def test_require_names_what_the_system_does() -> None:
    with pytest.raises(UnsupportedTask, match="It can: perplexity, score"):
        ToySentences(ToyModel.of()).require(Task.SAMPLE)


def test_load_refuses_a_model_of_another_system(tmp_path: Path) -> None:
    ToyModel.of().save(tmp_path / "toy")
    assert ToyModel.load(tmp_path / "toy", verify=True).fingerprint == ToyModel.of().fingerprint
    with pytest.raises(ModelFileError) as caught:
        ToySentences.load(tmp_path / "toy")
    assert caught.value.code == "E_MODEL_SYSTEM"


def test_word_ids_know_positions_and_unknown_words() -> None:
    vocabulary = Vocabulary.from_counts(
        {"boat": 2}, signatures={"UNK-INITC": 1, "UNK-CAPS": 1, "UNK-LC": 1}
    )
    ids = WordIds(vocabulary)
    assert ids.position_matters
    shown = [vocabulary.symbols[ids.word("Ruth", first=first)] for first in (True, False)]
    assert shown[0] != shown[1]
    assert ids.is_oov.tolist() == [True, False, True, True, True, False]
    assert not WordIds(Vocabulary.from_counts({"boat": 1})).position_matters


def test_vocabularies_that_differ_are_refused_with_examples() -> None:
    first = Vocabulary.from_counts({f"a{n}": 1 for n in range(9)})
    other = Vocabulary.from_counts({f"a{n}": 1 for n in range(3)} | {"b": 1})
    check_vocabularies([first, first])
    with pytest.raises(VocabularyError) as caught:
        check_vocabularies([first, other])
    assert caught.value.code == "E_VOCABULARY_MISMATCH"
    assert "Only the first knows: a3 a4 a5 a6 a7. Only the other knows: b." in str(caught.value)
    moved = Vocabulary.from_counts({"x": 2, "y": 1})
    with pytest.raises(VocabularyError, match="different ids: x/y y/x"):
        check_vocabularies([moved, Vocabulary.from_counts({"x": 1, "y": 2})])
    with pytest.raises(VocabularyError, match="rules of the signatures differ"):
        check_vocabularies([moved, Vocabulary(moved.entries, "neutral")])
