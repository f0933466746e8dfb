"""Models of one treebank over one vocabulary, and the scores that all of them give to sentences."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice

import numpy as np
import numpy.typing as npt

from treelm.corpus.corpus import TreeCorpus, TreeSentences
from treelm.corpus.vocabulary import Vocabulary
from treelm.corpus.vocabulary_rules import VocabularyRule, build_vocabulary
from treelm.grammar.scored_tree import ScoredTree
from treelm.models.headlex.config import HeadlexConfig
from treelm.models.headlex.model import HeadlexModel
from treelm.models.model import LanguageModel
from treelm.models.ngram.config import NgramConfig
from treelm.models.ngram.model import NgramModel
from treelm.models.packed_tree_model import PackedTreeModel
from treelm.models.tree_model import GivesTrees, k_best_lists
from treelm.models.treelet.config import TreeletConfig
from treelm.models.treelet.model import TreeletModel
from treelm.tasks.evaluate.slr import unigram_log_probs
from treelm.tasks.transform import find_temporal_words
from treelm.transforms.treelet import TREELET_TRANSFORMS

Numbers = npt.NDArray[np.float64]
Sentence = tuple[str, ...]

FIVE_GRAM, TREELET, RULE, TRANS, PCFG = "5-GRAM", "TREELET", "TREELET-RULE", "TREELET-TRANS", "PCFG"
PLAIN, HEADLEX, MIXTURE = "TREELET, plain trees", "HEADLEX", "TREELET + 5-GRAM"

#: Sentences parsed at once; lists of a thousand trees are large.
_BATCH = 32


@dataclass
class Training:
    """Trees, the words that all models know, and what training took.

    Args:
        corpus: The trees.
        seed: Seed of the vocabulary.
        threads: Kernel threads.
    """

    corpus: TreeCorpus
    seed: int
    threads: int
    seconds: dict[str, float] = field(default_factory=dict)
    vocabulary: Vocabulary = field(init=False)
    temporal: tuple[str, ...] = field(init=False)

    def __post_init__(self) -> None:
        rule = VocabularyRule(name="stream", seed=self.seed)
        self.vocabulary = build_vocabulary(TreeSentences(self.corpus), rule)
        words = find_temporal_words(self.corpus.paths, None, "english", threads=self.threads)
        self.temporal = tuple(sorted(words))

    def treelet(
        self, name: str, corpus: TreeCorpus | None = None, **options: object
    ) -> TreeletModel:
        """Return a treelet model; the time it took is kept under its name."""
        given = {"temporal": self.temporal, **options}
        start = time.perf_counter()
        model = TreeletModel.train(
            corpus or self.corpus,
            TreeletConfig.model_validate(given),
            vocabulary=self.vocabulary,
            threads=self.threads,
        )
        self.seconds[name] = round(time.perf_counter() - start, 2)
        return model

    def five_gram(self, corpus: TreeCorpus | None = None) -> NgramModel:
        """Return the 5-gram model of the same words."""
        start = time.perf_counter()
        model = NgramModel.train(
            corpus or self.corpus,
            NgramConfig(order=5),
            vocabulary=self.vocabulary,
            threads=self.threads,
        )
        self.seconds[FIVE_GRAM] = round(time.perf_counter() - start, 2)
        return model

    def models(self) -> dict[str, LanguageModel]:
        """Return the models of the tables."""
        start = time.perf_counter()
        headlex = HeadlexModel.train(
            self.corpus, HeadlexConfig(), vocabulary=self.vocabulary, threads=self.threads
        )
        self.seconds[HEADLEX] = round(time.perf_counter() - start, 2)
        return {
            PCFG: self.treelet(PCFG, variant="pcfg"),
            TRANS: self.treelet(TRANS, variant="trans"),
            RULE: self.treelet(RULE, variant="rule"),
            TREELET: self.treelet(TREELET),
            PLAIN: self.treelet(PLAIN, transforms=()),
            HEADLEX: headlex,
            FIVE_GRAM: self.five_gram(),
        }

    def ablations(self) -> dict[str, LanguageModel]:
        """Return treelet models with one thing changed each."""
        found: dict[str, LanguageModel] = {}
        for name in TREELET_TRANSFORMS:
            kept = [other for other in TREELET_TRANSFORMS if other != name]
            found[f"without {name}"] = self.treelet(name, transforms=kept)
        for weight in (0.0, 0.5, 1.0):
            found[f"lambda {weight:g}"] = self.treelet(f"lambda {weight}", yield_weight=weight)
        found["modified Kneser-Ney"] = self.treelet("mkn", smoothing="mkn")
        found["rule types below rules"] = self.treelet("types", base_counts="types")
        found["min count 2"] = self.treelet("min count", min_count=2)
        return found


@dataclass(frozen=True)
class Scores:
    """What models say about sentences.

    Args:
        lengths: Words of each sentence.
        unigram: Log probability of the words alone.
        by_model: Log probabilities by (model, trees of the list).
        parsed: Sentences that the parser has a tree for.
        trees: Mean number of trees.
        repeated: Log probabilities of TREELET without leaving out equal transformed trees.
        seconds: What parsing and scoring took.
    """

    lengths: npt.NDArray[np.int64]
    unigram: Numbers
    by_model: Mapping[tuple[str, int], Numbers]
    parsed: int
    trees: float
    repeated: Numbers
    seconds: Mapping[str, float]

    def slr(self, model: str, k: int) -> Numbers:
        """Return the syntactic log-odds ratio of every sentence."""
        return (self.by_model[model, k] - self.unigram) / self.lengths


def first_trees(parses: Sequence[ScoredTree], k: int) -> Sequence[ScoredTree]:
    """Return the best trees of a list, as arrays where the list is one of arrays."""
    cut = getattr(parses, "first", None)
    return parses[:k] if cut is None else cut(k)


def score_all(
    models: Mapping[str, LanguageModel],
    sentences: Iterable[Sentence],
    parser: GivesTrees,
    ks: Sequence[int],
    *,
    threads: int,
) -> Scores:
    """Return the scores of all models; every sentence is parsed once.

    Args:
        models: Models by name; those that need no trees are scored once.
        sentences: The sentences.
        parser: What gives them trees.
        ks: Lengths of the lists that are summed over; the longest one is asked of the parser.
        threads: Kernel threads.
    """
    found: dict[tuple[str, int], list[float]] = {(name, k): [] for name in models for k in ks}
    repeated: list[float] = []
    lengths: list[int] = []
    unigram: list[float] = []
    times = {"parsing": 0.0, "scoring": 0.0}
    parsed = trees = 0
    alone = unigram_log_probs(models[FIVE_GRAM])
    rest = iter(sentences)
    while batch := list(islice(rest, _BATCH)):
        start = time.perf_counter()
        lists = k_best_lists(parser, batch, max(ks), threads=threads)
        times["parsing"] += time.perf_counter() - start
        start = time.perf_counter()
        parsed += sum(bool(len(own)) and not own[0].is_fallback for own in lists)
        trees += sum(len(own) for own in lists)
        lengths += [len(words) for words in batch]
        unigram += [float(alone[models[FIVE_GRAM].vocabulary.encode(w)].sum()) for w in batch]
        cut = {k: [first_trees(own, k) for own in lists] for k in ks}
        for name, model in models.items():
            if not isinstance(model, PackedTreeModel):
                values = model.sentence_log_probs(batch, threads=threads).tolist()
                for k in ks:
                    found[name, k] += values
                continue
            for k in ks:
                scores = model.score_lists(cut[k], threads=threads)
                found[name, k] += [score.log_prob for score in scores]
            if name == TREELET:
                repeated += [_with_repeats(model, own, threads) for own in lists]
        times["scoring"] += time.perf_counter() - start
    return Scores(
        np.array(lengths),
        np.array(unigram),
        {key: np.array(values) for key, values in found.items()},
        parsed,
        trees / max(1, len(lengths)),
        np.array(repeated),
        {name: round(value, 2) for name, value in times.items()},
    )


def _with_repeats(model: PackedTreeModel, parses: Sequence[ScoredTree], threads: int) -> float:
    packed = getattr(parses, "packed", None)
    if packed is None or not len(parses):
        return float("nan")
    starts = np.array([0, len(packed)], dtype=np.uint64)
    log_probs, _ = model.score_packed(packed, starts, threads=threads)
    return float(np.logaddexp.reduce(log_probs))
