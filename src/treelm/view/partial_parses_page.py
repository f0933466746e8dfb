"""What a parser holds possible after each word, as a page with a slider over the words.

The page refers to nothing outside itself. Without scripts, all words are shown below each other.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence

from treelm.models.interface.partial_parses import PartialParses
from treelm.trees.tree import Tree
from treelm.view.markup import escape, escape_attribute
from treelm.view.partial_parses import LEGEND, step_note, tree_marks
from treelm.view.svg import draw_svg

_STYLE_OF_TREE = re.compile(r"<style>.*?</style>\n?", re.DOTALL)

_PAGE = """\
<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>
:root {{ color-scheme: light dark; }}
body {{ margin: 0; background: #ffffff; }}
main {{ max-width: 76rem; margin: 0 auto; padding: 1rem 1.25rem 3rem; }}
@media (prefers-color-scheme: dark) {{ body {{ background: #0b1220; }} }}
</style>
</head>
<body>
<main>
{body}
</main>
</body>
</html>
"""

_STYLE = """
.treelm-partial { --ink: #0f172a; --soft: #475569; --line: #cbd5e1; --panel: #f8fafc;
  --bar: #2563eb; --win: #0f766e; --lost: #b91c1c; --back: #9a3412; color: var(--ink);
  font: 15px/1.45 "Helvetica Neue", Helvetica, Arial, "Liberation Sans", "Noto Sans", sans-serif;
  margin: 0 0 2.5rem; }
@media (prefers-color-scheme: dark) { .treelm-partial { --ink: #f1f5f9; --soft: #a8b5c7;
  --line: #334155; --panel: #111827; --bar: #60a5fa; --win: #2dd4bf; --lost: #fca5a5;
  --back: #fdba74; } }
.treelm-partial h2 { font-size: 1.15rem; margin: 0 0 .25rem; }
.treelm-partial h3 { font-size: 1rem; margin: 0 0 .5rem; }
.treelm-partial p { margin: .25rem 0; color: var(--soft); }
.treelm-partial .words { display: flex; flex-wrap: wrap; gap: .25rem; align-items: flex-end;
  margin: 1rem 0 .5rem; padding: 0; list-style: none; }
.treelm-partial .words button { display: flex; flex-direction: column; align-items: center;
  justify-content: flex-end; min-width: 2.6rem; padding: .15rem .45rem .3rem; gap: .15rem;
  border: 1px solid transparent; border-radius: 6px; background: none; color: inherit;
  font: inherit; cursor: pointer; }
.treelm-partial .words button:hover { border-color: var(--line); }
.treelm-partial .words button[aria-current] { border-color: var(--ink); background: var(--panel);
  font-weight: bold; }
.treelm-partial .words .bits { font-size: .75rem; color: var(--soft); font-weight: normal; }
.treelm-partial .words .bar { width: 1.3rem; border-radius: 3px 3px 0 0; background: var(--bar); }
.treelm-partial .words .turn .bar { background: var(--back); }
.treelm-partial .words .win { width: 100%; height: .35rem; border-radius: 3px;
  background: var(--line); overflow: hidden; }
.treelm-partial .words .win span { display: block; height: 100%; background: var(--win); }
.treelm-partial .key { display: inline-block; width: .8rem; height: .6rem; border-radius: 2px;
  margin: 0 .25rem 0 .6rem; }
.treelm-partial .key:first-child { margin-left: 0; }
.treelm-partial .slider { display: flex; gap: .75rem; align-items: center; }
.treelm-partial input[type=range] { flex: 1; max-width: 40rem; accent-color: var(--bar); }
.treelm-partial button:focus-visible, .treelm-partial input:focus-visible,
.treelm-partial .tree:focus-visible { outline: 3px solid var(--bar); outline-offset: 2px; }
.treelm-partial .step { margin: 1rem 0; }
.treelm-partial .step[hidden] { display: none; }
.treelm-partial .trees { display: grid; gap: .75rem; margin: .5rem 0; padding: 0;
  list-style: none; grid-template-columns: repeat(auto-fill, minmax(min(100%, 21rem), 1fr)); }
.treelm-partial .trees li { border: 1px solid var(--line); border-radius: 8px;
  background: var(--panel); overflow: hidden; }
.treelm-partial .head { display: flex; flex-wrap: wrap; gap: .6rem; align-items: center;
  padding: .4rem .75rem; }
.treelm-partial .rank { font-weight: bold; min-width: 1.4rem; }
.treelm-partial .share { flex: 0 1 12rem; min-width: 5rem; height: .6rem; border-radius: 4px;
  background: var(--line); overflow: hidden; }
.treelm-partial .share span { display: block; height: 100%; background: var(--bar); }
.treelm-partial .wins .share span { background: var(--win); }
.treelm-partial .mark { font-size: .8rem; padding: .05rem .5rem; border-radius: 999px;
  border: 1px solid currentColor; color: var(--soft); }
.treelm-partial .mark.wins { color: var(--win); }
.treelm-partial .mark.lost { color: var(--lost); }
.treelm-partial .mark.back { color: var(--back); }
.treelm-partial .tree { overflow-x: auto; padding: 0 .5rem .4rem; }
.treelm-partial .tree svg { display: block; }
.treelm-partial .tree .treelm-page { fill: none !important; }
.treelm-partial .note { color: var(--back); font-weight: bold; }
@media (prefers-reduced-motion: no-preference) {
  .treelm-partial .share span { transition: width .15s; } }
"""

_SCRIPT = """
(function () {
  var root = document.getElementById("%(name)s");
  if (!root) { return; }
  var steps = root.querySelectorAll(".step");
  var buttons = root.querySelectorAll(".words button");
  var slider = root.querySelector("input[type=range]");
  var said = root.querySelector(".said");
  function show(place) {
    steps.forEach(function (step, at) { step.hidden = at !== place; });
    buttons.forEach(function (button, at) {
      if (at === place) { button.setAttribute("aria-current", "step"); }
      else { button.removeAttribute("aria-current"); }
    });
    slider.value = place;
    slider.setAttribute("aria-valuetext", steps[place].getAttribute("aria-label"));
    said.textContent = (place + 1) + " / " + steps.length;
  }
  slider.addEventListener("input", function () { show(Number(slider.value)); });
  buttons.forEach(function (button, at) {
    button.addEventListener("click", function () { show(at); });
  });
  root.querySelector(".slider").hidden = false;
  show(0);
})();
"""


_KEY = """
<p><span class="key" style="background:var(--bar)"></span>surprisal in bits
<span class="key" style="background:var(--win)"></span>probability of the tree that wins in the end
<span class="key" style="background:var(--back)"></span>the word that brings it to the top</p>
"""


def partial_parses_html(parses: PartialParses) -> str:
    """Return the partial trees of a sentence as a piece of a page, for a notebook."""
    digest = hashlib.sha256(repr(parses).encode("utf-8", "surrogatepass")).hexdigest()[:12]
    name = f"treelm-partial-{digest}"
    style = _STYLE_OF_TREE.search(draw_svg(Tree("X", "x")))
    tree_style = "" if style is None else style[0]
    steps = "\n".join(_step(parses, place) for place in range(len(parses.steps)))
    label = escape_attribute(_title(parses))
    return (
        f'<section class="treelm-partial" id="{name}" aria-label="{label}">'
        f"<style>{_STYLE}</style>{tree_style}\n"
        f"<h2>{escape(_title(parses))}</h2>\n<p>{escape(_summary(parses))} {escape(LEGEND)}</p>\n"
        f"{_words(parses)}\n{_slider(parses)}\n{steps}\n{_whole(parses)}\n"
        f"<script>{_SCRIPT % {'name': name}}</script></section>"
    )


def partial_parses_page(found: Sequence[PartialParses]) -> str:
    """Return a page with the partial trees of sentences, each with its slider.

    Examples:
        >>> page = partial_parses_page([])
        >>> page.startswith("<!DOCTYPE html>"), "http" in page
        (True, False)
    """
    body = "\n".join(map(partial_parses_html, found))
    return _PAGE.format(title="Partial trees, word by word", body=body)


def _title(parses: PartialParses) -> str:
    return f"Partial trees: {' '.join(parses.words)}"


def _summary(parses: PartialParses) -> str:
    if not parses.steps:
        return "There are no words."
    if not parses.whole:
        return "The parser found no tree for the whole sentence."
    if (turn := parses.disambiguation) is None:
        return "The tree that wins was the most probable one from the first word on."
    step, before = parses.steps[turn], parses.steps[turn - 1]
    where = "not begun" if before.winner_rank is None else f"at rank {before.winner_rank}"
    return (
        f"The tree that wins came to the top for good with word {turn + 1}, “{step.word}”; before "
        f"it was {where} with probability {before.winner_probability:.3f}."
    )


def _words(parses: PartialParses) -> str:
    highest = max((step.surprisal for step in parses.steps), default=1.0) or 1.0
    rows = []
    for place, step in enumerate(parses.steps):
        height = 4 + 44 * min(1.0, step.surprisal / highest)
        turn = ' class="turn"' if place == parses.disambiguation else ""
        label = (
            f"word {place + 1}, {step.word}, {step.surprisal:.1f} bits, the winner has probability "
            f"{step.winner_probability:.2f}"
        )
        rows.append(
            f'<li><button type="button"{turn} aria-label="{escape_attribute(label)}">'
            f'<span class="bits">{step.surprisal:.1f}</span>'
            f'<span class="bar" style="height:{height:.0f}px"></span>'
            f'<span>{escape(step.word)}</span><span class="win">'
            f'<span style="width:{100 * step.winner_probability:.0f}%"></span></span>'
            "</button></li>"
        )
    return f'<ol class="words">{"".join(rows)}</ol>{_KEY}'


def _slider(parses: PartialParses) -> str:
    last = max(0, len(parses.steps) - 1)
    return (
        '<div class="slider" hidden>'
        f'<input type="range" min="0" max="{last}" value="0" aria-label="Word of the sentence">'
        '<span class="said" aria-hidden="true"></span></div>'
    )


def _step(parses: PartialParses, place: int) -> str:
    step = parses.steps[place]
    label = f"After “{step.word}”: {step.surprisal:.2f} bits"
    note = step_note(parses, place)
    said = f'<p class="note">{escape(note[0].upper() + note[1:])}.</p>' if note else ""
    if step.winner_rank is None:
        where = "The tree that wins in the end has not begun yet."
    else:
        where = (
            f"The tree that wins in the end is at rank {step.winner_rank}, with probability "
            f"{step.winner_probability:.3f}."
        )
    trees = "".join(
        _tree(each.rank, each.probability, each.tree, tree_marks(parses, place, each))
        for each in step.trees
    )
    return (
        f'<section class="step" aria-label="{escape_attribute(label)}"><h3>{escape(label)}</h3>'
        f'{said}<p>{where} All trees shown: {step.shown:.3f}.</p><ol class="trees">{trees}</ol>'
        "</section>"
    )


def _whole(parses: PartialParses) -> str:
    if not parses.whole:
        return ""
    trees = "".join(
        _tree(rank, each.probability, each.tree, ())
        for rank, each in enumerate(parses.whole, start=1)
    )
    return (
        f"<details><summary>Trees of the whole sentence ({len(parses.whole)})</summary>"
        f'<ol class="trees">{trees}</ol></details>'
    )


def _tree(rank: int, probability: float, tree: Tree, marks: Sequence[str]) -> str:
    kinds = {"wins": "wins", "lost": "lost", "cannot end here": "lost", "comes back": "back"}
    shown = "".join(
        f'<span class="mark {kinds.get(mark, "")}">{escape(mark)}</span>' for mark in marks
    )
    picture = _STYLE_OF_TREE.sub("", draw_svg(tree, font_size=13, title=str(tree)))
    wins = ' class="wins"' if "wins" in marks else ""
    return (
        f'<li{wins}><div class="head"><span class="rank">{rank}</span>'
        f'<span class="share" aria-hidden="true"><span style="width:{100 * probability:.1f}%">'
        f"</span></span><span>{probability:.3f}</span>{shown}</div>"
        f'<div class="tree" tabindex="0" role="group" aria-label="Tree {rank}">{picture}</div></li>'
    )
