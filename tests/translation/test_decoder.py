"""The decoder against brute force and worked examples: every score, every list, every limit."""

from __future__ import annotations

import math
import random
import warnings
from collections.abc import Sequence
from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.models.toy_model import ToyModel
from tests.reference.phrase_decoder import Pair, ReferenceDecoder, reordering_text, table_text

import treelm
from treelm.corpus.files import Content
from treelm.corpus.lengths import TooLongSentence
from treelm.corpus.nbest import moses_lines, read_moses
from treelm.errors import CorpusFormatError, TreelmWarning, UnsupportedTask, UsageError
from treelm.models.composite.model import CompositeModel
from treelm.models.interface.incremental import IncrementalModel
from treelm.models.interface.model import Task
from treelm.models.ngram.arpa import read_arpa
from treelm.translation import search_models
from treelm.translation.decoder import Decoder, DecoderConfig, Translation
from treelm.translation.phrase_table import PhraseTable
from treelm.translation.weights import Weights

EVERYTHING = DecoderConfig(
    stack_size=None, beam_threshold=0.0, distortion_limit=-1, ttable_limit=0, max_trans_opt=0
)
TEXT = (
    "the house is small",
    "a small house is there",
    "the old house",
    "that house is old",
    "the boat left the old house",
    "small boats left",
)
TREES = """
(S (NP (DT the) (NN house)) (VP (VBZ is) (ADJP (JJ small))))
(S (NP (DT a) (JJ small) (NN house)) (VP (VBZ is) (ADVP (RB there))))
(S (NP (DT that) (NN house)) (VP (VBZ is) (ADJP (JJ old))))
(S (NP (DT the) (NN boat)) (VP (VBD left) (NP (DT the) (JJ old) (NN house))))
(S (NP (JJ small) (NNS boats)) (VP (VBD left)))
"""
SOURCE = ("das", "haus", "ist", "klein", "alt")
TARGET = ("the", "that", "house", "is", "small", "old", "boat", "unheard")

HELD_OUT = "(S (NP (DT a) (JJ small) (NN boat)) (VP (VBZ is) (ADJP (JJ old))))"


def arpa(levels: Sequence[dict[str, float]]) -> Content:
    """Return the ARPA file of probabilities by n-gram."""
    lines = ["\\data\\", *(f"ngram {n}={len(level)}" for n, level in enumerate(levels, 1))]
    for n, level in enumerate(levels, 1):
        lines.append(f"\n\\{n}-grams:")
        weight = "\t0" if n < len(levels) else ""
        lines += [f"{math.log10(p):.12f}\t{words}{weight}" for words, p in level.items()]
    return Content("lm.arpa", "\n".join([*lines, "\n\\end\\", ""]).encode())


# -- the worked example of the specification -------------------------------------------------------

DAS_HAUS = """\
das ||| the ||| 0.8 ||| 0-0
das ||| that ||| 0.2 ||| 0-0
haus ||| house ||| 1.0 ||| 0-0
das haus ||| the house ||| 0.5 ||| 0-0 1-1
"""
DAS_HAUS_WEIGHTS = Weights(
    {
        "TranslationModel0": (1.0,),
        "LM0": (1.0,),
        "Distortion0": (1.0,),
        "WordPenalty0": (0.1,),
        "PhrasePenalty0": (0.0,),
        "UnknownWordPenalty0": (1.0,),
    }
)


@cache
def das_haus_model() -> IncrementalModel:
    quarter, eighth = 0.25, 0.125
    model = read_arpa(
        arpa(
            [
                {"<unk>": 1e-9, "<s>": 1e-99, "</s>": quarter}
                | dict.fromkeys(("the", "that", "house"), quarter),
                {
                    "<s> the": 0.5,
                    "<s> that": quarter,
                    "<s> house": quarter,
                    "the house": 0.5,
                    "that house": quarter,
                    "house the": eighth,
                    "house that": eighth,
                    "house </s>": 0.5,
                    "the </s>": eighth,
                    "that </s>": eighth,
                },
            ]
        ),
        precision="double",
    )
    assert isinstance(model, IncrementalModel)
    return model


