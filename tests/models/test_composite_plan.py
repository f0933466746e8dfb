"""Plans of memory and time against what training really holds."""

from __future__ import annotations

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings
from tests.models.composite_models import logged, sample_parts

import treelm.models.composite.plan_sizes as sizes
from treelm.estimation.lattice import ONE, Lattice, LatticeTables
from treelm.models.composite.config import CompositeConfig
from treelm.models.composite.parse_plan import plan_parses
from treelm.models.composite.plan_sizes import (
    StemSize,
    building_peak,
    collecting_peak,
    record_bytes,
    sample_types,
)
from treelm.models.composite.search_sample import Kind


@pytest.fixture
def everything_is_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sizes, "SAMPLE", 1)


@settings(max_examples=20)
@given(st.integers(0, 2**32), st.booleans())
def test_sizes_of_tables_are_those_of_the_kernel(seed: int, with_topics: bool) -> None:
    generator = np.random.default_rng(seed)
    lattice = Lattice.grid(20, words=2, heads=1, head_columns=1, topics=with_topics)
    columns = generator.integers(0, 12, (400, lattice.columns)).astype(np.uint32)
    outcomes = generator.integers(0, 20, 400).astype(np.uint32)
    tables = LatticeTables.build(lattice, columns, outcomes, np.full(400, ONE, np.int64))
    stems = []
    for number, seen in enumerate(lattice.native.stems):
        arrays = tables.native.stem_arrays(number)
        contexts = len(arrays["begin"]) - 1
        pairs = {(*row[list(seen)], row[-1]) for row in columns} if with_topics else ()
        stems.append(
            StemSize(
                tuple(seen), len(arrays["outcomes"]), contexts, len(arrays["topics"]), len(pairs)
            )
        )
    assert sum(stem.bytes for stem in stems) == tables.bytes
    # Nothing can be built in less than the tables take, or than the largest rows take.
    peak = building_peak(stems, stems, 24)
    assert peak >= tables.bytes
    assert peak >= 24 * max(stem.rows for stem in stems)


def test_records_and_runs() -> None:
    assert record_bytes([60_000, 60_000], 60_000) == 16
    assert record_bytes([60_000] * 5, 60_000) == 24
    assert record_bytes([60_000] * 9, 60_000) == 40
    assert collecting_peak(1000, 1000, 16) == 32_000
    assert collecting_peak(1 << 25, 1 << 20, 16) == 16 * ((1 << 24) + (1 << 21))


@pytest.mark.usefixtures("everything_is_looked_at")
def test_types_and_their_documents() -> None:
    columns = [np.array(column, np.uint32) for column in ([1, 1, 2, 1], [5, 5, 5, 6])]
    document = np.array([0, 1, 1, 1], np.int32)
    found = sample_types(columns, 2, document, 2)
    assert found.types == 3
    assert sorted(found.documents.tolist()) == [1, 1, 2]
    # One document brings the topics it keeps; two bring at most twice as many.
    assert 3 * 4 < found.topics(100, 4) < 4 * 4
    assert found.topics(0, 4) == 0


def test_what_a_cutoff_leaves() -> None:
    columns = np.array([[1], [1], [2], [1]], np.uint32)
    kind = Kind.of(columns, np.array([0, 0, 0, 3], np.uint32), np.array([0.5, 0.4, 0.1, 0.2]), (0,))
    assert sorted(kind.counts.tolist()) == pytest.approx([0.1, 0.2, 0.9])
    assert kind.kept(0.15) == pytest.approx((2 / 3, 1 / 2))
    assert kind.kept(0) == (1, 1)


@pytest.mark.usefixtures("everything_is_looked_at")
@pytest.mark.parametrize(("heads", "topics"), [(1, 0), (0, 3)])
def test_plan_counts_the_types_of_the_given_parses(heads: int, topics: int) -> None:
    train, held_out = sample_parts()
    config = CompositeConfig(
        order=3, heads=heads, topics=topics, keep_topics=3, iterations=0, follow_up=0, cutoff=0
    )
    plan = plan_parses(train, config, held_out=held_out)
    model, _ = logged(config)
    tables = model.parts.models["predictor"].tables
    expected = [tables.types(node) for node in range(len(tables.lattice.nodes))]
    assert [node.types for node in plan.nodes] == pytest.approx(expected, rel=1e-3)
    bytes_of_all = sum(part.tables.bytes for part in model.parts.models.values())
    assert plan.table_bytes == pytest.approx(bytes_of_all, rel=1e-3)
    assert {"reading", "counting"} <= plan.stages.keys()
    assert plan.peak_bytes == max(plan.stages.values()) > plan.table_bytes


def test_plan_foresees_em() -> None:
    train, held_out = sample_parts()
    config = CompositeConfig(order=2, heads=1, stack_size=4, n_best=3, cutoff=0.005)
    plan = plan_parses(train, config, held_out=held_out)
    model, _ = logged(config)
    tables = model.parts.models["predictor"].tables
    assert plan.nodes[-1].types == pytest.approx(tables.types(), rel=0.35)
    assert plan.seconds.keys() == {"n-best", "follow-up"}
    assert plan.stages["follow-up"] > plan.stages["counting"]
    assert plan.cutoff == 0
    small = plan_parses(train, config, memory=plan.table_bytes * 2)
    assert not small.fits
    assert small.cutoff is not None
    assert plan_parses(train, config, memory=1).cutoff is None
