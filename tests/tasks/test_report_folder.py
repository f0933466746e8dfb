"""The report of an experiment: what it holds, and that it is complete or not there."""

from __future__ import annotations

import hashlib
import json
import math
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

from treelm.corpus.corpus import Fingerprint, TextCorpus
from treelm.corpus.encoder import encode_sentences
from treelm.corpus.score_files import ScoreTable, read_scores
from treelm.corpus.vocabulary import Vocabulary
from treelm.errors import CorpusFormatError, OutputFileError, TreelmError, UsageError
from treelm.tasks.judge.key import Key, KeyItem
from treelm.tasks.judge.preference import measure_preference
from treelm.tasks.judge.sheet import Rating
from treelm.tasks.report.report import Report
from treelm.tasks.report.results import Published, Result
from treelm.view.plots import Bar, draw_bar_chart

HOSTILE = '</title><script>alert("1")</script> | `x` & \x00\x1b[31m \u202e\ud800 \'"\n# h'


def scores(*values: float) -> ScoreTable:
    count = len(values)
    return ScoreTable(
        tuple(str(place) for place in range(1, count + 1)),
        np.array(values),
        np.arange(1, count + 1),
        unigram=np.full(count, -3.0),
        n_trees=np.zeros(count, dtype=np.int64),
        fallback=np.ones(count, dtype=np.bool_),
    )


ROW: dict[str, object] = {"table": "Perplexity", "model": "TREELET", "metric": "perplexity"}


def result(**changes: object) -> Result:
    own = {"data": "GUM news", "value": 255.3, "n": 1200}
    return Result(**ROW | own | changes)  # type: ignore[arg-type]


def published(**changes: object) -> Published:
    own = {"data": "WSJ 0", "value": 198.0, "source": "Somebody (2012)"}
    return Published(**ROW | own | changes)  # type: ignore[arg-type]


def full_report(folder: Path, text: str = "plain") -> Report:
    """Return a report in which every text is `text`."""
    report = Report(folder, text, seeds={text: 1}, options={text: text, "k": math.inf}, recipe="E")
    report.add_input(text, Fingerprint("ab" * 32, 3, 9), role="test", stands_for=text)
    report.add_model(text, system=text)
    report.add_scores(text, scores(-1.5, -math.inf))
    report.add_result(result(table=text, model=text, metric=text, data=text, interval=(250, 260)))
    report.add_published(published(table=text, model=text, metric=text, data=text, source=text))
    report.add_table(text, (text, "sentence"), [(text, text)])
    report.add_figure(draw_bar_chart([Bar(text, 1.0)], title=text), text)
    report.warn(text)
    return report


