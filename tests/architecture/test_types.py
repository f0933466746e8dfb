"""What a type checker makes of the package, as those see it who use it."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

SOURCE = Path(__file__).resolve().parents[2] / "src"

#: Lines with an ERROR are refused with that code of mypy, all others are accepted.
SNIPPET = """
from typing import assert_type
import treelm
treelm.no_such_name  # ERROR attr-defined
from treelm import nor_this_one  # ERROR attr-defined
assert_type(treelm.__version__, str)
assert_type(treelm.load("a"), treelm.LanguageModel)
assert_type(treelm.load("a", treelm.NgramModel), treelm.NgramModel)
assert_type(treelm.load("a", treelm.PcfgModel, verify=True), treelm.PcfgModel)
assert_type(treelm.NgramModel.load("a"), treelm.NgramModel)
treelm.load("a").table  # ERROR attr-defined
treelm.load("a", treelm.NgramModel).table
treelm.load("a", str)  # ERROR type-var
treelm.TextCorpus("a.txt")
treelm.TextCorpus(["a.txt", "b.txt"])
treelm.TextCorpus(path for path in ("a.txt", "b.txt"))
treelm.TextCorpus([["a", "sentence"]])  # ERROR list-item
treelm.TreeCorpus(["a.mrg"], on_error="skip")
assert_type(treelm.TextCorpus("a.txt").paths[0] == "a.txt", bool)
treelm.TextCorpus("a.txt").paths = ()  # ERROR misc
"""


@pytest.mark.slow
def test_type_checker_knows_what_the_package_has(tmp_path: Path) -> None:
    pytest.importorskip("mypy")
    (tmp_path / "snippet.py").write_text(SNIPPET)
    options = ("--strict", "--follow-imports=silent", "--no-error-summary", "--config-file=")
    done = subprocess.run(
        [sys.executable, "-m", "mypy", *options, "--cache-dir=cache", "snippet.py"],
        cwd=tmp_path,
        env={"MYPYPATH": str(SOURCE)},
        capture_output=True,
        text=True,
    )
    assert not done.stderr
    found = re.findall(r"snippet\.py:(\d+): error: .*\[([\w-]+)\]", done.stdout)
    expected = [
        (str(number), line.partition("# ERROR ")[2])
        for number, line in enumerate(SNIPPET.splitlines(), 1)
        if "# ERROR " in line
    ]
    assert found == expected, done.stdout
