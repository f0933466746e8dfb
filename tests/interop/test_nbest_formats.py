"""N-best lists of Joshua, Kaldi and JSON lines: read, reranked, written, tuned on."""

from __future__ import annotations

import json
import warnings
from pathlib import Path

import numpy as np
import pytest
from tests.command_line import assert_fine, assert_refused, treelm_inside

import treelm
from treelm.corpus.nbest import ScoreFile
from treelm.errors import CorpusFormatError, TreelmWarning, UsageError
from treelm.interop.nbest_formats import (
    NBestFormat,
    in_order_of,
    list_text,
    read_lists,
    read_utterances,
)
from treelm.translation.weights import Weights

Capture = pytest.CaptureFixture[bytes]

LISTS: dict[NBestFormat, str] = {
    "moses": "0 ||| a b ||| lm= -3.5 tm= -1 ||| -4.5\n0 ||| b a ||| lm= -4 tm= 0 ||| -5 ||| x\n",
    "joshua": "0 ||| a b ||| lm=-3.5 tm=-1 ||| -4.5\n0 ||| b a ||| lm=-4 ||| -5 ||| x\n",
    "kaldi": "u-x-1 a b\nu-x-2 b a\nv-1\n",
    "jsonl": '{"id": "u", "text": "a b", "score": -4.5, "features": {"lm": -3.5, "tm": -1}, '
    '"start": 0.1}\n{"id": "u", "text": "b a"}\n',
}


def write(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize("form", LISTS)
def test_nbest_formats_are_written_as_they_were_read(form: NBestFormat, tmp_path: Path) -> None:
    path = write(tmp_path / "lists", LISTS[form])
    found = list(read_lists(path, form))
    assert list(found[0].texts) == ["a b", "b a"]
    text = "".join(list_text(each, form) for each in found)
    if form == "jsonl":
        ours, theirs = ([json.loads(line) for line in t.splitlines()] for t in (text, LISTS[form]))
        assert ours == theirs
    else:
        assert text == LISTS[form]


def test_nbest_formats_features_that_joshua_leaves_out_are_zero(tmp_path: Path) -> None:
    (best,) = read_lists(write(tmp_path / "lists", LISTS["joshua"]), "joshua")
    table = best.feature_table()
    assert table.layout == (("lm", 1), ("tm", 1))
    assert table.values.tolist() == [[-3.5, -1.0], [-4.0, 0.0]]
    wider = table.widened((("own", 2), ("tm", 1), ("lm", 1)))
    assert wider.values.tolist() == [[0, 0, -1, -3.5], [0, 0, 0, -4]]


def test_nbest_formats_kaldi_scores_and_costs_are_features(tmp_path: Path) -> None:
    text = write(tmp_path / "text", LISTS["kaldi"])
    ac = write(tmp_path / "ac", "u-x-1 12.5\nu-x-2 11\nv-1 3\n")
    lm = write(tmp_path / "lm", "u-x-1 -3\nu-x-2 -4\nv-1 -1\n")
    files = [ScoreFile("ac", ac, is_cost=True), ScoreFile("lm", lm)]
    first, second = read_lists(text, "kaldi", files)
    assert (first.id, second.id, second.texts, second.lines) == ("u-x", "v", [""], range(3, 4))
    assert first.feature_table().values.tolist() == [[-12.5, -3.0], [-11.0, -4.0]]
    with pytest.raises(UsageError, match="kaldi"):
        read_lists(text, "moses", files)


@pytest.mark.parametrize(
    ("form", "text", "told"),
    [
        ("joshua", "0 ||| a ||| lm= -3 ||| 1\n", '1: "lm" is not a feature'),
        ("joshua", "0 ||| a ||| lm=x ||| 1\n", '1: "x" is not a score'),
        ("jsonl", '{"id": "u"}\n', '1: there is no "id" or no "text"'),
        ("jsonl", '{"id": "u", "text": "a"}\n\n', "2: the line is empty"),
        ("jsonl", '{"id": "u", "text": 3}\n', "1: "),
        ("jsonl", '{"id": "u", "text": "a", "features": {"lm": "x"}}\n', '1: "lm" has no number'),
        ("jsonl", '{"id": "u", "text": "a", "features": [1]}\n', '1: "features" has no number'),
        ("jsonl", '{"id": "u", "text": "a", "features": {"l m": 1}}\n', "cannot be a name"),
        ("jsonl", "0 ||| a ||| lm= 3 ||| 1\n", "n-best list of Moses"),
        ("jsonl", '{"id": "u", "text": "a",\n', "1: "),
        ("kaldi", "noranked a\n", "1: "),
    ],
)
def test_nbest_formats_refuse_malformed_lines(
    form: NBestFormat, text: str, told: str, tmp_path: Path
) -> None:
    path = write(tmp_path / "lists", text)
    with pytest.raises(CorpusFormatError) as caught:
        for each in read_lists(path, form):
            each.feature_table()
    assert told in str(caught.value)


def test_nbest_formats_utterances_are_put_in_the_order_of_references(tmp_path: Path) -> None:
    path = write(tmp_path / "text", "v-1 c\nu-x-1 a b\n")
    references = read_utterances(write(tmp_path / "ref", "u-x a b\nw\nv c d\n"))
    assert references == {"u-x": "a b", "w": "", "v": "c d"}
    found = in_order_of(read_lists(path, "kaldi"), list(references), "ref")
    assert [(each.id, each.texts) for each in found] == [("0", ["a b"]), ("2", ["c"])]
    with pytest.raises(CorpusFormatError, match="has no reference"):
        in_order_of(read_lists(path, "kaldi"), ["v"], "ref")
    twice = write(tmp_path / "twice", "v-1 c\nu-1 a\nv-2 c\n")
    with pytest.raises(CorpusFormatError, match="has a list already"):
        in_order_of(read_lists(twice, "kaldi"), ["v", "u"], "ref")
    with pytest.raises(CorpusFormatError, match="there twice"):
        read_utterances(write(tmp_path / "ref", "u a\nu b\n"))


# -- commands ---------------------------------------------------------------------------------

SAID = ["the boat left early", "a man saw the ferry", "she came back late"]
HEARD = [
    ["the boat left early", "the boat lest early", "a boat left surly"],
    ["a man saw the fairy", "a man sought a ferry", "a man saw the ferry"],
    ["she came back plate", "she came back late", "sea came back late"],
]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> treelm.LanguageModel:
    text = [sentence.split() for sentence in SAID for _ in range(3)]
    text += [["the", "fairy", "left"], ["a", "plate"], ["sea", "and", "boat"]]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TreelmWarning)
        return treelm.train("ngram", text, order=3, smoothing="kn")


