"""The grammar with latent annotations: parses and scores sentences."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import ClassVar, Self

import numpy as np

from treelm.corpus.corpus import TreeCorpus
from treelm.errors import TreelmWarning, UsageError
from treelm.grammar.binary_trees import build_binary_trees
from treelm.grammar.coded_weights import lexicon_with_codes
from treelm.grammar.extend_lexicon import DictionaryOptions, extended_lexicon
from treelm.grammar.grammar import FloatArray, Grammar
from treelm.grammar.tag_dictionary import TagDictionary
from treelm.models.interface.config import Config
from treelm.models.interface.trained_model import corpus_name, corpus_record
from treelm.models.pcfg.grammar_model import GrammarModel
from treelm.models.pcfg_la.config import PcfgLaConfig
from treelm.trees.packed import PackedTrees

#: A larger share of words with tags that a grammar does not have is worth a warning.
_MANY_UNKNOWN = 0.01


class PcfgLaModel(GrammarModel[PcfgLaConfig]):
    """Parses and scores sentences with subcategories that were learned."""

    system: ClassVar[str] = "pcfg_la"
    config_class: ClassVar[type[Config]] = PcfgLaConfig
    kind: ClassVar[str] = "grammar with latent annotations"

    def __repr__(self) -> str:
        symbols, substates = len(self.grammar.symbols), self.grammar.total_substates
        return f"PcfgLaModel(symbols={symbols}, subcategories={substates})"

    def packed_log_probs(self, batches: Sequence[PackedTrees], *, threads: int = 1) -> FloatArray:
        """Return the log probabilities of the trees of batches, one batch after the other."""
        made = build_binary_trees(batches, keep_cycles=True)
        return self._tree_scores.log_probs(made, sum(map(len, batches)), threads=threads)

    def with_dictionary(self, trees: TreeCorpus, options: DictionaryOptions | None = None) -> Self:
        """Return the model with more words: those of trees, with the tags that they have there.

        A second dictionary replaces what the first one says of the same words.

        Args:
            trees: Trees of a parser, of as much text as there is; the treebank itself adds nothing.
            options: How the words enter the lexicon.

        Raises:
            UsageError: if the words of the lexicon sum to one, or no tag of the trees is one of the
                grammar.
        """
        dictionary = TagDictionary.of(trees, self.grammar)
        _check_tags(dictionary, corpus_name(trees))
        lexicon = extended_lexicon(self.grammar, self.lexicon, dictionary, options)
        if self.lexicon.codes is not None:
            lexicon = lexicon_with_codes(lexicon)
        *words, ends = np.split(self._unigram_counts, [-1])
        new = np.zeros(len(lexicon.vocabulary) - len(self.vocabulary), dtype=np.uint64)
        return self._changed(
            lexicon=lexicon,
            unigram_counts=np.concatenate([*words, new, ends]),
            corpora=(*self._corpora, corpus_record(trees)),
        )

    @classmethod
    def _fits(cls, grammar: Grammar, config: PcfgLaConfig) -> bool:
        return len(grammar.split_tree) == config.cycles


def _check_tags(dictionary: TagDictionary, name: str) -> None:
    """Refuse a dictionary with other tags than the grammar's; warn where many are."""
    known, unknown = int(dictionary.tokens.sum()), dictionary.unknown_tags
    if not known:
        raise UsageError(
            f"{name}: no word has a tag of this grammar, so there is nothing to learn. Give trees "
            "of a parser with the same tags."
        )
    if unknown > _MANY_UNKNOWN * (known + unknown):
        warnings.warn(
            f"{name}: {unknown} of {known + unknown} words have tags that the grammar does not "
            "have; they are left out. Were the trees made with the same tags?",
            TreelmWarning,
            stacklevel=3,
        )
