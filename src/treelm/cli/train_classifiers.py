"""`treelm train lsvm`, `treelm train trigram-svm` and `treelm train tree-features`."""

from __future__ import annotations

from typing import Literal

from treelm.cli.corpus_options import trees_of
from treelm.cli.options import CommonOptions, NewModel, TreeOptions
from treelm.cli.terminal import write_record
from treelm.corpus.labelled import LabelledSentences
from treelm.errors import UsageError
from treelm.grammar.parser_options import Pruning
from treelm.models.lsvm.config import LatentSvmConfig
from treelm.models.lsvm.model import LatentSvmModel
from treelm.models.lsvm.train import Round
from treelm.models.tree_features.config import FeatureSet, TreeFeaturesConfig
from treelm.models.tree_features.model import TreeFeaturesModel
from treelm.models.trigram_svm.config import TrigramSvmConfig
from treelm.models.trigram_svm.model import TrigramSvmModel
from treelm.tasks.train_classifiers import (
    labelled,
    train_lsvm_model,
    train_tree_features_model,
    train_trigram_model,
)


def lsvm(
    *,
    good: list[str],
    bad: list[str],
    dev_good: list[str],
    dev_bad: list[str],
    trees: list[str],
    output: NewModel,
    start: Literal["mle", "zero"] | None = None,
    grammar: Literal["treebank", "uninformed"] = "treebank",
    regularization: float | None = None,
    rounds: int = 30,
    patience: int = 5,
    parts: int = 1,
    no_memory: bool = False,
    fixed_trees: bool = False,
    horizontal_order: int = 1,
    vertical_order: int = 2,
    seed: int = 0,
    resume: bool = False,
    json: bool = False,
    reading: TreeOptions | None = None,
    common: CommonOptions | None = None,
) -> None:
    """Train a latent support vector machine over hidden trees (Cherry and Quirk 2008).

    Args:
        good: Files of good sentences, one a line.
        bad: Files of bad sentences.
        dev_good: Good sentences that choose the regularization and the best round.
        dev_bad: Bad ones.
        trees: Treebank of the grammar.
        output: Model folder to write; OUTPUT.training beside it keeps the last complete round.
        start: First weights: mle (log frequencies of the treebank) or zero. Default: mle, and zero
            for an uninformed grammar.
        grammar: treebank, or uninformed: any tree over the treebank's tags.
        regularization: Weight of the squared norm. Default: the best of a grid in the first round.
        rounds: Most rounds; 0 leaves the first weights as they are.
        patience: Rounds without a better accuracy after which training ends.
        parts: Pieces of the training sentences; from the second round on the weights are fitted
            anew after each piece.
        no_memory: Forget the trees that bad sentences had in earlier rounds.
        fixed_trees: Parse once, with the treebank's weights.
        horizontal_order: Sisters that an intermediate node remembers.
        vertical_order: Ancestors that a label remembers, the node itself included.
        seed: Seed of the solver.
        resume: Go on after the last complete round of an interrupted training.
        json: One JSON object instead of lines.
        reading: Reading.
        common: Common.
    """
    reading, common = reading or TreeOptions(), common or CommonOptions()
    config = LatentSvmModel.make_config(
        {
            "grammar": grammar,
            "start": start or ("mle" if grammar == "treebank" else "zero"),
            "regularization": regularization,
            "rounds": rounds,
            "patience": patience,
            "parts": parts,
            "memory": not no_memory,
            "fixed_trees": fixed_trees,
            "horizontal_order": horizontal_order,
            "vertical_order": vertical_order,
            "seed": seed,
        }
    )
    assert isinstance(config, LatentSvmConfig)  # what this model makes of options

    def watch(done: Round) -> None:
        common.note(
            f"round {done.number}: accuracy {done.accuracy:.4f}, objective {done.objective:.6g}, "
            f"{done.points} trees, {done.features} productions, {done.second} sentences by the "
            f"second lexicon, {done.dropped} without a tree."
        )

    model = train_lsvm_model(
        labelled(good, bad),
        labelled(dev_good, dev_bad),
        trees_of(trees, reading, common),
        output,
        config,
        resume=resume,
        threads=reading.thread_count,
        watch=watch,
        progress=common.progress,
    )
    best = max(model.accuracies, default=None)
    write_record(
        {
            "system": model.system,
            "grammar": grammar,
            "start": model.config.start,
            "productions": len(model.features),
            "regularization": model.config.regularization,
            "rounds": len(model.accuracies),
            "best_round": None if best is None else model.accuracies.index(best) + 1,
            "accuracy": best,
        },
        as_json=json,
    )


