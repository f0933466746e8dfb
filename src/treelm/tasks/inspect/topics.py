"""What the topics of a model are about."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from treelm.corpus.files import Source
from treelm.errors import UnsupportedTask
from treelm.models.interface.abilities import HasTopics, ask_for
from treelm.models.registry import load
from treelm.view.bar_charts import draw_bar_chart
from treelm.view.chart_data import Bar

#: Number of words shown per topic.
WORDS_SHOWN = 10
#: Words that are less specific to their topic, in nats, are not shown.
LEAST_TELLING = 1e-4
#: Number of topics in a picture.
TOPICS_DRAWN = 40


@dataclass(frozen=True, slots=True)
class Topic:
    """One topic.

    Args:
        number: Counted from 0.
        share: p(g), its share of the training text.
        words: Words that distinguish it from the others, with p(w|g).
    """

    number: int
    share: float
    words: tuple[tuple[str, float], ...]


def inspect_topics(path: Source, *, words: int = WORDS_SHOWN) -> list[Topic]:
    """Return the topics of a model, the largest first.

    Words are those with the largest ``p(w|g) log(p(w|g) / p(w))``: frequent in the topic, and more
    so than elsewhere.

    Args:
        path: A model folder with topics.
        words: Number of words of each.

    Raises:
        UnsupportedTask: if the model has no topics.
    """
    model = load(Path(path))
    shares, counts = ask_for(model, HasTopics, "have topics").topic_table()
    if not len(shares):
        raise UnsupportedTask(
            f"this {model.system} model was trained without topics and has none to show. Train one "
            "with `treelm train composite --topics 200` or `treelm train plsa`."
        )
    by_topic = np.maximum(counts.sum(axis=0), 1e-300)
    in_topic = counts / by_topic
    overall = counts.sum(axis=1, keepdims=True) / counts.sum()
    with np.errstate(divide="ignore", invalid="ignore"):
        telling = np.where(counts > 0, in_topic * np.log(in_topic / overall), 0.0)
    telling[len(model.vocabulary) :] = -1  # the end of a sentence is not a word
    topics = []
    for number in np.argsort(-shares, kind="stable").tolist():
        best = np.argsort(-telling[:, number], kind="stable")[:words]
        best = best[telling[best, number] > LEAST_TELLING]
        found = zip(
            model.vocabulary.decode(best.tolist()), in_topic[best, number].tolist(), strict=True
        )
        topics.append(Topic(number, float(shares[number]), tuple(found)))
    return topics


def topic_record(topics: list[Topic]) -> dict[str, object]:
    """Return topics as a JSON object."""
    return {"topics": [asdict(topic) for topic in topics]}


def topic_lines(topics: list[Topic]) -> Iterator[str]:
    """Yield topics as readable lines: number, share, words."""
    for topic in topics:
        words = " ".join(word for word, _ in topic.words)
        yield f"{topic.number:>4}  {topic.share:7.2%}  {words}"


def draw_topics(topics: list[Topic]) -> str:
    """Return a picture of the largest topics: their shares and their words."""
    bars = [
        Bar(" ".join(word for word, _ in topic.words[:4]), topic.share)
        for topic in topics[:TOPICS_DRAWN]
    ]
    return draw_bar_chart(
        bars, title="Topics by their share of the training text", axis="share", digits=3
    )
