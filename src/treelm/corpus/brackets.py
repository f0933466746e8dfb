"""Penn brackets: streams of trees from files, with the place of every error."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from treelm import _native
from treelm.characters import visible
from treelm.corpus.file_kinds import FOREST_MAGIC, Wanted, check_kind
from treelm.corpus.files import (
    Source,
    first_block,
    is_forest,
    read_blocks,
    size_if_known,
    source_name,
)
from treelm.errors import CorpusFormatError, EngineError, TreelmWarning, UsageError
from treelm.parallel.progress import SILENT, Progress
from treelm.trees.packed import PackedTrees
from treelm.trees.tree import Tree

if TYPE_CHECKING:
    from treelm.trees.profile import ProfileSource

OnError = Literal["raise", "skip"]

MAX_THREADS = 1024
MAX_DEPTH = 10**9
#: How many problems a report keeps in full; the rest are counted.
KEPT_PROBLEMS = 1000

_HINTS = {
    "E_UNBALANCED": "Is a line cut off, or a bracket inside a word not written -LRB- or -RRB-?",
    "E_TEXT_OUTSIDE": "Is this a file of bracketed trees? Plain text has no trees to read.",
    "E_MIXED": "A node has either one word or bracketed children, never both.",
    "E_MULTI_WORD": "A tag has one word; join the words with _ or give each its own tag.",
    "E_NO_WORD": "A parser that found no parse writes such lines.",
    "E_EMPTY_LABEL": "Only the outermost bracket may have no label.",
    "E_DEPTH": "A larger max_depth allows it, if the tree is intended.",
    "E_ENCODING": "Convert the file first, for example: iconv -f latin1 -t utf-8 FILE",
    "E_RESERVED_CHAR": "Transforms use these characters as marks; rename the category.",
}


_CLOSED_ONLY = "a bracket is closed that was never opened"
_OPENED_ONLY = "a bracket is opened and not closed (within 32 MiB)"


@dataclass(frozen=True, slots=True)
class Problem:
    """An error in a file of trees, and where; `sentence` replaces the kernel's wording."""

    code: str
    path: str
    tree: int
    line: int
    column: int
    excerpt: str
    sentence: str = ""

    @property
    def message(self) -> str:
        """Fact with place, likely cause."""
        place = f"{self.path}:{self.line}"
        if self.column:
            place += f":{self.column}"
        if self.sentence:
            return f"{place}: tree {self.tree}: {self.sentence} ({self.code})"
        sentence = _native.ERROR_SENTENCES[self.code]
        if self.code == "E_UNBALANCED":
            is_closing = self.excerpt.startswith(")")
            sentence = _CLOSED_ONLY if is_closing else _OPENED_ONLY
        near = f', at "{self.excerpt}"' if self.excerpt else ""
        return f"{place}: tree {self.tree}: {sentence}{near} ({self.code}). {_HINTS[self.code]}"

    def as_error(self) -> CorpusFormatError:
        """Return the problem as an exception."""
        advice = f"\nRun `treelm inspect {self.path}` to list every malformed tree."
        in_file = not self.path.startswith("<") and self.code != "E_RESERVED_CHAR"
        return CorpusFormatError(
            self.message + (advice if in_file else ""),
            code=self.code,
            path=self.path,
            line=self.line,
            column=self.column,
            tree=self.tree,
        )


@dataclass(slots=True)
class ReadReport:
    """Counts of the trees of one reading; filled while the trees are read.

    `failed` counts malformed trees and stray text; `stray` is the part of it that was text
    between trees.
    """

    trees: int = 0
    tokens: int = 0
    failed: int = 0
    dropped: int = 0
    many_rooted: int = 0
    stray: int = 0
    problems: list[Problem] = field(default_factory=list)

    @property
    def seen(self) -> int:
        """Trees in the file: read, dropped or malformed."""
        return self.trees + self.dropped + self.failed - self.stray

    @property
    def failure_rate(self) -> float:
        """Share of the trees that were malformed."""
        everything = self.trees + self.dropped + self.failed
        return self.failed / everything if everything else 0.0


