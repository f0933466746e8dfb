"""The same bytes from every trainer and reader: any threads, hash seed, locale, working folder."""

from __future__ import annotations

import hashlib
import itertools
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.command_line import HANGS, environment
from tests.every_system import TRAININGS, write_data

from treelm.models.registry import find_system

#: What is typed for each ability; the output is a file, and perplexity's is standard output.
_COMMANDS = {
    "score": "score dev.txt",
    "surprisal": "surprisal dev.txt",
    "parse": "parse dev.txt",
    "classify": "classify dev.txt",
    "perplexity": "evaluate perplexity dev.txt --json",
    "sample": "sample --count 5 --seed 3",
}


def _judges(name: str) -> bool:
    """Tell whether a model gives margins: `classify` reads with it, `score` does not."""
    return "classify" in find_system(name).model_class.tasks


READINGS = {
    f"{task} {name}": f"{command} -m {name}"
    for name in TRAININGS
    for task, command in _COMMANDS.items()
    if task in find_system(name).model_class.tasks and not (task == "score" and _judges(name))
}
READINGS["decode stack"] = (
    "decode dev.txt --phrase-table table.txt --weights weights.ini -m ngram -m plsa --stack-size 20"
    " --distortion-limit 2"
)
READINGS["decode cube"] = (
    "decode dev.txt --phrase-table table.txt --weights weights.ini -m ngram -m hhmm --search cube"
    " --pop-limit 20 --distortion-limit 2"
)
_WITHOUT_THREADS = frozenset({"sample"})
_WITHOUT_OUTPUT = frozenset({"perplexity"})
#: Trains and reads everything in one process, which is quicker.
_PROGRAM = """
import contextlib, json, sys
from pathlib import Path
from treelm.cli.main import run
for line, output in json.load(sys.stdin):
    with contextlib.ExitStack() as stack:
        if output is not None:
            file = stack.enter_context(Path(output).open("w"))
            stack.enter_context(contextlib.redirect_stdout(file))
        code = run(line)
    if code:
        sys.exit(f"{line}: exit code {code}")
"""


def write_table(folder: Path) -> None:
    """Write a phrase table that translates words by themselves or others, and weights."""
    words = sorted(set((folder / "dev.txt").read_text("utf-8").split()))
    lines = (
        f"{word} ||| {target} ||| {probability} ||| 0-0\n"
        for word, other in zip(words, words[1:] + words[:1], strict=True)
        for target, probability in ((word, 0.5), (other, 0.5))
    )
    (folder / "table.txt").write_text("".join(lines), "utf-8")
    names = ("TranslationModel0", "LM0", "LM1", "Distortion0", "WordPenalty0", "PhrasePenalty0")
    weights = "".join(f"{name}= 0.5\n" for name in (*names, "UnknownWordPenalty0"))
    (folder / "weights.ini").write_text(f"[weight]\n{weights}", "utf-8")


def results(folder: Path, threads: int, env: dict[str, str], cwd: Path) -> dict[str, str]:
    """Return the checksums of all models and results that one process makes.

    Args:
        folder: Where the data lie and results go.
        threads: Threads of every command.
        env: Variables of the process.
        cwd: Its working folder; all names are relative to that.
    """
    folder.mkdir()
    write_data(folder)
    write_table(folder)
    place = os.path.relpath(folder, cwd)
    known = {*TRAININGS, "words", *(path.name for path in folder.iterdir())}
    many = ["--threads", str(threads)]
    first = "vocabulary --text train.txt --min-count 1 -o words"
    calls: list[tuple[list[str], str | None]] = [(_placed(first, known, place) + many, None)]
    trainings = (_placed(f"train {line} -q", known, place) for line in TRAININGS.values())
    calls.extend((words + many, None) for words in trainings)
    outputs = {name: f"{name.replace(' ', '_')}.out" for name in READINGS}
    for name, line in READINGS.items():
        task = name.split()[0]
        words = _placed(f"{line} -q", known, place) + ([] if task in _WITHOUT_THREADS else many)
        written = os.path.join(place, outputs[name])  # noqa: PTH118 (a relative name)
        to_file = task not in _WITHOUT_OUTPUT
        calls.append((words + (["-o", written] if to_file else []), None if to_file else written))
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", _PROGRAM],
        input=json.dumps(calls).encode(),
        capture_output=True,
        env=environment(env),
        cwd=cwd,
        timeout=HANGS,
    )
    assert done.returncode == 0, done.stderr.decode()
    found = {name: _model_checksum(folder / name) for name in TRAININGS}
    for name in ("words", *outputs.values()):
        content = (folder / name).read_bytes().replace(f"{place}{os.sep}".encode(), b"")
        assert content, f"{name} is empty"
        found[name] = hashlib.sha256(content).hexdigest()
    return found


def _placed(line: str, names: set[str], place: str) -> list[str]:
    """Return the words of a line, with the names of files where the working folder sees them."""
    command, *words = line.split()
    start = 2 if command == "train" else 1
    found = [command, *words]
    for at in range(start, len(found)):
        if found[at] in names:
            found[at] = os.path.join(place, found[at])  # noqa: PTH118 (a relative name)
    return found


def _model_checksum(folder: Path) -> str:
    """Return the checksum of a model without its date and the names of its training files."""
    digest = hashlib.sha256()
    for path in sorted(folder.rglob("*")):
        if path.name == "README.md" or path.is_dir():
            continue
        content = path.read_bytes()
        if path.name == "manifest.json":
            manifest = json.loads(content)
            del manifest["date"]
            for corpus in manifest["corpora"]:
                del corpus["name"]
            content = json.dumps(manifest, sort_keys=True).encode()
        digest.update(f"{path.relative_to(folder)}\n".encode())
        digest.update(content)
    return digest.hexdigest()


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    folder = tmp_path_factory.mktemp("first")
    return results(folder / "data", 1, {"PYTHONHASHSEED": "0", "LANG": "C.UTF-8"}, folder / "..")


#: Threads, hash seed, language, whether another working folder: a few that differ in all of them.
_FEW = [
    (1, "1", "C", True),
    (2, "2", "C.UTF-8", False),
    (3, "3", "tr_TR.UTF-8", True),
    (3, "random", "de_DE.ISO-8859-1", True),
]
_ALL = itertools.product(
    (1, 2, 3),
    ("0", "1", "random"),
    ("C", "C.UTF-8", "tr_TR.UTF-8", "de_DE.ISO-8859-1"),
    (True, False),
)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Test a few combinations, or all of them in a campaign."""
    if "way" in metafunc.fixturenames:
        chosen = _ALL if metafunc.config.getoption("--campaign") else _FEW
        metafunc.parametrize("way", list(chosen))


def test_models_and_results_have_the_same_bytes_everywhere(
    way: tuple[int, str, str, bool], tmp_path: Path, expected: dict[str, str]
) -> None:
    threads, hash_seed, language, elsewhere = way
    env = {"PYTHONHASHSEED": hash_seed, "LANG": language, "LC_ALL": language}
    other = tmp_path / "elsewhere"
    other.mkdir()
    assert results(tmp_path / "data", threads, env, other if elsewhere else tmp_path) == expected
