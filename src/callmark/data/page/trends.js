// Runs over time, and models side by side. A trend joins runs of one model over one dataset: any
// other line would tell of two things at once.

const GATE_STYLES = { pass: "good", fail: "bad", warn: "warn", inconclusive: "warn" };
const TREND = { width: 350, height: 96, left: 44, right: 12, top: 10, bottom: 10 };
const MOST_COLUMNS = 8;
const STILL = 1e-9;

function coursesOf(runs) {
  const found = new Map();
  for (const run of runs) {
    const key = JSON.stringify([run.model, run.pins.dataset ?? run.dataset]);
    if (!found.has(key)) found.set(key, []);
    found.get(key).push(run);
  }
  return [...found.values()];
}

function courseName(runs) {
  const { model, dataset } = runs.at(-1);
  return `${model || "unknown model"} on ${dataset || "a dataset without a name"}`;
}

// The latest run of each model over the dataset of the latest run; of a single model its runs.
function columnsOf(runs) {
  const newest = runs.at(-1);
  const same = runs.filter((run) => run.pins.dataset === newest.pins.dataset);
  const latest = [...new Map(same.map((run) => [run.model, run])).values()];
  return (latest.length > 1 ? latest : same).slice(-MOST_COLUMNS);
}

function drawMatrix(root, runs) {
  root.replaceChildren();
  const columns = runs.length ? columnsOf(runs) : [];
  if (columns.length < 2) return;
  const models = new Set(columns.map((run) => run.model)).size > 1;
  const names = metricNames(columns);
  add(root, [make("h2", {}, models ? "Models side by side" : "Runs side by side"),
    make("p", { class: "quiet" }, `${models ? "The latest run of each model" : "The latest runs"} over ${columns.at(-1).dataset || "one dataset"}. A line through a bar is its 95 % interval.`),
    matrixTable(names.gated, columns, models),
    names.rest.length ? make("details", {}, make("summary", {}, "Metrics without a gate"), matrixTable(names.rest, columns, models)) : null]);
  root.className = "card";
}

function metricNames(runs) {
  const names = [...new Set(runs.flatMap((run) => Object.keys(run.metrics)))];
  const isGated = (name) => runs.at(-1).gates[name] !== undefined;
  return { gated: names.filter(isGated), rest: names.filter((name) => !isGated(name)) };
}

function matrixTable(names, columns, models) {
  const titles = columns.map((run) => (models ? `${run.model || "unknown model"} (${run.name})` : run.name));
  const heads = ["metric", ...titles].map((text) => make("th", { scope: "col" }, text));
  const rows = names.map((name) => {
    const points = columns.map((run) => run.metrics[name]);
    const top = Math.max(1, ...points.map((point) => point?.high ?? point?.value ?? 0));
    return make("tr", {}, make("th", { scope: "row", title: name }, wordOf("metrics", name)),
      points.map((point, at) => make("td", {}, matrixCell(point, columns[at].gates[name], top))));
  });
  return make("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Metrics of each model" },
    stacking(make("table", { class: "matrix" }, make("thead", {}, make("tr", {}, heads)), make("tbody", {}, rows))));
}

function matrixCell(point, gate, top) {
  if (!point) return make("span", { class: "quiet" }, "no data");
  const style = GATE_STYLES[gate?.status] ?? "plain";
  const spread = point.low === null ? null : [Math.max(0, point.low), point.high];
  const bar = levelBar(Math.max(0, point.value), 0, spread, { top }, top);
  bar.setAttribute("aria-hidden", "true");
  bar.lastChild.remove();
  const between = point.low === null ? "" : `${threeDigits(point.low)} to ${threeDigits(point.high)}`;
  return [make("span", { class: `strong ${style}` }, `${threeDigits(point.value)} ${gate ? SIGNS[style] : ""}`.trim()), " ",
    make("span", { class: "quiet small" }, between), bar];
}

let wantedCourse = "";

function drawTrends(root, runs, moved) {
  root.replaceChildren();
  const courses = coursesOf(runs).filter((some) => some.length > 1);
  if (!courses.length) {
    if (runs.length) add(root, [make("p", { class: "quiet" }, "With a second run of the same model over the same dataset, the trend of each metric appears here.")]);
    return;
  }
  const course = courses.find((some) => courseName(some) === wantedCourse) ?? courses.at(-1);
  const redraw = (event) => {
    wantedCourse = event.target.value;
    drawTrends(root, runs, moved);
    byId("by-course").focus();
  };
  const select = selectOf("course", courses.map((some) => [courseName(some), `${courseName(some)} (${plural(some.length, "run")})`]), redraw);
  select.value = courseName(course);
  const names = metricNames(course);
  const moves = (name) => new Set(course.map((run) => run.metrics[name]?.value?.toFixed(9))).size > 1;
  const grid = (some) => make("div", { class: "plots even" }, some.map((name) => trendFigure(name, course, moved)));
  const shut = (title, id, some) => (some.length ? make("details", { class: "card", id }, make("summary", {}, make("h2", {}, title)), grid(some)) : null);
  add(root, [make("h2", {}, "Trends"), labelled("model and dataset", select, "course"),
    make("p", { class: "quiet" }, "Oldest run left, latest right; bars are 95 % intervals, the dashed line is the bound of the latest run's gate. A click on a point shows the samples that moved since the one before it."),
    grid(names.gated.filter(moves)),
    shut("Gated metrics that did not move", "unmoved", names.gated.filter((name) => !moves(name))),
    shut("Metrics without a gate", "ungated", names.rest)]);
}