@dataclass(frozen=True, slots=True)
class ReadOptions:
    r"""How brackets are read.

    Args:
        profile: Language profile: which tags are empty or dropped, which labels are flattened.
        strip: Cut labels at function tags, remove empty elements and dropped tags; False keeps
            every label whole and every node.
        simplify: With `strip`, also splice in the phrases that the profile flattens and collapse
            ``X -> X``; False keeps these phrases, which evalb counts.
        unescape: Read ``\/`` as ``/`` and ``\*`` as ``*``.
        respell: With `unescape`, spell words as the profile says: quotes, in English.
        normalize_root: Put one node ``ROOT`` on top of every tree.
        max_depth: Deepest nesting accepted.
    """

    profile: ProfileSource = "english"
    strip: bool = True
    simplify: bool = True
    unescape: bool = True
    respell: bool = True
    normalize_root: bool = True
    max_depth: int = 1000

    def __post_init__(self) -> None:
        if not 1 <= self.max_depth <= MAX_DEPTH:
            raise UsageError(
                f"max_depth is {self.max_depth}; it must be between 1 and {MAX_DEPTH}."
            )

    def recipe(
        self, *, treelet: int = 0, lowest_verb_label: bool = True, temporal: Iterable[str] = ()
    ) -> _native.TreeRecipe:
        """Return the kernel's recipe: these options, then the treelet transforms of the mask."""
        from treelm.trees.profile import load_profile

        return _native.TreeRecipe(
            load_profile(self.profile).native,
            strip=self.strip,
            simplify=self.simplify,
            unescape=self.unescape,
            respell=self.respell and self.unescape,
            normalize_root=self.normalize_root,
            max_depth=self.max_depth,
            treelet=treelet,
            lowest_verb_label=lowest_verb_label,
            temporal_words=sorted(temporal),
        )


DEFAULT_OPTIONS = ReadOptions()
#: For evaluation: all phrases that have words are kept, in gold trees and parses alike, and words
#: are as they are written, because a parser may take a quote for its opposite.
EVALUATION_OPTIONS = ReadOptions(simplify=False, respell=False)
#: Everything is kept as written.
RAW_OPTIONS = ReadOptions(strip=False, unescape=False, normalize_root=False)


def _batches(
    blocks: Iterable[bytes], recipe: _native.TreeRecipe, *, threads: int, as_text: bool, flush: bool
) -> Iterator[_native.TreeBatch]:
    """Feed blocks to the kernel and yield finished batches in order."""
    if not 1 <= threads <= MAX_THREADS:
        raise UsageError(f"threads is {threads}; it must be between 1 and {MAX_THREADS}.")
    stream = _native.TreeStream(recipe, threads=threads, as_text=as_text)
    limit = 8 * threads  # batches in flight: bounds memory, keeps every thread busy
    try:
        for block in blocks:
            stream.feed(block, flush=flush)
            while (batch := stream.take(wait=stream.in_flight > limit or flush)) is not None:
                yield batch
        stream.finish()
        while (batch := stream.take(wait=True)) is not None:
            yield batch
    except _native.KernelError as error:
        code, message, _, _ = error.args
        raise EngineError(f"reading trees failed: {message}", code=code) from error


def _note(batch: _native.PackedTrees, name: str, report: ReadReport, on_error: OnError) -> None:
    """Add a batch to the report; raise or warn as asked."""
    if on_error not in ("raise", "skip"):
        raise UsageError(f'on_error is "{on_error}"; it must be raise or skip.')
    report.dropped += batch.dropped
    report.failed += batch.problem_count
    report.stray += batch.stray_count
    for code, tree, line, column, excerpt in batch.problems:
        if len(report.problems) >= KEPT_PROBLEMS and on_error == "skip":
            break
        text = excerpt.decode("utf-8", "backslashreplace")
        problem = Problem(code, name, tree, line, column, visible(text))
        if on_error == "raise":
            raise problem.as_error()
        report.problems.append(problem)
    if batch.many_rooted and not report.many_rooted:
        warn_of_many_roots(name)
    report.many_rooted += batch.many_rooted


