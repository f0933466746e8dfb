"""The spaCy component: sums, spans, sentences, batches, and text of any kind."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import treelm
from treelm.errors import UsageError

spacy = pytest.importorskip("spacy")
component = pytest.importorskip("treelm.interop.spacy_component")

TEXT = (
    '"The boat (the ferry) was late," he said.  We can\'t wait in the U.S.\n\nIs it a new-old boat?'
)


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("models")
    trees = list(treelm.sample_treebank())
    treelm.train("ngram", [tree.words for tree in trees], order=2).save(folder / "ngram")
    treelm.train("hhmm", trees[:60]).save(folder / "hhmm")
    return {name: folder / name for name in ("ngram", "hhmm")}


def pipeline(model: Path, *before: str) -> Any:
    nlp = spacy.blank("en")
    for name in before:
        nlp.add_pipe(name)
    nlp.add_pipe("treelm", config={"model": str(model)})
    return nlp


def check_sums(doc: Any, model: treelm.LanguageModel) -> None:
    """Assert that what the tokens of a sentence have is what its words have together."""
    for sentence in doc.sents:
        tokens = treelm.tokenize(sentence.text)
        expected = sum(word.surprisal for word in model.surprisal(tokens)) if tokens else 0.0
        values = [token._.surprisal for token in sentence]
        if tokens:
            assert sum(values) == pytest.approx(expected)


@pytest.mark.parametrize("before", [(), ("sentencizer",)])
def test_spacy_component_gives_trees_and_surprisals(
    before: tuple[str, ...], models: dict[str, Path]
) -> None:
    doc = pipeline(models["hhmm"], *before)(TEXT)
    model = treelm.load(models["hhmm"])
    check_sums(doc, model)
    if not before:
        assert [sentence.text.split()[0] for sentence in doc.sents] == ['"The', "We", "Is"]
    for sentence in doc.sents:
        tokens = treelm.tokenize(sentence.text)
        tree = treelm.Tree.from_string(sentence._.parse_string)
        assert list(tree.words) == tokens
        assert sentence._.parse_string == str(model.parse(tokens)[0].tree)
        whole = sentence._.constituents[0]
        assert (whole.text.strip(), whole.label_) == (sentence.text.strip(), "ROOT")
        phrases = [node for node in tree.preorder() if node.word is None]
        assert [span.label_ for span in sentence._.constituents] == [
            str(node.label) for node in phrases
        ]
        for span, node in zip(sentence._.constituents, phrases, strict=True):
            assert treelm.tokenize(span.text.strip())[0].strip(".") in " ".join(node.words)


def test_spacy_component_tells_tokens_apart_that_we_do_not(models: dict[str, Path]) -> None:
    doc = pipeline(models["ngram"])("It is a new-old boat.")
    values = {token.text: token._.surprisal for token in doc}
    assert (values["-"], values["old"]) == (0.0, 0.0)
    assert values["new"] > 0
    assert next(iter(doc.sents))._.parse_string is None


def test_spacy_component_is_the_same_in_batches(models: dict[str, Path]) -> None:
    nlp = pipeline(models["hhmm"])
    texts = [TEXT, "", "   ", "The ferry left.", "One. Two. Three."]
    for one, many in zip(map(nlp, texts), nlp.pipe(texts, batch_size=2), strict=True):
        assert [t._.surprisal for t in one] == [t._.surprisal for t in many]
        assert [s._.parse_string for s in one.sents] == [s._.parse_string for s in many.sents]


@given(
    st.lists(
        st.sampled_from(
            [
                "The boat",
                " ",
                "  ",
                "\n\n",
                ". ",
                '"',
                "U.S.",
                "(a)",
                "\u200b",
                "\u00ad",
                "can't",
                "…",
                ". . .",
                "''",
                "船。",
                "\x07",
                "-",
                "e.g.",
                "?!",
                "\t",
                "’s",
            ]
        ),
        max_size=12,
    ).map("".join)
)
@settings(max_examples=80)
def test_spacy_component_takes_any_text(models: dict[str, Path], text: str) -> None:
    nlp = _cached(models["ngram"])
    doc = nlp(text)
    assert doc.text == text
    check_sums(doc, _MODELS[models["ngram"]][1])


_MODELS: dict[Path, tuple[Any, treelm.LanguageModel]] = {}


def _cached(path: Path) -> Any:
    if path not in _MODELS:
        _MODELS[path] = pipeline(path), treelm.load(path)
    return _MODELS[path][0]


def test_spacy_component_needs_a_model() -> None:
    with pytest.raises(UsageError, match="needs a model folder"):
        spacy.blank("en").add_pipe("treelm")
