// Files for papers and tables: SVG, PNG, TSV and LaTeX.

import { el } from "/draw.js";

// Buttons for whatever there is: { name, svg, tsv, latex }.
export function exports({ name, svg = null, tsv = null, latex = null }) {
  const buttons = [];
  const add = (label, work) => buttons.push(el("button", {
    type: "button", class: "small", "aria-label": `Export ${name} as ${label}`, onclick: work,
  }, label));
  if (svg) add("SVG", () => save(`${name}.svg`, "image/svg+xml", svg));
  if (svg) add("PNG", () => savePng(`${name}.png`, svg));
  if (tsv) add("TSV", () => save(`${name}.tsv`, "text/tab-separated-values", lines(tsv)));
  if (latex) add("LaTeX", () => save(`${name}.tex`, "application/x-tex", `${latex}\n`));
  return el("div", { class: "exports", role: "group", "aria-label": `Export ${name}` }, ...buttons);
}

function lines(rows) {
  const cell = (value) => String(value ?? "").replace(/[\t\r\n]+/g, " ");
  return rows.map((row) => `${row.map(cell).join("\t")}\n`).join("");
}

function save(name, kind, content) {
  const address = URL.createObjectURL(content instanceof Blob ? content : new Blob([content], { type: `${kind};charset=utf-8` }));
  el("a", { href: address, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}

// The picture as the page shows it, light or dark, twice as large.
function savePng(name, svg) {
  const dark = document.documentElement.dataset.theme === "dark";
  const themed = svg.replaceAll("@media (prefers-color-scheme: dark)", dark ? "@media all" : "@media not all");
  const address = URL.createObjectURL(new Blob([themed], { type: "image/svg+xml" }));
  const image = new Image();
  image.onload = () => {
    const canvas = document.createElement("canvas");
    canvas.width = 2 * image.naturalWidth;
    canvas.height = 2 * image.naturalHeight;
    canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
    URL.revokeObjectURL(address);
    canvas.toBlob((blob) => blob && save(name, "image/png", blob), "image/png");
  };
  image.src = address;
}
