"""What can be asked of the server: the bodies of requests."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from treelm.limits import LARGEST_SEED

#: Pictures and texts that an answer may contain besides the figures.
Format = Literal["svg", "latex"]
ModelName = Annotated[str, Field(max_length=200, description="One of the names of /api/models.")]
Text = Annotated[str, Field(description="Text: a line, or a part of it, is a sentence.")]
Sentence = Annotated[str, Field(description="One sentence.")]


class Question(BaseModel):
    """What all requests have in common."""

    model_config = ConfigDict(extra="forbid", strict=True, use_attribute_docstrings=True)

    tokenized: bool = False
    """Whether words are split at spaces; if not, text is split into sentences and tokens."""
    formats: Annotated[list[Format], Field(max_length=2)] = []
    """What to draw besides the figures."""
    width: Annotated[int, Field(ge=280, le=4000)] = 900
    """Width of charts in pixels, at which words go on in another row."""


class SurprisalQuestion(Question):
    """The surprisal of every word, by several models."""

    text: Text
    models: Annotated[list[ModelName], Field(max_length=8)] = []
    """Which models; without any, those loaded from the start that go word by word."""
    eos: bool = False
    """Whether the end of each sentence has a surprisal too."""


class TreesQuestion(Question):
    """The best trees of a sentence."""

    text: Sentence
    model: ModelName | None = None
    """Which model; without one, the first that can."""
    k: Annotated[int, Field(ge=1)] = 1
    """How many trees."""


class StatesQuestion(TreesQuestion):
    """The states of an incremental parser after each word."""

    k: Annotated[int, Field(ge=1)] = 3
    """How many states after each word."""


class CompareQuestion(Question):
    """Two sentences side by side."""

    first: Sentence
    second: Sentence
    models: Annotated[list[ModelName], Field(max_length=8)] = []
    """Which models; without any, those loaded from the start that go word by word."""


class JudgeQuestion(Question):
    """Whether sentences are good."""

    text: Text
    model: ModelName | None = None
    """Which classifier; without one, the first."""


class SampleQuestion(BaseModel):
    """Sentences sampled from a model."""

    model_config = ConfigDict(extra="forbid", strict=True, use_attribute_docstrings=True)

    model: ModelName | None = None
    """Which model; without one, the first that samples."""
    count: Annotated[int, Field(ge=1)] = 5
    """How many sentences."""
    seed: Annotated[int, Field(ge=0, le=LARGEST_SEED)] | None = None
    """Gives the same sentences again; without one there is a new one, which the answer says."""
    max_words: Annotated[int, Field(ge=1, le=200)] = 40
    """A longer sentence is cut, or replaced where it has a tree."""
    formats: Annotated[list[Format], Field(max_length=2)] = []
    """What to draw besides the words: their trees, if the model has any, and a list."""


class LoadQuestion(BaseModel):
    """A model that is to be loaded."""

    model_config = ConfigDict(extra="forbid", strict=True, use_attribute_docstrings=True)

    model: ModelName
    """Which model."""
