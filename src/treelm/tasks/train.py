"""From files of text to a saved model."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from treelm.corpus.corpus import TextCorpus, TreeCorpus
from treelm.corpus.files import Source, can_be_read_twice, source_name
from treelm.corpus.vocabulary_file import load_vocabulary
from treelm.errors import UsageError
from treelm.models.hhmm.model import HhmmModel
from treelm.models.interface.model import Config
from treelm.models.mixture.model import InterpolatedModel, InterpolatedSentences
from treelm.models.mixture.train import train_interpolated
from treelm.models.ngram.config import NgramConfig
from treelm.models.ngram.counts import NgramCounts
from treelm.models.ngram.model import NgramModel
from treelm.models.ngram.train import train_on_counts
from treelm.models.pcfg.model import PcfgModel
from treelm.models.pcfg_la.checkpoint import Checkpoint
from treelm.models.pcfg_la.config import PcfgLaConfig
from treelm.models.pcfg_la.model import PcfgLaModel
from treelm.models.pcfg_la.train import TrainingWatch, train_pcfg_la
from treelm.models.registry import load
from treelm.parallel.memory import MemoryLimit
from treelm.parallel.progress import SILENT, Progress
from treelm.store.replacement import check_replaceable


def train_ngram_model(
    corpus: TextCorpus | TreeCorpus,
    target: Source,
    config: Config,
    *,
    vocabulary: Source | None = None,
    held_out: Source | None = None,
    measure: Source | None = None,
    measured: bool = True,
    threads: int = 1,
    memory: MemoryLimit | None = None,
    progress: Progress = SILENT,
) -> NgramModel:
    """Train an n-gram model and save it.

    Args:
        corpus: Tokenized text, one sentence a line, or trees, whose words are taken.
        target: Model folder to write; looked at before the work begins.
        config: Options.
        vocabulary: Vocabulary file; by default all words of the text are known.
        held_out: Text for interpolation weights, where the smoothing has any.
        measure: Text on which to find out what pruning and quantising cost, where there is any;
            by default the training text.
        measured: Whether to find out at all.
        threads: Kernel threads; results do not depend on it.
        memory: How much memory may be used; results do not depend on it.
        progress: Told how far it is.

    Raises:
        UsageError: if a text can be read only once.
    """
    check_target(target)
    others = [text for text in (held_out, measure) if text is not None]
    check_texts([*corpus.paths, *others])
    model = NgramModel.train(
        corpus,
        config,
        vocabulary=None if vocabulary is None else load_vocabulary(vocabulary),
        held_out=None if held_out is None else TextCorpus((held_out,)),
        measure=_measured_corpus(corpus, measure) if measured else None,
        threads=threads,
        memory=memory,
        progress=progress,
    )
    model.save(target)
    return model


def train_counted_model(
    counts: Source,
    target: Source,
    options: Mapping[str, object],
    *,
    held_out: Source | None = None,
    measure: Source | None = None,
    threads: int = 1,
    memory: MemoryLimit | None = None,
    progress: Progress = SILENT,
) -> NgramModel:
    """Train an n-gram model on counts and save it.

    Args:
        counts: Folder of counts.
        target: Model folder to write; looked at before the work begins.
        options: Options; the order is that of the counts unless it is given.
        held_out: Text for interpolation weights, where the smoothing has any.
        measure: Text on which to find out what pruning and quantising cost.
        threads: Kernel threads; results do not depend on it.
        memory: How much memory may be used; results do not depend on it.
        progress: Told how far it is.
    """
    check_target(target)
    check_texts([text for text in (held_out, measure) if text is not None])
    counted = NgramCounts.load(counts)
    config = NgramModel.make_config({"order": counted.order, **options})
    assert isinstance(config, NgramConfig)  # what an n-gram model makes of options
    model = train_on_counts(
        counted,
        config,
        held_out=None if held_out is None else TextCorpus((held_out,)),
        measure=None if measure is None else TextCorpus((measure,)),
        threads=threads,
        memory=memory,
        progress=progress,
    )
    model.save(target)
    return model


def train_grammar(
    corpus: TextCorpus | TreeCorpus,
    target: Source,
    config: Config,
    *,
    vocabulary: Source | None = None,
) -> PcfgModel:
    """Read a grammar off a treebank and save it.

    Args:
        corpus: Trees.
        target: Model folder to write; looked at before the work begins.
        config: Options.
        vocabulary: Vocabulary file for the closed lexicon.
    """
    check_target(target)
    check_texts(corpus.paths)
    model = PcfgModel.train(
        corpus, config, vocabulary=None if vocabulary is None else load_vocabulary(vocabulary)
    )
    model.save(target)
    return model


def train_store_model(
    corpus: TextCorpus | TreeCorpus,
    target: Source,
    config: Config,
    *,
    vocabulary: Source | None = None,
) -> HhmmModel:
    """Train an incremental right-corner model and save it.

    Args:
        corpus: Trees.
        target: Model folder to write; looked at before the work begins.
        config: Options.
        vocabulary: Vocabulary file; by default words seen often enough are known.
    """
    check_target(target)
    check_texts(corpus.paths)
    model = HhmmModel.train(
        corpus, config, vocabulary=None if vocabulary is None else load_vocabulary(vocabulary)
    )
    model.save(target)
    return model


def _measured_corpus(
    corpus: TextCorpus | TreeCorpus, measure: Source | None
) -> TextCorpus | TreeCorpus:
    return corpus if measure is None else TextCorpus((measure,))


def train_latent_grammar(
    corpus: TreeCorpus,
    target: Source,
    config: Config,
    *,
    vocabulary: Source | None = None,
    held_out: TreeCorpus | None = None,
    resume: bool = False,
    threads: int = 1,
    watch: TrainingWatch | None = None,
) -> PcfgLaModel:
    """Train a grammar with latent annotations and save it.

    After each cycle the grammar is kept in the folder ``TARGET.training``, which goes when the
    model is saved.

    Args:
        corpus: Trees.
        target: Model folder to write; looked at before the work begins.
        config: Options, a `PcfgLaConfig`.
        vocabulary: Vocabulary file for the closed lexicon.
        held_out: Trees that choose the best grammar of each phase.
        resume: Go on after the last complete cycle of an interrupted training.
        threads: Kernel threads; results do not depend on it.
        watch: Told what happens.
    """
    if not isinstance(config, PcfgLaConfig):
        raise UsageError("a grammar with latent annotations needs a PcfgLaConfig.")
    check_target(target)
    check_texts([*corpus.paths, *(held_out.paths if held_out is not None else ())])
    checkpoint = Checkpoint.beside(target)
    model = train_pcfg_la(
        corpus,
        config,
        vocabulary=None if vocabulary is None else load_vocabulary(vocabulary),
        held_out=held_out,
        threads=threads,
        checkpoint=checkpoint,
        resume=resume,
        watch=watch,
    )
    model.save(target)
    checkpoint.remove()
    return model


def train_mixture(
    models: Sequence[Source], target: Source, held_out: Source, *, threads: int = 1
) -> InterpolatedModel | InterpolatedSentences:
    """Find the weights of a mixture on held-out text, and save it with its parts.

    Args:
        models: Model folders.
        target: Model folder to write.
        held_out: Text that no part was trained on.
        threads: Kernel threads; results do not depend on it.
    """
    check_target(target)
    parts = [load(model) for model in models]
    mixture = train_interpolated(parts, TextCorpus((held_out,)), threads=threads)
    mixture.save(target)
    return mixture


def check_target(target: Source) -> None:
    """Refuse a target that cannot become a model folder, before hours of work.

    Raises:
        OutputFileError: if something else stands there.
    """
    check_replaceable(Path(os.path.realpath(target)))


def check_texts(texts: Sequence[Source]) -> None:
    """Refuse what can be read only once.

    Raises:
        UsageError: naming it.
    """
    for text in texts:
        if not can_be_read_twice(text):
            raise UsageError(
                f"{source_name(text)} can be read only once, and training needs several passes; "
                "write it to a file first."
            )
