"""What a training function takes, and what may be given for it."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.contract.recipes import make_data, quietly
from tests.models.toy_model import ToyModel

import treelm
from treelm.corpus.brackets import ReadOptions
from treelm.corpus.corpus import TextCorpus, TreeCorpus
from treelm.corpus.files import Content
from treelm.corpus.labelled import LabelledSentences
from treelm.corpus.vocabulary import Vocabulary
from treelm.errors import CorpusFormatError, InputFileError, UnsupportedTask, UsageError
from treelm.models.inputs import Input, as_input, corpora_in, inputs_of, takes_report
from treelm.models.interface.parse_lists import ParseLists
from treelm.models.interface.parser import Parser
from treelm.models.ngram.counts import NgramCounts
from treelm.models.pcfg.model import PcfgModel
from treelm.models.registry import SYSTEMS, find_system, train
from treelm.models.run import Run
from treelm.models.treelet.counts import CountedTreelets
from treelm.models.treelet.train import train_treelet
from treelm.trees.tree import Tree

TREES = tuple(
    map(Tree.from_string, ("(S (NP (N rain)) (VP (V fell)))", "(S (NP (PRP it)) (VP (V rained)))"))
)
SENTENCES = [["rain", "fell"], ["it", "rained"]]


@pytest.fixture(scope="module")
def small_data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("data")
    make_data(folder)
    (folder / "two.mrg").write_text("".join(f"{tree}\n" for tree in TREES))
    (folder / "two.txt").write_text("rain fell\nit rained\n")
    return folder


@pytest.fixture(autouse=True)
def _inside(small_data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(small_data)


def wanted(system: str, name: str) -> Input:
    (found,) = (each for each in find_system(system).inputs if each.name == name)
    return found


def given(system: str, name: str, value: object, **how: Any) -> Any:
    return as_input(wanted(system, name), value, run=Run(threads=2), **how)


# -- what functions take ------------------------------------------------------------------------


def test_inputs_are_read_off_the_signature() -> None:
    inputs = {each.name: each for each in inputs_of(train_treelet)}
    assert list(inputs) == [
        "corpus",
        "text",
        "parser",
        "vocabulary",
        "held_out",
        "temporal",
    ]
    corpus = inputs["corpus"]
    assert corpus.takes(TreeCorpus)
    assert not corpus.takes(TextCorpus)
    assert (corpus.is_required, corpus.counts) == (False, CountedTreelets)
    assert corpus.help.startswith("Trees as a treebank has them")
    assert inputs["text"].kinds == (TextCorpus,)
    assert inputs["parser"].takes(Parser)
    assert not any(each.is_required or each.is_models for each in inputs.values())
    assert takes_report(train_treelet)


@pytest.mark.parametrize(
    ("system", "required"),
    [
        ("ngram", ["corpus"]),
        ("lsvm", ["data", "tuning", "trees"]),
        ("tree_features", ["data", "parser"]),
        ("interpolated", ["models"]),
        ("headlex", []),
    ],
)
def test_what_must_be_given_has_no_default(system: str, required: list[str]) -> None:
    assert [each.name for each in find_system(system).inputs if each.is_required] == required


def test_only_mixtures_take_models() -> None:
    taking = [name for name in SYSTEMS if find_system(name).inputs[0].is_models]
    assert taking == ["interpolated", "interpolated_sentences"]


# -- corpora ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "two.txt",
        Path("two.txt"),
        ["two.txt"],
        (Path("two.txt"),),
        Content("memory", b"rain fell\nit rained\n"),
        SENTENCES,
        tuple(map(tuple, SENTENCES)),
        TextCorpus("two.txt"),
    ],
    ids=repr,
)
def test_text_is_given_as_files_or_sentences(text: Any) -> None:
    found = given("plsa", "held_out", text)
    assert isinstance(found, TextCorpus)
    assert [list(words) for words in found] == SENTENCES


@pytest.mark.parametrize(
    "trees",
    [
        "two.mrg",
        Path("two.mrg"),
        ["two.mrg"],
        (Path("two.mrg"),),
        TREES,
        list(TREES),
        TreeCorpus("two.mrg"),
        TreeCorpus.of_trees(TREES),
    ],
    ids=lambda value: type(value).__name__,
)
@pytest.mark.parametrize("system", ["pcfg", "ngram", "treelet"])
def test_trees_are_given_as_files_or_trees(system: str, trees: Any) -> None:
    found = given(system, "corpus", trees)
    assert isinstance(found, TreeCorpus)
    assert [tree.words for tree in found] == [("rain", "fell"), ("it", "rained")]


def test_what_can_be_iterated_once_is_kept() -> None:
    for values in (iter(SENTENCES), iter(["two.txt"]), (words for words in SENTENCES)):
        found = given("ngram", "corpus", values)
        assert isinstance(found, TextCorpus)
        assert [list(words) for words in found] == [list(words) for words in found] == SENTENCES
    assert len(list(given("ngram", "corpus", iter(TREES)))) == 2
    assert len(list(given("pcfg", "corpus", iter(TREES)))) == 2


def test_one_tree_is_a_corpus() -> None:
    for system in ("pcfg", "ngram"):
        (tree,) = given(system, "corpus", TREES[0])
        assert tree.words == ("rain", "fell")


def test_several_files_keep_their_order() -> None:
    found = given("ngram", "corpus", ["two.txt", Path("dev.txt")])
    assert found.paths == ("two.txt", Path("dev.txt"))
    assert next(iter(found)) == ("rain", "fell")


def test_files_of_trees_are_read_as_one_is_told() -> None:
    reading = ReadOptions(profile="neutral")
    found = given("pcfg", "corpus", "two.mrg", reading=reading)
    assert (found.options, found.threads) == (reading, 2)
    assert given("pcfg", "corpus", TREES, reading=reading).options == reading


def test_folders_of_counts_stand_for_a_corpus() -> None:
    assert isinstance(given("ngram", "corpus", "counts"), NgramCounts)
    twice = given("ngram", "corpus", ["counts", "counts"])
    assert isinstance(twice, NgramCounts)
    assert isinstance(given("treelet", "corpus", "treelets"), CountedTreelets)
    with pytest.raises(treelm.ModelFileError, match="has no n-gram counts"):
        given("ngram", "corpus", "grammar")


def test_what_is_left_out_stays_out() -> None:
    assert given("treelet", "corpus", None) is None
    assert given("ngram", "no_measure", True) is True
    assert given("treelet", "temporal", "nouns.txt") == "nouns.txt"


# -- other kinds --------------------------------------------------------------------------------


def test_parsers_are_given_as_folders_files_or_objects() -> None:
    grammar = given("treelet", "parser", "grammar")
    assert isinstance(grammar, PcfgModel)
    assert given("treelet", "parser", grammar) is grammar
    assert isinstance(given("treelet", "parser", Path("two.mrg")), ParseLists)
    with pytest.raises(UnsupportedTask, match="ngram models do not parse"):
        given("treelet", "parser", "bigrams")
    with pytest.raises(InputFileError, match="missing: there is no such file"):
        given("treelet", "parser", "missing")


def test_vocabularies_are_given_as_files_or_objects() -> None:
    words = given("ngram", "vocabulary", "words.txt")
    assert isinstance(words, Vocabulary)
    assert given("ngram", "vocabulary", words) is words


@pytest.mark.parametrize(
    "pair",
    [
        ("two.txt", "bad.txt"),
        (["two.txt"], Path("bad.txt")),
        {"good": "two.txt", "bad": "bad.txt"},
        (SENTENCES, "bad.txt"),
        (iter(SENTENCES), TextCorpus("bad.txt")),
        LabelledSentences(TextCorpus("two.txt"), TextCorpus("bad.txt")),
    ],
    ids=lambda value: type(value).__name__,
)
def test_good_and_bad_sentences_are_given_as_a_pair(pair: Any) -> None:
    found = given("trigram_svm", "data", pair)
    assert isinstance(found, LabelledSentences)
    assert [list(words) for words in found.good] == SENTENCES
    assert found.labels.tolist() == [1, 1] + [-1] * 60
    assert corpora_in([None, found, 3]) == [found.good, found.bad]


def test_parts_of_a_mixture_are_given_as_folders_or_models() -> None:
    bigrams = treelm.load("bigrams")
    found = given("interpolated", "models", [bigrams, Path("unigrams")])
    assert found[0] is bigrams
    assert [model.info.order for model in found] == [2, 1]
    assert len(given("interpolated", "models", iter(["bigrams", "unigrams"]))) == 2
    for alone in ("bigrams", bigrams):
        (model,) = given("interpolated", "models", alone)
        assert model.info.order == 2


@pytest.mark.parametrize(
    ("system", "name", "value", "said"),
    [
        ("ngram", "corpus", 3, "corpus: text files, a list of sentences .* not int"),
        ("ngram", "corpus", [], "is needed, not an empty list"),
        ("ngram", "corpus", {"a": 1}, "is needed, not dict"),
        ("ngram", "corpus", b"two.txt", "is needed, not bytes"),
        ("ngram", "corpus", [3], "is needed, not a list of int"),
        ("ngram", "corpus", [["a"], [3]], "is needed, not a list of list"),
        ("ngram", "held_out", TREES, "held_out: text files.* not a tuple of Tree"),
        ("ngram", "vocabulary", ["rain"], "vocabulary: a vocabulary file .* not a list of str"),
        ("pcfg", "corpus", SENTENCES, "corpus: files of trees, a list of `Tree` .* list of list"),
        ("pcfg", "corpus", TextCorpus("two.txt"), "is needed, not TextCorpus"),
        ("pcfg", "corpus", (), "is needed, not an empty tuple"),
        ("trigram_svm", "data", "good.txt", "data: `LabelledSentences`, or a pair .* not str"),
        ("trigram_svm", "data", ("a", "b", "c"), "is needed, not a tuple of str"),
        ("trigram_svm", "data", {"good": "good.txt"}, "is needed, not dict"),
        ("trigram_svm", "data", ("good.txt", 3), "data: text files, .* not int"),
        ("interpolated", "models", [], "models: a list of models or .* not an empty list"),
        ("interpolated", "models", 3, "is needed, not int"),
        ("interpolated", "models", ["bigrams", 3], "models or model folders are needed, not int"),
    ],
)
def test_other_kinds_are_refused(system: str, name: str, value: object, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        given(system, name, value)


def test_sentences_that_no_file_could_hold_are_refused() -> None:
    for sentence in ([], ["two words"], ["a\n"], [""]):
        with pytest.raises(CorpusFormatError) as caught:
            given("ngram", "corpus", [["a"], sentence])
        assert caught.value.code == "E_EMPTY_SENTENCE"
        assert "sentence 2 " in str(caught.value)


# -- everything together ------------------------------------------------------------------------

#: What is given, and how many sentences it has.
TRAININGS: dict[str, tuple[Callable[[], treelm.LanguageModel], int]] = {
    "a file of text": (functools.partial(train, "ngram", "train.txt"), 240),
    "files of text": (functools.partial(train, "ngram", ["train.txt", "dev.txt"]), 325),
    "sentences": (functools.partial(train, "ngram", SENTENCES, smoothing="kn"), 2),
    "trees for n-grams": (functools.partial(train, "ngram", TREES, smoothing="kn"), 2),
    "files of trees": (functools.partial(train, "hhmm", ["few.mrg", "fewer.mrg"], depth=2), 90),
    "trees": (functools.partial(train, "hhmm", TREES, min_count=1), 2),
    "trees for a grammar": (functools.partial(train, "pcfg", list(TREES)), 2),
    "trees for treelets": (functools.partial(train, "treelet", TREES), 2),
    "trees for heads": (functools.partial(train, "headlex", list(TREES)), 2),
    "trees for actions": (functools.partial(train, "slm", TREES, min_count=1), 2),
    "trees for latent annotations": (functools.partial(train, "pcfg_la", TREES, seed=1), 2),
    "sentences for topics": (functools.partial(train, "plsa", SENTENCES, topics=2), 2),
}


@pytest.mark.parametrize("name", TRAININGS)
def test_train_takes_what_people_have(name: str) -> None:
    make, sentences = TRAININGS[name]
    with quietly():
        model = make()
    assert model.summary()["sentences"] == sentences


def test_sentences_in_memory_give_the_model_of_their_file() -> None:
    with quietly():
        file = train("ngram", "two.txt", order=2, smoothing="kn")
        memory = train("ngram", SENTENCES, order=2, smoothing="kn")
    assert memory.score("it fell") == file.score("it fell")
    assert memory.corpora[0].sha256 == file.corpora[0].sha256
    assert memory.corpora[0].name == "<2 sentences in memory>"
    with quietly():
        trees, read = train("treelet", TREES), train("treelet", "two.mrg")
    assert trees.unigram_counts is not None
    assert trees.unigram_counts.tolist() == read.unigram_counts.tolist()  # type: ignore[union-attr]


def test_a_model_that_is_no_parser_is_no_parser() -> None:
    with quietly(), pytest.raises(UsageError, match="int is no parser"):
        train("treelet", TREES, parser=3)
    with quietly(), pytest.raises(UsageError, match=r"toy models do not parse|is no parser"):
        train("treelet", TREES, parser=ToyModel.of())