@pytest.fixture
def speech(model: treelm.LanguageModel, tmp_path: Path) -> Path:
    """A folder with a model, lists of Kaldi with acoustic costs, and references."""
    model.save(tmp_path / "model")
    lists, costs = [], []
    for name, texts in zip("zya", HEARD, strict=True):
        for rank, text in enumerate(texts, 1):
            lists.append(f"utt-{name}-{rank} {text}\n")
            costs.append(f"utt-{name}-{rank} {100 + rank / 4}\n")
    write(tmp_path / "text", "".join(lists))
    write(tmp_path / "ac", "".join(costs))
    named = [f"utt-{name} {said}\n" for name, said in zip("zya", SAID, strict=True)]
    write(tmp_path / "ref", "".join(reversed(named)))
    write(tmp_path / "w.json", json.dumps({"acoustic": [0.1], "SynLM0": [1.0]}))
    return tmp_path


def test_nbest_formats_rerank_writes_kaldi(
    speech: Path, model: treelm.LanguageModel, capfdbinary: Capture
) -> None:
    lists = ("--format", "kaldi", "--costs", f"acoustic={speech / 'ac'}")
    done = treelm_inside(
        capfdbinary,
        *("rerank", "-m", speech / "model", "--weights", speech / "w.json", *lists, "-q"),
        *("--best", speech / "best", speech / "text"),
    )
    assert_fine(done)
    rows = done.stdout.decode().splitlines()
    assert rows[3:6:2] == ["utt-y-3 a man saw the ferry", "utt-y-2 a man sought a ferry"]
    assert sorted(rows) == sorted((speech / "text").read_text().splitlines())
    best = [f"utt-{name} {said}" for name, said in zip("zya", SAID, strict=True)]
    assert (speech / "best").read_text().splitlines() == best
    done = treelm_inside(
        capfdbinary, "rerank", "-m", speech / "model", *lists, "--columns", "-q", speech / "text"
    )
    rows = [line.split() for line in done.stdout.decode().splitlines()]
    assert [name for name, _ in rows] == [
        line.split()[0] for line in (speech / "text").read_text().splitlines()
    ]
    expected = [model.score(text).log_prob for texts in HEARD for text in texts]
    assert [float(value) for _, value in rows] == pytest.approx(expected)


