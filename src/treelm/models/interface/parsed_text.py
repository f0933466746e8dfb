"""Text that a parser gives trees, so that a model of trees can be trained on it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from treelm.corpus.corpus import TextCorpus, TreeCorpus
from treelm.corpus.file_kinds import Wanted
from treelm.corpus.files import NamedFile, Source, read_lines, source_name
from treelm.corpus.temporary import temporary_folder
from treelm.errors import UsageError, option
from treelm.grammar.k_best import is_fallback
from treelm.models.interface.parser import Parser, k_best_lists
from treelm.models.interface.sentence_batches import worked_batches
from treelm.models.interface.trained_model import corpus_record
from treelm.models.run import Run
from treelm.store.manifest import TrainingCorpus

#: Lines that are parsed at once.
_LINES_AT_ONCE = 512


@contextmanager
def with_parsed_text(
    corpus: TreeCorpus | None, text: TextCorpus | None, parser: Parser | None, run: Run
) -> Iterator[TreeCorpus]:
    """Give a corpus with the best trees of a text, which lie in temporary files meanwhile.

    Sentences for which the parser has no tree are left out.

    Args:
        corpus: Trees that come first; None for none.
        text: The text; None for none.
        parser: What gives it trees.
        run: How the training is run.

    Raises:
        UsageError: without trees and text, or if there is a text and no parser.
    """
    if corpus is None and text is None:
        raise UsageError(
            f"give trees ({option('trees')}), or text with a parser ({option('text')}, "
            f"{option('parser')}), or both."
        )
    trees = TreeCorpus(()) if corpus is None else corpus
    if text is None:
        yield trees
        return
    if parser is None:
        raise UsageError(f"text has no trees: give a parser with {option('parser')} to find them.")
    with temporary_folder(run.temporary) as folder:
        paths: list[Source] = list(trees.paths)
        for number, source in enumerate(text.paths):
            parsed = folder / f"{number}.mrg"
            _parse(source, parser, parsed, run)
            # Messages about these trees name the text; a temporary name says nothing.
            paths.append(NamedFile(parsed, f"{source_name(source)}, parsed"))
        yield replace(trees, paths=tuple(paths))


def parsed_text_records(corpus: TreeCorpus | None, text: TextCorpus) -> tuple[TrainingCorpus, ...]:
    """Return what a manifest says about trees and a text that was parsed: the user's own files."""
    trees = () if corpus is None or not corpus.paths else (corpus_record(corpus),)
    return (*trees, corpus_record(text))


def _parse(source: Source, parser: Parser, target: Path, run: Run) -> None:
    def parse(batch: Sequence[Sequence[str]]) -> list[str]:
        found = k_best_lists(parser, batch, 1, threads=run.threads)
        return [f"{best[0].tree}\n" for best in found if best and not is_fallback(best)]

    vocabulary = getattr(parser, "vocabulary", None)
    with target.open("wb") as out, run.progress.step("parsing", unit="sentences") as step:
        for _, batch, lines in worked_batches(
            vocabulary, read_lines(source, Wanted.TEXT), _LINES_AT_ONCE, parse, source, 1
        ):
            out.writelines(line.encode() for line in lines)
            step.advance(len(batch))
