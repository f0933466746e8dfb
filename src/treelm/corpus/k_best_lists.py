"""K-best lists as parsers print them: those of treelm, Berkeley and BLLIP, or one tree per line."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Literal, NamedTuple, get_args

from treelm import _native
from treelm.characters import visible
from treelm.corpus.brackets import DEFAULT_OPTIONS, ReadOptions, ReadReport, read_packed
from treelm.corpus.file_kinds import Wanted
from treelm.corpus.files import Source, read_lines, source_name
from treelm.corpus.nbest import Hypothesis, NBest, malformed, read_number
from treelm.corpus.words import SPACE
from treelm.errors import CorpusFormatError, UsageError
from treelm.trees.packed import PackedTrees

#: The layout of a file of trees; ``blocks`` are those of treelm and Berkeley.
ListForm = Literal["auto", "blocks", "bllip", "plain"]

_BLLIP_HEAD = re.compile(r"\s*(?P<count>\d+)\s+(?P<id>\S.*?)\s*")
#: What parsers write where they found nothing.
_NO_PARSE = {"(())", "()", "(S1)", "(TOP)", "(ROOT)", "((S))"}
_NO_PARSE_BRACKETS = 2

#: White space as bracket files have it; a no-break space is part of a word.
_SPACES = re.compile(f"[{SPACE}]+")

#: Lines read to detect the layout of a file.
_LOOK_AHEAD = 4096

_Line = tuple[int, str]


class _Row(NamedTuple):
    """A line with a tree: its number, the columns before the tree, the tree."""

    line: int
    columns: Sequence[str]
    brackets: str


class PackedList(NamedTuple):
    """The trees of a sentence, packed.

    Args:
        id: Name of the sentence.
        trees: Its trees, all of the same words; None for a sentence without any.
        scores: The score of every tree, where it has one.
        more: Further columns of every tree, as written.
        line: Where the list begins in its file, counted from 1.
    """

    id: str
    trees: PackedTrees | None
    scores: Sequence[float | None]
    more: Sequence[tuple[str, ...]]
    line: int


def read_k_best_lists(
    source: Source,
    *,
    form: ListForm = "auto",
    options: ReadOptions = DEFAULT_OPTIONS,
) -> Iterator[NBest]:
    r"""Yield the trees of each sentence in turn.

    - ``blocks``: one tree per line, scores and tabs before it if there are any; a blank line ends
      the trees of a sentence. `treelm parse -k` writes this, and the Berkeley parser with
      ``-kbest``.
    - ``bllip``: a line with the number of trees and the name of the sentence, then for each tree a
      line with its log probability and one with the tree (`parseIt -N`).
    - ``plain``: one tree per line, each of another sentence; a blank line is one without words.

    What a parser writes for "no parse", such as ``(())``, is skipped.

    Args:
        source: File name (compressed files by suffix), or ``-``.
        form: The layout; ``auto`` detects it.
        options: How brackets are read.

    Raises:
        CorpusFormatError: with file and line: ``E_NBEST`` for a line that does not belong there, or
            the code of a malformed tree; ``E_NBEST_WORDS`` for trees of different words in one
            list.
    """
    for best in read_packed_lists(source, form=form, options=options):
        hypotheses: tuple[Hypothesis, ...] = ()
        if best.trees is not None:
            words = best.trees.first_words()
            hypotheses = tuple(
                Hypothesis(words, tree, score, more=more)
                for tree, score, more in zip(best.trees, best.scores, best.more, strict=True)
            )
        yield NBest(best.id, hypotheses, best.line)


def read_packed_lists(
    source: Source,
    *,
    form: ListForm = "auto",
    options: ReadOptions = DEFAULT_OPTIONS,
) -> Iterator[PackedList]:
    """Yield what `read_k_best_lists` does, without an object for every tree."""
    if form not in get_args(ListForm):
        raise UsageError(f'there is no form "{form}"; choose {", ".join(get_args(ListForm))}.')
    lines: Iterator[_Line] = enumerate(read_lines(source, Wanted.K_BEST), 1)
    recipe = options.recipe()
    if form == "auto":
        form, lines = _detect(lines, source, recipe)
    rows = {"blocks": _block_rows, "bllip": _bllip_rows, "plain": _plain_rows}[form]
    for number, (name, first, found) in enumerate(rows(lines, source), 1):
        kept = [row for row in found if not _is_no_parse(row)]
        trees = _packed(kept, source, recipe) if kept else None
        scores = [_score(row, source) for row in kept]
        other = None if trees is None else trees.first_with_other_words()
        if other is not None:
            raise CorpusFormatError(
                f"{source_name(source)}:{kept[other].line}: the words of this tree differ from "
                "those of the first of its list. Is a blank line missing between two sentences, or "
                "is each line a sentence of its own (form plain)?",
                code="E_NBEST_WORDS",
                path=source_name(source),
                line=kept[other].line,
            )
        more = [tuple(column.strip() for column in row.columns[1:]) for row in kept]
        yield PackedList(name or str(number), trees, scores, more, first)


def block_lines(k_best_lists: Iterable[NBest]) -> Iterator[str]:
    r"""Yield the lines of a file of blocks, without line ends.

    Examples:
        >>> from treelm.trees.tree import Tree
        >>> tree = Tree("ROOT", [Tree("NN", "dog")])
        >>> list(block_lines([NBest("1", (Hypothesis(("dog",), tree, -2.5),))]))
        ['-2.5\t(ROOT (NN dog))', '']
    """
    for best in k_best_lists:
        for each in best.hypotheses:
            score = "" if each.score is None else f"{each.score!r}\t"
            yield f"{score}{each.tree}"
        yield ""


# -- the layout of a file -------------------------------------------------------------------


def _detect(
    lines: Iterator[_Line], source: Source, recipe: _native.TreeRecipe
) -> tuple[Literal["blocks", "bllip", "plain"], Iterator[_Line]]:
    """Return the layout of a file, and its lines from the first on."""
    seen: list[_Line] = []
    words: tuple[str, ...] | None = None
    found: Literal["blocks", "bllip", "plain"] = "blocks"
    started = False
    for number, line in lines:
        seen.append((number, line))
        if not line.strip():
            if started:
                break
            continue
        if not started and _BLLIP_HEAD.fullmatch(line):
            found = "bllip"
            break
        started = True
        row = _row(number, line, source)
        if row.columns:
            break
        if _is_no_parse(row):
            continue
        own = _packed([row], source, recipe).first_words()
        words = own if words is None else words
        if own != words:
            found = "plain"
            break
        if len(seen) > _LOOK_AHEAD:
            break
    return found, chain(seen, lines)


_Block = tuple[str, int, list[_Row]]


def _block_rows(lines: Iterator[_Line], source: Source) -> Iterator[_Block]:
    rows: list[_Row] = []
    first = 1
    for number, line in lines:
        if line.strip():
            rows.append(_row(number, line, source))
            continue
        yield "", first, rows
        rows, first = [], number + 1
    if rows:
        yield "", first, rows


def _plain_rows(lines: Iterator[_Line], source: Source) -> Iterator[_Block]:
    for number, line in lines:
        yield "", number, [_row(number, line, source)] if line.strip() else []


def _bllip_rows(lines: Iterator[_Line], source: Source) -> Iterator[_Block]:
    filled = ((number, line) for number, line in lines if line.strip())
    for first, head in filled:
        found = _BLLIP_HEAD.fullmatch(head)
        if found is None:
            raise malformed(
                source,
                first,
                f'"{visible(head[:40])}" is not the head of a k-best list',
                "A list begins with the number of its trees and the name of the sentence.",
            )
        rows: list[_Row] = []
        for _ in range(int(found["count"])):
            (at, score), (number, line) = (next(filled, (0, "")) for _ in range(2))
            if not number:
                raise malformed(
                    source,
                    first,
                    f"the list of sentence {visible(found['id'])} ends after {len(rows)} of "
                    f"{found['count']} trees",
                    "Was the file copied completely?",
                )
            read_number(score.strip(), source, at)
            rows.append(_Row(number, (score.strip(),), line.strip()))
        yield found["id"], first, rows


def _row(number: int, line: str, source: Source) -> _Row:
    *columns, brackets = line.strip().split("\t")
    if not brackets.startswith("("):
        raise malformed(
            source,
            number,
            f'"{visible(line.strip()[:40])}" has no tree',
            "A line has one tree, preceded by scores and tabs if there are any.",
        )
    return _Row(number, columns, brackets)


# -- trees ----------------------------------------------------------------------------------


def _is_no_parse(row: _Row) -> bool:
    """Return whether this is what parsers write where they found nothing."""
    brackets = row.brackets
    return brackets.count("(") <= _NO_PARSE_BRACKETS and _SPACES.sub("", brackets) in _NO_PARSE


def _packed(rows: Sequence[_Row], source: Source, recipe: _native.TreeRecipe) -> PackedTrees:
    """Return the trees of rows, at least one, as one batch."""
    report = ReadReport()
    text = "".join([f"{row.brackets}\n" for row in rows]).encode()
    batches = list(read_packed([text], recipe=recipe, on_error="skip", report=report))
    if report.failed or sum(map(len, batches)) != len(rows):
        batches = [_one_tree(row, source, recipe) for row in rows]
    return PackedTrees.joined(batches)


def _one_tree(row: _Row, source: Source, recipe: _native.TreeRecipe) -> PackedTrees:
    name = source_name(source)
    report = ReadReport()
    block = [f"{row.brackets}\n".encode()]
    batches = list(read_packed(block, recipe=recipe, on_error="skip", report=report))
    if report.problems:
        problem = report.problems[0]
        message = problem.message.partition(": ")[2].partition(": ")[2]
        raise CorpusFormatError(
            f"{name}:{row.line}: {message}", code=problem.code, path=name, line=row.line
        )
    found = sum(map(len, batches))
    if found != 1:
        raise malformed(source, row.line, f"there are {found} trees", "One was expected.")
    return batches[0]


def _score(row: _Row, source: Source) -> float | None:
    """Return the first column of a row, which is a score; so are the others."""
    numbers = [read_number(column.strip(), source, row.line) for column in row.columns]
    return numbers[0] if numbers else None
