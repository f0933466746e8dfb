"""Gold and system files of trees, paired sentence by sentence."""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass, replace

from treelm.corpus.brackets import (
    OnError,
    Problem,
    ReadOptions,
    ReadReport,
    read_packed,
    tree_blocks,
)
from treelm.corpus.files import Source, source_name
from treelm.errors import CorpusFormatError
from treelm.signature import signature
from treelm.tasks.evaluate.evalb import (
    CUTOFF,
    EVALB_OPTIONS,
    EvalbSentence,
    EvalbSummary,
    score_evalb,
    summarize_evalb,
)
from treelm.tasks.evaluate.parse_accuracy import ParseAccuracy, score_parse, summarize
from treelm.trees.profile import Profile, load_profile
from treelm.trees.tree import Tree

#: The errors of trees such as ``(())``.
_NO_PARSE = ("E_NO_WORD", "E_EMPTY_LABEL")


@dataclass(frozen=True, slots=True)
class ParseFileAccuracy:
    """The scores, and what could not be read."""

    accuracy: ParseAccuracy
    gold_problems: tuple[Problem, ...]
    system_problems: tuple[Problem, ...]


@dataclass(frozen=True, slots=True)
class EvalbFileScores:
    """What evalb says about a file of parses."""

    sentences: tuple[EvalbSentence, ...]
    all: EvalbSummary
    short: EvalbSummary
    """The sentences of at most 40 words."""
    signature: str


@dataclass(frozen=True, slots=True)
class _TreeFile:
    name: str
    by_ordinal: dict[int, Tree]
    lines: dict[int, int]  # ordinal -> line
    wrapped: bool  # some tree continues over a line end
    trees: int  # malformed and dropped ones included
    line_count: int
    report: ReadReport

    @property
    def one_a_line(self) -> bool:
        """Whether every tree that could be read is on its own line."""
        lines = list(self.lines.values())
        return len(set(lines)) == len(lines) and not self.wrapped

    def by_line(self) -> dict[int, Tree]:
        return {self.lines[ordinal]: tree for ordinal, tree in self.by_ordinal.items()}


def evaluate_parse_files(
    gold: Source,
    system: Source,
    options: ReadOptions,
    *,
    on_error: OnError = "skip",
    threads: int = 1,
) -> ParseFileAccuracy:
    """Return the bracket scores of the parses in a file.

    The files are paired line by line where both have one tree per line, so that an empty line
    is a sentence without a parse; otherwise tree by tree. A malformed parse such as
    ``(())`` counts as no parse; a malformed gold tree leaves its sentence out.

    Raises:
        CorpusFormatError: ``E_LENGTH_MISMATCH`` if the files do not match,
            ``E_YIELD_MISMATCH`` if a pair has different words.
    """
    return evaluate_systems(gold, [system], options, on_error=on_error, threads=threads)[0]


def evaluate_systems(
    gold: Source,
    systems: Sequence[Source],
    options: ReadOptions,
    *,
    on_error: OnError = "skip",
    threads: int = 1,
    known: Container[str] | None = None,
) -> list[ParseFileAccuracy]:
    """Return the bracket scores of several files with parses of the same sentences.

    The gold trees are read once. The scores of all files are for the same gold trees. Whatever
    `options` say, phrases are neither flattened nor collapsed, because evalb does not. Where the
    words that a model knows are given, tags of the others are counted apart.
    """
    options = replace(options, simplify=False, respell=False)
    right = _read(gold, options, on_error, threads)
    profile = load_profile(options.profile)
    return [
        _score(right, _read(each, options, on_error, threads), profile, known) for each in systems
    ]


def evaluate_evalb(
    gold: Source,
    system: Source,
    options: ReadOptions,
    *,
    on_error: OnError = "skip",
    threads: int = 1,
) -> EvalbFileScores:
    """Return what evalb says about the parses in a file.

    The files are paired as by evalb, line by line, unless a tree continues on another line or the
    numbers of lines differ; then tree by tree. Of `options` the profile and the depth are used.

    Raises:
        CorpusFormatError: ``E_LENGTH_MISMATCH`` if the files do not match.
    """
    profile = load_profile(options.profile)
    reading = replace(EVALB_OPTIONS, profile=profile, max_depth=options.max_depth)
    right, guess = (_read(each, reading, on_error, threads) for each in (gold, system))
    sentences = tuple(
        score_evalb(number, gold_trees, trees, profile, problem=problem)
        for number, gold_trees, trees, problem in _evalb_pairs(right, guess)
    )
    return EvalbFileScores(
        sentences,
        summarize_evalb(sentences),
        summarize_evalb(sentences, CUTOFF),
        signature(task="evalb", profile=profile.short_name, n=len(sentences)),
    )


