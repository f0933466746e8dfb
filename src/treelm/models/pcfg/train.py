"""How a treebank grammar is trained: binarize, count, smooth the lexicon."""

from __future__ import annotations

import warnings

import numpy as np
import numpy.typing as npt

from treelm.corpus.corpus import TreeCorpus
from treelm.corpus.encoder import EncodedText, encode_trees
from treelm.corpus.vocabulary import Vocabulary
from treelm.errors import TreelmWarning, UsageError
from treelm.grammar.binary_trees import BinaryTrees
from treelm.grammar.estimate_lexicon import LexiconOptions, berkeley_lexicon, closed_lexicon
from treelm.grammar.extract import extract_grammar
from treelm.grammar.grammar import Grammar
from treelm.grammar.lexicon import Lexicon, TaggedWords
from treelm.models.interface.trained_model import corpus_record
from treelm.models.pcfg.config import PcfgConfig
from treelm.models.pcfg.model import PcfgModel
from treelm.models.run import QUIET, Run
from treelm.transforms.copies import with_copies


def train_pcfg(
    corpus: TreeCorpus,
    config: PcfgConfig,
    *,
    vocabulary: Vocabulary | None = None,
    run: Run = QUIET,
) -> PcfgModel:
    """Return the grammar of a treebank.

    Args:
        corpus: Trees.
        config: Options.
        vocabulary: Vocabulary file for the closed lexicon. Default: all words of the trees.
        run: How the training is run.

    Raises:
        UsageError: if the lexicon takes no vocabulary.
        EstimationError: ``E_NO_DATA`` without usable trees.
    """
    del run  # it takes no time worth speaking of
    if vocabulary is not None and config.lexicon == "berkeley":
        raise UsageError(
            "the berkeley lexicon has its own vocabulary; give one with the closed one only."
        )
    shown = with_copies(corpus, config.copies, config.copy_share)
    trees = config.binary_trees(shown)
    warn_about_skipped(trees)
    grammar = extract_grammar(trees)
    grammar.check_normalized()
    lexicon, counts = _lexicon(trees, grammar, shown, config, vocabulary)
    return PcfgModel(grammar, lexicon, counts, config, [corpus_record(corpus)])


def warn_about_skipped(trees: BinaryTrees) -> None:
    """Say how many trees a grammar could not be read from."""
    if trees.cycles:
        warnings.warn(
            f"{trees.cycles} trees have a unary chain that repeats a label (X over Y over X on the "
            "same words) and were left out.",
            TreelmWarning,
            stacklevel=3,
        )
    if trees.bad_roots:
        warnings.warn(
            f"{trees.bad_roots} trees have no ROOT at the top, or another one inside, and were "
            "left out.",
            TreelmWarning,
            stacklevel=3,
        )


def _lexicon(
    trees: BinaryTrees,
    grammar: Grammar,
    corpus: TreeCorpus,
    config: PcfgConfig,
    vocabulary: Vocabulary | None,
) -> tuple[Lexicon, npt.NDArray[np.uint64]]:
    """Return the lexicon of the trees, and the counts of its words."""
    options = LexiconOptions(rare=config.rare, beta=config.beta, profile=corpus.options.profile)
    if config.lexicon == "berkeley":
        tagged = TaggedWords.of(trees)
        counts = tagged.tokens.astype(np.float64)
        made = berkeley_lexicon(tagged, counts, grammar.phrasal, grammar.substates, options)
    else:
        vocabulary, text = encoded_words(corpus, vocabulary)
        starts = text.starts.astype(np.int64)
        kept = [slice(starts[tree], starts[tree + 1]) for tree in trees.tree_source.tolist()]
        ids = np.concatenate([text.ids[part] for part in kept])
        tagged = TaggedWords.of(trees, words=vocabulary.symbols, leaf_words=ids)
        made = closed_lexicon(
            tagged,
            tagged.tokens.astype(np.float64),
            grammar.phrasal,
            grammar.substates,
            vocabulary=vocabulary,
            options=options,
        )
    ids = made.vocabulary.ids_of(tagged.words)[tagged.pairs[:, 0]]
    unigrams = np.zeros(len(made.vocabulary) + 1, dtype=np.uint64)
    np.add.at(unigrams, ids, tagged.tokens.astype(np.uint64))
    unigrams[-1] = len(trees)
    return made, unigrams


def encoded_words(
    corpus: TreeCorpus, vocabulary: Vocabulary | None
) -> tuple[Vocabulary, EncodedText]:
    """Return the words of trees as ids; replaced as the streaming rule did, if it read these."""
    if vocabulary is None:
        return encode_trees(corpus)
    size = (corpus.fingerprint.sentences, corpus.fingerprint.tokens)
    same = (vocabulary.source.get("sentences"), vocabulary.source.get("tokens")) == size
    return encode_trees(corpus, vocabulary, training=same)
