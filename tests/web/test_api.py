"""The API answers what the models say, and refuses what it does not take."""

from __future__ import annotations

import json
import math
from concurrent.futures import ThreadPoolExecutor

import pytest
from tests.web.conftest import LIMITS, Client

import treelm
from treelm.models.interface.model import LanguageModel

FERRY = "The old ferry left the harbour ."


def test_models_are_named_with_what_they_do(client: Client) -> None:
    found = client.get("/api/models").json
    tasks = {model["name"]: set(model["tasks"]) for model in found["models"]}
    assert tasks == {
        "hhmm": {"surprisal", "trees", "states", "sample"},
        "ngram": {"surprisal", "sample"},
        "pcfg": {"surprisal", "trees", "sample"},
        "judge": {"judge"},
        "words": {"judge"},
    }
    assert found["limits"]["words"] == LIMITS.words
    assert found["version"] == treelm.__version__


def test_surprisal_is_that_of_the_models(
    client: Client, small_models: dict[str, LanguageModel]
) -> None:
    answer = client.ask(
        "surprisal", text=FERRY, models=["ngram", "hhmm"], tokenized=True, eos=True
    ).json
    [sentence] = answer["sentences"]
    assert [each["model"] for each in sentence["series"]] == ["ngram", "hhmm"]
    for each in sentence["series"]:
        expected = small_models[each["model"]].surprisal(FERRY, eos=True)
        assert sentence["words"] == [word.word for word in expected]
        assert each["surprisal"] == pytest.approx([word.surprisal for word in expected])
        assert each["unknown"] == [word.oov for word in expected]
        assert each["total"] == pytest.approx(sum(word.surprisal for word in expected))
    assert sentence["svg"] is None


def test_text_is_split_into_sentences_and_tokens(client: Client) -> None:
    answer = client.ask("surprisal", text="It can't stay. Why?\nZyx fell.", models=["ngram"]).json
    words = [sentence["words"] for sentence in answer["sentences"]]
    assert words == [["It", "ca", "n't", "stay", "."], ["Why", "?"], ["Zyx", "fell", "."]]
    [note] = answer["notes"]
    assert note.startswith("Unknown to ngram: ")
    assert note.endswith("Zyx.")


def test_pictures_and_tables_come_when_asked_for(client: Client) -> None:
    answer = client.ask("surprisal", text=FERRY, formats=["svg", "latex"], width=400).json
    [sentence] = answer["sentences"]
    assert sentence["svg"].startswith("<svg")
    assert float(sentence["svg"].split('width="')[1].split('"')[0]) <= 400
    assert sentence["latex"].startswith(r"\begin{tabular}{lrrr}")
    assert sentence["latex"].count(r"\\") == len(sentence["words"]) + 1


def test_trees_have_probabilities_of_brackets(
    client: Client, small_models: dict[str, LanguageModel]
) -> None:
    answer = client.ask("trees", text=FERRY, model="pcfg", k=3, formats=["svg", "latex"]).json
    expected = small_models["pcfg"].parse(FERRY, 3)
    assert [tree["tree"] for tree in answer["trees"]] == [str(each.tree) for each in expected]
    best = answer["trees"][0]
    whole = next(b for b in best["brackets"] if b["label"] == "ROOT")
    assert (whole["start"], whole["end"]) == (0, len(answer["words"]))
    assert whole["probability"] == pytest.approx(1.0, abs=1e-6)
    assert all(0 <= bracket["probability"] <= 1 for bracket in best["brackets"])
    assert best["posterior"] == pytest.approx(
        math.exp(expected[0].tree_log_prob - expected[0].sentence_log_prob)
    )
    assert best["svg"].startswith("<svg")
    assert best["latex"].startswith(r"\begin{forest}")


