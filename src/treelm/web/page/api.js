// The API, from its own description.

import { el } from "/draw.js";

const prefersDark = matchMedia("(prefers-color-scheme: dark)");
let theme = null;
try { theme = localStorage.getItem("theme"); } catch { /* none was remembered */ }
document.documentElement.dataset.theme = theme ?? (prefersDark.matches ? "dark" : "light");

const description = await (await fetch("/api/openapi.json")).json();
const schemas = description.components?.schemas ?? {};

function kind(schema) {
  if (!schema) return "anything";
  if (schema.$ref) return schema.$ref.split("/").pop();
  if (schema.anyOf) return schema.anyOf.map(kind).join(" or ");
  if (schema.enum) return schema.enum.map((each) => JSON.stringify(each)).join(" or ");
  if (schema.type === "array") return `list of ${kind(schema.items)}`;
  return schema.type ?? "anything";
}

function fields(name) {
  const schema = schemas[name];
  const needed = schema?.required ?? [];
  // What must be given stands first.
  const order = Object.entries(schema?.properties ?? {}).sort(([one], [two]) => needed.includes(two) - needed.includes(one));
  const rows = order.map(([field, each]) => el("tr", {},
    el("th", { scope: "row" }, el("code", {}, field)),
    el("td", {}, kind(each)),
    el("td", {}, needed.includes(field) ? "required" : "default" in each ? JSON.stringify(each.default) : ""),
    el("td", {}, each.description ?? "")));
  return el("div", { class: "scroll", tabindex: "0", role: "group", "aria-label": `Fields of ${name}` }, el("table", {},
    el("caption", {}, name),
    el("thead", {}, el("tr", {}, ...["field", "type", "default", "meaning"].map((each) => el("th", { scope: "col" }, each)))),
    el("tbody", {}, ...rows)));
}

const sections = Object.entries(description.paths).flatMap(([path, methods]) => Object.entries(methods).map(([method, each]) => {
  const body = each.requestBody?.content?.["application/json"]?.schema;
  const answer = each.responses?.["200"]?.content?.["application/json"]?.schema;
  return el("section", {},
    el("h2", {}, el("code", {}, `${method.toUpperCase()} ${path}`)),
    el("p", {}, each.description ?? each.summary ?? ""),
    ...(body ? [fields(kind(body))] : []),
    answer && schemas[kind(answer)] ? el("p", {}, "Answer: ", el("a", { href: `#${kind(answer)}` }, kind(answer))) : null);
}));
const questions = new Set(Object.values(description.paths).flatMap((methods) => Object.values(methods).map((each) => kind(each.requestBody?.content?.["application/json"]?.schema))));
const answers = Object.keys(schemas).filter((name) => !questions.has(name) && schemas[name].properties && !/ValidationError/.test(name));
document.getElementById("api").replaceChildren(
  el("p", {}, `treelm ${description.info.version}. Requests and answers are JSON; an error has a code and a message. After 503, ask again in as many seconds as Retry-After says.`),
  el("pre", { tabindex: "0" }, `curl -H 'Content-Type: application/json' ${location.origin}/api/surprisal \\\n  -d '{"text": "The horse raced past the barn fell."}'`),
  ...sections,
  el("h2", {}, "Answers"),
  ...answers.map((name) => el("section", { id: name }, fields(name))));