def warn_of_many_roots(name: str) -> None:
    """Say that trees of a source have several nodes below an unlabelled root."""
    warnings.warn(
        f"{name}: some trees have several nodes below an unlabelled root; each becomes one "
        "ROOT with several children.",
        TreelmWarning,
        stacklevel=5,
    )


def read_packed(
    source: Source | Iterable[bytes],
    options: ReadOptions = DEFAULT_OPTIONS,
    *,
    recipe: _native.TreeRecipe | None = None,
    name: str | None = None,
    on_error: OnError = "raise",
    report: ReadReport | None = None,
    threads: int = 1,
    progress: Progress = SILENT,
    line_buffered: bool = False,
) -> Iterator[PackedTrees]:
    """Yield the trees of a file in batches, in order, in constant memory.

    Args:
        source: File name, ``-`` for standard input, or blocks of bytes; see `tree_blocks`.
        options: How brackets are read.
        recipe: Kernel recipe that replaces `options`, to transform trees while they are read.
        name: What messages call the source; default: the name of the file.
        on_error: ``raise`` at the first malformed tree, or ``skip`` and report it.
        report: Filled with counts and problems.
        threads: Number of threads.
        progress: Called with the number of bytes read.
        line_buffered: Pass on every tree at once.

    Raises:
        CorpusFormatError: for a malformed tree, with file, line, column and code.
        InputFileError: for a file that cannot be read.
    """
    report = ReadReport() if report is None else report
    file_name, blocks = _named_blocks(source)
    name = file_name if name is None else name
    recipe = options.recipe() if recipe is None else recipe
    with progress.step(f"reading {name}", total=_size(source), unit="B") as step:
        for batch in _batches(
            _counted(blocks, step.advance),
            recipe,
            threads=threads,
            as_text=False,
            flush=line_buffered,
        ):
            packed = PackedTrees(batch.trees)
            _note(batch.trees, name, report, on_error)
            report.trees += len(packed)
            report.tokens += packed.token_count
            if len(packed):
                yield packed


def rewrite_brackets(
    source: Source | Iterable[bytes],
    recipe: _native.TreeRecipe,
    *,
    on_error: OnError = "raise",
    report: ReadReport | None = None,
    threads: int = 1,
    progress: Progress = SILENT,
    line_buffered: bool = False,
) -> Iterator[bytes]:
    """Yield the trees of a file as brackets, one per line, after applying the recipe.

    The arguments are those of `read_packed`; `line_buffered` passes on every tree at once.
    """
    report = ReadReport() if report is None else report
    name, blocks = _named_blocks(source)
    with progress.step(f"reading {name}", total=_size(source), unit="B") as step:
        for batch in _batches(
            _counted(blocks, step.advance),
            recipe,
            threads=threads,
            as_text=True,
            flush=line_buffered,
        ):
            _note(batch.trees, name, report, on_error)
            report.trees += batch.written
            if batch.written:
                yield batch.text


