"""Every model that goes word by word keeps the laws L1 to L8."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.models.composite_models import sample_composite
from tests.models.hhmm_cases import sample_model
from tests.models.ngram_models import small_ngram
from tests.models.plsa_models import sample_topics
from tests.models.toy_model import SENTENCES, ToyModel, ToyState

from treelm.corpus.corpus import TreeCorpus
from treelm.corpus.sample_treebank import sample_path
from treelm.corpus.vocabulary import Vocabulary
from treelm.corpus.words import Word
from treelm.errors import UnsupportedTask, UsageError
from treelm.models.interface.incremental import IncrementalModel
from treelm.models.interface.model import LanguageModel
from treelm.models.interface.states import State, Step
from treelm.models.mixture.model import interpolate
from treelm.models.ngram.arpa import read_arpa, write_arpa
from treelm.models.registry import train
from treelm.testing.contracts import check_contract, laws
from treelm.testing.incremental import check_lm, incremental_cases

CASES = (*incremental_cases(4), *SENTENCES, "a boat Boat boats BOAT")


def signatures() -> Vocabulary:
    return Vocabulary.from_counts(
        {"the": 3, "boat": 2, "left": 2},
        signatures={"UNK-LC": 2, "UNK-INITC": 1, "UNK-INITC-KNOWNLC": 1, "UNK-LC-s": 1},
    )


def incremental(model: LanguageModel) -> IncrementalModel:
    assert isinstance(model, IncrementalModel)
    return model


def with_ngram(model: IncrementalModel, *, order: int) -> IncrementalModel:
    ngram = small_ngram(order=order, vocabulary=model.vocabulary)
    return incremental(interpolate([model, ngram], [0.4, 0.6]))


def toy_mixture() -> IncrementalModel:
    one = ToyModel.of(vocabulary=signatures())
    two = ToyModel.of(["left the boat", "boats"], signatures(), added=0.25)
    return incremental(
        interpolate([one, two, interpolate([two, one], [1.0, 0.0])], [0.5, 0.2, 0.3])
    )


def from_arpa() -> IncrementalModel:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.arpa"
        write_arpa(small_ngram(order=3), path)
        return read_arpa(path)


def ngram_mixture() -> IncrementalModel:
    one = small_ngram(order=3)
    two = small_ngram(order=1, vocabulary=one.vocabulary)
    return incremental(interpolate([one, two], [0.75, 0.25]))


def small_pcfg(**options: object) -> IncrementalModel:
    return incremental(train("pcfg", TreeCorpus((sample_path(),)), **options))


def pcfg_mixture() -> IncrementalModel:
    one = small_ngram(order=3)
    two = small_pcfg(lexicon="closed", vocabulary=one.vocabulary)
    return incremental(interpolate([one, two], [0.5, 0.5]))


SUBJECTS: dict[str, Callable[[], IncrementalModel]] = {
    "toy": ToyModel.of,
    "toy-signatures": lambda: ToyModel.of(vocabulary=signatures()),
    "toy-mixture": toy_mixture,
    **{
        f"ngram-{smoothing}-{order}": lambda smoothing=smoothing, order=order: small_ngram(
            order=order, smoothing=smoothing
        )
        for smoothing in ("kn", "mkn", "jm", "berkeley")
        for order in (1, 2, 3, 5)
    },
    "ngram-lmplz": lambda: small_ngram(order=3, lmplz=True),
    "ngram-pruned": lambda: small_ngram(order=3, min_count=(1, 1, 2)),
    "ngram-signatures-1": lambda: small_ngram(order=1, vocabulary=signatures()),
    "ngram-signatures-3": lambda: small_ngram(order=3, vocabulary=signatures()),
    "ngram-arpa": from_arpa,
    "ngram-mixture": ngram_mixture,
    **{
        f"hhmm-{precision}-beam-{beam}": lambda beam=beam, precision=precision: sample_model(
            depth=2, beam_width=beam, precision=precision
        )
        for beam, precision in [
            (1, "fast"),
            (2, "fast"),
            (5, "fast"),
            (5, "exact"),
            (2000, "fast"),
            (2000, "exact"),
        ]
    },
    "hhmm-signature": lambda: sample_model(depth=2, beam_width=50, observation="signature"),
    "hhmm-bayes": lambda: sample_model(depth=2, beam_width=20, observation="bayes"),
    "hhmm-counts": lambda: sample_model(depth=2, beam_width=50, estimation="counts"),
    "hhmm-ngram-mixture": lambda: with_ngram(sample_model(depth=2, beam_width=20), order=2),
    "slm": lambda: sample_composite(order=1),
    "slm-not-merged": lambda: sample_composite(order=1, stack_size=12, threshold=12.0, merge=False),
    "slm-unary": lambda: sample_composite(order=1, unary_moves=True),
    "composite": lambda: sample_composite(order=3, head_labels=False),
    "composite-without-heads": lambda: sample_composite(order=3, heads=0),
    "composite-topics": lambda: sample_composite(
        order=2, topics=6, keep_topics=3, test_topics=2, eta=0.2, iterations=1
    ),
    "composite-ngram-mixture": lambda: with_ngram(sample_composite(order=1), order=3),
    **{f"plsa-{order}": lambda order=order: sample_topics(order=order) for order in (1, 2, 3)},
    "plsa-all-topics": lambda: sample_topics(order=2, keep_topics=6, test_topics=0),
    "plsa-none": lambda: sample_topics(order=3, topics=0),
    "plsa-fixed": lambda: sample_topics(order=2, adapt=False),
    "plsa-signatures": lambda: sample_topics(order=2, vocabulary=signatures()),
    "plsa-mixture": lambda: with_ngram(sample_topics(order=2), order=2),
    "pcfg": small_pcfg,
    "pcfg-closed": lambda: small_pcfg(lexicon="closed"),
    "pcfg-signatures": lambda: small_pcfg(lexicon="closed", vocabulary=signatures()),
    "pcfg-markovized": lambda: small_pcfg(
        lexicon="closed", vertical_order=2, binarization="right", horizontal_order=1
    ),
    "pcfg-mixture": pcfg_mixture,
}


@pytest.mark.slow
@pytest.mark.parametrize("name", SUBJECTS)
def test_incremental_model_keeps_its_contract(name: str) -> None:
    check_contract("incremental", SUBJECTS[name](), CASES)


def test_there_are_eight_laws() -> None:
    assert [each.code for each in laws("incremental")] == [f"L{number}" for number in range(1, 9)]


class Forgetful(ToyModel):
    """Counts the end twice, and forgets which words it saw when it is asked for many."""

    def finish(self, state: State) -> float:
        return super().finish(state) / 2

    def key(self, state: State) -> int:
        return 7

    def advance(self, state: State, word: Word) -> Step:
        step = super().advance(state, word)
        return Step(step.log_prob + 0.1, ToyState(step.state.last, self.fingerprint))  # type: ignore


def test_check_lm_says_which_laws_are_broken() -> None:
    report = check_lm(Forgetful.of(), SENTENCES)
    assert not report.fine
    assert set(report.broken) == {"L2", "L5"}
    assert "sum to" in report.broken["L2"]
    assert "L2  BROKEN" in str(report)
    assert "L1  kept" in str(report)


def test_check_lm_leaves_normalization_out_where_the_model_claims_none() -> None:
    class Improper(ToyModel):
        info = property(  # type: ignore[assignment]
            lambda self: type(super().info)(  # type: ignore[misc]
                exactness="exact", normalized=False, vocabulary=self.vocabulary.fingerprint
            )
        )

        def finish(self, state: State) -> float:
            return -math.inf

    report = check_lm(Improper.of(), SENTENCES)
    assert report.fine
    assert report.left_out == ("L2",)


def test_check_lm_survives_a_model_that_fails() -> None:
    class Broken(ToyModel):
        def state_from_bytes(self, data: bytes) -> ToyState:
            raise KeyError("lost")

    assert set(check_lm(Broken.of(), SENTENCES).broken) == {"L8"}


@pytest.mark.parametrize("name", SUBJECTS)
def test_continuations_and_next_words_are_those_of_states(name: str) -> None:
    model = SUBJECTS[name]()
    words = ("The", "old", "ferry", "frumious", "left", ".")
    context, rest = words[:2], words[2:]
    whole = model.score(words)
    before, after = model.continuation(context), model.continuation(rest, context, eos=True)
    assert before.log_prob + after.log_prob == pytest.approx(whole.log_prob, rel=1e-6)
    assert whole.words is not None
    assert before.words is not None
    assert after.words is not None
    for row, same in zip((*before.words, *after.words), whole.words, strict=True):
        assert (row.word, row.oov) == (same.word, same.oov)
        assert row.log_prob == pytest.approx(same.log_prob, rel=1e-6, abs=1e-9)
    assert (after.end, after.eos) == (pytest.approx(whole.end, rel=1e-6), True)
    assert (before.end, before.eos) == (None, False)
    state = model.score_phrase(model.initial(), context).state
    everything = model.top(len(model.vocabulary) + 1, " ".join(context))
    expected = sorted(model.distribution(state).tolist(), reverse=True)
    assert [row.log_prob for row in everything] == expected
    for row in everything[:5]:
        alone = (
            model.finish(state)
            if row.word == "</s>"
            else model.advance(state, model.vocabulary.symbols.index(row.word)).log_prob
        )
        assert alone == pytest.approx(row.log_prob, rel=1e-6)
        assert row.probability == math.exp(row.log_prob)
    assert model.top(3, context) == everything[:3]
    with pytest.raises(UsageError):
        model.top(0)


def test_fragments_begin_in_the_middle_of_a_sentence() -> None:
    one = small_ngram(order=3)
    mixture = ngram_mixture()
    ferry = one.vocabulary.symbols.index("ferry")
    alone = float(one.table.log_probabilities([[ferry, 0xFFFFFFFF, 0xFFFFFFFF]])[0])
    assert one.score("ferry", bos=False, eos=False).log_prob == pytest.approx(alone)
    assert one.score("ferry", bos=False, eos=False) != one.score("ferry", eos=False)
    given = ["ferry left", "left the harbour"]
    for model in (one, mixture):
        assert list(model.score_many(given, bos=False)) == [
            model.score(each, bos=False) for each in given
        ]
        # what is seen is all that counts: two words are a whole context
        inside = model.continuation("harbour", "left the", bos=False).log_prob
        assert inside == pytest.approx(model.continuation("harbour", "he left the").log_prob)
        assert model.top(1, "left the", bos=False) == model.top(1, "he left the")
    for whole in (ToyModel.of(), small_pcfg(), sample_topics(order=2), pcfg_mixture()):
        with pytest.raises(UnsupportedTask, match="from its start"):
            whole.score("ferry", bos=False)


def test_models_of_whole_sentences_have_no_continuations() -> None:
    model = train("trigram_svm", ([["a", "b"], ["c", "d"]] * 4, [["b", "a"], ["d", "c"]] * 4))
    for ask in (model.top, lambda: model.continuation("b", "a")):
        with pytest.raises(UnsupportedTask) as caught:
            ask()
        assert caught.value.code == "E_NOT_INCREMENTAL"


@pytest.mark.parametrize(
    "make", [ToyModel.of, lambda: small_ngram(order=2), lambda: small_pcfg(lexicon="closed")]
)
def test_samples_without_a_seed_differ_and_say_how_to_get_them_again(
    make: Callable[[], IncrementalModel],
) -> None:
    model = make()
    first, second = model.sample(8), model.sample(8)
    assert first != second
    assert {each.seed for each in first} == {first[0].seed}
    assert model.sample(8, seed=first[0].seed) == first
