"""`treelm card`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from treelm.cli.model_options import ModelPath
from treelm.cli.options import CommonOptions, File, OutputFile
from treelm.corpus.files import write_atomically


def card(
    *,
    model: ModelPath,
    name: Annotated[str | None, Parameter(show_default="that of the folder")] = None,
    language: str | None = None,
    license: str | None = None,  # noqa: A002  # what hubs call it
    scores: Annotated[File | None, Parameter(show_default="none")] = None,
    output: OutputFile = "-",
    common: CommonOptions = CommonOptions(),
) -> None:
    """Write the card of a model for a model hub: what it is, and what it was made from.

    A model folder can be pushed to a hub as it is, and read from where it was downloaded to. Its
    README.md is the card that the hub shows: -o MODEL/README.md replaces the few lines there.

    Args:
        name: What the model is called.
        language: Code of the language of its words, such as en.
        license: Name of the licence under which it is passed on, such as cc-by-4.0.
        scores: JSON file: an object of measurements by name, such as {"F1 on gum": 83.3}.
    """
    del common
    from treelm.models.registry import load
    from treelm.tasks.card import model_card, read_scores

    text = model_card(
        load(model),
        name or Path(model).resolve().name,
        language=language,
        license=license,
        scores={} if scores is None else read_scores(scores),
    )
    with write_atomically(output) as out:
        out.write(text.encode())
