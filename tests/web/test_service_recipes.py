"""The container recipe and the unit of systemd: what they say is run, as far as this machine can.

The image itself is built where buildah is, and TREELM_CONTAINER_BASE names the root folder of a
system with Python that stands for the base image, TREELM_CONTAINER_INDEX a package index with
treelm, treelm-en and what they need.
"""

from __future__ import annotations

import configparser
import contextlib
import http.client
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import treelm

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "how-to" / "playground.md"


def instructions() -> list[tuple[str, str]]:
    """Return the instructions of the Dockerfile, each with what follows it."""
    text = re.sub(r"\\\n\s*", " ", (ROOT / "Dockerfile").read_text())
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    return [(line.split(maxsplit=1)[0], line.split(maxsplit=1)[1]) for line in lines]


def only(name: str) -> str:
    [found] = [rest for word, rest in instructions() if word == name]
    return found


def unit_text() -> str:
    [found] = re.findall(r"```ini\n(.*?)```", PAGE.read_text(), re.DOTALL)
    return str(found)


def unit() -> dict[str, list[str]]:
    """Return the settings of the service, of which some may be given twice."""
    found: dict[str, list[str]] = {}
    for line in unit_text().partition("[Service]")[2].partition("[Install]")[0].splitlines():
        key, equals, value = line.partition("=")
        if equals:
            found.setdefault(key, []).append(value)
    return found


def health_command() -> list[str]:
    found: list[str] = json.loads(only("HEALTHCHECK").partition("CMD ")[2])
    return found


@contextlib.contextmanager
def started(command: list[str], folder: Path) -> Iterator[str]:
    """Run what a recipe runs, with one model and a free port; yield the port."""
    arguments = [sys.executable, "-m", "treelm", *command[1:], "-m", str(folder), "--port", "0"]
    with subprocess.Popen(arguments, stderr=subprocess.PIPE, text=True) as server:
        try:
            assert server.stderr is not None
            said = server.stderr.readline()
            port = re.search(r"serving rain at http://\S+:(\d+)/", said)
            assert port, said
            yield port[1]
        finally:
            server.terminate()
        assert server.wait(60) == 0


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("fastapi")
    pytest.importorskip("uvicorn")
    found = tmp_path_factory.mktemp("served") / "rain"
    treelm.train("ngram", [["rain", "fell"], ["it", "rained"]], order=1, smoothing="kn").save(found)
    return found


# -- the container --------------------------------------------------------------------------


def test_the_recipe_needs_nothing_but_packages() -> None:
    words = [word for word, _ in instructions()]
    assert words.count("FROM") == 2
    assert not {"ADD", "VOLUME"} & set(words)
    copies = [rest for word, rest in instructions() if word == "COPY"]
    assert copies
    assert all(rest.startswith("--from=build ") for rest in copies)
    assert words.index("USER") < words.index("ENTRYPOINT")
    for command in (rest for word, rest in instructions() if word == "RUN"):
        subprocess.run(["sh", "-n", "-c", command], check=True)


def test_the_index_is_an_argument_that_may_be_left_out() -> None:
    [command] = [rest for word, rest in instructions() if word == "RUN" and "pip" in rest]
    shown = command.replace("python -m venv", "true").replace("/opt/treelm/bin/pip", "echo pip")
    for index, expected in (
        ("", "pip install --no-cache-dir a b"),
        ("http://x/y", "pip install --no-cache-dir --index-url http://x/y a b"),
    ):
        environment = {"PATH": os.environ["PATH"], "PIP_INDEX_URL": index, "PACKAGES": "a b"}
        done = subprocess.run(
            ["sh", "-c", shown], env=environment, capture_output=True, text=True, check=True
        )
        assert done.stdout.strip() == expected
    default = re.search(r'PACKAGES="(.*)"', (ROOT / "Dockerfile").read_text())
    assert default is not None
    assert default[1].split() == ["treelm[web]", "treelm-en"]