def das_haus(config: DecoderConfig = EVERYTHING) -> Decoder:
    table = PhraseTable.read(Content("table", DAS_HAUS.encode()))
    return Decoder(table, [das_haus_model()], DAS_HAUS_WEIGHTS, config)


def test_decoder_gives_the_numbers_of_the_worked_example() -> None:
    [found] = das_haus().translate(["das haus"], n_best=10)
    scores = [(entry.words, round(entry.score, 6)) for entry in found.entries]
    assert scores == [
        (("the", "house"), -2.502585),
        (("the", "house"), -2.972589),
        (("that", "house"), -5.275174),
        (("house", "the"), -8.968321),
        (("house", "that"), pytest.approx(-10.354615, abs=1e-6)),
    ]
    best = found.entries[0]
    assert best.features["LM0"][0] == pytest.approx(math.log(1 / 8), abs=1e-6)
    assert best.features["Distortion0"] == (0.0,)
    assert found.entries[3].features["Distortion0"] == (-3.0,)


def test_decoder_lists_each_string_of_the_worked_example_once() -> None:
    [found] = das_haus().translate(["das haus"], n_best=2, distinct=True)
    assert [" ".join(entry.words) for entry in found.entries] == ["the house", "that house"]
    assert found.text == "the house"


def test_decoder_gives_the_future_costs_of_the_worked_example() -> None:
    [found] = das_haus().translate(["das haus"], graph=True)
    rows = [
        dict(f.split("=", 1) for f in line.split(" ")[1:] if "=" in f)
        for line in found.graph.splitlines()
    ]
    worth = {row["out"]: float(row["fscore"]) for row in rows if row.get("stack") == "1"}
    assert worth == {
        "the": pytest.approx(-2.502585, abs=1e-6),
        "house": pytest.approx(-4.195732, abs=1e-6),
        "that": pytest.approx(-4.582027, abs=1e-6),
    }
    # Two ways lead to the end of the best one, and are kept as alternatives of it.
    assert len([row for row in rows if "recombined" in row]) == 2
    score = {row["out"]: float(row["score"]) for row in rows if row.get("stack") == "1"}
    assert score["house"] == pytest.approx(-2.486294, abs=1e-6)


def test_decoder_keeps_the_order_without_distortion() -> None:
    config = DecoderConfig(distortion_limit=0, stack_size=None, beam_threshold=0.0)
    [found] = das_haus(config).translate(["das haus"], n_best=10)
    assert [round(entry.score, 6) for entry in found.entries] == [-2.502585, -2.972589, -5.275174]


def test_decoder_finds_the_best_of_the_worked_example_with_one_hypothesis_per_stack() -> None:
    [found] = das_haus(DecoderConfig(stack_size=1)).translate(["das haus"])
    assert (found.text, round(found.score or 0, 6)) == ("the house", -2.502585)


def test_decoder_tells_which_words_belong_to_each_other() -> None:
    [found] = das_haus().translate(["das haus neu"], n_best=30, alignments=True)
    by_words = {entry.words: entry.alignment for entry in found.entries}
    assert by_words["the", "house", "neu"] == "0-0 1-1 2-2"
    assert by_words["house", "the", "neu"] == "1-0 0-1 2-2"


# -- brute force -----------------------------------------------------------------------------------


@cache
def ngram_model() -> IncrementalModel:
    model = treelm.train("ngram", [line.split() for line in TEXT], order=3, smoothing="kn")
    assert isinstance(model, IncrementalModel)
    return model


@cache
def hhmm_model(beam_width: int | None = None, **options: object) -> IncrementalModel:
    model = treelm.train(
        "hhmm",
        [treelm.Tree.from_string(line) for line in TREES.strip().splitlines()],
        depth=2,
        beam_width=beam_width,
        precision="exact",
        robust_epsilon=0.01,
        **options,
    )
    assert isinstance(model, IncrementalModel)
    return model


@cache
def hhmm_that_remembers_words() -> IncrementalModel:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TreelmWarning)  # too few words for discounts
        return hhmm_model(word_context=2, tag_context=1)


@cache
def toy_model() -> IncrementalModel:
    return ToyModel.of(TEXT)


