"""`--explain`: the arithmetic of scores, which several commands write."""

from __future__ import annotations

from typing import TYPE_CHECKING

from treelm.cli.model_options import note_unknown_words
from treelm.cli.options import CommonOptions, TextOptions
from treelm.corpus.corpus import TextCorpus
from treelm.corpus.files import write_atomically
from treelm.corpus.lengths import lines_of_sentences
from treelm.tasks.text_check import TextCheck

if TYPE_CHECKING:
    from treelm.models.interface.model import LanguageModel


def write_explanations(
    model: LanguageModel,
    files: list[str] | None,
    output: str,
    *,
    text: TextOptions,
    common: CommonOptions,
    in_bits: bool = False,
) -> None:
    """Write how the score of each sentence is worked out.

    Args:
        model: The model.
        files: Files of sentences.
        output: Where the text goes.
        text: Options of texts.
        common: Options of all commands.
        in_bits: Whether log probabilities are written as surprisal.
    """
    from treelm.tasks.explain_scores import explain_scores, explained_lines
    from treelm.tasks.raw_text import RawText

    check = TextCheck(model.vocabulary, tokenized=text.is_raw)
    raw = RawText(text.tokenizing) if text.is_raw else None
    corpus = TextCorpus(tuple(files or ["-"]))
    found = text.first(corpus.with_documents(None if raw is None else raw.tokenized))

    def watched() -> list[tuple[str, ...]]:
        words = [tuple(sentence.words) for sentence in found]
        check.add_sentences(words)
        return words

    with lines_of_sentences(corpus), write_atomically(output) as out:
        for block in explained_lines(explain_scores(model, watched()), in_bits=in_bits):
            out.write(block.encode())
    note_unknown_words(check, common)
