"""Every system can carry a tokenizer: then strings are raw text, and words stay words."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.contract.test_bare_strings import OF_SENTENCES, OF_WORDS, Trained, answered

import treelm
from treelm.corpus.corpus import TextCorpus
from treelm.errors import ModelFileError, UsageError
from treelm.models.interface.model import LanguageModel, Task
from treelm.models.registry import SYSTEMS

RAW = "The old ferry left."
WORDS = ("The", "old", "ferry", "left", ".")
#: Questions about sentences; the others of the tables are about words in a state.
ONE = ("score", "surprisal", "parse", "classify", "decision", "explain", "weight_of")
SEVERAL = tuple(name for name in OF_SENTENCES if name not in {"interpolate", "draw", "encode"})


@pytest.mark.parametrize("name", ONE)
@pytest.mark.parametrize("system", SYSTEMS)
def test_a_string_is_raw_text(system: str, name: str, trained: Trained) -> None:
    plain = trained(system)
    raw = plain.with_tokenizer("penn")
    wanted = answered(OF_WORDS[name], plain, WORDS)
    assert answered(OF_WORDS[name], raw, RAW) == wanted
    assert answered(OF_WORDS[name], raw, WORDS) == wanted
    if name == "score":
        assert wanted is not None


@pytest.mark.parametrize("name", SEVERAL)
@pytest.mark.parametrize("system", SYSTEMS)
def test_strings_among_sentences_are_raw_text(system: str, name: str, trained: Trained) -> None:
    plain = trained(system)
    raw = plain.with_tokenizer("penn")
    wanted = answered(OF_SENTENCES[name], plain, [WORDS, WORDS])
    assert answered(OF_SENTENCES[name], raw, [RAW, WORDS]) == wanted
    if name == "score_many":
        assert wanted is not None
        assert [each.log_prob for each in raw.score_many(iter([RAW, WORDS]))] == [
            each.log_prob for each in plain.score_many([WORDS, WORDS])
        ]


@pytest.mark.parametrize("system", SYSTEMS)
def test_the_tokenizer_stays_with_the_model(system: str, trained: Trained, tmp_path: Path) -> None:
    plain = trained(system)
    raw = plain.with_tokenizer("penn")
    assert (plain.tokenizer, raw.tokenizer) == (None, "penn")
    assert isinstance(raw, type(plain))
    assert raw.with_tokenizer(None).tokenizer is None
    assert type(raw.with_tokenizer(None)) is type(plain)
    assert pickle.loads(pickle.dumps(raw)).tokenizer == "penn"
    assert raw.with_max_words(50).tokenizer == "penn"
    raw.save(tmp_path / "model")
    again = treelm.load(tmp_path / "model")
    assert again.tokenizer == "penn"
    assert again.score(RAW).log_prob == raw.score(RAW).log_prob == plain.score(WORDS).log_prob


def test_parts_of_sentences_are_raw_text(trained: Trained) -> None:
    plain = trained("ngram")
    raw = plain.with_tokenizer("penn")
    assert raw.continuation("left.", "The old ferry") == plain.continuation(
        ("left", "."), ("The", "old", "ferry")
    )
    assert raw.top(3, "We can't") == plain.top(3, ("We", "ca", "n't"))


def test_files_are_tokenized_text(trained: Trained, tmp_path: Path) -> None:
    text = tmp_path / "text.txt"
    text.write_text("The ferry left .\n")
    plain = trained("ngram")
    raw = plain.with_tokenizer("penn")
    assert raw.perplexity(TextCorpus((text,))) == plain.perplexity(TextCorpus((text,)))
    assert treelm.surprisal(raw, text) == treelm.surprisal(plain, text)


@pytest.mark.parametrize(
    "changed",
    [
        lambda model: model.quantized(8),
        lambda model: model.compacted(),
        lambda model: model.floored(0.1),
        lambda model: treelm.interpolate([model, model]),
    ],
)
def test_variants_keep_the_tokenizer(
    changed: Callable[[LanguageModel], LanguageModel], trained: Trained
) -> None:
    assert changed(trained("ngram").with_tokenizer("penn")).tokenizer == "penn"
    assert changed(trained("ngram")).tokenizer is None


def test_models_that_differ_in_tokenizers_mix_to_one_without(trained: Trained) -> None:
    plain = trained("ngram")
    assert treelm.interpolate([plain, plain.with_tokenizer("penn")]).tokenizer is None


def test_other_variants_keep_the_tokenizer(trained: Trained) -> None:
    assert trained("hhmm").with_tokenizer("penn").with_search(beam_width=5).tokenizer == "penn"
    grammar = trained("pcfg").with_tokenizer("penn")
    assert grammar.pruned("fast").tokenizer == "penn"
    treelets = trained("treelet").with_tokenizer("penn").with_parser(grammar)
    assert treelets.tokenizer == "penn"
    assert treelets.can(Task.SCORE)


def test_training_gives_a_model_its_tokenizer() -> None:
    text = [["It", "rained", "."], ["Rain", "fell", "."]]
    model = treelm.train("ngram", text, order=2, smoothing="kn", tokenizer="penn")
    assert [each.word for each in model.surprisal("It rained.")] == ["It", "rained", "."]


def test_unknown_tokenizers_are_refused(trained: Trained, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match='there is no tokenizer "moses"'):
        trained("ngram").with_tokenizer("moses")
    with pytest.raises(UsageError, match="Tokenizers: penn"):
        treelm.train("ngram", [["a"]], order=1, tokenizer="moses")
    trained("ngram").with_tokenizer("penn").save(tmp_path / "model")
    manifest = tmp_path / "model" / "manifest.json"
    manifest.write_text(manifest.read_text().replace('"penn"', '"moses"'))
    with pytest.raises(ModelFileError, match="newer treelm") as caught:
        treelm.load(tmp_path / "model")
    assert caught.value.code == "E_MODEL_VERSION"
