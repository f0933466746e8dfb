"""Tag dictionaries: which tags words have, counted in trees, such as those of a parser."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from treelm.corpus.corpus import TreeCorpus
from treelm.grammar.grammar import Grammar, IntArray
from treelm.grammar.lexicon import LongArray
from treelm.transforms.unary_chains import TAG_MARK
from treelm.trees.packed import NO_WORD, PackedTrees


@dataclass(frozen=True, eq=False)
class TagDictionary:
    """The distinct pairs of word and tag in trees, and how often each occurs.

    Args:
        words: The words, sorted.
        pairs: Rows (word, tag of the grammar), ascending.
        tokens: How often each pair occurs.
        unknown_tags: Tokens whose tags the grammar does not have; they are not counted.
    """

    words: tuple[str, ...]
    pairs: IntArray
    tokens: LongArray
    unknown_tags: int = 0

    @classmethod
    def of(cls, corpus: TreeCorpus, grammar: Grammar) -> TagDictionary:
        """Return the pairs of word and tag of trees.

        Args:
            corpus: The trees.
            grammar: Its tags are those that count.
        """
        names = enumerate(grammar.symbols[grammar.phrasal :], grammar.phrasal)
        tags = {name.removesuffix(TAG_MARK): number for number, name in names}
        counts: dict[tuple[str, int], int] = {}
        unknown = 0
        for batch in corpus.batches():
            keys, tokens = _pairs(batch)
            symbols = [tags.get(label.base, -1) for label in batch.labels]
            for key, count in zip(keys.tolist(), tokens.tolist(), strict=True):
                word, label = divmod(key, len(symbols))
                if symbols[label] < 0:
                    unknown += count
                    continue
                pair = batch.words[word], symbols[label]
                counts[pair] = counts.get(pair, 0) + count
        words = tuple(sorted({word for word, _ in counts}))
        numbers = {word: number for number, word in enumerate(words)}
        found = sorted((numbers[word], tag, count) for (word, tag), count in counts.items())
        table = np.array(found, dtype=np.int64).reshape(-1, 3)
        return cls(words, table[:, :2].astype(np.int32), table[:, 2].copy(), unknown)

    def __len__(self) -> int:
        return len(self.words)


def _pairs(batch: PackedTrees) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return the distinct keys ``word * labels + label`` of a batch, and how often each occurs."""
    leaves = batch.node_word != NO_WORD
    words = batch.node_word[leaves].astype(np.int64)
    return np.unique(words * len(batch.labels) + batch.node_label[leaves], return_counts=True)
