"""`treelm parse --incremental`."""

from __future__ import annotations

from typing import NamedTuple

from treelm.cli.model_options import LengthOptions, SearchOptions, note_unknown_words, open_model
from treelm.cli.options import CommonOptions, TextOptions
from treelm.corpus.corpus import TextCorpus
from treelm.corpus.files import write_atomically
from treelm.corpus.lengths import after_sentences, lines_of_sentences
from treelm.errors import UsageError
from treelm.models.interface.model import Task
from treelm.models.interface.partial_parses import PartialParses
from treelm.tasks.raw_text import RawText
from treelm.tasks.text_check import TextCheck


class IncrementalCall(NamedTuple):
    """What is parsed word by word, and where it goes."""

    files: list[str] | None
    model: str | None
    k: int
    output: str


def write_partial_parses(
    call: IncrementalCall,
    *,
    refused: bool,
    search: SearchOptions,
    length: LengthOptions,
    text: TextOptions,
    common: CommonOptions,
) -> None:
    """Write the partial trees of sentences, in the format that the output is named after.

    Args:
        call: Files, model, number of trees and output.
        refused: Whether options were given that go with whole trees only.
        search: Options of the search.
        length: Options of lengths.
        text: Options of texts.
        common: Options of all commands.
    """
    from treelm.tasks.partial_parses import (
        partial_format,
        partial_parser,
        partial_parses_content,
    )

    if refused:
        raise UsageError(
            "--incremental shows partial trees: it cannot be combined with files of parses, "
            "--engine, --fast, --accurate or --long."
        )
    form = partial_format(call.output)
    # Of the ready models, that which reads word by word is the one with partial trees.
    opened = open_model(call.model, Task.SURPRISAL, text, common)
    loaded = length.apply(search.apply(opened.model))
    parser = partial_parser(loaded)
    check = TextCheck(loaded.vocabulary, tokenized=opened.text.is_raw)
    raw = RawText(opened.text.tokenizing) if opened.text.is_raw else None
    corpus = TextCorpus(tuple(call.files or ["-"]))
    sentences = opened.text.first(corpus.with_documents(None if raw is None else raw.tokenized))
    parsed: list[PartialParses] = []
    with lines_of_sentences(corpus):
        for sentence in sentences:
            check.add_sentences([sentence.words])
            with after_sentences(len(parsed)):
                parsed.append(parser.partial_parses(sentence.words, call.k))
    with write_atomically(call.output) as out:
        out.write(partial_parses_content(parsed, form))
    note_unknown_words(check, common)
