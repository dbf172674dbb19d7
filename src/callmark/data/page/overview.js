// The top of the page: what was decided, and by what.

// The plain words for keys, from the one table of the package: key -> [label, sentence]. What has
// none (a plug-in's measure) is called by its key.
const WORDS = { metrics: {}, labels: {}, rules: {}, tiers: {} };
const WORDED = { fails: "metrics", warns: "metrics", gained: "metrics", label: "labels", rule: "rules" };

function wordOf(table, key) {
  return WORDS[table]?.[key]?.[0] ?? key;
}

function sentenceOf(table, key) {
  return WORDS[table]?.[key]?.[1] ?? "";
}

const SIGNS = { good: "✓", bad: "✗", warn: "!", quiet: "·", plain: "", strong: "" };

function badge(element, head) {
  element.classList.add("badge", head.style);
  element.replaceChildren(visible(`${SIGNS[head.style] ?? ""} ${head.word.toUpperCase()}`.trim()));
}

function showOverview(root, head, pick) {
  const tables = [...head.tables, ...(head.timing?.tables ?? [])].filter((table) => table.rows.length);
  const plots = [...head.plots, ...(head.timing?.plots ?? [])];
  const verdict = make("p", { class: "word" });
  badge(verdict, head);
  root.replaceChildren(
    make("div", { class: `hero ${head.style}` }, verdict,
      make("p", { class: "reason" }, head.reason),
      make("ul", { class: "facts" }, head.facts.map((text) => make("li", {}, text)))),
    ...warningsOf(head.warnings),
    // The course of a training says more than any table of it.
    ...plots.filter((plot) => plot.curve).map((plot) => plotFigure(plot, pick)),
    ...tables.filter((table) => !table.folded).map((table) => tableOf(table, pick)),
    make("div", { class: "plots" }, plots.filter((plot) => !plot.curve).map((plot) => plotFigure(plot, pick))),
    ...tables.filter((table) => table.folded).map((table) => tableOf(table, pick)),
    pinsOf(head),
    make("p", { class: "made quiet" }, `Written by ${head.made_by}. ${head.about ?? "This file asks the network for nothing."}`),
  );
}

function warningsOf(warnings) {
  if (!warnings.length) return [];
  return [make("div", { class: "card warnings" }, make("h2", {}, "Warnings"),
    make("ul", {}, warnings.map((text) => make("li", {}, text))))];
}

function tableOf(table, pick) {
  const right = new Set(table.right);
  const heads = table.columns.map((name, at) =>
    make("th", { scope: "col", class: right.has(at) ? "right" : null }, name));
  const rows = table.rows.map((row) => make("tr", {}, row.map((cell, at) =>
    make("td", { class: right.has(at) ? "right" : null }, cellOf(cell, at === 0, pick)))));
  const body = make("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": table.title },
    make("table", {}, make("thead", {}, make("tr", {}, heads)), make("tbody", {}, rows)));
  const note = table.note ? make("p", { class: "quiet" }, table.note) : null;
  if (table.folded) {
    return make("details", { class: "card", id: `table-${table.id}` },
      make("summary", {}, make("h2", {}, table.title)), body, note);
  }
  return make("div", { class: "card", id: `table-${table.id}` }, make("h2", {}, table.title), body, note);
}

function cellOf(cell, first, pick) {
  if (cell.pick) {
    return button(cell.text, () => pick(cell.pick),
      { class: "link", "aria-label": `${cell.text} samples: show them` });
  }
  const style = cell.style ?? "plain";
  if (cell.note) {
    return [make("span", { class: style, title: cell.title ?? null }, cell.text), make("span", { class: "cell-note quiet" }, cell.note)];
  }
  if (first && cell.text && ["good", "bad", "warn", "quiet"].includes(style)) {
    return make("span", { class: `badge ${style}` }, `${SIGNS[style] ?? ""} ${cell.text}`.trim());
  }
  return make("span", { class: style, title: cell.title ?? null }, cell.text);
}

function pinsOf(head) {
  if (!head.pins.length) return "";
  return make("details", { class: "card", id: "pins" },
    make("summary", {}, make("h2", {}, "Fingerprints and settings")),
    make("dl", { class: "pins" }, head.pins.map(([name, value]) =>
      [make("dt", {}, name), make("dd", {}, value)])));
}