@cache
def other_ngram_model() -> IncrementalModel:
    text = [line.split() for line in TEXT]
    words = ngram_model().vocabulary
    model = treelm.train("ngram", text, order=2, smoothing="kn", vocabulary=words)
    assert isinstance(model, IncrementalModel)
    return model


@cache
def hhmm_of_these_words() -> IncrementalModel:
    model = treelm.train(
        "hhmm",
        [treelm.Tree.from_string(line) for line in TREES.strip().splitlines()],
        depth=2,
        beam_width=None,
        precision="exact",
        robust_epsilon=0.01,
        vocabulary=ngram_model().vocabulary,
    )
    assert isinstance(model, IncrementalModel)
    return model


def mixture() -> IncrementalModel:
    """Return a mixture of models that the kernel reads itself."""
    parts = [ngram_model(), other_ngram_model(), hhmm_of_these_words()]
    model = treelm.interpolate(parts, [0.3, 0.5, 0.2])
    assert isinstance(model, IncrementalModel)
    return model


def mixture_with_python() -> IncrementalModel:
    """Return a mixture that is asked through Python."""
    toy = ToyModel.of(TEXT, ngram_model().vocabulary)
    model = treelm.interpolate([ngram_model(), toy], [0.5, 0.5])
    assert isinstance(model, IncrementalModel)
    return model


@cache
def composite_model(topics: int = 0) -> IncrementalModel:
    """Return a composite model that the kernel reads itself."""
    model = treelm.train(
        "composite",
        [treelm.Tree.from_string(line) for line in TREES.strip().splitlines()],
        held_out=[treelm.Tree.from_string(HELD_OUT)],
        order=2,
        heads=2,
        topics=topics,
        keep_topics=max(topics, 1),
        adapt=False,
        min_count=1,
        iterations=0,
        follow_up=0,
        stack_size=3,
    )
    assert isinstance(model, IncrementalModel)
    return model


class PythonComposite(CompositeModel):
    """A composite model that the decoder does not know, and asks through Python."""


def through_python(model: IncrementalModel) -> IncrementalModel:
    assert isinstance(model, CompositeModel)
    return PythonComposite(
        model.parts, model.vocabulary, model.unigram_counts, model.prior, model.corpora
    )


MODELS = {
    "none": (),
    "ngram": (ngram_model,),
    "hhmm": (hhmm_model,),
    "hhmm-of-words": (hhmm_that_remembers_words,),
    "both": (ngram_model, hhmm_model),
    "python": (toy_model,),
    "python-and-both": (toy_model, hhmm_model, ngram_model),
    "composite": (composite_model,),
    "mixture": (mixture,),
    "mixture-with-python": (mixture_with_python,),
}


def random_pairs(seed: int, *, orientations: bool = False, deletions: bool = False) -> list[Pair]:
    """Return a table with up to three translations of every span of one to three words."""
    dice = random.Random(seed)
    pairs: dict[tuple[tuple[str, ...], tuple[str, ...]], Pair] = {}
    for length in (1, 2, 3):
        for _ in range(14):
            source = tuple(dice.choices(SOURCE, k=length))
            if sum(key[0] == source for key in pairs) == 3:
                continue
            least = 0 if deletions and dice.random() < 0.2 else 1
            target = tuple(dice.choices(TARGET, k=dice.randint(least, 2)))
            scores = tuple(dice.choice([0.0, dice.random(), 1.0]) for _ in range(2))
            weights = tuple(dice.random() for _ in range(6)) if orientations else ()
            pairs[source, target] = Pair(source, target, scores, weights)
    return list(pairs.values())


def random_weights(seed: int, models: int, *, orientations: bool = False) -> Weights:
    dice = random.Random(seed)
    sizes = {"LexicalReordering0": 6} if orientations else {}
    sizes |= {"Distortion0": 1, **{f"LM{n}": 1 for n in range(models)}, "WordPenalty0": 1}
    sizes |= {"PhrasePenalty0": 1, "TranslationModel0": 2, "UnknownWordPenalty0": 1}
    return Weights({name: [dice.uniform(-0.2, 1) for _ in range(n)] for name, n in sizes.items()})


