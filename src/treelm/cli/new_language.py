"""`treelm new-language`."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from treelm.characters import printable
from treelm.cli.options import AsJson, CommonOptions, InputFile, OutputFile, settle_reading
from treelm.cli.terminal import write_record
from treelm.corpus.files import source_name, write_atomically
from treelm.errors import UsageError

#: So many open questions are shown; all are in the file.
_SHOWN = 12


def new_language(
    files: Annotated[list[InputFile], Parameter(metavar="FILE...")],
    /,
    *,
    name: Annotated[str | None, Parameter(show_default="that of the first file's folder")] = None,
    output: OutputFile = "-",
    json: AsJson = False,
    on_error: Literal["raise", "skip"] = "skip",
    common: CommonOptions = CommonOptions(),
) -> None:
    """Propose a language profile from a treebank, and say what it leaves open.

    Labels, roots, empty elements, punctuation, closed classes, numbers, endings and head rules are
    found by counting. Comments in the profile give the evidence; CHECK marks what someone who knows
    the language should look at, and standard error lists it.

    Args:
        files: Files of trees, which are read three times.
        name: Name of the profile.
        on_error: Malformed trees: skip leaves them out and reports them at the end, and fails if
            they are more than 1 % of the trees; raise stops at the first one.
    """
    if json and output == "-":
        raise UsageError("--json needs --output: standard output is for one of the two.")
    if any(str(file) == "-" for file in files):
        raise UsageError("trees are read more than once, so they cannot come from standard input.")
    from treelm.tasks.new_language.propose import propose_profile

    proposal = propose_profile(files, name or _name_of(Path(files[0])), on_error=on_error)
    for report, file in zip(proposal.reports, files, strict=True):
        settle_reading(report, common, source_name(file))
    with write_atomically(output) as out:
        out.write(proposal.text.encode())
    if json:
        write_record(
            {
                "profile": proposal.profile.name,
                "fingerprint": proposal.profile.fingerprint,
                "trees": proposal.trees,
                "notes": [
                    {"key": note.key, "sure": note.sure, "evidence": note.evidence}
                    for note in proposal.notes
                ],
            },
            as_json=True,
        )
    unsure = proposal.unsure
    common.note(f"{proposal.trees} trees; {len(unsure)} of {len(proposal.notes)} parts to check:")
    for note in unsure[:_SHOWN]:
        common.note(printable(f"{note.key}: {note.evidence}"))
    if len(unsure) > _SHOWN:
        common.note(f"and {len(unsure) - _SHOWN} more, marked CHECK in the profile.")


def _name_of(path: Path) -> str:
    """Return a name for the profile of a treebank: that of its folder, else of the file."""
    folder = path.resolve().parent.name
    return re.sub(r"[^\w.-]+", "-", folder or path.stem).strip("-") or "new"