def test_a_model_of_one_tree_gives_one_and_says_so(client: Client) -> None:
    answer = client.ask("trees", text=FERRY, model="hhmm", k=3).json
    assert len(answer["trees"]) == 1
    assert all(bracket["probability"] is None for bracket in answer["trees"][0]["brackets"])
    assert any("at most 1 tree" in note for note in answer["notes"])


def test_states_are_those_of_the_parser(
    client: Client, small_models: dict[str, LanguageModel]
) -> None:
    answer = client.ask("states", text=FERRY, k=2, formats=["svg"]).json
    words = FERRY.split()
    assert [step["word"] for step in answer["steps"]] == words
    expected = small_models["hhmm"].surprisal(words)
    assert [step["surprisal"] for step in answer["steps"]] == pytest.approx(
        [word.surprisal for word in expected]
    )
    for step in answer["steps"]:
        shares = [state["probability"] for state in step["states"]]
        assert 1 <= len(shares) <= 2
        assert shares == sorted(shares, reverse=True)
        assert sum(shares) <= 1 + 1e-6


def test_two_sentences_are_paired_word_by_word(client: Client) -> None:
    answer = client.ask(
        "compare",
        first="The ferry left .",
        second="The old ferry left .",
        models=["ngram"],
        formats=["svg", "latex"],
    ).json
    [found] = answer["comparisons"]
    pairs = [(pair["first"], pair["second"]) for pair in found["pairs"]]
    same = [("The", "The"), (None, "old"), ("ferry", "ferry"), ("left", "left"), (".", ".")]
    assert pairs == same
    assert found["pairs"][1]["difference"] is None
    for pair in found["pairs"][2:]:
        assert pair["difference"] == pytest.approx(
            pair["second_surprisal"] - pair["first_surprisal"]
        )
    assert found["difference"] == pytest.approx(found["second_total"] - found["first_total"])
    assert "<svg" in found["svg"]
    assert "tabular" in found["latex"]


@pytest.mark.parametrize("name", ["judge", "words"])
def test_verdicts_show_what_decided(
    name: str, client: Client, small_models: dict[str, LanguageModel]
) -> None:
    answer = client.ask(
        "judge", text=f"{FERRY}\nThe ferry left .", model=name, formats=["svg"]
    ).json
    for verdict in answer["verdicts"]:
        expected = small_models[name].classify(verdict["words"])
        assert verdict["label"] == expected.label
        assert verdict["margin"] == pytest.approx(expected.margin)
        weights = [abs(piece["weight"]) for piece in verdict["pieces"]]
        assert weights
        assert weights == sorted(weights, reverse=True)
    assert (answer["verdicts"][0]["svg"] is not None) == (name == "judge")


@pytest.mark.parametrize("name", ["judge", "words"])
def test_pieces_add_up_to_the_margin(name: str, client: Client) -> None:
    [verdict] = client.ask("judge", text="The ferry left .", model=name).json["verdicts"]
    assert sum(piece["weight"] for piece in verdict["pieces"]) == pytest.approx(verdict["margin"])


def test_samples_can_be_had_again_by_their_seed(client: Client) -> None:
    first = client.ask("sample", model="pcfg", count=3, max_words=20).json
    again = client.ask("sample", model="pcfg", count=3, max_words=20, seed=first["seed"]).json
    assert again == first
    assert len(first["sentences"]) == 3
    assert all(each["tree"].startswith("(ROOT") for each in first["sentences"])


def test_a_stream_has_the_lines_of_the_whole_answer(client: Client) -> None:
    text = "\n".join(["The ferry left .", "Rain fell .", FERRY] * 7)
    lines = client.ask("stream", text=text, models=["ngram"]).body.splitlines()
    whole = client.ask("surprisal", text=text, models=["ngram"]).json["sentences"]
    assert [json.loads(line) for line in lines] == whole


