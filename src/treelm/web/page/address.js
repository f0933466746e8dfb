// What the page shows, as part of its address: a link restores everything.

export const VIEWS = ["surprisal", "trees", "states", "compare", "judge", "sample"];

const DEFAULTS = {
  view: "surprisal", text: "", second: "", models: [], model: {}, k: { trees: 3, states: 3 },
  eos: false, tokenized: false, count: 5, maxWords: 25, seed: null, word: null, answered: false,
};

export function defaults() {
  return structuredClone(DEFAULTS);
}

export function toHash(state) {
  const parts = new URLSearchParams();
  parts.set("v", state.view);
  if (state.text) parts.set("t", state.text);
  if (state.second) parts.set("u", state.second);
  if (state.models.length) parts.set("m", state.models.join("|"));
  for (const [view, name] of Object.entries(state.model)) parts.set(`m.${view}`, name);
  for (const [view, k] of Object.entries(state.k)) {
    if (k !== DEFAULTS.k[view]) parts.set(`k.${view}`, k);
  }
  if (state.eos) parts.set("e", "1");
  if (state.tokenized) parts.set("z", "1");
  if (state.count !== DEFAULTS.count) parts.set("n", state.count);
  if (state.maxWords !== DEFAULTS.maxWords) parts.set("w", state.maxWords);
  if (state.seed !== null) parts.set("s", state.seed);
  if (state.word !== null) parts.set("i", state.word);
  if (state.answered) parts.set("a", "1");
  return parts.toString();
}

export function fromHash(hash) {
  const parts = new URLSearchParams(hash.replace(/^#/, ""));
  const state = defaults();
  if (VIEWS.includes(parts.get("v"))) state.view = parts.get("v");
  state.text = parts.get("t") ?? "";
  state.second = parts.get("u") ?? "";
  state.models = (parts.get("m") ?? "").split("|").filter(Boolean);
  for (const view of VIEWS) {
    if (parts.has(`m.${view}`)) state.model[view] = parts.get(`m.${view}`);
    if (view in state.k) state.k[view] = number(parts.get(`k.${view}`), state.k[view]);
  }
  state.eos = parts.get("e") === "1";
  state.tokenized = parts.get("z") === "1";
  state.count = number(parts.get("n"), state.count);
  state.maxWords = number(parts.get("w"), state.maxWords);
  state.seed = number(parts.get("s"), null);
  state.word = number(parts.get("i"), null);
  state.answered = parts.get("a") === "1";
  return state;
}

export function number(text, otherwise) {
  return /^\d{1,10}$/.test(text ?? "") ? Number(text) : otherwise;
}
