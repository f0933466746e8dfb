"""A few thousand executions of every Python fuzz target, and what the campaign does with a finding."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.fuzz import campaign, fuzz_forest, fuzz_manifest, fuzz_safetensors
from tests.fuzz.campaign import FINDING, Target, attack, inputs, run_program
from tests.fuzz.mutation import Random, mutate_bytes, mutate_json

TARGETS = {
    module.TARGET.name: module.TARGET for module in (fuzz_forest, fuzz_manifest, fuzz_safetensors)
}
EXECUTIONS = 3000


@pytest.fixture(params=TARGETS)
def target(request: pytest.FixtureRequest) -> Target:
    """Every target in turn."""
    return TARGETS[request.param]


def test_fuzz_readers_without_a_finding(
    target: Target, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = [f"-runs={EXECUTIONS}", f"-artifact_prefix={tmp_path}/"]
    assert run_program(target, arguments) == 0, capsys.readouterr().err
    assert f"{EXECUTIONS} executions" in capsys.readouterr().out
    assert not list(tmp_path.iterdir())


def test_fuzz_readers_seeds_are_accepted_and_some_forged_ones_too(target: Target) -> None:
    assert all(attack(target, seed) for seed in target.seeds)
    forged = [attack(target, target.forge(Random(1, number))) for number in range(300)]
    assert 5 < sum(forged) < 295


def test_fuzz_inputs_depend_on_the_seed_alone(target: Target) -> None:
    def first(seed: int) -> list[bytes]:
        return list(inputs(target, target.seeds, 50, seed, 500))

    assert first(1) == first(1) != first(2)
    assert all(len(data) <= 500 for data in first(1)[len(target.seeds) :])


def broken(data: bytes) -> None:
    if b"7" in data:
        raise KeyError(data)
    if b"8" in data:
        while True:
            pass


@pytest.mark.parametrize("digit", [b"7", b"8"])
def test_fuzz_campaign_keeps_findings(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    digit: bytes,
) -> None:
    monkeypatch.setattr(campaign, "MAX_SECONDS", 0.2)
    target = Target("digits", broken, [b"123"], [digit], lambda random: b"123")
    assert run_program(target, ["-runs=500", f"-artifact_prefix={tmp_path}/"]) == FINDING
    assert "a finding at execution" in capsys.readouterr().err
    (kept,) = tmp_path.iterdir()
    assert digit in kept.read_bytes()
    # The file alone shows it again; a good one does not.
    assert run_program(target, [f"-artifact_prefix={tmp_path}/", str(kept)]) == FINDING
    (tmp_path / "good").write_bytes(b"1")
    assert run_program(target, [f"-artifact_prefix={tmp_path}/", str(tmp_path / "good")]) == 0


def test_fuzz_mutations_leave_their_source_alone() -> None:
    def numbers() -> Iterator[Random]:
        return (Random(3, number) for number in range(2000))

    value = {"a": [1, {"b": "c"}], "d": 2, "e": {}}
    before = json.dumps(value)
    changed = [mutate_json(value, random) != value for random in numbers()]
    assert sum(changed) > 1500
    assert json.dumps(value) == before
    data = b'{"x": 1}'
    made = {mutate_bytes(data, random, [b"NaN"], [b"other"], 40) for random in numbers()}
    assert len(made) > 1000
    assert max(map(len, made)) == 40
