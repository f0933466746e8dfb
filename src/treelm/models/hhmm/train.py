"""How the HHMM is trained: binarize, count, bound, observe words."""

from __future__ import annotations

import warnings
from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from treelm.corpus.corpus import TreeCorpus, TreeSentences
from treelm.corpus.encoder import encode_trees
from treelm.corpus.vocabulary import Vocabulary
from treelm.corpus.vocabulary_rules import VocabularyRule, build_vocabulary
from treelm.errors import TreelmWarning, option
from treelm.grammar.binary_trees import BinaryTrees
from treelm.models.hhmm.bounded import bound, with_counts
from treelm.models.hhmm.config import HhmmConfig
from treelm.models.hhmm.contexts import learn_contexts
from treelm.models.hhmm.events import binary_trees, count_rules_by_depth
from treelm.models.hhmm.model import HhmmModel
from treelm.models.hhmm.observation import Observations, SuffixTags, learn_suffixes, observe
from treelm.models.hhmm.rules import grammar_from_lines
from treelm.models.hhmm.tables import HhmmTables
from treelm.models.interface.trained_model import corpus_record
from treelm.models.run import QUIET, Run


def train_hhmm(
    corpus: TreeCorpus,
    config: HhmmConfig,
    *,
    vocabulary: Vocabulary | None = None,
    run: Run = QUIET,
) -> HhmmModel:
    """Return the HHMM of a treebank.

    Args:
        corpus: Trees.
        config: Options.
        vocabulary: Vocabulary file. Default: words seen at least min_count times.
        run: How the training is run.

    Raises:
        EstimationError: ``E_NO_DATA`` without trees, ``E_TOO_DEEP`` if none fits the stack.
    """
    trees = binary_trees(corpus, config)
    counts = count_rules_by_depth(trees, config.depth, config.rule_min_count)
    bounded = bound(counts.rules, config.depth)
    if config.estimation == "counts":
        bounded = with_counts(bounded, counts.left, counts.right, config.kappa)
    _warn_about_depth(counts.depth_of_tree, config)
    vocabulary = vocabulary or _own_vocabulary(corpus, config)
    ids, tags = _tagged_words(trees, corpus, vocabulary)
    phrasal = counts.rules.phrasal
    tags -= trees.phrasal - phrasal  # phrases that were left out stood before the tags
    words = observe(
        tags,
        ids,
        symbols=len(counts.rules.symbols),
        phrasal=phrasal,
        vocabulary_size=len(vocabulary),
        sentences=len(trees),
        open_types=config.open_types,
    )
    unigrams = np.zeros(len(vocabulary) + 1, np.uint64)
    unigrams[:-1] = np.bincount(ids, minlength=len(vocabulary))
    unigrams[-1] = len(trees)
    suffixes = _suffixes(trees, tags, config) if config.observation == "bayes" else None
    starts = trees.leaf_starts.astype(np.int64)
    contexts = learn_contexts(ids, tags, starts, words, config, phrasal=phrasal, run=run)
    tables = HhmmTables.of(bounded, words, suffixes, contexts, config.tag_power)
    return HhmmModel(tables, vocabulary, unigrams, config, [corpus_record(corpus)])


def model_from_grammar(lines: Iterable[str], config: HhmmConfig) -> HhmmModel:
    """Return the HHMM of a grammar that somebody wrote down.

    Words have the frequencies that their tags give them, with every tag as frequent as any other.

    Examples:
        >>> lines = ["TOP -> S </s> 1", "S -> A A 1", "A -> yes 1/2", "A -> no 1/2"]
        >>> model = model_from_grammar(lines, HhmmConfig(depth=1, robust_epsilon=0))
        >>> round(float(np.exp(model.score("yes no").log_prob)), 6)
        0.25
    """
    written = grammar_from_lines(lines)
    bounded = bound(written.rules, config.depth)
    vocabulary = Vocabulary.from_counts(dict.fromkeys(written.words, 1))
    ids = {symbol: number for number, symbol in enumerate(vocabulary.symbols)}
    symbols = {name: number for number, name in enumerate(written.rules.symbols)}
    rows = sorted((ids[w], symbols[tag], p) for (tag, w), p in written.emissions.items() if p > 0)
    word = np.array([row[0] for row in rows])
    value = np.array([row[2] for row in rows])
    unigram = np.bincount(word, value, minlength=len(vocabulary))
    words = Observations(
        np.searchsorted(word, np.arange(len(vocabulary) + 1)).astype(np.int64),
        np.array([row[1] for row in rows], np.int32),
        value,
        unigram / unigram.sum(),
        np.bincount([row[1] for row in rows], value, minlength=len(symbols)).astype(np.float64),
        0.5,
    )
    counts = np.zeros(len(vocabulary) + 1, np.uint64)
    return HhmmModel(HhmmTables.of(bounded, words), vocabulary, counts, config)


def _own_vocabulary(corpus: TreeCorpus, config: HhmmConfig) -> Vocabulary:
    name = "all" if config.observation == "bayes" or config.min_count == 1 else "min-count"
    rule = VocabularyRule(
        name=name,  # type: ignore[arg-type]  # one of two
        min_count=config.min_count,
        signatures=config.observation == "signature",
    )
    return build_vocabulary(TreeSentences(corpus), rule, profile=corpus.options.profile)


def _tagged_words(
    trees: BinaryTrees, corpus: TreeCorpus, vocabulary: Vocabulary
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return the words of the trees as ids, and their tags as symbols."""
    _, text = encode_trees(corpus, vocabulary)
    starts = text.starts.astype(np.int64)
    kept = [slice(starts[tree], starts[tree + 1]) for tree in trees.tree_source.tolist()]
    ids = np.concatenate([text.ids[part] for part in kept]).astype(np.int64)
    return ids, trees.node_symbol[trees.leaves].astype(np.int64)


def _suffixes(trees: BinaryTrees, tags: npt.NDArray[np.int64], config: HhmmConfig) -> SuffixTags:
    """Return what the endings of rare words tell about their tags."""
    forms = trees.node_word[trees.leaves]
    rare = np.bincount(forms)[forms] < max(2, config.min_count)
    return learn_suffixes([trees.words[form] for form in forms[rare].tolist()], tags[rare])


def _warn_about_depth(depths: npt.NDArray[np.int64], config: HhmmConfig) -> None:
    share = float(np.mean(depths > config.depth))
    if share > 0.01:
        what = "are counted for no depth" if config.estimation == "counts" else "have probability 0"
        warnings.warn(
            f"{share:.1%} of the training trees need a stack deeper than {config.depth} and {what}."
            f" A larger {option('depth')} holds more of them.",
            TreelmWarning,
            stacklevel=3,
        )
