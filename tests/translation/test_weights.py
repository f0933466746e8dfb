"""Feature weights: what is read from JSON and Moses files, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from treelm.corpus.files import Content
from treelm.errors import CorpusFormatError, TreelmWarning
from treelm.translation.weights import DEFAULTS, FIXED, Weights

MOSES_INI = """\
[input-factors]
0

[feature]
UnknownWordPenalty
KENLM name=LM0 factor=0 path=lm.bin order=5

[weight]
# tuned
LM0= 0.5
TranslationModel0= 0.2 0.1 0.3 1e-2
WordPenalty0= -1

[threads]
2
"""


def read(text: str) -> Weights:
    return Weights.read(Content("weights.ini", text.encode()))


@pytest.mark.parametrize(
    "text",
    [
        MOSES_INI,
        "LM0= 0.5\nTranslationModel0= 0.2 0.1 0.3 0.01\nWordPenalty0 = -1 # words\n",
        '{"LM0": 0.5, "TranslationModel0": [0.2, 0.1, 0.3, 0.01], "WordPenalty0": [-1]}',
    ],
    ids=["moses.ini", "lines", "json"],
)
def test_weights_are_read_from_every_form(text: str) -> None:
    assert dict(read(text)) == {
        "LM0": (0.5,),
        "TranslationModel0": (0.2, 0.1, 0.3, 0.01),
        "WordPenalty0": (-1.0,),
    }


numbers = st.floats(allow_nan=False, allow_infinity=False)
names = st.from_regex(r"[A-Za-z][A-Za-z0-9_]{0,8}", fullmatch=True)


@given(st.dictionaries(names, st.lists(numbers, min_size=1, max_size=4), min_size=1))
def test_weights_written_are_read_back_exactly(values: dict[str, list[float]]) -> None:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "weights.json"
        Weights(values).write(path)
        again = Weights.read(path)
    assert again == Weights(values)
    assert list(again) == list(values)
    assert hash(again) == hash(Weights(values))


def test_weights_written_are_plain_json(tmp_path: Path) -> None:
    Weights({"LM0": (0.5,), "LM1": (0.25,)}).write(tmp_path / "w.json")
    assert json.loads((tmp_path / "w.json").read_text("utf-8")) == {"LM0": [0.5], "LM1": [0.25]}


def test_weights_cannot_be_changed() -> None:
    with pytest.raises(TypeError):
        Weights({"LM0": (0.5,)})["LM0"] = (1.0,)  # type: ignore[index]


def test_weights_missing_get_their_default_with_a_warning() -> None:
    features = {"LM0": 1, "TranslationModel0": 4, "UnknownWordPenalty0": 1, "LexicalReordering0": 6}
    with pytest.warns(
        TreelmWarning, match=r"weights.ini: no weight for 3 .*UnknownWordPenalty0= 1"
    ):
        complete = read("LM0= 0.7").completed(features)
    assert dict(complete) == {
        "LM0": (0.7,),
        "TranslationModel0": (0.2,) * 4,
        "UnknownWordPenalty0": (1.0,),
        "LexicalReordering0": (0.3,) * 6,
    }
    assert list(complete) == list(features)
    assert {name.rstrip("0") for name in FIXED} <= set(DEFAULTS)


@pytest.mark.parametrize(
    ("text", "wanted", "message", "line"),
    [
        ("LM0= 1\nLM7= 1\n", {"LM0": 1}, r'weights.ini:2: feature "LM7": there is no such', 2),
        ("\nLM0= 1 2\n", {"LM0": 1}, r'weights.ini:2: feature "LM0": 2 weights, but 1 value\b', 2),
        ("LM0= 1\n", {"LM0": 1, "Odd0": 1}, r'weights.ini: feature "Odd0": .*no default', None),
        ('{"LM0": [1, 2]}', {"LM0": 1}, r'weights.ini: feature "LM0": 2 weights', None),
    ],
)
def test_weights_that_do_not_fit_the_features_are_refused(
    text: str, wanted: dict[str, int], message: str, line: int | None
) -> None:
    with pytest.raises(CorpusFormatError, match=message) as caught:
        read(text).completed(wanted)
    assert (caught.value.code, caught.value.line) == ("E_FEATURE_WEIGHTS", line)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("LM0= 1\nLM0= 2\n", "weights.ini:2: .*line 1 already"),
        ("LM0 0.5\n", "weights.ini:1: .*not a feature with weights"),
        ("LM0= zero\n", 'weights.ini:1: feature "LM0": .*not a list of numbers'),
        ("LM0=\n", "weights.ini:1: .*no weights"),
        ("LM0= nan\n", "weights.ini:1: .*nan is not a weight"),
        ("LM0= 1e999\n", "weights.ini:1: .*inf is not a weight"),
        ("[feature]\nLM0= 1\n", "no weights in this file"),
        ("", "no weights in this file"),
        ('{"LM0": [1],\n "LM0": [2]}', '"LM0" occurs twice'),
        ('{"LM0": [1],\n', "weights.ini: no JSON at line"),
        ('{"LM0": true}', "not a list of numbers"),
        ('{"LM0": "1"}', "not a list of numbers"),
        ('{"LM0": [1' + "0" * 400 + "]}", "inf is not a weight"),
        ('{"a b": 1}', "cannot be the name"),
        ('{"LM0": ' + "[" * 100_000, "nested deeper"),
    ],
)
def test_weights_malformed_are_refused_with_their_place(text: str, message: str) -> None:
    with pytest.raises(CorpusFormatError, match=message) as caught:
        read(text)
    assert caught.value.code == "E_FEATURE_WEIGHTS"


def test_weights_score_features() -> None:
    weights = Weights({"LM0": (0.5,), "TranslationModel0": (1.0, 2.0)})
    assert weights.dot({"LM0": (-4.0,), "TranslationModel0": (-1.0, -0.5)}) == -4.0
    assert weights.replaced({"LM0": (1.0,)}).dot({"LM0": (-4.0,)}) == -4.0
    with pytest.raises(CorpusFormatError, match='"LM1": the feature has no weights'):
        weights.dot({"LM1": (1.0,)})
    with pytest.raises(CorpusFormatError, match='"LM0": 1 weight, but 2 values'):
        weights.dot({"LM0": (1.0, 1.0)})
