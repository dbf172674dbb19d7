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
  const grid = make("div", { class: head.kind === "runs" ? "plots pairs" : "plots" }, plots.filter((plot) => !plot.curve).map((plot) => plotFigure(plot, pick)));
  const isDrawnFirst = ["probe", "runs"].includes(head.kind);
  // Of a comparison, what changed comes before what is wrong.
  const clusters = make("div", { id: "clusters", hidden: true });
  // What failed comes before what is only remarked.
  const isWarnedLater = head.kind === "run" && head.style === "bad";
  const warnings = warningsOf(head.warnings);
  const [first = "", ...others] = tables.filter((table) => !table.folded).map((table) => tableOf(table, pick));
  const verdict = make("p", { class: "word" });
  badge(verdict, head);
  root.replaceChildren(
    make("div", { class: `hero ${head.style}` }, verdict,
      make("p", { class: "reason" }, head.reason),
      make("ul", { class: "facts" }, head.facts.map((text) => make("li", {}, text)))),
    ...(isWarnedLater ? [] : warnings),
    head.kind === "compare" ? "" : clusters,
    // The course of a training says more than any table of it, and so do the plots of a probe and
    // of several runs.
    ...plots.filter((plot) => plot.curve).map((plot) => plotFigure(plot, pick)),
    isDrawnFirst ? grid : "",
    first,
    ...(isWarnedLater ? warnings : []),
    ...others,
    head.kind === "compare" ? clusters : "",
    isDrawnFirst ? "" : grid,
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

const LIKE = "like";
const SHOWN_KINDS = 8;

// Like failures together, the most frequent first: each leads to its samples.
function showClusters(index, kind, pick) {
  const root = document.getElementById("clusters");
  const facet = index.facets.find((one) => one.key === LIKE);
  if (!root || !facet) return;
  const counts = new Array(facet.names.length).fill(0);
  for (const code of facet.codes) for (const name of facet.sets[code]) counts[name] += 1;
  const order = [...counts.keys()].sort((a, b) => counts[b] - counts[a] || a - b);
  const item = (at) => make("li", {}, make("span", { class: "times" }, `${counts[at].toLocaleString("en")} × `),
    button(ticked(facet.names[at]), () => pick({ facet: LIKE, value: facet.names[at] }), { class: "link" }));
  const rest = order.slice(SHOWN_KINDS);
  root.replaceChildren(make("h2", {}, kind === "compare" ? "What went wrong in B, by kind" : "Failures and flags by kind"), make("ul", { class: "kinds" }, order.slice(0, SHOWN_KINDS).map(item)));
  if (rest.length) root.append(make("details", {}, make("summary", {}, `${plural(rest.length, "more kind")}`), make("ul", { class: "kinds" }, rest.slice(0, 200).map(item))));
  root.className = "card";
  root.hidden = false;
}

// Names of ours in words of ours: `price` is set as code.
function ticked(text) {
  return text.split("`").map((part, at) => (at % 2 ? make("code", {}, part) : part));
}

function tableOf(table, pick) {
  const right = new Set(table.right);
  const heads = table.columns.map((name, at) =>
    make("th", { scope: "col", class: right.has(at) ? "right" : null }, name));
  const rows = table.rows.map((row) => make("tr", {}, row.map((cell, at) =>
    make("td", { class: right.has(at) ? "right" : null }, cellOf(cell, at === 0, pick)))));
  const body = make("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": table.title },
    stacking(make("table", {}, make("thead", {}, make("tr", {}, heads)), make("tbody", {}, rows))));
  const note = table.note ? make("p", { class: "quiet" }, table.note) : null;
  if (table.folded) {
    return make("details", { class: "card", id: `table-${table.id}` },
      make("summary", {}, make("h2", {}, table.title)), body, note);
  }
  return make("div", { class: "card", id: `table-${table.id}` }, make("h2", {}, table.title), body, note);
}

function cellOf(cell, first, pick) {
  const style = cell.style ?? "plain";
  const note = cell.note ? make("span", { class: "cell-note quiet" }, cell.note) : null;
  if (cell.pick) {
    return [button(cell.text, () => pick(cell.pick), { class: `link ${style}`, "aria-label": `${cell.text}: show the samples` }), note];
  }
  if (note) return [make("span", { class: style, title: cell.title ?? null }, cell.text), note];
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