class Page(HTMLParser):
    """Collects what a browser would see."""

    def __init__(self, content: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.open: list[str] = []
        self.links: list[str] = []
        self.texts: list[str] = []
        self.feed(content)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        if tag not in ("meta", "rect", "line"):
            self.open.append(tag)
        self.links += [str(value) for key, value in attrs if key in ("src", "href")]
        assert not any(key.startswith("on") for key, _ in attrs)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag in ("rect", "line"):
            return
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


# -- content --------------------------------------------------------------------------------


def test_a_report_holds_everything(tmp_path: Path) -> None:
    folder = full_report(tmp_path / "report").write()
    found = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
    assert found == {"run.json", "results.json", "tables.md", "report.html", "scores/plain.tsv"}
    run = json.loads((folder / "run.json").read_bytes())
    assert run["seeds"] == {"plain": 1}
    assert run["options"] == {"plain": "plain", "k": "inf"}
    assert {"treelm", "python", "numpy"} <= set(run["versions"])
    assert run["inputs"][0]["sha256"] == "ab" * 32
    for name, sha256 in run["files"].items():
        assert hashlib.sha256((folder / name).read_bytes()).hexdigest() == sha256
    assert set(run["files"]) == found - {"run.json"}
    table = read_scores(folder / "scores" / "plain.tsv")
    assert table.scores.tolist() == [-1.5, -math.inf]
    results = json.loads((folder / "results.json").read_bytes())
    assert results["human_preference"] == "NOT RUN"
    assert results["results"][0]["interval"] == [250, 260]
    assert results["scores"][0] == {
        "data": "test",
        "model": "plain",
        "file": "scores/plain.tsv",
        "sentences": 2,
        "dropped": 0,
        "left_out": 0,
        "fallback": 2,
        "without_tree": 2,
        "impossible": 1,
    }
    for name in ("tables.md", "report.html"):
        assert "human preference: NOT RUN" in (folder / name).read_text(encoding="utf-8")


def test_the_same_run_gives_the_same_files(tmp_path: Path) -> None:
    first, second = (full_report(tmp_path / name).write() for name in ("one", "two"))
    for name in ("results.json", "tables.md", "report.html", "scores/plain.tsv"):
        assert (first / name).read_bytes() == (second / name).read_bytes()


def test_hostile_texts_stay_texts(tmp_path: Path) -> None:
    folder = full_report(tmp_path / "report", HOSTILE).write()
    content = (folder / "report.html").read_text(encoding="utf-8")
    page = Page(content)
    assert "script" not in page.tags
    assert page.open == []
    assert page.links == []
    assert "http" not in content.replace("http-equiv", "").replace("http://www.w3.org/2000/svg", "")
    assert "default-src 'none'" in content
    assert "prefers-color-scheme: dark" in content
    assert 'alert("1")' in "".join(page.texts)
    assert not set("\x00\x1b\u202e") & set(content)
    markdown = (folder / "tables.md").read_text(encoding="utf-8")
    assert "<script" not in markdown
    assert "\x1b" not in markdown
    headings = [line for line in markdown.splitlines() if line.startswith("#")]
    assert len(headings) == 4
    rows = [line for line in markdown.splitlines() if line.startswith("| ")]
    assert {row.replace("\\|", "").count("|") for row in rows} == {3, 8, 11}
    assert [path.suffix for path in (folder / "scores").iterdir()] == [".tsv"]
    json.loads((folder / "results.json").read_bytes())


def test_published_numbers_have_a_column_of_their_own(tmp_path: Path) -> None:
    report = Report(tmp_path / "r", "t", seeds={"bootstrap": 1})
    report.add_result(result(model="5-GRAM", value=262.0))
    report.add_result(result(p=0.21, baseline="5-GRAM"))
    report.add_result(result(model="PCFG", p=0.0001, baseline="5-GRAM", value=math.inf))
    report.add_published(published())
    report.add_published(published(model="HEADLEX", value=203.5, checked=False))
    lines = (report.write() / "tables.md").read_text(encoding="utf-8").splitlines()
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    header = next(row for row in cells if row[0] == "model")
    rows = {row[0]: dict(zip(header, row, strict=True)) for row in cells if len(row) == len(header)}
    assert rows["TREELET"]["data"] == "GUM news"
    assert rows["TREELET"]["value"] == "255.30"
    assert rows["TREELET"]["p"] == "0.210 against 5-GRAM, not significant"
    assert rows["TREELET"]["published"] == "198.00"
    assert rows["TREELET"]["published on"] == "WSJ 0"
    assert rows["5-GRAM"]["published"] == "-"
    assert rows["PCFG"]["p"] == "&lt; 0.001 against 5-GRAM"
    assert rows["PCFG"]["value"] == "inf"
    assert rows["HEADLEX"]["value"] == "not run"
    assert rows["HEADLEX"]["published"] == "203.50 †"
    assert any("not checked" in line for line in lines)
    record = json.loads((tmp_path / "r" / "results.json").read_bytes())
    assert [one["significant"] for one in record["results"]] == [None, False, True]
    assert record["results"][2]["value"] == "inf"


def test_dropped_sentences_are_left_out_of_every_file(tmp_path: Path) -> None:
    report = Report(tmp_path / "r", "t", seeds={"s": 1})
    report.add_scores("A", scores(-1, -2, -3))
    report.add_scores("a", scores(-4, -5, -6), dropped=["2"])
    report.add_scores("A", scores(-7), data="other")
    folder = report.write()
    assert read_scores(folder / "scores" / "A.tsv").ids == ("1", "3")
    assert read_scores(folder / "scores" / "a-2.tsv").ids == ("1", "3")
    assert read_scores(folder / "scores" / "A.other.tsv").ids == ("1",)
    record = json.loads((folder / "results.json").read_bytes())["scores"]
    assert [(one["dropped"], one["left_out"]) for one in record] == [(0, 1), (1, 1), (0, 0)]


def test_overlap_is_counted_and_said(tmp_path: Path) -> None:
    report = Report(tmp_path / "r", "t", seeds={"s": 1})
    sentence = ["one", "two", "three", "four", "five"]
    with pytest.raises(CorpusFormatError) as caught:
        report.check_overlap([sentence], [sentence])
    assert caught.value.code == "E_OVERLAP"
    report.check_overlap([sentence], [sentence], allow_overlap=True)
    folder = report.write()
    record = json.loads((folder / "results.json").read_bytes())
    assert record["overlap"][0]["found"] == 1
    assert record["overlap"][0]["allowed"] is True
    for name in ("tables.md", "report.html"):
        assert "the overlap was allowed" in (folder / name).read_text(encoding="utf-8")


def test_what_people_preferred_is_said(tmp_path: Path) -> None:
    item = KeyItem(item="1-x", pair=1, left="B")
    key = Key(
        export="x", seed=1, systems={"A": HOSTILE, "B": "b"}, sha256={}, pairs=1, identical=0,
        items=[item],
    )  # fmt: skip
    preference = measure_preference(key, [Rating("1-x", "r", "right", "f:2")])
    report = Report(tmp_path / "r", "t", seeds={"s": 1})
    report.set_human_preference(preference)
    folder = report.write()
    assert json.loads((folder / "results.json").read_bytes())["human_preference"]["rate"] == 1
    for name in ("tables.md", "report.html"):
        content = (folder / name).read_text(encoding="utf-8")
        assert "preferred to b in 100.0%" in content
        assert "<script" not in content
        assert "NOT RUN" not in content


# -- what is refused ------------------------------------------------------------------------


def test_seeds_are_required(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="seeds"):
        Report(tmp_path / "r", "t", seeds={})


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"value": math.nan}, "E_NAN"),
        ({"interval": (1.0, math.nan)}, "E_NAN"),
        ({"interval": (2.0, 1.0)}, "E_USAGE"),
        ({"p": 0.1}, "E_USAGE"),
        ({"baseline": "x"}, "E_USAGE"),
        ({"p": 1.1, "baseline": "x"}, "E_USAGE"),
        ({"n": -1}, "E_USAGE"),
    ],
)
def test_impossible_results_are_refused(changes: dict[str, object], code: str) -> None:
    with pytest.raises(TreelmError) as caught:
        result(**changes)
    assert caught.value.code == code