def test_a_stream_takes_longer_texts(client: Client) -> None:
    text = "The ferry left .\n" * (LIMITS.words // 4 + 10)
    assert client.ask("surprisal", text=text).status == 413
    assert client.ask("stream", text=text, models=["ngram"]).status == 200


def test_many_at_once_get_what_one_gets(client: Client) -> None:
    questions = [("surprisal", {"text": FERRY}), ("trees", {"text": FERRY, "model": "pcfg"})]
    questions += [("states", {"text": FERRY}), ("judge", {"text": FERRY, "model": "judge"})]
    alone = [client.ask(name, **question).body for name, question in questions]
    with ThreadPoolExecutor(8) as pool:
        asked = [pool.submit(client.ask, name, **q) for name, q in questions * 2]
        found = [each.result() for each in asked]
    for place, each in enumerate(found):
        assert each.status == 200
        assert each.body == alone[place % len(alone)]


@pytest.mark.parametrize(
    ("name", "question", "status", "code"),
    [
        ("surprisal", {"text": ""}, 422, "E_NO_DATA"),
        ("surprisal", {"text": " \n\t"}, 422, "E_NO_DATA"),
        ("surprisal", {"text": "a " * 500}, 413, "E_TOO_LONG"),
        ("surprisal", {"text": "a " * 150}, 413, "E_TOO_LONG"),
        ("surprisal", {"text": "\ud800"}, 422, "E_ENCODING"),
        ("surprisal", {"text": "a", "models": ["nobody"]}, 404, "E_NO_MODEL"),
        ("surprisal", {"text": "a", "models": ["../../etc/passwd"]}, 404, "E_NO_MODEL"),
        ("surprisal", {"text": "a", "models": ["judge"]}, 422, "E_UNSUPPORTED_TASK"),
        ("surprisal", {"text": 5}, 422, "E_USAGE"),
        ("surprisal", {"text": "a", "width": 10**9}, 422, "E_USAGE"),
        ("surprisal", {"text": "a", "file": "/etc/passwd"}, 422, "E_USAGE"),
        ("surprisal", {}, 422, "E_USAGE"),
        ("trees", {"text": "a " * 60}, 413, "E_TOO_LONG"),
        ("trees", {"text": "a", "k": 6}, 422, "E_TOO_MANY"),
        ("trees", {"text": "a", "k": 0}, 422, "E_USAGE"),
        ("trees", {"text": "a", "model": "ngram"}, 422, "E_UNSUPPORTED_TASK"),
        ("states", {"text": "a", "model": "pcfg"}, 422, "E_UNSUPPORTED_TASK"),
        ("sample", {"count": 11}, 422, "E_TOO_MANY"),
        ("sample", {"seed": -1}, 422, "E_USAGE"),
        ("compare", {"first": "a", "second": ""}, 422, "E_NO_DATA"),
        ("stream", {"text": "a " * 4000}, 413, "E_TOO_LONG"),
        ("nothing", {}, 404, "E_NO_PAGE"),
    ],
)
def test_refusals_have_a_code(
    name: str, question: dict[str, object], status: int, code: str, client: Client
) -> None:
    answer = client.ask(name, **question)
    assert (answer.status, answer.json["code"]) == (status, code)
    assert answer.json["message"]


def test_the_description_names_every_question(client: Client) -> None:
    described = client.get("/api/openapi.json").json
    names = {
        "models",
        "load",
        "health",
        "surprisal",
        "trees",
        "states",
        "compare",
        "judge",
        "sample",
    }
    assert set(described["paths"]) == {f"/api/{name}" for name in (*names, "stream")}
    fields = described["components"]["schemas"]["SurprisalQuestion"]["properties"]
    assert all(field["description"] for field in fields.values())


def test_nothing_of_the_page_comes_from_elsewhere(client: Client) -> None:
    for path in ("/", "/api", "/playground.js", "/views.js", "/draw.js", "/playground.css"):
        answer = client.get(path)
        assert answer.status == 200
        outside = answer.body.decode().replace("http://www.w3.org/2000/svg", "")
        assert "http://" not in outside.replace("xmlns", "")
        assert "https://" not in outside
