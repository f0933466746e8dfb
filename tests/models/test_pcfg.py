"""The treebank grammar as a system: trained, saved, loaded, asked for trees and scores."""

from __future__ import annotations

import math
import pickle
import warnings
from pathlib import Path

import numpy as np
import pytest

from treelm.corpus.brackets import read_trees
from treelm.corpus.corpus import TextCorpus, TreeCorpus, TreeSentences
from treelm.corpus.vocabulary import Vocabulary
from treelm.corpus.vocabulary_rules import VocabularyRule, build_vocabulary
from treelm.errors import TreelmWarning, UnsupportedTask, UsageError
from treelm.grammar.parser_options import ParserOptions
from treelm.models.interface.model import Task
from treelm.models.interface.parser import ArrayParser, Parser
from treelm.models.pcfg.model import PcfgModel
from treelm.models.registry import load, train

SETTINGS = [
    {},
    {"binarization": "right"},
    {"vertical_order": 2},
    {"binarization": "head", "horizontal_order": 1, "vertical_order": 2, "merge_unary": True},
    {"binarization": "right", "horizontal_order": 2, "merge_unary": True},
    {"lexicon": "closed"},
]


def trained(sample_file: Path, **options: object) -> PcfgModel:
    model = train("pcfg", TreeCorpus((sample_file,)), **options)
    assert isinstance(model, PcfgModel)
    return model


@pytest.fixture(scope="module")
def model(sample_file: Path) -> PcfgModel:
    return trained(sample_file)


@pytest.mark.parametrize("options", SETTINGS, ids=str)
def test_every_setting_parses_saves_and_loads(
    options: dict[str, object], sample_file: Path, tmp_path: Path
) -> None:
    model = trained(sample_file, **options)
    assert isinstance(model, Parser)
    sentences = [tree.words for tree in list(read_trees(sample_file))[:12]] + [
        ("Frumious", "zzzings", "日本", "..."),
        (),
    ]
    parses = model.parse_many(sentences)
    for words, parse in zip(sentences, parses, strict=True):
        if not words:
            assert parse is None
            continue
        assert parse is not None
        assert parse.tree.words == words
        assert str(parse.tree.label) == "ROOT"
        assert not parse.is_fallback
        text = str(parse.tree)
        assert not any(mark in text for mark in ("@", "^", "~T"))
    model.save(tmp_path / "model")
    again = load(tmp_path / "model")
    assert isinstance(again, PcfgModel)
    assert again.config == model.config
    assert again.parse_many(sentences) == parses
    assert again.score(sentences[0]) == model.score(sentences[0])
    copy = pickle.loads(pickle.dumps(model))
    assert copy.parse_many(sentences[:2]) == parses[:2]


@pytest.mark.parametrize("options", SETTINGS, ids=str)
def test_lists_of_every_setting_are_of_treebank_trees(
    options: dict[str, object], sample_file: Path
) -> None:
    model = trained(sample_file, **options)
    assert isinstance(model, ArrayParser)
    sentences = [tree.words for tree in list(read_trees(sample_file))[:8]] + [("zzzings",), ()]
    arrays = model.k_best_many(sentences, 30)
    lists = [list(found or ()) for found in model.k_best_many(sentences, 30, threads=2)]
    for words, best, found, trees in zip(
        sentences, model.parse_many(sentences), arrays, lists, strict=True
    ):
        if best is None:
            assert (words, found, trees) == ((), None, [])
            continue
        assert found is not None
        assert [str(tree.tree) for tree in trees] == [str(tree) for tree in found.packed]
        assert len({str(tree.tree) for tree in trees}) == len(trees)
        assert (trees[0].score, str(trees[0].tree)) == (best.score, str(best.tree))
        assert {tree.tree.words for tree in trees} == {words}
        assert not any(
            c in str(node.label) for tree in trees for node in tree.tree.preorder() for c in "@+^"
        )
    assert max(map(len, lists)) > 10
    assert [str(tree.tree) for tree in model.parse(sentences[0], k=5)] == [
        str(tree.tree) for tree in lists[0][:5]
    ]


def test_trained_trees_come_back(sample_file: Path) -> None:
    """With much memory in its labels the grammar of one tree has that tree only."""
    trees = list(read_trees(sample_file))
    exact = 0
    model = trained(sample_file, vertical_order=3, binarization="right", horizontal_order=None)
    for tree in trees[:40]:
        parse = model.parse(tree.words)[0]
        exact += parse.tree == tree
    assert exact > 20


def test_threads_do_not_matter(model: PcfgModel, sample_file: Path) -> None:
    sentences = [tree.words for tree in read_trees(sample_file)][:80]
    one = model.parse_many(sentences, threads=1)
    assert model.parse_many(sentences, threads=4) == one
    scores = [score.log_prob for score in model.score_many(sentences, threads=1)]
    assert [score.log_prob for score in model.score_many(sentences, threads=3)] == scores


