"""Every model is asked in the same way: the same arguments, and refusals that name who can."""

from __future__ import annotations

import inspect
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from tests.models.hhmm_cases import sample_model
from tests.models.latent_models import sample_corpus, small_latent
from tests.models.ngram_models import small_ngram
from tests.models.test_trigram_svm import data
from tests.models.toy_model import ToyModel
from tests.models.tree_models import LEFT, SHORT, ListParser, NodeConfig, NodeModel
from tests.models.treelet_models import small_treelet

from treelm.errors import UnsupportedTask, UsageError
from treelm.grammar.forest_file import ForestFile
from treelm.grammar.forest_format import ForestHeader
from treelm.grammar.forest_writer import open_forest
from treelm.models.interface.abilities import HasTopics, ask_for
from treelm.models.interface.cached_parser import CachedParser
from treelm.models.interface.model import LanguageModel, Task
from treelm.models.mixture.model import interpolate
from treelm.models.pcfg.model import PcfgModel
from treelm.models.registry import SYSTEMS, train
from treelm.models.tree_features.config import TreeFeaturesConfig
from treelm.models.tree_features.train import train_tree_features
from treelm.models.trigram_svm.config import TrigramSvmConfig
from treelm.models.trigram_svm.train import train_trigram_svm
from treelm.testing.contracts import laws

QUESTIONS = (
    "score",
    "score_many",
    "sentence_log_probs",
    "surprisal",
    "perplexity",
    "sample",
    "parse",
    "parse_many",
    "k_best_many",
    "classify",
    "classify_many",
    "decision",
    "with_parser",
    "pruned",
    "floored",
    "can",
    "require",
    "initial",
    "advance",
    "finish",
)


@cache
def grammar(**options: object) -> PcfgModel:
    model = train("pcfg", sample_corpus(), **options)
    assert isinstance(model, PcfgModel)
    return model


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> dict[str, LanguageModel]:
    folder = tmp_path_factory.mktemp("models")
    ngram = small_ngram(order=2)
    treelet = small_treelet(folder)
    return {
        "ngram": ngram,
        "pcfg": grammar(),
        "pcfg of known words": grammar(lexicon="closed"),
        "pcfg_la": small_latent(),
        "hhmm": sample_model(depth=2, beam_width=50),
        "hhmm by suffixes": sample_model(depth=2, beam_width=50, observation="bayes"),
        "treelet": treelet,
        "treelet with a parser": treelet.with_parser(grammar(), 3),
        "pruned": small_latent().pruned("fast"),
        "floored": ngram.floored(),
        "interpolated": interpolate([ngram, ngram], [0.5, 0.5]),
        "interpolated_sentences": interpolate([ngram, ngram.floored()], [0.5, 0.5]),
        "trigram_svm": train_trigram_svm(data(folder), TrigramSvmConfig(regularization=0.1)),
    }


@pytest.mark.parametrize("system", SYSTEMS)
@pytest.mark.parametrize("question", QUESTIONS)
def test_a_question_has_the_same_arguments_for_every_system(system: str, question: str) -> None:
    declared = inspect.signature(getattr(LanguageModel, question)).parameters
    found = inspect.signature(getattr(SYSTEMS[system].model_class, question)).parameters
    assert list(found)[: len(declared)] == list(declared)
    for name, parameter in declared.items():
        assert (found[name].kind, found[name].default) == (parameter.kind, parameter.default)
    for name in list(found)[len(declared) :]:
        assert found[name].kind is inspect.Parameter.KEYWORD_ONLY
        assert found[name].default is not inspect.Parameter.empty


def test_what_a_model_says_it_can_do_is_what_it_does(models: dict[str, LanguageModel]) -> None:
    (law,) = (law for law in laws("model") if law.code == "tasks")
    for model in models.values():
        law.check(model, [("The", "ferry", "left", ".")])


