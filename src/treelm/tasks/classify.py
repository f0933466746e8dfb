"""Classifying sentences as good or bad."""

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
    """Above zero for good sentences; minus infinity for one it cannot analyse."""
    probability: float
    """Probability that the sentence is good."""


def as_classifier(model: LanguageModel, parser: Source | None = None) -> Classifier[Any]:
    """Return a model if it is a classifier.

    Args:
        model: The model.
        parser: Parser for a classifier that needs trees.

    Raises:
        UnsupportedTask: if it is not a classifier.
        UsageError: if it does not use a parser.
    """
    model.require(Task.CLASSIFY)
    if not isinstance(model, Classifier):
        raise UnsupportedTask(f"{model.system} models are not classifiers.")
    if parser is None:
        return model
    if not isinstance(model, TreeFeaturesModel):
        raise UsageError(
            f"{model.system} classifiers do not need a parser; --parser is for classifiers "
            "that use tree features."
        )
    return model.with_parser(open_parser(parser))


def draw_decisions(model: LanguageModel, sentences: Sequence[Sequence[str]]) -> str:
    """Return a picture of the trees behind decisions, each production coloured by its weight.

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
        batch: Number of sentences classified together.
        threads: Number of threads.

    Raises:
        UnsupportedTask: if the model is not a classifier.
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
