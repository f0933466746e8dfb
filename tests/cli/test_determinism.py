"""The same bytes from every trainer and reader: any threads, hash seed, locale, working folder."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.command_line import HANGS, environment
from tests.every_system import TRAININGS, write_data

_READERS = {
    "score": "ngram pcfg pcfg_la hhmm slm composite plsa treelet headlex",
    "surprisal": "ngram hhmm slm",
    "parse": "pcfg pcfg_la hhmm",
    "classify": "lsvm trigram_svm tree_features",
}
READINGS = {
    f"{command} {name}": f"{command} dev.txt -m {name}"
    for command, names in _READERS.items()
    for name in names.split()
} | {"sample ngram": "sample -m ngram --count 5 --seed 3"}
#: Trains and reads everything in one process, which is quicker.
_PROGRAM = """
import json, sys
from treelm.cli.main import run
for line in json.load(sys.stdin):
    code = run(line)
    if code:
        sys.exit(f"{line}: exit code {code}")
"""


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
    place = os.path.relpath(folder, cwd)
    lines = [f"vocabulary --text train.txt --min-count 1 -o words --threads {threads}"]
    lines += [f"train {line} -q --threads {threads}" for line in TRAININGS.values()]
    for name, line in READINGS.items():
        many = "" if name.startswith("sample") else f" --threads {threads}"
        lines.append(f"{line} -q{many} -o {name.replace(' ', '_')}.out")
    known = {*TRAININGS, "words", *(path.name for path in folder.iterdir())}
    made = {f"{name.replace(' ', '_')}.out" for name in READINGS}
    calls = [_placed(line, known | made, place) for line in lines]
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
    for name in sorted(made | {"words"}):
        found[name] = hashlib.sha256((folder / name).read_bytes()).hexdigest()
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


@pytest.mark.parametrize(
    ("threads", "hash_seed", "language"),
    [(1, "1", "C"), (2, "2", "C.UTF-8"), (3, "3", "tr_TR.UTF-8"), (3, "4", "de_DE.ISO-8859-1")],
)
def test_models_and_results_have_the_same_bytes_everywhere(
    threads: int, hash_seed: str, language: str, tmp_path: Path, expected: dict[str, str]
) -> None:
    env = {"PYTHONHASHSEED": hash_seed, "LANG": language, "LC_ALL": language}
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    assert results(tmp_path / "data", threads, env, elsewhere) == expected
