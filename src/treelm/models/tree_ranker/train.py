"""From a treebank to a ranker: each part is parsed by a parser of the others, and compared."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from treelm.corpus.corpus import TreeCorpus
from treelm.corpus.vocabulary import Vocabulary
from treelm.errors import EstimationError, UsageError
from treelm.grammar.grammar import FloatArray
from treelm.models.interface.model import LanguageModel, Task
from treelm.models.interface.parser import Parser, check_parser
from treelm.models.interface.trained_model import corpus_record
from treelm.models.run import QUIET, Event, Run
from treelm.models.tree_ranker.config import GRID, TreeRankerConfig
from treelm.models.tree_ranker.lists import RankedLists
from treelm.models.tree_ranker.model import TreeRankerModel
from treelm.models.tree_ranker.parts import is_tuning, parsed_parts
from treelm.trees.profile import load_profile


@dataclass(frozen=True)
class Attempt:
    """A regularization that was tried.

    Args:
        regularization: Weight of the squared norm.
        loss: Negative log likelihood of the best trees, per sentence.
        tuning_loss: The same on the sentences of tuning.
        f1: Labelled F1 of the trees chosen, on the sentences of tuning.
    """

    regularization: float
    loss: float
    tuning_loss: float
    f1: float


def train_tree_ranker(
    corpus: TreeCorpus,
    config: TreeRankerConfig,
    *,
    parser: Parser,
    run: Run = QUIET,
) -> TreeRankerModel:
    """Return a ranker of a parser's trees.

    Args:
        corpus: The trees, those that the parser was trained on.
        config: Options.
        parser: Model folder of the parser whose trees will be ranked, which is saved with the
            model. Others are trained with its options on parts of the trees.
        run: How the training is run; its checkpoint keeps the trees of each part.

    Raises:
        EstimationError: ``E_NO_DATA`` if no sentence has several trees of which some are better.
        UsageError: if the parser is no model, or does not give so many trees.
    """
    if not isinstance(parser, LanguageModel):
        raise UsageError(
            "the parser must be a model folder: a ranker learns from the trees of parsers that are "
            "trained as it was, on parts of the treebank."
        )
    parser.require(Task.PARSE)
    check_parser(parser, config.k)
    gold = list(corpus)
    train, tuning = (RankedLists(load_profile(corpus.options.profile), run.threads) for _ in "ab")
    for part in parsed_parts(corpus, gold, config, parser, run):
        for place, found in part:
            is_held = is_tuning(place, len(gold), config.folds)
            (tuning if is_held else train).add(gold[place], found)
    if not len(train):
        raise EstimationError(
            "no sentence has several trees of which some are better than others, so that there is "
            "nothing to learn. Give more trees.",
            code="E_NO_DATA",
        )
    features = train.frequent(config.min_sentences)
    for each in (train, tuning):
        each.keep(features)
    best, weights = _fitted(train, tuning, len(features), config, run)
    kept = np.flatnonzero(weights.astype(np.float32))
    known = dict.fromkeys((word for tree in gold for word in tree.words), 1)
    return TreeRankerModel(
        np.ascontiguousarray(features[kept]),
        np.ascontiguousarray(weights[kept].astype(np.float32)),
        config.model_copy(update={"regularization": best.regularization}),
        vocabulary=Vocabulary.from_counts(known),
        profile=corpus.options.profile,
        parser=parser,
        f1=(tuning.f1(), best.f1),
        corpora=(corpus_record(corpus),),
    )


def _fitted(
    train: RankedLists,
    tuning: RankedLists,
    features: int,
    config: TreeRankerConfig,
    run: Run,
) -> tuple[Attempt, FloatArray]:
    """Return the best regularization, and the weights that it gives."""
    grid = GRID if config.regularization is None else (config.regularization,)
    weights = np.zeros(features)
    found: list[tuple[Attempt, FloatArray]] = []
    with run.progress.step("fitting weights", total=len(grid)) as step:
        for value in sorted(grid, reverse=True):  # each begins where a stronger one ended
            weights = train.fit(weights, value, config.iterations)
            loss, tuning_loss = (
                lists.loss(weights)[0] / max(1, len(lists)) for lists in (train, tuning)
            )
            attempt = Attempt(value, loss, tuning_loss, tuning.f1(weights))
            run.event(
                Event(
                    attempt,
                    f"regularization {value:g}: {loss:.4f} nats per sentence, "
                    f"{tuning_loss:.4f} on those of tuning, where F1 rises from "
                    f"{100 * tuning.f1():.2f} to {100 * attempt.f1:.2f}.",
                )
            )
            found.append((attempt, weights))
            step.advance(1)
    # What likelihood chooses can be added to the scores of other models; F1 is coarse, and forgives
    # weights that are far too large.
    return min(found, key=lambda pair: pair[0].tuning_loss)
