"""N-gram counts, made on one machine or on several, and statistics of them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from treelm.corpus.corpus import TextCorpus, TreeCorpus
from treelm.corpus.files import Source
from treelm.corpus.vocabulary_file import load_vocabulary
from treelm.errors import UsageError, option
from treelm.estimation.chain import ChainCounts
from treelm.models.ngram.config import LARGEST_ORDER
from treelm.models.ngram.count_shards import count_in_pieces
from treelm.models.ngram.counts import NgramCounts, merge_ngram_counts
from treelm.models.ngram.events import ngram_chain
from treelm.parallel.executor import SERIAL, Executor
from treelm.parallel.memory import MemoryLimit
from treelm.parallel.progress import SILENT, Progress
from treelm.tasks.train import check_target, check_texts


def build_counts(
    corpus: TextCorpus | TreeCorpus,
    target: Source,
    order: int,
    *,
    vocabulary: Source | None = None,
    threads: int = 1,
    memory: MemoryLimit | None = None,
    executor: Executor = SERIAL,
    progress: Progress = SILENT,
) -> NgramCounts:
    """Count the n-grams of a text and save them as a folder.

    Args:
        corpus: Tokenized text, one sentence per line, or trees, whose words are taken.
        target: Folder to write; checked before the work begins.
        order: Length of the n-grams.
        vocabulary: Vocabulary file; by default all words of the text are known.
        threads: Number of threads of every worker.
        memory: Memory limit.
        executor: Counts pieces of the text; the counts are the same whoever does. Unless it is this
            process, temporary files are made in the folder of the memory limit, or beside the
            target, and all workers must see them.
        progress: Progress callback.

    Raises:
        UsageError: for an impossible order, a text that can be read only once, or trees and other
            workers.
    """
    if not 1 <= order <= LARGEST_ORDER:
        raise UsageError(
            f"{option('order')} {order}: n-grams must have 1 to {LARGEST_ORDER} words."
        )
    check_target(target)
    check_texts(corpus.paths)
    known = None if vocabulary is None else load_vocabulary(vocabulary)
    if executor.name == "serial":
        counts = NgramCounts.count(
            corpus, order, vocabulary=known, threads=threads, memory=memory, progress=progress
        )
    elif isinstance(corpus, TreeCorpus):
        raise UsageError(
            f"{option('engine', executor.name)} counts text; the words of trees are counted by one "
            "process."
        )
    else:
        counts = count_in_pieces(
            corpus,
            order,
            executor,
            memory.folder if memory is not None else Path(target).absolute().parent,
            vocabulary=known,
            threads=threads,
            memory=memory,
            progress=progress,
        )
    counts.save(target)
    return counts


def merge_counts(
    parts: Sequence[Source],
    target: Source,
    *,
    threads: int = 1,
    memory: MemoryLimit | None = None,
) -> NgramCounts:
    """Merge folders of counts into one, as if the texts had been counted together.

    Args:
        parts: Folders of counts.
        target: Folder to write.
        threads: Number of threads.
        memory: Memory limit.
    """
    check_target(target)
    merged = merge_ngram_counts(
        [NgramCounts.load(part) for part in parts], threads=threads, memory=memory
    )
    merged.save(target)
    return merged


def counts_summary(counts: NgramCounts) -> dict[str, object]:
    """Return a summary of the counts."""
    return {
        "order": counts.order,
        "words": len(counts.vocabulary) - 1,
        "sentences": sum(record.sentences for record in counts.corpora),
        "tokens": sum(record.tokens for record in counts.corpora),
        "ngrams": len(counts.events),
        "vocabulary": counts.vocabulary.fingerprint,
    }


def inspect_counts(folder: Source, *, memory: MemoryLimit | None = None) -> dict[str, object]:
    """Return what is in a folder of counts.

    For every order: the number of distinct n-grams, and how many of them have a Kneser-Ney count
    of one, two, three and four, from which discounts are estimated.

    Args:
        folder: Folder of counts.
        memory: Memory limit.
    """
    counts = NgramCounts.load(folder)
    levels = ChainCounts(
        counts.events, ngram_chain(counts.order, counts.space), keep_tokens=False, memory=memory
    )
    orders = [
        {
            "order": counts.order - level,
            "ngrams": levels.size(level),
            "counts_of_counts": list(levels.counts_of_counts(level)),
        }
        for level in reversed(range(len(levels)))
    ]
    corpora = [record.model_dump() for record in counts.corpora]
    return {**counts_summary(counts), "orders": orders, "corpora": corpora}
