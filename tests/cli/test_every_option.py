"""No number makes a traceback, no target is refused after the work, and streams may be closed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from cyclopts import Argument
from tests.cli.every_option import DRAWING, Call, every_call, is_numeric, is_written
from tests.command_line import assert_refused, finish, start_treelm, treelm, treelm_inside

from treelm.cli.reference import value_type
from treelm.models.interface.config import options_of
from treelm.models.registry import find_system, systems

CALLS = {" ".join(call.words): call for call in every_call()}
#: Commands that read no file.
WITHOUT_INPUT = {"demo", "models"}
READING = {name: call for name, call in CALLS.items() if name not in WITHOUT_INPUT}

NOT_WHOLE = ("nan", "inf", "-inf", "1e308", "2.5", "")
TOO_LARGE = (str(1 << 64), str(10**23), "9" * 400)
LARGE = (str((1 << 31) - 1), str(1 << 31), str(1 << 63), *TOO_LARGE)
NUMBERS = ("-1", "0", *LARGE, *NOT_WHOLE)
#: For an option that another command declares alike: whether this one checks it at all.
FEW_NUMBERS = ("-1", "0", str(1 << 63), "nan")

Capture = pytest.CaptureFixture[bytes]


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def _calls_with(wanted: Any) -> list[Any]:
    return [
        pytest.param(call, argument, id=f"{name} {argument.name}")
        for name, call in CALLS.items()
        for argument in call.arguments
        if wanted(argument)
    ]


@pytest.mark.parametrize("name", READING)
def test_every_command_without_its_input_says_so(name: str, capfdbinary: Capture) -> None:
    # Otherwise the tests below would see nothing of what happens to numbers that are accepted.
    done = treelm_inside(capfdbinary, *READING[name].line("out"))
    assert_refused(done, 3, "no-such-file")
    assert not Path("out").exists()


def _declaration(argument: Argument) -> tuple[str, str, str]:
    """Return what commands have in common that take the same option."""
    return argument.name, str(argument.hint), str(argument.parameter.validator)


#: The first command that has each.
DECLARED = {
    _declaration(argument): call
    for call in reversed(CALLS.values())
    for argument in call.arguments
    if is_numeric(argument)
}


@pytest.mark.parametrize(("call", "argument"), _calls_with(is_numeric))
def test_every_number_is_refused_or_accepted_without_a_traceback(
    call: Call, argument: Argument, capfdbinary: Capture
) -> None:
    whole = value_type(argument.hint) is int
    is_first = DECLARED[_declaration(argument)] is call
    for number in NUMBERS if is_first else FEW_NUMBERS:
        value = [f"{argument.name}={number}"]
        done = treelm_inside(capfdbinary, *call.line("out", without=argument), *value)
        if done.returncode:
            assert_refused(done, 3 if done.returncode == 3 else 2)
        must_fail = number in ("nan", "inf", "-inf", "", "1e308") or (
            whole and (number in TOO_LARGE or number in NOT_WHOLE)
        )
        if must_fail and argument.name != "--thresholds":
            assert done.returncode == 2, (number, done.stderr.decode())
    # Nothing is read to draw the first 0 trees of it.
    assert not Path("out").exists() or call.words == ("draw",)


@pytest.mark.parametrize("size", ["", "-1", "0", "nan", "inf", "1e308", "99999999999T", "9" * 30])
def test_memory_sizes_no_machine_has_are_refused(size: str, capfdbinary: Capture) -> None:
    calls = [
        call
        for call in CALLS.values()
        if any(argument.name == "--memory" for argument in call.arguments)
    ]
    assert calls
    for call in calls:
        memory = next(each for each in call.arguments if each.name == "--memory")
        if value_type(memory.hint) is not str:
            continue  # lsvm's memory of trees, on or off
        done = treelm_inside(capfdbinary, *call.line("out"), f"--memory={size}")
        assert_refused(done, 2, "--memory")


@pytest.mark.parametrize(("call", "argument"), _calls_with(is_written))
def test_every_target_is_checked_before_anything_is_read(
    call: Call, argument: Argument, capfdbinary: Capture
) -> None:
    Path("file").touch()
    is_picture = argument.name == "--plot" or call.words[0] in DRAWING
    suffix = ".svg" if is_picture else ""
    for target, reason in (
        (f"missing/x{suffix}", "does not exist"),
        (f"file/x{suffix}", "is no folder"),
        ("x" * (256 - len(suffix)) + suffix, "the name has 256 bytes"),
    ):
        if argument.index is None:
            line = [*call.line("out", without=argument), f"{argument.name}={target}"]
        else:
            line = call.line(target)
        # The input is missing too, which would be told only by a command that began to read.
        assert_refused(treelm_inside(capfdbinary, *line), 1, target, reason)


@pytest.mark.parametrize("system", systems())
def test_config_numbers_have_both_bounds(system: str) -> None:
    for option in options_of(find_system(system).config_class):
        if not option.is_numeric or option.name == "bits":
            continue  # a choice
        assert {"least", "above"} & set(option.bounds), option.name
        assert {"most", "below"} & set(option.bounds), option.name


@pytest.mark.slow
@pytest.mark.parametrize("closed", [(0,), (1,), (2,), (0, 1), (0, 1, 2)], ids=str)
@pytest.mark.parametrize("name", CALLS)
def test_every_command_bears_closed_streams(name: str, closed: tuple[int, ...]) -> None:
    done = treelm(*CALLS[name].line("out"), closed=closed)
    assert b"Traceback" not in done.stderr, done.stderr.decode()
    assert done.returncode in ((0, 1) if name in WITHOUT_INPUT else (1, 3)), done.stderr.decode()


@pytest.mark.slow
@pytest.mark.parametrize("closed", [(0,), (1,), (2,), (0, 1, 2)], ids=str)
def test_train_with_closed_streams_saves_a_model(closed: tuple[int, ...]) -> None:
    Path("text").write_text("a b c\nb c a\nc a b\n")
    line = ("train", "ngram", "--text", "text", "--order", "2", "--smoothing", "kn", "-o", "model")
    done = finish(start_treelm(*line, closed=closed))
    assert done.returncode == 0, done.stderr.decode()
    assert Path("model", "manifest.json").exists()
