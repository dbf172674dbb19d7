// An answer with its spans and statements marked, each bound to the place that it rests on.

const LABELS = {
  supported: "✓", rounded: "≈", converted: "⇄", calculated: "=", derived: "∑", user_said: "“", not_claimed: "…",
  unsupported: "✗", misattributed: "✗", wrong_field: "✗", contradicted: "✗", miscalculated: "✗", miscounted: "✗",
  unit_mismatch: "✗", altered: "✗", unchecked: "·", error: "!",
};
const TIERS = { firm: ["✗", "bad"], advisory: ["?", "warn"] };
const ANSWER = 20000;
const SHOWN_FLAGS = 200;

function signOf(one) {
  return TIERS[one.tier]?.[0] ?? LABELS[one.label] ?? "";
}

function meaningOf(one) {
  return one.label === "error" ? "A result that reports an error says so." : sentenceOf("labels", one.label);
}

function nameOf(one) {
  return wordOf("labels", one.label);
}

// A label in its looks: those of its tier, where it has one.
function labelMark(one) {
  return make("span", { class: `value ${one.label} ${one.tier ?? ""}`.trim() }, `${signOf(one)} ${nameOf(one)}`);
}

// Turns lights on and off: `trees` maps a call to the results that it was answered with, and
// `peek` shows what is lit to a reader whose result is out of sight.
class Lights {
  constructor(trees, names) {
    this.trees = trees;
    this.names = names;
    this.peek = make("aside", { class: "peek", hidden: true, "aria-label": "Evidence of what is marked" });
    this.lit = [];
    this.kept = null;
  }

  element(match) {
    for (const tree of this.trees.get(match.call) ?? []) {
      const found = tree.find(match.path);
      if (found) return found;
    }
    return null;
  }

  show(element, about, keep) {
    this.off();
    element.classList.add("active");
    this.lit.push(element);
    const rows = [make("p", {}, about.said)];
    for (const { match, words } of about.evidence) {
      const place = this.element(match);
      if (!place) continue;
      lightLeaf(place, words);
      this.lit.push(place);
      revealBeside(place);
      const name = match.call < 0 ? "" : this.names[match.call] ?? "";
      rows.push(make("p", { class: "found" }, make("b", {}, `${whereOf(match)} `), make("span", { class: "quiet" }, name),
        make("code", {}, excerptOf(place))));
    }
    this.peek.replaceChildren(...rows);
    this.peek.hidden = false;
    this.place(element);
    if (keep) this.kept = { element, about };
  }

  // In the other half of the window and in the answer's column, so that it hides neither what it is
  // about nor the place that is lit beside it.
  place(element) {
    const column = this.peek.parentElement.getBoundingClientRect();
    const low = element.getBoundingClientRect().top > innerHeight / 2;
    Object.assign(this.peek.style, {
      left: `${column.left}px`, width: `${column.width}px`, top: low ? "64px" : "auto", bottom: low ? "auto" : "16px",
    });
  }

  off() {
    for (const element of this.lit) {
      element.classList.remove("active");
      unlightLeaf(element);
    }
    this.lit = [];
    this.peek.hidden = true;
  }

  // After a glance at another one, what has the focus is lit again.
  back() {
    this.off();
    if (this.kept) this.show(this.kept.element, this.kept.about, false);
  }

  bind(element, about) {
    element.addEventListener("mouseenter", () => this.show(element, about, false));
    element.addEventListener("mouseleave", () => this.back());
    element.addEventListener("focus", () => this.show(element, about, true));
    element.addEventListener("blur", () => {
      this.kept = null;
      this.off();
    });
    return pressed(element, () => {
      this.show(element, about, true);
      for (let box = this.lit[1]?.closest("details"); box; box = box.parentElement?.closest("details")) box.open = true;
      this.lit[1]?.scrollIntoView({ block: "center" });
    });
  }
}

// Where results stand beside the answer in a column of their own, the column goes to the lit place;
// the page itself stays where it is.
function revealBeside(place) {
  const column = place.closest(".beside");
  if (!column || column.scrollHeight <= column.clientHeight) return;
  const [here, box] = [place.getBoundingClientRect(), column.getBoundingClientRect()];
  if (here.top < box.top || here.bottom > box.bottom) column.scrollTop += here.top - box.top - box.height / 3;
}

