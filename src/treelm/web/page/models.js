// The models of the server: what each does, how far it is, and loading those that are not there yet.

import { askAside } from "/ask.js";
import { el } from "/draw.js";

const SHOWN = { surprisal: "surprisal", trees: "trees", states: "parser at work", judge: "verdicts", sample: "samples" };
const LOOK_AGAIN = 500;

// `changed` is called whenever something is to be shown anew.
export function shelf(changed) {
  let known = [];
  let timer = null;

  async function look() {
    clearTimeout(timer);
    timer = null;
    try {
      take((await askAside("models")).models);
    } catch {
      if (isLoading()) timer = setTimeout(look, 4 * LOOK_AGAIN);
    }
  }

  function take(models) {
    const before = JSON.stringify(known);
    known = models;
    if (JSON.stringify(known) !== before) changed();
    if (isLoading() && timer === null) timer = setTimeout(look, LOOK_AGAIN);
  }

  function isLoading() {
    return known.some((model) => model.state === "loading");
  }

  async function load(name) {
    try {
      const found = await askAside("load", { model: name });
      take(known.map((model) => (model.name === name ? found : model)));
    } catch (error) {
      take(known.map((model) => (model.name === name ? { ...model, state: "failed", problem: error.message } : model)));
    }
  }

  return { all: () => known, take, look, load };
}

// What is said behind the name of a model that is not ready.
export function badge(model) {
  return { offered: "not loaded", loading: "loading…", failed: "failed" }[model.state] ?? "";
}

export function modelList(models, load) {
  return models.map((model) => {
    const size = [
      model.words === null ? null : `${model.words.toLocaleString("en")} words`,
      model.megabytes ? `${model.megabytes} MB` : null,
      model.package,
    ].filter(Boolean).join(", ");
    const does = model.tasks.map((task) => SHOWN[task] ?? task).join(", ");
    const state = { ready: "Loaded", offered: "Not loaded", loading: "Loading…", failed: model.problem ?? "Failed" }[model.state];
    const label = { offered: "Load", failed: "Try again" }[model.state];
    return el("li", { class: model.state },
      el("div", {},
        el("strong", {}, model.name), ` ${model.system.replaceAll("_", "-")}${size ? ` · ${size}` : ""}`,
        el("p", { class: "help" }, does ? `For ${does}` : "For nothing on this page")),
      el("div", { class: "state" }, el("span", { role: "status" }, state),
        label ? el("button", { type: "button", class: "small", "data-load": model.name, "aria-label": `${label}: ${model.name}`, onclick: () => load(model.name) }, label) : null));
  });
}
