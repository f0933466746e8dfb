"""`treelm train`: one command for every system, made from what the registry says of it."""

from __future__ import annotations

from treelm.cli.apps import command_group, example_line
from treelm.models.registry import System, systems

train = command_group(
    "train",
    "Train a model and save it as a folder.",
    "treelm train ngram --order 3 --text train.txt -o model",
)


def add_command(system: System) -> None:
    """Add the command of a system; its options are read off when it is first used."""
    name = system.name.replace("_", "-")
    train.command(
        f"treelm.cli.train_command:train_{system.name}",
        name=name,
        help=system.summary,
        help_epilogue=example_line(f"treelm train {name} {system.example} -o model"),
    )


for each in systems().values():
    add_command(each)