def test_published_numbers_are_finite() -> None:
    with pytest.raises(UsageError):
        published(value=math.nan)


def test_test_files_must_be_nothing_else(tmp_path: Path) -> None:
    report = Report(tmp_path / "r", "t", seeds={"s": 1})
    path = tmp_path / "test.txt"
    path.write_text("a b\n", encoding="utf-8")
    report.add_input("test", path, role="test")
    report.add_input("again", path)
    with pytest.raises(UsageError) as caught:
        report.add_input("train", TextCorpus((path,)), role="train")
    assert caught.value.code == "E_TEST_IN_TRAINING"
    with pytest.raises(UsageError) as caught:
        report.add_input("dev", path, role="tune")
    assert caught.value.code == "E_TUNED_ON_TEST"
    with pytest.raises(TreelmError) as missing:
        report.add_input("none", tmp_path / "none.txt")
    assert missing.value.code == "E_NO_FILE"
    text = encode_sentences([("a",)], Vocabulary.from_counts({"a": 1}))
    with pytest.raises(UsageError, match="not read from a file"):
        report.add_input("text", text)


def test_perplexities_over_different_words_are_refused(tmp_path: Path) -> None:
    report = Report(tmp_path / "r", "t", seeds={"s": 1})
    report.add_model("TREELET", vocabulary="aa")
    report.add_model("5-GRAM", vocabulary="bb")
    report.add_result(result())
    report.add_result(result(model="5-GRAM", metric="accuracy"))
    report.write()
    report.add_result(result(model="5-GRAM"))
    with pytest.raises(TreelmError) as caught:
        report.write()
    assert caught.value.code == "E_VOCABULARY_MISMATCH"