def both_decoders(
    seed: int,
    models: Sequence[IncrementalModel],
    config: DecoderConfig,
    *,
    orientations: bool = False,
    deletions: bool = False,
) -> tuple[Decoder, ReferenceDecoder]:
    pairs = random_pairs(seed, orientations=orientations, deletions=deletions)
    weights = random_weights(seed, len(models), orientations=orientations)
    table = PhraseTable.read(
        Content("table", table_text(pairs).encode()),
        reordering=Content("orientations", reordering_text(pairs).encode())
        if orientations
        else None,
        allow_deletion=deletions,
    )
    slow = ReferenceDecoder(pairs, models, weights, config.distortion_limit)
    return Decoder(table, models, weights, config), slow


@pytest.mark.parametrize("search", ["stack", "cube"])
@pytest.mark.parametrize("names", MODELS)
@settings(max_examples=25)
@given(
    seed=st.integers(0, 10**6),
    words=st.lists(st.sampled_from((*SOURCE, "neu")), min_size=1, max_size=4),
)
def test_decoder_finds_what_brute_force_finds(
    names: str, search: str, seed: int, words: list[str]
) -> None:
    config = DecoderConfig(
        search=search,  # type: ignore[arg-type]
        stack_size=None,
        beam_threshold=0.0,
        distortion_limit=-1,
        ttable_limit=0,
        max_trans_opt=0,
        pop_limit=None,
    )
    fast, slow = both_decoders(seed, [make() for make in MODELS[names]], config)
    [found] = fast.translate([words])
    best = slow.derivations(words)[0]
    assert found.score == pytest.approx(best.score, abs=1e-9)
    assert fast.weights.dot(found.entries[0].features) == found.score
    assert not found.relaxed
    assert found.cut is None


@pytest.mark.parametrize("names", ["ngram", "both", "python"])
@pytest.mark.parametrize("limit", [-1, 0, 1, 2])
@settings(max_examples=25)
@given(seed=st.integers(0, 10**6), words=st.lists(st.sampled_from(SOURCE), min_size=1, max_size=4))
def test_decoder_lists_all_derivations_in_order(
    names: str, limit: int, seed: int, words: list[str]
) -> None:
    config = DecoderConfig(
        stack_size=None, beam_threshold=0.0, distortion_limit=limit, ttable_limit=0, max_trans_opt=0
    )
    fast, slow = both_decoders(seed, [make() for make in MODELS[names]], config)
    [found] = fast.translate([words], n_best=100_000)
    expected = slow.derivations(words)
    assert len(found.entries) == len(expected)
    for entry, other in zip(found.entries, expected, strict=True):
        assert entry.score == pytest.approx(other.score, abs=1e-9)
        assert fast.weights.dot(entry.features) == entry.score
    # The same features for the same words, whatever the order among equals.
    key = [
        (each.words, [round(v, 6) for f in each.features.values() for v in f]) for each in expected
    ]
    ours = [
        (each.words, [round(v, 6) for f in each.features.values() for v in f])
        for each in found.entries
    ]
    assert sorted(ours) == sorted(key)


@given(seed=st.integers(0, 10**6), words=st.lists(st.sampled_from(SOURCE), min_size=1, max_size=4))
def test_decoder_scores_orientations_and_deletions(seed: int, words: list[str]) -> None:
    fast, slow = both_decoders(seed, [ngram_model()], EVERYTHING, orientations=True, deletions=True)
    [found] = fast.translate([words], n_best=100_000)
    expected = slow.derivations(words)
    assert [entry.score for entry in found.entries] == pytest.approx(
        [each.score for each in expected], abs=1e-9
    )


@given(seed=st.integers(0, 10**6), words=st.lists(st.sampled_from(SOURCE), min_size=1, max_size=4))
def test_decoder_lists_each_string_once_with_its_best_derivation(
    seed: int, words: list[str]
) -> None:
    fast, slow = both_decoders(seed, [ngram_model()], EVERYTHING)
    [found] = fast.translate([words], n_best=100_000, distinct=True)
    best: dict[tuple[str, ...], float] = {}
    for each in slow.derivations(words):
        best.setdefault(each.words, each.score)
    assert {entry.words: pytest.approx(entry.score, abs=1e-9) for entry in found.entries} == best
    assert len(found.entries) == len(best)


