"""From text in documents to a saved model with topics."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from treelm.corpus.corpus import TextCorpus, TreeCorpus
from treelm.corpus.files import Source
from treelm.corpus.vocabulary_file import load_vocabulary
from treelm.errors import UsageError
from treelm.models.interface.model import Config
from treelm.models.plsa.checkpoint import PlsaCheckpoint
from treelm.models.plsa.config import PlsaConfig
from treelm.models.plsa.model import PlsaModel
from treelm.models.plsa.train import train_topics
from treelm.models.plsa.trainer import PlsaReport, PlsaTrainer
from treelm.parallel.progress import SILENT, Progress
from treelm.tasks.train import check_target, check_texts


def train_topic_model(
    corpus: TextCorpus | TreeCorpus,
    target: Source,
    config: Config,
    *,
    vocabulary: Source | None = None,
    held_out: Source | None = None,
    resume: bool = False,
    threads: int = 1,
    progress: Progress = SILENT,
    after: Callable[[PlsaTrainer, PlsaReport], None] | None = None,
) -> PlsaModel:
    """Train a PLSA or n-gram/PLSA model and save it.

    After each iteration everything is kept in the folder ``TARGET.training``, which goes when the
    model is saved.

    Args:
        corpus: Text in documents, or trees, whose words are taken.
        target: Model folder to write; looked at before the work begins.
        config: Options, a `PlsaConfig`.
        vocabulary: Vocabulary file; by default all words of the text are known.
        held_out: Documents for interpolation weights; by default every twentieth of the text.
        resume: Go on after the last complete iteration of an interrupted training.
        threads: Kernel threads; results do not depend on it.
        progress: Told how far it is.
        after: Told about every iteration of the predictor's EM.
    """
    if not isinstance(config, PlsaConfig):
        raise UsageError("a PLSA model needs a PlsaConfig.")
    check_target(target)
    check_texts([*corpus.paths, *([] if held_out is None else [held_out])])
    checkpoint = PlsaCheckpoint(Path(target))
    model = train_topics(
        corpus,
        config,
        vocabulary=None if vocabulary is None else load_vocabulary(vocabulary),
        held_out=None if held_out is None else TextCorpus((held_out,)),
        threads=threads,
        progress=progress,
        checkpoint=checkpoint,
        resume=resume,
        after=after,
    )
    model.save(target)
    checkpoint.remove()
    return model
