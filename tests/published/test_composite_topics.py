"""Worked examples of topics: one step of PLSA, two words of a document that is read."""

from __future__ import annotations

import numpy as np
import pytest

from treelm import _native
from treelm.models.plsa.em import PlsaState, plsa_step
from treelm.models.plsa.state import TopicMixture


def test_one_step_of_plsa() -> None:
    """d1 = a a b, d2 = b b b; p(a|1) = 2/3, p(a|2) = 1/3, p(g|d) = 1/2."""
    counts = _native.DocumentWords(
        np.array([0, 0, 1, 1, 1, 1], np.uint32), np.array([0, 3, 6], np.uint64), 2
    )
    start = PlsaState(np.array([[2 / 3, 1 / 3], [1 / 3, 2 / 3]]), np.full((2, 2), 0.5))
    first = plsa_step(counts, start)
    assert first.document_topics[:, 0].tolist() == pytest.approx([5 / 9, 1 / 3], abs=1e-8)
    assert first.word_topics[0].tolist() == pytest.approx([1 / 2, 1 / 5], abs=1e-8)
    second = plsa_step(counts, first)
    assert second.history == pytest.approx((-4.158883, -3.533387), abs=1e-6)


def test_two_words_of_online_em() -> None:
    """Mixture 1/2 and 0.39, with eta 0.1."""
    start = TopicMixture.of([0.75, 0.25])
    prob, first = start.step(np.array([1 / 3, 1.0]), keep=2, rate=0.1)
    assert prob == pytest.approx(1 / 2)
    assert first.shares.tolist() == pytest.approx([0.725, 0.275])
    prob, second = first.step(np.array([0.5, 0.1]), keep=2, rate=0.1)
    assert prob == pytest.approx(0.39)
    assert second.shares.tolist() == pytest.approx([0.7454487179, 0.2545512821])
    assert (first.steps, second.steps) == (1, 2)
