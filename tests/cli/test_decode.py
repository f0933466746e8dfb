"""`treelm decode`."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest
from tests.command_line import assert_fine, assert_refused, treelm

import treelm as package
from treelm.corpus.nbest import read_moses
from treelm.translation.weights import Weights

TABLE = """\
das ||| the ||| 0.8 ||| 0-0
das ||| that ||| 0.2 ||| 0-0
haus ||| house ||| 1.0 ||| 0-0
ist ||| is ||| 1.0 ||| 0-0
das haus ||| the house ||| 0.5 ||| 0-0 1-1
"""
WEIGHTS = """\
[weight]
TranslationModel0= 1
LM0= 0.5
Distortion0= 1
WordPenalty0= 0.1
PhrasePenalty0= 0
UnknownWordPenalty0= 1
"""


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """A folder with a table, weights and two models."""
    (tmp_path / "table.gz").write_bytes(gzip.compress(TABLE.encode()))
    (tmp_path / "weights.ini").write_text(WEIGHTS, encoding="utf-8")
    text = [["the", "house", "is", "old"], ["that", "house"], ["the", "house", "is", "here"]]
    package.train("ngram", text, order=2, smoothing="kn").save(tmp_path / "ngram")
    tree = package.Tree.from_string("(S (NP (DT the) (NN house)) (VP (VBZ is) (JJ old)))")
    package.train("hhmm", [tree], depth=2, beam_width=20).save(tmp_path / "hhmm")
    return tmp_path


def decode(files: Path, *options: str | Path, stdin: bytes = b"", weights: str = "weights.ini"):
    return treelm(
        "decode",
        "--phrase-table",
        files / "table.gz",
        "-m",
        files / "ngram",
        "--weights",
        files / weights,
        *options,
        stdin=stdin,
    )


SOURCE = b"das haus ist neu\n\nhaus das\n"


def test_decode_writes_one_translation_per_line(files: Path) -> None:
    lists = files / "out.nbest"
    done = decode(
        *(files, "--stack-size", "200", "--distortion-limit", "10"),
        *("--n-best", "100", lists, "--alignments", "--threads", "2"),
        stdin=SOURCE,
    )
    assert assert_fine(done).decode().splitlines() == ["the house is neu", "", "the house"]
    found = list(read_moses(lists))
    assert [each.id for each in found] == ["0", "2"]
    best = found[0].hypotheses[0]
    assert best.words == ("the", "house", "is", "neu")
    assert best.more == ("0-0 1-1 2-2 3-3",)
    weights = Weights.read(files / "weights.ini")
    for each in (*found[0].hypotheses, *found[1].hypotheses):
        values = {name: tuple(map(float, value)) for name, value in each.features.items()}
        assert weights.dot({name: values[name] for name in weights}) == pytest.approx(each.score)


def test_decode_output_is_the_same_with_any_number_of_threads(files: Path) -> None:
    source = b"".join([SOURCE.replace(b"neu", b"ist")] * 20)
    written = []
    for threads in ("1", "3"):
        lists = files / f"list{threads}"
        graph = files / f"graph{threads}"
        done = decode(
            *(files, "--n-best", "20", lists, "--search-graph", graph, "--threads", threads),
            stdin=source,
        )
        written.append((assert_fine(done), lists.read_bytes(), graph.read_bytes()))
    assert written[0] == written[1]
    assert written[0][2].startswith(b"0 hyp=0 stack=0\n")


def test_decode_takes_several_models(files: Path) -> None:
    more = WEIGHTS + "LM1= 0.3\n"
    (files / "two.ini").write_text(more, encoding="utf-8")
    for search in ("stack", "cube"):
        done = decode(
            *(files, "-m", files / "hhmm", "--beam-width", "5", "--search", search, "--json"),
            stdin=SOURCE,
            weights="two.ini",
        )
        rows = [json.loads(line) for line in assert_fine(done).decode().splitlines()]
        assert [row["translation"] for row in rows] == ["the house is neu", "", "the house"]
        assert rows[0]["features"]["LM1"][0] < 0
        assert rows[1]["score"] is None
        assert rows[0]["cut"] is None


def test_decode_uses_defaults_and_says_so(files: Path) -> None:
    done = treelm(
        *("decode", "--phrase-table", files / "table.gz", "-m", files / "ngram"), stdin=b"das\n"
    )
    assert done.returncode == 0
    assert b"defaults are used" in done.stderr
    assert b"LM0= 0.5" in done.stderr


def test_decode_says_how_many_sentences_were_cut(files: Path) -> None:
    done = decode(files, "--max-seconds", "1e-9", stdin=SOURCE)
    assert done.returncode == 0
    assert b"2 of 3 sentences ran out of time" in done.stderr
    assert len(done.stdout.splitlines()) == 3


def test_decode_says_what_is_wrong_with_its_files(files: Path) -> None:
    (files / "bad").write_text("das ||| the ||| 0.5\ndas ||| that\n", encoding="utf-8")
    done = treelm("decode", "--phrase-table", files / "bad", "-m", files / "ngram")
    assert_refused(done, 3, "bad:2: the line has 2 fields")
    (files / "more.ini").write_text(WEIGHTS + "LM1= 1\n", encoding="utf-8")
    assert_refused(decode(files, weights="more.ini"), 3, 'more.ini:8: feature "LM1"')
    assert_refused(decode(files, stdin=b"das ||| haus\n"), 3, "sentence 1")
    (files / "lm.arpa").write_text("\\data\\\nngram 1=1\n", encoding="utf-8")
    done = treelm("decode", "--phrase-table", files / "table.gz", "-m", files / "lm.arpa")
    assert_refused(done, 3, "treelm convert")


def test_decode_refuses_options_that_do_not_go_together(files: Path) -> None:
    assert_refused(decode(files, "--distinct"), 2, "--n-best")
    assert_refused(decode(files, "--n-best", "0", files / "list"), 2, "--n-best")
    assert_refused(decode(files, "--n-best", "3", "-"), 2, "--n-best")
    assert_refused(decode(files, "--n-best", "3", files / "nowhere" / "list"), 1, "nowhere")
    assert_refused(decode(files, "--beam-threshold", "1"), 2, "--beam-threshold")
    assert_refused(decode(files, "--stack-size", "0"), 2, "--stack-size")


def test_decode_output_is_the_same_with_many_workers(files: Path) -> None:
    source = b"".join([SOURCE] * 40)
    written = []
    for engine in ([], ["--engine", "processes", "--workers", "2"]):
        lists, graph = files / "list", files / "graph"
        done = decode(
            *(files, "--n-best", "20", lists, "--search-graph", graph, *engine), stdin=source
        )
        assert done.returncode == 0, done.stderr
        written.append((done.stdout, done.stderr, lists.read_bytes(), graph.read_bytes()))
    assert written[0] == written[1]


def test_decode_names_the_sentence_that_is_wrong_with_many_workers(files: Path) -> None:
    source = b"".join([SOURCE] * 20) + b"das ||| haus\n"
    alone = decode(files, stdin=source)
    assert_refused(alone, 3, "|||")
    found = decode(files, "--engine", "processes", "--workers", "2", stdin=source)
    assert (found.returncode, found.stderr) == (alone.returncode, alone.stderr)
    refused = decode(files, "--engine", "processes", "--line-buffered")
    assert_refused(refused, 2, "--engine cannot be combined with --line-buffered")


def test_decode_reads_a_table_that_was_converted(files: Path) -> None:
    table, lists = files / "table.safetensors", files / "out.nbest"
    done = treelm("convert", files / "table.gz", table)
    assert done.stderr.decode() == f"treelm: {table}: 5 phrase pairs.\n"
    assert not done.stdout
    expected = decode(files, "--n-best", "9", lists, "--alignments", stdin=SOURCE)
    listed = lists.read_bytes()
    (files / "table.gz").unlink()
    table.rename(files / "table.gz")  # known by its content
    found = decode(files, "--n-best", "9", lists, "--alignments", stdin=SOURCE)
    assert assert_fine(found) == assert_fine(expected)
    assert lists.read_bytes() == listed


def test_decode_says_what_is_wrong_with_a_converted_table(files: Path) -> None:
    treelm("convert", files / "table.gz", files / "table.safetensors")
    data = (files / "table.safetensors").read_bytes()
    (files / "table.gz").write_bytes(data[:-1])
    assert_refused(decode(files, stdin=SOURCE), 3, "table.gz", "the tables end at byte")


def test_convert_of_a_phrase_table_takes_its_own_options_only(files: Path) -> None:
    table = files / "table.safetensors"
    refused = treelm("convert", files / "table.gz", table, "--bits", "8")
    assert_refused(refused, 2, "name of a phrase table")
    refused = treelm("convert", files / "ngram", files / "lm.arpa", "--allow-deletion")
    assert_refused(refused, 2, "about phrase tables")
    refused = treelm("convert", files / "weights.ini", table)
    assert_refused(refused, 3, "weights.ini:1", "at least 3 are needed")
    assert not table.exists()


def many_words(files: Path, words: list[str]) -> bytes:
    """Write a table whose targets are these words, and return a source text of all of them."""
    lines = [f"{word}-de ||| {word} ||| 0.5\n" for word in words]
    (files / "table.gz").write_bytes(gzip.compress("".join(lines).encode()))
    return "".join(f"{word}-de\n" for word in words).encode()


def test_decode_warns_of_a_model_that_does_not_know_the_words_of_the_table(files: Path) -> None:
    words = [f"w{i}" for i in range(100)]
    source = many_words(files, words)
    done = decode(files, stdin=source)
    assert done.returncode == 0
    message = done.stderr.decode()
    assert "LM0 (ngram) does not know 100.0% of the words in the target phrases" in message
    assert 'such as "w0", "w1", "w10". Was the text' in message
    package.train("ngram", [words, words[:50], words[50:80]], order=2, smoothing="berkeley").save(
        files / "ngram"
    )
    assert_fine(decode(files, stdin=source))


def test_decode_warns_of_a_source_that_the_table_does_not_know(files: Path) -> None:
    words = [f"w{i}" for i in range(200)]
    source = many_words(files, words)
    package.train("ngram", [words, words[:50], words[50:80]], order=2, smoothing="berkeley").save(
        files / "ngram"
    )
    assert_fine(decode(files, stdin=source + b"Haus " * 10))
    done = decode(files, stdin=source + b"Haus " * 100)
    assert "warning: 100 of 300 words are copied from the source" in done.stderr.decode()


def tokenized(files: Path, name: str, *sentences: str) -> Path:
    """Write a small model of sentences."""
    model = package.train(
        "ngram", [each.split() for each in sentences], order=1, smoothing="berkeley"
    )
    model.save(files / name)
    return files / name


def test_decode_and_tune_warn_of_models_whose_text_was_tokenized_differently(files: Path) -> None:
    penn = tokenized(files, "penn", "it does n't -LRB- the house -RRB-", "it 's the house")
    plain = tokenized(files, "plain", "it doesn't ( the house )", 'it\'s " the house "')
    again = tokenized(files, "again", "the house is n't that", "that -LRB- it -RRB- does n't")
    both = tokenized(files, "both", "it doesn't", "it does n't")
    done = decode(files, "-m", penn, "-m", both, "-m", again, stdin=SOURCE)
    assert "tokenized" not in done.stderr.decode()
    done = decode(files, "-m", penn, "-m", plain, stdin=SOURCE)
    assert done.returncode == 0
    message = done.stderr.decode()
    assert "LM1 (ngram) and LM2 (ngram) are of text that was tokenized in different ways" in message
    assert "contractions are n't in the one, doesn't in the other." in message
    assert "brackets are -LRB- in the one, ( in the other." in message
    assert "quotation marks" not in message  # the first has none
    (files / "source").write_bytes(SOURCE)
    (files / "target").write_text("the house\n" * SOURCE.count(b"\n"), encoding="utf-8")
    tuned = treelm(
        *("tune", "--phrase-table", files / "table.gz", "-m", plain, "-m", penn, "--rounds", "1"),
        *("--source", files / "source", "--references", files / "target", "--seed", "1"),
        *("--restarts", "0", "-o", files / "tuned.json"),
    )
    assert "LM0 (ngram) and LM1 (ngram) are of text that was tokenized" in tuned.stderr.decode()
