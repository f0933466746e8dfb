"""The best path of a lattice against all of its paths."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.command_line import assert_fine, assert_refused, treelm_inside

import treelm
from treelm.corpus.lattices import Arc, Lattice
from treelm.models.history import ngram_order
from treelm.models.interface.incremental import IncrementalModel
from treelm.tasks.rescore_lattice import BestPath, LatticeWeights, best_path

WORDS = ["The", "boat", "ferry", "was", "left", ".", "zzgrumpf"]
WEIGHTS = LatticeWeights(acoustic=0.5, graph=0.25, model=0.75, word=-0.1)


@st.composite
def lattices(draw: st.DrawFn) -> Lattice:
    """Draw a small lattice: a chain, so that there is a way, and arcs that skip nodes."""
    nodes = draw(st.integers(2, 5))
    pairs = [(node, node + 1) for node in range(nodes - 1)]
    ends = st.integers(1, nodes - 1)
    more = draw(st.lists(st.tuples(st.integers(0, nodes - 2), ends), max_size=7))
    pairs += [(first, last) for first, last in more if first < last]
    score = st.floats(-8, 0)
    arcs = [
        Arc(*pair, draw(st.sampled_from([*WORDS, None])), draw(score), draw(score))
        for pair in pairs
    ]
    chosen = {nodes - 1, *draw(st.lists(ends, max_size=1))}
    return Lattice(
        "u",
        tuple(sorted(arcs, key=lambda arc: arc[:2])),
        nodes,
        {end: (draw(score), draw(score)) for end in sorted(chosen)},
    )


def paths(lattice: Lattice, node: int = 0) -> Iterator[tuple[Arc, ...]]:
    """Yield all paths from a node to an end, which is an arc without a word."""
    if node in lattice.ends:
        yield (Arc(node, node, None, *lattice.ends[node]),)
    for arc in lattice.arcs:
        if arc.source == node:
            yield from ((arc, *rest) for rest in paths(lattice, arc.target))


def score_of(path: tuple[Arc, ...], model: IncrementalModel) -> float:
    words = [arc.word for arc in path if arc.word is not None]
    return (
        0.5 * sum(arc.acoustic for arc in path)
        + 0.25 * sum(arc.graph for arc in path)
        + 0.75 * model.score_sentence(words)
        - 0.1 * len(words)
    )


def check(lattice: Lattice, model: IncrementalModel, found: BestPath) -> None:
    scores = {path: score_of(path, model) for path in paths(lattice)}
    assert found.score == pytest.approx(max(scores.values()))
    assert found.log_prob == pytest.approx(model.score_sentence(found.words))
    ours = [
        path
        for path in scores
        if tuple(arc.word for arc in path if arc.word is not None) == found.words
    ]
    assert max(scores[path] for path in ours) == pytest.approx(found.score)


@pytest.fixture(scope="module")
def ngram() -> IncrementalModel:
    sentences = [tree.words for tree in treelm.sample_treebank()]
    model = treelm.train("ngram", sentences, order=3).incremental
    assert model is not None
    return model


@pytest.fixture(scope="module")
def hhmm() -> IncrementalModel:
    model = treelm.train("hhmm", list(treelm.sample_treebank())[:40]).incremental
    assert model is not None
    return model


@given(lattice=lattices())
@settings(max_examples=100)
def test_rescore_lattice_is_exact_for_ngrams(lattice: Lattice, ngram: IncrementalModel) -> None:
    check(lattice, ngram, best_path(lattice, ngram, WEIGHTS))


@given(lattice=lattices())
@settings(max_examples=15)
def test_rescore_lattice_is_exact_for_others_if_the_beam_is_wide(
    lattice: Lattice, hhmm: IncrementalModel
) -> None:
    check(lattice, hhmm, best_path(lattice, hhmm, WEIGHTS, beam=1000))


@given(lattice=lattices(), beam=st.integers(1, 4))
@settings(max_examples=30)
def test_rescore_lattice_beam_gives_a_path_of_the_lattice(
    lattice: Lattice, beam: int, ngram: IncrementalModel
) -> None:
    found = best_path(lattice, ngram, WEIGHTS, beam=beam)
    scores = [score_of(path, ngram) for path in paths(lattice)]
    assert min(abs(found.score - score) for score in scores) < 1e-9
    assert found.score <= max(scores) + 1e-9


def test_rescore_lattice_keeps_all_states_of_ngrams_only(
    ngram: IncrementalModel, hhmm: IncrementalModel
) -> None:
    assert ngram_order(ngram) == 3
    assert ngram_order(hhmm) is None
    assert ngram_order(treelm.interpolate([ngram, ngram], [0.5, 0.5])) == 3


def test_rescore_lattice_command(
    ngram: IncrementalModel, tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    ngram.save(tmp_path / "model")
    lattice = tmp_path / "lattices"
    lattice.write_text(
        "u-1\n0 1 The 1,9\n1 2 boat 1,20.5\n1 2 moat 1,20\n2 3 was 0,3\n3 4 <noise> 0,1\n4\n\n"
        "u-2\n0 1 A 1,2\n1\n"
    )
    words = ("rescore-lattice", "-m", tmp_path / "model", "--skip", "<noise>", lattice, "-q")
    done = treelm_inside(capfdbinary, *words, "--acoustic-scale", "0.1")
    assert assert_fine(done) == b"u-1 The boat was\nu-2 A\n"
    done = treelm_inside(capfdbinary, *words, "--acoustic-scale", "100")
    assert assert_fine(done).splitlines()[0] == b"u-1 The moat was"
    done = treelm_inside(capfdbinary, *words, "--acoustic-scale", "0.1", "--json")
    record = json.loads(assert_fine(done).splitlines()[0])
    assert record["text"] == "The boat was"
    assert record["features"]["acoustic"] == pytest.approx(-33.5)
    assert record["features"]["log_prob"] == pytest.approx(ngram.score_sentence("The boat was"))
    lattice.write_text("u-1\n0 1 The 1,9\n")
    assert_refused(treelm_inside(capfdbinary, *words), 3, "lattices:1:", "no path")