def trigram_svm(
    *,
    good: list[str],
    bad: list[str],
    dev_good: list[str] | None = None,
    dev_bad: list[str] | None = None,
    output: NewModel,
    kernel: Literal["linear", "poly"] = "linear",
    regularization: float | None = None,
    components: int = 2000,
    seed: int = 0,
    json: bool = False,
    common: CommonOptions | None = None,
) -> None:
    """Train a support vector machine over the words, pairs and triples of a sentence.

    Args:
        good: Files of good sentences, one a line.
        bad: Files of bad sentences.
        dev_good: Good sentences that choose the regularization. Default: a tenth of the training
            sentences is kept for that.
        dev_bad: Bad ones.
        output: Model folder to write.
        kernel: linear, or poly: (1 + u.v)^3 by Nystroem's approximation.
        regularization: Weight of the squared norm. Default: the best of a grid.
        components: Landmarks of the approximation.
        seed: Seed of the landmarks and the solver.
        json: One JSON object instead of lines.
        common: Common.
    """
    del common
    config = TrigramSvmModel.make_config(
        {
            "kernel": kernel,
            "regularization": regularization,
            "components": components,
            "seed": seed,
        }
    )
    assert isinstance(config, TrigramSvmConfig)  # what this model makes of options
    model = train_trigram_model(labelled(good, bad), _tuning(dev_good, dev_bad), output, config)
    write_record(
        {
            "system": model.system,
            "kernel": kernel,
            "features": model.size,
            "regularization": model.config.regularization,
            "accuracy": model.accuracy,
        },
        as_json=json,
    )


def tree_features(
    *,
    good: list[str],
    bad: list[str],
    dev_good: list[str] | None = None,
    dev_bad: list[str] | None = None,
    parser: str,
    trees: list[str] | None = None,
    output: NewModel,
    features: FeatureSet = "rerank",
    min_sentences: int = 5,
    regularization: float | None = None,
    pruning: Pruning = "fast",
    sweeps: int = 20,
    min_fragment: int = 5,
    seed: int = 0,
    json: bool = False,
    reading: TreeOptions | None = None,
    common: CommonOptions | None = None,
) -> None:
    """Train a classifier by features of one parse of each sentence.

    Args:
        good: Files of good sentences, one a line.
        bad: Files of bad sentences.
        dev_good: Good sentences that choose the regularization. Default: a tenth of the training
            sentences is kept for that.
        dev_bad: Bad ones.
        parser: Model folder of a parser, which is saved with the model, or a file of parses
            (`treelm parse -o FILE.forest`), which is not.
        trees: For tsg: treebank in which fragments are found. Default: every other good sentence,
            which then trains nothing else.
        output: Model folder to write.
        features: cfg (rules), tsg (fragments of trees) or rerank (those of Charniak and Johnson).
        min_sentences: Features in fewer training sentences are dropped.
        regularization: Weight of the squared norm. Default: the best of a grid.
        pruning: How a grammar prunes when it parses.
        sweeps: For tsg: rounds of Gibbs sampling that find fragments.
        min_fragment: For tsg: larger fragments that were seen less often are dropped.
        seed: Seed of the sampler and the solver.
        json: One JSON object instead of lines.
        reading: Reading.
        common: Common.
    """
    reading, common = reading or TreeOptions(), common or CommonOptions()
    config = TreeFeaturesModel.make_config(
        {
            "features": features,
            "min_sentences": min_sentences,
            "regularization": regularization,
            "pruning": pruning,
            "sweeps": sweeps,
            "min_fragment": min_fragment,
            "seed": seed,
        }
    )
    assert isinstance(config, TreeFeaturesConfig)  # what this model makes of options
    model = train_tree_features_model(
        labelled(good, bad),
        _tuning(dev_good, dev_bad),
        parser,
        output,
        config,
        treebank=None if trees is None else trees_of(trees, reading, common),
        threads=reading.thread_count,
        progress=common.progress,
    )
    write_record(
        {
            "system": model.system,
            "kind": features,
            "features": len(model.names),
            "fragments": None if model.grammar is None else len(model.grammar),
            "regularization": model.config.regularization,
            "accuracy": model.accuracy,
        },
        as_json=json,
    )


def _tuning(good: list[str] | None, bad: list[str] | None) -> LabelledSentences | None:
    if (good is None) != (bad is None):
        raise UsageError("give both --dev-good and --dev-bad, or neither.")
    return None if good is None or bad is None else labelled(good, bad)
