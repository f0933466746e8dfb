"""EM of the composite model: likelihood never falls, threads do not matter, rounds can be resumed."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.models.composite_models import logged, sample_composite, sample_parts
from tests.models.slm_cases import example_parts, text_of, trusting

import treelm.models.composite.train as training
from treelm.errors import EstimationError, UsageError
from treelm.estimation.lattice import LatticeTables
from treelm.estimation.lattice_weights import CheckEvents, LatticeModel
from treelm.models.composite.checkpoint import Checkpoint, training_key
from treelm.models.composite.config import CompositeConfig
from treelm.models.composite.em import (
    Data,
    better_lists,
    first_parts,
    n_best_step,
    part_of_lists,
    posteriors,
)
from treelm.models.composite.follow_up import follow_up_step
from treelm.models.composite.model import CompositeModel
from treelm.models.composite.parts import CompositeShape
from treelm.models.plsa.check_text import check_overlap

pytestmark = pytest.mark.slow


def trust(
    tables: Mapping[str, LatticeTables], check: Mapping[str, CheckEvents] | None, threads: int
) -> dict[str, LatticeModel]:
    del check, threads
    return {name: trusting(each) for name, each in tables.items()}


def test_n_best_likelihood_never_falls() -> None:
    """Without smoothing and cut-off, with lists that may stay as they are."""
    train, _ = sample_parts()
    text = train.text.part(0, 60)
    config = CompositeConfig(order=2, heads=2, stack_size=6, n_best=5, choice_beam=0.0, cutoff=0.0)
    shape = CompositeShape(config, len(train.vocabulary), train.codes)
    parts, _ = first_parts(shape, Data(text), None)
    lists, history = None, []
    for _ in range(4):
        made = n_best_step(parts, Data(text), None, lists, fit=trust)
        parts, lists = made.parts, made.lists
        history.append(made.log_likelihood)
    assert all(after >= before - 1e-6 for before, after in itertools.pairwise(history))
    assert history[-1] > history[0]


def test_follow_up_likelihood_never_falls() -> None:
    parts = example_parts(n_best=4, cutoff=0.0)
    data = Data(text_of(["dogs bark", "dogs bark", "dogs", "dogs dogs"]))
    model, history = parts.models["predictor"], []
    for _ in range(4):
        made, log_likelihood, _ = follow_up_step(parts, model, data, None)
        model = trusting(made.tables)
        history.append(log_likelihood)
    assert all(after >= before - 1e-9 for before, after in itertools.pairwise(history))


def test_predictor_counts_are_the_words() -> None:
    train, _ = sample_parts()
    model = sample_composite(order=2)
    text = train.text.part(0, 30)
    lists = model.parts.best_parses(text, count=5)
    rows, _ = model.parts.events(text, lists, posteriors(lists)[0])
    rounding = 5 * len(text.ids) + 5 * len(text)
    assert abs(int(rows["predictor"][2].sum()) - (text.tokens << 30)) <= rounding


def test_training_is_the_same_for_any_number_of_threads() -> None:
    config = CompositeConfig(order=2, heads=2, stack_size=4, iterations=1, follow_up=1, n_best=4)
    (one, first), (two, second) = (logged(config, threads=threads) for threads in (1, 2))
    assert one.fingerprint == two.fingerprint
    assert [step.log_likelihood for step in first] == [step.log_likelihood for step in second]
    for name, array in one.parts.to_tensors().items():
        assert array.tobytes() == two.parts.to_tensors()[name].tobytes()


def test_an_interrupted_training_goes_on(tmp_path: Path) -> None:
    options = {"order": 2, "heads": 2, "stack_size": 3, "n_best": 3, "tolerance": 0.0}
    whole, log = logged(CompositeConfig(**options, iterations=2, follow_up=1))  # type: ignore[arg-type]
    kinds = [step.kind for step in log]
    assert kinds[0] == "n-best"
    assert kinds[-1] == "follow-up"
    checkpoint = Checkpoint.beside(tmp_path / "model")
    short = CompositeConfig(**options, iterations=1, follow_up=0)  # type: ignore[arg-type]
    logged(short, checkpoint=checkpoint)
    again, rest = logged(
        CompositeConfig(**options, iterations=2, follow_up=1),  # type: ignore[arg-type]
        checkpoint=checkpoint,
        resume=True,
    )
    assert rest == log
    assert same_tables(whole, again)
    other = CompositeConfig(**{**options, "stack_size": 5})  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="another training"):
        logged(other, checkpoint=checkpoint, resume=True)


def same_tables(one: CompositeModel, other: CompositeModel) -> bool:
    found = other.parts.to_tensors()
    return all(
        array.tobytes() == found[name].tobytes() for name, array in one.parts.to_tensors().items()
    )


@pytest.mark.parametrize("kind", ["n-best", "follow-up"])
def test_a_fall_leads_back_to_the_round_before(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The third round of a kind finds a likelihood below that of the second."""
    options = {"order": 2, "heads": 1, "stack_size": 3, "n_best": 2, "tolerance": 0.0}
    lengths = {"iterations": 3, "follow_up": 0} if kind == "n-best" else {"iterations": 0}
    config = CompositeConfig(**{**options, "follow_up": 3, **lengths})  # type: ignore[arg-type]
    shorter = {name: min(1, most) for name, most in {"follow_up": 3, **lengths}.items()}
    kept_before, _ = logged(CompositeConfig(**{**options, **shorter}))  # type: ignore[arg-type]
    calls = 0

    def falling(real: Callable[..., Any]) -> Callable[..., Any]:
        def step(*arguments: Any, **named: Any) -> Any:
            nonlocal calls
            calls += 1
            found = real(*arguments, **named)
            if calls != 3:
                return found
            if kind == "n-best":
                return replace(found, log_likelihood=-1e9)
            return found[0], -1e9, found[2]

        return step

    name = "n_best_step" if kind == "n-best" else "follow_up_step"
    monkeypatch.setattr(training, name, falling(getattr(training, name)))
    whole, log = logged(config)
    assert [step.fell for step in log if step.kind == kind] == [False, False, True]
    rising = [step.log_likelihood for step in log if step.kind == kind and not step.fell]
    assert rising == sorted(rising)
    assert same_tables(whole, kept_before)
    # The same when training is interrupted in the round that falls.
    calls = 0
    checkpoint = Checkpoint(tmp_path / "training")
    two = {name: min(2, most) for name, most in {"follow_up": 3, **lengths}.items()}
    logged(CompositeConfig(**{**options, **two}), checkpoint=checkpoint)  # type: ignore[arg-type]
    again, rest = logged(config, checkpoint=checkpoint, resume=True)
    assert rest == log
    assert same_tables(again, whole)
    checkpoint.remove()
    assert not checkpoint.folder.exists()


