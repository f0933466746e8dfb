"""Treelet counts, made on one machine or on several, and statistics of them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from treelm.corpus.brackets import ReadReport
from treelm.corpus.corpus import TreeCorpus
from treelm.corpus.files import Source, source_name
from treelm.corpus.vocabulary_file import load_vocabulary
from treelm.errors import UsageError
from treelm.estimation.chain import Chain, ChainCounts
from treelm.events.counts import EventCounts
from treelm.models.treelet.config import TreeletConfig
from treelm.models.treelet.count_shards import count_treelets_in_pieces
from treelm.models.treelet.counts import (
    SYSTEM,
    load_treelet_counts,
    merge_treelet_counts,
    save_treelet_counts,
)
from treelm.models.treelet.events import TreeletCounts, count_treelets
from treelm.models.treelet.train import with_temporal_nouns
from treelm.parallel.executor import SERIAL, Executor
from treelm.parallel.memory import MemoryLimit
from treelm.parallel.progress import SILENT, Progress
from treelm.store.folder import open_folder
from treelm.tasks.train import Settle, check_target, check_texts


def build_treelet_counts(
    corpus: TreeCorpus,
    target: Source,
    config: TreeletConfig,
    *,
    vocabulary: Source | None = None,
    temporal: Source | None = None,
    settle: Settle | None = None,
    threads: int = 1,
    memory: MemoryLimit | None = None,
    executor: Executor = SERIAL,
    progress: Progress = SILENT,
) -> TreeletCounts:
    """Count the treelets of trees and save them as a folder.

    Args:
        corpus: Treebank trees.
        target: Folder to write; checked before the work begins.
        config: Variant and transforms.
        vocabulary: Vocabulary file; by default all words of the trees are known.
        temporal: Lexicon of temporal nouns, or a treebank with function tags.
        settle: Checks what was read before it is saved; may raise.
        threads: Number of threads of every worker.
        memory: Memory limit.
        executor: Counts pieces of the trees; the counts are the same whoever does. Unless it is
            this process, temporary files are made in the folder of the memory limit, or beside the
            target, and all workers must see them.
        progress: Progress callback.
    """
    check_target(target)
    check_texts(corpus.paths)
    known = None if vocabulary is None else load_vocabulary(vocabulary)
    report = ReadReport()
    if executor.name == "serial":
        counts = count_treelets(
            corpus,
            with_temporal_nouns(config, corpus, temporal, threads=threads),
            vocabulary=known,
            threads=threads,
            memory=memory,
            report=report,
            progress=progress,
        )
    else:
        counts = count_treelets_in_pieces(
            corpus,
            config,
            executor,
            memory.folder if memory is not None else Path(target).absolute().parent,
            vocabulary=known,
            temporal=temporal,
            threads=threads,
            memory=memory,
            report=report,
            progress=progress,
        )
    if settle is not None:
        settle(report, " ".join(map(source_name, corpus.paths)))
    save_treelet_counts(counts, config.variant, target)
    return counts


def holds_treelet_counts(folders: Sequence[Source]) -> bool:
    """Return whether the first of some folders contains treelet counts."""
    return bool(folders) and open_folder(Path(folders[0])).manifest.system == SYSTEM


def merge_treelet_folders(
    parts: Sequence[Source],
    target: Source,
    *,
    threads: int = 1,
    memory: MemoryLimit | None = None,
) -> TreeletCounts:
    """Merge folders of counts into one, as if the trees had been counted together.

    Args:
        parts: Folders of counts.
        target: Folder to write.
        threads: Number of threads.
        memory: Memory limit.

    Raises:
        UsageError: if they are of different variants or transforms.
    """
    check_target(target)
    loaded = [load_treelet_counts(part) for part in parts]
    if len({config.variant for _, config in loaded}) > 1:
        raise UsageError("counts of different variants cannot be merged.")
    merged = merge_treelet_counts([counts for counts, _ in loaded], threads=threads, memory=memory)
    save_treelet_counts(merged, loaded[0][1].variant, target)
    return merged


def treelet_counts_summary(counts: TreeletCounts) -> dict[str, object]:
    """Return a summary of the counts."""
    return {
        "words": len(counts.vocabulary) - 1,
        "sentences": sum(record.sentences for record in counts.corpora),
        "tokens": sum(record.tokens for record in counts.corpora),
        "labels": len(counts.symbols.labels) - 4,
        "rules": len(counts.symbols.rules) - 1,
        "phrase_events": len(counts.nonterminal),
        "word_events": len(counts.terminal),
        "vocabulary": counts.vocabulary.fingerprint,
    }


def inspect_treelet_counts(folder: Source) -> dict[str, object]:
    """Return what is in a folder of counts.

    For every level of both chains: the number of distinct events, and how many of them have a
    Kneser-Ney count of one, two, three and four.

    Args:
        folder: Folder of counts.
    """
    counts, config = load_treelet_counts(folder)
    chains: dict[str, tuple[EventCounts, Chain]] = {
        "phrases": (counts.nonterminal, config.nonterminal_chain()),
        "words": (counts.terminal, config.terminal_chain(counts.symbols.start)),
    }
    levels = {}
    for name, (events, chain) in chains.items():
        own = ChainCounts(events, chain, keep_tokens=False)
        levels[name] = [
            {
                "context": list(chain.columns[:width]),
                "events": own.size(level),
                "counts_of_counts": list(own.counts_of_counts(level)),
            }
            for level, width in enumerate(chain.widths)
        ]
    corpora = [record.model_dump() for record in counts.corpora]
    return {
        "variant": config.variant,
        "transforms": list(config.applied),
        **treelet_counts_summary(counts),
        "levels": levels,
        "corpora": corpora,
    }
