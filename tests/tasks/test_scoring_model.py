"""Models made ready for scoring: parsers given, charts pruned, floors put in."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.models.latent_models import sample_corpus
from tests.models.ngram_models import small_ngram
from tests.models.tree_models import LEFT, RIGHT, NodeConfig, NodeModel

from treelm.corpus.lengths import TooLongSentence
from treelm.errors import CorpusFormatError, UnsupportedTask, UsageError
from treelm.grammar.forest_format import ForestHeader
from treelm.grammar.forest_writer import open_forest
from treelm.grammar.k_best import text_of
from treelm.models.interface.scores import Sample
from treelm.models.interface.tree_model import TreeModel
from treelm.models.open_parser import open_parser
from treelm.models.pcfg.model import PcfgModel
from treelm.models.registry import load, train
from treelm.models.treelet.model import TreeletModel
from treelm.tasks.sample import SamplingReport, sample_sentences
from treelm.tasks.score import score_lines
from treelm.tasks.score_trees import score_k_best_lists, score_trees, tree_scorer
from treelm.tasks.scoring_model import scoring_model
from treelm.trees.tree import Tree


@pytest.fixture(scope="module")
def grammar(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models") / "pcfg"
    train("pcfg", sample_corpus(), lexicon="closed").save(folder)
    return folder


@pytest.fixture
def lists(tmp_path: Path) -> Path:
    path = tmp_path / "lists"
    path.write_text(f"-1\t{LEFT}\n-2\t{RIGHT}\n\n")
    return path


def test_a_file_of_parses_stands_in_for_a_parser(lists: Path) -> None:
    model = scoring_model(NodeModel(NodeConfig()), parser=lists, k=1)
    assert isinstance(model, TreeModel)
    assert model.score("a b a").trees == 1
    both = scoring_model(NodeModel(NodeConfig()), parser=lists)
    assert both.score("a b a").trees == 2
    with pytest.raises(UsageError, match="no trees of the sentence"):
        both.score("b b")


def test_a_grammar_is_a_parser(grammar: Path) -> None:
    parser = open_parser(grammar)
    assert isinstance(parser, PcfgModel)
    model = scoring_model(NodeModel(NodeConfig()), parser=grammar, k=7)
    assert isinstance(model, TreeModel)
    assert model.k == 7
    more = scoring_model(model, k=9)
    assert isinstance(more, TreeModel)
    assert (more.k, more.parser) == (9, model.parser)


def test_what_makes_no_sense_is_refused(grammar: Path, tmp_path: Path) -> None:
    pcfg = open_parser(grammar)
    assert isinstance(pcfg, PcfgModel)
    ngram = small_ngram(order=2)
    ngram.save(tmp_path / "ngram")
    with pytest.raises(UsageError, match=r"need no parser.*treelet, headlex, tree_features"):
        scoring_model(pcfg, parser=grammar)
    with pytest.raises(UsageError, match=r"no charts.*pcfg, pcfg_la"):
        scoring_model(ngram, pruning="fast")
    with pytest.raises(UnsupportedTask, match="parse"):
        open_parser(tmp_path / "ngram")
    with pytest.raises(UnsupportedTask, match=r"do not give trees probabilities.*pcfg_la"):
        tree_scorer(ngram)
    with pytest.raises(UnsupportedTask, match="do not sum over all trees"):
        next(score_trees(NodeModel(NodeConfig()), tmp_path / "x", posterior=True))


def test_a_packed_file_is_a_parser_and_a_list(grammar: Path, tmp_path: Path) -> None:
    model = load(grammar)
    assert isinstance(model, PcfgModel)
    path = tmp_path / "two.forest"
    header = ForestHeader(k=5, parser="pcfg", options={})
    sentences = [("The", "old", "ferry", "left", "."), ()]
    with open_forest(path, header) as writer:
        writer.add(sentences, model.k_best_many(sentences, 5))
        writer.finish()
    parser = open_parser(path)
    expected = [each._replace(tree_log_prob=np.nan) for each in model.parse(sentences[0], 5)]
    assert repr(parser.parse(sentences[0], 5)) == repr(expected)
    first, second = score_k_best_lists(model, path)
    assert second is None
    assert first is not None
    (again,) = model.score_lists([model.parse(sentences[0], 5)])
    assert first.log_prob == pytest.approx(again.log_prob)


def test_lists_are_scored_without_an_object_for_every_tree(
    grammar: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As text and as a file of parses, cut or not; what trees as objects give is the oracle."""
    parser = load(grammar)
    assert isinstance(parser, PcfgModel)
    model = train("treelet", sample_corpus())
    assert isinstance(model, TreeletModel)
    sentences = [("The", "old", "ferry", "left", "."), ("The", "old", "ferry", "came", ".")]
    found = parser.k_best_many(sentences, 20)
    text, forest = tmp_path / "lists", tmp_path / "lists.forest"
    text.write_bytes(text_of(found))
    with open_forest(forest, ForestHeader(k=20, parser="pcfg", options={})) as writer:
        writer.add(sentences, found)
        writer.finish()
    trees = [list(each or ()) for each in found]
    assert min(map(len, trees)) > 3
    made = 0
    make = Tree.__init__

    def count(self: Tree, *arguments: Any, **options: Any) -> None:
        nonlocal made
        made += 1
        make(self, *arguments, **options)

    for k in (None, 3):
        expected = [score.log_prob for score in model.score_lists([each[:k] for each in trees])]
        with monkeypatch.context() as patch:
            patch.setattr(Tree, "__init__", count)
            made = 0
            for source in (text, forest):
                scores = list(score_k_best_lists(model, source, k=k))
                assert [score and score.log_prob for score in scores] == expected
            with_lists = model.with_parser(open_parser(text), k or 20)
            assert [each.log_prob for each in with_lists.score_many(sentences)] == expected
            assert made == 0
            Tree("NN", "ferry")
            assert made == 1


