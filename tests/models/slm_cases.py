"""Small structured language models whose probabilities are known."""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction

import numpy as np
from tests.reference.slm import END, NULL, START, Head, Move, SlowSlm

from treelm.corpus.vocabulary import Vocabulary
from treelm.estimation.lattice import ONE, LatticeTables
from treelm.estimation.lattice_weights import LatticeModel, LatticeWeights
from treelm.models.composite.actions import ActionCodes
from treelm.models.composite.config import CompositeConfig
from treelm.models.composite.model import CompositeModel
from treelm.models.composite.parsed_text import ParsedText
from treelm.models.composite.parts import CompositeParts, CompositeShape

VOCABULARY = Vocabulary.from_counts({"dogs": 2, "bark": 1})
CODES = ActionCodes(("N", "V"), ("NP", "S"))
#: In counts of 1/4 or 1/12 everything of the example is a whole number.
PARTS = 12


def trusting(tables: LatticeTables) -> LatticeModel:
    """Frequencies as they are: contexts that were seen need no smoothing."""
    weights = LatticeWeights.equal(tables.lattice)
    values = weights.array.copy()
    values[:, 1:, 0] = 1.0
    values[:, 1:, 1:] = 0.0
    return LatticeModel(tables, LatticeWeights(tables.lattice, values.reshape(-1), weights.edges))


class Example:
    """The worked example of the structured language model: "dogs bark" (m = 2)."""

    def predictor(self, words: tuple[str, ...], heads: tuple[Head, ...]) -> dict[str, float]:
        del words
        if heads[0] == START:
            return {"dogs": 1 / 2, "bark": 1 / 4, END: 1 / 4}
        end = 3 / 4 if heads[0] == ("bark", "S") else 1 / 4
        if heads[0] == ("dogs", "N") and heads[1] == START:
            return {"bark": 1 / 2, "dogs": 1 / 4, END: 1 / 4}
        return {"dogs": 1 - end, END: end}

    def tagger(self, word: str, labels: tuple[str, ...]) -> dict[str, float]:
        del labels
        return {"N": 1.0} if word == "dogs" else {"V": 3 / 4, "N": 1 / 4}

    def constructor(self, heads: tuple[Head, ...]) -> dict[Move, float]:
        if heads[0][1] == "V":
            return {("right", "S"): 2 / 3, NULL: 1 / 3}
        if heads[0][1] == "N":
            return {("right", "NP"): 1 / 2, NULL: 1 / 2}
        return {NULL: 1.0}

    def slow(self, **options: object) -> SlowSlm:
        return SlowSlm(self.predictor, self.tagger, self.constructor, **options)  # type: ignore[arg-type]


EXAMPLE_HEADS: list[tuple[Head, ...]] = [
    (START, START),
    (("dogs", "N"), START),
    (("bark", "S"), START),
    (("bark", "NP"), START),
    (("bark", "V"), ("dogs", "N")),
    (("bark", "N"), ("dogs", "N")),
]


def example_shape(**options: object) -> CompositeShape:
    settings = {"order": 1, "heads": 2, "stack_size": None, "threshold": None, "choice_beam": 0.0}
    config = CompositeConfig(**{**settings, **options})  # type: ignore[arg-type]
    return CompositeShape(config, len(VOCABULARY), CODES)


def word_id(word: str) -> int:
    return (*VOCABULARY.symbols, END, START[0]).index(word)


def label_id(label: str) -> int:
    return [*CODES.tags, *CODES.phrases, START[1]].index(label)


def move_id(move: Move) -> int:
    kind, label = move
    return 0 if move == NULL else CODES.adjoin(label, left=kind == "left")


def example_parts(**options: object) -> CompositeParts:
    """The example as lattices: counts of 12 in every context it can meet."""
    shape, example = example_shape(**options), Example()
    labels = len(CODES.tags) + len(CODES.phrases) + 1

    def head(each: Head) -> int:
        return word_id(each[0]) * labels + label_id(each[1])

    rows: dict[str, list[tuple[list[int], int, float]]] = {name: [] for name in shape.lattices}
    for heads in EXAMPLE_HEADS:
        for word, prob in example.predictor((), heads).items():
            rows["predictor"].append(([head(each) for each in heads], word_id(word), prob))
        tags = [label_id(label) for _, label in heads]
        for word in ("dogs", "bark"):
            for tag, prob in example.tagger(word, ()).items():
                rows["tagger"].append(([word_id(word), *tags], CODES.tag_ids[tag], prob))
        for move, prob in example.constructor(heads).items():
            columns = [*tags, *(word_id(word) for word, _ in heads)]
            rows["constructor"].append((columns, move_id(move), prob))
    return CompositeParts(
        shape, {name: trusting(_tables(shape, name, rows[name])) for name in rows}
    )


def _tables(
    shape: CompositeShape, name: str, rows: list[tuple[list[int], int, float]]
) -> LatticeTables:
    counts = [round(prob * PARTS) * ONE for _, _, prob in rows]
    return LatticeTables.build(
        shape.lattices[name],
        np.array([columns for columns, _, _ in rows], np.uint32),
        np.array([outcome for _, outcome, _ in rows], np.uint32),
        np.array(counts, np.int64),
        limits=shape.limits(name),
    )


def example_model(**options: object) -> CompositeModel:
    counts = np.ones(len(VOCABULARY) + 1, np.uint64)
    return CompositeModel(example_parts(**options), VOCABULARY, counts)


def text_of(sentences: list[str], vocabulary: Vocabulary = VOCABULARY) -> ParsedText:
    """Sentences without parses."""
    words = [sentence.split() for sentence in sentences]
    ids = np.array([i for each in words for i in vocabulary.ids_of(each)], np.uint32)
    starts = np.cumsum([0, *map(len, words)]).astype(np.uint64)
    empty = np.zeros(len(words) + 1, np.uint64)
    documents = np.zeros(len(words), np.int64)
    return ParsedText(ids, starts, documents, np.zeros(0, np.uint16), empty)


def shares(model: CompositeModel, sentence: str) -> dict[tuple[str, ...], float]:
    """rho of every partial parse, by its heads."""
    state = model.score_phrase(model.initial(), sentence).state
    names = [*CODES.tags, *CODES.phrases]
    found: dict[tuple[str, ...], float] = {}
    for score, _, heads in state.beam.hypotheses():  # type: ignore[attr-defined]
        key = tuple(f"{VOCABULARY.symbols[word]} {names[label]}" for word, label in heads)
        found[key] = math.exp(score)
    return found


def as_fractions(values: Mapping[tuple[str, ...], float]) -> dict[tuple[str, ...], Fraction]:
    return {key: Fraction(value).limit_denominator(1000) for key, value in values.items()}
