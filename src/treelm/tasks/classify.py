"""Classifying sentences as good or bad."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

from treelm.corpus.files import Source
from treelm.corpus.words import Words, sentences_of, split_words
from treelm.models.interface.abilities import ExplainsDecisions, ask_for
from treelm.models.interface.model import LanguageModel, Task
from treelm.models.interface.scores import Decision
from treelm.models.open_parser import open_parser
from treelm.trees.tree import Tree
from treelm.view.svg import stack_svg
from treelm.view.weighted_tree import draw_weighted_tree


def as_classifier(model: LanguageModel, parser: Source | None = None) -> LanguageModel:
    """Return a model as the classifier that it is.

    Args:
        model: The model.
        parser: Parser for a classifier that needs trees.

    Raises:
        UnsupportedTask: if it is not a classifier.
        UsageError: if it does not use a parser.
    """
    if Task.CLASSIFY not in model.tasks:
        raise model.unable(Task.CLASSIFY)
    if parser is not None:
        model = model.with_parser(open_parser(parser))
    model.require(Task.CLASSIFY)
    return model


def draw_decisions(model: LanguageModel, sentences: Sequence[Words]) -> str:
    """Return a picture of the trees behind decisions, each production coloured by its weight.

    Args:
        model: A classifier that weighs productions.
        sentences: The words of each, or strings that are split at white space; those without a
            tree are left out.

    Raises:
        UnsupportedTask: if the model does not weigh productions.
    """
    model.require(Task.CLASSIFY)
    judge = ask_for(model, ExplainsDecisions, "weigh the productions of trees")
    pictures = []
    given = list(sentences_of(sentences))
    for words, (label, margin, _) in zip(given, model.classify_many(given), strict=True):
        found = judge.explain(words)
        if found is None:
            continue
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
    model.require(Task.CLASSIFY)
    rest = iter(lines)
    while block := [split_words(line) for line in islice(rest, batch)]:
        decisions = model.classify_many([words for words in block if words], threads=threads)
        for words in block:
            yield next(decisions) if words else None
