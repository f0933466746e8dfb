"""From files of trees, or of text and a parser, to a saved model of trees."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from treelm.corpus.brackets import ReadReport
from treelm.corpus.corpus import TreeCorpus
from treelm.corpus.files import Source, read_lines, source_name
from treelm.corpus.vocabulary_file import load_vocabulary
from treelm.errors import UsageError
from treelm.models.headlex.config import HeadlexConfig
from treelm.models.headlex.model import HeadlexModel
from treelm.models.headlex.train import train_headlex
from treelm.models.interface.model import LanguageModel
from treelm.models.interface.tree_model import GivesTrees
from treelm.models.registry import load
from treelm.models.treelet.config import TreeletConfig
from treelm.models.treelet.counts import load_treelet_counts, merge_treelet_counts
from treelm.models.treelet.model import TreeletModel
from treelm.models.treelet.train import train_on_counts, train_treelet
from treelm.parallel.memory import MemoryLimit
from treelm.parallel.progress import SILENT, Progress
from treelm.tasks.parse import parse_batches
from treelm.tasks.train import check_target, check_texts
from treelm.tasks.transform import find_temporal_words

Model = TypeVar("Model", TreeletModel, HeadlexModel)

#: Looks at what was read before anything is made of it.
Settle = Callable[[ReadReport], None]


def train_treelet_model(
    corpus: TreeCorpus,
    target: Source,
    config: TreeletConfig,
    *,
    texts: Sequence[Source] = (),
    parser: Source | None = None,
    vocabulary: Source | None = None,
    held_out: TreeCorpus | None = None,
    temporal: Source | None = None,
    settle: Settle | None = None,
    threads: int = 1,
    memory: MemoryLimit | None = None,
    progress: Progress = SILENT,
) -> TreeletModel:
    """Train a treelet model and save it.

    Args:
        corpus: Trees as a treebank has them.
        target: Model folder to write; looked at before the work begins.
        config: Options; temporal nouns are found here.
        texts: Text that the parser gives trees, which then belong to the corpus.
        parser: Model folder of a parser; the model is saved with it.
        vocabulary: Vocabulary file; by default all words of the trees are known.
        held_out: Trees on which ``jm`` finds its weights.
        temporal: Lexicon of temporal nouns, or a treebank with function tags; by default they are
            collected from the corpus.
        settle: Looks at what was read before the model is made; may raise.
        threads: Kernel threads; results do not depend on it.
        memory: How much memory may be used; results do not depend on it.
        progress: Told how far it is.

    Raises:
        UsageError: if a file can be read only once, or there is text and no parser.
    """
    check_target(target)
    check_texts([*corpus.paths, *texts, *(held_out.paths if held_out is not None else ())])
    words = None if vocabulary is None else load_vocabulary(vocabulary)
    loaded = _load_parser(parser, texts)
    config = with_temporal_nouns(config, corpus, temporal, threads=threads)
    with _with_parsed(corpus, texts, loaded, target, threads=threads) as everything:
        report = ReadReport()
        model = train_treelet(
            everything,
            config,
            vocabulary=words,
            held_out=held_out,
            threads=threads,
            memory=memory,
            report=report,
            progress=progress,
        )
        if settle is not None:
            settle(report)
    return _saved(model, loaded, target)


def with_temporal_nouns(
    config: TreeletConfig, corpus: TreeCorpus, temporal: Source | None, *, threads: int = 1
) -> TreeletConfig:
    """Return options with the temporal nouns of a lexicon or a treebank, if they matter."""
    if "temporal_nouns" not in config.applied:
        return config
    nouns = find_temporal_words(corpus.paths, temporal, corpus.options.profile, threads=threads)
    return config.model_copy(update={"temporal": tuple(sorted(nouns))})


def train_counted_treelet_model(
    counts: Sequence[Source],
    target: Source,
    options: dict[str, object],
    *,
    parser: Source | None = None,
    threads: int = 1,
    memory: MemoryLimit | None = None,
    progress: Progress = SILENT,
) -> TreeletModel:
    """Train a treelet model on counts and save it.

    Args:
        counts: Folders of counts, merged here if there are several.
        target: Model folder to write; looked at before the work begins.
        options: Options; variant and transforms are those of the counts.
        parser: Model folder of a parser; the model is saved with it.
        threads: Kernel threads; results do not depend on it.
        memory: How much memory may be used; results do not depend on it.
        progress: Told how far it is.
    """
    check_target(target)
    loaded = _load_parser(parser, ())
    parts = [load_treelet_counts(folder) for folder in counts]
    of_counts = parts[0][1]
    given = {
        name: getattr(of_counts, name)
        for name in ("variant", "transforms", "vp_label", "temporal", "marked_tags")
    }
    config = TreeletModel.make_config({**options, **given})
    assert isinstance(config, TreeletConfig)  # what a treelet model makes of options
    merged = (
        parts[0][0]
        if len(parts) == 1
        else merge_treelet_counts([part for part, _ in parts], threads=threads, memory=memory)
    )
    merged.check()
    model = train_on_counts(merged, config, threads=threads, memory=memory, progress=progress)
    return _saved(model, loaded, target)


def train_headlex_model(
    corpus: TreeCorpus,
    target: Source,
    config: HeadlexConfig,
    *,
    texts: Sequence[Source] = (),
    parser: Source | None = None,
    vocabulary: Source | None = None,
    settle: Settle | None = None,
    threads: int = 1,
    memory: MemoryLimit | None = None,
    progress: Progress = SILENT,
) -> HeadlexModel:
    """Train a head-lexicalised model and save it; the arguments are those of treelet models."""
    check_target(target)
    check_texts([*corpus.paths, *texts])
    words = None if vocabulary is None else load_vocabulary(vocabulary)
    loaded = _load_parser(parser, texts)
    with _with_parsed(corpus, texts, loaded, target, threads=threads) as everything:
        report = ReadReport()
        model = train_headlex(
            everything,
            config,
            vocabulary=words,
            threads=threads,
            memory=memory,
            report=report,
            progress=progress,
        )
        if settle is not None:
            settle(report)
    return _saved(model, loaded, target)


def _load_parser(parser: Source | None, texts: Sequence[Source]) -> LanguageModel | None:
    if parser is None:
        if texts:
            raise UsageError("text has no trees: give a parser with --parser to find them.")
        return None
    return load(parser)


def _saved(model: Model, parser: LanguageModel | None, target: Source) -> Model:
    if parser is not None:
        if not isinstance(parser, GivesTrees):
            raise UsageError(f"a model of the system {parser.system} does not parse.")
        model = model.with_parser(parser)
    model.save(target)
    return model


@contextmanager
def _with_parsed(
    corpus: TreeCorpus,
    texts: Sequence[Source],
    parser: LanguageModel | None,
    target: Source,
    *,
    threads: int,
) -> Iterator[TreeCorpus]:
    """Give the corpus with the trees of texts, which lie beside the target meanwhile."""
    if not texts or parser is None:
        yield corpus
        return
    with tempfile.TemporaryDirectory(dir=Path(target).absolute().parent) as folder:
        paths: list[Source] = list(corpus.paths)
        for number, text in enumerate(texts):
            parsed = Path(folder) / f"{number}.{Path(source_name(text)).name}.parsed.mrg"
            with parsed.open("wb") as out:
                for batch in parse_batches(parser, read_lines(text), threads=threads, source=text):
                    best = (found[0] for found in batch.k_best if found)
                    out.writelines(
                        f"{parse.tree}\n".encode() for parse in best if not parse.is_fallback
                    )
            paths.append(parsed)
        yield replace(corpus, paths=tuple(paths))
