"""Options of every command that uses a model, and the lines it reads."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, NamedTuple

from cyclopts import Group, Parameter

from treelm.cli.options import CommonOptions, TextOptions
from treelm.cli.ranges import Range, at_least, within
from treelm.cli.terminal import is_terminal

if TYPE_CHECKING:
    from treelm.models.interface.model import LanguageModel, Task
    from treelm.tasks.text_check import TextCheck

_MODEL = Parameter(
    name=["--model", "-m"], metavar="MODEL", help="Model folder, or the name of a ready model."
)
#: A model folder.
ModelPath = Annotated[str, _MODEL]
#: A model folder, where something else may take its place.
OptionalModelPath = Annotated[str | None, _MODEL]
#: A model folder where a ready model takes its place if one is installed.
UsualModelPath = Annotated[
    OptionalModelPath, Parameter(show_default="the ready model for this, if one is installed")
]
#: How many trees of a sentence are looked at.
NumberOfTrees = Annotated[int, Parameter(name=["--k", "-k"]), at_least(1)]


@Parameter(name="*", group=Group("Scoring options", sort_key=40))
@dataclass(frozen=True, kw_only=True)
class ScoringOptions:
    """How grammars, and models of trees, score sentences."""

    parser: Annotated[str | None, Parameter(metavar="PARSER", show_default="the model's own")] = (
        None
    )
    """Models of trees: a model folder that parses, or a file of parses."""
    k: Annotated[NumberOfTrees | None, Parameter(show_default="as trained")] = None
    """Models of trees: sum over this many trees of each sentence."""
    pruning: Literal["none", "fast", "default", "accurate"] = "none"
    """Grammars: none is exact; anything else is faster and gives lower bounds."""
    floor: Annotated[float | None, within(Range(above=0, below=1))] = None
    """Weight of a unigram model that is mixed into the probability of every sentence, such as
    0.001, so that sentences without a parse have a probability."""

    def model(self, folder: str) -> LanguageModel:
        """Return the model of a folder, made ready for tokenized text."""
        return self.apply(load_for_tokens(folder))

    def apply(self, model: LanguageModel) -> LanguageModel:
        """Return a model made ready."""
        from treelm.tasks.scoring_model import scoring_model

        return scoring_model(
            model, parser=self.parser, k=self.k, pruning=self.pruning, floor=self.floor
        )


@Parameter(name="*", group=Group("Search options", sort_key=50))
@dataclass(frozen=True, kw_only=True)
class SearchOptions:
    """Options of models that keep a beam."""

    beam_width: Annotated[int | None, at_least(1), Parameter(show_default="as trained")] = None
    """Hypotheses that an HHMM keeps after each word."""
    beam_ratio: Annotated[
        float | None, within(Range(least=0, below=1), show_default="as trained")
    ] = None
    """Drop hypotheses whose probability is below this share of the best one's."""

    @property
    def given(self) -> dict[str, int | float]:
        """The options that were given."""
        options = {"beam_width": self.beam_width, "beam_ratio": self.beam_ratio}
        return {name: value for name, value in options.items() if value is not None}

    def apply(self, model: LanguageModel) -> LanguageModel:
        """Return the model with the search asked for."""
        return model.with_search(**self.given) if self.given else model

    def apply_if_possible(self, model: LanguageModel) -> LanguageModel:
        """Return one of several models with the search asked for, if it has such a search."""
        names = set(self.given) & set(model.search_options)
        return model.with_search(**{name: self.given[name] for name in names}) if names else model

    def apply_to_several(self, models: Sequence[LanguageModel]) -> list[LanguageModel]:
        """Return models, those that have such a search with the search asked for.

        Raises:
            UnsupportedTask: if an option is given that none of them has.
        """
        for name, value in self.given.items():
            if models and not any(name in model.search_options for model in models):
                models[0].with_search(**{name: value})
        return [self.apply_if_possible(model) for model in models]


@Parameter(name="*", group=Group("Length options", sort_key=55))
@dataclass(frozen=True, kw_only=True)
class LengthOptions:
    """The longest sentence that is read."""

    max_words: Annotated[
        int | None, at_least(1), Parameter(show_default="depends on the system")
    ] = None
    """Longest sentence that is read as a whole. Where time or memory grow faster than the words,
    longer ones are refused at once (`treelm parse` has --long)."""

    def apply(self, model: LanguageModel) -> LanguageModel:
        """Return the model with the limit asked for."""
        return model if self.max_words is None else model.with_max_words(self.max_words)


def load_for_tokens(folder: str) -> LanguageModel:
    """Return the model of a folder as one that takes tokenized text, whatever it was saved for."""
    from treelm.models.registry import load

    return load(folder).with_tokenizer(None)


class OpenedModel(NamedTuple):
    """A model for tokenized text, how text is taken for it, its folder, and as it was saved."""

    model: LanguageModel
    text: TextOptions
    folder: Path
    saved: LanguageModel


def open_model(
    name: str | None, task: Task, text: TextOptions, common: CommonOptions
) -> OpenedModel:
    """Return the model that a command uses.

    Args:
        name: The model folder or the name of a ready model; None for that which does the task.
        task: What is asked of it.
        text: The options of the command; what they leave open is what the model wants.
        common: Says which model was chosen.
    """
    from treelm.models.ready import model_folder, usual_model
    from treelm.models.registry import NEURAL, load

    if name is None:
        folder = usual_model(task)
        common.note(f"the model is {folder.name}.")
        found = load(folder)
    else:
        folder = Path(name) if name.startswith(NEURAL) else model_folder(name)
        found = load(name)
    return OpenedModel(found.with_tokenizer(None), text.for_model(found), folder, found)


def note_unknown_words(check: TextCheck, common: CommonOptions) -> None:
    """Say how many words a model does not know, and what is wrong with the text."""
    for message in check.messages():
        common.note(message)


def at_once(output: str, *, line_buffered: bool) -> bool:
    """Return whether every record is wanted as soon as it is there."""
    return line_buffered or (output == "-" and is_terminal(sys.stdout))
