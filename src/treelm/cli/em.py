"""`treelm em`."""

from __future__ import annotations

import sys

from treelm.cli.apps import command_group, example_line
from treelm.cli.options import AsJson, CommonOptions, File
from treelm.cli.terminal import write_record
from treelm.tasks.em_plan import plan_lines, plan_record, plan_training

em = command_group(
    "em", "Plan training by expectation-maximization.", "treelm em plan --config em.toml"
)


@em.command(help_epilogue=example_line("treelm em plan --config em.toml --json"))
def plan(*, config: File, json: AsJson = False, common: CommonOptions = CommonOptions()) -> None:
    """Show what training will take before it begins: types, bytes, time, and what fits.

    The file names the `system` ("plsa", the default, or "composite") and has the sections `corpus`
    (`text` or `trees`, lists of files; for a composite model `trees` and `held_out`;
    `vocabulary`, a file), `model` (options of `treelm train plsa` or `treelm train composite`,
    written with underscores) and `resources` (`memory` such as "16G", `threads`). The text is read
    once; for a model with heads, a small model is counted on some thousand sentences and a few
    hundred are searched. Nothing is trained.

    Args:
        config: TOML file; file names in it are relative to its folder.
    """
    options, found = plan_training(config, progress=common.progress)
    if json:
        write_record(plan_record(options, found), as_json=True)
        return
    for line in plan_lines(options, found):
        sys.stdout.write(line + "\n")
