"""The reproduction report: one page of HTML, from the catalogue and all results.json files.

    python experiments/cells/cells_report.py [--output build/reproduction.html]

Claim by claim: confirmed, refuted, open or not testable here, with published figures and ours, the
conditions that differ, and what each run cost. The page needs no network and runs nothing.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from cells_page import UNCHECKED, before
from paper_cells import (
    EXPERIMENTS,
    MEASURED,
    NOT_RUN,
    SHOWN,
    STATES,
    VERDICTS,
    Cell,
    Claim,
    Paper,
    PaperTable,
    counts,
    read_papers,
    read_runs,
    results_of,
    shown,
)

from treelm.tasks.report.page import page_of
from treelm.view.markup import escape, escape_attribute
from treelm.view.plots import Bar, Point, Series, draw_grouped_bars, draw_line_chart

TITLE = "Four papers, made again on open data"
OUTPUT = EXPERIMENTS.parent / "build/reproduction.html"
#: Tables with a chart of published figures and ours: paper, table, column.
CHARTS = {
    ("treelet", "Table 2"): "1B words",
    ("treelet", "Table 4"): "1B words",
    ("treelet", "Table 5"): "pairs, 1B",
    ("hhmm", "Figure 7"): "in domain",
    ("lsvm", "Table 1"): "accuracy",
    ("lsvm", "Table 3"): "any length",
}
_GENERATORS = "Trigram pseudo-negatives by size of the trigram model's text"
#: The published row among ours of the same judges.
_LARGE = "1B words"
_CLASSES = {name: name.split()[0] for name in (*STATES, *VERDICTS)}

_OWN_STYLE = """
:root { --confirmed: #0f766e; --refuted: #be123c; --open: #b45309; --not: #64748b;
  --measured: #0f766e; --shown: #38bdf8; --soft: #f1f5f9; }
@media (prefers-color-scheme: dark) { :root { --confirmed: #2dd4bf; --refuted: #fb7185;
  --open: #fbbf24; --not: #94a3b8; --measured: #2dd4bf; --shown: #7dd3fc; --soft: #1e293b; } }
nav { position: sticky; top: 0; background: var(--page); padding: .5rem 0; z-index: 1;
  border-bottom: 1px solid var(--line); margin: 1rem 0; display: flex; flex-wrap: wrap;
  gap: .2rem 1.1rem; }
nav a, table a { color: var(--accent); text-decoration: none; }
nav a:hover, table a:hover, nav a:focus, table a:focus { text-decoration: underline; }
section { scroll-margin-top: 3.2rem; }
h2 { font-size: 1.35rem; border-top: 2px solid var(--line); padding-top: 1.6rem; }
h3 { font-size: 1.05rem; margin: 2rem 0 .3rem; }
.lead { max-width: 52rem; }
.cards { display: grid; grid-template-columns: repeat(auto-fit, minmax(9.5rem, 1fr)); gap: .8rem;
  margin: 1.2rem 0; }
.card { background: var(--card); border: 1px solid var(--line); border-radius: 8px;
  padding: .7rem .9rem; }
.card b { display: block; font-size: 1.7rem; line-height: 1.2; font-variant-numeric: tabular-nums; }
.card span { color: var(--quiet); font-size: .88rem; }
.bar { display: flex; height: .8rem; border-radius: 4px; overflow: hidden; min-width: 9rem;
  background: var(--soft); margin-top: .35rem; }
.bar i { display: block; height: 100%; }
.fill-measured { background: var(--measured); } .fill-shown { background: var(--shown); }
.fill-not { background: var(--line); }
.fill-confirmed { background: var(--confirmed); } .fill-refuted { background: var(--refuted); }
.fill-open { background: var(--open); }
.badge { display: inline-block; border-radius: 999px; padding: .05rem .6rem; font-size: .8rem;
  font-weight: 650; border: 1.5px solid currentColor; white-space: nowrap; }
.confirmed { color: var(--confirmed); } .refuted { color: var(--refuted); }
.open { color: var(--open); } .not { color: var(--not); }
.claim { background: var(--card); border: 1px solid var(--line); border-left-width: 5px;
  border-radius: 8px; padding: .7rem 1rem; margin: 0 0 .7rem; }
.claim.confirmed { border-left-color: var(--confirmed); }
.claim.refuted { border-left-color: var(--refuted); }
.claim.open { border-left-color: var(--open); } .claim.not { border-left-color: var(--not); }
.claim p { margin: .2rem 0 0; color: var(--text); }
.claim h4 { margin: 0; font-size: 1rem; color: var(--text); display: flex; gap: .7rem;
  justify-content: space-between; align-items: baseline; flex-wrap: wrap; }
.claim .where { color: var(--quiet); font-size: .85rem; font-weight: 400; }
.published { color: var(--quiet); } .missing { color: var(--quiet); font-style: italic; }
.interval { color: var(--quiet); font-size: .86em; }
tbody th { min-width: 9.5rem; }
.fit table { width: auto; min-width: 30rem; }
th.number { white-space: normal; vertical-align: bottom; min-width: 6.5rem; }
details { margin: .4rem 0; } summary { cursor: pointer; color: var(--accent); }
@media print { nav { display: none; } details { display: none; } }
"""


def report_page(papers: Sequence[Paper]) -> str:
    """Return the page; texts are shown as they are, whatever they contain."""
    parts = [*_summary(papers), *_navigation(papers), *_overview(papers)]
    for paper in papers:
        parts += _paper(paper)
    parts += _runs()
    return page_of(TITLE, parts, _OWN_STYLE)


def _summary(papers: Sequence[Paper]) -> Iterator[str]:
    found, old = counts(papers), before()
    cells = sum(found.cells.values())
    yield (
        '<p class="lead">What Pauls and Klein (2012), Schwartz et al. (2011), Tan et al. (2011) '
        "and Cherry and Quirk (2008) showed, and what was found with treelm. Their data are not "
        "free, so open data replace them: single figures cannot be compared with published ones, "
        "only their order and shape. <b>Refuted</b> means: not so here, under the conditions that "
        "stand above each table. Figures come from the results of the runs; brackets are 95 % "
        "intervals.</p>"
    )
    yield '<div class="cards">'
    for verdict in VERDICTS:
        number = found.claims[verdict]
        kind = _CLASSES[verdict]
        yield f'<div class="card"><b class="{kind}">{number}</b><span>claims {verdict}</span></div>'
    yield "</div>"
    yield '<div class="cards">'
    rows = (
        (found.cells[MEASURED], f"of {cells} cells measured; before: {old['cells']['measured']}"),
        (found.cells[MEASURED] - found.without_interval, "of these with an interval"),
        (found.cells[SHOWN], f"texts and drawings shown; before: {old['cells']['shown']}"),
        (
            found.cells[NOT_RUN],
            f"not run, all with a reason; before: {old['cells']['not_run']}, "
            f"{old['cells']['marked']} with one",
        ),
    )
    for number, text in rows:
        yield f'<div class="card"><b>{number}</b><span>{escape(text)}</span></div>'
    yield "</div>"


def _navigation(papers: Sequence[Paper]) -> Iterator[str]:
    links = [(paper.folder, paper.name) for paper in papers]
    links = [("claims", "All claims"), *links, ("runs", "Runs and costs")]
    yield '<nav aria-label="parts of the page">'
    yield from (f'<a href="#{place}">{escape(text)}</a>' for place, text in links)
    yield "</nav>"


def _overview(papers: Sequence[Paper]) -> Iterator[str]:
    yield '<section id="claims">\n<h2>All claims</h2>'
    yield '<div class="scroll"><table><thead><tr><th>paper</th><th>claims</th><th>cells</th></tr>'
    yield "</thead><tbody>"
    for paper in papers:
        found = counts([paper])
        yield (
            f'<tr><th scope="row"><a href="#{paper.folder}">{escape(paper.name)}</a></th>'
            f"<td>{_bar(found.claims, VERDICTS)}</td><td>{_bar(found.cells, STATES)}</td></tr>"
        )
    yield "</tbody></table></div>"
    yield '<div class="scroll"><table><thead><tr><th>claim</th><th>paper</th><th>verdict</th></tr>'
    yield "</thead><tbody>"
    for paper in papers:
        for number, claim in enumerate(paper.claims):
            yield (
                f'<tr><td><a href="#{paper.folder}-{number}">{escape(claim.text)}</a></td>'
                f"<td>{escape(paper.name)}, {escape(claim.where)}</td>"
                f"<td>{_badge(claim.verdict)}</td></tr>"
            )
    yield "</tbody></table></div>\n</section>"


def _bar(numbers: Mapping[str, int], names: Sequence[str]) -> str:
    """Return numbers in words, and as a bar."""
    total = sum(numbers.values())
    words = ", ".join(f"{numbers[name]} {name}" for name in names if numbers[name])
    pieces = "".join(
        f'<i class="fill-{_CLASSES[name]}" style="width:{100 * numbers[name] / total:.2f}%"></i>'
        for name in names
        if numbers[name]
    )
    return f'{words}<div class="bar" aria-hidden="true">{pieces}</div>'


def _badge(verdict: str) -> str:
    return f'<span class="badge {_CLASSES[verdict]}">{verdict}</span>'


def _paper(paper: Paper) -> Iterator[str]:
    yield f'<section id="{paper.folder}">\n<h2>{escape(paper.name)}</h2>'
    yield f'<p class="note">{escape(paper.title)}</p>'
    for number, claim in enumerate(paper.claims):
        yield _claim(claim, f"{paper.folder}-{number}")
    for table in paper.tables:
        yield from _table(paper, table)
    if paper.folder == "treelet":
        yield from _generators(paper)
    if paper.reasons:
        yield "<h3>Why cells were not run, and what it would take</h3>"
        yield _plain_table(
            ("reason", "why", "what it would take"),
            [(own.name, _without_links(own.why), own.needs) for own in paper.reasons],
            f"{paper.name}: not run",
        )
    yield "</section>"


def _claim(claim: Claim, place: str) -> str:
    return (
        f'<article class="claim {_CLASSES[claim.verdict]}" id="{place}"><h4><span>'
        f"{escape(claim.text)}</span>{_badge(claim.verdict)}</h4>"
        f'<p class="where">{escape(claim.where)}</p><p>{_words(claim.finding)}</p></article>'
    )


def _table(paper: Paper, table: PaperTable) -> Iterator[str]:
    title = f"{table.name}: {table.title}"
    yield f"<h3>{escape(title)}</h3>"
    if table.published_on:
        yield f'<p class="note">Published on {escape(table.published_on)}.</p>'
    if table.conditions:
        yield f'<p class="note">Here: {_words(table.conditions)}</p>'
    head = ['<th scope="col"></th>']
    for column in table.columns:
        if _has_figures(table):
            head.append(f'<th scope="col" class="number">published: {escape(column)}</th>')
        labels = table.labels[column] or ("ours",)
        head += [f'<th scope="col" class="number">{escape(label)}</th>' for label in labels]
    label = escape_attribute(title)
    yield f'<div class="scroll fit" role="region" tabindex="0" aria-label="{label}">'
    yield f"<table><thead><tr>{''.join(head)}</tr></thead><tbody>"
    for row in table.rows:
        cells = "".join(
            part
            for column in table.columns
            for part in _cells(table, table.cells.get((row, column)), column)
        )
        yield f'<tr><th scope="row">{escape(row)}</th>{cells}</tr>'
    yield "</tbody></table></div>"
    if table.has_unchecked:
        yield f'<p class="note">{escape(UNCHECKED)}</p>'
    column = CHARTS.get((paper.folder, table.name))
    if column is not None:
        yield _chart(table, column)


def _has_figures(table: PaperTable) -> bool:
    return any(cell.published for cell in table.cells.values())


def _cells(table: PaperTable, cell: Cell | None, column: str) -> Iterator[str]:
    labels = table.labels[column] or ("ours",)
    if _has_figures(table):
        text = "-" if cell is None else cell.published
        yield f'<td class="number published">{escape(text)}</td>'
    if cell is None:
        yield "<td></td>" * len(labels)
    elif cell.state == MEASURED:
        ours = {own.label: own for own in cell.ours}
        for label in labels:
            own = ours.get(label)
            if own is None:
                yield "<td></td>"
                continue
            text = escape(shown(own.value, own.digits))
            if own.interval is not None:
                interval = own.text.partition(" ")[2]
                text += f' <span class="interval">{escape(interval)}</span>'
            yield f'<td class="number">{text}</td>'
    elif cell.state == SHOWN:
        yield f'<td colspan="{len(labels)}">in {escape(", ".join(map(_place, cell.places)))}</td>'
    elif cell.reason is not None:
        why = escape_attribute(cell.reason.why)
        yield (
            f'<td class="missing number" colspan="{len(labels)}" title="{why}">'
            f"not run ({escape(cell.reason.name)})</td>"
        )


def _place(path: str) -> str:
    return path.removeprefix("../") if path.startswith("../") else f"experiments/{path}"


def _words(text: str) -> str:
    """Return a text for HTML; what stands between backquotes becomes code."""
    parts = escape(text).split("`")
    if len(parts) % 2 == 0:
        return escape(text)
    return "".join(f"<code>{part}</code>" if n % 2 else part for n, part in enumerate(parts))


def _without_links(text: str) -> str:
    """Return a text with the words of its links only."""
    for part in text.split("[")[1:]:
        word, _, rest = part.partition("](")
        text = text.replace(f"[{word}]({rest.partition(')')[0]})", word)
    return text


def _chart(table: PaperTable, column: str) -> str:
    """Return published figures and ours of one column as bars."""
    groups = {}
    for row in table.rows:
        cell = table.cells.get((row, column))
        if cell is None or not cell.ours:
            continue
        own = cell.ours[0]
        ends = own.interval or (None, None)
        published = float(cell.published.removesuffix(" †").replace(",", ""))
        groups[row] = [Bar("published", published), Bar("ours", own.value, *ends)]
    digits = next(iter(table.cells.values())).ours[0].digits
    title = f"{table.name}, {column}: {table.title.lower()}"
    picture = draw_grouped_bars(groups, title=title, digits=digits)
    caption = (
        "Bars of the same order tell that a table was found again; their lengths cannot agree."
    )
    return _figure(picture, caption)


def _figure(picture: str, caption: str) -> str:
    return f"<figure>\n{picture.strip()}\n<figcaption>{escape(caption)}</figcaption>\n</figure>"


def _generators(paper: Paper) -> Iterator[str]:
    """Draw accuracy by the fluency of the trigram model, and say where published ones lie."""
    rows = [row for row in results_of("treelet") if row["table"] == _GENERATORS]
    fluency = {row["data"]: row["value"] for row in rows if row["model"] == "trigram model"}
    table = next(table for table in paper.tables if table.name == "Table 4")
    models = dict.fromkeys(row["model"] for row in rows if row["model"] != "trigram model")
    series = [
        Series(
            model,
            tuple(
                Point(fluency[row["data"]], row["value"])
                for row in rows
                if row["model"] == model and row["data"] in fluency
            ),
        )
        for model in models
    ]
    published = ", ".join(f"{model} {table.cells[model, _LARGE].published}" for model in models)
    picture = draw_line_chart(
        series,
        title="Accuracy on trigram pseudo-negatives by the perplexity of the trigram model",
        x_axis="perplexity of the positives under the trigram model that makes the negatives",
        y_axis="accuracy",
        log_x=True,
    )
    yield "<h3>Table 4 again: how fluent the trigram model is</h3>"
    yield _figure(
        picture,
        "The same positives and judges, negatives of trigram models of 3,325 to 425,615 sentences. "
        f"Published, for a trigram model of unknown perplexity: {published}. They lie at the right "
        "end of the curves.",
    )


def _plain_table(columns: Sequence[str], rows: Sequence[Sequence[str]], label: str) -> str:
    head = "".join(f'<th scope="col">{escape(column)}</th>' for column in columns)
    body = "\n".join(
        f'<tr><th scope="row">{escape(row[0])}</th>'
        + "".join(f"<td>{_words(cell)}</td>" for cell in row[1:])
        + "</tr>"
        for row in rows
    )
    return (
        f'<div class="scroll" role="region" tabindex="0" aria-label="{escape_attribute(label)}">'
        f"<table><thead><tr>{head}</tr></thead><tbody>\n{body}\n</tbody></table></div>"
    )


def _runs() -> Iterator[str]:
    yield '<section id="runs">\n<h2>Runs and costs</h2>'
    runs = read_runs()
    rows = [(run.results, run.what, run.data, run.cost) for run in runs]
    yield _plain_table(("results", "what", "data", "cost"), rows, "Runs")
    yield "<h3>All figures of all runs</h3>"
    for run in runs:
        found = results_of(run.results)
        path = EXPERIMENTS / run.results / "results.json"
        copied = json.loads(path.read_text(encoding="utf-8")).get("copied")
        note = f"Copied {copied}." if copied else "As the report of the run wrote them."
        figures = [
            (
                row["table"],
                row["model"],
                row["metric"],
                row["data"],
                f"{row['value']:.6g}" if isinstance(row["value"], float | int) else row["value"],
                "" if row["interval"] is None else f"{_end(row, 0)} to {_end(row, 1)}",
            )
            for row in found
        ]
        columns = ("table", "model", "metric", "data", "value", "95 % interval")
        table = _plain_table(columns, figures, run.what)
        yield (
            f"<details><summary>{escape(run.results)}: {len(found)} figures</summary>"
            f'<p class="note">{escape(note)}</p>{table}</details>'
        )
    yield "</section>"


def _end(row: Mapping[str, list[float]], which: int) -> str:
    return f"{float(row['interval'][which]):.6g}"


def main() -> None:
    """Write the page and print where it is."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("--output", type=Path, default=OUTPUT, help="file to write")
    output: Path = parser.parse_args().output
    output.parent.mkdir(parents=True, exist_ok=True)
    output.write_text(report_page(read_papers()), encoding="utf-8")
    print(output)


if __name__ == "__main__":
    main()
