"""The corpus a command is given: files of text, or files of trees."""

from __future__ import annotations

from collections.abc import Callable

from treelm.cli.options import CommonOptions, TreeOptions, settle_reading
from treelm.corpus.brackets import ReadReport
from treelm.corpus.corpus import TextCorpus, TreeCorpus
from treelm.corpus.files import source_name
from treelm.errors import UsageError
from treelm.tasks.train import check_texts


def corpus_of(
    text: list[str] | None, trees: list[str] | None, reading: TreeOptions, common: CommonOptions
) -> TextCorpus | TreeCorpus:
    """Return the corpus that ``--text`` or ``--trees`` names; malformed trees are reported.

    Raises:
        UsageError: unless one of the two is given, and can be read more than once.
    """
    if (text is None) == (trees is None):
        raise UsageError("give either --text or --trees, with the files after it.")
    check_texts(text or trees or ())
    if text is not None:
        return TextCorpus(tuple(text))
    corpus = reading.corpus(trees or ())
    settle_reading(corpus.read_through(), common, " ".join(map(source_name, corpus.paths)))
    return corpus


def trees_of(trees: list[str], reading: TreeOptions, common: CommonOptions) -> TreeCorpus:
    """Return the corpus of files of trees; malformed ones are reported."""
    corpus = corpus_of(None, trees, reading, common)
    assert isinstance(corpus, TreeCorpus)
    return corpus


def settler(common: CommonOptions) -> Callable[[ReadReport, str], None]:
    """Return what reports malformed trees, and refuses too many."""

    def settle(report: ReadReport, source: str) -> None:
        settle_reading(report, common, source)

    return settle