@pytest.mark.parametrize("form", ["joshua", "jsonl"])
def test_nbest_formats_rerank_gives_the_same_order_in_every_format(
    form: NBestFormat, speech: Path, capfdbinary: Capture
) -> None:
    rows = [
        (number, text, {"acoustic": -100 - rank / 4, **({"odd": 2.0} if rank == 2 else {})})
        for number, texts in enumerate(HEARD)
        for rank, text in enumerate(texts)
    ]
    if form == "joshua":
        made = "".join(
            f"{number} ||| {text} ||| {' '.join(f'{k}={v}' for k, v in has.items())} ||| 0\n"
            for number, text, has in rows
        )
    else:
        made = "".join(
            json.dumps({"id": str(number), "text": text, "features": has, "kept": [1]}) + "\n"
            for number, text, has in rows
        )
    Weights({"acoustic": [0.1], "odd": [-0.01], "SynLM0": [1.0]}).write(speech / "w.ini")
    assert "SynLM0= 1.0" in (speech / "w.ini").read_text()
    done = treelm_inside(
        capfdbinary,
        *("rerank", "-m", speech / "model", "--weights", speech / "w.ini", "--format", form, "-q"),
        *("--best", speech / "best", write(speech / "lists", made)),
    )
    assert_fine(done)
    assert (speech / "best").read_text().splitlines() == SAID
    first = done.stdout.decode().splitlines()[0]
    if form == "jsonl":
        record = json.loads(first)
        assert record["kept"] == [1]
        assert set(record["features"]) >= {"acoustic", "SynLM0"}
        assert record["score"] == pytest.approx(
            0.1 * record["features"]["acoustic"]
            + record["features"]["SynLM0"]
            - 0.01 * record["features"].get("odd", 0.0)
        )
    else:
        assert "SynLM0=-" in first


def test_nbest_formats_tuning_on_word_errors_finds_what_was_said(
    speech: Path, capfdbinary: Capture
) -> None:
    for method in ("mert", "mira"):
        done = treelm_inside(
            capfdbinary,
            *("tune", "-m", speech / "model", "--nbest", speech / "text", "--format", "kaldi"),
            *("--costs", f"acoustic={speech / 'ac'}", "--references", speech / "ref"),
            *("--metric", "wer", "--method", method, "-o", speech / "tuned.json", "--json"),
        )
        assert_fine(done)
        record = json.loads(done.stdout)
        assert record["wer"] == 0.0
        assert record["rounds"][0]["decoded_wer"] > 0
        weights = Weights.read(speech / "tuned.json")
        assert weights["SynLM0"][0] > 0


def test_nbest_formats_reranking_is_cross_validated_by_word_errors(
    speech: Path, capfdbinary: Capture
) -> None:
    done = treelm_inside(
        capfdbinary,
        *("evaluate", "reranking", speech / "text", "--format", "kaldi", "-m", speech / "model"),
        *("--references", speech / "ref", "--metric", "wer", "--folds", "3", "--seed", "1"),
        "--json",
    )
    assert_fine(done)
    record = json.loads(done.stdout)
    assert (record["metric"], record["oracle"]) == ("wer", 0.0)
    assert record["first"]["together"] == pytest.approx(100 * 2 / 13)
    assert record["difference"]["difference"] <= 0


def test_nbest_formats_options_that_do_not_fit_are_refused(
    speech: Path, capfdbinary: Capture
) -> None:
    lists = ("rerank", "-m", speech / "model", speech / "text", "--format", "kaldi")
    for words, code, told in (
        ((*lists, "--costs", "acoustic"), 2, "acoustic=FILE"),
        ((*lists[:-1], "moses"), 3, "1 columns"),
    ):
        assert_refused(treelm_inside(capfdbinary, *words), code, told)


def test_nbest_formats_sparse_lists_make_one_pool(tmp_path: Path) -> None:
    from treelm.translation.hypothesis_pool import pool_of_lists
    from treelm.translation.metrics import WER

    text = "0 ||| a b ||| lm=1 ||| 0\n1 ||| c ||| tm=2 ||| 0\n1 ||| d ||| lm=3 ||| 0\n"
    lists = read_lists(write(tmp_path / "lists", text), "joshua")
    pool = pool_of_lists(lists, [["a b", "d"]], WER)
    assert pool.layout == (("lm", 1), ("tm", 1))
    assert pool.features.tolist() == [[1, 0], [0, 2], [3, 0]]
    assert pool.statistics.tolist() == [[0, 2], [1, 1], [0, 1]]
    assert pool.value(np.array([0, 1])) == pytest.approx(-100 / 3)