def test_lists_are_summed(lists: Path) -> None:
    (score,) = score_k_best_lists(NodeModel(NodeConfig()), lists)
    assert score is not None
    assert score.log_prob == pytest.approx(np.log(2 * 0.5**6))


def test_lengths_that_hardly_occur_are_refused(
    grammar: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = open_parser(grammar)
    assert isinstance(model, PcfgModel)
    report = SamplingReport()
    found = list(sample_sentences(model, 5, seed=1, min_words=4, max_words=8, report=report))
    assert all(isinstance(each, Sample) and 4 <= len(each.words) <= 8 for each in found)
    assert report.drawn == 5 + report.too_long + report.too_short
    ngram = small_ngram(order=2)
    cut = SamplingReport()
    assert len(list(sample_sentences(ngram, 9, max_words=2, report=cut))) == 9
    assert cut.cut > 0
    kept = SamplingReport()
    whole = list(sample_sentences(ngram, 9, max_words=6, reject=True, report=kept))
    assert all(each.complete for each in whole)
    assert kept.too_long > 0
    monkeypatch.setattr("treelm.tasks.sample._MOST_DRAWS", 50)
    with pytest.raises(UsageError, match="Choose lengths that occur"):
        list(sample_sentences(model, 1, min_words=2999, max_words=3000))


def test_sentences_that_are_too_long_have_a_line(
    grammar: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("treelm.models.pcfg.grammar_model.WORK_LIMIT", 1000)
    model = load(grammar)
    lines = ["left .", "", "the old ferry " * 20]
    with pytest.raises(
        CorpusFormatError, match=r"text\.txt:3: this sentence has 60 words"
    ) as caught:
        list(score_lines(model, lines, source="text.txt"))
    assert (caught.value.code, caught.value.line) == ("E_TOO_LONG", 3)
    with pytest.raises(TooLongSentence) as found:
        model.sentence_log_probs(lines)
    again = pickle.loads(pickle.dumps(found.value))
    assert (again.place, again.words, again.code) == (2, 60, "E_TOO_LONG")
