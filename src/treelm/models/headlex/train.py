"""How a head-lexicalised model is trained: count, smooth."""

from __future__ import annotations

import numpy as np

from treelm.corpus.brackets import ReadReport
from treelm.corpus.corpus import TreeCorpus
from treelm.corpus.vocabulary import Vocabulary
from treelm.estimation.backoff_table import BackoffTable
from treelm.estimation.chain import ChainCounts
from treelm.estimation.estimate import GivenBase, estimate
from treelm.models.headlex.config import HeadlexConfig
from treelm.models.headlex.events import HeadlexCounts, count_headlex, headlex_chain
from treelm.models.headlex.model import HeadlexModel
from treelm.parallel.memory import MemoryLimit
from treelm.parallel.progress import SILENT, Progress


def train_headlex(
    corpus: TreeCorpus,
    config: HeadlexConfig,
    *,
    vocabulary: Vocabulary | None = None,
    threads: int = 1,
    memory: MemoryLimit | None = None,
    report: ReadReport | None = None,
    progress: Progress = SILENT,
) -> HeadlexModel:
    """Return a head-lexicalised model of a treebank.

    Args:
        corpus: Trees.
        config: Options.
        vocabulary: The words to know; by default all words of the trees.
        threads: Kernel threads; results do not depend on it.
        memory: How much memory may be used; results do not depend on it.
        report: Filled with what was read.
        progress: Told how far it is.

    Raises:
        EstimationError: ``E_NO_DATA`` without trees.
    """
    counts = count_headlex(
        corpus,
        vocabulary=vocabulary,
        threads=threads,
        memory=memory,
        report=report,
        progress=progress,
    )
    tables = {
        kind: _table(kind, counts, config, threads=threads, memory=memory, progress=progress)
        for kind in counts.events
    }
    return HeadlexModel(
        tables,
        counts.vocabulary,
        counts.unigrams,
        config,
        labels=counts.labels,
        is_child=counts.is_child,
        tags=counts.tags,
        profile=corpus.options.profile,
        corpora=counts.corpora,
    )


def _table(
    kind: str,
    counts: HeadlexCounts,
    config: HeadlexConfig,
    *,
    threads: int,
    memory: MemoryLimit | None,
    progress: Progress,
) -> BackoffTable:
    chain = headlex_chain(kind)
    levels = ChainCounts(
        counts.events[kind], chain, keep_tokens=False, threads=threads, memory=memory
    )
    # Below the last level lie the labels seen as a child and the unknown one, with STOP for
    # modifiers; or all words.
    symbols = int(counts.is_child.sum()) + 1
    sizes = {"top_label": symbols, "head_label": symbols, "modifier": symbols + 1}
    size = sizes.get(kind, len(counts.vocabulary))
    words = kind in ("top_word", "word")
    return estimate(
        levels,
        config.smooth(levels),
        GivenBase(np.full(levels.size(len(levels) - 1), 1 / size)),
        outcomes=len(counts.vocabulary) if words else len(counts.labels),
        first_contexts=len(counts.labels),
        precision=config.precision,
        progress=progress,
    )