@pytest.mark.slow
def test_what_the_container_runs_answers_its_health_check(folder: Path) -> None:
    command = json.loads(only("ENTRYPOINT"))
    assert command[1:] == ["serve", "--host", "0.0.0.0"]
    _, flag, code = health_command()
    assert flag == "-c"
    assert f":{only('EXPOSE')}/" in code
    with started(command, folder) as port:
        check = [sys.executable, "-c", code.replace(only("EXPOSE"), port)]
        assert subprocess.run(check, check=False).returncode == 0
    gone = subprocess.run(check, check=False, capture_output=True)
    assert gone.returncode == 1


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """The image, as the command of buildah that knows it."""
    base, index = (os.environ.get(f"TREELM_CONTAINER_{name}") for name in ("BASE", "INDEX"))
    if not (base and index and shutil.which("buildah")):
        pytest.skip("there is no buildah, no base or no index")
    place = tmp_path_factory.mktemp("images")
    buildah = ["buildah", "--root", str(place / "store"), "--runroot", str(place / "run")]
    buildah += ["--storage-driver", "vfs"]

    def do(*words: str, **how: Any) -> str:
        done = subprocess.run([*buildah, *words], check=True, stdout=subprocess.PIPE, **how)
        return str(done.stdout.decode().strip())

    made = do("from", "scratch")
    do("add", "--quiet", made, base, "/")
    tags = {rest.split()[0] for word, rest in instructions() if word == "FROM"}
    for tag in tags:
        do("commit", "--quiet", made, f"docker.io/library/{tag}")
    with (ROOT / "Dockerfile").open("rb") as recipe:
        how = ["--pull-never", "--isolation", "chroot", "--format", "docker"]
        do(
            "bud",
            *how,
            "--build-arg",
            f"PIP_INDEX_URL={index}",
            "--tag",
            "treelm",
            "-",
            stdin=recipe,
        )
    return buildah


@pytest.mark.slow
def test_the_image_is_built_from_an_index_and_serves(image: list[str]) -> None:
    shown = subprocess.run(
        [*image, "inspect", "--type", "image", "treelm"], check=True, stdout=subprocess.PIPE
    )
    config = json.loads(shown.stdout)["Docker"]["config"]
    assert config["User"] == "treelm"
    assert config["Healthcheck"]["Test"] == ["CMD", *health_command()]
    made = subprocess.run([*image, "from", "treelm"], check=True, stdout=subprocess.PIPE)
    name = made.stdout.decode().strip()
    run = [*image, "run", "--isolation", "chroot", name, "--"]
    with subprocess.Popen(
        [*run, *config["Entrypoint"]], stderr=subprocess.PIPE, text=True
    ) as server:
        try:
            assert server.stderr is not None
            assert "serving en-hhmm" in server.stderr.readline()
            address = f"http://127.0.0.1:{only('EXPOSE')}/api/models"
            with urllib.request.urlopen(address, timeout=60) as answer:
                found = {model["name"]: model["state"] for model in json.load(answer)["models"]}
            assert found["en-parser"] == "ready"
            assert subprocess.run([*run, *health_command()], check=False).returncode == 0
            who = subprocess.run([*run, "id", "-un"], check=True, stdout=subprocess.PIPE)
            assert who.stdout.decode().strip() == "treelm"
        finally:
            server.terminate()
            time.sleep(1)


# -- systemd --------------------------------------------------------------------------------


@pytest.mark.slow
def test_what_the_unit_runs_answers(folder: Path) -> None:
    [command] = unit()["ExecStart"]
    words = shlex.split(command)
    assert words[:2] == ["/opt/treelm/bin/treelm", "serve"]
    with started(words, folder) as port:
        for host, status in (("playground.example.org", 200), ("elsewhere.example.org", 421)):
            connection = http.client.HTTPConnection("127.0.0.1", int(port), timeout=60)
            with contextlib.closing(connection):
                connection.request("GET", "/api/health", headers={"Host": host})
                assert connection.getresponse().status == status


def test_the_unit_limits_what_the_service_may_do() -> None:
    parsed = configparser.ConfigParser(strict=False, interpolation=None)
    parsed.read_string(unit_text())
    assert parsed.sections() == ["Unit", "Service", "Install"]
    given = unit()
    for key in ("MemoryMax", "CPUQuota", "TasksMax"):
        assert given[key]
    for key in ("DynamicUser", "NoNewPrivileges", "MemoryDenyWriteExecute", "PrivateDevices"):
        assert given[key] == ["yes"]


@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="there is no systemd here")
def test_systemd_takes_the_unit(tmp_path: Path) -> None:
    file = tmp_path / "treelm.service"
    file.write_text(unit_text().replace("/opt/treelm/bin/treelm", sys.executable))
    done = subprocess.run(
        ["systemd-analyze", "verify", str(file)], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    # Exposure in tenths: of 100, a service without any limit has 96.
    exposed = ["systemd-analyze", "security", "--offline=true", "--threshold=15", str(file)]
    done = subprocess.run(exposed, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout.splitlines()[-1]
