// The runs of a folder: list, trend of each metric, two of them compared.

const LOOK_AGAIN = 2000;
const GATE_STYLES = { pass: "good", fail: "bad", warn: "warn", inconclusive: "warn" };
const F1_LAX = "integration_f1_macro_lax";
const TREND = { width: 350, height: 96, left: 44, right: 12, top: 10, bottom: 10 };

function shownDate(seconds) {
  const date = new Date(seconds * 1000);
  const two = (number) => String(number).padStart(2, "0");
  return `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())} ${two(date.getHours())}:${two(date.getMinutes())}`;
}

class RunList {
  constructor() {
    this.text = "";
    this.listing = null;
    this.chosen = []; // A, then B
    this.search = make("input", { type: "search", id: "search", autocomplete: "off", spellcheck: "false" });
    this.search.addEventListener("input", () => this.draw());
    this.dataset = make("select", { id: "by-dataset" });
    this.dataset.addEventListener("change", () => this.draw());
    this.compare = button("Compare", () => this.start(false), { id: "compare", class: "strong" });
    this.swap = button("Swap A and B", () => {
      this.chosen.reverse();
      this.draw();
    }, { id: "swap" });
    this.picked = make("p", { id: "picked", class: "quiet" });
    this.table = make("div", { id: "table" });
    byId("runs").append(
      make("div", { class: "tools" }, labelled("search names and models  ( / )", this.search, "wide"), labelled("dataset", this.dataset),
        this.compare, this.swap),
      this.picked, this.table);
    theme();
    addEventListener("keydown", (event) => {
      if (event.key !== "/" || isTyped(event)) return;
      event.preventDefault();
      this.search.focus();
    });
  }

  async follow() {
    for (;;) {
      const text = document.hidden && this.text ? this.text : await ask("runs");
      if (text !== this.text) {
        this.text = text;
        this.listing = JSON.parse(text);
        this.draw();
        document.body.dataset.ready = "yes";
      }
      await pause(LOOK_AGAIN);
    }
  }

  draw() {
    const { folder, runs, left_out: leftOut } = this.listing;
    byId("title").replaceChildren(visible(`${plural(runs.length, "run")} in ${folder}`));
    this.chosen = this.chosen.filter((id) => runs.some((run) => run.id === id));
    this.datasets(runs);
    const shown = this.filtered(runs);
    const focused = document.activeElement?.id;
    const none = runs.length ? "No run fits." : "No runs here yet: `callmark run` makes them, and they appear by themselves.";
    this.table.replaceChildren(shown.length ? this.rows(shown) : make("p", { class: "empty" }, none));
    if (leftOut) this.table.append(make("p", { class: "left-out" }, leftOut));
    if (focused) byId(focused)?.focus();
    this.buttons();
    drawTrends(byId("trends"), shown.filter((run) => Object.keys(run.metrics).length).reverse());
  }

  datasets(runs) {
    const found = new Map(runs.filter((run) => run.pins.dataset).map((run) => [run.pins.dataset, run.dataset]));
    const before = this.dataset.value;
    const options = [["", "any"], ...[...found].map(([pin, version]) => [pin, [version, pin].filter(Boolean).join(" · ")])];
    if (options.length === this.dataset.options.length) return;
    this.dataset.replaceChildren(...options.map(([value, text]) => make("option", { value }, text)));
    this.dataset.value = found.has(before) ? before : "";
  }

  filtered(runs) {
    const words = this.search.value.toLowerCase().split(/\s+/).filter(Boolean);
    return runs.filter((run) => (!this.dataset.value || run.pins.dataset === this.dataset.value)
      && words.every((word) => `${run.name} ${run.model} ${run.word}`.toLowerCase().includes(word)));
  }

  rows(runs) {
    const names = ["compare", "verdict", "run", "model", "samples", "F1 lax", "last written", "fingerprints"];
    const right = new Set([4, 5]);
    return make("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Runs" },
      make("table", {},
        make("thead", {}, make("tr", {}, names.map((name, at) => make("th", { scope: "col", class: right.has(at) ? "right" : null }, name)))),
        make("tbody", {}, runs.map((run) => this.row(run)))));
  }

  row(run) {
    const f1 = run.metrics[F1_LAX]?.value;
    const trials = run.trials !== null && run.trials !== run.samples ? ` (${plural(run.trials, "trial")})` : "";
    return make("tr", {},
      make("td", {}, run.finished ? this.choice(run) : null),
      make("td", {}, make("span", { class: `badge ${run.style}` }, `${SIGNS[run.style] ?? ""} ${run.word}`.trim())),
      make("td", {}, make("a", { href: `run/${run.id}`, id: `open-${run.id}` }, run.name), make("p", { class: "why" }, run.reason)),
      make("td", {}, run.model),
      make("td", { class: "right" }, run.samples === null ? "–" : run.samples.toLocaleString("en") + trials),
      make("td", { class: "right" }, threeDigits(f1)),
      make("td", { class: "date" }, shownDate(run.written)),
      make("td", { class: "pin-cell" }, Object.entries(run.pins).map(([name, pin]) => make("span", { class: "pin" }, `${name} `, make("code", {}, pin)))));
  }

  choice(run) {
    const place = this.chosen.indexOf(run.id);
    const box = make("input", { type: "checkbox", id: `pick-${run.id}`, "aria-label": `compare ${run.name}`, checked: place >= 0 });
    box.addEventListener("change", () => {
      this.chosen = this.chosen.filter((id) => id !== run.id);
      if (box.checked) this.chosen = [...this.chosen.slice(-1), run.id];
      this.draw();
    });
    return make("span", { class: "choice" }, box, place >= 0 ? make("b", { class: "side-mark" }, "AB"[place]) : null);
  }

  buttons() {
    const name = (id) => this.listing.runs.find((run) => run.id === id).name;
    const ready = this.chosen.length === 2;
    this.compare.disabled = !ready;
    this.swap.disabled = !ready;
    this.picked.replaceChildren();
    add(this.picked, ready ? [`Is B (${name(this.chosen[1])}) worse than A (${name(this.chosen[0])})?`]
      : ["Tick two runs to compare them: the first one is A, the earlier run or the base model's."]);
  }

  async start(common) {
    const [a, b] = this.chosen;
    this.say("Comparing: both runs are scored again and paired sample by sample…");
    this.compare.disabled = true;
    try {
      const body = JSON.stringify({ a, b, common });
      let state = JSON.parse(await ask("compare", { method: "POST", body, headers: { "Content-Type": "application/json" } }));
      while (state.word === "running") {
        await pause(400);
        state = JSON.parse(await ask(`compare/${state.id}/state`));
      }
      if (state.word === "failed") throw new Error(state.message);
      this.say("");
      location.assign(`compare/${state.id}`);
    } catch (error) {
      const { message } = /** @type {Error} */ (error);
      this.say(message, message.includes("--common") ? button("Compare the samples that are the same", () => this.start(true), { id: "common" }) : null);
    }
    this.buttons();
  }

  say(text, more = null) {
    byId("said").replaceChildren();
    add(byId("said"), [text, more]);
  }
}

