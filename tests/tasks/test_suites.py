"""Test suites in SyntaxGym's format: formulae, regions, and accuracies that can be computed by hand."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.command_line import assert_fine, assert_refused, treelm_inside

import treelm
from treelm.errors import CorpusFormatError, TreelmWarning, UnsupportedTask
from treelm.tasks.evaluate.formulae import Formula, Region
from treelm.tasks.evaluate.suites import evaluate_suites, read_suite

SUITES = sorted((Path(__file__).resolve().parents[2] / "examples" / "suites").glob("*.json"))
VALUES = {
    Region(number, condition): value
    for (number, condition), value in {
        ("1", "a"): 2.0,
        ("1", "b b"): 3.0,
        ("12", "a"): 5.0,
        ("*", "a"): 7.0,
        ("*", "b b"): 9.5,
    }.items()
}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("(1;%a%) < (1;%b b%)", True),
        ("(1;%a%)>(1;%b b%)", False),
        ("((12;%a%) - (1;%a%)) = (1; %b b%)", True),
        ("(*;%a%) + 2.5 = (*;%b b%)", True),
        ("(*;%a%) - (12;%a%) - (1;%a%) = 0", True),
        ("-(1;%a%) < 0 & [(1;%a%) > 1 | (1;%a%) > 100]", True),
        ("(1;%a%) > 100 & (1;%a%) > 1 | (1;%a%) > 1", True),
        ("(1;%a%) > 1 | (1;%a%) > 1 & (1;%a%) > 100", True),
        ("(1;%a%) * 2 + 1 = (12;%a%)", True),
        ("(1;%a%) / 0 < 5", False),
    ],
)
def test_formulae_are_computed(text: str, expected: bool) -> None:
    assert Formula.parse(text).holds(VALUES) is expected


def test_formulae_know_their_regions() -> None:
    formula = Formula.parse("(1;%a%) < (1;%b b%) & (*;%a%) > 3")
    assert formula.regions == {Region("1", "a"), Region("1", "b b"), Region("*", "a")}


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("", 1),
        ("(1;%a%)", 8),
        ("(1;%a%) < ", 11),
        ("(1;%a%) < (2;%b%", 13),
        ("[(1;%a%) < (1;%b%)", 1),
        ("[(1;%a%) < (1;%b%))", 1),
        ("(1;%a%) < (1;%b%) & 3", 19),
        ("(1;%a%) < (1;%b%) < 3", 19),
        ("(1;%a%) (1;%b%)", 9),
        ("-((1;%a%) < 2) > 3", 1),
        ("(1;%a%) < x", 11),
    ],
)
def test_formulae_that_are_malformed_are_refused_with_the_place(text: str, place: int) -> None:
    with pytest.raises(CorpusFormatError, match=f"character {place}:") as caught:
        Formula.parse(text)
    assert caught.value.code == "E_SUITE"


numbers = st.floats(-50, 50).map(lambda value: round(value, 3))


@given(st.lists(numbers, min_size=2, max_size=6), st.data())
def test_formulae_of_sums_are_those_of_python(values: list[float], data: st.DataObject) -> None:
    signs = data.draw(st.lists(st.sampled_from("+-"), min_size=len(values), max_size=len(values)))
    places = {Region(str(number), "c"): value for number, value in enumerate(values, 1)}
    side = " ".join(f"{sign} (0;%c%)" for sign in signs).replace("0", "{}")
    text = side.format(*range(1, len(values) + 1)).removeprefix("+ ")
    total = 0.0
    for sign, value in zip(signs, values, strict=True):
        total = total + value if sign == "+" else total - value
    assert Formula.parse(f"{text} < 1").holds(places) is (total < 1)


def test_formulae_of_infinities_hold_only_where_these_decide() -> None:
    values = {Region("1", "a"): math.inf, Region("1", "b"): math.inf, Region("1", "c"): 1.0}
    assert Formula.parse("(1;%c%) < (1;%a%)").holds(values)
    assert not Formula.parse("(1;%a%) - (1;%b%) < 1").holds(values)
    assert not Formula.parse("(1;%a%) - (1;%b%) > 1").holds(values)


# -- suites -------------------------------------------------------------------------------------


def suite_of(**changes: object) -> dict[str, Any]:
    def condition(name: str, *regions: str) -> dict[str, object]:
        rows = [{"region_number": n, "content": text} for n, text in enumerate(regions, 1)]
        return {"condition_name": name, "regions": rows}

    items = [
        {"item_number": 7, "conditions": [
            condition("good", "The boat", "", "was late."),
            condition("bad", "The boat", "were", "late."),
        ]},
        {"item_number": 8, "conditions": [
            condition("good", "We can't", "", "wait here."),
            condition("bad", "We can't", "waits", "here."),
        ]},
    ]  # fmt: skip
    base: dict[str, Any] = {
        "meta": {"name": "small", "metric": "sum"},
        "predictions": [
            {"type": "formula", "formula": "(*;%good%) < (*;%bad%)"},
            {"type": "formula", "formula": "(2;%good%) < (2;%bad%)"},
        ],
        "items": items,
    }
    return base | changes


@pytest.fixture(scope="module")
def model() -> treelm.LanguageModel:
    return treelm.train("ngram", [tree.words for tree in treelm.sample_treebank()], order=3)


@pytest.fixture
def written(tmp_path: Path) -> Callable[[object], Path]:
    def write(content: object) -> Path:
        path = tmp_path / "suite.json"
        path.write_text(json.dumps(content, indent=2))
        return path

    return write


@pytest.mark.parametrize("metric", ["sum", "mean", "median", "min", "max", "range"])
def test_suites_are_measured_as_the_surprisals_say(
    model: treelm.LanguageModel, written: Callable[[object], Path], metric: str
) -> None:
    suite = read_suite(written(suite_of(meta={"name": "small", "metric": metric})))
    measure = {"range": np.ptp}.get(metric) or getattr(np, metric)
    expected = []
    for good, bad, second in (
        ("The boat was late .", "The boat were late .", slice(2, 3)),
        ("We ca n't wait here .", "We ca n't waits here .", slice(3, 4)),
    ):
        one, other = (np.array([row.surprisal for row in model.surprisal(s)]) for s in (good, bad))
        expected.append([measure(one) < measure(other), measure(other[second]) > 0.0])
    found = evaluate_suites(model, [suite], seed=1).suites["small"]
    assert found.holds.tolist() == expected
    assert found.accuracy == pytest.approx(np.mean([all(each) for each in expected]))
    assert list(found.predictions.values()) == pytest.approx(np.mean(expected, axis=0))
    assert (found.n, found.items) == (2, ("7", "8"))


def test_suites_flag_items_with_unknown_words(
    model: treelm.LanguageModel, written: Callable[[object], Path]
) -> None:
    content = suite_of()
    for item in content["items"]:
        for condition in item["conditions"]:
            for region in condition["regions"]:
                region["content"] = "The boat"
    whole = read_suite(written(content))
    assert evaluate_suites(model, [whole], seed=1).suites["small"].items_with_unknown_words == 0
    content["items"][1]["conditions"][0]["regions"][0]["content"] = "The zzgrumpf"
    found = evaluate_suites(model, [read_suite(written(content))], seed=1).suites["small"]
    assert found.items_with_unknown_words == 1


def test_suites_of_tokens_are_left_as_they_are(written: Callable[[object], Path]) -> None:
    path = written(suite_of())
    raw, tokens = (read_suite(path, tokenizing=yes) for yes in (True, False))
    assert list(raw.sentences())[2] == ("We", "ca", "n't", "wait", "here", ".")
    assert list(tokens.sentences())[2] == ("We", "can't", "wait", "here.")
    assert raw.items[1].conditions[0].regions[1] == ("2", ())


def _without(*path: str | int) -> dict[str, Any]:
    content: Any = json.loads(json.dumps(suite_of()))
    inner = content
    for step in path[:-1]:
        inner = inner[step]
    del inner[path[-1]]
    return content  # type: ignore[no-any-return]


@pytest.mark.parametrize(
    ("content", "named"),
    [
        ([], "meta"),
        (_without("meta", "name"), "name"),
        (_without("predictions"), "predictions"),
        (_without("items", 1, "item_number"), "item_number"),
        (_without("items", 1, "conditions", 0, "regions", 1, "content"), "item 8"),
        (_without("items", 1, "conditions", 0, "regions", 1), "region 2"),
        (_without("items", 1, "conditions", 1), '"bad"'),
        (suite_of(items=[]), "no items"),
        (suite_of(meta={"name": "small", "metric": "product"}), "product"),
        (suite_of(predictions=[{"formula": "(2;%good%) <"}]), "character 13"),
        (suite_of(predictions=[{"formula": "(2;%other%) < 3"}]), "item 7"),
    ],
)
def test_suites_that_are_malformed_are_refused(
    written: Callable[[object], Path], content: object, named: str
) -> None:
    path = written(content)
    with pytest.raises(CorpusFormatError) as caught:
        read_suite(path)
    assert caught.value.code == "E_SUITE"
    assert str(path) in str(caught.value)
    assert named in str(caught.value)


def test_suites_that_are_no_json_are_refused_with_the_line(tmp_path: Path) -> None:
    path = tmp_path / "suite.json"
    path.write_text('{"meta":\n  nothing}')
    with pytest.raises(CorpusFormatError, match=r"suite\.json:2: this is no JSON"):
        read_suite(path)


def test_suites_need_models_that_go_word_by_word(written: Callable[[object], Path]) -> None:
    good, bad = [("the", "boat")] * 4, [("boat", "the")] * 4
    classifier = treelm.train("trigram_svm", (good, bad))
    with pytest.raises(UnsupportedTask):
        evaluate_suites(classifier, [read_suite(written(suite_of()))], seed=1)


# -- the suites of the examples -----------------------------------------------------------------


def test_our_suites_are_six_and_balanced() -> None:
    read = [read_suite(path) for path in SUITES]
    assert [suite.name for suite in read] == [path.stem for path in SUITES]
    assert len(read) == 6
    for suite in read:
        assert len(suite.items) >= 16
        assert len(set(suite.sentences())) == len(list(suite.sentences()))
        names = [tuple(each.name for each in item.conditions) for item in suite.items]
        assert len(set(names)) == 1
        assert {region.condition for each in suite.predictions for region in each.regions} == set(
            names[0]
        )


def test_our_suites_are_learnable() -> None:
    """A model that has read the good sentences of agreement finds them less surprising."""
    suite = read_suite(next(path for path in SUITES if path.stem == "agreement"))
    sentences = [
        condition.words
        for item in suite.items
        for condition in item.conditions
        if condition.name.endswith("_match")
    ]
    with pytest.warns(TreelmWarning, match="no discount"):
        model = treelm.train("ngram", sentences, order=5)
    assert treelm.evaluate.suites(model, [SUITES[0]]).accuracy == 1.0


# -- the command --------------------------------------------------------------------------------


def test_suites_command(
    model: treelm.LanguageModel, tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    folder, table = tmp_path / "model", tmp_path / "items.tsv"
    model.save(folder)
    arguments = ("evaluate", "suites", "-m", folder)
    written = assert_fine(
        treelm_inside(capfdbinary, *arguments, *SUITES, "--json", "-o", table), None
    )
    record = json.loads(written)
    expected = treelm.evaluate.suites(model, SUITES)
    assert record == json.loads(json.dumps(expected.to_record()))
    assert set(record["suites"]) == {path.stem for path in SUITES}
    assert record["accuracy"] == pytest.approx(
        np.mean([each["accuracy"] for each in record["suites"].values()])
    )
    header, *rows = [line.split("\t") for line in table.read_text().splitlines()]
    assert header == ["suite", "item", "prediction", "holds"]
    for name, found in expected.suites.items():
        own = [int(row[3]) for row in rows if row[0] == name]
        assert own == found.holds.astype(int).ravel().tolist()
    told = assert_fine(treelm_inside(capfdbinary, *arguments, SUITES[0], "-q"), None)
    assert b"suite: agreement" in told
    twice = treelm_inside(capfdbinary, *arguments, SUITES[0], SUITES[0], "-q")
    assert_refused(twice, 3, "agreement")
