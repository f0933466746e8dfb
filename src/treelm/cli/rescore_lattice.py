"""`treelm rescore-lattice`."""

from __future__ import annotations

import json as json_format
from typing import Annotated

from cyclopts import Parameter

from treelm.cli.model_options import (
    ModelPath,
    SearchOptions,
    load_for_tokens,
    note_unknown_words,
)
from treelm.cli.options import CommonOptions, File, InputFiles, OutputFile
from treelm.cli.ranges import Range, at_least, within
from treelm.corpus.files import write_atomically
from treelm.corpus.lattices import LatticeFormat

_LARGEST = 1e6
#: What scores are multiplied with.
Scale = Annotated[float, within(Range(least=0, most=_LARGEST))]
#: What is added for a word.
Penalty = Annotated[float, within(Range(least=-_LARGEST, most=_LARGEST))]


def rescore_lattice(
    files: InputFiles = None,
    /,
    *,
    model: ModelPath,
    format: LatticeFormat = "kaldi",  # noqa: A002  # what options of other commands are called
    acoustic_scale: Scale = 1.0,
    graph_scale: Scale = 0.0,
    model_scale: Scale = 1.0,
    word_penalty: Penalty = 0.0,
    words: File | None = None,
    skip: Annotated[
        list[str] | None, Parameter(metavar="WORD", consume_multiple=False, show_default="none")
    ] = None,
    beam: Annotated[
        int | None,
        at_least(1),
        Parameter(show_default="all for n-gram models, 64 for others"),
    ] = None,
    json: Annotated[
        bool, Parameter(name="--json", help="Write a JSON object for each lattice, with scores.")
    ] = False,
    output: OutputFile = "-",
    search: SearchOptions = SearchOptions(),
    common: CommonOptions = CommonOptions(),
) -> None:
    """Write the best words of lattices by acoustic scores and a language model.

    The best path is exact for n-gram models and mixtures of these; other models remember the whole
    sentence, and each node keeps its best hypotheses. Lines are the name of the utterance and its
    words. The scores of the recogniser's own graph, in which its language model is hidden, count
    nothing unless --graph-scale says so.

    Args:
        files: Lattices.
        format: Text lattices of Kaldi, compact or not; or the standard lattice format of HTK (slf).
        acoustic_scale: Factor of acoustic scores.
        graph_scale: Factor of the scores of the recogniser's graph or language model.
        model_scale: Factor of the log probability of the model.
        word_penalty: Added for every word: below 0 for fewer words.
        words: Symbol table of the words, where lattices have numbers.
        skip: Mark that is no word to the model, such as that of noise; give the option again for
            each further one.
        beam: Hypotheses that each node of a lattice keeps.
    """
    from treelm.corpus.lattices import read_lattices, read_symbols
    from treelm.models.interface.incremental import as_incremental
    from treelm.tasks.rescore_lattice import LatticeWeights, best_path
    from treelm.tasks.text_check import TextCheck

    own = as_incremental(search.apply(load_for_tokens(model)))
    symbols = None if words is None else read_symbols(words)
    weights = LatticeWeights(
        acoustic=acoustic_scale, graph=graph_scale, model=model_scale, word=word_penalty
    )
    check = TextCheck(own.vocabulary)
    with write_atomically(output) as out:
        for file in files or ["-"]:
            for lattice in read_lattices(file, format, symbols=symbols, skipped=skip or ()):
                found = best_path(lattice, own, weights, beam=beam)
                check.add_sentences([found.words])
                line = " ".join((found.name, *found.words))
                if json:
                    line = json_format.dumps(found.to_record(), ensure_ascii=False)
                out.write(f"{line}\n".encode())
    note_unknown_words(check, common)
