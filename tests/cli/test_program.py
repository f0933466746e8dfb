"""The program as a whole: version, help, usage errors, streams, terminals."""

from __future__ import annotations

import os
import pty
import re
import shutil
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest
from tests.command_line import (
    HANGS,
    assert_fine,
    assert_refused,
    finish,
    start_treelm,
    treelm,
    treelm_inside,
)

from treelm.cli.main import COMMANDS

HELP_PAGES = [
    *((name,) for name in COMMANDS),
    *(("evaluate", name) for name in ("parses", "perplexity")),
    *(("judge", name) for name in ("export", "import")),
    *(("train", name) for name in ("ngram", "interpolated")),
]
GOOD = b"(S (NP (PRP I)) (VP (VBP sleep)))\n"


def on_a_terminal(*arguments: str, stdin: bytes = b"", stream: str, **variables: str) -> bytes:
    """Return what the program shows when `stream` is a terminal."""
    master, slave = pty.openpty()
    try:
        process = start_treelm(
            *arguments,
            stdout=slave if stream == "stdout" else subprocess.DEVNULL,
            stderr=slave if stream == "stderr" else subprocess.DEVNULL,
            env={"TERM": "xterm-256color", **variables},
        )
        os.close(slave)
        slave = -1
        assert process.stdin is not None
        process.stdin.write(stdin)
        process.stdin.close()
        process.stdin = None
        shown = b""
        while True:
            try:
                block = os.read(master, 65536)
            except OSError:  # Linux: the other end is gone
                break
            if not block:
                break
            shown += block
        assert process.wait(HANGS) == 0
    finally:
        os.close(master)
        if slave >= 0:
            os.close(slave)
    return shown


def test_program_version() -> None:
    assert assert_fine(treelm("--version")).decode() == version("treelm") + "\n"


def test_program_version_verbose() -> None:
    shown = assert_fine(treelm("--version", "--verbose")).decode()
    rows = dict(re.split(r"\s{2,}", line, maxsplit=1) for line in shown.splitlines())
    assert rows["treelm"] == version("treelm")
    assert rows["python"] == sys.version.split()[0]
    assert rows["numpy"] == version("numpy")
    assert {"native core", "platform", "pydantic", "cyclopts", "rich", "safetensors"} <= set(rows)


def test_program_help_names_every_command() -> None:
    for arguments in ((), ("--help",), ("-h",)):
        shown = assert_fine(treelm(*arguments)).decode()
        for name, command in COMMANDS.items():
            assert re.search(rf"^\W*{name} ", shown, re.MULTILINE)
            assert command.sentence in shown
        assert shown.rstrip().endswith("treelm demo")


@pytest.mark.parametrize("page", HELP_PAGES, ids="-".join)
def test_program_help_of_a_command(page: tuple[str, ...]) -> None:
    shown = assert_fine(treelm(*page, "--help")).decode()
    assert shown.rstrip().splitlines()[-1].startswith("Example: treelm ")
    if page in {("corrupt",), ("counts",), ("em",), ("evaluate",), ("judge",), ("train",)}:
        return
    # Every option states its default.
    options = re.split(r"^│ {1,4}(?=--)", shown, flags=re.MULTILINE)[1:]  # text is indented more
    assert len(options) >= 3
    for option in options:
        assert "default:" in re.sub(r"[│\s]+", " ", option), option
    assert "\x1b" not in shown


def test_program_help_works_in_a_narrow_terminal() -> None:
    shown = assert_fine(treelm("transform", "--help", env={"COLUMNS": "40"})).decode()
    assert max(map(len, shown.splitlines())) <= 40 + len(
        "Example: " + COMMANDS["transform"].example
    )


def test_program_script_equals_the_module() -> None:
    script = shutil.which("treelm", path=str(Path(sys.executable).parent))
    if script is None:
        pytest.skip("the script is not installed beside this Python")
    done = subprocess.run([script, "--help"], capture_output=True, timeout=HANGS)
    assert done.stderr == b""
    assert done.stdout == assert_fine(treelm("--help"))
    done = subprocess.run([script, "trasform"], capture_output=True, timeout=HANGS)
    module = treelm("trasform")
    assert (done.returncode, done.stderr) == (module.returncode, module.stderr)


@pytest.mark.parametrize(
    ("arguments", "guess"),
    [
        (["trasform"], '"transform"'),
        (["evaluate", "parse"], '"parses"'),
        (["draw", "--format", "sgv"], '"svg"'),
        (["transform", "--on-error", "rise"], '"raise"'),
        (["transform", "--pipline", "clean"], '"--pipeline"'),
        (["evaluate", "parses", "a", "b", "--jsn"], '"--json"'),
    ],
)
def test_program_guesses_what_was_meant(arguments: list[str], guess: str) -> None:
    done = treelm(*arguments)
    message = assert_refused(done, 2)
    assert "Did you mean" in message
    assert guess.strip('"') in message
    assert done.stdout == b""


@pytest.mark.parametrize(
    "arguments",
    [
        ["xyzzy"],
        ["--xyzzy"],
        ["-x"],
        ["transform", "--xyzzy"],
        ["transform", "-x"],
        ["tokenize", "--pipeline", "clean"],
        ["transform", "--threads", "many"],
        ["transform", "--threads"],
        ["transform", "-o"],
        ["draw", "one.mrg", "two.mrg"],
        ["draw", "--width", "wide"],
        ["inspect"],
        ["evaluate", "parses", "gold.mrg"],
        ["demo", "more"],
        ["transform", "--horizontal-order", "-1", "--pipeline", "binarize"],
        ["transform", "--vertical-order", "0", "--pipeline", "markovize"],
    ],
    ids=" ".join,
)
def test_program_wrong_usage(
    capfdbinary: pytest.CaptureFixture[bytes], arguments: list[str]
) -> None:
    done = treelm_inside(capfdbinary, *arguments)
    assert_refused(done, 2)
    assert done.stdout == b""


