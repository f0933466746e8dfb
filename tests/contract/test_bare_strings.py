"""Every system takes a string where words are wanted, and refuses one where sentences are."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import treelm
from treelm.corpus.corpus import TextCorpus
from treelm.corpus.encoder import encode_sentences
from treelm.corpus.labelled import LabelledSentences
from treelm.errors import TreelmError, UsageError
from treelm.models.interface.model import LanguageModel, Task
from treelm.models.interface.words import WordIds
from treelm.models.mixture.train import fit_interpolation
from treelm.models.registry import SYSTEMS
from treelm.tasks.classify import draw_decisions
from treelm.tasks.corrupt.data_split import split_sentences
from treelm.tasks.evaluate.slr import score_sentences
from treelm.tasks.report.sentences import find_overlap
from treelm.tasks.surprisal.parser_states import parser_states

Trained = Callable[[str], LanguageModel]
#: A question about words or sentences: what it gives must not depend on how they are spelled.
Question = Callable[[Any, Any], object]

STRING = "The old ferry left ."
WORDS = ("The", "old", "ferry", "left", ".")

#: What takes the words of one sentence.
OF_WORDS: dict[str, Question] = {
    "score": lambda model, words: model.score(words),
    "surprisal": lambda model, words: model.surprisal(words),
    "parse": lambda model, words: list(map(str, model.parse(words))),
    "classify": lambda model, words: model.classify(words),
    "decision": lambda model, words: model.decision(words),
    "explain": lambda model, words: str(model.explain(words)),
    "explain_score": lambda model, words: str(model.explain_score(words)),
    "partial_parses": lambda model, words: str(model.partial_parses(words, 1)),
    "weight_of": lambda model, words: sorted(model.weight_of(words)),
    "estimate": lambda model, words: model.estimate(words),
    "score_sentence": lambda model, words: model.score_sentence(words),
    "score_phrase": lambda model, words: model.score_phrase(model.initial(), words).log_prob,
    "distribution": lambda model, words: model.distribution(model.initial(), words).tolist(),
    "advance_many": lambda model, words: model.advance_many(
        [model.initial()] * len(WORDS), words
    ).log_probs.tolist(),
    "encode": lambda model, words: model.vocabulary.encode(words).tolist(),
    "replace": lambda model, words: model.vocabulary.replace(words),
    "ids": lambda model, words: WordIds(model.vocabulary).sentence(words),
    "states": parser_states,
    "prefixes": lambda model, words: np.concatenate(
        [
            np.atleast_1d(part)
            for part in model._parsers(model.parser_options).prefix_log_probs(words)
        ]
    ).tolist(),
}

#: What takes several sentences.
OF_SENTENCES: dict[str, Question] = {
    "score_many": lambda model, many: list(model.score_many(many)),
    "sentence_log_probs": lambda model, many: model.sentence_log_probs(many).tolist(),
    "log_probs_and_unknown": lambda model, many: [
        part.tolist() if hasattr(part, "tolist") else part
        for part in model.log_probs_and_unknown(many)
    ],
    "score_batch": lambda model, many: model.score_batch(many).log_probs.tolist(),
    "perplexity": lambda model, many: model.perplexity(many),
    "parse_many": lambda model, many: list(map(str, model.parse_many(many))),
    "k_best_many": lambda model, many: [
        list(map(str, found)) for found in model.k_best_many(many, 1)
    ],
    "forests_many": lambda model, many: [
        None if found is None else found.words for found in model.forests_many(many)
    ],
    "lower_bounds": lambda model, many: model.lower_bounds(many, model.parser_options).tolist(),
    "classify_many": lambda model, many: list(model.classify_many(many)),
    "margins": lambda model, many: model.margins(many).tolist(),
    "hidden_trees": lambda model, many: list(map(str, model.hidden_trees(many))),
    "floored": lambda model, many: list(model.floored(0.1).score_many(many)),
    "pruned": lambda model, many: list(model.pruned("fast").score_many(many)),
    "treelm.parse": lambda model, many: list(map(str, treelm.parse(model, many))),
    "treelm.surprisal": treelm.surprisal,
    "score_sentences": lambda model, many: score_sentences(model, many).scores.tolist(),
    "interpolate": lambda model, many: fit_interpolation([model, model], many).weights,
    "draw": draw_decisions,
    "encode": lambda model, many: encode_sentences(many, model.vocabulary).ids.tolist(),
}

#: Those in which one string has a meaning of its own: a single sentence.
STRING_IS_SENTENCE = {"treelm.parse", "treelm.surprisal"}


def answered(question: Question, model: LanguageModel, given: object) -> object:
    """Return an answer, or None where a model has none."""
    try:
        return question(model, given)
    except (TreelmError, AttributeError):
        return None


@pytest.mark.parametrize("name", OF_WORDS)
@pytest.mark.parametrize("system", SYSTEMS)
def test_string_of_words_is_split(system: str, name: str, trained: Trained) -> None:
    model = trained(system)
    found = [answered(OF_WORDS[name], model, given) for given in (WORDS, list(WORDS), STRING)]
    assert found[1:] == found[:1] * 2
    if name in ("score", "encode", "replace", "ids"):
        assert found[0] is not None


@pytest.mark.parametrize("name", OF_SENTENCES)
@pytest.mark.parametrize("system", SYSTEMS)
def test_strings_among_sentences_are_split(system: str, name: str, trained: Trained) -> None:
    model = trained(system)
    spellings = ([WORDS, WORDS], [list(WORDS), STRING], [STRING, STRING])
    found = [answered(OF_SENTENCES[name], model, given) for given in spellings]
    assert found[1:] == found[:1] * 2
    if name in ("score_many", "sentence_log_probs", "score_sentences", "encode"):
        assert found[0] is not None


@pytest.mark.parametrize("name", [name for name in OF_SENTENCES if name not in STRING_IS_SENTENCE])
def test_one_string_for_sentences_is_refused(name: str, trained: Trained) -> None:
    question = OF_SENTENCES[name]
    models = [trained(system) for system in SYSTEMS]
    able = [model for model in models if answered(question, model, [WORDS]) is not None]
    assert able
    for model in able:
        for given in (STRING, b"The old ferry", Path("text.txt")):
            with pytest.raises(UsageError, match=r'TextCorpus\("FILE"\)'):
                question(model, given)


def test_every_method_with_sentences_is_asked() -> None:
    """No public method that takes words or sentences is missing in the tables."""
    asked = OF_WORDS.keys() | OF_SENTENCES.keys()
    taking = {
        name
        for system in SYSTEMS.values()
        for name, value in inspect.getmembers(system.model_class)
        if not name.startswith("_")
        and callable(value)
        and {"sentence", "sentences"} & set(getattr(value, "__annotations__", ()))
    }
    # Hashes of sentences; and what hands sentences on as they are.
    assert taking - {"remember", "taken"} <= asked


#: Functions without a model: the same rule.
WITHOUT_MODEL: dict[str, Callable[[Any], object]] = {
    "of_sentences": lambda many: list(TextCorpus.of_sentences(many)),
    "split": lambda many: split_sentences(many, {"part": 1}, seed=1).parts,
    "overlap": lambda many: (find_overlap(many, [WORDS]).found, find_overlap([WORDS], many).found),
}


@pytest.mark.parametrize("ask", WITHOUT_MODEL.values(), ids=WITHOUT_MODEL.keys())
def test_functions_of_sentences_follow_the_same_rule(ask: Callable[[Any], object]) -> None:
    assert ask([STRING]) == ask([WORDS]) == ask([list(WORDS)])
    with pytest.raises(UsageError, match="several sentences are needed, not one string"):
        ask(STRING)


def test_detokenize_splits_a_string() -> None:
    assert treelm.detokenize("I do n't") == treelm.detokenize(["I", "do", "n't"]) == "I don't"


@pytest.mark.parametrize("given", [b"bytes", None, 7])
def test_what_has_no_words_is_refused(given: Any) -> None:
    with pytest.raises(UsageError, match="a sentence is a string"):
        treelm.detokenize(given)


@pytest.mark.parametrize("given", [b"bytes", None, 7])
def test_what_has_no_words_is_not_scored(given: Any, trained: Trained) -> None:
    for system in ("ngram", "hhmm"):
        model = trained(system)
        with pytest.raises(UsageError, match="a sentence is a string"):
            model.score(given)
        with pytest.raises(UsageError, match="a sentence is a string"):
            list(model.score_many([given]))


@pytest.mark.parametrize("given", [b"bytes", None, 7, ["It rained."]])
def test_raw_text_is_one_string(given: Any) -> None:
    for function in (treelm.tokenize, treelm.split_sentences):
        with pytest.raises(UsageError, match="raw text is one string, not"):
            function(given)


def test_one_file_need_not_stand_in_a_list(tmp_path: Path) -> None:
    file = tmp_path / "text.txt"
    file.write_text("it rained\n")
    assert list(TextCorpus(str(file))) == list(TextCorpus(file)) == [("it", "rained")]  # type: ignore[arg-type]
    labelled = LabelledSentences(str(file), file)  # type: ignore[arg-type]
    assert labelled.sentences == (("it", "rained"), ("it", "rained"))


def test_labelled_sentences_refuse_lists() -> None:
    with pytest.raises(UsageError, match="of_sentences"):
        LabelledSentences([WORDS], [WORDS])  # type: ignore[arg-type]


def test_training_takes_strings_for_files_and_says_so() -> None:
    with pytest.raises(UsageError, match=r"TextCorpus\.of_sentences"):
        treelm.train("ngram", [STRING, STRING], order=2)
    with pytest.raises(UsageError, match=r"Tree\.from_string"):
        treelm.train("pcfg", ["(S (NP (PRP It)) (VP (VBZ rains)))"])


def test_evaluation_splits_strings_among_sentences(trained: Trained) -> None:
    model = trained("ngram")
    assert model.can(Task.PERPLEXITY)
    spellings: list[Iterable[Any]] = [[STRING], [WORDS]]
    bad = [WORDS[::-1]]
    results = [treelm.evaluate.pairs(model, good, bad) for good in spellings]
    assert results[0].to_record() == results[1].to_record()