function trendFigure(name, runs, moved) {
  const points = runs.map((run, at) => ({ run, at, point: run.metrics[name], gate: run.gates[name] })).filter((one) => one.point);
  const bound = runs.at(-1).gates[name] ?? null;
  // Who is clicked on, and what stood before it.
  const step = (at) => {
    const [before, now] = [points[at - 1], points[at]];
    const change = now.point.value - before.point.value;
    const isWorse = (bound?.op ?? ">=").includes(">") ? change < 0 : change > 0;
    return moved(before.run, now.run, name, isWorse);
  };
  const drawing = trendDrawing(points, runs.length, bound, step);
  drawing.setAttribute("role", "img");
  drawing.setAttribute("aria-label", `${wordOf("metrics", name)} over ${plural(points.length, "run")}. The table below has the numbers.`);
  const last = points.at(-1).point;
  const rows = points.map((one, at) => trendRow(one, at && Math.abs(one.point.value - points[at - 1].point.value) > STILL ? () => step(at) : null));
  const table = stacking(make("table", {}, make("thead", {}, make("tr", {}, ["run", "value", "n", "95 % interval", "gate", "since the one before"].map((text) => make("th", { scope: "col" }, text)))), make("tbody", {}, rows)));
  return make("figure", { class: "plot card trend", id: `trend-${name}` },
    make("figcaption", {}, make("h3", { title: name }, wordOf("metrics", name)), make("p", { class: "quiet" }, `latest ${threeDigits(last.value)}, n ${last.n.toLocaleString("en")}${bound ? `, wanted ${bound.wanted}` : ""}`)),
    drawing,
    make("details", {}, make("summary", {}, "Numbers and what moved"), make("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": wordOf("metrics", name) }, table)));
}

function trendRow({ run, point, gate }, step) {
  return make("tr", {},
    make("th", { scope: "row" }, make("a", { href: `run/${run.id}` }, run.name)),
    make("td", { class: "right" }, threeDigits(point.value)), make("td", { class: "right" }, point.n.toLocaleString("en")),
    make("td", {}, point.low === null ? "–" : `${threeDigits(point.low)} to ${threeDigits(point.high)}`), make("td", {}, gate?.status ?? ""),
    make("td", {}, step ? button("samples that moved", step, { class: "link" }) : ""));
}

function trendDrawing(points, count, bound, step) {
  const { width, height, left, right, top, bottom } = TREND;
  const numbers = points.flatMap(({ point }) => [point.value, point.low ?? point.value, point.high ?? point.value]);
  if (bound) numbers.push(bound.bound);
  const least = Math.min(...numbers);
  const most = Math.max(...numbers, least + 0.01);
  const x = (at) => left + ((width - left - right) * (at + 0.5)) / count;
  const y = (value) => height - bottom - ((height - top - bottom) * (value - least)) / (most - least);
  const svg = shape("svg", { viewBox: `0 0 ${width} ${height}` });
  for (const value of [least, most]) svg.append(shape("text", { x: left - 6, y: y(value) + 4, class: "name number" }, threeDigits(value)));
  if (bound) svg.append(shape("line", { x1: left, x2: width - right, y1: y(bound.bound), y2: y(bound.bound), class: "bound" }));
  svg.append(shape("polyline", { points: points.map(({ at, point }) => `${x(at)},${y(point.value)}`).join(" "), class: "line" }));
  points.forEach(({ run, at, point, gate }, place) => {
    if (point.low !== null) svg.append(shape("line", { x1: x(at), x2: x(at), y1: y(point.low), y2: y(point.high), class: "whisker" }));
    const go = place ? () => step(place) : () => location.assign(`run/${run.id}`);
    svg.append(trendMark(x(at), y(point.value), GATE_STYLES[gate?.status] ?? "quiet", `${run.name}: ${threeDigits(point.value)}`, go));
  });
  return svg;
}

// Told apart by shape as well as by colour.
function trendMark(x, y, style, title, go) {
  const mark = style === "bad" ? shape("rect", { x: x - 4, y: y - 4, width: 8, height: 8, class: "mark bad" })
    : shape("circle", { cx: x, cy: y, r: style === "good" ? 4 : 3.4, class: `mark ${style}` });
  mark.append(shape("title", {}, title));
  mark.addEventListener("click", go);
  return mark;
}
