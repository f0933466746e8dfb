"""Nothing is ignored without a word: options, old models, empty input, repeated warnings."""

from __future__ import annotations

import contextlib
import re
import warnings
from pathlib import Path

import pytest
from tests.command_line import assert_fine, treelm_line

import treelm
from treelm.cli import main
from treelm.corpus.sample_treebank import sample_path
from treelm.errors import TreelmWarning
from treelm.models.registry import find_system
from treelm.models.run import Run
from treelm.tasks.train import train_and_save

Capture = pytest.CaptureFixture[bytes]


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models")
    trees = treelm.TreeCorpus((sample_path(),))
    treelm.train("ngram", trees, order=3).save(folder / "ngram")
    treelm.train("pcfg", trees).save(folder / "pcfg")
    treelm.train("hhmm", trees, depth=4, beam_width=50).save(folder / "hhmm")
    (folder / "text.txt").write_text("The ferry left .\n")
    (folder / "empty.txt").write_text("\n\n")
    (folder / "trees.mrg").write_text("(ROOT (S (A a) (B b)))\n")
    (folder / "scores").write_text("-1.5\n-2.5\n")
    return folder


def test_measures_that_a_model_has_not_are_named(models: Path, capfdbinary: Capture) -> None:
    done = treelm_line(models, capfdbinary, "surprisal -m @ngram @text.txt --measures all")
    assert done.returncode == 0
    assert done.stderr.count(b"--measures all adds no column") == 1
    done = treelm_line(models, capfdbinary, "surprisal -m @hhmm @text.txt --measures all")
    assert b"adds no column" not in done.stderr
    assert b"entropy" in done.stdout


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("parse -m @hhmm --fast @text.txt", "--fast is for grammars"),
        ("parse -m @hhmm --accurate @text.txt", "--accurate is for grammars"),
        ("parse -m @hhmm --forests -o made.forest @text.txt", "hhmm"),
        ("parse -m @pcfg --beam-width 5 @text.txt", "beam"),
        ("surprisal -m @hhmm --best 2 @text.txt", "--best goes with --parser-states"),
        ("surprisal -m @ngram @text.txt --measures entropy", "do not parse word by word"),
        ("surprisal -m @ngram --beam-width 5 @text.txt", "beam"),
        ("score -m @ngram --pruning fast @text.txt", "ngram"),
        ("score -m @ngram -k 5 @text.txt", "ngram"),
        ("score -m @hhmm --parser @pcfg @text.txt", "hhmm"),
        ("evaluate pairs @scores @scores --floor 0.1", "--floor"),
        ("evaluate pairs @scores @scores --allow-overlap", "--allow-overlap"),
        ("evaluate classification --good @scores --bad @scores --pruning fast", "--pruning"),
        ("classify -m @ngram @text.txt", "ngram"),
        ("evaluate parses @trees.mrg @trees.mrg --rounds 5", "--rounds goes with --intervals"),
        ("evaluate parses @trees.mrg @trees.mrg --seed 0", "--seed goes with --intervals"),
        ("evaluate parses @trees.mrg @trees.mrg --evalb --seed 1", "--seed goes with --intervals"),
        ("draw @trees.mrg --format svg --layout vertical", "--layout goes with --format text"),
        ("draw @trees.mrg --format latex --ascii", "--ascii goes with --format text"),
        ("draw @trees.mrg --format svg --width 9", "--width goes with --format text"),
    ],
)
def test_options_that_a_model_cannot_use_are_refused(
    line: str, message: str, models: Path, capfdbinary: Capture
) -> None:
    done = treelm_line(models, capfdbinary, line)
    assert done.returncode == 2
    assert done.stdout == b""
    assert message in done.stderr.decode()