function drawTrends(root, runs) {
  root.replaceChildren();
  if (runs.length < 2) {
    if (runs.length) add(root, [make("p", { class: "quiet" }, "With a second run, the trend of each metric appears here.")]);
    return;
  }
  const newest = runs.at(-1);
  const names = [...new Set(runs.flatMap((run) => Object.keys(run.metrics)))];
  const gated = names.filter((name) => newest.gates[name]);
  const rest = names.filter((name) => !newest.gates[name]);
  const grid = (some) => make("div", { class: "plots" }, some.map((name) => trendFigure(name, runs)));
  add(root, [make("h2", {}, "Trends"),
    make("p", { class: "quiet" }, "Oldest run left, latest right. Lines join runs over the same dataset; bars are 95 % intervals; the dashed line is the bound of the latest run's gate."),
    grid(gated),
    rest.length ? make("details", { class: "card", id: "ungated" }, make("summary", {}, make("h2", {}, "Metrics without a gate")), grid(rest)) : null]);
}

function trendFigure(name, runs) {
  const points = runs.map((run, at) => ({ run, at, point: run.metrics[name], gate: run.gates[name] })).filter((one) => one.point);
  const bound = runs.at(-1).gates[name] ?? null;
  const drawing = trendDrawing(points, runs.length, bound);
  drawing.setAttribute("role", "img");
  drawing.setAttribute("aria-label", `${name} over ${plural(points.length, "run")}. The table below has the numbers.`);
  const last = points.at(-1).point;
  const rows = points.map(({ run, point, gate }) => make("tr", {},
    make("th", { scope: "row" }, make("a", { href: `run/${run.id}` }, run.name)),
    make("td", { class: "right" }, threeDigits(point.value)), make("td", { class: "right" }, point.n.toLocaleString("en")),
    make("td", {}, point.low === null ? "–" : `${threeDigits(point.low)} to ${threeDigits(point.high)}`), make("td", {}, gate?.status ?? "")));
  const table = make("table", {}, make("thead", {}, make("tr", {}, ["run", "value", "n", "95 % interval", "gate"].map((text) => make("th", { scope: "col" }, text)))), make("tbody", {}, rows));
  return make("figure", { class: "plot card trend", id: `trend-${name}` },
    make("figcaption", {}, make("h3", {}, name), make("p", { class: "quiet" }, `latest ${threeDigits(last.value)}, n ${last.n.toLocaleString("en")}${bound ? `, bound ${bound.op} ${bound.bound}` : ""}`)),
    drawing,
    make("details", {}, make("summary", {}, "Numbers"), make("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": name }, table)));
}

function trendDrawing(points, count, bound) {
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
  for (const dataset of new Set(points.map(({ run }) => run.pins.dataset))) {
    const same = points.filter(({ run }) => run.pins.dataset === dataset);
    svg.append(shape("polyline", { points: same.map(({ at, point }) => `${x(at)},${y(point.value)}`).join(" "), class: "line" }));
  }
  for (const { run, at, point, gate } of points) {
    if (point.low !== null) svg.append(shape("line", { x1: x(at), x2: x(at), y1: y(point.low), y2: y(point.high), class: "whisker" }));
    svg.append(trendMark(x(at), y(point.value), GATE_STYLES[gate?.status] ?? "quiet", `${run.name}: ${threeDigits(point.value)}`, run.id));
  }
  return svg;
}

// Told apart by shape as well as by colour.
function trendMark(x, y, style, title, id) {
  const mark = style === "bad" ? shape("rect", { x: x - 4, y: y - 4, width: 8, height: 8, class: "mark bad" })
    : shape("circle", { cx: x, cy: y, r: style === "good" ? 4 : 3.4, class: `mark ${style}` });
  mark.append(shape("title", {}, title));
  mark.addEventListener("click", () => location.assign(`run/${id}`));
  return mark;
}

const runList = new RunList();
runList.follow().catch((error) => runList.say(error.message));
