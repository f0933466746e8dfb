"""The program `treelm`: its commands, its exit codes, and how errors are shown."""

from __future__ import annotations

import difflib
import os
import re
import sys
import warnings
from collections.abc import Sequence
from io import TextIOWrapper
from pathlib import Path
from typing import Literal, NamedTuple, TextIO

from cyclopts import App, CycloptsError

from treelm.characters import printable
from treelm.cli.apps import DEFAULTS, example_line
from treelm.cli.process import let_stdout_go
from treelm.cli.ranges import OutOfRange
from treelm.errors import TreelmError, TreelmWarning


class _Command(NamedTuple):
    """Where a command lives, what it does, and how it is called."""

    path: str
    sentence: str
    example: str


#: Imported when they are called, so that help answers at once.
COMMANDS = {
    "demo": _Command(
        "treelm.cli.demo:demo",
        "Show what treelm does, on the treebank that comes with it.",
        "treelm demo",
    ),
    "tokenize": _Command(
        "treelm.cli.tokenize:tokenize",
        "Turn raw text into Penn tokens, one sentence per line.",
        "treelm tokenize < raw.txt > sentences.txt",
    ),
    "transform": _Command(
        "treelm.cli.transform:transform",
        "Rewrite bracketed trees, one per line.",
        "treelm transform --pipeline treelet wsj.mrg > transformed.mrg",
    ),
    "draw": _Command(
        "treelm.cli.draw:draw",
        "Draw trees as text, SVG or LaTeX.",
        "treelm draw wsj.mrg --limit 1 --format svg -o tree.svg",
    ),
    "inspect": _Command(
        "treelm.cli.inspect:inspect",
        "Show what is in a file or a model, and what is wrong with it.",
        "treelm inspect wsj.mrg --json",
    ),
    "vocabulary": _Command(
        "treelm.cli.vocabulary:vocabulary",
        "Choose the words that models know, and save them in one file.",
        "treelm vocabulary --text train.txt --rule stream -o words.vocabulary",
    ),
    "counts": _Command(
        "treelm.cli.counts:counts",
        "Count n-grams or treelets, and merge counts.",
        "treelm counts build --text part1.txt --order 5 -o part1.counts",
    ),
    "train": _Command(
        "treelm.cli.train:train",
        "Train a model and save it as a folder.",
        "treelm train ngram --order 3 --text train.txt -o model",
    ),
    "em": _Command(
        "treelm.cli.em:em",
        "Plan training by expectation-maximization.",
        "treelm em plan --config em.toml",
    ),
    "score": _Command(
        "treelm.cli.score:score",
        "Write the log probability of each sentence.",
        "treelm score -m model < sentences.txt",
    ),
    "surprisal": _Command(
        "treelm.cli.surprisal:surprisal",
        "Write the surprisal of each word, in bits, as a table.",
        "treelm surprisal -m model stimuli.txt > surprisal.tsv",
    ),
    "parse": _Command(
        "treelm.cli.parse:parse",
        "Write the best tree of each sentence.",
        "treelm parse -m model < sentences.txt > parsed.mrg",
    ),
    "classify": _Command(
        "treelm.cli.classify:classify",
        "Tell good sentences from bad ones.",
        "treelm classify -m model < sentences.txt",
    ),
    "sample": _Command(
        "treelm.cli.sample:sample",
        "Sample sentences from a model.",
        "treelm sample -m model -n 5 --seed 1",
    ),
    "corrupt": _Command(
        "treelm.cli.corrupt:corrupt",
        "Make wrong sentences: by a trigram model, or one error each.",
        "treelm corrupt noisy --trees dev.mrg --seed 1 > noisy.tsv",
    ),
    "convert": _Command(
        "treelm.cli.convert:convert",
        "Turn models into ARPA files and back, or into smaller models.",
        "treelm convert model model.arpa.gz",
    ),
    "evaluate": _Command(
        "treelm.cli.evaluate:evaluate",
        "Measure how good something is.",
        "treelm evaluate parses gold.mrg parsed.mrg --json",
    ),
    "compare": _Command(
        "treelm.cli.compare:compare",
        "Compare two models or score files, and test the difference.",
        "treelm compare model-a model-b test.txt --json",
    ),
    "judge": _Command(
        "treelm.cli.judge:judge",
        "Ask people which of two texts is better.",
        "treelm judge export a.txt b.txt -o pairs.csv --seed 1",
    ),
}