@pytest.mark.parametrize("decoding", ["max_rule_product", "viterbi"])
def test_each_tree_has_its_own_probability_beside_that_of_the_words(
    sample_file: Path, decoding: str
) -> None:
    model = trained(sample_file, decoding=decoding, vertical_order=2)
    words = next(tree.words for tree in read_trees(sample_file) if 6 <= len(tree.words) <= 8)
    found = model.parse(words, 10)
    assert len(found) > 3
    own = [each.tree_log_prob for each in found]
    assert own == model.tree_log_probs([each.tree for each in found]).tolist()
    assert len(set(own)) > 1
    assert len({each.sentence_log_prob for each in found}) == 1
    # The trees are some of those that the probability of the sentence sums over.
    assert np.logaddexp.reduce(own) <= model.score(words).log_prob + 1e-9
    if decoding == "viterbi":
        assert own == pytest.approx([each.score for each in found], abs=1e-4)
        assert own == sorted(own, reverse=True)


def test_pruning_is_a_matter_of_speed(model: PcfgModel, sample_file: Path) -> None:
    sentences = [tree.words for tree in read_trees(sample_file)][:40]
    everything = model.parse_many(sentences, options=ParserOptions(pruning="none"))
    exact = [model.score(words).log_prob for words in sentences]
    for pruning in ("fast", "default", "accurate"):
        parses = model.parse_many(sentences, options=ParserOptions(pruning=pruning))  # type: ignore[arg-type]
        same = 0
        for parse, whole, log_prob in zip(parses, everything, exact, strict=True):
            assert parse is not None
            assert whole is not None
            assert whole.sentence_log_prob == pytest.approx(log_prob, rel=1e-6)
            assert parse.sentence_log_prob <= log_prob + 1e-4
            same += parse.tree == whole.tree
        assert same >= 38


def test_scores_are_prefix_probabilities_without_the_end(sample_file: Path) -> None:
    model = trained(sample_file, lexicon="closed")
    words = next(iter(read_trees(sample_file))).words
    whole = model.score(words)
    assert whole.exactness == "exact"
    assert model.info.normalized
    before = 0.0
    for end in range(1, len(words) + 1):
        prefix = model.score(words[:end], eos=False).log_prob
        assert prefix <= before + 1e-9
        before = prefix
    assert whole.log_prob < before
    assert model.score("", eos=False).log_prob == 0.0
    assert math.isinf(model.score("").log_prob)


def test_next_words_add_up_to_one(sample_file: Path) -> None:
    """Over all words and the end, what follows a prefix has probability one."""
    model = trained(sample_file, lexicon="closed")
    prefix = list(next(iter(read_trees(sample_file))).words[:2])
    here = model.score(prefix, eos=False).log_prob
    symbols = model.vocabulary.symbols[1:]
    following = np.array(
        [score.log_prob for score in model.score_many([[*prefix, w] for w in symbols], eos=False)]
    )
    unknown = model.score([*prefix, "frumious"], eos=False).log_prob
    end = model.score(prefix).log_prob
    total = np.exp(following - here).sum() + math.exp(unknown - here) + math.exp(end - here)
    assert total == pytest.approx(1.0, abs=1e-6)


def test_a_vocabulary_of_signatures_is_used_in_training(sample_file: Path) -> None:
    corpus = TreeCorpus((sample_file,))
    rule = VocabularyRule(start_after=50, probability=0.5, seed=1)
    vocabulary = build_vocabulary(TreeSentences(corpus), rule)
    model = train("pcfg", corpus, lexicon="closed", vocabulary=vocabulary)
    assert model.vocabulary is vocabulary
    signature = next(
        index for index, item in enumerate(vocabulary.entries) if item.is_signature and item.count
    )
    assert model.unigram_counts is not None
    assert model.unigram_counts[signature] == vocabulary.entries[signature].count


def test_wrong_use_is_refused(sample_file: Path, model: PcfgModel, tmp_path: Path) -> None:
    corpus = TreeCorpus((sample_file,))
    for options in (
        {"vertical_order": 0},
        {"binarization": "up"},
        {"binarization": "head", "horizontal_order": None},
        {"beta": 0},
    ):
        with pytest.raises(UsageError, match="pcfg: "):
            train("pcfg", corpus, **options)
    with pytest.raises(UsageError, match="files of trees"):
        train("pcfg", TextCorpus((sample_file,)))
    with pytest.raises(UsageError, match="own vocabulary"):
        train("pcfg", corpus, vocabulary=Vocabulary.from_counts({"a": 1}))
    with pytest.raises(UsageError):
        model.parse("a", k=0)
    with pytest.raises(UnsupportedTask):
        model.require(Task.CLASSIFY)
    cyclic = tmp_path / "cyclic.mrg"
    cyclic.write_text("(ROOT (A (B (A (t x) (t y)))))\n(ROOT (A (t x) (t y)))\n")
    with pytest.warns(TreelmWarning, match="1 trees have a unary chain"):
        train("pcfg", TreeCorpus((cyclic,)))


def test_long_sentences_take_their_time_but_no_more(model: PcfgModel) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        words = ("the", "old", "ferry", "left", ",", "and") * 34
        parse = model.parse(words[:200])[0]
        assert parse.tree.words == words[:200]
        assert not parse.is_fallback
        assert model.parse(words)[0].is_fallback
