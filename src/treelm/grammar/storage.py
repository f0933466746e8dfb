"""Grammar and lexicon as the files of a model folder, and back, with everything checked."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import numpy.typing as npt

from treelm.errors import ModelFileError
from treelm.grammar.coded_weights import coded_tensors, decoded, has_codes, stored_codes
from treelm.grammar.grammar import MOST_SUBSTATES, Grammar
from treelm.grammar.lexicon import Lexicon, TiedEntries
from treelm.grammar.sparse_weights import full_weights, stored_weights, weight_tensors
from treelm.grammar.tied_entries import FACTORS, TIED, expanded_scores, own_scores
from treelm.store.folder import TABLES, FolderWriter, ModelFolder
from treelm.store.schema import (
    ANY,
    UNIGRAM_COUNTS,
    Tensor,
    Tensors,
    ids,
    offsets,
    read_names,
    read_tensors,
    read_words,
    write_words,
)

#: File of the symbols.
LABELS = "labels.txt"

_NORMALIZED, _PHRASAL, _SCORES = "normalized", "phrasal", "entry_scores"
_MOST_CYCLES = 64

_SUBSTATES = Tensor("substates", np.int32, ("symbols",), ids(MOST_SUBSTATES + 1, start=1))
_RULES = (
    Tensor("unary_rules", np.int32, ("unary rules", 2), ids("symbols")),
    Tensor("binary_rules", np.int32, ("binary rules", 3), ids("symbols")),
)
_WEIGHTS = ("unary_weights", "binary_weights")
_LEXICON = (
    Tensor("entry_starts", np.int64, ("words+1",), offsets("entries")),
    Tensor("entry_symbols", np.int32, ("entries",), ids("symbols")),
    Tensor(_SCORES, np.float64, (ANY,), optional=True),
    Tensor("openness", np.float64, ("words",)),
    Tensor("open_scores", np.float64, (ANY,)),
)
#: Where some entries are stored as one number each.
_TIED = (
    Tensor(TIED, np.uint8, ("entries",), optional=True),
    Tensor(FACTORS, np.float64, (ANY,), optional=True),
)
#: The history of splits, one level after the other.
_SPLITS = tuple(
    Tensor(f"split_tree.{cycle}", np.int32, (ANY,), optional=True) for cycle in range(_MOST_CYCLES)
)
#: Grammar and lexicon check all else themselves when they are made: large weights are read once.
_SCHEMA = (
    Tensor(_PHRASAL, np.int32, (1,)),
    Tensor(_NORMALIZED, np.uint8, (1,)),
    _SUBSTATES,
    *_RULES,
    *(tensor for name in _WEIGHTS for tensor in weight_tensors(name)),
    *(tensor for name in _WEIGHTS for tensor in coded_tensors(name)),
    *_LEXICON,
    *coded_tensors(_SCORES, optional_gaps=False),
    *_TIED,
    *coded_tensors(FACTORS, optional_gaps=False),
    *_SPLITS,
)


def grammar_tensors(grammar: Grammar, lexicon: Lexicon) -> dict[str, npt.NDArray[Any]]:
    """Return the arrays of both, by the names they have in a file of tables."""
    arrays = {item.name: getattr(grammar, item.name) for item in (_SUBSTATES, *_RULES)}
    for name in _WEIGHTS if grammar.codes is None else ():
        arrays |= stored_weights(name, getattr(grammar, name))
    arrays |= {item.name: getattr(lexicon, item.name) for item in _LEXICON}
    if lexicon.tied is not None:
        arrays[TIED] = lexicon.tied.marks.astype(np.uint8)
        arrays[_SCORES] = own_scores(lexicon, lexicon.tied.marks)
        arrays[FACTORS] = lexicon.tied.factors
    if lexicon.codes is not None:
        arrays = {name: array for name, array in arrays.items() if name not in (_SCORES, FACTORS)}
    arrays |= {**(grammar.codes or {}), **(lexicon.codes or {})}
    arrays |= {f"split_tree.{cycle}": level for cycle, level in enumerate(grammar.split_tree)}
    arrays[_PHRASAL] = np.array([grammar.phrasal], dtype=np.int32)
    arrays[_NORMALIZED] = np.array([lexicon.normalized], dtype=np.uint8)
    return arrays


def _entry_scores(found: Tensors) -> tuple[npt.NDArray[np.float64], TiedEntries | None]:
    """Return the scores of entries, and those that are stored as one number each."""
    symbols, substates = found["entry_symbols"], found["substates"]
    sizes = substates.astype(np.int64)[symbols]
    if TIED not in found:
        return _numbers(found, _SCORES, int(sizes.sum())), None
    marks = found[TIED] > 0
    own = _numbers(found, _SCORES, int(sizes[~marks].sum()))
    tied = TiedEntries(marks, _numbers(found, FACTORS, int(marks.sum())))
    blocks = (int(found.number(_PHRASAL)), substates, found["open_scores"])
    return expanded_scores(tied, own, symbols, blocks), tied


def _numbers(found: Tensors, name: str, total: int) -> npt.NDArray[np.float64]:
    """Return numbers, decoded where they are stored as codes."""
    if has_codes(found, name):
        return decoded(found, name, total)
    if name not in found:
        raise ModelFileError(f'the tensor "{name}" is missing', code="E_MODEL_TABLES")
    return found[name]


def write_grammar(
    writer: FolderWriter,
    grammar: Grammar,
    lexicon: Lexicon,
    unigram_counts: npt.NDArray[np.uint64],
) -> None:
    """Write the files of a grammar and its lexicon, and the counts of words."""
    tensors = grammar_tensors(grammar, lexicon)
    writer.tables(TABLES, {**tensors, UNIGRAM_COUNTS.name: unigram_counts})
    writer.lines(LABELS, grammar.symbols)
    write_words(writer, lexicon.vocabulary)


def read_grammar(folder: ModelFolder) -> tuple[Grammar, Lexicon, npt.NDArray[np.uint64]]:
    """Return the grammar and the lexicon of an opened folder, and the counts of words.

    Raises:
        ModelFileError: if something is missing, or the parts do not fit together; to be called
            inside `damage_in`.
        EstimationError: if probabilities do not add up to 1.
    """
    vocabulary = read_words(folder)
    symbols = read_names(folder, LABELS)
    found = read_tensors(
        folder.tables(),
        (UNIGRAM_COUNTS, *_SCHEMA),
        words=len(vocabulary),
        symbols=len(symbols),
    )
    levels = itertools.takewhile(lambda item: item.name in found, _SPLITS)
    codes = stored_codes(found, *_WEIGHTS)
    grammar = Grammar(
        symbols,
        int(found.number(_PHRASAL)),
        found["substates"],
        found["unary_rules"],
        found["binary_rules"],
        full_weights(found, "unary_weights", found["unary_rules"], found["substates"]),
        full_weights(found, "binary_weights", found["binary_rules"], found["substates"]),
        split_tree=tuple(found[item.name] for item in levels),
    )
    if codes:
        grammar = grammar.normalized(codes)
    scores, tied = _entry_scores(found)
    lexicon = Lexicon(
        vocabulary,
        grammar.phrasal,
        grammar.substates,
        found["entry_starts"],
        found["entry_symbols"],
        scores,
        found["openness"],
        found["open_scores"],
        codes=stored_codes(found, _SCORES, FACTORS) or None,
        tied=tied,
        normalized=bool(found.number(_NORMALIZED)),
    )
    grammar.check_normalized()
    lexicon.check_normalized()
    return grammar, lexicon, found[UNIGRAM_COUNTS.name]
