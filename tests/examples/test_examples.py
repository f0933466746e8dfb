"""Every example runs against the packages that it is about, and is short."""

from __future__ import annotations

import ast
import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
#: Packages that an example needs, and what it must print.
EXPECTED: dict[str, tuple[tuple[str, ...], str]] = {
    "kenlm_scores.py": ((), "3 True -10.081"),
    "ctc_decoding.py": (("pyctcdecode",), "the boat was late"),
    "spacy_trees.py": (("spacy",), "[('The boat', 'NP'), ('he', 'NP')]"),
    "harness_pairs.py": (("lm_eval",), "right "),
    "transformer_surprisal.py": (("transformers",), "GPT2LMHeadModel"),
    "rescore_lattice.py": ((), "utterance-1 The boat was late ."),
    "stanza_trees.py": (("stanza",), "(ROOT (S (NP (DT The) (NN boat))"),
    "rerank_nbest.py": (("sacrebleu",), "BLEU 100.0, before 26.9"),
}
MOST_LINES = 15


def test_every_example_is_run() -> None:
    assert {path.name for path in EXAMPLES.glob("*.py")} == set(EXPECTED)


@pytest.mark.parametrize("name", EXPECTED)
def test_example_is_short(name: str) -> None:
    text = (EXAMPLES / name).read_text(encoding="utf-8")
    told = (ast.get_docstring(ast.parse(text)) or "").splitlines()
    lines = [line for line in text.splitlines() if line.strip()]
    assert told
    assert len(lines) - len(told) <= MOST_LINES


@pytest.mark.parametrize("name", EXPECTED)
def test_example_prints_what_it_should(name: str, tmp_path: Path) -> None:
    packages, expected = EXPECTED[name]
    for package in packages:
        if importlib.util.find_spec(package) is None:
            pytest.skip(f"{package} is not installed; `make test-adapters` installs it")
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / name)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=300,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
    )
    assert done.returncode == 0, done.stderr
    assert expected in done.stdout
