"""What a file is, told from how it begins, so that none is read as something else.

Trees read as text, or a list of translations read as sentences, give numbers that mean nothing.
Whoever reads a file says what is wanted; what is evidently something else is refused with the name
of what it is and the command that reads it. In doubt a file is what is wanted.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from enum import StrEnum
from typing import NamedTuple

from treelm.errors import CorpusFormatError, InputFileError, TreelmError

#: Bytes at the start of a file that are looked at.
LOOKED_AT = 1 << 16
#: Lines that must agree before a file is taken for a table or a list.
_TELLING_LINES = 20
#: Trees without an error after which a file is one of trees, whatever else is in it.
_ENOUGH_TREES = 3


class Wanted(StrEnum):
    """What a reader expects."""

    TEXT = "tokenized text, one sentence per line"
    RAW_TEXT = "raw text"
    TREES = "bracketed trees"
    K_BEST = "k-best lists of trees"
    N_BEST = "an n-best list"
    TABLE = "a tab-separated table"
    CSV = "a comma-separated table (.csv)"
    SCORES = "scores, a table or one number per line"
    ARPA = "an ARPA language model"
    JSON = "JSON lines"


class FileKind(StrEnum):
    """What a file can be; the value is how messages call it."""

    GZIP = "gzip-compressed"
    XZ = "xz-compressed"
    BZIP2 = "bzip2-compressed"
    ZIP = "a zip archive (or a document of an office program)"
    ZSTD = "zstd-compressed"
    UTF16 = "encoded in UTF-16"
    UTF32 = "encoded in UTF-32"
    PDF = "a PDF document"
    PARQUET = "a parquet table"
    KENLM = "a binary language model of KenLM"
    FOREST = "a file of parses, as `treelm parse -o FILE.forest` writes it"
    ARPA = "an ARPA language model"
    VOCABULARY = "a treelm vocabulary"
    JSON = "JSON lines"
    TREES = "bracketed trees"
    BLLIP = "k-best lists of the BLLIP parser"
    K_BEST = "k-best lists of trees with scores"
    MOSES = "an n-best list of Moses"
    PHRASES = "a phrase table of Moses"
    TABLE = "a tab-separated table"
    CONLLU = "a treebank in the format CoNLL-U"
    COMMAS = "a comma-separated table"
    WORDS = "plain text"


_COMPRESSED = {
    FileKind.GZIP: (".gz", "gunzip -c"),
    FileKind.XZ: (".xz", "xz -dc"),
    FileKind.BZIP2: (".bz2", "bunzip2 -c"),
    FileKind.ZIP: (".zip", "unzip -p"),
    FileKind.ZSTD: (".zst", "zstd -dc"),
}
#: How a file of parses begins, whatever its version (`treelm.grammar.forest_format`).
FOREST_MAGIC = b"treelmF"
_MAGIC = (
    (b"\x1f\x8b", FileKind.GZIP),
    (b"\xfd7zXZ\x00", FileKind.XZ),
    (b"PK\x03\x04", FileKind.ZIP),
    (b"\x28\xb5\x2f\xfd", FileKind.ZSTD),
    (b"\xff\xfe\x00\x00", FileKind.UTF32),
    (b"\x00\x00\xfe\xff", FileKind.UTF32),
    (b"\xff\xfe", FileKind.UTF16),
    (b"\xfe\xff", FileKind.UTF16),
    (b"%PDF-", FileKind.PDF),
    (b"PAR1", FileKind.PARQUET),
    (b"mmap lm http://kheafield.com/code", FileKind.KENLM),
    (FOREST_MAGIC, FileKind.FOREST),
    (b"#treelm-vocabulary", FileKind.VOCABULARY),
)
_BZIP2 = re.compile(rb"BZh[1-9](?:1AY&SY|\x17rE8P\x90)")
_ARPA = re.compile(rb"(?:[^\n]*\n){0,5}?\s*\\data\\\s*\n\s*ngram\s+1\s*=")
_JSON_LINE = re.compile(r'\s*\{\s*"[^"]+"\s*:.*\}\s*')
_NUMBER = r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?|-?inf"
_BLLIP_HEAD = re.compile(r"\s*\d+\s+\S+\s*")
_SCORED_TREE = re.compile(rf"(?:(?:{_NUMBER})\t)+\(.*\)\s*")
_SCORE = re.compile(rf"\s*(?:{_NUMBER})\s*")
_COLUMNS = " ||| "
_CONLLU_COLUMNS = 10
_BRACKETS = re.compile(r"[()]|[^\s()]+")

#: What a reader takes, though it has a kind of its own.
_TAKEN = {
    Wanted.TREES: {FileKind.TREES},
    Wanted.K_BEST: {FileKind.TREES, FileKind.BLLIP, FileKind.K_BEST},
    Wanted.N_BEST: {FileKind.MOSES, FileKind.WORDS, FileKind.COMMAS, FileKind.TABLE},
    Wanted.JSON: {FileKind.JSON, FileKind.WORDS, FileKind.COMMAS},
    Wanted.TABLE: {FileKind.TABLE, FileKind.WORDS},
    Wanted.CSV: {FileKind.TABLE, FileKind.WORDS, FileKind.COMMAS},
    Wanted.SCORES: {FileKind.TABLE, FileKind.WORDS},
    # Prose has commas and tabs; only a reader of tables is sure that these separate columns.
    Wanted.TEXT: {FileKind.WORDS, FileKind.COMMAS},
    Wanted.RAW_TEXT: {FileKind.WORDS, FileKind.COMMAS, FileKind.TABLE, FileKind.JSON},
    # Anything may stand before the line that an ARPA file begins with.
    Wanted.ARPA: {FileKind.ARPA, FileKind.WORDS, FileKind.COMMAS, FileKind.TABLE},
}

_WORDS_OF_NBEST = "its sentences are the second column: awk -F ' [|][|][|] ' '{print $2}' FILE"
_ADVICE = {
    FileKind.UTF16: "Convert it first: iconv -f utf-16 -t utf-8 FILE",
    FileKind.UTF32: "Convert it first: iconv -f utf-32 -t utf-8 FILE",
    FileKind.PDF: "Extract its text first, for example with pdftotext.",
    FileKind.PARQUET: "Write it as a text file first.",
    FileKind.KENLM: (
        "Its format is private to KenLM: convert the ARPA file it was made from, with "
        "`treelm convert FILE.arpa MODEL`."
    ),
    FileKind.FOREST: "`treelm parse --from FILE` writes its trees as text.",
    FileKind.ARPA: "`treelm convert FILE MODEL` makes a model folder of it, for -m MODEL.",
    FileKind.VOCABULARY: "It is given with --vocabulary FILE.",
    FileKind.JSON: (
        "`treelm rerank --format jsonl` reads n-best lists in this form, and "
        "`treelm evaluate pairs --blimp FILE` pairs."
    ),
    FileKind.TREES: (
        "`treelm train` takes trees with --trees, `treelm score` too; `treelm inspect`, `draw`, "
        "`transform` and `evaluate parses` read them as they are."
    ),
    FileKind.BLLIP: "`treelm score --k-best FILE` and `treelm evaluate oracle` read them.",
    FileKind.K_BEST: "`treelm score --k-best FILE` and `treelm evaluate oracle` read them.",
    FileKind.MOSES: (
        f"`treelm rerank -m MODEL FILE` adds the scores of a model to it; {_WORDS_OF_NBEST}"
    ),
    FileKind.PHRASES: "It is given to `treelm decode` and `treelm tune` with --phrase-table FILE.",
    FileKind.TABLE: (
        "Tables of stimuli are given with `treelm surprisal --stimuli FILE`; tables of scores to "
        "`treelm evaluate` and `treelm compare` without a model."
    ),
    FileKind.CONLLU: "No command reads it; its text stands in its lines `# text = ...`.",
    FileKind.COMMAS: (
        "Save it with tabs between the columns; tables of stimuli, pairs and times may also be "
        "named .csv."
    ),
    FileKind.WORDS: "`treelm parse -m MODEL FILE` finds the trees of tokenized text.",
}
_ENCODED = {FileKind.UTF16, FileKind.UTF32}
_CODES = dict.fromkeys(_ENCODED, "E_ENCODING")


def kind_of(start: bytes) -> FileKind | None:
    r"""Return what a file that begins like this is; None for anything that cannot be told.

    Args:
        start: The first bytes, some thousands of them.

    Examples:
        >>> kind_of(b"(S (NP (PRP I)) (VP (VBP sleep)))\n").name
        'TREES'
        >>> kind_of(b"( He slept ( again ) . )\n") is None
        True
    """
    found = next((kind for magic, kind in _MAGIC if start.startswith(magic)), None)
    if found is not None:
        return found
    if _BZIP2.match(start):
        return FileKind.BZIP2
    wide = _wide_characters(start)
    if wide is not None:
        return wide
    if _ARPA.match(start):
        return FileKind.ARPA
    text = start.removeprefix(b"\xef\xbb\xbf").decode("utf-8", "replace")
    is_whole = len(start) < LOOKED_AT
    lines = _telling_lines(text, is_whole=is_whole)
    return _kind_of_lines(lines, text, is_whole=is_whole) if lines else None


def check_kind(start: bytes, wanted: Wanted, name: str) -> None:
    """Refuse a file that is evidently not what is wanted.

    Args:
        start: Its first bytes.
        wanted: What it should be.
        name: What messages call it.

    Raises:
        CorpusFormatError: ``E_WRONG_KIND``, or ``E_ENCODING`` for an encoding that is not UTF-8.
        InputFileError: ``E_COMPRESSION`` for what is compressed without the suffix that says so.
    """
    kind = kind_of(start[:LOOKED_AT])
    if wanted in (Wanted.TABLE, Wanted.SCORES) and kind in (None, FileKind.WORDS):
        # The rows of a table may have commas inside quotes; its header tells what separates them.
        first = start.split(b"\n", 1)[0]
        kind = FileKind.COMMAS if b"," in first and b"\t" not in first else kind
    if kind is not None and kind not in _TAKEN[wanted]:
        raise _wrong_kind(kind, wanted, name)


def checked_blocks(blocks: Iterator[bytes], wanted: Wanted, name: str) -> Iterator[bytes]:
    """Yield blocks of a file, the first one looked at by `check_kind`."""
    first = next(blocks, None)
    if first is None:
        return
    check_kind(first, wanted, name)
    yield first
    yield from blocks


def _wrong_kind(kind: FileKind, wanted: Wanted, name: str) -> TreelmError:
    if kind in _COMPRESSED:
        suffix, program = _COMPRESSED[kind]
        how = f"Unpack it: {program} FILE"
        if kind in (FileKind.GZIP, FileKind.XZ, FileKind.BZIP2):
            how = f"Give the file a name that ends in {suffix}, or unpack it: {program} FILE"
        return InputFileError(f"{name}: this is {kind}. {how}", code="E_COMPRESSION")
    what = f"is {kind}" if kind in _ENCODED else f"looks like {kind}, not {wanted}"
    return CorpusFormatError(
        f"{name}: this {what}. {_ADVICE[kind]}",
        code=_CODES.get(kind, "E_WRONG_KIND"),
        path=name,
    )


def _wide_characters(start: bytes) -> FileKind | None:
    """Return the encoding of text whose characters have two or four bytes, without a mark."""
    part = start[: len(start[:4096]) // 4 * 4]
    if len(part) < 8 or b"\x00" not in part:
        return None
    quarter = len(part) // 4
    zeros = [quarter - len(part[place::4].replace(b"\x00", b"")) for place in range(4)]
    filled = [share < 0.05 * quarter for share in zeros]
    # No character has more than 21 bits, and hardly one of a text more than 16.
    for low, high, highest in ((0, 2, 3), (3, 1, 0)):
        if filled[low] and zeros[high] > 0.9 * quarter and zeros[highest] == quarter:
            return FileKind.UTF32
    empty = [share > 0.6 * quarter for share in zeros]
    for own, other in (((0, 2), (1, 3)), ((1, 3), (0, 2))):
        if all(filled[place] for place in own) and all(empty[place] for place in other):
            return FileKind.UTF16
    return None


def _telling_lines(text: str, *, is_whole: bool) -> list[str]:
    """Return the first lines that have something in them; none that may be cut off."""
    lines = text.split("\n")
    if not is_whole and len(lines) > 1:
        lines.pop()
    return [line.rstrip("\r") for line in lines if line.strip()][:_TELLING_LINES]


def _kind_of_lines(lines: Sequence[str], text: str, *, is_whole: bool) -> FileKind | None:
    """Return what lines of text are."""
    moses = [line.split(_COLUMNS) for line in lines]
    if all(len(columns) > 2 for columns in moses):
        is_list = all(columns[0].strip().isdecimal() for columns in moses)
        return FileKind.MOSES if is_list else FileKind.PHRASES
    if _is_bllip(lines):
        return FileKind.BLLIP
    if _SCORED_TREE.fullmatch(lines[0]):
        return FileKind.K_BEST
    if all(map(_JSON_LINE.fullmatch, lines)):
        return FileKind.JSON
    if "(" in text:
        if _has_trees(text, is_whole=is_whole):
            return FileKind.TREES
        begins = any(line.lstrip().startswith("(") for line in lines)
        is_short = len(lines) < _ENOUGH_TREES or _BLLIP_HEAD.fullmatch(lines[0])
        return None if begins or is_short else FileKind.WORDS
    return _kind_of_table(lines) or FileKind.WORDS


def _kind_of_table(lines: Sequence[str]) -> FileKind | None:
    """Return the kind of table that lines are: as many cells in each, and a column of numbers."""
    rows = [line.split("\t") for line in lines if not line.startswith("#")]
    if rows and all(len(row) == _CONLLU_COLUMNS and row[0][:1].isdigit() for row in rows):
        return FileKind.CONLLU
    for separator, kind in (("\t", FileKind.TABLE), (",", FileKind.COMMAS)):
        columns = list(zip(*(line.split(separator) for line in lines), strict=False))
        is_table = len({line.count(separator) for line in lines}) == 1
        has_numbers = any(all(map(_SCORE.fullmatch, column[1:])) for column in columns)
        if is_table and len(lines) > 2 and len(columns) > 2 and has_numbers:
            return kind
    return None


def _is_bllip(lines: Sequence[str]) -> bool:
    head, score, tree = (*lines, "", "", "")[:3]
    return bool(
        _BLLIP_HEAD.fullmatch(head) and _SCORE.fullmatch(score) and _has_trees(tree, is_whole=True)
    )


class _Node(NamedTuple):
    """A bracket that is open: whether it has a label, a word, and brackets inside."""

    label: bool = False
    word: bool = False
    children: bool = False


def _has_trees(text: str, *, is_whole: bool) -> bool:
    """Return whether text begins with trees: labels after brackets, one word in the innermost.

    The first of them may not end in the part that is looked at.

    A sentence in parentheses has more than one word, or brackets among its words.
    """
    stack: list[_Node] = []
    trees = 0
    nested = False
    for token in _BRACKETS.findall(_without_comments(text)):
        if token == "(":
            if stack:
                top = stack[-1]
                if top.word or (len(stack) > 1 and not top.label):
                    return trees >= _ENOUGH_TREES
                stack[-1] = top._replace(children=True)
                nested = nested or top.label
            stack.append(_Node())
        elif token == ")":
            if not stack or not (stack[-1].word or stack[-1].children):
                return trees >= _ENOUGH_TREES
            stack.pop()
            trees += not stack and nested
        else:
            if not stack or stack[-1].word or stack[-1].children:
                return trees >= _ENOUGH_TREES
            label = stack[-1].label
            stack[-1] = _Node(label=True, word=label)
    return nested and (trees > 0 or not is_whole)


def _without_comments(text: str) -> str:
    """Return text without the comments of a treebank."""
    if "*x*" not in text:
        return text
    return "\n".join(line for line in text.split("\n") if not line.startswith("*x*"))
