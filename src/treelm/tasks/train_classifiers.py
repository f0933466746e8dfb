"""From files of good and bad sentences to a saved classifier."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from treelm.corpus.corpus import TextCorpus, TreeCorpus
from treelm.corpus.files import Source
from treelm.corpus.labelled import LabelledSentences
from treelm.models.lsvm.checkpoint import LatentCheckpoint
from treelm.models.lsvm.config import LatentSvmConfig
from treelm.models.lsvm.model import LatentSvmModel
from treelm.models.lsvm.train import Round, train_lsvm
from treelm.models.tree_features.config import TreeFeaturesConfig
from treelm.models.tree_features.model import TreeFeaturesModel
from treelm.models.tree_features.train import train_tree_features
from treelm.models.trigram_svm.config import TrigramSvmConfig
from treelm.models.trigram_svm.model import TrigramSvmModel
from treelm.models.trigram_svm.train import train_trigram_svm
from treelm.parallel.progress import SILENT, Progress
from treelm.tasks.scoring_model import open_parser
from treelm.tasks.train import check_target, check_texts


def labelled(good: Sequence[Source], bad: Sequence[Source]) -> LabelledSentences:
    """Return files of good and of bad sentences together; each is read more than once."""
    check_texts([*good, *bad])
    return LabelledSentences(TextCorpus(tuple(good)), TextCorpus(tuple(bad)))


def train_lsvm_model(
    data: LabelledSentences,
    tuning: LabelledSentences,
    trees: TreeCorpus,
    target: Source,
    config: LatentSvmConfig,
    *,
    resume: bool = False,
    threads: int = 1,
    watch: Callable[[Round], None] | None = None,
    progress: Progress = SILENT,
) -> LatentSvmModel:
    """Train a latent support vector machine and save it.

    After each round everything is kept in the folder ``TARGET.training``, which goes when the model
    is saved.

    Args:
        data: Good and bad sentences.
        tuning: Sentences that choose the regularization and the best round.
        trees: Treebank of the grammar.
        target: Model folder to write; looked at before the work begins.
        config: Options.
        resume: Go on after the last complete round of an interrupted training.
        threads: Kernel threads; results do not depend on it.
        watch: Told about every round.
        progress: Told how far parsing is.
    """
    check_target(target)
    check_texts(trees.paths)
    checkpoint = LatentCheckpoint.beside(target)
    model = train_lsvm(
        data,
        tuning,
        trees,
        config,
        threads=threads,
        checkpoint=checkpoint,
        resume=resume,
        watch=watch,
        progress=progress,
    )
    model.save(target)
    checkpoint.remove()
    return model


def train_trigram_model(
    data: LabelledSentences,
    tuning: LabelledSentences | None,
    target: Source,
    config: TrigramSvmConfig,
) -> TrigramSvmModel:
    """Train a support vector machine over n-grams and save it.

    Args:
        data: Good and bad sentences.
        tuning: Sentences that choose the regularization and fit the probabilities; by default a
            tenth of the training sentences, which are then not trained on.
        target: Model folder to write; looked at before the work begins.
        config: Options.
    """
    check_target(target)
    model = train_trigram_svm(data, tuning, config)
    model.save(target)
    return model


def train_tree_features_model(
    data: LabelledSentences,
    tuning: LabelledSentences | None,
    parser: Source,
    target: Source,
    config: TreeFeaturesConfig,
    *,
    treebank: TreeCorpus | None = None,
    threads: int = 1,
    progress: Progress = SILENT,
) -> TreeFeaturesModel:
    """Train a classifier by features of trees and save it, with its parser if that is a model.

    Args:
        data: Good and bad sentences.
        tuning: Sentences that choose the regularization and fit the probabilities; by default a
            tenth of the training sentences, which are then not trained on.
        parser: Folder of a model that parses, or a file of parses.
        target: Model folder to write; looked at before the work begins.
        config: Options.
        treebank: Trees in which fragments are found, by default every other good sentence.
        threads: Kernel threads; results do not depend on it.
        progress: Told how far it is.
    """
    check_target(target)
    model = train_tree_features(
        data,
        tuning,
        open_parser(parser),
        config,
        treebank=treebank,
        threads=threads,
        progress=progress,
    )
    model.save(target)
    return model
