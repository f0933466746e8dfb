"""From files of trees to a saved structured or composite language model."""

from __future__ import annotations

from treelm.corpus.corpus import TreeCorpus
from treelm.corpus.files import Source
from treelm.corpus.vocabulary_file import load_vocabulary
from treelm.errors import UsageError
from treelm.models.composite.checkpoint import Checkpoint
from treelm.models.composite.config import CompositeConfig
from treelm.models.composite.model import CompositeModel
from treelm.models.composite.train import TrainingLog, train_composite
from treelm.models.interface.model import Config
from treelm.parallel.progress import SILENT, Progress
from treelm.tasks.train import check_target, check_texts


def train_composite_model(
    corpus: TreeCorpus,
    target: Source,
    config: Config,
    *,
    vocabulary: Source | None = None,
    held_out: TreeCorpus | None = None,
    resume: bool = False,
    threads: int = 1,
    log: TrainingLog | None = None,
    progress: Progress = SILENT,
) -> CompositeModel:
    """Train a composite model and save it.

    After each round of EM what there is is kept in the folder ``TARGET.training``, which goes when
    the model is saved.

    Args:
        corpus: Trees.
        target: Model folder to write; looked at before the work begins.
        config: Options, a `CompositeConfig`.
        vocabulary: Vocabulary file; by default words seen often enough are known.
        held_out: Other trees, on which interpolation weights are found.
        resume: Go on after the last complete round of an interrupted training.
        threads: Kernel threads; results do not depend on it.
        log: Hears of every round.
        progress: Told how far it is.
    """
    if not isinstance(config, CompositeConfig):
        raise UsageError("a composite model needs a CompositeConfig.")
    check_target(target)
    check_texts([*corpus.paths, *(held_out.paths if held_out is not None else ())])
    checkpoint = Checkpoint.beside(target)
    model = train_composite(
        corpus,
        config,
        vocabulary=None if vocabulary is None else load_vocabulary(vocabulary),
        held_out=held_out,
        checkpoint=checkpoint,
        resume=resume,
        threads=threads,
        log=log,
        progress=progress,
    )
    model.save(target)
    checkpoint.remove()
    return model
