// What each view shows of an answer.

import { bits, details, el, notes, percent, picture, signed, table } from "/draw.js";
import { exports } from "/export.js";

const WORDS_HELD = 60;

function heading(text) {
  const shown = text.length > 200 ? `${text.slice(0, 200)}…` : text;
  return el("h2", {}, shown);
}

// -- surprisal ------------------------------------------------------------------------------

export function surprisalSentence(sentence, number, open) {
  const head = ["word", ...sentence.series.map((each) => each.model)];
  const rows = sentence.words.map((word, place) => [
    word,
    ...sentence.series.map((each) => `${bits(each.surprisal[place])}${each.unknown[place] ? " †" : ""}`),
  ]);
  const totals = sentence.series.map((each) => `${each.model}: ${bits(each.total, 1)} bits`).join(", ");
  const tsv = [
    ["word", ...sentence.series.flatMap((each) => [each.model, `${each.model}.unknown`])],
    ...sentence.words.map((word, place) => [
      word, ...sentence.series.flatMap((each) => [each.surprisal[place] ?? "inf", Number(each.unknown[place])]),
    ]),
  ];
  const figures = table("Surprisal in bits; † unknown to the model", head, rows);
  const folded = details("Figures as a table", figures);
  folded.open = open || !sentence.svg;
  return el("article", {},
    sentence.svg ? picture(sentence.svg) : heading(sentence.words.join(" ")),
    el("div", { class: "under" }, el("p", { class: "help" }, `In all ${totals}`),
      exports({ name: `surprisal-${number}`, svg: sentence.svg, tsv, latex: sentence.latex })),
    folded);
}

// -- trees ----------------------------------------------------------------------------------

export function trees(answer) {
  const shown = answer.trees.map((tree, place) => {
    const span = (bracket) => answer.words.slice(bracket.start, bracket.end).join(" ");
    const rows = tree.brackets.map((bracket) => [bracket.label, cut(span(bracket)), percent(bracket.probability)]);
    const chance = tree.posterior === null ? "" : `Probability ${percent(tree.posterior)}, given the words`;
    const tsv = [["label", "start", "end", "probability", "words"],
      ...tree.brackets.map((b) => [b.label, b.start, b.end, b.probability, span(b)])];
    const card = el("article", {},
      heading(answer.trees.length > 1 ? `Tree ${place + 1}` : "Best tree"),
      place ? changes(answer.trees[0].brackets, tree.brackets, span) : null,
      tree.svg ? picture(tree.svg) : null,
      el("div", { class: "under" }, el("p", { class: "help" }, chance),
        exports({ name: `tree-${place + 1}`, svg: tree.svg, tsv, latex: tree.latex })),
      details("Brackets as text", el("p", {}, el("code", { class: "brackets" }, tree.tree))),
      details("Probabilities of brackets as a table", table("Brackets and their probabilities, given the words", ["label", "words", "probability"], rows)));
    const drawn = card.querySelector(".picture svg");
    if (drawn) card.style.setProperty("--width", drawn.style.getPropertyValue("--width"));
    return card;
  });
  if (!shown.length) return [notes(answer.notes), el("p", {}, "There is no tree.")];
  return [notes(answer.notes), el("div", { class: "side" }, ...shown)];
}

// How a tree differs from the best one: the brackets that only one of them has.
function changes(best, own, span) {
  const key = (bracket) => `${bracket.label} ${bracket.start} ${bracket.end}`;
  const only = (those, others) => {
    const left = others.map(key);
    return those.filter((bracket) => {
      const at = left.indexOf(key(bracket));
      if (at >= 0) left.splice(at, 1);
      return at < 0;
    });
  };
  const named = (brackets) => brackets.slice(0, 3).map((bracket) => `${bracket.label} “${cut(span(bracket))}”`).join(", ") + (brackets.length > 3 ? `, and ${brackets.length - 3} more` : "");
  const [gained, lost] = [only(own, best), only(best, own)];
  const said = [gained.length ? `with ${named(gained)}` : "", lost.length ? `without ${named(lost)}` : ""].filter(Boolean).join("; ");
  return el("p", { class: "help" }, said ? `Unlike tree 1: ${said}` : "The same brackets as tree 1, joined in another way");
}

function cut(text) {
  return text.length > WORDS_HELD ? `${text.slice(0, WORDS_HELD)}…` : text;
}

// -- the parser at work ---------------------------------------------------------------------

