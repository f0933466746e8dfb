"""Some forged models of every system, and what the campaign does with each kind of failure."""

from __future__ import annotations

import json
import os
import signal
from collections import Counter
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest
from tests.fuzz import forge_campaign
from tests.fuzz.campaign import FINDING
from tests.fuzz.forge_campaign import (
    SANITIZED,
    SUBJECTS,
    main,
    make_forgers,
    run_campaign,
    table_of,
)
from tests.fuzz.forged_folder import Folder
from tests.fuzz.forged_use import Answers, use
from tests.fuzz.forger import Forger
from tests.fuzz.small_models import MAKERS
from tests.fuzz.small_trainings import TRAININGS

from treelm.models.registry import SYSTEMS
from treelm.testing.model_folders import different_files

pytestmark = pytest.mark.slow

#: Of every system; `make forge` takes more, and a build with sanitizers is many times slower.
MUTANTS = 25 if SANITIZED else 80
SEED = 1


@cache
def forgers() -> dict[str, Forger]:
    return make_forgers(SUBJECTS)


def test_forger_has_models_and_trainings_of_every_system() -> None:
    assert list(MAKERS) == list(SYSTEMS)
    resumable = {name for name, system in SYSTEMS.items() if system.is_resumable}
    # What a ranker resumes from are files of parses, which have a fuzzer of their own.
    assert {system for system, _ in TRAININGS.values()} == resumable - {"tree_ranker"}


@pytest.mark.parametrize("system", SUBJECTS)
def test_forged_models_are_refused_with_a_code_or_sane(system: str) -> None:
    tally = run_campaign({system: forgers()[system]}, MUTANTS, SEED)[system]
    assert not tally.findings, "\n".join(map(str, tally.findings))
    assert tally.tried == MUTANTS
    # Both kinds, or the forger has lost its way; of a few mutants by chance only one or two are sane.
    assert tally.sane > MUTANTS // 20
    assert tally.refused.total() > MUTANTS // 4


@pytest.mark.parametrize("system", MAKERS)
def test_forger_writes_what_it_did_not_change_as_it_was(system: str, tmp_path: Path) -> None:
    for number, folder in enumerate(forgers()[system].originals):
        folder.write(tmp_path / f"{number}")
        assert use(tmp_path / f"{number}", tmp_path, thorough=True).refused is None
        assert Folder.read(tmp_path / f"{number}").texts == folder.texts


def test_forged_folders_depend_on_seed_and_number_alone(tmp_path: Path) -> None:
    forger, again = forgers()["treelet"], make_forgers(["treelet"])["treelet"]
    kinds = Counter[str]()
    for number in range(60):
        folder, changes = forger.mutant(SEED, number)
        other, same_changes = again.mutant(SEED, number)
        assert changes == same_changes
        kinds.update(change.partition(":")[0] for change in changes)
        folder.write(tmp_path / f"{number}-first")
        other.write(tmp_path / f"{number}-second")
        first, second = (contents(tmp_path / f"{number}-{name}") for name in ("first", "second"))
        assert not different_files(first, second)
    assert len(kinds) > 20
    assert [forger.mutant(2, number)[1] for number in range(60)] != [
        forger.mutant(SEED, number)[1] for number in range(60)
    ]


def contents(folder: Path) -> dict[str, object]:
    """Return the bytes of a forged folder; its manifest may lack anything, and has a date."""
    found: dict[str, object] = {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }
    for name in [name for name in found if name.endswith("manifest.json")]:
        manifest = json.loads(found[name])  # type: ignore[call-overload]
        found[name] = {key: value for key, value in manifest.items() if key != "date"}
    return found


# -- failures ------------------------------------------------------------------------------------


def die() -> None:
    signal.signal(signal.SIGSEGV, signal.SIG_DFL)  # pytest would print where every thread is
    os.kill(os.getpid(), signal.SIGSEGV)


def hang() -> None:
    while True:
        pass


def take_memory() -> None:
    bytearray(3 << 30)


def fail() -> None:
    raise KeyError("x")


FAILURES: dict[str, tuple[Callable[[], None], str]] = {
    "signal": (die, "SIGSEGV"),
    "hang": (hang, "more than 1 s"),
    "memory": (take_memory, "MemoryError"),
    "exception": (fail, "KeyError"),
}
if SANITIZED:
    del FAILURES["memory"]  # a sanitizer needs all of the address space
_BAD = 5


@pytest.mark.parametrize("kind", FAILURES)
def test_campaign_names_every_kind_of_failure(
    kind: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    failure, detail = FAILURES[kind]

    def broken(folder: Path, work: Path, *, thorough: bool) -> Answers:
        if folder.name == str(_BAD):
            failure()
        return Answers("E_MODEL_TABLES" if int(folder.name) % 2 else None)

    monkeypatch.setattr(forge_campaign, "use", broken)
    monkeypatch.setattr(forge_campaign, "MAX_SECONDS", 1.0)
    arguments = ["--system", "ngram", "--mutants", "12", "--processes", "2"]
    output = tmp_path / "findings.jsonl"
    assert main([*arguments, "--output", str(output)]) == FINDING
    (finding,) = map(json.loads, output.read_text().splitlines())
    assert (finding["system"], finding["seed"], finding["number"]) == ("ngram", 1, _BAD)
    assert finding["kind"] == kind
    assert detail in finding["detail"]
    assert finding["changes"] == forgers()["ngram"].mutant(1, _BAD)[1]
    # All others were tried once each.
    row = capsys.readouterr().out.splitlines()[1].split()
    assert row[:6] == ["ngram", "12", "6", "5", kind, "1"]


def test_campaign_shows_one_mutant(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["--system", "pcfg", "--seed", "3", "--only", "7"]
    changes = forgers()["pcfg"].mutant(3, 7)[1]
    assert main([*arguments, "--keep", str(tmp_path / "kept")]) == 0
    assert capsys.readouterr().out.splitlines()[:-1] == changes
    assert (tmp_path / "kept" / "manifest.json").exists()

    def broken(folder: Path, work: Path, *, thorough: bool) -> Answers:
        raise KeyError(folder.name)

    monkeypatch.setattr(forge_campaign, "use", broken)
    assert main(arguments) == FINDING
    assert "KeyError: '7'" in capsys.readouterr().err


def test_campaign_ends_in_time() -> None:
    found = run_campaign({"ngram": forgers()["ngram"]}, 10**6, SEED, seconds=1)
    assert 0 < found["ngram"].tried < 10**6
    assert f" {found['ngram'].tried} " in table_of(found)
