// A plot is a table that is also drawn. Who cannot see the drawing reads the table.

const SVG = "http://www.w3.org/2000/svg";
const WIDTH = 350;
const BAR = 13;
const TIP = 24; // the room that the number above a bar takes
const LINE = 10;

function shape(name, attributes, text) {
  const element = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  if (text !== undefined) element.textContent = visible(text);
  return element;
}

function shownNumber(value, plot) {
  if (value === null) return "no data";
  return Number.isInteger(value) && plot.top === null ? value.toLocaleString("en") : value.toFixed(3);
}

function plotFigure(plot, pick) {
  const top = plot.top ?? Math.max(1e-9, ...plot.bars.flatMap((bar) => bar.values));
  const drawing = plot.curve ? curveLines(plot, top) : plot.points ? pointLines(plot, top) : plot.upright ? uprightBars(plot, top) : levelBars(plot, top);
  drawing.classList.add("drawing");
  drawing.setAttribute("role", "img");
  drawing.setAttribute("aria-label", `${plot.title}. The table below has the numbers.`);
  return make(
    "figure", { class: "plot card", id: `plot-${plot.id}` },
    make("figcaption", {}, make("h3", {}, plot.title), make("p", { class: "quiet" }, plot.note)),
    plot.series.length > 1 ? legendOf(plot.series) : null,
    drawing,
    plot.marks.map((text) => make("p", { class: "quiet" }, text)),
    make("details", {}, make("summary", {}, plot.bars.some((bar) => bar.pick) ? "Numbers and samples" : "Numbers"), plotTable(plot, pick)),
  );
}

function legendOf(series) {
  return make("p", { class: "series" }, series.map((name, at) =>
    make("span", {}, make("i", { class: `swatch s${at}`, "aria-hidden": "true" }), name)));
}

function plotTable(plot, pick) {
  const heads = [plot.label, ...plot.series].map((name, at) => make("th", { scope: "col", class: at ? "right" : null }, name));
  const rows = plot.bars.map((bar) => {
    const label = bar.pick ? button(bar.label, () => pick(bar.pick), { class: "link" }) : bar.label;
    const spread = bar.spread ? make("span", { class: "cell-note quiet" }, `${threeDigits(bar.spread[0])} to ${threeDigits(bar.spread[1])}`) : null;
    const cells = bar.values.map((value, at) => make("td", { class: "right" }, shownNumber(value, plot), at ? null : spread));
    return make("tr", {}, make("th", { scope: "row" }, label), cells);
  });
  return make("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": plot.title },
    make("table", {}, make("thead", {}, make("tr", {}, heads)), make("tbody", {}, rows)));
}

// Names and numbers are text of the page, so that they wrap and are never cut.
function levelBars(plot, top) {
  return make("div", { class: "bars" }, plot.bars.map((bar) => make("div", { class: "group" },
    make("span", { class: "name" }, bar.label),
    make("div", { class: "tracks" }, bar.values.map((value, series) => levelBar(value, series, bar.spread, plot, top))))));
}

function levelBar(value, series, spread, plot, top) {
  const filled = make("i", { class: value === 0 ? `s${series} zero` : `s${series}` });
  filled.style.width = `${Math.max(value === null ? 0 : 0.4, (100 * (value ?? 0)) / top)}%`;
  const track = make("span", { class: "track" }, filled);
  if (spread && series === 0) {
    const whisker = make("i", { class: "whisker" });
    whisker.style.left = `${(100 * spread[0]) / top}%`;
    whisker.style.width = `${(100 * (spread[1] - spread[0])) / top}%`;
    track.append(whisker);
  }
  return make("div", { class: "level" }, track, make("span", { class: "number" }, shownNumber(value, plot)));
}

// One run below the other: a point with its interval, told apart by shape as well as by colour.
function pointLines(plot, top) {
  const at = (value) => `${2 + (96 * Math.max(0, value)) / top}%`;
  return make("div", { class: "bars" }, plot.bars.map((bar) => {
    const value = bar.values[0];
    const svg = shape("svg", { class: "points", width: "100%", height: 18 });
    if (plot.level !== null) svg.append(shape("line", { x1: at(plot.level), x2: at(plot.level), y1: 0, y2: 18, class: "first" }));
    if (bar.spread && value !== null) svg.append(shape("line", { x1: at(bar.spread[0]), x2: at(bar.spread[1]), y1: 9, y2: 9, class: "spread" }));
    if (value !== null) svg.append(pointMark(at(value), bar.style ?? "plain"));
    return make("div", { class: "group" }, make("span", { class: "name" }, bar.label),
      make("div", { class: "tracks" }, make("div", { class: "level" }, make("span", { class: "track" }, svg), make("span", { class: "number" }, shownNumber(value, plot)))));
  }));
}

