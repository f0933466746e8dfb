"""Yields of the kernel against the reference: the base below rules, and rules over it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.estimation.kernel_models import fallbacks_allowed
from tests.estimation.rule_models import (
    Labels,
    Rule,
    RuleModel,
    halves,
    reference_halves,
    yield_base,
)
from tests.reference import backoff as reference
from tests.reference.backoff_cases import AT_ROOT, AT_S, TREES_74, random_rules
from tests.reference.test_backoff_sampling import yield_chi_square

from treelm.errors import EstimationError
from treelm.estimation.kneser_ney import kneser_ney
from treelm.estimation.yields import Rules, YieldBase

RULES = random_rules(5, 8)
KINDS: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "halves": (halves, reference_halves),
    "kneser-ney": (kneser_ney, reference.kneser_ney),
}
UNKNOWN = "never a child"


@pytest.mark.parametrize("kind", KINDS)
@given(
    rules=RULES,
    unknown=st.booleans(),
    base_counts=st.sampled_from(["tokens", "types"]),
    weight=st.sampled_from([0.0, 0.5, 0.9, 1.0]),
)
@settings(max_examples=20)
def test_base(rules: list[Rule], kind: str, unknown: bool, base_counts: str, weight: float) -> None:
    smoothing, estimator = KINDS[kind]
    with fallbacks_allowed():
        base, labels = yield_base(
            rules, smoothing, unknown=unknown, base_counts=base_counts, weight=weight
        )
    expected = reference.YieldBase(
        rules, estimator, lam=weight, base_counts=base_counts, usym=unknown
    )
    known = sorted(expected.symbols - {reference.USYM}) + ([UNKNOWN] if unknown else [])
    rights = list(reference.all_yields(known, 2)) + [right for _, right in rules]
    for parent in ("X", "Y", "Z"):
        found = base.probabilities(labels.rules((parent, right) for right in rights))
        wanted = [expected.probability((parent,), expected.resolve(right)) for right in rights]
        np.testing.assert_allclose(found, np.array(wanted, dtype=float), rtol=1e-12)


@pytest.fixture(scope="module")
def rules_74() -> RuleModel:
    return RuleModel.of(TREES_74, unknown=False)


@pytest.mark.parametrize(
    ("context", "base_mass", "full_mass"),
    [(AT_S, 0.989335, 0.999333), (AT_ROOT, 0.995931, 0.999746)],
)
def test_mass_of_yields(
    rules_74: RuleModel, context: tuple[str, ...], base_mass: float, full_mass: float
) -> None:
    """I6: the mass of all yields up to a length grows towards one."""
    rights = list(reference.all_yields(["S", "N", "V"], 5))
    assert len(rights) == 363
    below = rules_74.base.probabilities(rules_74.labels.rules((context[0], x) for x in rights))
    full = rules_74.probabilities(context, rights)
    lengths = np.array([len(right) for right in rights])
    for masses, total in ((below, base_mass), (full, full_mass)):
        sums = [masses[lengths <= longest].sum() for longest in range(1, 6)]
        assert sums == sorted(sums)
        assert sums[-1] < 1
        assert sums[-1] == pytest.approx(total, abs=1e-6)
        assert (masses > 0).all()


@given(RULES)
@settings(max_examples=15)
def test_what_has_not_stopped_is_missing(rules: list[Rule]) -> None:
    """I6: the mass beyond three symbols is what is missing to one, by going on."""
    base, labels = yield_base([*rules, ("X", ("A",))], unknown=False, weight=1.0)
    symbols = [labels.names[i] for i in base.symbols.labels]
    stopped = [
        base.probabilities(
            labels.rules(("X", x) for x in reference.all_yields(symbols, most))
        ).sum()
        for most in (1, 2, 3)
    ]
    assert all(left < right < 1 for left, right in pairwise(stopped))


def code_of(call: Callable[[], object]) -> str:
    with pytest.raises(EstimationError) as caught:
        call()
    return caught.value.code


def test_rejections() -> None:
    base, labels = yield_base([("X", ("A",))], unknown=False)
    unknown = labels.rules([("X", ("A", UNKNOWN))])
    assert code_of(lambda: base.probabilities(unknown)) == "E_UNKNOWN_SYMBOL"
    parent_only = labels.rules([("A", ("X",))])  # X was never a child
    assert code_of(lambda: base.probabilities(parent_only)) == "E_UNKNOWN_SYMBOL"
    empty = Rules.from_lists([(0, [])])
    assert code_of(lambda: base.probabilities(empty)) == "E_YIELD"
    assert code_of(lambda: YieldBase.estimate(empty, [1], labels=1, smoothing=halves)) == "E_YIELD"
    nothing = Rules.from_lists([])
    assert code_of(lambda: YieldBase.estimate(nothing, [], labels=1)) == "E_NO_DATA"
    assert code_of(lambda: yield_base([("X", ("A",))], weight=1.5)) == "E_WEIGHTS"
    assert len(base.probabilities(nothing)) == 0


def test_labels_never_seen_as_a_child_are_one_symbol() -> None:
    base, labels = yield_base([("X", ("A", "B")), ("Y", ("B",))])
    far, parent, beyond = base.probabilities(
        labels.rules([("X", ("A", UNKNOWN)), ("X", ("A", "Y")), ("X", ("A", "nor this"))])
    )
    assert far == parent == beyond > 0
    assert base.symbols.usym == 2
    assert (base.symbols.stop, base.symbols.start) == (3, 4)


@pytest.mark.parametrize("parent", ["S", "ROOT", "Z"])
@pytest.mark.parametrize("unknown", [False, True])
def test_sampling(rules_74: RuleModel, parent: str, unknown: bool) -> None:
    """`<usym>` is never drawn: the samples are those of the base without it."""
    base, labels = yield_base(reference.tree_rules(TREES_74), unknown=unknown)
    drawn = Counter(
        tuple(labels.names[x] for x in base.sample(labels[parent], seed=3, stream=i))
        for i in range(6000)
    )
    rights = [("N", "V"), ("S",), ("N",), ("N", "V", "V")]
    below = rules_74.base.probabilities(rules_74.labels.rules((parent, x) for x in rights))
    expected = dict(zip(rights, below, strict=True))
    assert yield_chi_square(drawn, expected) > 0.001


def test_sampling_again_gives_the_same() -> None:
    base, labels = yield_base(reference.tree_rules(TREES_74))
    parent = labels["S"]
    one = [base.sample(parent, seed=1, stream=i, counter=5) for i in range(50)]
    assert one == [base.sample(parent, seed=1, stream=i, counter=5) for i in range(50)]
    assert one != [base.sample(parent, seed=2, stream=i, counter=5) for i in range(50)]
    assert isinstance(labels, Labels)
