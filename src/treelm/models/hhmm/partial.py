"""The best partial trees of an HHMM after each word: k best derivations of its stacks."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, cast

import numpy as np

from treelm import _native
from treelm.kernel_errors import kernel_errors
from treelm.models.hhmm.shared_histories import SharedHistories
from treelm.models.interface.partial_parses import (
    Derivation,
    ParsedWord,
    PartialParses,
    derivations_for,
    join_partial_parses,
)
from treelm.models.interface.scores import bits

if TYPE_CHECKING:
    from treelm.models.hhmm.model import HhmmModel
    from treelm.models.hhmm.state import HhmmState


def hhmm_partial_parses(
    model: HhmmModel, search: _native.HhmmSearch, words: Sequence[str], k: int
) -> PartialParses:
    """Return the k best partial trees after each word of a sentence.

    The probability of a derivation is a share of all stacks that the beam kept; derivations that
    look the same once binarization is undone are one tree.

    Args:
        model: The model.
        search: Its search.
        words: The sentence.
        k: Most trees after each word.
    """
    read = [model.read_word(word, first=place == 0) for place, word in enumerate(words)]
    with kernel_errors("parsing word by word"):
        found, ends = search.partial_parses(read, derivations_for(k))
    histories = SharedHistories(words, model.tables.rules.symbols, model.config.pipeline())

    def derivation(row: _native._StackHistory, *, whole: bool) -> Derivation:
        log_prob, first, moves, ids, ranks, log_probs = row
        called = tuple(ids.tolist())
        tree = histories.tree(moves.tolist(), called, first, whole=whole)
        counted = tuple((ranks + np.uint64(1)).tolist())
        return Derivation(tree, log_prob, called, counted, tuple(log_probs.tolist()), start=first)

    state = model.initial()
    parsed, began = [], 0.0
    for place, (word, rows) in enumerate(zip(words, found, strict=True)):
        log_prob, after = model.advance(state, word)
        state = cast("HhmmState", after)
        derivations = tuple(derivation(row, whole=False) for row in rows)
        if place and derivations and derivations[0].start == place:
            began = state.prefix_mass  # the parser counts from here
        parsed.append(ParsedWord(word, bits(log_prob), state.prefix_mass - began, derivations))
    complete = [derivation(row, whole=True) for row in ends] if words else []
    log_whole = state.prefix_mass - began + model.log_end_share(state) if words else -math.inf
    return join_partial_parses(model.system, parsed, complete, log_whole, k)
