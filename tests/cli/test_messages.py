"""What the program says about mistakes: true, in plain words, with what to do."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import numpy as np
import pytest
from tests.command_line import assert_fine, assert_refused, treelm

import treelm as package
from treelm.corpus.brackets import parse_tree
from treelm.errors import (
    CorpusFormatError,
    EstimationError,
    ModelFileError,
    TreelmError,
    UsageError,
    flag,
    on_command_line,
    option,
)
from treelm.tasks.evaluate.regression import fit_linear

SOURCES = sorted(Path(package.__file__).parent.rglob("*.py"))


@pytest.mark.parametrize(
    ("arguments", "parts"),
    [
        (["score"], ["name a model, with --model or -m", "`pip install treelm-en`"]),
        (["score", "-m"], ["-m needs a value", "`treelm score --help`"]),
        (["evaluate", "parses", "x"], ["needs SYSTEM", "`treelm evaluate parses --help`"]),
        (
            ["train", "ngram", "--text", "x", "--ordr", "3", "-o", "y"],
            ['there is no option "--ordr". Did you mean "--order"?', "`treelm train ngram --help`"],
        ),
        (["draw", "--frmat", "svg"], ['"--frmat"', 'Did you mean "--format"?']),
        (["train", "hhmm", "--resume", "--trees", "x", "-o", "y"], ['no option "--resume".\n']),
        (
            ["evaluate", "parse", "x"],
            ['no command "treelm evaluate parse"', "parses", "`treelm evaluate --help`"],
        ),
        (
            ["train", "ngram", "--text", "x", "--order", "abc", "-o", "y"],
            ["must be a whole number"],
        ),
        (["score", "-m", "x", "--explain", "--k-best", "y"], ["combined with --k-best.\n"]),
        (["vocabulary", "--text", "-", "-o", "y"], ["takes standard input", ": --text=-.\n"]),
        (["surprisal", "-m", "x", "--stimuli", "-"], [": --stimuli=-.\n"]),
        (["surprisal", "-m", "x", "--plot", "-"], ["--plot: this needs a file of its own"]),
        (
            ["surprisal", "-m", "x", "--beliefs", "-"],
            [
                "--parser-states: this needs a file of its own",
                "--beliefs is called --parser-states",
            ],
        ),
    ],
    ids=" ".join,
)
def test_arguments_that_are_wrong(arguments: list[str], parts: list[str], tmp_path: Path) -> None:
    message = assert_refused(treelm(*arguments, cwd=tmp_path), 2, *parts)
    assert "requires an argument" not in message
    assert "--posterior" not in message


def test_only_the_options_that_were_given_are_named(ngram_folder: Path, tmp_path: Path) -> None:
    trees = tmp_path / "t.mrg"
    trees.write_text("(S (NN rain))\n")
    score = ("score", "-m", ngram_folder, "--trees", trees)
    one = assert_refused(treelm(*score, "--no-eos"), 2, "--no-eos is for sentences")
    assert "--floor" not in one
    assert_refused(treelm(*score, "--slr", "--floor", "0.1"), 2, "--slr and --floor are for")


def test_an_arpa_file_is_no_model_and_convert_makes_one(ngram_folder: Path, tmp_path: Path) -> None:
    arpa = tmp_path / "x.arpa.gz"
    assert_fine(treelm("convert", ngram_folder, arpa))
    done = treelm("score", "-m", arpa)
    assert_refused(done, 3, "this is an ARPA file", f"`treelm convert {arpa} x`")
    with pytest.raises(ModelFileError, match="treelm convert"):
        package.load(arpa)


def test_brackets_are_opened_or_closed_too_often() -> None:
    for text, says, says_not in (
        (")NP my cookie(", "closed that was never opened", "not closed"),
        ("(NP (DT my)", "opened and not closed", "never opened"),
    ):
        with pytest.raises(CorpusFormatError, match=says) as caught:
            parse_tree(text)
        assert caught.value.code == "E_UNBALANCED"
        assert says_not not in str(caught.value).split(", at")[0]


def test_a_file_without_trees_has_no_malformed_ones() -> None:
    done = treelm("draw", stdin=b") my cookie (\n")
    message = assert_refused(done, 3)
    assert "0 of 0" not in message


def test_the_same_predictor_twice_is_named() -> None:
    numbers = np.random.default_rng(1)
    x, y, response = (numbers.normal(size=50) for _ in range(3))
    with pytest.raises(EstimationError, match=r'"a" and "b" are the same.*same model'):
        fit_linear(response, {"a": x, "b": x})
    with pytest.raises(EstimationError, match='"c" can be computed from the others'):
        fit_linear(response, {"a": x, "b": y, "c": x + 2 * y})


def test_python_names_options_as_python_does(tmp_path: Path) -> None:
    text = tmp_path / "text"
    text.write_text("the ferry left .\n")
    for options, says in (
        ({"ordr": 3}, r"ordr: there is no such option\. Did you mean order\?"),
        ({"held": text}, r"Did you mean held_out\?"),
        ({"frobnicate": 1}, "There are: unknown, spelling_min_count, order, smoothing"),
        ({"smoothing": "jm"}, "give one with held_out"),
    ):
        with pytest.raises(UsageError, match=says) as caught:
            package.train("ngram", text, **options)  # type: ignore[arg-type]
        assert "--" not in str(caught.value)
    done = treelm("train", "ngram", "--text", text, "--smoothing", "jm", "-o", tmp_path / "m")
    assert_refused(done, 2, "give one with --held-out")


def test_options_are_spelled_for_the_reader() -> None:
    assert (option("held_out"), option("lexicon", "closed")) == ("held_out", 'lexicon="closed"')
    assert flag("resume") == "resume=True"
    with on_command_line():
        assert (option("held_out"), flag("resume")) == ("--held-out", "--resume")
        with pytest.raises(UsageError, match="--part"):
            raise UsageError(f"{option('part')} is missing.")
    assert flag("resume") == "resume=True"


def _texts(path: Path) -> list[tuple[int, str]]:
    """Return the strings in a file that are shown to people, with their lines."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    shown = []
    for call in ast.walk(tree):
        if not isinstance(call, ast.Call):
            continue
        name = ast.unparse(call.func)
        kind = getattr(package.errors, name, None) if "." not in name else None
        is_error = isinstance(kind, type) and issubclass(kind, TreelmError)
        if is_error or name == "warnings.warn":
            inside = [part for argument in call.args[:1] for part in ast.walk(argument)]
            spelled = {
                id(part)
                for each in inside
                if isinstance(each, ast.Call) and ast.unparse(each.func) == "spelled"
                for part in ast.walk(each)
            }
            shown += [
                (part.lineno, part.value)
                for part in inside
                if isinstance(part, ast.Constant)
                and isinstance(part.value, str)
                and id(part) not in spelled
            ]
    return shown


@pytest.mark.parametrize(
    "path", [path for path in SOURCES if "cli" not in path.parts], ids=lambda path: path.name
)
def test_messages_of_the_package_leave_the_spelling_of_options_to_the_reader(path: Path) -> None:
    for line, text in _texts(path):
        without_commands = re.sub(r"`treelm [^`]*(`|$)", "", text)
        found = re.search(r"(?<![\w-])--[a-z]", without_commands)
        assert found is None, f"{path}:{line}: name the option by treelm.errors.option"


@pytest.mark.parametrize(
    ("command", "text"),
    [(("surprisal",), "</s>"), (("vocabulary",), "<unk>"), (("corrupt", "trigram"), "<unk>")],
)
def test_help_shows_words_in_angle_brackets(command: tuple[str, ...], text: str) -> None:
    assert text in assert_fine(treelm(*command, "--help")).decode()