def test_replaced_model_is_named(models: Path, tmp_path: Path, capfdbinary: Capture) -> None:
    train = f"train ngram --order 2 --trees {sample_path()} -o {tmp_path / 'model'}"
    first = treelm_line(models, capfdbinary, train)
    assert b"replaced" not in first.stderr
    second = treelm_line(models, capfdbinary, train)
    assert second.returncode == 0
    assert re.search(rb"replaced the ngram model of \d{4}-\d\d-\d\dT[\d:]+Z in ", second.stderr)
    arpa = tmp_path / "model.arpa"
    assert_fine(treelm_line(models, capfdbinary, f"convert {tmp_path / 'model'} {arpa}"))
    third = treelm_line(models, capfdbinary, f"convert {arpa} {tmp_path / 'model'}")
    assert b"replaced the ngram model of " in third.stderr
    assert b"replaced" not in treelm_line(models, capfdbinary, f"{train} -q").stderr


def test_replaced_model_is_named_in_python(tmp_path: Path) -> None:
    told: list[str] = []
    inputs = {"corpus": treelm.TreeCorpus((sample_path(),))}
    for _ in range(2):
        train_and_save(
            find_system("ngram"),
            inputs,
            tmp_path / "model",
            {"order": 2},
            run=Run(note=told.append),
        )
    assert len(told) == 1
    assert told[0].startswith("replaced the ngram model of ")


@pytest.mark.parametrize(
    "line",
    [
        "train ngram --text @empty.txt -o made",
        "train plsa --text @empty.txt -o made",
        "vocabulary --text @empty.txt -o made",
        "counts build --text @empty.txt -o made",
    ],
)
def test_empty_training_text_is_named(models: Path, capfdbinary: Capture, line: str) -> None:
    done = treelm_line(models, capfdbinary, line)
    assert done.returncode == 1
    assert b"empty.txt: contains no words" in done.stderr


@pytest.mark.parametrize(
    "line",
    [
        "score -m @ngram @empty.txt",
        "surprisal -m @ngram @empty.txt",
        "surprisal -m @ngram --format csv @empty.txt",
        "parse -m @pcfg @empty.txt",
        "tokenize @empty.txt",
    ],
)
def test_empty_input_is_named_and_gives_no_header(
    line: str, models: Path, capfdbinary: Capture
) -> None:
    done = treelm_line(models, capfdbinary, line)
    assert done.returncode == 0
    assert done.stdout.strip() == b""
    assert done.stderr == b"treelm: warning: no sentence was read.\n"
    assert treelm_line(models, capfdbinary, f"{line} -q").stderr == b""


def test_header_is_written_with_the_first_row_only(models: Path, capfdbinary: Capture) -> None:
    bad = models / "bad.txt"
    bad.write_text("<s> The ferry\n")
    done = treelm_line(models, capfdbinary, "surprisal -m @ngram @bad.txt")
    assert done.returncode == 3
    assert done.stdout == b""


def test_sentences_without_a_tree_are_not_all_named(models: Path, capfdbinary: Capture) -> None:
    (models / "few.mrg").write_text("(ROOT (S (A a) (B b)))\n" * 3)
    treelm.train("pcfg", str(models / "few.mrg")).save(models / "few")
    (models / "many.txt").write_text("b a b\n" * 12)
    done = treelm_line(models, capfdbinary, "parse -m @few @many.txt")
    shown = done.stderr.decode()
    assert done.returncode == 0
    assert shown.count("many.txt:") == 5
    assert "... and 7 more without a tree; --verbose shows them." in shown
    verbose = treelm_line(models, capfdbinary, "parse -m @few -v @many.txt")
    assert verbose.stderr.count(b"many.txt:") == 12


def test_one_warning_is_shown_once(monkeypatch: pytest.MonkeyPatch, capfdbinary: Capture) -> None:
    monkeypatch.setattr(main, "_SHOWN", set())
    monkeypatch.setattr("sys.argv", ["treelm"])
    with contextlib.ExitStack() as stack:
        stack.enter_context(warnings.catch_warnings())
        warnings.simplefilter("always")
        monkeypatch.setattr(warnings, "showwarning", main._show_warning)
        for _ in range(3):
            warnings.warn("the text has no end.", TreelmWarning, stacklevel=1)
    assert capfdbinary.readouterr().err == b"treelm: warning: the text has no end.\n"