// A lit leaf in short, around the words that were taken from it.
function excerptOf(place) {
  const exact = place.querySelector(".exact");
  if (!exact) {
    const text = place.whole ?? place.textContent;
    return text.length > 240 ? `${text.slice(0, 240)}…` : text;
  }
  const [before, after] = [exact.previousSibling?.textContent ?? "", exact.nextSibling?.textContent ?? ""];
  return [before.length > 100 ? "…" : "", before.slice(-100), make("b", { class: "exact" }, exact.textContent),
    after.slice(0, 100), after.length > 100 ? "…" : ""];
}

function whereOf(match) {
  const place = match.call < 0 ? "the prompt" : `call ${match.call}`;
  return `${place}, ${match.path || "/"}`;
}

class MarkedAnswer {
  constructor(text, scores, lights) {
    this.bytes = new Bytes(text);
    this.spans = (scores?.spans ?? []).map((span, at) => ({ ...span, number: at + 1 })).sort((a, b) => a.start - b.start);
    this.statements = scores?.statements ?? [];
    this.matched = new Map(this.spans.flatMap((span) => span.matches.map((match) => [`${match.start}-${match.end}`, match])));
    this.lights = lights;
    this.atoms = visibleAtoms(this.sources(scores?.span_extractor === "marker"))
      .filter((atom) => this.bytes.slice(atom.start, atom.end).trim());
    this.marks = new Map(); // of a source: its first mark
    this.changed = []; // what the other side has not, in bytes and in order
  }

  get length() {
    return this.bytes.data.length;
  }

  // One turn, or all of it.
  part(start, end) {
    const box = make("div", { class: "text answer" });
    let place = start;
    for (const span of this.spans) {
      const low = Math.max(span.start, place);
      const high = Math.min(span.end, end);
      if (low >= high) continue;
      this.paint(box, place, low);
      box.append(this.span(span, low, high));
      place = high;
    }
    this.paint(box, place, end);
    return box;
  }

  span(span, low, high) {
    const state = !span.scored || !span.counted ? "unscored" : span.good ? "grounded" : "ungrounded";
    const how = span.strict ? "lax and strict" : span.lax ? "lax only" : "not grounded";
    const said = !span.scored ? `span ${span.number}: beyond the cap, not scored`
      : !span.counted ? `span ${span.number}: counts for neither side` : `span ${span.number}: ${state}, ${how}`;
    const about = { said, evidence: span.matches.map((match) => this.evidence(match)) };
    const tag = make("span", { class: "tag", role: "button", tabindex: "0", "aria-label": said, title: said },
      `${state === "unscored" ? "–" : span.good ? "✓" : "✗"}${span.number}`);
    const box = make("span", { class: `span ${state}` }, this.lights.bind(tag, about));
    this.paint(box, low, high);
    return box;
  }

  // What lies between two places, with its marks.
  paint(box, low, high) {
    let place = low;
    for (let at = firstAfter(this.atoms, low); at < this.atoms.length && this.atoms[at].start < high; at += 1) {
      const atom = { ...this.atoms[at], start: Math.max(this.atoms[at].start, low), end: Math.min(this.atoms[at].end, high) };
      this.plain(box, place, atom.start);
      box.append(this.atom(atom));
      place = atom.end;
    }
    this.plain(box, place, high);
  }

  // Text without a mark; of two sides, what only this one says is set off.
  plain(box, low, high) {
    let place = low;
    for (let at = firstAfter(this.changed, low); at < this.changed.length && this.changed[at].start < high; at += 1) {
      const [start, end] = [Math.max(this.changed[at].start, low), Math.min(this.changed[at].end, high)];
      add(box, clipped(this.bytes.slice(place, start), ANSWER));
      box.append(make("span", { class: "differs" }, clipped(this.bytes.slice(start, end), ANSWER)));
      place = end;
    }
    add(box, clipped(this.bytes.slice(place, high), ANSWER));
  }

