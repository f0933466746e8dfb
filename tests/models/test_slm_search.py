"""The search of the structured language model, against the slow version and against itself."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.fuzz.small_models import make_models
from tests.reference.slm import END, NULL, START, Head, Move, SlowSlm

from treelm.corpus.lengths import TooLongSentence
from treelm.corpus.vocabulary import Vocabulary
from treelm.errors import EstimationError
from treelm.estimation.lattice import LatticeTables, fixed_point
from treelm.estimation.lattice_weights import LatticeModel, LatticeWeights
from treelm.models.composite.actions import ActionCodes
from treelm.models.composite.config import CompositeConfig
from treelm.models.composite.em import posteriors
from treelm.models.composite.model import CompositeModel
from treelm.models.composite.parsed_text import ParsedText
from treelm.models.composite.parts import CompositeParts, CompositeShape

VOCABULARY = Vocabulary.from_counts({"a": 3, "b": 2, "c": 1})
WORDS = (*VOCABULARY.symbols, END, START[0])


def random_model(seed: int, **options: object) -> CompositeModel:
    """Lattices of random counts."""
    settings_: dict[str, object] = {"order": 2, "heads": 2, "merge": False, **options}
    config = CompositeConfig(**settings_)  # type: ignore[arg-type]
    codes = ActionCodes(("N", "V"), ("NP", "S"), unary_moves=config.unary_moves)
    shape = CompositeShape(config, len(VOCABULARY), codes)
    random = np.random.default_rng(seed)
    models = {}
    for name, lattice in shape.lattices.items():
        rows = 60
        columns = np.column_stack(
            [random.integers(0, limit, rows) for limit in shape.limits(name)]
        ).astype(np.uint32)
        outcomes = random.integers(0, lattice.outcomes, rows).astype(np.uint32)
        counts = fixed_point(random.uniform(0.1, 6, rows))
        tables = LatticeTables.build(lattice, columns, outcomes, counts, limits=shape.limits(name))
        weights = LatticeWeights.equal(lattice)
        models[name] = LatticeModel(tables, weights)
    counts = np.ones(len(VOCABULARY) + 1, np.uint64)
    return CompositeModel(CompositeParts(shape, models), VOCABULARY, counts)


def slow_model(model: CompositeModel) -> SlowSlm:
    """The same model in slow: its probabilities looked up one by one."""
    shape, config, models = model.parts.shape, model.config, model.parts.models
    labels = [*shape.codes.tags, *shape.codes.phrases, START[1]]
    moves: list[Move] = [NULL]
    kinds = ("left", "right", "unary")[: 3 if config.unary_moves else 2]
    moves += [(kind, phrase) for kind in kinds for phrase in shape.codes.phrases]
    ranks: dict[object, int] = {move: number for number, move in enumerate(moves)}
    ranks |= {tag: number for number, tag in enumerate(shape.codes.tags)}

    def head(each: Head) -> int:
        word, label = WORDS.index(each[0]), labels.index(each[1])
        return word * len(labels) + label if config.head_labels else word

    def predictor(words: tuple[str, ...], heads: tuple[Head, ...]) -> dict[str, float]:
        columns = [*map(WORDS.index, words), *map(head, heads)]
        return dict(zip(WORDS[:-1], models["predictor"].distribution(columns), strict=True))

    def tagger(word: str, found: tuple[str, ...]) -> dict[str, float]:
        columns = [WORDS.index(word), *map(labels.index, found)]
        return dict(zip(shape.codes.tags, models["tagger"].distribution(columns), strict=True))

    def constructor(heads: tuple[Head, ...]) -> dict[Move, float]:
        columns = [*(labels.index(b) for _, b in heads), *(WORDS.index(a) for a, _ in heads)]
        return dict(zip(moves, models["constructor"].distribution(columns), strict=True))

    return SlowSlm(
        predictor,
        tagger,
        constructor,
        order=config.order,
        heads=config.heads,
        stack_size=config.stack_size or math.inf,
        threshold=math.inf if config.threshold is None else config.threshold,
        beam=config.choice_beam,
        unary_moves=config.unary_moves,
        merge=config.merge,
        rank=ranks.__getitem__,
    )


SEARCHES: dict[str, dict[str, object]] = {
    "everything": {"stack_size": None, "threshold": None, "choice_beam": 0.0},
    "everything merged": {
        "stack_size": None,
        "threshold": None,
        "choice_beam": 0.0,
        "merge": True,
    },
    "stacks": {"stack_size": 3, "threshold": None, "choice_beam": 0.0},
    "threshold": {"stack_size": None, "threshold": 1.0, "choice_beam": 0.0},
    "both": {"stack_size": 4, "threshold": 2.0, "choice_beam": 0.05},
    "both merged": {"stack_size": 4, "threshold": 2.0, "choice_beam": 0.05, "merge": True},
    "unary": {"stack_size": 5, "threshold": 4.0, "choice_beam": 0.02, "unary_moves": True},
    "one head": {"heads": 1, "stack_size": 5, "threshold": 4.0},
    "three heads": {"heads": 3, "order": 1, "stack_size": 5},
    "no labels": {"head_labels": False, "stack_size": 5},
}


@pytest.mark.parametrize("name", SEARCHES)
@given(seed=st.integers(0, 10_000), words=st.lists(st.sampled_from("abc"), max_size=4))
@settings(max_examples=8)
def test_scores_are_those_of_the_slow_search(name: str, seed: int, words: list[str]) -> None:
    model = random_model(seed, **SEARCHES[name])
    slow = slow_model(model)
    found = model.score_batch([words]).log_probs
    assert found == pytest.approx(slow.log_probs(tuple(words)), rel=1e-9)


@pytest.mark.parametrize("name", ["everything", "stacks", "both", "unary"])
@given(seed=st.integers(0, 10_000), words=st.lists(st.sampled_from("abc"), min_size=1, max_size=4))
@settings(max_examples=8)
def test_best_parses_are_those_of_the_slow_search(name: str, seed: int, words: list[str]) -> None:
    model = random_model(seed, **SEARCHES[name])
    slow = slow_model(model)
    text = text_of([words])
    lists = model.parts.best_parses(text, count=5)
    expected = slow.parses(tuple(words), 5)
    assert lists.log_probs == pytest.approx([parse.score for parse in expected])
    again = model.parts.score_parses(text, lists)
    assert again == pytest.approx(lists.log_probs)
    first = [slow.rank(action) for action in expected[0].actions]
    assert lists.actions[: int(lists.action_starts[1])].tolist() == first


def text_of(sentences: list[list[str]]) -> ParsedText:
    ids = np.array([i for each in sentences for i in VOCABULARY.ids_of(each)], np.uint32)
    starts = np.cumsum([0, *map(len, sentences)]).astype(np.uint64)
    nothing = np.zeros(len(sentences) + 1, np.uint64)
    documents = np.zeros(len(sentences), np.int64)
    return ParsedText(ids, starts, documents, np.zeros(0, np.uint16), nothing)


def test_all_parses_add_up_to_the_sentence() -> None:
    """Without pruning, parses and words left to right give the same probability."""
    model = random_model(3, **SEARCHES["everything"])
    for words in (["a"], ["b", "a"], ["c", "a", "b"]):
        total = posteriors(model.parts.best_parses(text_of([words]), count=10**6))[1][0]
        assert model.score(words).log_prob == pytest.approx(total)


def test_results_do_not_depend_on_threads() -> None:
    model = random_model(5, stack_size=4, threshold=3.0)
    sentences = [list(words) for words in itertools.product("abc", repeat=4)]
    text = text_of(sentences)
    one = model.score_ids(text.ids, text.starts, threads=1).log_probs
    two = model.score_ids(text.ids, text.starts, threads=2).log_probs
    assert one.tobytes() == two.tobytes()
    parts = model.parts
    for first, second in zip(
        vars(parts.best_parses(text, count=4, threads=1)).values(),
        vars(parts.best_parses(text, count=4, threads=2)).values(),
        strict=True,
    ):
        assert first.tobytes() == second.tobytes()


def test_counts_of_parses_add_up_to_the_words() -> None:
    model = random_model(7, stack_size=6, threshold=5.0)
    text = text_of([["a", "b", "c"], ["b"], []])
    lists = model.parts.best_parses(text, count=4)
    rows, _ = model.parts.events(text, lists, posteriors(lists)[0])
    contributions = len(lists)
    assert abs(int(rows["predictor"][2].sum()) - (text.tokens << 30)) <= 5 * contributions
    assert abs(int(rows["tagger"][2].sum()) - (4 << 30)) <= 5 * contributions


def test_one_word_has_nothing_but_forced_moves() -> None:
    model = random_model(11, heads=2, order=1)
    lists = model.parts.best_parses(text_of([["a"]]), count=10)
    assert [
        lists.actions[a:b].tolist()[1:] for a, b in itertools.pairwise(lists.action_starts.tolist())
    ] == [[0]] * len(lists)
    rows, _ = model.parts.events(text_of([["a"]]), lists, posteriors(lists)[0])
    assert len(rows["constructor"][1]) == 0


@pytest.mark.parametrize("merge", [True, False])
@pytest.mark.parametrize(
    "search", [{"stack_size": None, "threshold": None}, {"stack_size": 10**9, "threshold": 1e9}]
)
def test_search_that_drops_nothing_refuses_what_no_memory_holds(
    merge: bool, search: dict[str, Any]
) -> None:
    (trained, _) = make_models("slm")
    assert isinstance(trained, CompositeModel)
    model = trained.with_search(merge=merge, **search)
    assert model.max_words is not None
    assert model.max_words < 4
    words = ["a"] * 12
    assert model.score(words[: model.max_words]).log_prob < 0
    with pytest.raises(TooLongSentence):
        model.score(words)
    text = text_of([["a"] * 12])
    with pytest.raises(TooLongSentence):
        model.parts.best_parses(text, count=2)
    state = model.initial()
    with pytest.raises(EstimationError, match="stack_size or a threshold") as caught:
        for word in words:
            state = model.advance(state, word).state
    assert caught.value.code == "E_TOO_LONG"
    for bounded in ({"stack_size": 3}, {"threshold": 2.0}):
        assert model.with_search(**bounded).score(words).log_prob < 0
    assert model.with_max_words(3).max_words == 3