def test_scores_need_lengths(tmp_path: Path) -> None:
    report = Report(tmp_path / "r", "t", seeds={"s": 1})
    with pytest.raises(UsageError, match="lengths"):
        report.add_scores("m", ScoreTable(("1",), np.zeros(1)))


@pytest.mark.parametrize(
    "picture",
    [
        "no picture",
        "<p>text</p>",
        '<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>',
        '<svg xmlns="http://www.w3.org/2000/svg" onload="alert(1)"/>',
        '<svg xmlns="http://www.w3.org/2000/svg"><image href="http://x"/></svg>',
        '<svg xmlns="http://www.w3.org/2000/svg"><rect fill="url(http://x)"/></svg>',
        '<svg xmlns="http://www.w3.org/2000/svg"><style>@import "x";</style></svg>',
        '<!-- <svg --><svg xmlns="http://www.w3.org/2000/svg"/>',
    ],
)
def test_pictures_that_could_run_or_load_are_refused(tmp_path: Path, picture: str) -> None:
    report = Report(tmp_path / "r", "t", seeds={"s": 1})
    with pytest.raises(UsageError, match="picture"):
        report.add_figure(picture, "caption")


# -- the folder -----------------------------------------------------------------------------


def test_an_older_report_is_replaced_and_nothing_else(tmp_path: Path) -> None:
    folder = full_report(tmp_path / "r", "first").write()
    full_report(folder, "second").write()
    assert (folder / "scores" / "second.tsv").is_file()
    assert not (folder / "scores" / "first.tsv").exists()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["r"]
    (folder / "notes.txt").write_text("mine", encoding="utf-8")
    with pytest.raises(OutputFileError, match=r"notes\.txt"):
        full_report(folder, "third")
    assert (folder / "scores" / "second.tsv").is_file()


def test_what_appears_meanwhile_is_not_replaced(tmp_path: Path) -> None:
    report = full_report(tmp_path / "r")
    (tmp_path / "r").mkdir()
    (tmp_path / "r" / "run.json").write_text("{}", encoding="utf-8")
    with pytest.raises(OutputFileError, match=r"run\.json"):
        report.write()
    assert [path.name for path in tmp_path.rglob("*")] == ["r", "run.json"]


def test_folders_that_cannot_be_written_are_refused(tmp_path: Path) -> None:
    with pytest.raises(OutputFileError, match="nothing was changed"):
        full_report(tmp_path / "no" / "r").write()
    (tmp_path / "file").write_text("x", encoding="utf-8")
    with pytest.raises(OutputFileError, match="a report is a folder"):
        full_report(tmp_path / "file")


def test_a_failure_leaves_the_older_report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = full_report(tmp_path / "r", "first").write()
    before = (folder / "run.json").read_bytes()

    def fail(*_: object) -> str:
        raise OSError(28, "No space left on device")

    report = full_report(folder, "second")
    monkeypatch.setattr("treelm.tasks.report.report.write_score_table", fail)
    with pytest.raises(OutputFileError, match="No space left"):
        report.write()
    assert (folder / "run.json").read_bytes() == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["r"]
