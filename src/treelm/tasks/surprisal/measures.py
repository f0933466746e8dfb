"""The parser state after each word, as numbers for a regression."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from treelm.corpus.encoder import encode_sentences
from treelm.corpus.words import Words
from treelm.errors import UnsupportedTask, UsageError
from treelm.models.interface.abilities import ParsesWordByWord, ask_for, has_ability
from treelm.models.interface.model import LanguageModel
from treelm.models.interface.scores import BatchScores

#: Columns after those that every model has, in this order.
MEASURES = (
    "syntactic",
    "lexical",
    "entropy",
    "entropy_reduction",
    "depth",
    "open_nodes",
    "embedding_difference",
    "stacks",
    "beam_mass",
)
#: Those that a region of several words has the sum of; of the others it has the last.
SUMMED = frozenset({"syntactic", "lexical"})

Columns = dict[str, npt.NDArray[np.float64]]


def chosen_measures(model: LanguageModel, names: Sequence[str]) -> tuple[str, ...]:
    """Return the measures of the given names; ``all`` is those that the model has.

    Raises:
        UsageError: for an unknown name.
        UnsupportedTask: for a measure of parsers, if the model does not parse word by word.
    """
    for name in names:
        if name != "all" and name not in MEASURES:
            raise UsageError(
                f'there is no measure "{name}"; choose from: all, {", ".join(MEASURES)}.'
            )
    parser = parsing_part(model)
    if "all" in names:
        return MEASURES if parser is not None else ()
    if names and parser is None:
        raise UnsupportedTask(
            f'"{names[0]}" describes the states of a parser, and {model.system} models do not '
            "parse word by word. Use an hhmm model, or a mixture with one."
        )
    return tuple(name for name in MEASURES if name in names)


def parsing_part(model: LanguageModel) -> ParsesWordByWord | None:
    """Return the model, or the first part of a mixture, that parses word by word."""
    if has_ability(model, ParsesWordByWord):
        return ask_for(model, ParsesWordByWord, "parse word by word")
    parts = map(parsing_part, model.mixed_models)
    return next((found for found in parts if found is not None), None)


def measure_sentences(
    model: ParsesWordByWord, sentences: Sequence[Words], *, threads: int = 1
) -> Columns:
    """Return every measure after each word and end of sentences; see `score_and_measure`."""
    return score_and_measure(model, sentences, threads=threads)[1]


def score_and_measure(
    model: ParsesWordByWord, sentences: Sequence[Words], *, threads: int = 1
) -> tuple[BatchScores, Columns]:
    """Return the scores of sentences, and every measure after each word and end in flat arrays.

    * ``syntactic``: the part of the surprisal that is due to coming to a tag that can emit the
      word, in bits (Roark et al. 2009);
    * ``lexical``: the rest, which is due to the word itself; an end is all syntax;
    * ``entropy`` of the distribution over stacks, in bits;
    * ``entropy_reduction`` from the word before, 0 where it grows (Hale 2006, over stacks);
    * ``depth``: elements in use in the most probable stack;
    * ``open_nodes``: expected number of constituents begun and not complete;
    * ``embedding_difference``: how much the expected depth of the stack has grown (Wu et al. 2010);
    * ``stacks``: number of stacks kept, each of which stands for all partial parses that end in it;
    * ``beam_mass``: share of the probability that pruning left.

    Args:
        model: The model.
        sentences: Each is parsed on its own.
        threads: Number of threads.
    """
    text = encode_sentences(sentences, model.vocabulary)
    scores, found = model.measure_ids(text.ids, text.starts, threads=threads)
    first = np.zeros(len(found.entropy), np.bool_)
    first[scores.starts[:-1]] = True
    surprisal = scores.bits()
    is_word = found.reach > 0
    syntactic = np.where(is_word, -np.log2(np.where(is_word, found.reach, 1.0)), surprisal)
    # Rounding must not make a word cheaper than the way to it.
    syntactic = np.minimum(np.maximum(0.0, syntactic), surprisal)

    def before(values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        return np.where(first, 0.0, np.roll(values, 1))

    return scores, {
        "syntactic": syntactic,
        "lexical": np.subtract(
            surprisal, syntactic, out=np.zeros_like(surprisal), where=np.isfinite(syntactic)
        ),
        "entropy": found.entropy,
        "entropy_reduction": np.maximum(0.0, before(found.entropy) - found.entropy),
        "depth": found.best_depth,
        "open_nodes": np.maximum(0.0, found.mean_depth - 1.0),
        "embedding_difference": found.mean_depth - before(found.mean_depth),
        "stacks": found.stacks,
        "beam_mass": found.beam_mass,
    }
