"""`treelm sample`."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter

from treelm.cli.model_options import ModelPath, at_once
from treelm.cli.options import CommonOptions, OutputFile
from treelm.corpus.files import write_atomically
from treelm.models.registry import load
from treelm.tasks.sample import sample_sentences


def sample(
    *,
    model: ModelPath,
    count: Annotated[int, Parameter(name=["--count", "-n"])] = 1,
    seed: int = 0,
    max_words: int = 1000,
    output: OutputFile = "-",
    common: CommonOptions | None = None,
) -> None:
    """Draw sentences from a model, one a line.

    Args:
        model: Model folder.
        count: Number of sentences.
        seed: Sentence i depends on the seed and on i alone.
        max_words: Cut a sentence after so many words; a note says how many were cut.
        output: File to write; standard output by default.
        common: Common.
    """
    common = common or CommonOptions()
    flush = at_once(output, line_buffered=False)
    cut = 0
    drawn = sample_sentences(load(model), count, seed=seed, max_words=max_words)
    with write_atomically(output) as out:
        for sentence in drawn:
            cut += not sentence.complete
            out.write((" ".join(sentence.words) + "\n").encode())
            if flush:
                out.flush()
    if cut:
        common.note(f"{cut} of {count} sentences were cut after {max_words} words.")