def read_trees(
    source: Source | Iterable[str],
    options: ReadOptions = DEFAULT_OPTIONS,
    *,
    on_error: OnError = "raise",
    report: ReadReport | None = None,
    threads: int = 1,
) -> Iterator[Tree]:
    """Yield the trees of a file, or of strings that each contain one or more trees.

    Args:
        source: File name (compressed files by suffix), ``-``, or an iterable of bracket strings
            such as another parser prints. A file of parses (``.forest``) gives the best tree of
            each sentence.
        options: How brackets are read.
        on_error: ``raise`` at the first malformed tree, or ``skip`` and report it.
        report: Filled with counts and problems.
        threads: Number of threads.

    Examples:
        >>> for tree in read_trees(["(S (NP-SBJ (PRP I)) (VP (VBP sleep)))"]):
        ...     print(tree)
        (ROOT (S (NP (PRP I)) (VP (VBP sleep))))
    """
    blocks: Source | Iterable[bytes]
    if isinstance(source, (str, os.PathLike)):
        blocks = source
    else:
        blocks = (f"{text}\n".encode("utf-8", "surrogatepass") for text in source)
    for packed in read_packed(blocks, options, on_error=on_error, report=report, threads=threads):
        yield from packed


def looks_like_brackets(start: bytes) -> bool:
    r"""Return whether a file that starts like this contains trees: a bracket comes first.

    Examples:
        >>> looks_like_brackets(b"*x* comment\n (S (NN dog))"), looks_like_brackets(b"the dog")
        (True, False)
    """
    for line in start.removeprefix(b"\xef\xbb\xbf").splitlines():
        if line.strip() and not line.startswith(b"*x*"):
            return line.lstrip().startswith(b"(")
    return False


def contains_trees(source: Source) -> bool:
    """Return whether a file contains trees, by how it begins; this consumes a pipe."""
    return is_forest(source) or looks_like_brackets(first_block(source))


def tree_blocks(source: Source) -> Iterator[bytes]:
    """Yield the content of a file of trees in blocks, as brackets.

    A file of parses gives the best tree of each sentence, a line each, blank where there is none;
    it is unpacked as far as it is read. Every other file gives its bytes.

    Raises:
        InputFileError: if the file cannot be opened or read to its end.
        CorpusFormatError: ``E_FOREST_FILE`` for a file of parses that is damaged, compressed once
            more, or comes through a pipe.
    """
    if is_forest(source):
        from treelm.grammar.forest_file import ForestFile

        with ForestFile(source) as file:
            if not file.is_complete:
                warnings.warn(
                    f"{source_name(source)}: the parsing of this text was not finished; only the "
                    f"first {len(file)} sentences have trees.",
                    TreelmWarning,
                    stacklevel=2,
                )
            yield from file.best_as_brackets()
        return
    blocks = read_blocks(source)
    first = next(blocks, b"")
    if first.startswith(FOREST_MAGIC):
        raise CorpusFormatError(
            f"{source_name(source)}: this is a file of parses (.forest), which is read in several "
            "places at once. Decompress it if it is compressed, and give its name.",
            code="E_FOREST_FILE",
            path=source_name(source),
        )
    check_kind(first, Wanted.TREES, source_name(source))
    yield first
    yield from blocks


def parse_tree(text: str, options: ReadOptions = RAW_OPTIONS) -> Tree:
    """Return the one tree written in `text`; everything is kept as written unless `options` differ.

    Raises:
        CorpusFormatError: if the text is malformed, or does not contain exactly one tree.
    """
    trees = list(read_trees([text], options))
    if len(trees) != 1:
        raise CorpusFormatError(
            f"expected one tree and found {len(trees)}; use read_trees for several.",
            code="E_NOT_ONE_TREE",
        )
    return trees[0]


def _named_blocks(source: Source | Iterable[bytes]) -> tuple[str, Iterable[bytes]]:
    if isinstance(source, (str, os.PathLike)):
        return source_name(source), tree_blocks(source)
    return "<trees>", source


def _size(source: Source | Iterable[bytes]) -> int | None:
    """Return the number of bytes to come, where it can be known."""
    return size_if_known(source) if isinstance(source, (str, os.PathLike)) else None


def _counted(blocks: Iterable[bytes], advance: object) -> Iterator[bytes]:
    """Yield the blocks and report their sizes."""
    assert callable(advance)
    for block in blocks:
        yield block
        advance(len(block))