def test_obstacles_have_stable_codes(models: dict[str, LanguageModel]) -> None:
    codes = {
        ("treelet", Task.SURPRISAL): "E_NOT_INCREMENTAL",
        ("treelet", Task.SCORE): "E_NO_PARSER",
        ("treelet", Task.PERPLEXITY): "E_NO_PARSER",
        ("treelet", Task.PARSE): "E_UNSUPPORTED_TASK",
        ("treelet with a parser", Task.SCORE): None,
        ("hhmm by suffixes", Task.PERPLEXITY): "E_NOT_NORMALIZED",
        ("pcfg", Task.PERPLEXITY): "E_NOT_NORMALIZED",
        ("pcfg", Task.SAMPLE): "E_NOT_NORMALIZED",
        ("pcfg of known words", Task.SAMPLE): None,
        ("pcfg of known words", Task.PERPLEXITY): None,
        ("trigram_svm", Task.PERPLEXITY): "E_NOT_NORMALIZED",
        ("trigram_svm", Task.SAMPLE): "E_UNSUPPORTED_TASK",
        ("ngram", Task.CLASSIFY): "E_UNSUPPORTED_TASK",
        ("interpolated_sentences", Task.DECODE): "E_NOT_INCREMENTAL",
    }
    assert {key: models[key[0]].obstacle(key[1]) for key in codes} == codes
    with pytest.raises(
        UnsupportedTask, match=r"parse sentences: pcfg, pcfg_la, hhmm, tree_ranker\."
    ):
        models["ngram"].parse("a")
    with pytest.raises(UnsupportedTask, match=r"lsvm, trigram_svm, tree_features\."):
        models["pcfg"].decision("a")


def test_one_sentence_has_the_score_it_has_among_others(models: dict[str, LanguageModel]) -> None:
    sentences = ["The ferry left .", "The old man saw the boat .", "zzz"]
    for name, model in models.items():
        if not model.can(Task.SCORE):
            continue
        alone = [model.score(sentence) for sentence in sentences]
        together = list(model.score_many(sentences, threads=2))
        for one, other in zip(alone, together, strict=True):
            assert one.log_prob == pytest.approx(other.log_prob, rel=1e-12), name
            assert (one.trees, one.fallback) == (other.trees, other.fallback), name
            assert (one.exactness, one.eos) == (other.exactness, other.eos), name
            assert (one.words is None) == (other.words is None), name
        values = model.sentence_log_probs(sentences, threads=2)
        assert values.tolist() == pytest.approx([score.log_prob for score in together]), name


def test_a_classifier_says_what_it_thinks_of_a_sentence(tmp_path: Path) -> None:
    model = train_trigram_svm(data(tmp_path), TrigramSvmConfig(regularization=0.1))
    good, bad = model.classify_many(["the a sees the b", "b the sees a the"], threads=2)
    assert (good.label, bad.label) == ("good", "bad")
    assert good.margin > 0 > bad.margin
    assert good.probability > 0.5 > bad.probability
    assert model.classify("the a sees the b") == good
    assert model.decision("the a sees the b") == good.margin
    assert good.probability == model.calibration.probabilities(np.array([good.margin]))[0]


def test_perplexity_is_that_of_the_scores(models: dict[str, LanguageModel]) -> None:
    text = ["The ferry left .", "The old man saw the boat ."]
    names = ("ngram", "pcfg of known words", "hhmm", "interpolated", "interpolated_sentences")
    for name in names:
        total = sum(models[name].sentence_log_probs(text))
        found = models[name].perplexity(text, threads=2)
        assert found.perplexity == pytest.approx(np.exp(-total / (11 + 2))), name
        assert (found.tokens, found.sentences) == (11, 2)
    with pytest.raises(UsageError, match="not one string"):
        models["ngram"].perplexity("text.txt")


# -- parsers --------------------------------------------------------------------------------