  isChanged({ start, end }) {
    const next = this.changed[firstAfter(this.changed, start)];
    return next !== undefined && next.start < end;
  }

  // What can be marked. Of two that overlap the lower rank is seen: flags before what is right.
  sources(marker) {
    const stated = new Map(this.statements.map((one) => [`${one.start}-${one.end}`, one]));
    const valued = new Set();
    const found = [];
    for (const span of this.spans) {
      const near = (one) => span.matches.filter((match) => match.start < one.end && one.start < match.end);
      for (const value of span.values) {
        const key = `${value.start}-${value.end}`;
        if (!marker && stated.has(key)) continue;
        valued.add(key);
        found.push({ ...value, rank: value.label === "unsupported" ? 2 : 3, matches: near(value) });
      }
      for (const match of span.matches) found.push({ ...labelOf(match), rank: 4, start: match.start, end: match.end, matches: [match] });
    }
    for (const one of this.statements) {
      if (!one.tier && valued.has(`${one.start}-${one.end}`)) continue;
      found.push({ ...one, rank: one.tier ? (one.tier === "firm" ? 0 : 1) : 3, matches: this.leavesOf(one), statement: one });
    }
    return found;
  }

  // The leaves that a statement rests on, or should have.
  leavesOf(one) {
    const own = one.call === undefined ? [] : [{ ...one, path: one.path ?? "", value: one.expected ?? "" }];
    if (one.tier) return own;
    const near = this.matched.get(`${one.start}-${one.end}`);
    return near ? [near] : own;
  }

  spanAt(place) {
    const span = this.spans[firstAfter(this.spans, place)];
    return span && span.start <= place ? span : null;
  }

  evidence(match) {
    const value = match.value instanceof BigNumber ? match.value.source : match.value;
    return { match, words: [this.bytes.slice(match.start, match.end), String(value)] };
  }

  atom(atom) {
    const text = this.bytes.slice(atom.start, atom.end);
    const places = atom.matches.map(whereOf).join("; ");
    const why = atom.tier ? `${atom.tier}, ${atom.because}` : places && `by ${places}`;
    const said = visible(`${text}: ${nameOf(atom)} ${why}`.trim()).slice(0, 300);
    const mark = make("mark", {
      class: `value ${atom.label} ${atom.tier ?? ""} ${this.isChanged(atom) ? "differs" : ""}`.replace(/\s+/g, " ").trim(),
      role: "button", tabindex: "0", title: said,
      "aria-label": said, "data-sign": signOf(atom),
    }, clipped(text, 2000));
    const about = {
      said: `${cut(text)}: ${nameOf(atom)}${atom.tier ? `, ${atom.tier}. ${sentenceOf("tiers", atom.tier)} ${atom.because}` : `: ${meaningOf(atom)}`}`,
      evidence: atom.matches.map((match) => this.evidence(match)),
    };
    if (atom.statement && !this.marks.has(atom.statement)) this.marks.set(atom.statement, mark);
    return this.lights.bind(mark, about);
  }

  // Every flag in one sentence, the firm ones first, and what all statements are.
  flags() {
    if (!this.statements.length) return null;
    const flags = this.statements.filter((one) => one.tier).sort((a, b) => Number(a.tier !== "firm") - Number(b.tier !== "firm"));
    const counts = new Map();
    for (const one of this.statements) counts.set(one.label, (counts.get(one.label) ?? 0) + 1);
    const told = Object.keys(LABELS).filter((label) => counts.has(label)).map((label) => `${counts.get(label)} ${nameOf({ label })}`);
    const left = flags.length - SHOWN_FLAGS;
    return make("section", { class: "flags", "aria-label": "Statements" },
      make("p", {}, `${plural(this.statements.length, "statement")}: ${told.join(", ")}`),
      flags.length ? make("ul", {}, flags.slice(0, SHOWN_FLAGS).map((one) => this.flag(one))) : null,
      left > 0 ? make("p", { class: "quiet" }, `${plural(left, "more flag")} in the answer`) : null);
  }

