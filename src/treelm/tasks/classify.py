"""Classifying sentences as good or bad."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from treelm.corpus.files import Source
from treelm.corpus.lengths import TooLongSentence
from treelm.corpus.words import Words, sentences_of
from treelm.models.interface.abilities import ExplainsDecisions, ask_for
from treelm.models.interface.model import LanguageModel, Task
from treelm.models.interface.scores import Decision
from treelm.models.interface.sentence_batches import worked_batches
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
    model: LanguageModel,
    lines: Iterable[str],
    *,
    batch: int = 1024,
    threads: int = 1,
    source: Source = "-",
) -> Iterator[Decision | None]:
    """Yield what a classifier says about each line, None for one without words.

    Args:
        model: A classifier.
        lines: Tokenized sentences.
        batch: Number of sentences classified together.
        threads: Number of threads.
        source: Where the lines come from, for messages.

    Raises:
        UnsupportedTask: if the model is not a classifier.
        CorpusFormatError: with the line, for a sentence that it does not take.
    """
    model.require(Task.CLASSIFY)

    def work(block: Sequence[tuple[str, ...]]) -> list[Decision | None]:
        places = [place for place, words in enumerate(block) if words]
        try:
            found = list(model.classify_many([block[place] for place in places], threads=threads))
        except TooLongSentence as error:
            raise error.after(places[error.place] - error.place) from error
        decisions: list[Decision | None] = [None] * len(block)
        for place, decision in zip(places, found, strict=True):
            decisions[place] = decision
        return decisions

    for _, _, decisions in worked_batches(model.vocabulary, lines, batch, work, source, 1):
        yield from decisions
