"""Entries of a lexicon that say nothing about subcategories, each stored as one number.

Rare words of a tag, and words of a dictionary, are shared out to its subcategories as rare words in
general are: the scores of such an entry are a multiple of the tag's open scores.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from treelm.errors import ModelFileError
from treelm.grammar.grammar import FloatArray, IntArray
from treelm.grammar.lexicon import Lexicon, LongArray, TiedEntries, block_starts

#: What the entries are called in a file of tables: which are tied, and their factors.
TIED, FACTORS = "entry_tied", "entry_factors"

Marks = npt.NDArray[np.bool_]

#: Most scores of an entry, on average, that a file may stand for: this bounds memory.
_LARGEST_EXPANSION = 256
#: Relative differences between factors that come from rounding alone.
_ROUNDING = 1e-9


def with_tied_entries(lexicon: Lexicon) -> Lexicon:
    """Return a lexicon that stores all entries as one number each that it can."""
    if not len(lexicon.entry_symbols):
        return lexicon
    starts = lexicon.score_starts
    opened = lexicon.open_scores[_places(lexicon)]
    factors = np.where(opened > 0, lexicon.entry_scores / np.where(opened > 0, opened, 1.0), 0.0)
    least = np.minimum.reduceat(factors, starts[:-1])
    most = np.maximum.reduceat(factors, starts[:-1])
    lost = np.add.reduceat(np.where(opened > 0, 0.0, lexicon.entry_scores), starts[:-1])
    marks = (lost == 0) & (most - least <= _ROUNDING * most)
    tied = TiedEntries(marks, most[marks])
    return replace(
        lexicon, tied=tied, entry_scores=joined_scores(lexicon, own_scores(lexicon, marks), tied)
    )


def own_scores(lexicon: Lexicon, tied: Marks) -> FloatArray:
    """Return the scores of entries that are not tied."""
    return lexicon.entry_scores[~np.repeat(tied, np.diff(lexicon.score_starts))]


def joined_scores(lexicon: Lexicon, own: FloatArray, tied: TiedEntries) -> FloatArray:
    """Return the scores of all entries of a lexicon.

    Args:
        lexicon: Says which tags the entries have, and has open scores.
        own: Scores of entries that are not tied.
        tied: The other entries.
    """
    blocks = (lexicon.phrasal, lexicon.substates, lexicon.open_scores)
    return expanded_scores(tied, own, lexicon.entry_symbols, blocks)


def expanded_scores(
    tied: TiedEntries,
    own: FloatArray,
    symbols: IntArray,
    open_blocks: tuple[int, IntArray, FloatArray],
) -> FloatArray:
    """Return the scores of all entries.

    Args:
        tied: The entries that are stored as one number each.
        own: Scores of the others, one entry after the other.
        symbols: The tags of entries.
        open_blocks: The first tag, subcategories of all symbols, and open scores of all tags.

    Raises:
        ModelFileError: ``E_LEXICON`` if they do not fit together.
    """
    marks, factors = tied.marks, tied.factors
    phrasal, substates, open_scores = open_blocks
    sizes = substates[symbols].astype(np.int64)
    total = int(sizes.sum())
    fits = (
        len(marks) == len(symbols)
        and len(factors) == int(marks.sum())
        and len(own) == int(sizes[~marks].sum())
        and len(open_scores) == int(substates[phrasal:].sum())
        and total <= _LARGEST_EXPANSION * (len(symbols) + 1)
        and (not len(symbols) or int(symbols.min()) >= phrasal)
    )
    if not fits:
        raise ModelFileError(
            "this is not a lexicon: scores of entries and their factors do not fit together.",
            code="E_LEXICON",
        )
    scores = np.zeros(total)
    is_tied = np.repeat(marks, sizes)
    scores[~is_tied] = own
    starts = block_starts(sizes)
    tags = block_starts(substates[phrasal:])[symbols - phrasal]
    places = np.repeat(tags - starts[:-1], sizes) + np.arange(total)
    each = np.zeros(len(symbols))
    each[marks] = factors
    scores[is_tied] = np.repeat(each, sizes)[is_tied] * open_scores[places[is_tied]]
    return scores


def _places(lexicon: Lexicon) -> LongArray:
    """Return the place of every score among the open scores."""
    sizes = np.diff(lexicon.score_starts)
    first = lexicon.tag_starts[lexicon.entry_symbols - lexicon.phrasal] - lexicon.score_starts[:-1]
    return np.asarray(np.repeat(first, sizes) + np.arange(len(lexicon.entry_scores)))
