// The playground: what is asked, how, and where the answer goes.

import { defaults, fromHash, number, toHash, VIEWS } from "/address.js";
import { ask, askLines } from "/ask.js";
import { el, notes } from "/draw.js";
import * as views from "/views.js";

const EXAMPLES = [
  ["Garden path", "The horse raced past the barn fell.", "The horse that was raced past the barn fell."],
  ["Garden path: while", "While the man hunted the deer ran into the woods.", "While the man hunted, the deer ran into the woods."],
  ["Attachment", "She saw the man with the telescope.", "She saw the man with the hat."],
  ["Agreement", "The keys to the cabinet are on the table.", "The keys to the cabinet is on the table."],
  ["Object relative", "The reporter who the senator attacked admitted the error.", "The reporter who attacked the senator admitted the error."],
  ["Word order", "The children were playing in the garden.", "The children were in playing the garden."],
];
const TASK = { surprisal: "surprisal", compare: "surprisal", trees: "trees", states: "states", judge: "judge", sample: "sample" };
const $ = (id) => document.getElementById(id);

let state = defaults();
let offered = { models: [], limits: {} };
let asked = 0;

// -- light and dark -------------------------------------------------------------------------

function remembered() {
  try { return localStorage.getItem("theme"); } catch { return null; }
}

function setTheme(theme) {
  document.documentElement.dataset.theme = theme;
  $("theme").setAttribute("aria-pressed", String(theme === "dark"));
}

const prefersDark = matchMedia("(prefers-color-scheme: dark)");
setTheme(remembered() ?? (prefersDark.matches ? "dark" : "light"));
prefersDark.addEventListener("change", () => remembered() ?? setTheme(prefersDark.matches ? "dark" : "light"));
$("theme").addEventListener("click", () => {
  const theme = document.documentElement.dataset.theme === "dark" ? "light" : "dark";
  setTheme(theme);
  try { localStorage.setItem("theme", theme); } catch { /* it is not remembered then */ }
});

// -- state and controls ---------------------------------------------------------------------

function able(view) {
  return offered.models.filter((model) => model.tasks.includes(TASK[view]));
}

function chosenModel(view) {
  const names = able(view).map((model) => model.name);
  if (names.includes(state.model[view])) return state.model[view];
  // Trees are best looked at where their brackets have probabilities.
  const best = able(view).find((model) => view === "trees" && model.brackets);
  return best?.name ?? names[0] ?? null;
}

function writeControls() {
  const { view } = state;
  for (const name of VIEWS) {
    const tab = $(`tab-${name}`);
    tab.setAttribute("aria-selected", String(name === view));
    tab.tabIndex = name === view ? 0 : -1;
    if (name === view) tab.scrollIntoView({ block: "nearest", inline: "nearest" });
  }
  $("results").setAttribute("aria-labelledby", `tab-${view}`);
  for (const field of document.querySelectorAll("[data-view]")) field.hidden = !field.dataset.view.split(" ").includes(view);
  $("text").closest(".field").hidden = view === "sample";
  $("text-help").hidden = view === "sample";
  $("example").closest(".field").hidden = view === "sample";
  $("text-label").textContent = view === "compare" ? "First sentence" : ["trees", "states"].includes(view) ? "Sentence" : "Text";
  $("k-label").textContent = view === "states" ? "Shown per word" : "Trees";
  $("text").value = state.text;
  $("second").value = state.second;
  $("eos").checked = state.eos;
  $("tokenized").checked = state.tokenized;
  $("k").value = state.k[view] ?? 1;
  $("count").value = state.count;
  $("max-words").value = state.maxWords;
  $("seed").value = state.seed ?? "";
  $("show").textContent = view === "sample" ? "Sample" : "Show";
  const names = able("surprisal").map((model) => model.name);
  const wanted = state.models.filter((name) => names.includes(name));
  $("models").replaceChildren(...names.map((name) => el("label", { class: "check" },
    el("input", { type: "checkbox", name: "models", value: name, ...((wanted.length ? wanted : names).includes(name) ? { checked: true } : {}) }), ` ${name}`)));
  const one = chosenModel(view);
  $("model").replaceChildren(...able(view).map((model) => el("option", { value: model.name, ...(model.name === one ? { selected: true } : {}) }, `${model.name} (${model.system})`)));
}

function readControls() {
  state.text = $("text").value;
  state.second = $("second").value;
  state.eos = $("eos").checked;
  state.tokenized = $("tokenized").checked;
  if (state.view in state.k) state.k[state.view] = number($("k").value, state.k[state.view]);
  state.count = number($("count").value, state.count);
  state.maxWords = number($("max-words").value, state.maxWords);
  state.seed = number($("seed").value, null);
  if (["surprisal", "compare"].includes(state.view)) {
    const boxes = [...document.querySelectorAll("#models input")];
    const checked = boxes.filter((box) => box.checked).map((box) => box.value);
    state.models = checked.length === boxes.length ? [] : checked;
  } else if ($("model").value) state.model[state.view] = $("model").value;
}

let written = "";
function remember() {
  written = `#${toHash(state)}`;
  history.replaceState(null, "", written);
}

// -- questions ------------------------------------------------------------------------------

function question() {
  const width = Math.max(320, Math.min(1100, $("results").clientWidth - 8));
  const shared = { tokenized: state.tokenized, width, formats: ["svg", "latex"] };
  const model = chosenModel(state.view);
  const models = state.models.filter((name) => able("surprisal").some((each) => each.name === name));
  switch (state.view) {
    case "surprisal": return { ...shared, text: state.text, models, eos: state.eos };
    case "trees": return { ...shared, text: state.text, model, k: state.k.trees };
    case "states": return { ...shared, text: state.text, model, k: state.k.states };
    case "compare": return { ...shared, first: state.text, second: state.second, models };
    case "judge": return { ...shared, text: state.text, model };
    default: return { model, count: state.count, max_words: state.maxWords, ...(state.seed === null ? {} : { seed: state.seed }) };
  }
}