def test_a_parser_that_gives_too_few_trees_is_refused_at_once(tmp_path: Path) -> None:
    hhmm = sample_model(depth=2, beam_width=50)
    assert (hhmm.most_trees, grammar().most_trees, small_ngram(order=2).most_trees) == (1, None, 0)
    model = NodeModel(NodeConfig())
    assert model.k == 1000
    with pytest.raises(UsageError, match=r"hhmm.*at most 1 tree .*1000.*pcfg, pcfg_la;"):
        model.with_parser(hhmm)
    with pytest.raises(UsageError, match="at most 1 tree"):
        model.with_parser(hhmm, k=2)
    assert model.with_parser(hhmm, k=1).parser is hhmm
    assert model.with_parser(grammar()).k == 1000
    with pytest.raises(UsageError, match=r"ngram models do not parse.*pcfg, pcfg_la"):
        model.with_parser(small_ngram(order=2), k=1)
    for k, most in ((1, 1), (5, None)):
        path = tmp_path / f"{k}.forest"
        sentences = [("The", "ferry", "left", ".")]
        with open_forest(path, ForestHeader(k=k, parser="pcfg", options={})) as writer:
            writer.add(sentences, grammar().k_best_many(sentences, k))
            writer.finish()
        with ForestFile(path) as file:
            parser = CachedParser(file)
            assert parser.most_trees == most
            if most is None:
                assert model.with_parser(parser).parser is parser
            else:
                with pytest.raises(UsageError, match=r"CachedParser.*at most 1 tree"):
                    model.with_parser(parser)


def test_models_that_need_no_parser_refuse_one() -> None:
    for model in (small_ngram(order=2), grammar(), sample_model(depth=2, beam_width=50)):
        assert model.parser is None
        with pytest.raises(UsageError, match=r"need no parser.*treelet, headlex, tree_features"):
            model.with_parser(grammar())


def test_a_classifier_by_trees_judges_the_best_tree(tmp_path: Path) -> None:
    parser = ListParser({"the a": [LEFT]})
    config = TreeFeaturesConfig(min_sentences=1)
    model = train_tree_features(data(tmp_path), config, parser=parser).without_parser()
    assert model.parser is None
    assert (model.obstacle(Task.CLASSIFY), model.can(Task.SCORE)) == ("E_NO_PARSER", False)
    with pytest.raises(UnsupportedTask) as caught:
        model.classify("the a")
    assert caught.value.code == "E_NO_PARSER"
    hhmm = sample_model(depth=2, beam_width=50)
    assert model.with_parser(hhmm).can(Task.CLASSIFY)
    assert model.with_parser(hhmm, k=1).parser is hhmm
    with pytest.raises(UsageError, match="the best tree of a sentence, not 2"):
        model.with_parser(hhmm, k=2)
    with pytest.raises(UsageError, match="ngram models do not parse"):
        model.with_parser(small_ngram(order=2))


# -- variants and abilities -----------------------------------------------------------------


def test_variants_of_other_systems_are_refused_by_name() -> None:
    ngram = small_ngram(order=2)
    with pytest.raises(UsageError, match=r"no charts to prune.*pcfg, pcfg_la\."):
        ngram.pruned("fast")
    with pytest.raises(UsageError, match=r"no search with beam_width\. .*: hhmm;"):
        ngram.with_search(beam_width=3)
    with pytest.raises(UnsupportedTask, match=r"quantised\. .*ngram, .*treelet, .*interpolated"):
        ToyModel.of().quantized(8)
    with pytest.raises(UnsupportedTask, match=r"do not have topics\. .*: composite, plsa\."):
        ask_for(ngram, HasTopics, "have topics")
    assert ngram.floored(0.01).scoring_parts == {"floor": 0.01}
    both = small_latent().pruned("fast").floored(0.01)
    assert both.scoring_parts == {"floor": 0.01, "pruning": "fast"}


def test_views_take_as_many_sentences_as_their_model() -> None:
    model = NodeModel(NodeConfig()).with_parser(ListParser({"a": [SHORT]}))
    assert model.sums_over_trees
    assert (model.sentences_at_once, small_ngram(order=2).sentences_at_once) == (64, 4096)
    assert not grammar().sums_over_trees
    assert (grammar().floored().sentences_at_once, grammar().incremental) == (4096, grammar())
    assert grammar().floored().incremental is None