@pytest.mark.parametrize(
    "arguments",
    [
        ["transform", "--pipeline", "clean", "--threads", "5000"],
        ["transform", "--pipeline", "clean", "--threads", "0"],
        ["transform", "--pipeline", "clean", "--max-depth", "-1"],
        ["transform", "--pipeline", "clean", "--max-depth", "99999999999999"],
        ["draw", "--limit", "-1"],
    ],
    ids=" ".join,
)
def test_program_numbers_out_of_range_are_wrong_usage(arguments: list[str]) -> None:
    done = treelm(*arguments, stdin=GOOD)
    message = assert_refused(done, 2, f"{arguments[-2]} is {arguments[-1]}; it must be ")
    assert re.search(r"between 1 and \d+|[01] or more", message)


def test_program_traceback_shows_where(tmp_path: Path) -> None:
    done = treelm("transform", tmp_path / "missing", "--traceback")
    assert done.returncode == 1
    assert b"Traceback" in done.stderr
    assert b"InputFileError" in done.stderr


def test_program_option_order_does_not_matter(tmp_path: Path) -> None:
    (tmp_path / "a.mrg").write_bytes(GOOD)
    before = treelm("transform", "--pipeline", "clean", "-q", "a.mrg", cwd=tmp_path)
    after = treelm("transform", "a.mrg", "-q", "--pipeline=clean", cwd=tmp_path)
    assert assert_fine(before) == assert_fine(after)


def test_program_file_that_looks_like_an_option(tmp_path: Path) -> None:
    (tmp_path / "-x.mrg").write_bytes(GOOD)
    done = treelm("transform", "--pipeline", "clean", "-x.mrg", cwd=tmp_path)
    assert_refused(done, 2, "./-x.mrg")
    assert_fine(treelm("transform", "--pipeline", "clean", "./-x.mrg", cwd=tmp_path))


def test_program_progress_is_silent_without_a_terminal(sample_file: Path) -> None:
    assert treelm("transform", "--pipeline", "clean", sample_file).stderr == b""
    assert treelm("inspect", sample_file).stderr == b""


def test_program_progress_on_a_terminal_and_quiet(sample_file: Path) -> None:
    arguments = ("transform", "--pipeline", "markovize", str(sample_file))
    assert b"reading" in on_a_terminal(*arguments, stream="stderr")
    assert on_a_terminal(*arguments, "-q", stream="stderr") == b""


def test_program_no_color_is_respected() -> None:
    colour = re.compile(rb"\x1b\[(?:\d+;)*(?:3[0-7]|9[0-7]|38|4[0-7])[;m]")
    assert colour.search(on_a_terminal("--help", stream="stdout"))
    assert not colour.search(on_a_terminal("--help", stream="stdout", NO_COLOR="1"))


def test_program_pictures_fit_the_terminal() -> None:
    tree = b"(S " + b"(NN word) " * 40 + b")"
    shown = on_a_terminal("draw", stdin=tree, stream="stdout", COLUMNS="60").decode()
    assert max(map(len, shown.splitlines())) <= 60


def test_program_stdout_carries_data_only(tmp_path: Path) -> None:
    bad = GOOD * 300 + b"(S (NP a b))\n"
    done = treelm("transform", "-v", "--pipeline", "clean", stdin=bad)
    assert done.stdout == b"(ROOT (S (NP (PRP I)) (VP (VBP sleep))))\n" * 300
    assert done.stderr != b""


def test_program_keeps_nothing_heavy_in_its_help() -> None:
    # Help must answer at once: neither numpy nor the kernels are needed for it.
    code = "import sys; sys.argv = ['treelm', '--help']\nfrom treelm.cli.main import run\n"
    code += "run(['--help']); print(*(set(sys.modules) & {'numpy', 'pydantic'}), file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, timeout=HANGS)
    assert done.returncode == 0
    assert done.stderr.strip() == b""


def test_program_help_into_a_closed_pipe_is_quiet() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    process = start_treelm("--help", stdout=writing)
    os.close(writing)
    done = finish(process)
    assert done.stderr == b""
    assert done.returncode == 0


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_program_completion_knows_commands_and_options(shell: str) -> None:
    done = treelm("--completion", shell)
    script = assert_fine(done).decode()
    for name in ("transform", "vocabulary", "evaluate", "parses", "pipeline", "on-error"):
        assert name in script


@pytest.mark.parametrize(
    "arguments",
    [
        ["draw", "-", "-o", "-"],
        ["transform", "--pipeline", "clean", "-", "-o", "-"],
        ["tokenize", "--output", "-"],
    ],
)
def test_program_a_dash_is_standard_output(arguments: list[str]) -> None:
    text = b"rain fell\n" if "tokenize" in arguments else b"(S (NN rain))\n"
    assert b"rain" in assert_fine(treelm(*arguments, stdin=text))


def test_program_an_option_is_no_output(tmp_path: Path) -> None:
    done = treelm("draw", "-", "-o", "--frobnicate", stdin=b"(S (NN rain))\n", cwd=tmp_path)
    assert_refused(done, 2, "there is no option")
