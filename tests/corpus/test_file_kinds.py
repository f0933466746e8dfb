"""A file is known by how it begins, and never read as something else."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import random
import zipfile
from pathlib import Path

import pytest

from treelm.corpus.brackets import read_trees
from treelm.corpus.corpus import TextCorpus, TreeCorpus, TreeSentences
from treelm.corpus.file_kinds import LOOKED_AT, FileKind, Wanted, check_kind, kind_of
from treelm.corpus.files import Content, first_block, read_blocks
from treelm.corpus.k_best_lists import read_k_best_lists
from treelm.corpus.reading_times import read_times
from treelm.corpus.score_files import read_scores
from treelm.errors import CorpusFormatError, InputFileError, TreelmError
from treelm.tasks.surprisal.stimuli import read_stimuli

SENTENCES = "The ferry left .\nWe stayed at home .\n"
TREES = "(ROOT (S (NP (DT The) (NN ferry)) (VP (VBD left))))\n( (S (NP (PRP We)) (VP (VBD sat))))\n"
MOSES = "0 ||| a boat ||| LM0= -3.5 WordPenalty0= -2 ||| -1.25\n0 ||| the boat ||| LM0= -4 ||| -2\n"
BLLIP = f"2 s1\n-1.5\n{TREES.splitlines()[0]}\n-2.5\n{TREES.splitlines()[0]}\n"
BLOCKS = f"-1.5\t{TREES.splitlines()[0]}\n-2.5\t{TREES.splitlines()[0]}\n\n"
ARPA = "\n\\data\\\nngram 1=3\nngram 2=1\n\n\\1-grams:\n-1\tthe\t-0.3\n"
TABLE = "item\tzone\tword\tmean_rt\n1\t1\tIf\t369.0\n1\t2\tyou\t368.1\n"
CONLLU = "# sent_id = 1\n1\tIt\tit\tPRON\tPRP\t_\t2\tnsubj\t_\t_\n2\trained\train\tVERB\t" + (
    "VBD\t_\t0\troot\t_\t_\n"
)


def zipped(text: bytes) -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        archive.writestr("text.txt", text)
    return made.getvalue()


KINDS: dict[FileKind, bytes] = {
    FileKind.GZIP: gzip.compress(SENTENCES.encode()),
    FileKind.XZ: lzma.compress(SENTENCES.encode()),
    FileKind.BZIP2: bz2.compress(SENTENCES.encode()),
    FileKind.ZIP: zipped(SENTENCES.encode()),
    FileKind.ZSTD: b"\x28\xb5\x2f\xfd\x24\x05",
    FileKind.UTF16: SENTENCES.encode("utf-16"),
    FileKind.UTF32: SENTENCES.encode("utf-32"),
    FileKind.PDF: b"%PDF-1.7\n",
    FileKind.PARQUET: b"PAR1\x15\x04",
    FileKind.KENLM: b"mmap lm http://kheafield.com/code format version 5\n\x00\x00",
    FileKind.FOREST: b"treelmF\x01\x00\x00",
    FileKind.ARPA: ARPA.encode(),
    FileKind.VOCABULARY: b'#treelm-vocabulary 1 {"fingerprint": "00"}\n<unk>\t0\tword\t-\n',
    FileKind.JSON: b'{"sentence_good": "It left.", "sentence_bad": "It leave."}\n',
    FileKind.TREES: TREES.encode(),
    FileKind.BLLIP: BLLIP.encode(),
    FileKind.K_BEST: BLOCKS.encode(),
    FileKind.MOSES: MOSES.encode(),
    FileKind.PHRASES: b"ein ||| a ||| 0.5 0.5\nHund ||| dog ||| 1 1\n",
    FileKind.TABLE: TABLE.encode(),
    FileKind.CONLLU: CONLLU.encode(),
    FileKind.COMMAS: TABLE.replace("\t", ",").encode(),
    FileKind.WORDS: SENTENCES.encode(),
}

#: Text that looks like something else at a first glance.
PLAIN = [
    "( He left . )\nThe boat , too .\n",
    "(He left (yesterday).)\n",
    "(Laughter)\n(Applause)\n",
    "(Laughs loudly)\n",
    "-LRB- He left . -RRB-\n",
    "The price was 1,200\nThe weight was 1,300\nThe rest was 1,400\n",
    "a\tb\tc\nd\te\tf\ng\th\ti\n",
    "12 boats\n-3\n( and so on )\n",
    "he said ||| nothing\n",
    "{ curly } words\n",
    "\\data\\ is a word\n",
    "x\n",
    "\n\n",
    "BZh was here\n",
    "PK wins\n",
]


@pytest.mark.parametrize("kind", FileKind, ids=lambda kind: kind.name)
def test_kind_is_told_from_the_start(kind: FileKind) -> None:
    assert kind_of(KINDS[kind]) is kind


@pytest.mark.parametrize("code", ["utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be"])
def test_wide_characters_are_known_without_a_mark(code: str) -> None:
    expected = FileKind.UTF16 if "16" in code else FileKind.UTF32
    assert kind_of(SENTENCES.encode(code)) is expected
    assert kind_of("naïve Füße — “so”\n".encode(code) * 3) is expected


@pytest.mark.parametrize("text", PLAIN)
def test_plain_text_is_text(text: str) -> None:
    check_kind(text.encode(), Wanted.TEXT, "text")
    check_kind(b"\xef\xbb\xbf" + text.encode(), Wanted.TEXT, "text")
    assert (
        b"".join(read_blocks(Content("text", text.encode()), wanted=Wanted.TEXT)).decode() == text
    )


@pytest.mark.parametrize("kind", FileKind, ids=lambda kind: kind.name)
def test_text_is_nothing_else(kind: FileKind) -> None:
    if kind in (FileKind.WORDS, FileKind.COMMAS):
        assert list(TextCorpus((Content("text", KINDS[kind]),)))
        return
    with pytest.raises(TreelmError, match=r"this (is|looks like)") as found:
        list(TextCorpus((Content("text", KINDS[kind]),)))
    assert found.value.exit_code == 3
    assert found.value.code in ("E_WRONG_KIND", "E_ENCODING", "E_COMPRESSION")


@pytest.mark.parametrize(
    ("kind", "advice"),
    [
        (FileKind.WORDS, "treelm parse -m MODEL"),
        (FileKind.MOSES, "treelm rerank"),
        (FileKind.BLLIP, "--k-best"),
        (FileKind.K_BEST, "--k-best"),
        (FileKind.FOREST, "Decompress it if it is compressed"),
        (FileKind.ARPA, "treelm convert"),
        (FileKind.KENLM, "treelm convert"),
        (FileKind.GZIP, r"ends in \.gz"),
        (FileKind.UTF16, "iconv -f utf-16"),
    ],
    ids=lambda value: getattr(value, "name", ""),
)
def test_trees_are_nothing_else(kind: FileKind, advice: str) -> None:
    source = Content("trees", KINDS[kind])
    with pytest.raises((CorpusFormatError, InputFileError), match=advice):
        list(read_trees(source))
    with pytest.raises((CorpusFormatError, InputFileError), match=advice):
        TreeCorpus((source,), on_error="skip").read_through()


@pytest.mark.parametrize("kind", [FileKind.MOSES, FileKind.WORDS, FileKind.ARPA])
def test_k_best_lists_are_nothing_else(kind: FileKind) -> None:
    with pytest.raises(CorpusFormatError, match="not k-best lists of trees") as found:
        list(read_k_best_lists(Content("lists", KINDS[kind])))
    assert found.value.code == "E_WRONG_KIND"


@pytest.mark.parametrize("kind", [FileKind.BLLIP, FileKind.K_BEST, FileKind.TREES])
def test_k_best_lists_are_still_read(kind: FileKind) -> None:
    assert list(read_k_best_lists(Content("lists", KINDS[kind])))


def test_commas_are_no_tabs() -> None:
    commas = Content("times", KINDS[FileKind.COMMAS])
    quoted = Content("times", b'item,zone,word\n1,1,"a, b"\n')
    for source in (commas, quoted):
        with pytest.raises(CorpusFormatError, match="comma-separated"):
            read_times(source)
        with pytest.raises(CorpusFormatError, match=r"\.csv"):
            read_stimuli(source)
    with pytest.raises(CorpusFormatError, match="comma-separated"):
        read_scores(Content("scores", b"id,len,logp_model\n1,4,-3.5\n"))
    assert read_times(Content("times", TABLE.encode()))


def test_model_folder_is_named_as_one(tmp_path: Path) -> None:
    (tmp_path / "manifest.json").write_text("{}")
    with pytest.raises(InputFileError, match="model folder; it is given with -m"):
        list(TextCorpus((tmp_path,)))


def test_long_first_tree_is_known() -> None:
    deep = "(S " * 30 + "(NN " + "x" * (2 * LOOKED_AT)
    assert kind_of(deep.encode()[:LOOKED_AT]) is FileKind.TREES


def test_text_with_parentheses_is_not_trees() -> None:
    text = "The ferry ( an old one ) left .\n" * 3
    with pytest.raises(CorpusFormatError, match="plain text, not bracketed trees"):
        list(read_trees(Content("trees", text.encode())))
    assert len(list(TextCorpus((Content("text", text.encode()),)))) == 3


def test_trees_with_one_error_later_are_still_trees() -> None:
    assert kind_of((TREES * 3 + "(S (NP the (NN boat)))\n").encode()) is FileKind.TREES


def test_no_false_alarm_in_real_text(shared_data: Path) -> None:
    """Wherever one begins to read, text is text and trees are trees."""
    places = random.Random(1)
    texts = sorted((shared_data / "text").glob("*.xz")) + sorted(
        (shared_data / "text-open").glob("*.txt*")
    )
    assert texts
    for file in texts:
        start = next(read_blocks(file, block_bytes=1 << 21))
        lines = start.splitlines(keepends=True)
        for _ in range(40):
            first = places.randrange(max(1, len(lines) - 50))
            for size in (1, 3, 50):
                part = b"".join(lines[first : first + size])
                check_kind(part, Wanted.TEXT, str(file))
    for file in sorted((shared_data / "treebanks").glob("*/dev.mrg")):
        assert kind_of(first_block(file)) is FileKind.TREES
        corpus = TreeCorpus((file,), on_error="skip")
        words = [" ".join(words) + "\n" for words in TreeSentences(corpus)]
        raw = [line.replace("-LRB-", "(").replace("-RRB-", ")") for line in words]
        for line in (*words, *raw):
            check_kind(line.encode(), Wanted.TEXT, str(file))
