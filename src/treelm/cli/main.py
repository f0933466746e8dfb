"""The program `treelm`: its commands, its exit codes, and how errors are shown."""

from __future__ import annotations

import difflib
import os
import re
import sys
import warnings
from collections.abc import Iterator, Sequence
from io import TextIOWrapper
from itertools import pairwise
from pathlib import Path
from typing import Literal, NamedTuple, TextIO

from cyclopts import App, Argument, CycloptsError, MissingArgumentError, UnknownOptionError
from cyclopts.exceptions import CoercionError, UnknownCommandError, ValidationError

from treelm.characters import printable
from treelm.cli.apps import DEFAULTS, example_line
from treelm.cli.process import Messages, has_whole_stack, let_go
from treelm.cli.ranges import OutOfRange
from treelm.errors import TreelmError, TreelmWarning, on_command_line


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
    "models": _Command(
        "treelm.cli.models:models",
        "List the ready-made models that are installed.",
        "treelm models --json",
    ),
    "serve": _Command(
        "treelm.cli.serve:serve",
        "Serve a page and a JSON API for trying models.",
        "treelm serve -m model",
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
        "Show what a file or a model contains, and what is wrong.",
        "treelm inspect wsj.mrg --json",
    ),
    "new-language": _Command(
        "treelm.cli.new_language:new_language",
        "Propose a language profile from a treebank.",
        "treelm new-language train.mrg -o profile.toml",
    ),
    "phrases": _Command(
        "treelm.cli.phrases:phrases",
        "Make a phrase table from parallel text.",
        "treelm phrases --source train.de --target train.en -o phrase-table.gz",
    ),
    "vocabulary": _Command(
        "treelm.cli.vocabulary:vocabulary",
        "Choose the words that models know, and save them.",
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
        "Plan long trainings, watch them and check what they left.",
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
    "decode": _Command(
        "treelm.cli.decode:decode",
        "Translate sentences by a phrase table and language models.",
        "treelm decode --phrase-table table.gz -m model --weights w.ini < text",
    ),
    "corrupt": _Command(
        "treelm.cli.corrupt:corrupt",
        "Make wrong sentences: of a model, or one error each.",
        "treelm corrupt noisy --trees dev.mrg --seed 1 > noisy.tsv",
    ),
    "convert": _Command(
        "treelm.cli.convert:convert",
        "Turn models into ARPA files and back, or parses into trees.",
        "treelm convert model model.arpa.gz",
    ),
    "card": _Command(
        "treelm.cli.card:card",
        "Write the card of a model for a model hub.",
        "treelm card -m model --language en -o model/README.md",
    ),
    "evaluate": _Command(
        "treelm.cli.evaluate:evaluate",
        "Measure how good something is.",
        "treelm evaluate parses gold.mrg parsed.mrg --json",
    ),
    "rerank": _Command(
        "treelm.cli.rerank:rerank",
        "Add the scores of models to n-best lists, and sort these.",
        "treelm rerank -m model --weights w.json < lists > sorted",
    ),
    "rescore-lattice": _Command(
        "treelm.cli.rescore_lattice:rescore_lattice",
        "Find the best words of lattices by a language model.",
        "treelm rescore-lattice -m model --acoustic-scale 0.1 lattices > best",
    ),
    "tune": _Command(
        "treelm.cli.tune:tune",
        "Find the weights of the features of n-best lists.",
        "treelm tune -m model --n-best-lists L --references R -o W",
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
    ("tune",): {"--nbest": "--n-best-lists"},
    ("surprisal",): {"--beliefs": "--parser-states"},
}

#: Types of options, in words.
_NUMBERS: dict[object, str] = {int: "a whole number", float: "a number"}

#: Values of options that are flags today, in the same way.
OLD_VALUES: dict[tuple[str, ...], dict[tuple[str, str], str | None]] = {
    ("evaluate", "pairs"): {
        ("--tokenize", "yes"): "--tokenize",
        ("--tokenize", "no"): "--no-tokenize",
        ("--tokenize", "auto"): None,
    },
}

#: Commands that multiply no matrices to speak of; the kernels have threads of their own.
WITHOUT_LINEAR_ALGEBRA = frozenset({"decode", "inspect", "parse", "sample", "score", "surprisal"})

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
    _SHOWN.clear()
    _prepare_streams()
    return run(sys.argv[1:])


def _prepare_packages(arguments: Sequence[str]) -> None:
    """Keep packages from doing at start-up what this process has no use for."""
    # Plugins of pydantic watch validation; looking for them reads the records of all packages.
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
    if not has_whole_stack() or (arguments and arguments[0] in WITHOUT_LINEAR_ALGEBRA):
        # Numpy would start a thread for each core, which would wait until the end; and its threads
        # need more stack than one alone.
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")


def _prepare_streams() -> None:
    """Make the streams fit for any text: results are UTF-8, whatever the terminal says."""
    if sys.stderr is None:
        sys.stderr = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115 (until the end)
    elif isinstance(sys.stderr, TextIOWrapper):
        sys.stderr = Messages(sys.stderr)
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(encoding="utf-8", errors="backslashreplace")
    columns = os.environ.get("COLUMNS", "80")
    # Digits of other scripts count as well, and so many of them that no number holds them.
    if not re.fullmatch("[0-9]{1,4}", columns) or int(columns) < NARROWEST_HELP:
        os.environ["COLUMNS"] = "80"  # tables cannot be wrapped to so few


def run(arguments: Sequence[str]) -> int:
    """Run the program and return its exit code; nothing but results reaches standard output."""
    with on_command_line():
        return _run(arguments)


def _run(arguments: Sequence[str]) -> int:
    given = arguments
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
        return _fail(_usage_message(error, arguments, given), 2)
    except (BrokenPipeError, SystemExit):  # rich turns the one into the other
        let_go(sys.stdout)
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
    words = [argument.partition("=") for argument in _without_old_values(arguments)]
    return [renamed.get(name, name) + equals + value for name, equals, value in words]


def _without_old_values(arguments: Sequence[str]) -> Iterator[str]:
    """Yield the arguments, with flags for options that had values."""
    known = OLD_VALUES.get(tuple(arguments[:2]), {})
    rest = iter(arguments)
    for argument in rest:
        name, equals, value = argument.partition("=")
        if not equals and any(name == option for option, _ in known):
            following = next(rest, None)
            if (name, following) not in known:
                yield argument
                if following is not None:
                    yield following
                continue
            value = str(following)
        if (name, value) in known:
            flag = known[name, value]
            yield from () if flag is None else (flag,)
        else:
            yield argument


def _show_whole_help(arguments: Sequence[str]) -> None:
    """Make the help of a command all of its documentation; one sentence was enough for the list."""
    command = app[arguments[0]] if arguments and arguments[0] in COMMANDS else app
    if command is not app and command.default_command is not None:
        command.help = None


def _usage_message(error: CycloptsError, arguments: Sequence[str], given: Sequence[str]) -> str:
    """Return what is wrong with the arguments, and what to do.

    Args:
        error: What the parser of arguments says.
        arguments: The arguments, with today's names of options.
        given: As they were typed.
    """
    cause = error.__cause__
    if isinstance(cause, OutOfRange) and error.argument is not None:
        typed = error.argument.tokens[0].keyword or error.argument.name
        return f"{typed} is {cause.number}; {cause}"
    names = app.parse_commands(arguments)[0]
    command = app
    for name in names:
        command = command[name]
    whole = " ".join(("treelm", *names))
    message = _about_standard_input(error, arguments) or _what_is_wrong(error, command, whole)
    return f"{message}{_renaming(message, given)}\nSee `{whole} --help`."


def _about_standard_input(error: CycloptsError, arguments: Sequence[str]) -> str | None:
    """Return how an option takes standard input, if that is what went wrong."""
    before = [first for first, second in pairwise(arguments) if second == "-"]
    options = [each for each in before if each.startswith("--")]
    if isinstance(error, UnknownOptionError) and "-" in (error.token.keyword, error.token.value):
        wanted = options[:1]
    elif isinstance(error, MissingArgumentError) and error.keyword in options:
        wanted = [error.keyword]
    else:
        return None
    name = wanted[0] if wanted else "--OPTION"
    return f"an option takes standard input with an equals sign: {name}=-."


def _what_is_wrong(error: CycloptsError, command: App, whole: str) -> str:
    """Return what is wrong with the arguments of a command, called `whole`."""
    cause = error.__cause__
    if isinstance(error, MissingArgumentError) and error.argument is not None:
        return _missing(error, error.argument, whole)
    if isinstance(error, UnknownOptionError):
        return _unknown_option(error.token.keyword or error.token.value, command)
    if isinstance(error, UnknownCommandError):
        known = [name for name in command if not name.startswith("-")]
        typed = str((error.unused_tokens or [""])[0])
        return f'there is no command "{whole} {typed}".{_guess(typed, known)}'
    if isinstance(error, CoercionError) and error.target_type in _NUMBERS and error.token:
        name = error.token.keyword or (error.argument and _typed_name(error.argument))
        return f'{name} is "{error.token.value}"; it must be {_NUMBERS[error.target_type]}.'
    if isinstance(error, ValidationError) and isinstance(cause, ValueError):
        unknown = re.match(r'there is no option "(--[^"=]+)', str(cause))
        if unknown is not None:
            return f"{cause}.{_guess(unknown[1], _options_of(command), show_all=False)}"
        if error.argument is not None and not isinstance(cause, CycloptsError):
            return f"{_typed_name(error.argument)}: {cause}."
    return str(error)


def _missing(error: MissingArgumentError, argument: Argument, whole: str) -> str:
    """Return what is missing: an option, its value, or a file."""
    typed = error.keyword or next(
        (token.keyword for token in reversed(argument.tokens) if token.keyword is not None), None
    )
    value = argument.parameter.metavar or ("FILE" if argument.hint is str else "VALUE")
    help_text = " ".join((argument.parameter.help or "").split())
    if help_text[1:2].islower():  # not that of an abbreviation
        help_text = help_text[:1].lower() + help_text[1:]
    meaning = f": {help_text.rstrip('.')}" if help_text else ""
    if typed is not None:
        return f"{typed} needs a value, {value}{meaning}."
    if not argument.name.startswith("-"):
        return f"`{whole}` needs {argument.name}{meaning}."
    short = next((f" (or {name})" for name in argument.names if not name.startswith("--")), "")
    return f"`{whole}` needs {argument.name} {value}{short}{meaning}."


def _unknown_option(typed: str, command: App) -> str:
    name = typed.partition("=")[0]
    return f'there is no option "{name}".{_guess(name, _options_of(command), show_all=False)}'


def _options_of(command: App) -> list[str]:
    return [
        name
        for argument in command.assemble_argument_collection()
        for name in argument.names
        if name.startswith("--")
    ]


def _guess(typed: str, known: Sequence[str], *, show_all: bool = True) -> str:
    """Return a guess at the name that was meant, and perhaps all names."""
    names = {name.lstrip("-"): name for name in known}
    close = difflib.get_close_matches(typed.lstrip("-"), names, n=1)
    guess = f' Did you mean "{names[close[0]]}"?' if close else ""
    return f"{guess} Commands: {', '.join(known)}." if show_all else guess


def _typed_name(argument: Argument) -> str:
    """Return an option as it was typed."""
    typed = [token.keyword for token in argument.tokens if token.keyword is not None]
    return typed[0] if typed else argument.name


def _renaming(message: str, given: Sequence[str]) -> str:
    """Return which name is the new one of an option that was given by an old one."""
    typed = {argument.partition("=")[0] for argument in given}
    for names in (old for command, old in OLD_SPELLINGS.items() if command[0] in typed):
        for old, new in names.items():
            if old in typed and re.search(rf"{new}\b(?!-)", message):
                return f" ({old} is called {new} now.)"
    return ""


def _unknown_command(name: str) -> str:
    return f'there is no command "{name}".{_guess(name, list(COMMANDS))}'


def _fail(message: str, code: int) -> int:
    sys.stderr.write(f"treelm: {printable(message)}\n")
    return code


#: Warnings that were shown.
_SHOWN: set[str] = set()


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
    text = f"{place}{printable(str(message))}"
    if text not in _SHOWN:  # passes over the same text, and threads, say the same
        _SHOWN.add(text)
        sys.stderr.write(f"treelm: warning: {text}\n")
