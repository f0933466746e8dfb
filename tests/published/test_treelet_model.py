"""The worked numbers of treelet.md and backoff-estimation.md 7.4 for whole models."""

from __future__ import annotations

import math
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from tests.models.treelet_models import TWO_TREES, corpus_of, event_texts, trees_of, two_trees

from treelm.models.headlex.events import count_headlex
from treelm.models.treelet.model import TreeletModel

FIRST = Fraction(40310304924443508647, 86091760454860800000)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> TreeletModel:
    return two_trees(tmp_path_factory.mktemp("two"))


def test_probability_of_the_first_tree(model: TreeletModel) -> None:
    log_probs = model.tree_log_probs(trees_of(TWO_TREES))
    assert math.exp(log_probs[0]) == pytest.approx(float(FIRST), abs=1e-12)
    assert log_probs[0] == pytest.approx(-0.758806568, abs=1e-9)
    assert log_probs[0] == log_probs[1]


@pytest.mark.parametrize(
    ("row", "level", "expected"),
    [
        (("dogs", "N", "V"), 5, Fraction(7, 24)),
        (("dogs", "N", "V"), 4, Fraction(19, 48)),
        (("bark", "N", "V"), 4, Fraction(7, 48)),
        (("dogs", "N", "V"), 3, Fraction(43, 96)),
        (("dogs", "N", "V"), 2, Fraction(91, 192)),
        (("dogs", "N", "V"), 1, Fraction(187, 384)),
        (("dogs", "N", "V"), 0, Fraction(187, 384)),
        (("<unk>", "N", "V"), 0, Fraction(1, 128)),
    ],
)
def test_levels_of_the_first_word(
    model: TreeletModel, row: tuple[str, str, str], level: int, expected: Fraction
) -> None:
    word, tag, right = row
    symbols = model.tables.symbols
    rule = [symbols.rule_text(i) for i in range(len(symbols.rules))].index("S -> N V")
    ids = [
        int(model.vocabulary.ids_of([word])[0]),
        symbols.label_ids[tag],
        symbols.label_ids[right],
        rule,
        symbols.start,
        symbols.start,
    ]
    found = model.tables.terminal.log_probabilities([ids], level=level)
    assert math.exp(found[0]) == pytest.approx(float(expected), abs=1e-12)


def test_frequency_of_the_first_tree_among_samples(model: TreeletModel) -> None:
    packed, outcomes, log_probs = model._sampler.draw(
        7, 0, 100_000, max_words=1000, max_depth=200, threads=1
    )
    assert not outcomes.any()
    first = trees_of(TWO_TREES)[0]
    wanted = [str(node.label) for node in first.preorder()]
    labels = np.array([base for base, _, _, _ in packed.labels])
    words = np.array([*packed.words, ""])
    short = packed.tree_start[:-1][np.diff(packed.tree_start) == len(wanted)]
    nodes = short[:, None] + np.arange(len(wanted))
    as_wanted = (labels[packed.node_label[nodes]] == wanted).all(axis=1)
    dogs = words[np.minimum(packed.node_word[nodes], len(words) - 1)][:, 2:] == ["dogs", "bark"]
    found = as_wanted & dogs.all(axis=1)
    assert abs(found.mean() * len(short) / 100_000 - 0.468225) < 0.00631
    sample = next(each for each in model.sample(50, seed=7) if each.tree == first)
    assert sample.words == ("dogs", "bark")
    assert math.exp(sample.log_prob) == pytest.approx(float(FIRST), abs=1e-12)
    assert np.isclose(np.exp(log_probs), float(FIRST), atol=1e-12).mean() > 0.9


def test_factors_of_the_headlex_example(tmp_path: Path) -> None:
    """The factors that section 5 lists for ``(S (NP (PRP He)) (VP (VBD left)))``."""
    counts = count_headlex(corpus_of(tmp_path, ["(ROOT (S (NP (PRP He)) (VP (VBD left))))"]))
    found = {kind: sorted(event_texts(counts, kind)) for kind in counts.events}
    assert found["top_label"] == ["S|ROOT"]
    assert found["top_word"] == ["left|S"]
    assert found["head_label"] == ["PRP|NP He", "VBD|VP left", "VP|S left"]
    assert found["modifier"] == sorted(
        [
            "STOP|ROOT S R left START <none>",
            "STOP|ROOT S L left START <none>",
            "STOP|S VP R left START <none>",
            "NP|S VP L left START <none>",
            "STOP|S VP L left NP He",
            "STOP|NP PRP L He START <none>",
            "STOP|NP PRP R He START <none>",
            "STOP|VP VBD L left START <none>",
            "STOP|VP VBD R left START <none>",
        ]
    )
    assert found["word"] == ["He|NP S VP L left START <none>"]