function pointMark(x, style) {
  const mark = style === "bad" ? shape("svg", { x, y: 9, class: "placed" }) : shape("circle", { cx: x, cy: 9, r: style === "warn" ? 4 : 5, class: `mark ${style}` });
  if (style === "bad") mark.append(shape("rect", { x: -5, y: -5, width: 10, height: 10, class: "mark bad" }));
  return mark;
}

function uprightBars(plot, top) {
  const height = 130;
  const step = WIDTH / Math.max(6, plot.bars.length);
  const thin = Math.min(34, (step - 6) / plot.series.length);
  const svg = shape("svg", { viewBox: `0 0 ${WIDTH} ${height + 36}` });
  let last = { x: -WIDTH, y: 0 };
  let free = 0;
  plot.bars.forEach((bar, at) => {
    const middle = step * (at + 0.5);
    const start = middle - (thin * bar.values.length) / 2;
    const most = Math.max(...bar.values.map((value) => value ?? 0));
    let isTold = false;
    bar.values.forEach((value, series) => {
      const size = Math.max(value > 0 ? 1 : 0, (height * (value ?? 0)) / top);
      const box = { x: start + series * thin, y: height + 14 - size, width: thin - 1, height: size };
      svg.append(shape("rect", { ...box, rx: 2, class: `s${series}` }));
      // Two numbers above bars so thin would write over each other: the larger one is told.
      if (value > 0 && value === most && !isTold) {
        isTold = true;
        const percent = value < 0.01 ? "<1%" : `${Math.round(value * 100)}%`;
        const shown = plot.top === null ? shownNumber(value, plot) : percent;
        // Neighbours of one height would write over each other: the later one goes above.
        const x = Math.min(WIDTH - TIP / 2, Math.max(TIP / 2, box.x + thin / 2));
        const y = box.y - 4;
        last = { x, y: x - last.x < TIP && Math.abs(y - last.y) < LINE ? last.y - LINE : y };
        svg.append(shape("text", { ...last, class: "tip" }, shown));
      }
    });
    const half = 3.1 * bar.label.length;
    if (middle - half < free) return; // a label that would write over the one before it is left out
    svg.append(shape("text", { x: middle, y: height + 29, class: "tick" }, bar.label));
    free = middle + half + 3;
  });
  svg.append(shape("line", { x1: 0, x2: WIDTH, y1: height + 14.5, y2: height + 14.5, class: "axis" }));
  return svg;
}

// Points in an order: each with its interval, joined; the level is what they are compared with. It
// has the page's whole width, and is drawn for a narrow page as well: letters stay as large.
function curveLines(plot, top) {
  const wide = curveLine(plot, top, 900);
  const narrow = curveLine(plot, top, WIDTH);
  wide.classList.add("wide-only");
  narrow.classList.add("narrow-only");
  return make("div", {}, wide, narrow);
}

function curveLine(plot, top, width) {
  const [height, left] = [170, 40];
  const step = (width - left - 10) / Math.max(2, plot.bars.length);
  const y = (value) => 10 + height * (1 - value / top);
  const svg = shape("svg", { viewBox: `0 0 ${width} ${height + 36}` });
  for (const value of [0, top / 2, top]) svg.append(shape("text", { x: left - 8, y: y(value) + 4, class: "name" }, value.toFixed(1)));
  if (plot.level !== null) svg.append(shape("line", { x1: left, x2: width, y1: y(plot.level), y2: y(plot.level), class: "level" }));
  const points = plot.bars.map((bar, at) => ({ bar, x: left + step * (at + 0.5), value: bar.values[0] }));
  const most = Math.max(8, Math.floor(step / 7)); // letters that fit below a point
  let free = 0; // a label that would write over the one before it is left out
  points.forEach(({ bar, x, value }) => {
    if (bar.spread && value !== null) {
      svg.append(shape("line", { x1: x, x2: x, y1: y(bar.spread[0]), y2: y(bar.spread[1]), class: "spread" }));
    }
    // Of `checkpoint-160` the step says enough.
    const short = /\d+$/.exec(bar.label)?.[0].slice(-most) ?? "…" + bar.label.slice(1 - most);
    const name = bar.label.length > most ? short : bar.label;
    if (x - 3.5 * name.length < free) return;
    svg.append(shape("text", { x, y: height + 29, class: "tick" }, name));
    free = x + 3.5 * name.length;
  });
  const drawn = points.filter((one) => one.value !== null);
  svg.append(shape("polyline", { points: drawn.map((one) => `${one.x},${y(one.value)}`).join(" "), class: "curve" }));
  for (const one of drawn) svg.append(shape("circle", { cx: one.x, cy: y(one.value), r: 4, class: "s0" }));
  svg.append(shape("line", { x1: left, x2: width, y1: height + 10.5, y2: height + 10.5, class: "axis" }));
  return svg;
}
