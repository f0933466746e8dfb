"""How a treelet model is trained: transform, count, smooth."""

from __future__ import annotations

import numpy as np

from treelm.corpus.brackets import ReadReport
from treelm.corpus.corpus import TreeCorpus
from treelm.corpus.vocabulary import Vocabulary
from treelm.errors import UsageError
from treelm.estimation.backoff_table import BackoffTable
from treelm.estimation.chain import Chain, ChainCounts, CountKind
from treelm.estimation.estimate import Base, GivenBase, UniformBase, estimate
from treelm.estimation.jelinek_mercer import BaseOf, Floats, jelinek_mercer_weights
from treelm.estimation.smoothing import Smoothing
from treelm.estimation.yields import YieldBase
from treelm.events.counts import EventCounts, Ids
from treelm.models.treelet.config import TreeletConfig
from treelm.models.treelet.events import TreeletCounts, count_held_out, count_treelets, rules_of
from treelm.models.treelet.model import TreeletModel
from treelm.models.treelet.tables import TreeletTables
from treelm.parallel.memory import MemoryLimit
from treelm.parallel.progress import SILENT, Progress


def train_treelet(
    corpus: TreeCorpus,
    config: TreeletConfig,
    *,
    vocabulary: Vocabulary | None = None,
    held_out: TreeCorpus | None = None,
    threads: int = 1,
    memory: MemoryLimit | None = None,
    report: ReadReport | None = None,
    progress: Progress = SILENT,
) -> TreeletModel:
    """Return a treelet model of a treebank.

    Args:
        corpus: Trees as a treebank has them; they are transformed here.
        config: Options.
        vocabulary: The words to know; by default all words of the trees.
        held_out: Trees on which ``jm`` finds its weights.
        threads: Kernel threads; results do not depend on it.
        memory: How much memory may be used; results do not depend on it.
        report: Filled with what was read.
        progress: Told how far it is.

    Raises:
        UsageError: if ``jm`` has no held-out trees, or another smoothing has some.
        CorpusFormatError: for malformed trees.
        EstimationError: ``E_NO_DATA`` without trees.
    """
    _check_held_out(config, held_out)
    counts = count_treelets(
        corpus,
        config,
        vocabulary=vocabulary,
        threads=threads,
        memory=memory,
        report=report,
        progress=progress,
    )
    return train_on_counts(
        counts, config, held_out=held_out, threads=threads, memory=memory, progress=progress
    )


def train_on_counts(
    counts: TreeletCounts,
    config: TreeletConfig,
    *,
    held_out: TreeCorpus | None = None,
    threads: int = 1,
    memory: MemoryLimit | None = None,
    progress: Progress = SILENT,
) -> TreeletModel:
    """Return a treelet model of what was counted.

    Args:
        counts: The events of trees.
        config: Options; variant and transforms must be those of the counts.
        held_out: Trees on which ``jm`` finds its weights.
        threads: Kernel threads; results do not depend on it.
        memory: How much memory may be used; results do not depend on it.
        progress: Told how far it is.
    """
    _check_held_out(config, held_out)
    widths = tuple(
        1 + len(x.context) for x in (config.nonterminal_template, config.terminal_template)
    )
    if (counts.nonterminal.columns, counts.terminal.columns) != widths:
        raise UsageError(f"these are not the counts of the variant {config.variant}.")
    rules, rule_counts = counts.rules
    base = YieldBase.estimate(
        rules,
        rule_counts,
        labels=len(counts.symbols.labels),
        smoothing=config.smooth,
        weight=config.yield_weight,
        base_counts=config.base_counts,
        unknown=config.unknown_symbol,
        precision=config.precision,
        threads=threads,
    )
    given = base.probabilities(rules, threads=threads)
    held = None
    if held_out is not None:
        phrases, words, symbols = count_held_out(held_out, counts, config, threads=threads)

        def base_of(rows: Ids) -> Floats:
            return base.probabilities(rules_of(symbols, rows[:, 0], rows[:, 1]), threads=threads)

        held = (phrases, base_of), (words, _uniform(len(counts.vocabulary)))
    size = len(counts.vocabulary)
    nonterminal = _table(
        counts.nonterminal,
        config.nonterminal_chain(),
        GivenBase(given),
        config,
        None if held is None else held[0],
        outcomes=len(counts.symbols.yield_starts) - 1,
        labels=len(counts.symbols.labels),
        threads=threads,
        memory=memory,
        progress=progress,
    )
    terminal = _table(
        counts.terminal,
        config.terminal_chain(counts.symbols.start),
        UniformBase(size),
        config,
        None if held is None else held[1],
        outcomes=size,
        labels=len(counts.symbols.labels),
        threads=threads,
        memory=memory,
        progress=progress,
    )
    tags, word_tags = counts.word_tags()
    tables = TreeletTables(
        counts.symbols, nonterminal, terminal, base, counts.is_tag, tags, word_tags
    )
    model = TreeletModel(
        tables,
        counts.vocabulary,
        counts.unigrams,
        config.model_copy(update={"bits": None, "marked_tags": counts.marked_tags}),
        transform=counts.transform,
        corpora=counts.corpora,
    )
    if config.bits is None:
        return model
    return model.quantized(config.bits, threads=threads, progress=progress)


def _check_held_out(config: TreeletConfig, held_out: TreeCorpus | None) -> None:
    if (config.smoothing == "jm") != (held_out is not None):
        raise UsageError(
            "smoothing jm finds its weights on trees that the counts have not seen: give some "
            "with --held-out. No other smoothing takes any."
        )


def _uniform(size: int) -> BaseOf:
    return lambda rows: np.full(len(rows), 1 / size)


def _table(
    events: EventCounts,
    chain: Chain,
    base: Base,
    config: TreeletConfig,
    held_out: tuple[EventCounts, BaseOf] | None,
    *,
    outcomes: int,
    labels: int,
    threads: int,
    memory: MemoryLimit | None,
    progress: Progress,
) -> BackoffTable:
    kind: CountKind = "tokens" if config.smoothing == "jm" else "types"
    levels = ChainCounts(
        events,
        chain,
        counts=kind,
        keep_tokens=config.min_count > 1,
        threads=threads,
        memory=memory,
    )
    if held_out is None:
        smoothing = config.smooth(levels)
    else:
        weights = jelinek_mercer_weights([(levels, held_out[0])], levels, held_out[1])
        smoothing = Smoothing(
            ((0.0, 0.0, 0.0),) * len(levels),
            weights=tuple(tuple(level.weights.tolist()) for level in weights),
            min_counts=config.least(chain),
        )
    return estimate(
        levels,
        smoothing,
        base,
        outcomes=outcomes,
        first_contexts=labels,
        precision=config.precision,
        progress=progress,
    )
