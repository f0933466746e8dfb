"""Options that mean the same in every command, and how a command ends."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Self, TypeVar

from cyclopts import Group, Parameter

from treelm.characters import printable
from treelm.cli.ranges import at_least, between
from treelm.cli.terminal import terminal_progress
from treelm.corpus.brackets import (
    MAX_DEPTH,
    MAX_THREADS,
    OnError,
    Problem,
    ReadOptions,
    ReadReport,
)
from treelm.corpus.corpus import TreeCorpus
from treelm.corpus.file_kinds import Wanted
from treelm.corpus.files import read_lines
from treelm.errors import CorpusFormatError, UsageError
from treelm.limits import LARGEST_SEED
from treelm.parallel.executor import available_cores
from treelm.parallel.memory import MemoryLimit
from treelm.parallel.progress import SILENT, Progress

if TYPE_CHECKING:
    from treelm.corpus.tokenizers import Tokenizing
    from treelm.models.interface.model import LanguageModel

T = TypeVar("T")

#: Malformed trees are left out and reported; above this share the command fails.
TOLERATED_FAILURES = 0.01

SHOWN_PROBLEMS = 5


def _refuse_options(_: object, value: object) -> None:
    """Refuse what looks like an option but is none; a lone ``-`` is standard input."""
    for name in value if isinstance(value, list) else [value]:
        if isinstance(name, str) and name.startswith("-") and name != "-":
            raise ValueError(f'there is no option "{name}"; for a file of that name write ./{name}')


def _refuse_stream(_: object, value: object) -> None:
    """Refuse standard output for what is written beside the results."""
    if value == "-":
        raise ValueError("this needs a file of its own: standard output is for the results")


def _check_file(_: object, value: object) -> None:
    """Refuse a file that cannot be written, before the work that makes it."""
    from treelm.corpus.target import check_file_target

    if isinstance(value, str):
        check_file_target(value)


def _check_picture(_: object, value: object) -> None:
    """Refuse a picture of a format that is not written, before the work that makes it."""
    _refuse_stream(_, value)
    if isinstance(value, str):
        from treelm.view.picture_files import check_picture

        check_picture(value)


def _check_folder(_: object, value: object) -> None:
    """Refuse a folder that cannot be written, before the work that makes it."""
    from treelm.tasks.train import check_target

    if isinstance(value, str):
        check_target(value)


def _check_place(_: object, value: object) -> None:
    """The same for what may become a file or a folder."""
    from treelm.corpus.target import check_place

    if isinstance(value, str):
        check_place(value)


def _check_size(_: object, value: object) -> None:
    """Refuse what is no size of memory, before anything is read."""
    if isinstance(value, str):
        MemoryLimit.parse(value)


_FILE = Parameter(allow_leading_hyphen=True, validator=_refuse_options, metavar="FILE")
#: An input file, or ``-`` for standard input.
InputFile = Annotated[str, _FILE]
#: Input files; none means standard input.
InputFiles = Annotated[list[str] | None, _FILE, Parameter(show_default="standard input")]
#: Files of tokenized text; none means standard input.
TextFiles = Annotated[InputFiles, Parameter(help="Files of tokenized text, one sentence per line.")]
#: Files that follow an option.
Files = Annotated[list[str], Parameter(metavar="FILE...")]
#: A file that follows an option.
File = Annotated[str, Parameter(metavar="FILE")]
#: A folder that follows an option.
Folder = Annotated[str, Parameter(metavar="FOLDER")]

_OUTPUT = Parameter(
    name=["--output", "-o"],
    allow_leading_hyphen=True,
    validator=(_refuse_options, _check_file),
    metavar="FILE",
    help="File to write.",
)
#: A file to write, or ``-`` for standard output.
OutputFile = Annotated[str, _OUTPUT, Parameter(show_default="standard output")]
#: The same where nothing need be written.
OptionalOutputFile = Annotated[str | None, _OUTPUT]
#: A second file to write, beside what goes to the output.
NewFile = Annotated[
    str,
    Parameter(
        metavar="FILE",
        allow_leading_hyphen=True,
        validator=(_refuse_options, _refuse_stream, _check_file),
    ),
]
#: A picture to write beside what goes to the output.
NewPicture = Annotated[NewFile, Parameter(validator=(_refuse_options, _check_picture, _check_file))]
#: A picture that is the output, where nothing need be written.
OptionalOutputPicture = Annotated[
    str | None, _OUTPUT, Parameter(validator=(_refuse_options, _check_picture, _check_file))
]
_FOLDER = Parameter(name=["--output", "-o"], validator=_check_folder)
#: The folder that is made.
NewFolder = Annotated[str, _FOLDER, Parameter(metavar="FOLDER", help="Folder to write.")]
#: The folder of the model that is made.
NewModel = Annotated[str, _FOLDER, Parameter(metavar="MODEL", help="Model folder to write.")]
#: A file or a folder that is made, depending on its name.
NewPath = Annotated[
    str, Parameter(name=["--output", "-o"], validator=(_refuse_options, _check_place))
]
#: Whether a summary is written as JSON.
AsJson = Annotated[
    bool, Parameter(name="--json", help="Write one JSON object instead of lines of text.")
]
#: Whether nothing waits in a buffer.
LineBuffered = Annotated[
    bool, Parameter(name="--line-buffered", help="Write every record at once, for use in pipes.")
]
#: Seed of random numbers; each command says what they decide.
Seed = Annotated[int, at_least(0, LARGEST_SEED)]
#: How many of something are made.
Count = Annotated[int, Parameter(name=["--count", "-n"]), at_least(0, LARGEST_SEED)]
#: How many of what is read are used.
Limit = Annotated[
    int | None, at_least(0, LARGEST_SEED), Parameter(name="--limit", show_default="all")
]
#: How often something is drawn to find intervals and significance.
Rounds = Annotated[
    int, Parameter(name="--rounds", help="Number of bootstrap samples."), at_least(1)
]
#: The words that a model knows.
VocabularyFile = Annotated[
    str | None, Parameter(name="--vocabulary", metavar="FILE", help="Vocabulary file.")
]


def memory_limit(memory: str | None, temporary: str | None, output: str) -> MemoryLimit | None:
    """Return the limit asked for, with temporary files beside the output unless told otherwise."""
    if memory is None:
        if temporary is not None:
            raise UsageError("--temporary is used with --memory only.")
        return None
    folder = Path(output).absolute().parent if temporary is None else Path(temporary)
    return MemoryLimit.parse(memory, folder)


@Parameter(name="*", group=Group("Common options", sort_key=90))
@dataclass(frozen=True, kw_only=True)
class CommonOptions:
    """Options every command takes."""

    quiet: Annotated[bool, Parameter(name=["--quiet", "-q"])] = False
    """Write nothing but errors to standard error."""
    verbose: Annotated[bool, Parameter(name=["--verbose", "-v"])] = False
    """Write more to standard error, such as all malformed trees instead of the first five."""
    traceback: bool = False
    """Show where in the program an error arose."""

    @property
    def progress(self) -> Progress:
        """A bar on standard error, if that is a terminal and nobody asked for quiet."""
        return SILENT if self.quiet else terminal_progress()

    def note(self, message: str) -> None:
        """Say something on standard error unless asked to be quiet."""
        if not self.quiet:
            sys.stderr.write(f"treelm: {printable(message)}\n")


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class ThreadOptions:
    """The option of every command that can use several cores.

    Classes that extend it stand in this module, where its annotations are looked up.
    """

    threads: Annotated[
        int | None, between(1, MAX_THREADS), Parameter(show_default="the cores available")
    ] = None
    """Number of threads. Results do not depend on it."""

    @property
    def thread_count(self) -> int:
        """Threads asked for, or the cores available."""
        return available_cores() if self.threads is None else self.threads


@Parameter(name="*", group=Group("Memory options", sort_key=70))
@dataclass(frozen=True, kw_only=True)
class MemoryOptions:
    """Options of commands that can sort on disk what does not fit into memory."""

    memory: Annotated[
        str | None,
        Parameter(metavar="SIZE", validator=_check_size, show_default="as much as needed"),
    ] = None
    """Memory that may be used, such as 4G. What does not fit is sorted on disk, with the same
    result."""
    temporary: Annotated[
        str | None, Parameter(metavar="FOLDER", show_default="the folder of the output")
    ] = None
    """Folder for what does not fit. Nothing is left there."""

    def limit(self, output: str) -> MemoryLimit | None:
        """Return the limit asked for by a command that writes `output`."""
        return memory_limit(self.memory, self.temporary, output)


@Parameter(name="*", group=Group("Options for reading trees", sort_key=60))
@dataclass(frozen=True, kw_only=True)
class TreeOptions(ThreadOptions):
    """Options of every command that reads trees."""

    profile: Annotated[str, Parameter(metavar="PROFILE")] = "english"
    """Language profile: english, icelandic, japanese, neutral, spanish, or a .toml file."""
    on_error: OnError = "skip"
    """Malformed trees: skip leaves them out and reports them at the end, and fails if they are
    more than 1 % of the trees; raise stops at the first one."""
    max_depth: Annotated[int, between(1, MAX_DEPTH)] = 1000
    """Deepest nesting of brackets accepted."""

    def read_options(self, *, strip: bool = True, normalize_root: bool = True) -> ReadOptions:
        """Return how brackets are read; without `strip` everything stays as written."""
        return ReadOptions(
            profile=self.profile,
            strip=strip,
            unescape=strip,
            normalize_root=normalize_root,
            max_depth=self.max_depth,
        )

    def corpus(self, files: Sequence[str]) -> TreeCorpus:
        """Return files of trees as a corpus."""
        return TreeCorpus(
            tuple(files), self.read_options(), on_error=self.on_error, threads=self.thread_count
        )


@Parameter(name="*", group=Group("Options for reading text", sort_key=60))
@dataclass(frozen=True, kw_only=True)
class TextOptions(ThreadOptions):
    """Options of commands that go through text."""

    limit: Limit = None
    """Read only this many sentences, of all files together."""
    tokenize: Annotated[
        bool | None,
        Parameter(negative="--tokenized", show_default="--tokenize if the model has a tokenizer"),
    ] = None
    """Take raw text, one sentence per line, and tokenize it first, or tokenized text as it is.
    Figures of raw text are those of the words between white space: sums over their tokens."""

    def for_model(self, model: LanguageModel) -> Self:
        """Return the options with text taken as a model wants it, by its own tokenizer."""
        name = model.tokenizer
        made = replace(self, tokenize=name is not None) if self.tokenize is None else replace(self)
        if name is not None:
            from treelm.models.interface.raw_text import tokenizing

            # No option: what the model is like, not what the user says.
            object.__setattr__(made, "_tokenizing", tokenizing(model, name))
        return made

    @property
    def tokenizing(self) -> Tokenizing:
        """What takes raw text apart."""
        from treelm.corpus.tokenize import tokenize_words

        found: Tokenizing = self.__dict__.get("_tokenizing", tokenize_words)
        return found

    @property
    def is_raw(self) -> bool:
        """Whether the text is tokenized here."""
        return bool(self.tokenize)

    def lines(self, file: str) -> Iterator[str]:
        """Return the lines of a file of text, tokenized if it is raw."""
        if self.is_raw:
            from treelm.tasks.raw_text import tokenized_lines

            return tokenized_lines(read_lines(file, Wanted.RAW_TEXT), self.tokenizing)
        return read_lines(file, Wanted.TEXT)

    def first(self, items: Iterable[T]) -> Iterator[T]:
        """Yield as many as --limit allows."""
        return islice(items, self.limit)

    def first_lines(self, files: Iterable[str]) -> Iterator[tuple[str, Iterator[str]]]:
        """Yield files with their lines, of all files together as many as --limit allows."""
        left = -1 if self.limit is None else self.limit

        def lines(file: str) -> Iterator[str]:
            nonlocal left
            if left == 0:
                return
            for line in self.lines(file):
                left -= 1
                yield line
                if left == 0:
                    return

        for file in files:
            yield file, self.lines(file) if self.limit is None else lines(file)


@Parameter(name="*", group=Group("Measuring options", sort_key=60))
@dataclass(frozen=True, kw_only=True)
class MeasureOptions(ThreadOptions):
    """Options of commands that measure with intervals."""

    seed: Seed = 0
    """Seed of the random numbers behind intervals and tests."""
    allow_overlap: bool = False
    """Continue even if the model was trained on a file it is measured on."""


def note_problems(problems: Sequence[Problem], what: str, common: CommonOptions) -> None:
    """Say what is wrong with some trees: a few of them, or with --verbose all."""
    shown = len(problems) if common.verbose else SHOWN_PROBLEMS
    for problem in problems[:shown]:
        common.note(f"{what}: {problem.message}" if what else problem.message)
    if len(problems) > shown:
        common.note(f"... and {len(problems) - shown} more; --verbose shows them.")


def _failures(report: ReadReport) -> str:
    """Return what was wrong with a file of trees, in one or two sentences."""
    places = "1 place" if report.stray == 1 else f"{report.stray} places"
    if not report.seen:
        return f"there is no tree, only text outside trees, in {places}."
    malformed = report.failed - report.stray
    parts = []
    if malformed:
        parts.append(f"{malformed} of {report.seen} trees were malformed and left out.")
    if report.stray:
        parts.append(f"Text outside trees was skipped in {places}.")
    return " ".join(parts)


def settle_reading(report: ReadReport, common: CommonOptions, source: str) -> None:
    """Report malformed trees at the end of a reading.

    Raises:
        CorpusFormatError: if there were no trees, or more than one in a hundred was malformed.
    """
    note_problems(report.problems, "", common)
    if report.failed:
        summary = f"{source}: {_failures(report)}"
        if not report.seen:
            raise CorpusFormatError(
                f"{summary} A file of trees has lines such as (S (NP (PRP I)) ...).",
                code=report.problems[0].code,
            )
        if report.failure_rate > TOLERATED_FAILURES:
            raise CorpusFormatError(
                f"{summary} That is more than {TOLERATED_FAILURES:.0%}: is this the right file? "
                f"`treelm inspect` lists every place.",
                code=report.problems[0].code,
            )
        common.note(summary)
    elif not report.trees:
        what = "nothing but empty elements" if report.dropped else "no trees"
        raise CorpusFormatError(
            f"{source}: contains {what}. A file of trees has lines such as (S (NP (PRP I)) ...).",
            code="E_NO_TREES",
        )
    if report.dropped:
        common.note(
            f"{source}: {report.dropped} trees contained nothing but empty elements; left out."
        )
