"""The corpus a command is given: files of text, or files of trees."""

from __future__ import annotations

from treelm.cli.options import CommonOptions, TreeOptions, settle_reading
from treelm.corpus.brackets import ReadReport
from treelm.corpus.corpus import TextCorpus, TreeCorpus
from treelm.corpus.files import can_be_read_twice, source_name
from treelm.errors import UsageError


def corpus_of(
    text: list[str] | None, trees: list[str] | None, reading: TreeOptions, common: CommonOptions
) -> TextCorpus | TreeCorpus:
    """Return the corpus that ``--text`` or ``--trees`` names; malformed trees are reported.

    Raises:
        UsageError: unless one of the two is given, and can be read more than once.
    """
    if (text is None) == (trees is None):
        raise UsageError("give either --text or --trees, with the files after it.")
    for file in text or trees or ():
        if not can_be_read_twice(file):
            raise UsageError(
                f"{source_name(file)} can be read only once, and this needs several passes; write "
                "it to a file first."
            )
    if text is not None:
        return TextCorpus(tuple(text))
    corpus = TreeCorpus(
        tuple(trees or ()),
        reading.read_options(),
        on_error=reading.on_error,
        threads=reading.thread_count,
    )
    report = ReadReport()
    for _ in corpus.batches(report):
        pass  # a quick pass of the kernel, to say what is malformed
    settle_reading(report, common, " ".join(map(source_name, trees or ())))
    return corpus


def trees_of(trees: list[str], reading: TreeOptions, common: CommonOptions) -> TreeCorpus:
    """Return the corpus of files of trees; malformed ones are reported."""
    corpus = corpus_of(None, trees, reading, common)
    assert isinstance(corpus, TreeCorpus)
    return corpus
