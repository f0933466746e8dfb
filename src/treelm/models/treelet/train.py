"""How a treelet model is trained: transform, count, smooth."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from treelm.corpus.brackets import ReadReport
from treelm.corpus.corpus import TextCorpus, TreeCorpus
from treelm.corpus.files import Source
from treelm.corpus.vocabulary import Vocabulary
from treelm.errors import UsageError, option
from treelm.estimation.backoff_table import BackoffTable
from treelm.estimation.chain import Chain, ChainCounts, CountKind
from treelm.estimation.estimate import Base, GivenBase, UniformBase, estimate
from treelm.estimation.jelinek_mercer import BaseOf, Floats, jelinek_mercer_weights
from treelm.estimation.smoothing import Smoothing
from treelm.estimation.yields import YieldBase
from treelm.events.counts import EventCounts, Ids
from treelm.models.interface.parsed_text import parsed_text_records, with_parsed_text
from treelm.models.interface.parser import Parser, check_parser
from treelm.models.run import QUIET, Run
from treelm.models.treelet.config import TreeletConfig
from treelm.models.treelet.counts import CountedTreelets
from treelm.models.treelet.events import TreeletCounts, count_held_out, count_treelets, rules_of
from treelm.models.treelet.model import TreeletModel
from treelm.models.treelet.tables import TreeletTables
from treelm.transforms.temporal_lexicon import find_temporal_words


def train_treelet(
    corpus: TreeCorpus | CountedTreelets | None,
    config: TreeletConfig,
    *,
    text: TextCorpus | None = None,
    parser: Parser | None = None,
    vocabulary: Vocabulary | None = None,
    held_out: TreeCorpus | None = None,
    temporal: Source | None = None,
    report: ReadReport | None = None,
    run: Run = QUIET,
) -> TreeletModel:
    """Return a treelet model of a treebank.

    Args:
        corpus: Trees as a treebank has them, which are transformed here; or counts, whose variant
            and transforms are then those of the model; None if there is only text.
        config: Options; temporal nouns are found here unless they are given.
        text: Files of tokenized text; the trees that the parser finds for them are added.
        parser: Model folder of a parser, or a file of parses. A parser that is a model is saved
            with this model, which then scores sentences.
        vocabulary: Vocabulary file. Default: all words of the trees.
        held_out: Trees on which smoothing jm finds its weights.
        temporal: Lexicon of temporal nouns, or a treebank with function tags. Default: collected
            from the trees.
        report: Filled with what was read.
        run: How the training is run.

    Raises:
        UsageError: if options and inputs do not fit together.
        CorpusFormatError: for malformed trees.
        EstimationError: ``E_NO_DATA`` without trees.
    """
    if parser is not None:
        check_parser(parser, config.k)  # before hours of counting
    if isinstance(corpus, CountedTreelets):
        others = (text, vocabulary, held_out, temporal)
        counts, config = corpus.counts, corpus.config_with(config)
        if any(other is not None for other in others):
            raise UsageError(
                "counts cannot be combined with what says how trees are counted: text, vocabulary, "
                "temporal nouns, held-out trees."
            )
    else:
        _check_held_out(config, held_out)
        config = with_temporal_nouns(config, corpus, temporal, threads=run.threads)
        with with_parsed_text(corpus, text, parser, run) as everything:
            counts = count_treelets(
                everything,
                config,
                vocabulary=vocabulary,
                threads=run.threads,
                memory=run.memory,
                report=report,
                progress=run.progress,
            )
        if text is not None:
            counts = replace(counts, corpora=parsed_text_records(corpus, text))
    model = _train_on_counts(counts, config, held_out=held_out, run=run)
    return model if parser is None else model.with_parser(parser)


def with_temporal_nouns(
    config: TreeletConfig,
    corpus: TreeCorpus | None,
    temporal: Source | None = None,
    *,
    threads: int = 1,
    collect: Callable[[list[Source]], frozenset[str]] | None = None,
) -> TreeletConfig:
    """Return options with the temporal nouns of a lexicon or a treebank, if they matter.

    Args:
        config: Options.
        corpus: Trees.
        temporal: Lexicon, or a treebank with function tags.
        threads: Number of threads.
        collect: Reads the trees of the corpus for their nouns; None for this process.
    """
    if "temporal_nouns" not in config.applied or "temporal" in config.model_fields_set:
        return config
    trees = TreeCorpus(()) if corpus is None else corpus
    nouns = find_temporal_words(
        trees.paths, temporal, trees.options.profile, threads=threads, collect=collect
    )
    return config.model_copy(update={"temporal": tuple(sorted(nouns))})


def _train_on_counts(
    counts: TreeletCounts, config: TreeletConfig, *, held_out: TreeCorpus | None, run: Run
) -> TreeletModel:
    """Return the model of counts; variant and transforms must be those of the counts."""
    _check_held_out(config, held_out)
    threads = run.threads
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
        run=run,
    )
    terminal = _table(
        counts.terminal,
        config.terminal_chain(counts.symbols.start),
        UniformBase(size),
        config,
        None if held is None else held[1],
        outcomes=size,
        labels=len(counts.symbols.labels),
        run=run,
    )
    tags, word_tags = counts.word_tags()
    tables = TreeletTables(
        counts.symbols, nonterminal, terminal, base, counts.is_tag, tags, word_tags
    )
    model = TreeletModel(
        tables,
        counts.vocabulary,
        counts.unigrams,
        config.model_copy(
            update={"bits": None, "layout": "hashed", "marked_tags": counts.marked_tags}
        ),
        transform=counts.transform,
        corpora=counts.corpora,
    )
    if config.bits is not None:
        model = model.quantized(config.bits, threads=threads, progress=run.progress)
    if config.layout in ("hashed", model.layout):
        return model
    return model.compacted(memory=run.memory, progress=run.progress)


def _check_held_out(config: TreeletConfig, held_out: TreeCorpus | None) -> None:
    if (config.smoothing == "jm") != (held_out is not None):
        raise UsageError(
            "smoothing jm finds its weights on trees that the counts have not seen: give some "
            f"with {option('held_out')}. No other smoothing takes any."
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
    run: Run,
) -> BackoffTable:
    kind: CountKind = "tokens" if config.smoothing == "jm" else "types"
    levels = ChainCounts(
        events,
        chain,
        counts=kind,
        keep_tokens=config.min_count > 1,
        threads=run.threads,
        memory=run.memory,
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
        progress=run.progress,
    )