function words(text) {
  return text.split(/\s+/).filter(Boolean).length;
}

async function show() {
  readControls();
  const { view } = state;
  say("");
  $("problem").replaceChildren();
  if (!able(view).length) return fail("None of the models of this server does this.");
  if (view !== "sample" && !state.text.trim()) return fail("Type a sentence first.", "text");
  if (view === "compare" && !state.second.trim()) return fail("Type the second sentence too.", "second");
  if (["surprisal", "compare"].includes(view) && !document.querySelector("#models input:checked")) return fail("Choose a model.", "models");
  state.answered = true;
  remember();
  const own = ++asked;
  const results = $("results");
  results.setAttribute("aria-busy", "true");
  const started = performance.now();
  const slow = setTimeout(() => own === asked && say("Working…"), 300);
  try {
    if (view === "surprisal" && words(state.text) > 0.5 * (offered.limits.words ?? 1000)) await stream(own, results);
    else {
      const answer = await ask(view, question());
      if (own !== asked) return;
      results.replaceChildren(...shown(view, answer).filter(Boolean));
    }
    if (own === asked) say(`Answered in ${Math.round(performance.now() - started)} ms.`);
  } catch (error) {
    if (error.name === "AbortError" || own !== asked) return;
    results.replaceChildren();
    const later = error.retryAfter ? ` Try again in ${error.retryAfter} seconds.` : "";
    fail(`${error.message}${later}`);
  } finally {
    clearTimeout(slow);
    if (own === asked) results.setAttribute("aria-busy", "false");
  }
}

function shown(view, answer) {
  switch (view) {
    case "surprisal": return [notes(answer.notes), ...answer.sentences.map((each, place) => views.surprisalSentence(each, place + 1))];
    case "trees": return views.trees(answer);
    case "states": return views.states(answer, state.word, (word) => { state.word = word; remember(); });
    case "compare": return views.compare(answer);
    case "judge": return views.judge(answer);
    default:
      state.seed = answer.seed;
      remember();
      return views.sample(answer, (text) => { state.text = text; state.tokenized = true; choose("surprisal"); });
  }
}

async function stream(own, results) {
  let count = 0;
  results.replaceChildren();
  await askLines("stream", question(), (sentence) => {
    if (own !== asked) return;
    count += 1;
    results.append(views.surprisalSentence(sentence, count));
    say(`${count} sentences…`);
  });
}

function say(text) {
  $("status").textContent = text;
}

function fail(message, field = null) {
  say("");
  $("problem").replaceChildren(el("p", {}, message));
  if (field === "models") document.querySelector("#models input")?.focus();
  else if (field) $(field).focus();
}

function choose(view, { focus = false } = {}) {
  asked += 1;
  state.view = view;
  $("results").replaceChildren();
  $("results").setAttribute("aria-busy", "false");
  $("problem").replaceChildren();
  say("");
  writeControls();
  remember();
  if (focus) $(`tab-${view}`).focus();
  const ready = view === "sample" ? state.seed !== null : state.text.trim() && (view !== "compare" || state.second.trim());
  if (ready && able(view).length) show();
  else if (!able(view).length) fail("None of the models of this server does this.");
}

// -- wiring ---------------------------------------------------------------------------------

$("question").addEventListener("submit", (event) => {
  event.preventDefault();
  state.word = null;
  show();
});
document.addEventListener("keydown", (event) => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
    event.preventDefault();
    state.word = null;
    show();
  }
});
$("question").addEventListener("input", () => { readControls(); remember(); });
$("views").addEventListener("click", (event) => {
  const tab = event.target.closest("[role=tab]");
  if (tab) { readControls(); choose(tab.id.slice(4)); }
});
$("views").addEventListener("keydown", (event) => {
  const place = VIEWS.indexOf(state.view);
  const next = { ArrowRight: place + 1, ArrowLeft: place - 1, Home: 0, End: VIEWS.length - 1 }[event.key];
  if (next === undefined) return;
  event.preventDefault();
  readControls();
  choose(VIEWS[(next + VIEWS.length) % VIEWS.length], { focus: true });
});
$("example").append(...EXAMPLES.map(([name], place) => el("option", { value: String(place) }, name)));
$("example").addEventListener("change", () => {
  const found = EXAMPLES[Number($("example").value)];
  if (!$("example").value || !found) return;
  [, $("text").value, $("second").value] = found;
  $("tokenized").checked = false;
  $("example").value = "";
  state.word = null;
  show();
});
$("copy-link").addEventListener("click", async () => {
  try {
    await navigator.clipboard.writeText(location.href);
    say("The link is copied: it restores everything on this page.");
  } catch {
    say("The address of this page restores everything; copy it from the address bar.");
  }
});
addEventListener("hashchange", () => {
  if (location.hash === written) return;
  restore();
});

function restore() {
  state = fromHash(location.hash);
  const answered = state.answered;
  writeControls();
  $("results").replaceChildren();
  if (answered) show();
}

try {
  offered = await ask("models");
  for (const [id, limit] of [["k", "trees"], ["count", "samples"]]) if (offered.limits[limit]) $(id).max = offered.limits[limit];
  restore();
} catch (error) {
  fail(error.message);
}
document.documentElement.dataset.ready = "yes";
