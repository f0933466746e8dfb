"""`treelm parse -o FILE.forest` and `--from`, stopped and started."""

from __future__ import annotations

import signal
import time
from pathlib import Path

import pytest
from tests.command_line import assert_fine, assert_refused, finish, start_treelm, treelm

from treelm.corpus.brackets import read_trees
from treelm.errors import TreelmError
from treelm.grammar.forest_file import ForestFile
from treelm.grammar.k_best import text_of


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, sample_file: Path) -> Path:
    path = tmp_path_factory.mktemp("models") / "pcfg"
    assert_fine(treelm("train", "pcfg", "--trees", sample_file, "-o", path))
    return path


@pytest.fixture(scope="module")
def text(tmp_path_factory: pytest.TempPathFactory, sample_file: Path) -> Path:
    path = tmp_path_factory.mktemp("texts") / "text"
    lines = [" ".join(tree.words) + "\n" for tree in read_trees(sample_file)]
    path.write_text("".join([*lines, "\n"]))
    return path


def test_files_of_parses_are_written_as_text_again(
    folder: Path, text: Path, tmp_path: Path
) -> None:
    path = tmp_path / "a.forest"
    done = treelm("parse", "-m", folder, "-k", "20", "-o", path, text, "--limit", "60")
    assert_fine(done, None)
    assert b"parses of 60 sentences" in done.stderr
    blocks = treelm("parse", "-m", folder, "-k", "20", "-q", text, "--limit", "60")
    assert assert_fine(treelm("parse", "--from", path, "-k", "20")) == assert_fine(blocks)
    best = treelm("parse", "-m", folder, text, "--limit", "50")
    assert assert_fine(treelm("parse", "--from", path, "--limit", "50")) == assert_fine(best)
    forests = tmp_path / "f.forest"
    command = ("parse", "-m", folder, "-k", "20", "--forests", "-o", forests, text, "--limit", "60")
    assert_fine(treelm(*command), None)
    assert assert_fine(treelm("parse", "--from", forests, "-k", "20")) == blocks.stdout
    # The same command again, and one for more of the text.
    again = treelm("parse", "-m", folder, "-k", "20", "-o", path, text, "--limit", "60")
    assert b"60 sentences were there already" in again.stderr
    more = treelm("parse", "-m", folder, "-k", "20", "-o", path, text, text, "--limit", "400")
    assert b"parses of 400 sentences" in more.stderr
    whole = tmp_path / "b.forest"
    assert_fine(
        treelm("parse", "-m", folder, "-k", "20", "-o", whole, text, text, "--limit", "400"), None
    )
    with ForestFile(path) as one, ForestFile(whole) as two:
        assert text_of(list(one)) == text_of(list(two))


RUN = ("-k", "100")


@pytest.fixture(scope="module")
def whole(folder: Path, text: Path) -> bytes:
    path = text.with_name("whole.forest")
    assert_fine(treelm("parse", "-m", folder, *RUN, "-o", path, *[text] * 6), None)
    with ForestFile(path) as file:
        assert len(file) == 6 * 326
        return text_of(list(file))


def sentences_in(path: Path) -> int:
    """Return how many sentences a file that is being written holds, as far as it can be read."""
    try:
        with ForestFile(path) as file:
            return len(file)
    except TreelmError:
        return 0


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_a_stopped_run_goes_on(
    number: signal.Signals, folder: Path, text: Path, whole: bytes, tmp_path: Path
) -> None:
    path = tmp_path / "a.forest"
    command = ("parse", "-m", folder, *RUN, "-o", path, *[text] * 6)
    running = start_treelm(*command)
    while not sentences_in(path):
        assert running.poll() is None, "it ended before it was stopped"
        time.sleep(0.01)
    running.send_signal(number)
    stopped = finish(running)
    assert stopped.returncode in {-number, 128 + number}
    assert b"Traceback" not in stopped.stderr
    with ForestFile(path) as file:
        assert not file.is_complete
        held = len(file)
    assert 0 < held < 6 * 326
    going_on = treelm(*command)
    assert_fine(going_on, None)
    assert f"{held} sentences were there already".encode() in going_on.stderr
    with ForestFile(path) as file:
        assert file.is_complete
        assert text_of(list(file)) == whole


def test_wrong_use_of_files_is_refused(folder: Path, text: Path, tmp_path: Path) -> None:
    path = tmp_path / "a.forest"
    common = ["parse", "-m", folder, "-o", path]
    assert_fine(treelm(*common, text, "--limit", "5"), None)
    assert_refused(treelm(*common, "-k", "2", text), 2, "different k")
    assert_refused(treelm(*common, "--fast", text), 2, "different options")
    assert_refused(treelm(*common, stdin=b"other\n" * 9), 2, "another text")
    assert_fine(treelm(*common, "--restart", "--fast", stdin=b"other\n"), None)
    assert_refused(treelm("parse", "--from", text), 3, "not a parse file")
    assert_refused(treelm("parse", "--from", path, "-m", folder), 2, "cannot be combined")
    assert_refused(treelm("parse", stdin=b"a\n"), 2, "with --model or -m")
    assert_refused(treelm("parse", "-m", folder, "--restart", stdin=b"a\n"), 2, "--restart is used")
    data = bytearray(path.read_bytes())
    data[-80] ^= 1
    path.write_bytes(data)
    assert_refused(treelm("parse", "--from", path), 3, "damaged")