def test_key_tells_trainings_apart() -> None:
    train, held_out = sample_parts()
    keys = set()
    for options in ({"order": 2}, {"order": 3}, {"order": 3, "heads": 1}):
        shape = CompositeShape(CompositeConfig(**options), len(train.vocabulary), train.codes)  # type: ignore[arg-type]
        keys |= {training_key(shape, train, held_out), training_key(shape, train, None)}
    assert len(keys) == 6


def test_likelier_lists_stay() -> None:
    train, _ = sample_parts()
    text = train.text.part(0, 20)
    model = sample_composite(order=2)
    good = model.parts.best_parses(text, count=5)
    poor = model.parts.best_parses(text, count=1)
    kept = better_lists(poor, good)
    assert posteriors(kept)[1] == pytest.approx(
        np.maximum(posteriors(good)[1], posteriors(poor)[1])
    )
    assert better_lists(good, poor) is good
    piece = part_of_lists(good, 5, 9)
    assert posteriors(piece)[1] == pytest.approx(posteriors(good)[1][5:9])


def test_cutoff_drops_rare_types() -> None:
    train, held_out = sample_parts()
    config = CompositeConfig(order=2, heads=1, cutoff=1.5)
    shape = CompositeShape(config, len(train.vocabulary), train.codes)
    cut, _ = first_parts(shape, Data(train.text), Data(held_out))
    full_shape = CompositeShape(
        CompositeConfig(order=2, heads=1), len(train.vocabulary), train.codes
    )
    full, _ = first_parts(full_shape, Data(train.text), Data(held_out))
    assert cut.models["predictor"].tables.types() < full.models["predictor"].tables.types() / 2
    assert cut.models["tagger"].types == full.models["tagger"].types
    with pytest.raises(EstimationError):
        too_high = CompositeShape(
            CompositeConfig(order=2, heads=1, cutoff=1e6), len(train.vocabulary), train.codes
        )
        first_parts(too_high, Data(train.text), None)


def test_held_out_sentences_must_be_others() -> None:
    train, held_out = sample_parts()
    check_overlap(train.text.encoded, held_out.encoded)
    with pytest.raises(EstimationError, match="training text") as caught:
        check_overlap(train.text.encoded, train.text.part(0, 50).encoded)
    assert caught.value.code == "E_OVERLAP"


def test_em_makes_the_training_text_likelier() -> None:
    _, log = logged(
        CompositeConfig(order=1, heads=2, stack_size=4, n_best=4, iterations=2, tolerance=0.0)
    )
    n_best = [step for step in log if step.kind == "n-best"]
    assert n_best[1].log_likelihood > n_best[0].log_likelihood
    assert all(math.isfinite(step.perplexity) for step in log)
