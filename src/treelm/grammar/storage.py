"""Grammar and lexicon as the files of a model folder, and back, with everything checked."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from treelm.corpus.files import read_lines
from treelm.corpus.vocabulary import Vocabulary
from treelm.corpus.vocabulary_file import load_vocabulary, save_vocabulary
from treelm.errors import EstimationError, ModelFileError, TreelmError
from treelm.grammar.grammar import Grammar
from treelm.grammar.lexicon import Lexicon
from treelm.grammar.sparse_weights import full_weights, stored_weights
from treelm.store.folder import FolderWriter, ModelFolder

#: Names of the files.
TABLES, LABELS, WORDS = "tables.safetensors", "labels.txt", "words.txt"

_GRAMMAR: dict[str, type[np.generic]] = {
    "substates": np.int32,
    "unary_rules": np.int32,
    "binary_rules": np.int32,
    "unary_weights": np.float64,
    "binary_weights": np.float64,
}
#: Weights, and the rules they belong to.
_WEIGHTS = {"unary_weights": "unary_rules", "binary_weights": "binary_rules"}
_LEXICON: dict[str, type[np.generic]] = {
    "entry_starts": np.int64,
    "entry_symbols": np.int32,
    "entry_scores": np.float64,
    "openness": np.float64,
    "open_scores": np.float64,
}
_SPLITS, _NORMALIZED, _PHRASAL = "split_tree.", "normalized", "phrasal"
_MOST_CYCLES = 64


def grammar_tensors(grammar: Grammar, lexicon: Lexicon) -> dict[str, npt.NDArray[Any]]:
    """Return the arrays of both, by their names in a file of tables."""
    arrays = {name: getattr(grammar, name) for name in _GRAMMAR if name not in _WEIGHTS}
    for name in _WEIGHTS:
        arrays |= stored_weights(name, getattr(grammar, name))
    arrays |= {name: getattr(lexicon, name) for name in _LEXICON}
    arrays |= {f"{_SPLITS}{cycle}": level for cycle, level in enumerate(grammar.split_tree)}
    arrays[_PHRASAL] = np.array([grammar.phrasal], dtype=np.int32)
    arrays[_NORMALIZED] = np.array([lexicon.normalized], dtype=np.uint8)
    return arrays


def write_grammar(
    writer: FolderWriter,
    grammar: Grammar,
    lexicon: Lexicon,
    others: Mapping[str, npt.NDArray[Any]] | None = None,
) -> None:
    """Write the files of a grammar and its lexicon, with other arrays."""
    writer.tables(TABLES, {**grammar_tensors(grammar, lexicon), **(others or {})})
    writer.text(LABELS, "".join(f"{symbol}\n" for symbol in grammar.symbols))
    save_vocabulary(lexicon.vocabulary, writer.file(WORDS))


def read_grammar(folder: ModelFolder) -> tuple[Grammar, Lexicon]:
    """Return the grammar and the lexicon of an opened folder.

    Raises:
        ModelFileError: if something is missing, or the parts do not fit together.
    """
    vocabulary = load_vocabulary(folder.file(WORDS))
    if vocabulary.fingerprint != folder.manifest.vocabulary:
        raise _damaged(folder.path, f"{WORDS} is not the one the manifest names")
    symbols = tuple(read_lines(folder.file(LABELS)))
    tables = folder.tables(TABLES)
    try:
        grammar, lexicon = _assemble(tables, symbols, vocabulary)
        grammar.check_normalized()
        lexicon.check_normalized()
    except (ModelFileError, EstimationError) as error:
        raise _damaged(folder.path, str(error)) from error
    return grammar, lexicon


def _assemble(
    tables: Mapping[str, npt.NDArray[Any]], symbols: tuple[str, ...], vocabulary: Vocabulary
) -> tuple[Grammar, Lexicon]:
    def array(name: str, kind: type[np.generic]) -> npt.NDArray[Any]:
        found = tables.get(name)
        if found is None or found.dtype != kind:
            raise ModelFileError(
                f'the table "{name}" is missing or of the wrong type', code="E_MODEL_TABLES"
            )
        return found

    phrasal = array(_PHRASAL, np.int32)
    normalized = array(_NORMALIZED, np.uint8)
    if phrasal.shape != (1,) or normalized.shape != (1,):
        raise ModelFileError(
            "a table that should hold one number has another size", code="E_MODEL_TABLES"
        )
    splits: list[npt.NDArray[Any]] = []
    while f"{_SPLITS}{len(splits)}" in tables and len(splits) < _MOST_CYCLES:
        splits.append(array(f"{_SPLITS}{len(splits)}", np.int32))
    parts = {name: array(name, kind) for name, kind in _GRAMMAR.items()}
    for name, rules in _WEIGHTS.items():
        parts[name] = full_weights(tables, name, parts[rules], parts["substates"])
    grammar = Grammar(symbols, int(phrasal[0]), **parts, split_tree=tuple(splits))
    entries = {name: array(name, kind) for name, kind in _LEXICON.items()}
    lexicon = Lexicon(
        vocabulary,
        grammar.phrasal,
        grammar.substates,
        **entries,
        normalized=bool(normalized[0]),
    )
    return grammar, lexicon


def _damaged(path: Path, what: str) -> TreelmError:
    return ModelFileError(
        f"{path}: {what.rstrip('.')}. Copy or train the model again.", code="E_MODEL_TABLES"
    )
