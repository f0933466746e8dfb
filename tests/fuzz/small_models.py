"""The smallest models of every system, in a few variants: what the forger begins with.

They are trained on a few short trees of the packaged treebank. Classifiers are put together with
weights of their own, so that no optional package is needed to make them.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from functools import cache
from typing import Any

import numpy as np

from treelm import _native
from treelm.corpus.sample_treebank import sample_treebank
from treelm.corpus.vocabulary import Vocabulary
from treelm.errors import TreelmWarning
from treelm.models.interface.calibration import Calibration
from treelm.models.interface.model import LanguageModel
from treelm.models.lsvm.config import LatentSvmConfig
from treelm.models.lsvm.features import LatentFeatures
from treelm.models.lsvm.grammar import read_grammar
from treelm.models.lsvm.model import LatentSvmModel
from treelm.models.registry import train
from treelm.models.tree_features.config import FeatureSet, TreeFeaturesConfig
from treelm.models.tree_features.features import best_parses, tree_features
from treelm.models.tree_features.fragments import FragmentGrammar
from treelm.models.tree_features.model import TreeFeaturesModel
from treelm.models.tree_features.rerank import rerank_features
from treelm.models.tree_ranker.config import TreeRankerConfig
from treelm.models.tree_ranker.model import TreeRankerModel
from treelm.models.trigram_svm.config import TrigramSvmConfig
from treelm.models.trigram_svm.model import TrigramSvmModel, ngram_keys
from treelm.seeds import generator
from treelm.trees.heads import find_heads
from treelm.trees.tree import Tree

_SHORTEST, _TRAINING, _HELD_OUT = 4, 14, 4
_CALIBRATION = Calibration(1.5, 0.0)


@cache
def trees() -> tuple[Tree, ...]:
    """Return short trees: those for training, then those held out."""
    long_enough = [tree for tree in sample_treebank() if len(tree.words) >= _SHORTEST]
    return tuple(sorted(long_enough, key=lambda tree: len(tree.words))[: _TRAINING + _HELD_OUT])


def few() -> list[Tree]:
    """Return the trees for training."""
    return list(trees()[:_TRAINING])


def held_out() -> list[Tree]:
    """Return the trees held out."""
    return list(trees()[_TRAINING:])


def sentences(found: Iterable[Tree]) -> list[list[str]]:
    """Return the words of trees."""
    return [list(tree.words) for tree in found]


def _ngram(**options: Any) -> LanguageModel:
    return train("ngram", sentences(few()), **options)


@cache
def _words() -> Vocabulary:
    return _ngram(order=3).vocabulary


@cache
def _grammar(lexicon: str = "berkeley") -> LanguageModel:
    return train("pcfg", few(), lexicon=lexicon)


def _pcfg_la(**options: Any) -> LanguageModel:
    rounds = {"split_iterations": 2, "merge_iterations": 1, "smooth_iterations": 1, "seed": 1}
    return train("pcfg_la", few(), cycles=1, **rounds, **options)


def _hhmm(**options: Any) -> LanguageModel:
    return train("hhmm", few(), depth=2, beam_width=20, **options)


def _composite(system: str = "composite", **options: Any) -> LanguageModel:
    small = {"iterations": 0, "follow_up": 0, "stack_size": 3, "n_best": 2}
    return train(system, few(), held_out=held_out(), **small, **options)


def _topics(system: Callable[..., LanguageModel], **options: Any) -> LanguageModel:
    return system(topics=3, keep_topics=2, test_topics=2, seed=1, **options)


def _plsa(**options: Any) -> LanguageModel:
    rounds = {"iterations": 1, "plsa_iterations": 2}
    return train("plsa", sentences(few()), **rounds, **options)


def _weights(count: int) -> np.ndarray:
    return generator(1, count).normal(size=count)


def _lsvm(*, fixed: bool = False, **options: Any) -> LanguageModel:
    config = LatentSvmConfig(rounds=0, fixed_trees=fixed, **options)
    grammar = read_grammar(few(), config)
    features = LatentFeatures(grammar)
    features.add({(int(tag), word) for tag in grammar.class_tags[:2, 0] for word in ("eel", "oar")})
    frequencies = grammar.frequencies if fixed else None
    return LatentSvmModel(
        features, _weights(len(features)), config, _CALIBRATION, fixed=frequencies, accuracies=[0.5]
    )


def _trigram_svm(kernel: str) -> LanguageModel:
    text = sentences(few())
    vocabulary = Vocabulary.from_counts({word: 1 for words in text for word in words})
    ngrams = np.unique(ngram_keys(text, vocabulary)[0])
    tables = {"offset": np.array([0.25]), "accuracy": np.array([0.5])}
    if kernel == "linear":
        tables["weights"] = _weights(len(ngrams))
    else:
        count, width = 3, 4
        places = np.sort(generator(2, 0).integers(0, len(ngrams), (count, width)), axis=1)
        tables["weights"] = _weights(count)
        tables["landmarks.starts"] = np.arange(count + 1) * width
        tables["landmarks.features"] = places.astype(np.int32).ravel()
        tables["landmarks.values"] = np.full(count * width, 0.5)
    config = TrigramSvmConfig.model_validate({"kernel": kernel, "regularization": 1.0})
    return TrigramSvmModel(vocabulary, ngrams, tables, config, calibration=_CALIBRATION)


def _tree_features(features: FeatureSet) -> LanguageModel:
    config = TreeFeaturesConfig(features=features, min_sentences=1, sweeps=1, min_fragment=1)
    grammar = FragmentGrammar.sample(few(), config) if features == "tsg" else None
    text = sentences(few()[:4])
    parses = best_parses(_grammar(), text, config)
    names = sorted({name for row in tree_features(parses, config, grammar) for name in row})
    return TreeFeaturesModel(
        names[:150],
        _weights(len(names[:150])),
        0.25,
        config,
        calibration=_CALIBRATION,
        vocabulary=Vocabulary.from_counts({word: 1 for words in text for word in words}),
        grammar=grammar,
        parser=_grammar(),
    )


def _tree_ranker() -> LanguageModel:
    names = sorted({name for tree in few()[:4] for name in rerank_features(find_heads(tree))})
    features = np.unique([_native.rank_feature_hash(name) for name in names]).astype(np.uint64)
    return TreeRankerModel(
        features[:150],
        _weights(150).astype(np.float32),
        TreeRankerConfig(k=3, regularization=1.0),
        vocabulary=Vocabulary.from_counts({word: 1 for tree in few() for word in tree.words}),
        parser=_grammar(),
        f1=(0.5, 0.75),
    )


def _mixture(system: str, *parts: Callable[[], LanguageModel]) -> LanguageModel:
    share = 1 / len(parts)
    return train(system, [part() for part in parts], weights=(share,) * len(parts))


_PLAIN = {"ngram": lambda: _ngram(order=2, vocabulary=_words())}
#: What makes the models of each system; the plainest first.
MAKERS: dict[str, tuple[Callable[[], LanguageModel], ...]] = {
    "ngram": (
        lambda: _ngram(order=3),
        lambda: _ngram(order=2, smoothing="jm", held_out=sentences(held_out())),
        lambda: _ngram(order=3, bits=8, min_count=(1, 1, 2)),
        lambda: _ngram(order=3, layout="compact"),
        lambda: _ngram(order=3, layout="compact", bits=5),
        lambda: _ngram(order=1, smoothing="kn"),
        lambda: _ngram(order=3, smoothing="berkeley"),
        lambda: _ngram(order=2, unknown="spelling"),
    ),
    "pcfg": (_grammar, lambda: _grammar("closed")),
    "pcfg_la": (
        lambda: _pcfg_la(lexicon="closed"),
        _pcfg_la,
        lambda: _pcfg_la().quantized(8),
        lambda: _pcfg_la(dictionary=few(), dictionary_min_count=1),
        lambda: _pcfg_la(dictionary=few(), dictionary_min_count=1).quantized(8),
    ),
    "hhmm": (
        _hhmm,
        lambda: _hhmm(observation="signature", estimation="counts"),
        lambda: _hhmm(observation="bayes", precision="exact"),
        lambda: _hhmm(word_context=2, tag_context=1),
        lambda: _hhmm(observation="signature", unknown="spelling"),
    ),
    "slm": (lambda: _composite("slm"), lambda: _composite("slm", heads=1, unary_moves=True)),
    "composite": (
        lambda: _topics(_composite, order=2, heads=1),
        lambda: _composite(order=2, heads=0),
        lambda: _topics(_composite, order=1, heads=2),
    ),
    "plsa": (lambda: _topics(_plsa, order=2), lambda: _topics(_plsa, order=1, adapt=False)),
    "treelet": (
        lambda: train("treelet", few(), parser=_grammar(), k=2),
        lambda: train("treelet", few(), smoothing="jm", held_out=held_out()),
        lambda: train("treelet", few(), variant="rule", vocabulary=_words()),
        lambda: train("treelet", few(), layout="compact"),
    ),
    "headlex": (
        lambda: train("headlex", few(), parser=_grammar(), k=2),
        lambda: train("headlex", few(), smoothing="mkn"),
    ),
    "lsvm": (
        _lsvm,
        lambda: _lsvm(fixed=True),
        lambda: _lsvm(grammar="uninformed", vertical_order=1, horizontal_order=0),
    ),
    "trigram_svm": (lambda: _trigram_svm("linear"), lambda: _trigram_svm("poly")),
    "tree_features": (
        lambda: _tree_features("cfg"),
        lambda: _tree_features("tsg"),
        lambda: _tree_features("rerank"),
    ),
    "tree_ranker": (_tree_ranker,),
    "interpolated": (
        lambda: _mixture("interpolated", _PLAIN["ngram"], lambda: _hhmm(vocabulary=_words())),
        lambda: _mixture(
            "interpolated", _PLAIN["ngram"], lambda: _topics(_plsa, vocabulary=_words())
        ),
    ),
    "interpolated_sentences": (
        lambda: _mixture(
            "interpolated_sentences", _PLAIN["ngram"], lambda: _hhmm(vocabulary=_words())
        ),
    ),
}


def make_models(system: str) -> list[LanguageModel]:
    """Return the small models of a system."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TreelmWarning)  # small data are poor data
        return [make() for make in MAKERS[system]]