@given(seed=st.integers(0, 10**6), words=st.lists(st.sampled_from(SOURCE), min_size=1, max_size=6))
def test_decoder_never_scores_better_when_it_prunes(seed: int, words: list[str]) -> None:
    models = [ngram_model()]
    full, _ = both_decoders(seed, models, EVERYTHING)
    [best] = full.translate([words])
    assert best.score is not None
    for config in (
        DecoderConfig(stack_size=2),
        DecoderConfig(early_discard=True),
        DecoderConfig(search="cube", pop_limit=3, stack_size=5),
        DecoderConfig(ttable_limit=1),
    ):
        [found] = full.with_config(**vars(config)).translate([words])
        assert found.score is not None
        assert found.score <= best.score + 1e-9


# -- what must not matter ---------------------------------------------------------------------------


def random_sentences(count: int, longest: int) -> list[list[str]]:
    dice = random.Random(5)
    return [dice.choices((*SOURCE, "neu"), k=dice.randint(0, longest)) for _ in range(count)]


def lists(found: Sequence[Translation]) -> list[str]:
    return [line for each in found for line in moses_lines([each.n_best])]


@pytest.mark.parametrize("search", ["stack", "cube"])
@pytest.mark.parametrize("names", ["ngram", "both", "python"])
def test_decoder_output_does_not_depend_on_threads(names: str, search: str) -> None:
    models = [make() for make in MODELS[names]]
    config = DecoderConfig(search=search, stack_size=20)  # type: ignore[arg-type]
    fast, _ = both_decoders(1, models, config)
    sentences = random_sentences(20, 9)
    alone = list(fast.translate(sentences, n_best=20, threads=1))
    for threads, batch in ((2, None), (4, 3)):
        others = list(fast.translate(sentences, n_best=20, threads=threads, batch=batch))
        assert lists(others) == lists(alone)
    assert [each.number for each in alone] == list(range(20))


def test_decoder_may_forget_states_of_an_hhmm() -> None:
    model = hhmm_model(50)
    small = model.with_search(cache_mebibytes=0)
    sentences = random_sentences(8, 8)
    for search in ("stack", "cube"):
        config = DecoderConfig(search=search, stack_size=30)  # type: ignore[arg-type]
        usual, _ = both_decoders(3, [model], config)
        forgetful, _ = both_decoders(3, [small], config)  # type: ignore[list-item]
        assert lists(list(forgetful.translate(sentences, n_best=5))) == lists(
            list(usual.translate(sentences, n_best=5))
        )


def test_decoder_may_forget_states_of_a_composite_model(monkeypatch: pytest.MonkeyPatch) -> None:
    sentences = random_sentences(8, 8)
    config = DecoderConfig(stack_size=30)
    usual, _ = both_decoders(3, [composite_model()], config)
    expected = lists(list(usual.translate(sentences, n_best=5)))
    monkeypatch.setattr(search_models, "_STATE_BYTES", 0)
    forgetful, _ = both_decoders(3, [composite_model()], config)
    assert lists(list(forgetful.translate(sentences, n_best=5))) == expected


@pytest.mark.parametrize("topics", [0, 2])
@pytest.mark.parametrize("search", ["stack", "cube"])
def test_decoder_reads_a_composite_model_as_python_does(search: str, topics: int) -> None:
    own = composite_model(topics)
    config = DecoderConfig(search=search, stack_size=30)  # type: ignore[arg-type]
    sentences = random_sentences(8, 6)
    found = [
        list(both_decoders(3, [model], config)[0].translate(sentences, n_best=20))
        for model in (own, through_python(own))
    ]
    assert [each.text for each in found[0]] == [each.text for each in found[1]]
    for one, other in zip(*found, strict=True):
        assert [x.score for x in one.entries] == pytest.approx([x.score for x in other.entries])