#: Options that had another name: what users know keeps working, but no help shows it.
OLD_SPELLINGS = {
    ("score",): {"--kbest": "--k-best"},
    ("parse",): {"--trees": "--k", "--k-best": "--k"},
    ("evaluate", "oracle"): {"--trees": "--k", "--k-best": "--k"},
    ("surprisal",): {"--beliefs": "--parser-states"},
}

#: Commands that multiply no matrices to speak of; the kernels have threads of their own.
WITHOUT_LINEAR_ALGEBRA = frozenset({"inspect", "parse", "sample", "score", "surprisal"})

#: Help is not squeezed into fewer columns.
NARROWEST_HELP = 20

app = App(
    name="treelm",
    help="Syntactic language models: read, transform, draw and score trees.",
    help_epilogue=example_line("treelm demo"),
    help_format="markdown",
    version_flags=[],
    default_parameter=DEFAULTS,
    suppress_keyboard_interrupt=False,
)
for _name, _command in COMMANDS.items():
    # A command with commands of its own says its example itself.
    _has_own = _name in {"corrupt", "counts", "em", "evaluate", "judge", "train"}
    _extra = {} if _has_own else {"help_epilogue": example_line(_command.example)}
    app.command(_command.path, name=_name, help=_command.sentence, **_extra)


@app.default
def _root(
    *,
    version: bool = False,
    verbose: bool = False,
    completion: Literal["bash", "zsh", "fish"] | None = None,
) -> None:
    """Syntactic language models: read, transform, draw and score trees.

    Args:
        version: Print the version and exit.
        verbose: With --version: also print the versions of the native core, Python and packages.
        completion: Print a script that completes commands and options in this shell.
    """
    if completion is not None:
        script = app.generate_completion(prog_name="treelm", shell=completion)  # nosec B604
        sys.stdout.write(script)
        return
    if not version:
        app.help_print()
        return
    from treelm.version import __version__, versions

    if verbose:
        found = versions()
        width = max(map(len, found))
        for name, value in found.items():
            sys.stdout.write(f"{name:<{width}}  {value}\n")
    else:
        sys.stdout.write(f"{__version__}\n")


def program() -> int:
    """Run the program on the arguments of this process and return its exit status."""
    _prepare_packages(sys.argv[1:])
    warnings.showwarning = _show_warning
    _prepare_streams()
    return run(sys.argv[1:])


def _prepare_packages(arguments: Sequence[str]) -> None:
    """Keep packages from doing at start-up what this process has no use for."""
    # Plugins of pydantic watch validation; looking for them reads the records of all packages.
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
    if arguments and arguments[0] in WITHOUT_LINEAR_ALGEBRA:
        # Numpy would start a thread for each core, which would wait until the end.
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")


def _prepare_streams() -> None:
    """Make the streams fit for any text: results are UTF-8, whatever the terminal says."""
    if sys.stderr is None:
        sys.stderr = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115 (until the end)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")
    columns = os.environ.get("COLUMNS", "80")
    if not columns.isdecimal() or int(columns[:6]) < NARROWEST_HELP:
        os.environ["COLUMNS"] = "80"  # tables cannot be wrapped to so few


