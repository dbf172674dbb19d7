// A JSON value as text in which every leaf knows its path, so that evidence can be shown.

const NODES = 800;
const LEAF = 1500;

function pointer(path, name) {
  return `${path}/${String(name).replaceAll("~", "~0").replaceAll("/", "~1")}`;
}

// The object or array that a text spells out as JSON: scores look into it as well.
function jsonInside(text) {
  if (!/^\s*[[{]/.test(text)) return null;
  try {
    return parseExactly(text);
  } catch {
    return null;
  }
}

class JsonTree {
  constructor(value, name, root = "", room = NODES) {
    this.value = value;
    this.root = root;
    this.room = 0; // how many more nodes may be drawn
    this.places = new Map();
    this.element = make("div", { class: "json", tabindex: "0", role: "group", "aria-label": name });
    this.draw(room);
  }

  draw(room) {
    this.room = room;
    this.places.clear();
    this.element.replaceChildren(this.node(this.value, this.root, ""));
    if (this.room < 0) {
      this.element.append(button("show all of it", () => this.draw(Infinity), { class: "more" }));
    }
  }

  // The element of a path, drawn if it was left out; then that of what holds it.
  find(path) {
    if (!this.places.has(path) && this.room < 0) this.draw(Infinity);
    for (let at = path; at.length >= this.root.length; at = at.slice(0, at.lastIndexOf("/"))) {
      if (this.places.has(at)) return this.places.get(at);
      if (!at.includes("/")) break;
    }
    return null;
  }

  node(value, path, indent) {
    this.room -= 1;
    if (typeof value === "string") {
      const inside = jsonInside(value);
      if (inside === null) return this.leaf(value, path, "string");
      return make("span", {}, make("span", { class: "quiet" }, "(text) "), this.node(inside, path, indent));
    }
    if (value === null || typeof value !== "object") return this.leaf(String(value), path, typeof value);
    if (value instanceof BigNumber) return this.leaf(value.source, path, "number");
    const many = Array.isArray(value);
    const names = many ? [...value.keys()] : Object.keys(value);
    const [open, close] = many ? "[]" : "{}";
    const element = make("span", { class: "node" }, open);
    for (const [at, name] of names.entries()) {
      if (this.room < 0) {
        element.append(`\n${indent}  … ${plural(names.length - at, "more entr").replace(/entrs?$/, names.length - at === 1 ? "entry" : "entries")}`);
        break;
      }
      const key = many ? null : [make("span", { class: "key" }, name), ": "];
      add(element, [`\n${indent}  `, key, this.node(value[name], pointer(path, name), indent + "  ")]);
      if (at < names.length - 1) element.append(",");
    }
    element.append(names.length ? `\n${indent}${close}` : close);
    this.places.set(path, element);
    return element;
  }

  leaf(text, path, kind) {
    const element = make("span", { class: `leaf ${kind}`, "data-path": path });
    element.whole = text;
    this.places.set(path, element);
    plainLeaf(element);
    return element;
  }
}

function plainLeaf(element) {
  const quote = element.classList.contains("string") ? '"' : "";
  element.replaceChildren();
  add(element, [quote, ...clipped(element.whole, LEAF), quote]);
}

// Lights up a leaf, and in a longer text the very words that the answer took from it.
function lightLeaf(element, words) {
  element.classList.add("lit");
  if (element.whole === undefined) return;
  const lower = element.whole.toLowerCase();
  const found = words.find((word) => word && word.length < lower.length && lower.includes(word.toLowerCase()));
  if (found === undefined) return;
  const start = lower.indexOf(found.toLowerCase());
  const end = start + found.length;
  const from = Math.max(0, start - LEAF);
  element.replaceChildren();
  add(element, ['"', from ? "…" : "", element.whole.slice(from, start),
    make("b", { class: "exact" }, element.whole.slice(start, end)),
    ...clipped(element.whole.slice(end), LEAF), '"']);
}

function unlightLeaf(element) {
  element.classList.remove("lit");
  if (element.querySelector(".exact")) plainLeaf(element);
}