  flag(one) {
    const [sign, state] = TIERS[one.tier];
    const meaning = sentenceOf("tiers", one.tier);
    const mark = this.marks.get(one);
    return make("li", { class: one.tier }, make("span", { class: `badge ${state}`, title: meaning }, `${sign} ${one.tier}`),
      " ", make("b", {}, nameOf(one)), ": ", clipped(one.because ?? "", 600), make("span", { class: "quiet", title: `${one.rule}: ${sentenceOf("rules", one.rule)}` }, ` (rule: ${wordOf("rules", one.rule)})`),
      mark ? button("show", () => mark.focus(), { class: "more" }) : null);
  }

  // The same as a table: what stands in the answer, and where it comes from.
  table() {
    const rows = this.atoms.flatMap((atom) => (atom.matches.length ? atom.matches : [null]).map((match) => this.row(atom, match)));
    if (!rows.length) return make("p", { class: "empty" }, "No checkable value and no span was found in the answer.");
    const heads = ["span", "in the answer", "is", "rule", "call", "path", "value", "strict"];
    return make("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Evidence" },
      stacking(make("table", { class: "evidence" },
        make("thead", {}, make("tr", {}, heads.map((name) => make("th", { scope: "col" }, name)))),
        make("tbody", {}, rows))));
  }

  row(atom, match) {
    const quoted = this.bytes.slice(atom.start, atom.end);
    const cells = match === null ? ["", "", "", ""] : [
      match.call < 0 ? "prompt" : match.call, match.path || "/",
      cut(match.value instanceof BigNumber ? match.value.source : String(match.value)),
      match.strict === undefined ? "" : match.strict ? "yes" : "no",
    ];
    const texts = [this.spanAt(atom.start)?.number ?? "", cut(quoted), labelMark(atom), wordOf("rules", atom.rule ?? ""), ...cells];
    return make("tr", {}, texts.map((cell) => make("td", {}, cell)));
  }
}

// What the marks of these answers mean, each once.
function legendOfMarks(answers) {
  const kinds = new Map(answers.flatMap((one) => one.atoms).map((atom) => [`${atom.label} ${atom.tier}`, atom]));
  if (!kinds.size) return null;
  const order = Object.keys(LABELS);
  const shown = [...kinds.values()].sort((a, b) => order.indexOf(a.label) - order.indexOf(b.label) || (a.tier ?? "").localeCompare(b.tier ?? ""));
  return make("ul", { class: "legend", "aria-label": "Legend" }, shown.map((one) =>
    make("li", {}, labelMark(one), `${one.tier ? ` (${one.tier})` : ""}: ${meaningOf(one)}`)));
}

// Of ranges in their order, none over another, the first that ends after a place.
function firstAfter(ranges, place) {
  let [low, high] = [0, ranges.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (ranges[middle].end > place) high = middle;
    else low = middle + 1;
  }
  return low;
}

// In the order of the answer, none over another: what lies under one is cut.
function visibleAtoms(sources) {
  const waiting = [...sources].sort((a, b) => a.start - b.start || a.rank - b.rank);
  const edges = [...new Set(waiting.flatMap((one) => [one.start, one.end]))].sort((a, b) => a - b);
  const atoms = [];
  /** @type {any[]} */
  let over = [];
  let at = 0;
  for (let edge = 0; edge + 1 < edges.length; edge += 1) {
    const [start, end] = [edges[edge], edges[edge + 1]];
    while (at < waiting.length && waiting[at].start <= start) over.push(waiting[at++]);
    over = over.filter((one) => one.end > start);
    if (!over.length) continue;
    const top = over.reduce((best, one) => (one.rank < best.rank ? one : best));
    const last = atoms.at(-1);
    if (last && last.end === start && last.source === top) last.end = end;
    else atoms.push({ ...top, source: top, start, end });
  }
  return atoms;
}

function cut(text) {
  return text.length > 120 ? `${text.slice(0, 119)}…` : text;
}

function labelOf(match) {
  const labels = { value: "supported", derived: "derived", error: "error" };
  return { kind: match.kind, label: labels[match.cls] };
}
