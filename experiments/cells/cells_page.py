"""The page of all tables, figures and claims of the papers: experiments/README.md.

    python experiments/cells/cells_page.py [--check]

What follows the mark in that page is made from the catalogue, and a test keeps it up to date.
"""

from __future__ import annotations

import argparse
import sys
import tomllib
from collections.abc import Iterator, Mapping, Sequence

from paper_cells import (
    EXPERIMENTS,
    HERE,
    MEASURED,
    NOT_RUN,
    SHOWN,
    VERDICTS,
    Cell,
    Paper,
    PaperTable,
    counts,
    read_papers,
    read_runs,
)

PAGE = EXPERIMENTS / "README.md"
MARK = (
    "<!-- From here on made by `python experiments/cells/cells_page.py`, from cells/*.toml. -->\n"
)
UNCHECKED = "† not checked against the publication: quoted from memory, and never a target."


def before() -> Mapping[str, Mapping[str, int]]:
    """Return the counts of the day before this page was made."""
    found: Mapping[str, Mapping[str, int]] = tomllib.loads(
        (HERE / "before.toml").read_text(encoding="utf-8")
    )
    return found


def made_part(papers: Sequence[Paper]) -> str:
    """Return what follows the mark."""
    lines = [*_summary(papers)]
    for paper in papers:
        lines += _paper(paper)
    lines += _runs()
    return "\n".join(lines) + "\n"


def page_text(papers: Sequence[Paper]) -> str:
    """Return the whole page: what is written by hand, and what is made."""
    head, mark, _ = PAGE.read_text(encoding="utf-8").partition(MARK)
    if not mark:
        raise SystemExit(f"{PAGE.name} has no line that says where the made part begins")
    return head + MARK + made_part(papers)


def _summary(papers: Sequence[Paper]) -> Iterator[str]:
    yield "\n## Tables, figures and claims of the papers\n"
    yield (
        "Every cell of the four papers, and its state: **measured** (our figure stands beside the "
        "published one; it is looked up in the `results.json` of the run), **shown** (a text or "
        "drawing, at the place named), or **not run**, with the reason and what it would take. "
        "Data differ everywhere, so single figures cannot be compared with published ones, only "
        "their order and shape; how they differ stands above each table. Brackets are 95 % "
        "intervals. `make report` writes the same as one page of HTML, "
        "`build/reproduction.html`.\n"
    )
    head = ("paper", "cells", MEASURED, "of these with an interval", SHOWN, NOT_RUN, "claims")
    yield f"| {' | '.join((*head, *VERDICTS))} |"
    yield f"|---|{'---:|' * (len(head) + len(VERDICTS) - 1)}"
    for name, own in (*((paper.name, [paper]) for paper in papers), ("all", list(papers))):
        found = counts(own)
        claims = found.claims
        cells = [sum(found.cells.values()), found.cells[MEASURED]]
        cells += [found.cells[MEASURED] - found.without_interval]
        cells += [found.cells[SHOWN], found.cells[NOT_RUN], sum(claims.values())]
        cells += [claims[verdict] for verdict in VERDICTS]
        yield f"| {name} | {' | '.join(map(str, cells))} |"
    old = before()
    yield (
        f"\nWith what the READMEs had before this page was made, {old['cells']['measured']} cells "
        f"were measured, "
        f"{old['cells']['shown']} shown, and {old['cells']['not_run']} missing, "
        f"{old['cells']['marked']} of them marked as such; "
        f"of the claims {old['claims']['confirmed']} were confirmed, "
        f"{old['claims']['refuted']} refuted, {old['claims']['open']} open and "
        f"{old['claims']['untestable']} not testable.\n"
    )
    yield (
        "*Refuted* means: not so on the data here, under the conditions stated; *not testable "
        "here*: no measurement could tell without what we do not have.\n"
    )


def _paper(paper: Paper) -> Iterator[str]:
    yield f"\n## {paper.name}\n"
    link = f"[{paper.folder}]({paper.folder}/README.md)"
    yield f"*{paper.title}.* Recipes and last results: {link}.\n"
    yield "| claim | in the paper | verdict | found here |"
    yield "|---|---|---|---|"
    for claim in paper.claims:
        cells = (claim.text, claim.where, f"**{claim.verdict}**", claim.finding)
        yield f"| {' | '.join(map(_escaped, cells))} |"
    for table in paper.tables:
        yield from _table(table)
    if paper.reasons:
        yield "\n### Not run\n"
        yield "| reason | why | what it would take |"
        yield "|---|---|---|"
        for reason in paper.reasons:
            yield f"| {reason.name} | {_escaped(reason.why)} | {_escaped(reason.needs)} |"
        yield ""


def _table(table: PaperTable) -> Iterator[str]:
    yield f"\n### {table.name}: {table.title}\n"
    if table.published_on:
        yield f"Published on {table.published_on}. {table.conditions}".rstrip() + "\n"
    head = [""]
    for column in table.columns:
        if any(cell.published for cell in table.cells.values()):
            head.append(f"published: {column}")
        head += [f"ours: {label}" for label in table.labels[column]] or ["ours"]
    yield f"| {' | '.join(map(_escaped, head))} |"
    yield f"|{'---|' * len(head)}"
    for row in table.rows:
        cells = [_escaped(row)]
        for column in table.columns:
            cells += _shown(table, table.cells.get((row, column)), column)
        yield f"| {' | '.join(cells)} |"
    if table.has_unchecked:
        yield f"\n{UNCHECKED}"


def _shown(table: PaperTable, cell: Cell | None, column: str) -> Iterator[str]:
    """Yield the published figure, and ours, one for each column of ours."""
    width = max(1, len(table.labels[column]))
    if any(other.published for other in table.cells.values()):
        yield "-" if cell is None else cell.published
    if cell is None:
        yield from [""] * width
    elif cell.state == MEASURED:
        by_label = {own.label: own.text for own in cell.ours}
        yield from (by_label.get(label, "") for label in table.labels[column])
    else:
        if cell.state == SHOWN:
            yield ", ".join(f"[{_name(path)}]({path})" for path in cell.places)
        else:
            yield "not run" + (f" ({cell.reason.name})" if cell.reason else "")
        yield from [""] * (width - 1)


def _name(path: str) -> str:
    file = path.partition("#")[0]
    if file.startswith("../docs/"):
        return file.removeprefix("../docs/").removesuffix(".md")
    return file


def _runs() -> Iterator[str]:
    yield "\n## What the runs cost\n"
    yield "| results | what | data | cost |"
    yield "|---|---|---|---|"
    for run in read_runs():
        link = f"[{run.results}]({run.results}/results.json)"
        yield f"| {link} | {_escaped(run.what)} | {_escaped(run.data)} | {_escaped(run.cost)} |"


def _escaped(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;")


def main() -> int:
    """Write the page, or say whether it is out of date."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("--check", action="store_true", help="write nothing; 1 if out of date")
    check = parser.parse_args().check
    text = page_text(read_papers())
    if check:
        return int(PAGE.read_text(encoding="utf-8") != text)
    PAGE.write_text(text, encoding="utf-8")
    print(PAGE.name)
    return 0


if __name__ == "__main__":
    sys.exit(main())
