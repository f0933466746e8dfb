"""Sentences called good or bad by a classifier."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, Literal, NamedTuple

from treelm.corpus.corpus import split_words
from treelm.corpus.files import Source
from treelm.errors import UnsupportedTask, UsageError
from treelm.models.interface.classifier import Classifier
from treelm.models.interface.model import LanguageModel, Task
from treelm.models.open_parser import open_parser
from treelm.models.tree_features.model import TreeFeaturesModel
from treelm.trees.tree import Tree
from treelm.view.svg import stack_svg
from treelm.view.weighted_tree import draw_weighted_tree


class Decision(NamedTuple):
    """What a classifier says about a sentence."""

    label: Literal["good", "bad"]
    margin: float
    """Above zero for good sentences; minus infinity for one that it cannot analyse."""
    probability: float
    """That the sentence is good."""


def as_classifier(model: LanguageModel, parser: Source | None = None) -> Classifier[Any]:
    """Return a model as the classifier that it is.

    Args:
        model: The model.
        parser: What gives it trees, for a classifier by trees.

    Raises:
        UnsupportedTask: if it is no classifier.
        UsageError: if it has no use for a parser.
    """
    model.require(Task.CLASSIFY)
    if not isinstance(model, Classifier):
        raise UnsupportedTask(f"a model of the system {model.system} is no classifier.")
    if parser is None:
        return model
    if not isinstance(model, TreeFeaturesModel):
        raise UsageError(
            f"a classifier of the system {model.system} needs no parser; --parser is for "
            "classifiers by features of trees."
        )
    return model.with_parser(open_parser(parser))


def draw_decisions(model: LanguageModel, sentences: Sequence[Sequence[str]]) -> str:
    """Return a picture of the trees behind decisions, each production with its weight in colour.

    Args:
        model: A classifier that weighs productions.
        sentences: Each a sequence of words; those without a tree are left out.

    Raises:
        UnsupportedTask: if the model does not weigh productions.
    """
    judge = as_classifier(model)
    pictures = []
    for words, margin in zip(sentences, judge.margins(sentences).tolist(), strict=True):
        found = judge.explain(words)
        if found is None:
            continue
        label = "good" if margin > 0 else "bad"
        title = f"{label}, margin {margin:+.3f}: {' '.join(words)}"
        pictures.append(draw_weighted_tree(found.tree, found.weights, title=title))
    return stack_svg(pictures or [draw_weighted_tree(Tree("X", "-"), [0.0], title="no tree")])


def classify_lines(
    model: LanguageModel, lines: Iterable[str], *, batch: int = 1024, threads: int = 1
) -> Iterator[Decision | None]:
    """Yield what a classifier says about each line, None for one without words.

    Args:
        model: A classifier.
        lines: Tokenized sentences.
        batch: Sentences that are looked at together.
        threads: Kernel threads; results do not depend on it.

    Raises:
        UnsupportedTask: if the model is no classifier.
    """
    judge = as_classifier(model)
    rest = iter(lines)
    while block := [split_words(line) for line in islice(rest, batch)]:
        given = [words for words in block if words]
        margins = judge.margins(given, threads=threads)
        pairs = zip(margins.tolist(), judge.probabilities(margins).tolist(), strict=True)
        for words in block:
            if not words:
                yield None
                continue
            margin, probability = next(pairs)
            yield Decision("good" if margin > 0 else "bad", margin, probability)
