"""Counts of n-grams, made on one machine or on several, and what can be said about them."""

from __future__ import annotations

from collections.abc import Sequence

from treelm.corpus.corpus import TextCorpus, TreeCorpus
from treelm.corpus.files import Source
from treelm.corpus.vocabulary_file import load_vocabulary
from treelm.errors import UsageError
from treelm.estimation.chain import ChainCounts
from treelm.models.ngram.config import LARGEST_ORDER
from treelm.models.ngram.counts import NgramCounts, merge_ngram_counts
from treelm.models.ngram.events import ngram_chain
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
    progress: Progress = SILENT,
) -> NgramCounts:
    """Count the n-grams of a text and save them as a folder.

    Args:
        corpus: Tokenized text, one sentence a line, or trees, whose words are taken.
        target: Folder to write; looked at before the work begins.
        order: Words in an n-gram.
        vocabulary: Vocabulary file; by default all words of the text are known.
        threads: Kernel threads; results do not depend on it.
        memory: How much memory may be used; results do not depend on it.
        progress: Told how far it is.

    Raises:
        UsageError: for an impossible order, or a text that can be read only once.
    """
    if not 1 <= order <= LARGEST_ORDER:
        raise UsageError(f"--order {order}: n-grams have 1 to {LARGEST_ORDER} words.")
    check_target(target)
    check_texts(corpus.paths)
    counts = NgramCounts.count(
        corpus,
        order,
        vocabulary=None if vocabulary is None else load_vocabulary(vocabulary),
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
        threads: Kernel threads; results do not depend on it.
        memory: How much memory may be used; results do not depend on it.
    """
    check_target(target)
    merged = merge_ngram_counts(
        [NgramCounts.load(part) for part in parts], threads=threads, memory=memory
    )
    merged.save(target)
    return merged


def counts_summary(counts: NgramCounts) -> dict[str, object]:
    """Return what was counted, in a few numbers."""
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

    For every order: how many distinct n-grams there are, and how many of them Kneser and Ney's
    counts see once, twice, three and four times, from which discounts are estimated.

    Args:
        folder: Folder of counts.
        memory: How much memory may be used.
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
