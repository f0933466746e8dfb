"""Commands say what a file is that they cannot read, and which command reads it."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.command_line import treelm_inside
from tests.corpus.test_file_kinds import BLLIP, MOSES, SENTENCES, TREES

import treelm
from treelm.corpus.sample_treebank import sample_path

Capture = pytest.CaptureFixture[bytes]

#: A command that reads text, with TEXT in the place of the file.
READ_TEXT = [
    "train ngram --order 2 --text FILE -o made",
    "train trigram-svm --good FILE --bad FILE -o made",
    "vocabulary --text FILE -o made",
    "counts build --text FILE -o made",
    "score -m MODEL FILE",
    "score -m MODEL FILE --format tsv",
    "surprisal -m MODEL FILE",
    "parse -m GRAMMAR FILE",
    "parse -m GRAMMAR FILE -o made.forest",
    "evaluate perplexity -m MODEL FILE",
    "evaluate pairs -m MODEL FILE FILE",
    "evaluate classification -m MODEL --good FILE --bad FILE --tune-good FILE --tune-bad FILE",
    "compare MODEL MODEL FILE",
    "tokenize FILE",
    "judge export FILE FILE -o made.csv --seed 1",
]
READ_TREES = [
    "train pcfg --trees FILE -o made",
    "train ngram --trees FILE -o made",
    "vocabulary --trees FILE -o made",
    "score -m GRAMMAR --trees FILE",
    "transform FILE",
    "draw FILE",
    "evaluate parses FILE FILE",
    "corrupt noisy --trees FILE --seed 1",
]
READ_ARPA = ["convert FILE made"]
READ_LISTS = ["score -m GRAMMAR --k-best FILE", "evaluate oracle TREES FILE"]


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with an n-gram model, a grammar and gold trees."""
    folder = tmp_path_factory.mktemp("models")
    (folder / "trees.mrg").write_text(TREES)
    trees = treelm.TreeCorpus((sample_path(),))
    treelm.train("ngram", trees, order=2).save(folder / "ngram")
    treelm.train("pcfg", trees).save(folder / "pcfg")
    return folder


def refused(line: str, models: Path, file: Path, capture: Capture) -> str:
    """Run a command, check that nothing but an error comes of it, and return the message."""
    names = {
        "MODEL": models / "ngram",
        "GRAMMAR": models / "pcfg",
        "TREES": models / "trees.mrg",
        "FILE": file,
        "made": file.parent / "made",
        "made.csv": file.parent / "made.csv",
        "made.forest": file.parent / "made.forest",
    }
    done = treelm_inside(capture, *(str(names.get(word, word)) for word in line.split()))
    assert done.returncode == 3
    assert done.stdout == b""
    # An unfinished file of parses stays, for the next attempt.
    assert {made.suffix for made in file.parent.glob("made*")} <= {".forest"}
    message: str = done.stderr.decode()
    assert str(file) in message
    return message


#: What a file is, beside the commands that read something else, and what they say.
WRONG = [
    pytest.param((line, content, what), id=f"{name}-{line}")
    for lines, name, content, what in (
        (READ_TEXT, "trees", TREES.encode(), "looks like bracketed trees"),
        (READ_TEXT, "moses", MOSES.encode(), "an n-best list of Moses"),
        (READ_TEXT, "utf-16", SENTENCES.encode("utf-16"), "iconv -f utf-16"),
        (READ_TEXT, "utf-32", SENTENCES.encode("utf-32-le"), "iconv -f utf-32"),
        (READ_TREES, "text", SENTENCES.encode(), "looks like plain text, not bracketed trees"),
        (READ_TREES, "bllip", BLLIP.encode(), "k-best lists of the BLLIP parser"),
        (READ_TREES, "utf-16", TREES.encode("utf-16"), "iconv -f utf-16"),
        (READ_ARPA, "trees", TREES.encode(), "looks like bracketed trees, not an ARPA"),
        (READ_ARPA, "moses", MOSES.encode(), "an n-best list of Moses"),
        (READ_ARPA, "utf-16", SENTENCES.encode("utf-16"), "iconv -f utf-16"),
        (READ_LISTS, "moses", MOSES.encode(), "an n-best list of Moses"),
    )
    for line in lines
]


@pytest.mark.parametrize("case", WRONG)
def test_commands_name_what_they_cannot_read(
    case: tuple[str, bytes, str], models: Path, tmp_path: Path, capfdbinary: Capture
) -> None:
    line, content, what = case
    file = tmp_path / "file"
    file.write_bytes(content)
    assert what in refused(line, models, file, capfdbinary)


def test_model_folder_is_no_text(models: Path, capfdbinary: Capture) -> None:
    folder = str(models / "ngram")
    done = treelm_inside(capfdbinary, "score", "-m", folder, folder)
    assert done.returncode == 3
    assert b"this is a model folder" in done.stderr
    assert b"treelm train ngram --counts" in done.stderr
