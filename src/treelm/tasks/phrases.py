"""Make a phrase table, and a table of reordering, from two files that translate each other."""

from __future__ import annotations

from treelm.corpus.files import Source, write_atomically
from treelm.parallel.progress import SILENT, Progress
from treelm.translation.parallel_text import Links, align_words, read_links, read_parallel_text
from treelm.translation.phrases import LONGEST, extract_phrases


def make_phrase_tables(
    source: Source,
    target: Source,
    table: Source,
    *,
    alignment: Source | None = None,
    reordering: Source | None = None,
    write_alignment: Source | None = None,
    longest: int = LONGEST,
    min_count: int = 1,
    progress: Progress = SILENT,
) -> dict[str, int]:
    """Align words, extract phrases and write what is asked for; return how much there was.

    Args:
        source: Tokenized text, one sentence per line.
        target: Its translation, line by line.
        table: The phrase table to write.
        alignment: Word alignments in Pharaoh format; None aligns with eflomal.
        reordering: The table of lexicalised reordering to write.
        write_alignment: The file of word alignments to write.
        longest: Words per side of a phrase at most.
        min_count: Phrase pairs that occur less often are not written.
        progress: Progress callback.
    """
    text = read_parallel_text(source, target)
    if alignment is None:
        with progress.step("aligning words"):
            links = align_words(text)
    else:
        links = read_links(alignment, text)
    if write_alignment is not None:
        _write_links(links, write_alignment)
    tables = extract_phrases(text, links, longest=longest, min_count=min_count, progress=progress)
    tables.write_table(table, progress)
    if reordering is not None:
        tables.write_reordering(reordering, progress)
    return {
        "sentence_pairs": len(text),
        "source_words": len(text.source.ids),
        "target_words": len(text.target.ids),
        "links": int(links.starts[-1]),
        "phrase_pairs": len(tables),
    }


def _write_links(links: Links, target: Source) -> None:
    with write_atomically(target) as file:
        for line in links.lines():
            file.write(f"{line}\n".encode())
