"""Fuzz target: files of parses. Whatever is accepted can be read to its end and written as text."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from tests.fuzz.campaign import Target, run_program
from tests.fuzz.mutation import EDGES, Random
from tests.grammar.small_grammars import make_grammar, make_lexicon

from treelm.grammar.chart import ChartParser
from treelm.grammar.forest_file import ForestFile
from treelm.grammar.forest_format import ForestHeader, end_frame, pack_batch
from treelm.grammar.k_best import KBestParser, text_of
from treelm.grammar.k_best_arrays import joined_k_best
from treelm.grammar.packed_forest import parse_forests
from treelm.grammar.stored_forests import joined_forests

Arrays = dict[str, Any]
SENTENCES = [("a", "b", "a"), (), ("b", "c")]

_folder = tempfile.TemporaryDirectory(
    prefix="fuzz", dir="/dev/shm" if Path("/dev/shm").is_dir() else None
)
_PATH = Path(_folder.name) / "parses.forest"


def contents() -> list[tuple[ForestHeader, Arrays]]:
    """Return lists of trees and forests of a few sentences, as they are stored."""
    rules = {(1, 1, 1): 0.2, (1, 1, 2): 0.1, (1, 2, 2): 0.1, (1, 2, 1): 0.1}
    grammar = make_grammar(["ROOT", "P", "T"], 2, {(0, 1): 1.0}, rules)
    lexicon = make_lexicon(grammar, {("a", 2): 0.5, ("b", 2): 0.25, ("c", 2): 0.25})
    parser = KBestParser(ChartParser(grammar, lexicon))
    header = ForestHeader(k=3, parser="p", options={})
    return [
        (header, joined_k_best(parser.parse(SENTENCES, 3))),
        (
            header.model_copy(update={"content": "forests"}),
            joined_forests(parse_forests(parser, SENTENCES)),
        ),
    ]


CONTENTS = contents()


def file_of(header: ForestHeader, arrays: Arrays) -> bytes:
    """Return a file of one batch."""
    frame = pack_batch(SENTENCES, arrays).to_bytes(b"")
    return header.to_bytes() + frame + end_frame(b"\0" * 16)


def forge(random: Random) -> bytes:
    """Return a file with changed arrays and right checksums."""
    header, arrays = random.pick(CONTENTS)
    changed = dict(arrays)
    for _ in range(random.pick((0, 1, 1, 2, 3))):
        name = random.pick(sorted(changed))
        array = changed[name].copy()
        kind = random.below(8)
        if kind == 0 and len(array):
            array = array[: random.below(len(array))]
        elif kind == 1:
            array = np.concatenate([array, array[:3]])
        elif kind == 2:
            with np.errstate(invalid="ignore"):
                array = array.astype(random.pick((np.uint8, np.uint64, np.float64, np.int32)))
        elif kind == 3:
            array = array[::-1].copy()
        elif len(array):
            limit = np.iinfo(array.dtype).max if array.dtype.kind in "ui" else 1000
            value = random.pick((0, 1, 2, 3, 255, abs(random.pick(EDGES)))) & int(limit)
            array[random.below(len(array))] = value
        changed[name] = array
    return file_of(header, changed)


def read(data: bytes) -> None:
    """Read everything in a file, and write it as text."""
    _PATH.write_bytes(data)
    with ForestFile(_PATH) as file:
        file.verify()
        found = list(file)
        assert len(found) == len(file)
        for trees in found:
            if trees:
                assert trees[0].tree.words == trees.words
        assert text_of(found).count(b"\n") == sum(len(trees or ()) for trees in found) + len(found)


SEEDS = [file_of(*content) for content in CONTENTS]
TOKENS = [b"TFB1", b"treelmF\x01", b'"k":', b'"content":"forests"', b"\0" * 8, b"\xff" * 8]
TARGET = Target("forest", read, SEEDS, TOKENS, forge)

if __name__ == "__main__":
    sys.exit(run_program(TARGET))
