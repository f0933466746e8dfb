"""How a head-lexicalised model is trained: count, smooth."""

from __future__ import annotations

import numpy as np

from treelm.corpus.brackets import ReadReport
from treelm.corpus.corpus import TextCorpus, TreeCorpus
from treelm.corpus.vocabulary import Vocabulary
from treelm.estimation.backoff_table import BackoffTable
from treelm.estimation.chain import ChainCounts
from treelm.estimation.estimate import GivenBase, estimate
from treelm.models.headlex.config import HeadlexConfig
from treelm.models.headlex.events import HeadlexCounts, count_headlex, headlex_chain
from treelm.models.headlex.model import HeadlexModel
from treelm.models.interface.parsed_text import parsed_text_records, with_parsed_text
from treelm.models.interface.parser import Parser, check_parser
from treelm.models.run import QUIET, Run


def train_headlex(
    corpus: TreeCorpus | None,
    config: HeadlexConfig,
    *,
    text: TextCorpus | None = None,
    parser: Parser | None = None,
    vocabulary: Vocabulary | None = None,
    report: ReadReport | None = None,
    run: Run = QUIET,
) -> HeadlexModel:
    """Return a head-lexicalised model of a treebank.

    Args:
        corpus: Trees; None if there is only text.
        config: Options.
        text: Files of tokenized text; the trees that the parser finds for them are added.
        parser: Model folder of a parser, or a file of parses. A parser that is a model is saved
            with this model, which then scores sentences.
        vocabulary: Vocabulary file. Default: all words of the trees.
        report: Filled with what was read.
        run: How the training is run.

    Raises:
        UsageError: if there is text and no parser.
        EstimationError: ``E_NO_DATA`` without trees.
    """
    if parser is not None:
        check_parser(parser, config.k)  # before hours of counting
    with with_parsed_text(corpus, text, parser, run) as everything:
        counts = count_headlex(
            everything,
            vocabulary=vocabulary,
            threads=run.threads,
            memory=run.memory,
            report=report,
            progress=run.progress,
        )
        profile = everything.options.profile
    corpora = counts.corpora if text is None else parsed_text_records(corpus, text)
    tables = {kind: _table(kind, counts, config, run) for kind in counts.events}
    model = HeadlexModel(
        tables,
        counts.vocabulary,
        counts.unigrams,
        config,
        labels=counts.labels,
        is_child=counts.is_child,
        tags=counts.tags,
        profile=profile,
        corpora=corpora,
    )
    return model if parser is None else model.with_parser(parser)


def _table(kind: str, counts: HeadlexCounts, config: HeadlexConfig, run: Run) -> BackoffTable:
    chain = headlex_chain(kind)
    levels = ChainCounts(
        counts.events[kind], chain, keep_tokens=False, threads=run.threads, memory=run.memory
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
        progress=run.progress,
    )