def run(arguments: Sequence[str]) -> int:
    """Run the program and return its exit code; nothing but results reaches standard output."""
    try:
        if arguments and not arguments[0].startswith("-") and arguments[0] not in COMMANDS:
            return _fail(_unknown_command(arguments[0]), 2)
        if sys.stdout is None:
            if not _names_output(arguments):
                return _fail("standard output is closed; name a file with -o.", 1)
            # What is said besides the file is lost, as whoever closed the stream wants it.
            sys.stdout = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115 (until the end)
        arguments = _with_new_spellings(arguments)
        _show_whole_help(arguments)
        app(arguments, exit_on_error=False, print_error=False, result_action="return_value")
        if sys.stdout is not None:
            sys.stdout.flush()
    except CycloptsError as error:
        return _fail(_usage_message(error, arguments), 2)
    except (BrokenPipeError, SystemExit):  # rich turns the one into the other
        let_stdout_go()
    except TreelmError as error:
        if "--traceback" in arguments:
            raise
        return _fail(str(error), error.exit_code)
    except MemoryError:
        return _fail("out of memory. Fewer --threads need less, and so does a smaller input.", 1)
    except OSError as error:
        if "--traceback" in arguments:
            raise
        return _fail(f"{error.filename or 'input or output'}: {error.strerror or error}", 1)
    return 0


def _names_output(arguments: Sequence[str]) -> bool:
    """Return whether the output goes somewhere else than to standard output."""
    for place, argument in enumerate(arguments):
        if argument in ("-o", "--output"):
            return list(arguments[place + 1 : place + 2]) != ["-"]
        if argument.startswith("--output="):
            return argument != "--output=-"
        if argument.startswith("-o"):
            return argument not in ("-o-", "-o=-")
    return False


def _with_new_spellings(arguments: Sequence[str]) -> list[str]:
    """Return the arguments with today's names of options."""
    renamed = next(
        (
            names
            for command, names in OLD_SPELLINGS.items()
            if tuple(arguments[: len(command)]) == command
        ),
        {},
    )
    words = [argument.partition("=") for argument in arguments]
    return [renamed.get(name, name) + equals + value for name, equals, value in words]


def _show_whole_help(arguments: Sequence[str]) -> None:
    """Make the help of a command all of its documentation; one sentence was enough for the list."""
    command = app[arguments[0]] if arguments and arguments[0] in COMMANDS else app
    if command is not app and command.default_command is not None:
        command.help = None


def _usage_message(error: CycloptsError, arguments: Sequence[str]) -> str:
    """Return what is wrong with the arguments, and what to do."""
    cause = error.__cause__
    if isinstance(cause, OutOfRange) and error.argument is not None:
        typed = error.argument.tokens[0].keyword or error.argument.name
        return f"{typed} is {cause.number}; {cause}"
    return f"{error}\n{_closest_option(str(error), arguments)}See `treelm --help`.".strip()


def _closest_option(message: str, arguments: Sequence[str]) -> str:
    """Return a guess at the option that was meant, where the message says that there is none."""
    wrong = re.search(r'there is no option "(--[^"=]+)', message)
    if wrong is None:
        return ""
    command = app
    for name in app.parse_commands(arguments)[0]:
        command = command[name]
    known = {
        name
        for argument in command.assemble_argument_collection()
        for name in argument.names
        if name.startswith("--")
    }
    close = difflib.get_close_matches(wrong[1], known, n=1)
    return f'Did you mean "{close[0]}"? ' if close else ""


def _unknown_command(name: str) -> str:
    close = difflib.get_close_matches(name, COMMANDS, n=1)
    guess = f' Did you mean "{close[0]}"?' if close else ""
    return f'there is no command "{name}".{guess} Commands: {", ".join(COMMANDS)}.'


def _fail(message: str, code: int) -> int:
    sys.stderr.write(f"treelm: {printable(message)}\n")
    return code


def _show_warning(  # noqa: PLR0917 (its arguments are Python's)
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    del file, line
    if "-q" in sys.argv or "--quiet" in sys.argv:
        return
    place = "" if issubclass(category, TreelmWarning) else f"{filename}:{lineno}: "
    sys.stderr.write(f"treelm: warning: {place}{printable(str(message))}\n")
