"""How the composite model comes to the probability of a word: a sum over parses and topics."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

import numpy as np

from treelm.models.interface.score_explanation import (
    Arithmetic,
    ScoreTerm,
    log_of,
    log_of_sum,
    sum_of,
)

if TYPE_CHECKING:
    from treelm.models.composite.model import CompositeModel
    from treelm.models.composite.state import CompositeState


def composite_arithmetic(
    model: CompositeModel, state: CompositeState, outcome: int, before: list[int]
) -> Arithmetic:
    """Return the sum that gives the probability of a word.

    Parses with the same exposed heads predict the same, and are one term; so is each topic.

    Args:
        model: The model.
        state: Partial parses, and the topics of the document.
        outcome: Id of the word, or of the end.
        before: Ids of the words before.
    """
    config, shape = model.config, model.parts.shape
    width, start = config.order - 1, shape.words + 1
    words = [*reversed(before), *[start] * width][:width]
    shares: dict[tuple[tuple[int, int], ...], list[float]] = defaultdict(list)
    boundary = (start, shape.native.labels - 1)
    for score, _, heads in state.beam.hypotheses():
        exposed = [(int(word), int(label)) for word, label in heads]
        padded = [*exposed, *[boundary] * config.heads][: config.heads]
        shares[tuple(padded)].append(score)
    total = log_of_sum([score for scores in shares.values() for score in scores])
    topics, mixture = model.predicting_topics(state)
    terms = []
    for heads_of, scores in shares.items():
        weight = log_of_sum(scores) - total
        head_columns = [
            word * shape.native.labels + label if config.head_labels else word
            for word, label in heads_of
        ]
        columns = np.array([[*words, *head_columns]], np.uint32)
        outcomes = np.array([outcome], np.uint32)
        named = f"parses with heads {_shown(model, heads_of)}" if config.heads else "words before"
        if not config.topics:
            prob = float(model.predictor.probs(columns, outcomes)[0])
            terms.append(_term(named, weight, prob))
            continue
        probs = model.predictor.topic_probs(columns, outcomes, topics)[0]
        for topic, share, prob in zip(topics, mixture, probs, strict=True):
            terms.append(_term(f"{named}, topic {topic}", weight + log_of(float(share)), prob))
    return sum_of(terms, rest="other parses or topics")


def _term(named: str, log_weight: float, prob: float) -> ScoreTerm:
    text = f"{named}: {np.exp(log_weight):.6g} · {prob:.6g}"
    return ScoreTerm(text, log_weight + log_of(float(prob)))


def _shown(model: CompositeModel, heads: tuple[tuple[int, int], ...]) -> str:
    symbols, codes = model.vocabulary.symbols, model.parts.shape.codes
    labels = (*codes.tags, *codes.phrases)
    named = []
    for word, label in heads:
        text = symbols[word] if word < len(symbols) else "<s>"
        named.append(f"{text}/{labels[label]}" if label < len(labels) else text)
    return ", ".join(named)
