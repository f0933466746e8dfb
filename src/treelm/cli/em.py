"""`treelm em`."""

from __future__ import annotations

import sys

from cyclopts import App, Parameter

from treelm.cli.options import CommonOptions
from treelm.cli.terminal import write_record
from treelm.tasks.em_plan import plan_lines, plan_record, plan_training

em = App(
    name="em",
    help="Plan trainings by expectation-maximization.",
    help_epilogue="Example: `treelm em plan --config em.toml`",
    default_parameter=Parameter(negative=(), consume_multiple=True),
    version_flags=[],
)


@em.command(help_epilogue="Example: `treelm em plan --config em.toml --json`")
def plan(*, config: str, json: bool = False, common: CommonOptions | None = None) -> None:
    """Say what a training will take before it begins: types, bytes, time, and what fits.

    The file names the system ("plsa" or "composite") and has the sections [corpus] (text or trees,
    vocabulary), [model] (options of `treelm train plsa` or `treelm train composite` such as order,
    heads, topics, keep_topics, cutoff) and [resources] (memory, threads). The text is read once;
    with heads, a few sentences of it are searched. Nothing is trained.

    Args:
        config: A TOML file; file names in it are relative to its folder.
        json: One JSON object instead of lines.
        common: Common.
    """
    common = common or CommonOptions()
    options, found = plan_training(config, progress=common.progress)
    if json:
        write_record(plan_record(options, found), as_json=True)
        return
    for line in plan_lines(options, found):
        sys.stdout.write(line + "\n")