def _score(
    right: _TreeFile, guess: _TreeFile, profile: Profile, known: Container[str] | None
) -> ParseFileAccuracy:
    scores = []
    for place, gold_tree, tree in _pairs(right, guess):
        try:
            scores.append(score_parse(gold_tree, tree, profile, known=known))
        except CorpusFormatError as error:
            raise CorpusFormatError(
                f"{guess.name}: {place}: {error}", code=error.code, path=guess.name
            ) from error
    if not scores:
        raise CorpusFormatError(
            f"{right.name}: contains no readable gold tree, so there is nothing to score.",
            code="E_NO_TREES",
            path=right.name,
        )
    return ParseFileAccuracy(
        summarize(scores, profile), tuple(right.report.problems), tuple(guess.report.problems)
    )


def _read(source: Source, options: ReadOptions, on_error: OnError, threads: int) -> _TreeFile:
    report = ReadReport()
    trees: dict[int, Tree] = {}
    lines: dict[int, int] = {}
    newlines = depth = 0
    ends_in_newline = True
    wrapped = False

    def counted() -> Iterator[bytes]:
        nonlocal newlines, depth, ends_in_newline, wrapped
        for block in tree_blocks(source):
            newlines += block.count(b"\n")
            ends_in_newline = block.endswith(b"\n")
            for piece in block.splitlines(keepends=True):
                depth = max(0, depth + piece.count(b"(") - piece.count(b")"))
                wrapped |= depth > 0 and piece.endswith(b"\n")
            yield block

    name = source_name(source)
    for batch in read_packed(
        counted(), options, name=name, on_error=on_error, report=report, threads=threads
    ):
        ordinals = batch.ordinal.tolist()
        trees.update(zip(ordinals, batch, strict=True))
        lines.update(zip(ordinals, batch.line.tolist(), strict=True))
    return _TreeFile(
        name, trees, lines, wrapped, report.seen, newlines + (not ends_in_newline), report
    )


def _pairs(gold: _TreeFile, guess: _TreeFile) -> Iterator[tuple[str, Tree, Tree | None]]:
    if gold.one_a_line and guess.one_a_line and gold.line_count == guess.line_count:
        by_line = guess.by_line()
        for line, tree in gold.by_line().items():
            yield f"line {line}", tree, by_line.get(line)
        return
    _check_numbers(gold, guess)
    for ordinal, tree in gold.by_ordinal.items():
        yield f"tree {ordinal}", tree, guess.by_ordinal.get(ordinal)


def _evalb_pairs(
    gold: _TreeFile, guess: _TreeFile
) -> Iterator[tuple[int, list[Tree], list[Tree], str]]:
    """Yield number, gold trees, the parser's trees and what is wrong with one of the two."""
    by_line = not gold.wrapped and not guess.wrapped and gold.line_count == guess.line_count
    if not by_line:
        _check_numbers(gold, guess)
    places: list[dict[int, list[Tree]]] = []
    problems: dict[int, str] = {}
    for file in (gold, guess):
        trees: dict[int, list[Tree]] = {}
        for ordinal, tree in file.by_ordinal.items():
            trees.setdefault(file.lines[ordinal] if by_line else ordinal, []).append(tree)
        places.append(trees)
        for problem in file.report.problems:
            # Without words it is how a parser says that it found nothing.
            if file is gold or problem.code not in _NO_PARSE:
                problems[problem.line if by_line else problem.tree] = problem.message
    for number in range(1, (gold.line_count if by_line else gold.trees) + 1):
        right, found = (each.get(number, []) for each in places)
        yield number, right, found, problems.get(number, "")


def _check_numbers(gold: _TreeFile, guess: _TreeFile) -> None:
    if gold.trees != guess.trees:
        raise CorpusFormatError(
            f"{gold.name} has {gold.trees} trees and {guess.name} {guess.trees}; they must match. "
            "Write one tree per line in both, and an empty line where the parser found no "
            "parse.",
            code="E_LENGTH_MISMATCH",
            path=guess.name,
        )
