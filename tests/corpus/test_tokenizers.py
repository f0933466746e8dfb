"""Tokenizers of other languages than English, and models that carry them."""

from __future__ import annotations

import math
from itertools import product
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.command_line import treelm

import treelm as package
from treelm.corpus.tokenizers import Segmenter, simple_words
from treelm.errors import UsageError
from treelm.models.registry import load, train


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("¿Qué hay (hoy)?", "¿ Qué hay -LRB- hoy -RRB- ?"),
        ("Mide 1.200,5 m.", "Mide 1.200,5 m ."),
        ("Hann sagði: „Já“ ...", "Hann sagði : „ Já “ ..."),
        ("norte-sur, d'Or", "norte-sur , d'Or"),
        ("a/b x:y 12:30", "a / b x : y 12:30"),
        ("हिन्दी में।", "हिन्दी में ।"),
        ("o.s.frv.", "o.s.frv ."),
    ],
)
def test_simple_separates_marks_and_keeps_words_of_any_script(text: str, tokens: str) -> None:
    assert " ".join(simple_words(text).tokens) == tokens


@given(st.text("aé1 .,-'()…「।\u0301", max_size=20))
def test_simple_loses_no_character(text: str) -> None:
    found = simple_words(text)
    brackets = {"-LRB-": "(", "-RRB-": ")"}
    joined = "".join(brackets.get(token, token) for token in found.tokens)
    import unicodedata

    assert joined == unicodedata.normalize("NFC", "".join(text.split()))
    assert len(found.words) == len(found.ends)
    assert (found.ends[-1] if found.ends else 0) == len(found.tokens)


@given(st.text("ab", min_size=1, max_size=6), st.data())
def test_segmenter_finds_the_most_probable_words(text: str, data: st.DataObject) -> None:
    words = {text[i:j] for i in range(len(text)) for j in range(i + 1, len(text) + 1)}
    chosen = data.draw(st.sets(st.sampled_from(sorted(words)))) | {"a", "b"}
    log_probs = {word: -float(data.draw(st.integers(1, 20))) for word in sorted(chosen)}
    found = Segmenter(log_probs)(text).tokens
    assert "".join(found) == text

    def best(rest: str) -> float:
        if not rest:
            return 0.0
        return max(
            (
                value + best(rest[len(word) :])
                for word, value in log_probs.items()
                if rest.startswith(word)
            ),
            default=-math.inf,
        )

    # One unknown word can beat many known ones; otherwise the sum is the largest.
    if all(word in log_probs for word in found):
        assert sum(log_probs[word] for word in found) == pytest.approx(best(text))


def test_segmenter_joins_unknown_characters_of_one_kind() -> None:
    segment = Segmenter({"に": -1.0, "行く": -2.0})
    assert segment("ロンドンに行く。").tokens == ("ロンドン", "に", "行く", "。")


@pytest.mark.filterwarnings("ignore:no discount")
def test_model_carries_its_tokenizer_to_methods_and_commands(tmp_path: Path) -> None:
    sentences = [
        list(pair) for pair in product(("東京", "京都"), ("に",), ("行く", "着く"), ("。",))
    ]
    model = train("ngram", sentences, order=2, smoothing="kn", tokenizer="segment")
    assert [word.word for word in model.surprisal("東京に着く。")] == ["東京", "に", "着く", "。"]
    model.save(tmp_path / "model")
    assert load(tmp_path / "model").tokenizer == "segment"
    table = treelm(
        "surprisal", "-m", str(tmp_path / "model"), stdin="東京に着く。\n".encode()
    ).stdout.decode()
    assert [line.split("\t")[3] for line in table.splitlines()[1:5]] == ["東京", "に", "着く", "。"]
    scored = treelm("score", "-m", tmp_path / "model", stdin="東京に着く。\n".encode())
    words = ["東京", "に", "着く", "。"]
    assert float(scored.stdout) == pytest.approx(model.score(words).log_prob)


def test_simple_tokenizer_of_a_parser() -> None:
    model = train("pcfg", list(package.sample_treebank()), tokenizer="simple")
    assert model.parse("The ferry left.")[0].tree.words == ("The", "ferry", "left", ".")  # type: ignore[attr-defined]
    with pytest.raises(UsageError, match="penn, simple, segment"):
        model.with_tokenizer("latin")
