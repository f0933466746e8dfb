"""`treelm serve` as a program: it says where it is, answers, and stops when it is told to."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest
from tests.command_line import treelm as run_treelm

import treelm


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = tmp_path_factory.mktemp("served") / "rain"
    treelm.train("ngram", [["rain", "fell"], ["it", "rained"]], order=1, smoothing="kn").save(found)
    return found


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_stops_the_server_quietly(number: int, folder: Path) -> None:
    pytest.importorskip("fastapi")
    pytest.importorskip("uvicorn")
    further = folder.with_name("snow")
    if not further.exists():
        shutil.copytree(folder, further)
    command = [sys.executable, "-m", "treelm", "serve", "-m", str(folder), "--port", "0"]
    command += ["--offer", str(further), "--no-ready"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.PIPE) as server:
        assert server.stderr is not None
        said = server.stderr.readline().decode()
        address = re.search(r"serving rain at (http://127\.0\.0\.1:\d+/)", said)
        assert address, said
        with urllib.request.urlopen(f"{address[1]}api/models", timeout=60) as answer:
            found = json.load(answer)
        states = [(model["name"], model["state"]) for model in found["models"]]
        assert states == [("rain", "ready"), ("snow", "offered")]
        assert str(folder.parent) not in json.dumps(found)
        os.kill(server.pid, number)
        out, err = server.communicate(timeout=60)
    assert (server.returncode, out, err) == (0, b"", b"")


def test_without_a_model_the_server_says_what_to_do() -> None:
    pytest.importorskip("fastapi")
    pytest.importorskip("uvicorn")
    done = run_treelm("serve", env={"PYTHONPATH": os.environ.get("PYTHONPATH", "")})
    if b"serving" not in done.stderr:
        assert done.returncode == 2
        assert b"name model folders with -m" in done.stderr


def test_an_address_that_is_taken_is_named(folder: Path) -> None:
    import socket

    pytest.importorskip("fastapi")
    pytest.importorskip("uvicorn")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        done = run_treelm("serve", "-m", folder, "--port", port)
    assert done.returncode == 1
    assert b"nobody can listen at 127.0.0.1 port " + port.encode() in done.stderr


def test_a_missing_extra_is_named_with_the_command(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from treelm.cli.serve import serve
    from treelm.errors import MissingExtra

    monkeypatch.setitem(sys.modules, "fastapi", None)
    with pytest.raises(MissingExtra, match=r'pip install "treelm\[web\]"'):
        serve(model=[str(folder)])
