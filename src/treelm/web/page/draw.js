// Elements of the page. Pictures are made by the server; here they are put in.

const SVG = "http://www.w3.org/2000/svg";

// el("p", { class: "note" }, "text", child): text is never read as markup.
export function el(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
    else if (value === true) made.setAttribute(key, "");
    else if (value !== false && value !== null && value !== undefined) made.setAttribute(key, value);
  }
  made.append(...children.filter((child) => child !== null && child !== undefined));
  return made;
}

// A picture of the server inside the page. The policy of the page forbids styles inside of it: they
// are taken out before it is parsed. The page has them already, and colours are set one by one.
export function picture(source) {
  const plain = source.replace(/<style>[^<]*<\/style>/g, "")
    .replace(/(<text [^>]*?)style="fill:(#[0-9a-f]{6})"/gi, '$1data-fill="$2"');
  const parsed = new DOMParser().parseFromString(plain, "image/svg+xml").documentElement;
  if (parsed.namespaceURI !== SVG || parsed.localName !== "svg") return el("p", {}, "No picture.");
  const svg = document.importNode(parsed, true);
  for (const node of svg.querySelectorAll("[data-fill]")) node.style.fill = node.dataset.fill;
  const title = svg.querySelector(":scope > title")?.textContent ?? "";
  if (!svg.hasAttribute("aria-label")) svg.setAttribute("aria-label", title);
  const scroller = el("div", { class: "picture", tabindex: "0", role: "group", "aria-label": `Picture: ${title}` });
  // Shrunk where the page is narrow, but not so far that nobody can read it; then it is scrolled.
  svg.style.setProperty("--width", `${parseFloat(svg.getAttribute("width")) || 300}px`);
  scroller.append(svg);
  if (svg.classList.contains("treelm")) {
    requestAnimationFrame(() => { scroller.scrollLeft = (scroller.scrollWidth - scroller.clientWidth) / 2; });
  }
  return scroller;
}

export function table(caption, head, rows) {
  return el("div", { class: "scroll", tabindex: "0", role: "group", "aria-label": `Table: ${caption}` },
    el("table", {},
      el("caption", {}, caption),
      el("thead", {}, el("tr", {}, ...head.map((cell) => el("th", { scope: "col" }, cell)))),
      el("tbody", {}, ...rows.map((row) => el("tr", {}, ...row.map((cell, place) => place === 0
        ? el("th", { scope: "row" }, cell) : el("td", {}, cell instanceof Node ? cell : String(cell))))))));
}

export function details(summary, ...children) {
  return el("details", {}, el("summary", {}, summary), ...children);
}

export function bits(value, digits = 2) {
  return value === null ? "∞" : value.toFixed(digits);
}

export function signed(value, digits = 2) {
  return value === null ? "–" : `${value > 0 ? "+" : value < 0 ? "−" : ""}${Math.abs(value).toFixed(digits)}`;
}

export function percent(value) {
  if (value === null) return "–";
  return value > 0 && value < 0.001 ? "< 0.1 %" : `${(100 * value).toFixed(1)} %`;
}

export function notes(list) {
  if (!list.length) return null;
  return el("ul", { class: "notes", "aria-label": "Notes" }, ...list.map((note) => el("li", {}, note.replace(/^warning: /, ""))));
}