def test_decoder_asks_a_model_whose_topics_move_through_python() -> None:
    moving = composite_model(topics=2).with_search(adapt=True)
    assert isinstance(moving, CompositeModel)
    assert not moving.has_fixed_states
    fast, slow = both_decoders(2, [moving], DecoderConfig(distortion_limit=-1))
    words = list(SOURCE[:2])
    [found] = fast.translate([words])
    assert found.score == pytest.approx(slow.derivations(words)[0].score, abs=1e-9)


def test_decoder_lists_are_read_back_as_they_were_written() -> None:
    fast, _ = both_decoders(2, [ngram_model()], DecoderConfig())
    [found] = fast.translate([["das", "haus", "ist"]], n_best=50, alignments=True)
    text = "".join(f"{line}\n" for line in moses_lines([found.n_best]))
    [again] = read_moses(Content("list", text.encode()))
    assert [each.words for each in again.hypotheses] == [each.words for each in found.entries]
    for each in again.hypotheses:
        values = {name: tuple(map(float, v)) for name, v in each.features.items()}
        assert fast.weights.dot(values) == each.score


# -- edges ------------------------------------------------------------------------------------------


def test_decoder_gives_nothing_for_an_empty_sentence() -> None:
    [found] = das_haus().translate([""], n_best=5)
    assert (found.text, found.score, len(found.n_best)) == ("", None, 0)


def test_decoder_copies_unknown_words() -> None:
    [found] = das_haus().translate(["neu <s> neu"], n_best=3)
    assert found.text == "neu <s> neu"
    assert found.entries[0].features["UnknownWordPenalty0"] == (-300.0,)
    # Each word costs -100 by itself, and what the language model says of unknown words.
    assert found.entries[0].features["LM0"][0] == pytest.approx(
        3 * math.log(1e-9) + math.log(0.25), abs=1e-5
    )


def test_decoder_reads_compact_tables_as_it_reads_others() -> None:
    # Without <unk>, an unknown word costs the weights of its context and a fixed number.
    words = [dict.fromkeys(("<s>", "</s>", "the", "house", "that"), 0.2)]
    weights = {"<s> the": 0.5, "the house": 0.5, "house that": 0.25}
    made = arpa([*words, weights, {"<s> the house": 0.5, "the house that": 0.3}])
    text = made.data.replace(b"\t0", b"\t-0.25")
    with pytest.warns(TreelmWarning, match="has no <unk>"):
        hashed = read_arpa(Content("lm.arpa", text))
    table = PhraseTable.read(Content("table", DAS_HAUS.encode()))
    sentences = ["das haus neu", "das haus das neu neu", "neu das haus"]
    found = [
        list(Decoder(table, [model], DAS_HAUS_WEIGHTS, EVERYTHING).translate(sentences, n_best=20))
        for model in (hashed, hashed.compacted())
    ]
    assert lists(found[0]) == lists(found[1])
    assert hashed.config.oov_log_prob is not None


@pytest.mark.parametrize("search", ["stack", "cube"])
@pytest.mark.parametrize("limit", [0, 6])
def test_decoder_translates_two_hundred_words(search: str, limit: int) -> None:
    words = random.Random(1).choices(SOURCE, k=200)
    config = DecoderConfig(search=search, stack_size=20, distortion_limit=limit)  # type: ignore[arg-type]
    fast, _ = both_decoders(4, [ngram_model()], config)
    [found] = fast.translate([words], n_best=10)
    assert len(found.entries) == 10
    assert not found.relaxed


def test_decoder_without_language_models_is_a_plain_sum() -> None:
    fast, slow = both_decoders(6, [], EVERYTHING)
    [found] = fast.translate([["das", "klein"]], n_best=3)
    assert found.score == pytest.approx(slow.derivations(["das", "klein"])[0].score)


def test_decoder_says_when_time_cut_the_search() -> None:
    config = DecoderConfig(max_seconds=1e-9)
    for search in ("stack", "cube"):
        decoder = both_decoders(4, [ngram_model()], config)[0].with_config(search=search)
        [found] = decoder.translate([SOURCE * 5])
        assert found.cut == "time"
        assert found.words


