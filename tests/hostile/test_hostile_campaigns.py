"""A few tries of the campaigns of kills and of odd environments, and that they see what is wrong."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from tests.command_line import SANITIZED
from tests.fuzz import environment_campaign, kill_campaign
from tests.fuzz.forked_program import Campaign, Ended, run_program

#: Of each kind; the campaigns themselves are run by `make attack`.
TRIES = 3 if SANITIZED else 6


@pytest.mark.parametrize(
    "attempt",
    [
        kill_campaign.attempt,
        environment_campaign.try_environment,
        environment_campaign.try_options,
    ],
)
def test_tries_of_campaigns_have_no_findings(attempt: kill_campaign.Attempt, models: Path) -> None:
    campaign = Campaign()
    for number in range(TRIES):
        attempt(random.Random(f"test {number}"), models, campaign)
    assert not campaign.findings
    assert campaign.tried.total() == TRIES


@pytest.mark.parametrize(
    ("ended", "fault"),
    [
        (Ended(-11, b"", b"", 1.0), "exit code -11"),
        (Ended(1, b"", b"treelm: x\nTraceback (most recent call last)\n", 1.0), "a traceback"),
        (Ended(1, b"", b"treelm: \x1b[31m\n", 1.0), "unfit for a terminal"),
        (Ended(2, b"", b"", 1.0), "without a message"),
        (Ended(2, b"", b"treelm: no.\n", 1.0), None),
        (Ended(0, b"1\n", b"", 1.0), None),
    ],
)
def test_faults_of_a_process(ended: Ended, fault: str | None) -> None:
    if fault is None:
        assert ended.fault is None
    else:
        assert fault in str(ended.fault)


def test_a_result_that_is_half_there_is_a_finding(
    models: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def breaking(arguments: list[str], folder: Path, **options: object) -> Ended:
        done = run_program(arguments, folder)
        if "kill_after" in options:
            (folder / "made.scores").write_text("half")
        return done

    name = "score -m ngram train.txt"
    monkeypatch.setattr(kill_campaign, "COMMANDS", {name: kill_campaign.COMMANDS[name]})
    kill_campaign.undisturbed(name, models)
    monkeypatch.setattr(kill_campaign, "run_program", breaking)
    campaign = Campaign()
    kill_campaign.attempt(random.Random(1), models, campaign)
    (finding,) = campaign.findings
    assert "neither old nor new" in finding["fault"]


def test_killed_processes_are_told_from_others(models: Path) -> None:
    assert run_program(["--version"], models).code == 0
    line = ["parse", "-m", "pcfg", "train.txt", "--long", "refuse"]
    assert run_program(line, models, kill_after=0.0).code == -9
