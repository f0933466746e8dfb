"""Models of trees: sums over a parser's trees, the parser they hold, and exact tree scores."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest
from tests.models.latent_models import small_latent
from tests.models.ngram_models import small_ngram
from tests.models.tree_models import (
    LEFT,
    RIGHT,
    SHORT,
    BatchListParser,
    ListParser,
    NodeConfig,
    NodeModel,
)
from tests.models.treelet_models import small_treelet

from treelm.corpus.brackets import read_trees
from treelm.corpus.corpus import TreeCorpus
from treelm.errors import ModelFileError, UnsupportedTask, UsageError
from treelm.grammar.k_best import KBest
from treelm.grammar.parser_options import ParserOptions
from treelm.grammar.scored_tree import ScoredTree
from treelm.models.interface.tree_model import PARSER_PART
from treelm.models.pcfg.model import PcfgModel
from treelm.models.registry import train
from treelm.trees.tree import Tree

TREES = {"a b a": [LEFT, RIGHT, LEFT], "a": [SHORT]}


@pytest.mark.parametrize("kind", [ListParser, BatchListParser])
def test_a_sentence_is_the_sum_over_its_distinct_trees(kind: type[ListParser]) -> None:
    model = NodeModel(NodeConfig()).with_parser(kind(TREES), k=10)
    both, one, none = model.score_many(["a b a", "a", ""])
    assert both.log_prob == pytest.approx(math.log(2 * 0.5**6))
    assert (both.trees, both.exactness, both.fallback) == (2, "lower_bound", False)
    assert one.log_prob == pytest.approx(2 * math.log(0.5))
    assert none.log_prob == -math.inf
    assert (none.trees, none.fallback) == (0, True)
    assert model.score("a b a") == both
    assert model.sentence_log_probs(["a", "a b a"]).tolist() == [one.log_prob, both.log_prob]


def test_the_trees_of_a_grammar_are_summed_without_being_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = small_treelet(tmp_path).with_parser(small_latent(), k=5)
    sentences = ["The ferry left .", "The old doctor saw her ."]
    expected = list(
        model.score_lists([list(model.parser.k_best_many([words], 5)[0]) for words in sentences])
    )
    assert all(score.trees > 1 for score in expected)
    assert not any(score.fallback for score in expected)

    def make(*_: object) -> None:
        raise AssertionError("trees are arrays here; to make them takes longer than the search")

    monkeypatch.setattr(KBest, "_trees", make)
    assert list(model.score_many(sentences)) == expected


def test_k_is_what_the_parser_is_asked_for() -> None:
    parser = ListParser(TREES)
    model = NodeModel(NodeConfig(k=3)).with_parser(parser)
    assert model.k == 3
    fewer = model.with_parser(parser, k=1)
    assert (fewer.k, model.k) == (1, 3)
    assert fewer.score("a b a").trees == 1
    assert parser.asked == [1]
    with pytest.raises(UsageError, match="at least one tree"):
        model.with_parser(parser, k=0)


def test_what_stands_in_for_a_parse_is_flagged() -> None:
    model = NodeModel(NodeConfig()).with_parser(ListParser(TREES))
    flat = model.score("b b")
    assert flat.fallback
    assert flat.log_prob == pytest.approx(3 * math.log(0.5))
    assert model.score("b zebra").log_prob == -math.inf


def test_without_a_parser_only_trees_have_scores() -> None:
    model = NodeModel(NodeConfig())
    assert model.parser is None
    assert model.tree_log_probs([SHORT]).tolist() == pytest.approx([math.log(0.25)])
    with pytest.raises(UnsupportedTask, match="with_parser") as caught:
        model.score("a")
    assert caught.value.code == "E_NO_PARSER"
    with pytest.raises(UnsupportedTask, match="end included"):
        model.with_parser(ListParser(TREES)).score("a", eos=False)
    with pytest.raises(UsageError, match="no method `parse`"):
        model.with_parser("grammar")  # type: ignore[arg-type]


def test_lists_of_any_parser_can_be_scored() -> None:
    lists = [[ScoredTree(tree, 0.0, 0.0) for tree in trees] for trees in TREES.values()]
    found = list(NodeModel(NodeConfig()).score_lists(lists))
    assert [score.trees for score in found] == [2, 1]


def test_a_parser_that_is_a_model_is_saved(sample_file: Path, tmp_path: Path) -> None:
    grammar = train("pcfg", TreeCorpus((sample_file,)))
    assert isinstance(grammar, PcfgModel)
    model = NodeModel(NodeConfig()).with_parser(grammar, k=1)
    words = next(iter(read_trees(sample_file))).words
    model.save(tmp_path / "model")
    again = NodeModel.load(tmp_path / "model")
    assert again.k == 1
    assert isinstance(again.parser, PcfgModel)
    assert again.parser.parse(words) == grammar.parse(words)
    model.without_parser().save(tmp_path / "bare")
    assert NodeModel.load(tmp_path / "bare").parser is None
    with pytest.raises(UsageError, match="without_parser"):
        model.with_parser(ListParser(TREES)).save(tmp_path / "list")


def test_a_part_that_does_not_parse_is_refused(tmp_path: Path) -> None:
    class Forged(NodeModel):
        def write_parser(self, writer) -> None:  # type: ignore[no-untyped-def]
            small_ngram(order=2).save(writer.part(PARSER_PART))

    Forged(NodeConfig()).save(tmp_path / "model")
    with pytest.raises(ModelFileError, match="does not parse"):
        NodeModel.load(tmp_path / "model")


# -- grammars score trees exactly -----------------------------------------------------------


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"binarization": "right", "horizontal_order": 2, "merge_unary": True},
        {"binarization": "head", "horizontal_order": 1, "vertical_order": 2},
        {"lexicon": "closed"},
    ],
    ids=str,
)
def test_viterbi_trees_have_the_scores_of_their_derivations(
    options: dict[str, object], sample_file: Path
) -> None:
    model = train("pcfg", TreeCorpus((sample_file,)), **options)
    assert isinstance(model, PcfgModel)
    sentences = [*[tree.words for tree in read_trees(sample_file)][:25], ("Gyre", "gimbles", ".")]
    viterbi = ParserOptions(decoding="viterbi", pruning="none")
    parses = [parse for parse in model.parse_many(sentences, options=viterbi) if parse]
    joint = model.tree_log_probs([parse.tree for parse in parses])
    assert joint.tolist() == pytest.approx([parse.score for parse in parses], rel=1e-5)
    posterior = model.tree_log_posteriors([parse.tree for parse in parses])
    exact = model.sentence_log_probs(sentences)
    assert posterior.tolist() == pytest.approx((joint - exact).tolist())
    assert (posterior <= 1e-9).all()


def test_what_a_grammar_cannot_make_is_impossible(sample_file: Path) -> None:
    model = train("pcfg", TreeCorpus((sample_file,)))
    assert isinstance(model, PcfgModel)
    good = next(iter(read_trees(sample_file)))
    bad = [
        Tree("ROOT", [Tree("NEWPHRASE", [Tree("DT", "the")])]),
        Tree("ROOT", [Tree("NEWTAG", "the")]),
        Tree("S", [Tree("NP", [Tree("DT", "the")])]),
        Tree.from_string("(ROOT (NP (VP (NP (NN dog)))))"),
    ]
    found = model.tree_log_probs([*bad, good, bad[0]])
    assert np.isneginf(found[[0, 1, 2, 3, 5]]).all()
    assert found[4] == pytest.approx(float(model.tree_log_probs([good])[0]), rel=1e-12)
    assert np.isneginf(model.tree_log_posteriors(bad)).all()
    assert model.tree_log_probs([]).tolist() == []


def test_subcategories_are_summed_over(sample_file: Path) -> None:
    model = small_latent()
    sentences = [tree.words for tree in read_trees(sample_file) if len(tree.words) < 8][:10]
    trees = [parse.tree for parse in model.parse_many(sentences) if parse]
    joint = model.tree_log_probs(trees)
    assert np.isfinite(joint).all()
    posterior = model.tree_log_posteriors(trees, threads=2)
    assert ((posterior < 1e-9) & (posterior > -10)).all()
    short = Tree.from_string("(ROOT (INTJ (UH Yes)))")
    exact = model.tree_log_probs([short])[0]
    assert exact == pytest.approx(_by_hand(short), abs=1e-9) or exact == -math.inf


def _by_hand(tree: Tree) -> float:
    """Return the log of the sum over the subcategories of a chain of unary rules and one tag."""
    model = small_latent()
    grammar, symbols = model.grammar, list(model.grammar.symbols)
    chain = [symbols.index(str(node.label)) for node in tree.preorder()]
    rules = [tuple(rule) for rule in grammar.unary_rules.tolist()]
    if (chain[0], chain[1]) not in rules or (chain[1], chain[2]) not in rules:
        return -math.inf
    word_id = int(model.vocabulary.encode(tree.words)[0])
    vector = dict(model.lexicon.scores(word_id)).get(chain[2], np.zeros(1))
    for above, below in ((chain[1], chain[2]), (chain[0], chain[1])):
        vector = grammar.unary_block(rules.index((above, below))) @ vector
    return float(np.log(vector[0]))


def test_the_number_of_trees_stands_in_the_manifest(tmp_path: Path) -> None:
    NodeModel(NodeConfig(k=17)).save(tmp_path / "model")
    manifest = json.loads((tmp_path / "model" / "manifest.json").read_text())
    assert manifest["config"]["k"] == 17