// `word` is the place to begin with; `moved` is told where the slider is.
export function states(answer, word, moved) {
  const steps = answer.steps;
  let at = Math.min(word ?? steps.length - 1, steps.length - 1);
  let timer = null;
  const strip = el("div", { class: "strip", role: "group", "aria-label": "Words" });
  const buttons = steps.map((step, place) => el("button", {
    type: "button", class: step.collapse ? "word collapse" : "word", onclick: () => { stop(); show(place); },
  }, el("span", {}, step.word), " ", el("small", {}, bits(step.surprisal, 1)),
  el("span", { class: "unseen" }, ` bits${step.collapse ? ", the best tree changes" : ""}`)));
  strip.append(...buttons);
  const slider = el("input", {
    type: "range", id: "slider", min: "0", max: String(steps.length - 1), step: "1",
    "aria-label": "Word up to which the parser has read", oninput: () => { stop(); show(Number(slider.value)); },
  });
  const back = el("button", { type: "button", "aria-label": "One word back", onclick: () => { stop(); show(at - 1); } }, "◀");
  const on = el("button", { type: "button", "aria-label": "One word on", onclick: () => { stop(); show(at + 1); } }, "▶");
  const play = el("button", { type: "button", onclick: () => (timer === null ? start() : stop()) }, "Play");
  const here = el("div", { class: "step", "aria-live": "polite" });

  function start() {
    if (at === steps.length - 1) show(0);
    play.textContent = "Stop";
    timer = setInterval(() => {
      if (!here.isConnected || at === steps.length - 1) stop();
      else show(at + 1);
    }, 900);
  }
  function stop() {
    if (timer !== null) clearInterval(timer);
    timer = null;
    play.textContent = "Play";
  }
  function show(place) {
    at = Math.max(0, Math.min(steps.length - 1, place));
    slider.value = String(at);
    slider.setAttribute("aria-valuetext", `${at + 1} of ${steps.length}: ${steps[at].word}`);
    back.disabled = at === 0;
    on.disabled = at === steps.length - 1;
    buttons.forEach((button, each) => {
      button.classList.toggle("read", each <= at);
      if (each === at) button.setAttribute("aria-current", "step");
      else button.removeAttribute("aria-current");
    });
    here.replaceChildren(...step(steps[at]));
    moved(at);
  }

  const tsv = [["place", "word", "surprisal", "rank", "probability", "state", "tree"],
    ...steps.flatMap((each, place) => [
      ...each.states.map((state, rank) => [place + 1, each.word, each.surprisal, rank + 1, state.probability, state.name, ""]),
      ...each.trees.map((tree, rank) => [place + 1, each.word, each.surprisal, rank + 1, tree.probability, "", tree.tree]),
    ])];
  show(at);
  return [notes(answer.notes), strip,
    el("div", { class: "slider" }, back, slider, on, play),
    here,
    el("div", { class: "under" }, el("p", { class: "help" }, `${answer.legend} Comes back: what it grew from was not among those shown; lost: nothing grows from it; wins, survives: the best tree of the whole sentence grows from it, or another good one. A/B: an A that still lacks a B; “;” separates constituents, the outermost first; @…: part of a phrase that binarization made.`),
      exports({ name: "parser-states", svg: answer.svg, tsv, latex: answer.latex }))];
}

function step(found) {
  const shown = [];
  const turns = found.collapse ? "Here the parser changes its mind: its best tree does not grow from the one that was best before." : "";
  const note = found.note ? `${found.note[0].toUpperCase()}${found.note.slice(1)}.` : "";
  const says = [turns, note].filter(Boolean).join(" ");
  shown.push(el("p", { class: found.collapse ? "turn collapse" : "turn" },
    `After “${found.word}”${found.unknown ? " (unknown to the model)" : ""}: ${bits(found.surprisal)} bits.`, says ? ` ${says}` : ""));
  if (found.winner_probability !== null) {
    const rank = found.winner_rank === null ? "has not begun" : `is number ${found.winner_rank}, with ${percent(found.winner_probability)}`;
    shown.push(el("p", { class: "help" }, `The tree that wins in the end ${rank}.`));
  }
  if (found.trees.length) {
    shown.push(el("div", { class: "partial" }, ...found.trees.map((tree, rank) => el("figure", { class: tree.wins ? "wins" : "" },
      el("figcaption", {}, `${rank + 1}. ${percent(tree.probability)}`, ...tree.marks.map((mark) => ` · ${mark}`)),
      tree.svg ? picture(tree.svg) : el("code", { class: "brackets" }, tree.tree)))));
  }
  if (found.states.length) {
    const rows = found.states.map((state) => [el("code", {}, state.name), barCell(state.probability)]);
    shown.push(table("Most probable stacks", ["stack", "probability, given the words so far"], rows));
  }
  return shown;
}

function barCell(share) {
  const bar = el("span", { class: "bar", "aria-hidden": "true" });
  bar.style.width = `${Math.max(1, Math.round(100 * share))}%`;
  return el("span", { class: "barcell" }, el("span", { class: "track", "aria-hidden": "true" }, bar), ` ${percent(share)}`);
}

// -- two sentences --------------------------------------------------------------------------