def test_decoder_says_when_memory_cut_the_search() -> None:
    fast, _ = both_decoders(4, [ngram_model()], DecoderConfig(max_bytes=1))
    [found] = fast.translate([SOURCE * 5], n_best=3)
    assert found.cut == "memory"
    assert found.words


def test_decoder_has_features_that_sum_to_the_score_exactly() -> None:
    fast, _ = both_decoders(8, [ngram_model(), hhmm_model(20)], DecoderConfig(stack_size=10))
    for found in fast.translate(random_sentences(10, 8), n_best=10):
        for entry in found.entries:
            assert fast.weights.dot(entry.features) == entry.score
        scores = [entry.score for entry in found.entries]
        assert scores == sorted(scores, reverse=True)


def test_decoder_with_other_weights_is_another_decoder() -> None:
    first = das_haus()
    second = first.with_weights(DAS_HAUS_WEIGHTS.replaced({"TranslationModel0": (0.0,)}))
    [a], [b] = first.translate(["das haus"]), second.translate(["das haus"])
    assert a.score == pytest.approx(-2.502585, abs=1e-6)
    assert b.score == pytest.approx(math.log(1 / 8) - 0.2, abs=1e-6)


def test_decoder_says_how_states_are_compared() -> None:
    assert das_haus().recombination == "exact"
    rough = hhmm_model(20).with_search(recombine="ignore")
    fast, _ = both_decoders(8, [ngram_model(), rough], DecoderConfig())  # type: ignore[list-item]
    assert fast.recombination == "approximate(LM1)"


# -- what is refused --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "name"),
    [
        ({"stack_size": 0}, "stack_size"),
        ({"ttable_limit": -1}, "ttable_limit"),
        ({"distortion_limit": -2}, "distortion_limit"),
        ({"beam_threshold": 1.0}, "beam_threshold"),
        ({"beam_threshold": -0.1}, "beam_threshold"),
        ({"beam_threshold": math.nan}, "beam_threshold"),
        ({"max_phrase_length": 0}, "max_phrase_length"),
        ({"pop_limit": 0}, "pop_limit"),
        ({"max_seconds": 0.0}, "max_seconds"),
        ({"search": "depth"}, "search"),
    ],
)
def test_decoder_refuses_impossible_limits(options: dict[str, float], name: str) -> None:
    with pytest.raises(UsageError, match=name):
        DecoderConfig(**options)  # type: ignore[arg-type]


def test_decoder_refuses_weights_that_do_not_fit() -> None:
    table = das_haus().table
    with pytest.raises(CorpusFormatError, match='"TranslationModel0": 2 weights, but 1 value'):
        das_haus().with_weights(DAS_HAUS_WEIGHTS.replaced({"TranslationModel0": (1.0, 1.0)}))
    with pytest.raises(CorpusFormatError, match='"LM0": there is no such feature'):
        Decoder(table, [], DAS_HAUS_WEIGHTS)


def test_decoder_refuses_separators_in_the_source() -> None:
    with pytest.raises(CorpusFormatError, match="sentence 2: "):
        list(das_haus().translate(["das", "das ||| haus"]))


def test_decoder_refuses_sentences_that_are_too_long() -> None:
    with pytest.raises(TooLongSentence, match="sentence 2 of those given has 4001 words"):
        list(das_haus().translate(["das", "das " * 4001]))


def test_decoder_refuses_models_of_whole_sentences() -> None:
    class Whole(ToyModel):
        tasks = ToyModel.tasks - {Task.DECODE}

    with pytest.raises(UnsupportedTask):
        Decoder(das_haus().table, [Whole.of(TEXT)], DAS_HAUS_WEIGHTS)


def test_decoder_passes_on_errors_of_a_python_model() -> None:
    class Broken(ToyModel):
        def advance(self, state: object, word: object) -> object:  # type: ignore[override]
            raise ZeroDivisionError("no such luck")

    table = das_haus().table
    for threads in (1, 2):
        decoder = Decoder(table, [Broken.of(TEXT)], DAS_HAUS_WEIGHTS)
        with pytest.raises(ZeroDivisionError, match="no such luck"):
            list(decoder.translate(["das haus"] * 4, threads=threads))
