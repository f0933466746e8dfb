"""What the estimator refuses, and words that are only ever contexts."""

from __future__ import annotations

import numpy as np
import pytest

from treelm.errors import EstimationError
from treelm.estimation.chain import Chain, ChainCounts
from treelm.estimation.estimate import GivenBase, UniformBase, estimate
from treelm.estimation.kneser_ney import berkeley, kneser_ney
from treelm.events.counts import EventCounter, EventCounts


def counted(rows: list[tuple[int, ...]]) -> EventCounts:
    counter = EventCounter(len(rows[0]))
    counter.add(rows)
    return counter.finish()


def test_an_outcome_outside_the_uniform_base_is_refused() -> None:
    counts = ChainCounts(counted([(0,), (7,)]), Chain((), (0,), ()))
    with pytest.raises(EstimationError, match="outside the uniform base"):
        estimate(counts, kneser_ney(counts, fixed=[0.5]), UniformBase(5), outcomes=8)


def test_a_word_that_is_only_a_context_keeps_its_share_of_the_base() -> None:
    counts = ChainCounts(counted([(0, 1), (0, 2)]), Chain.words(2, pad=4))
    smoothing = kneser_ney(counts, fixed=[0.5, 0.5])
    table = estimate(counts, smoothing, UniformBase(4), outcomes=5, precision="double")
    for context in range(5):
        logs = table.distribution([context])
        assert np.exp(logs).sum() == pytest.approx(1, abs=1e-12)
        stepped, _ = table.advance([[context]] * 4, range(4))
        np.testing.assert_allclose(stepped, logs, rtol=1e-12)
        scored = table.score_sequences(
            np.array([context, 1], dtype=np.uint32),
            np.array([0, 2], dtype=np.uint64),
            4,
            None,
        )
        assert scored[1] == pytest.approx(logs[1], abs=1e-12)


def test_berkeley_leaves_nothing_for_a_given_base() -> None:
    counts = ChainCounts(counted([(0, 1), (0, 2)]), Chain(("P",), (1,), (None,)))
    base = GivenBase(np.array([0.5, 0.5]))
    with pytest.raises(EstimationError) as caught:
        estimate(counts, berkeley(counts, fixed=[]), base, outcomes=1, first_contexts=3)
    assert caught.value.code == "E_CHAIN"


def test_sampling_over_a_base_from_elsewhere_needs_its_probabilities() -> None:
    counts = ChainCounts(counted([(0, 1), (1, 1)]), Chain(("P",), (1,), (None,)))
    base = GivenBase(np.array([0.5, 0.25]))
    smoothing = kneser_ney(counts, fixed=[0.5])
    table = estimate(counts, smoothing, base, outcomes=2, first_contexts=2)
    streams = np.zeros(1, dtype=np.uint64)
    with pytest.raises(EstimationError, match="not stored with it"):
        table.sample([[1]], 1, streams, streams)


@pytest.mark.parametrize("bad", [-1, 2**32, 2**40 + 3])
def test_ids_that_do_not_fit_are_refused(bad: int) -> None:
    counter = EventCounter(1)
    with pytest.raises(EstimationError, match="ids must be between"):
        counter.add([(bad,)])


def test_a_level_that_is_not_there() -> None:
    counts = ChainCounts(counted([(0,)]), Chain((), (0,), ()))
    for look in (counts.size, counts.entries, counts.contexts, counts.counts_of_counts):
        with pytest.raises(EstimationError) as caught:
            look(1)
        assert caught.value.code == "E_ARGUMENT"
