"""`treelm models`."""

from __future__ import annotations

import sys
from dataclasses import asdict

from treelm.cli.options import AsJson, CommonOptions
from treelm.cli.terminal import write_record, write_table
from treelm.models.ready import USUAL_PACKAGE
from treelm.tasks.installed_models import InstalledModel, installed_models


def models(*, json: AsJson = False, common: CommonOptions = CommonOptions()) -> None:
    """List the ready-made models that are installed, with size, licence and scores.

    Their names stand for model folders in every command (`-m en-parser`) and in Python
    (`treelm.load("en-parser")`). They take raw text unless told otherwise.
    """
    found = installed_models()
    if json:
        write_record({"models": [asdict(model) for model in found]}, as_json=True)
        return
    if not found:
        common.note(
            f"no ready model is installed. Packages such as {USUAL_PACKAGE} bring some: "
            f"`pip install {USUAL_PACKAGE}`."
        )
        return
    write_table(
        ("name", "system", "package", "MB", "licence", "scores"), [_row(model) for model in found]
    )
    for model in found:
        if model.problem is not None:
            sys.stderr.write(f"treelm: {model.name}: {model.problem}\n")


def _row(model: InstalledModel) -> tuple[object, ...]:
    scores = ", ".join(f"{name} {value}" for name, value in model.scores.items())
    return (
        model.name,
        model.system or "damaged",
        model.package,
        f"{model.megabytes:.1f}",
        model.license or "",
        scores,
    )