export function compare(answer) {
  const shown = answer.comparisons.map((each) => {
    const rows = each.pairs.map((pair) => [
      pair.first ?? "–", pair.first === null ? "–" : bits(pair.first_surprisal),
      pair.second ?? "–", pair.second === null ? "–" : bits(pair.second_surprisal), signed(pair.difference),
    ]);
    const head = ["first", "bits", "second", "bits", "difference"];
    const tsv = [["first", "first.surprisal", "second", "second.surprisal", "difference"],
      ...each.pairs.map((p) => [p.first, p.first_surprisal, p.second, p.second_surprisal, p.difference])];
    return el("article", {},
      el("p", { class: "verdict" }, `${each.model}: ${bits(each.first_total, 1)} and ${bits(each.second_total, 1)} bits; `,
        el("strong", {}, `the second has ${signed(each.difference, 1)} bits`)),
      each.svg ? picture(each.svg) : null,
      el("div", { class: "under" }, el("span"), exports({ name: `difference-${each.model}`, svg: each.svg, tsv, latex: each.latex })),
      details("Figures as a table", table("Surprisal of both sentences in bits", head, rows)));
  });
  return [notes(answer.notes), ...shown];
}

// -- verdicts -------------------------------------------------------------------------------

const PIECES_SHOWN = 12;

export function judge(answer) {
  const shown = answer.verdicts.map((verdict, place) => {
    const margin = verdict.margin === null ? "no analysis" : `margin ${signed(verdict.margin, 3)}`;
    const tsv = [["piece", "weight"], ...verdict.pieces.map((piece) => [piece.name, piece.weight])];
    return el("article", {},
      el("p", { class: "verdict" }, el("strong", { class: verdict.label }, verdict.label), ` · ${margin} · probability of good ${percent(verdict.probability)}`),
      el("p", { class: "sentence" }, verdict.words.join(" ")),
      el("div", { class: "beside" }, verdict.svg ? picture(verdict.svg) : null, el("div", {}, ...pieces(verdict))),
      el("div", { class: "under" }, el("p", { class: "help" }, verdict.svg ? `Beside a label, what is below it adds to the margin: green speaks for the sentence, red against it.${elsewhere(verdict)}` : ""),
        exports({ name: `verdict-${place + 1}`, svg: verdict.svg, tsv: verdict.pieces.length ? tsv : null, latex: verdict.latex })));
  });
  return [notes(answer.notes), ...shown];
}

function elsewhere(verdict) {
  return verdict.elsewhere === null ? "" : ` What belongs to no part of the tree adds ${signed(verdict.elsewhere, 2)}.`;
}

// The heaviest pieces, which are what decided; the others are folded.
function pieces(verdict) {
  if (!verdict.pieces.length) return [];
  const largest = Math.abs(verdict.pieces[0].weight) || 1;
  const rows = (some) => some.map((piece) => [el("code", {}, piece.name), weighedCell(piece.weight, largest)]);
  const head = ["piece", "adds to the margin"];
  const first = table("The pieces that decided, the heaviest first", head, rows(verdict.pieces.slice(0, PIECES_SHOWN)));
  const rest = verdict.pieces.slice(PIECES_SHOWN);
  return rest.length ? [first, details(`${rest.length} more pieces`, table("Lighter pieces", head, rows(rest)))] : [first];
}

function weighedCell(weight, largest) {
  const bar = el("span", { class: weight < 0 ? "bar against" : "bar for" });
  bar.style.width = `${Math.max(1, Math.round((50 * Math.abs(weight)) / largest))}%`;
  return el("span", { class: "barcell" }, el("span", { class: "balance", "aria-hidden": "true" }, bar), ` ${signed(weight, 3)}`);
}

// -- samples --------------------------------------------------------------------------------

// `use` takes a sentence into the box.
export function sample(answer, use) {
  const tsv = [["sentence", "log_prob", "complete", "tree"],
    ...answer.sentences.map((each) => [each.words.join(" "), each.log_prob, Number(each.complete), each.tree ?? ""])];
  const classes = answer.sentences.some((each) => each.words.some((word) => word.startsWith("UNK")));
  return [
    notes(classes ? ["UNK… stands for a word that the model does not know; what follows says how such words are spelled, such as -s or -CAPS."] : []),
    el("p", { class: "help" }, `Sampled from ${answer.model} with seed ${answer.seed}, which gives the same again; an empty field gives new ones.`),
    el("ol", { class: "samples" }, ...answer.sentences.map((each, place) => el("li", {},
      el("span", {}, each.words.join(" ") || "(no words)", each.complete ? "" : " … (cut)"),
      each.words.length ? el("button", { type: "button", class: "small", onclick: () => use(each.words.join(" ")), "aria-label": `Look at it: ${each.words.join(" ")}` }, "Look at it") : null,
      each.tree ? details("Tree", each.svg ? picture(each.svg) : null,
        el("p", {}, el("code", { class: "brackets" }, each.tree)), exports({ name: `sample-${place + 1}`, svg: each.svg, latex: each.latex })) : null))),
    el("div", { class: "under" }, el("span"), exports({ name: "samples", tsv, latex: answer.latex })),
  ];
}
