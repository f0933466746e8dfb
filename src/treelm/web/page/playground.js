// The playground: what is asked, how, and where the answer goes.

import { defaults, fromHash, number, toHash, VIEWS } from "/address.js";
import { ask, askLines } from "/ask.js";
import { el, notes } from "/draw.js";
import { badge, modelList, shelf } from "/models.js";
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
const ABOUT = {
  surprisal: "How unexpected each word is to models that read from left to right: the more bits, the higher the bar.",
  trees: "The most probable trees of a sentence. A number beside a label is the probability of its bracket, given the words.",
  states: "An incremental parser word by word: what it holds possible so far, and where it has to change its mind.",
  compare: "Two sentences word by word, and how far their surprisal differs.",
  judge: "Whether a classifier takes sentences for good English, and what in their trees spoke for and against them.",
  sample: "Sentences that a model writes by itself. The same seed gives the same sentences.",
};
const $ = (id) => document.getElementById(id);

let state = defaults();
let limits = {};
let asked = 0;
const models = shelf(writeModels);

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
  return models.all().filter((model) => model.tasks.includes(TASK[view]));
}

// Those that answer where nobody chooses: what the server was started with.
function usual(view) {
  const found = able(view).filter((model) => model.at_start);
  return (found.length ? found : able(view).slice(0, 1)).map((model) => model.name);
}

function chosenModels() {
  const names = able("surprisal").map((model) => model.name);
  const wanted = state.models.filter((name) => names.includes(name));
  return wanted.length ? wanted : usual("surprisal");
}

function chosenModel(view) {
  const names = able(view).map((model) => model.name);
  if (names.includes(state.model[view])) return state.model[view];
  // Trees are best looked at where their brackets have probabilities, and n-grams write the fastest.
  const suits = { trees: (model) => model.brackets, sample: (model) => model.system === "ngram" }[view];
  const best = suits && able(view).find((model) => model.at_start && suits(model));
  return best?.name ?? usual(view)[0] ?? null;
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
  $("about").textContent = ABOUT[view];
  writeModels();
}

// Whatever depends on how far models are. The focus stays where it was.
function writeModels() {
  const focused = document.activeElement?.closest("#models, #all-models");
  const at = document.activeElement?.value || document.activeElement?.dataset.load;
  const chosen = chosenModels();
  $("models").replaceChildren(...able("surprisal").map((model) => el("label", { class: "check" },
    el("input", { type: "checkbox", name: "models", value: model.name, checked: chosen.includes(model.name) }),
    ` ${model.name}`, badge(model) ? el("small", { class: "badge" }, ` ${badge(model)}`) : null)));
  const one = chosenModel(state.view);
  $("model").replaceChildren(...able(state.view).map((model) => el("option", { value: model.name, selected: model.name === one },
    `${model.name} (${[model.system.replaceAll("_", "-"), badge(model)].filter(Boolean).join(", ")})`)));
  $("models-help").textContent = models.all().some((model) => model.state === "offered")
    ? "A model that is not loaded yet is loaded as soon as a question needs it. You can do that here, too." : "Each can be chosen in the views that it is for.";
  $("all-models").replaceChildren(...modelList(models.all(), models.load));
  if (focused) {
    const same = [...focused.querySelectorAll("input, button")].find((each) => (each.dataset.load ?? each.value) === at);
    (same ?? (focused.id === "all-models" ? $("close-models") : null))?.focus();
  }
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
    state.models = [...document.querySelectorAll("#models input:checked")].map((box) => box.value);
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
  switch (state.view) {
    case "surprisal": return { ...shared, text: state.text, models: chosenModels(), eos: state.eos };
    case "trees": return { ...shared, text: state.text, model, k: state.k.trees };
    case "states": return { ...shared, text: state.text, model, k: state.k.states };
    case "compare": return { ...shared, first: state.text, second: state.second, models: chosenModels() };
    case "judge": return { ...shared, text: state.text, model };
    default: return { model, formats: ["svg", "latex"], count: state.count, max_words: state.maxWords, ...(state.seed === null ? {} : { seed: state.seed }) };
  }
}

// What is still to be loaded before there can be an answer.
function missing(view) {
  const names = ["surprisal", "compare"].includes(view) ? chosenModels() : [chosenModel(view)];
  return models.all().filter((model) => names.includes(model.name) && ["offered", "loading"].includes(model.state)).map((model) => model.name);
}

// Asks again while the server says that it is still loading a model.
async function askLoaded(own, work) {
  for (;;) {
    try {
      return await work();
    } catch (error) {
      if (error.code !== "E_LOADING" || own !== asked) throw error;
      await new Promise((done) => setTimeout(done, 1000 * (error.retryAfter ?? 1)));
      if (own !== asked) throw error;
    }
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
  const absent = missing(view);
  if (absent.length) {
    say(`Loading ${absent.join(", ")}…`);
    setTimeout(models.look, 100);
  }
  const slow = setTimeout(() => own === asked && !absent.length && say("Working…"), 300);
  try {
    if (view === "surprisal" && words(state.text) > 0.5 * (limits.words ?? 1000)) await askLoaded(own, () => stream(own, results));
    else {
      const answer = await askLoaded(own, () => ask(view, question()));
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
    if (absent.length) models.look();
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
  else welcome();
}

// What is shown before anything was asked.
function welcome() {
  if (state.view === "sample") return;
  const both = state.view === "compare";
  $("results").replaceChildren(
    el("p", { class: "help" }, both ? "Type two sentences, or begin with a pair of these." : "Type a sentence, or begin with one of these."),
    el("ul", { class: "begin" }, ...EXAMPLES.map(([name, first, second], place) => el("li", {},
      el("button", { type: "button", onclick: () => useExample(place) },
        el("strong", {}, name), el("span", {}, first), both ? el("span", {}, second) : null)))));
}

function useExample(place) {
  [, $("text").value, $("second").value] = EXAMPLES[place];
  $("tokenized").checked = false;
  state.word = null;
  show();
  $("results").focus({ preventScroll: true });
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
  const place = $("example").value;
  if (!place) return;
  $("example").value = "";
  useExample(Number(place));
});
$("open-models").addEventListener("click", () => { models.look(); $("models-dialog").showModal(); });
$("close-models").addEventListener("click", () => $("models-dialog").close());
$("models-dialog").addEventListener("click", (event) => { if (event.target === $("models-dialog")) $("models-dialog").close(); });
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
  const names = models.all().map((model) => model.name);
  const strange = [...state.models, ...Object.values(state.model)].filter((name) => !names.includes(name));
  writeControls();
  $("results").replaceChildren();
  if (answered) show();
  else welcome();
  if (strange.length) fail(`This link asks for ${[...new Set(strange)].join(", ")}, which this server does not have. Others answer instead.`);
}

try {
  const offered = await ask("models");
  limits = offered.limits;
  models.take(offered.models);
  for (const [id, limit] of [["k", "trees"], ["count", "samples"]]) if (limits[limit]) $(id).max = limits[limit];
  restore();
} catch (error) {
  fail(error.message);
}
document.documentElement.dataset.ready = "yes";
