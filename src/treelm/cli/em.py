"""`treelm em`."""

from __future__ import annotations

import sys

from treelm.cli.apps import command_group, example_line
from treelm.cli.options import AsJson, CommonOptions, File, Folder
from treelm.cli.terminal import write_record
from treelm.tasks.em_plan import plan_lines, plan_record, plan_training
from treelm.tasks.em_work import status_lines, verify_work, work_status

em = command_group(
    "em",
    "Plan training by expectation-maximization, and look at one that runs.",
    "treelm em plan --config em.toml",
)


@em.command(help_epilogue=example_line("treelm em plan --config em.toml --json"))
def plan(*, config: File, json: AsJson = False, common: CommonOptions = CommonOptions()) -> None:
    """Show what training will take before it begins: types, bytes, time, and what fits.

    The file names the `system` ("plsa", the default, or "composite") and has the sections `corpus`
    (`text` or `trees`, lists of files; for a composite model `trees` and `held_out`;
    `vocabulary`, a file), `model` (options of `treelm train plsa` or `treelm train composite`,
    written with underscores) and `resources` (`memory` such as "16G", `threads`, and for many
    workers `workers`, `shards` and `shard_parameters`). The text is read once; for a model with
    heads, a small model is counted on some thousand sentences and a few hundred are searched.
    Nothing is trained.

    Args:
        config: TOML file; file names in it are relative to its folder.
    """
    options, found = plan_training(config, progress=common.progress)
    if json:
        write_record(plan_record(options, found), as_json=True)
        return
    for line in plan_lines(options, found):
        sys.stdout.write(line + "\n")


@em.command(help_epilogue=example_line("treelm em status work --json"))
def status(
    work: Folder, /, *, json: AsJson = False, common: CommonOptions = CommonOptions()
) -> None:
    """Show how far a training is, and what its phases took.

    Args:
        work: Folder that `treelm train --work` names, or MODEL.training.
    """
    del common
    found = work_status(work)
    if json:
        write_record(found, as_json=True)
        return
    for line in status_lines(found):
        sys.stdout.write(line + "\n")


@em.command(help_epilogue=example_line("treelm em verify work"))
def verify(work: Folder, /, *, common: CommonOptions = CommonOptions()) -> None:
    """Read all files of a training, and say whether they are what was written.

    Args:
        work: Folder that `treelm train --work` names, or MODEL.training.
    """
    del common
    for name, size in verify_work(work):
        sys.stdout.write(f"{name}\t{size} bytes\tcorrect\n")
