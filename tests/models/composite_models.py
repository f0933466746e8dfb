"""Small composite models of the packaged treebank."""

from __future__ import annotations

import warnings
from functools import cache
from typing import Any

from treelm.corpus.brackets import ReadOptions
from treelm.corpus.corpus import TreeCorpus
from treelm.corpus.sample_treebank import sample_path
from treelm.models.composite.checkpoint import Checkpoint, EmStep
from treelm.models.composite.config import CompositeConfig
from treelm.models.composite.model import CompositeModel
from treelm.models.composite.parsed_text import ParsedText, PreparedTrees, prepare
from treelm.models.composite.train import train_on_parses
from treelm.models.run import Event, Run

#: Sentences of the packaged treebank that are trained on; the rest is held out.
TRAINED = 260


@cache
def sample_parts(**options: object) -> tuple[PreparedTrees, ParsedText]:
    """The packaged treebank, cut in two."""
    config = CompositeConfig(**options)  # type: ignore[arg-type]
    whole = prepare(TreeCorpus((sample_path(),), ReadOptions()), config)
    train = PreparedTrees(whole.text.part(0, TRAINED), whole.vocabulary, whole.codes)
    return train, whole.text.part(TRAINED, len(whole.text))


@cache
def sample_composite(**options: object) -> CompositeModel:
    settings: dict[str, object] = {"stack_size": 4, "iterations": 0, "follow_up": 0, **options}
    config = CompositeConfig(**settings)  # type: ignore[arg-type]
    reading = {name: settings[name] for name in ("heads", "unary_moves") if name in settings}
    train, held_out = sample_parts(**reading)
    return train_on_parses(train, held_out, config)


def logged(
    config: CompositeConfig, checkpoint: Checkpoint | None = None, **how: Any
) -> tuple[CompositeModel, list[EmStep]]:
    train, held_out = sample_parts()
    steps: list[EmStep] = []

    def heard(event: Event) -> None:
        assert isinstance(event.value, EmStep)
        steps.append(event.value)

    folder = None if checkpoint is None else checkpoint.folder
    run = Run(event=heard, checkpoint=folder, **how)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = train_on_parses(train, held_out, config, run=run)
    return model, steps
