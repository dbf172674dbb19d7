// An answer with its spans and values marked, each bound to the place that grounds it.

const LABELS = {
  supported: ["✓", "supported: a result holds it"],
  derived: ["∑", "derived: computed from results"],
  user_said: ["“", "user said: it stands in the prompt or in a call; grounds nothing"],
  unsupported: ["✗", "unsupported: nothing holds it"],
  error: ["!", "error: taken from a result that reports an error"],
};
const ANSWER = 20000;

function legend() {
  return make("ul", { class: "legend", "aria-label": "Legend" },
    Object.entries(LABELS).filter(([name]) => name !== "error").map(([name, [sign, text]]) =>
      make("li", {}, make("span", { class: `value ${name}` }, `${sign} ${name.replace("_", "-")}`), ` ${text.split(": ")[1]}`)));
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
      const name = match.call < 0 ? "" : this.names[match.call] ?? "";
      rows.push(make("p", { class: "found" }, make("b", {}, `${whereOf(match)} `), make("span", { class: "quiet" }, name),
        make("code", {}, excerptOf(place))));
    }
    this.peek.replaceChildren(...rows);
    this.peek.hidden = false;
    this.place(element);
    if (keep) this.kept = { element, about };
  }

  // In the other half of the window, so that it never hides what it is about.
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
      this.lit[1]?.scrollIntoView({ block: "center" });
    });
  }
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
  constructor(text, spans, lights) {
    this.bytes = new Bytes(text);
    this.spans = spans.map((span, at) => ({ ...span, number: at + 1 })).sort((a, b) => a.start - b.start);
    this.lights = lights;
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
      add(box, clipped(this.bytes.slice(place, low), ANSWER));
      box.append(this.span(span, low, high));
      place = high;
    }
    add(box, clipped(this.bytes.slice(place, end), ANSWER));
    return box;
  }

  span(span, low, high) {
    const state = !span.scored ? "unscored" : span.good ? "grounded" : "ungrounded";
    const how = span.strict ? "lax and strict" : span.lax ? "lax only" : "not grounded";
    const said = span.scored ? `span ${span.number}: ${state}, ${how}` : `span ${span.number}: beyond the cap, not scored`;
    const about = { said, evidence: span.matches.map((match) => this.evidence(match)) };
    const tag = make("span", { class: "tag", role: "button", tabindex: "0", "aria-label": said, title: said },
      `${span.scored ? (span.good ? "✓" : "✗") : "–"}${span.number}`);
    const box = make("span", { class: `span ${state}` }, this.lights.bind(tag, about));
    let place = low;
    for (const atom of this.atoms(span)) {
      if (atom.start < place || atom.end > high) continue;
      add(box, clipped(this.bytes.slice(place, atom.start), ANSWER));
      box.append(this.atom(atom));
      place = atom.end;
    }
    add(box, clipped(this.bytes.slice(place, high), ANSWER));
    return box;
  }

  // Values with their label; of the other matches what is left between them.
  atoms(span) {
    const atoms = span.values.map((value) => ({
      ...value, matches: span.matches.filter((match) => match.start < value.end && value.start < match.end),
    }));
    for (const match of span.matches) {
      let place = match.start;
      const inside = span.values.filter((value) => value.start < match.end && match.start < value.end)
        .sort((a, b) => a.start - b.start);
      for (const cut of [...inside, { start: match.end, end: match.end }]) {
        if (cut.start > place) atoms.push({ ...labelOf(match), start: place, end: cut.start, matches: [match] });
        place = Math.max(place, cut.end);
      }
    }
    return atoms.filter((atom) => this.bytes.slice(atom.start, atom.end).trim())
      .sort((a, b) => a.start - b.start || b.end - a.end);
  }

  evidence(match) {
    const value = match.value instanceof BigNumber ? match.value.source : match.value;
    return { match, words: [this.bytes.slice(match.start, match.end), String(value)] };
  }

  atom(atom) {
    const text = this.bytes.slice(atom.start, atom.end);
    const [sign, meaning] = LABELS[atom.label];
    const places = atom.matches.map(whereOf).join("; ");
    const said = `${text}: ${meaning.split(": ")[0]} ${places && "by " + places}`.trim();
    const mark = make("mark", {
      class: `value ${atom.label}`, role: "button", tabindex: "0", title: visible(said).slice(0, 300),
      "aria-label": visible(said).slice(0, 300), "data-sign": sign,
    }, clipped(text, 2000));
    const about = { said: `${cut(text)}: ${meaning}`, evidence: atom.matches.map((match) => this.evidence(match)) };
    return this.lights.bind(mark, about);
  }

  // The same as a table: what stands in the answer, and where it comes from.
  table() {
    const rows = this.spans.flatMap((span) => this.atoms(span).flatMap((atom) => {
      const matches = atom.matches.length ? atom.matches : [null];
      return matches.map((match) => this.row(span, atom, match));
    }));
    if (!rows.length) return make("p", { class: "empty" }, "No checkable value and no span was found in the answer.");
    const heads = ["span", "in the answer", "is", "call", "path", "value", "strict"];
    return make("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Evidence" },
      make("table", { class: "evidence" },
        make("thead", {}, make("tr", {}, heads.map((name) => make("th", { scope: "col" }, name)))),
        make("tbody", {}, rows)));
  }

  row(span, atom, match) {
    const quoted = this.bytes.slice(atom.start, atom.end);
    const is = make("span", { class: `value ${atom.label}` }, `${LABELS[atom.label][0]} ${atom.label.replace("_", "-")}`);
    const cells = match === null ? ["", "", "", ""] : [
      match.call < 0 ? "prompt" : match.call, match.path || "/",
      cut(match.value instanceof BigNumber ? match.value.source : String(match.value)), match.strict ? "yes" : "no",
    ];
    const texts = [span.number, cut(quoted), is, ...cells];
    return make("tr", {}, texts.map((cell) => make("td", {}, cell)));
  }
}

function cut(text) {
  return text.length > 120 ? `${text.slice(0, 119)}…` : text;
}

function labelOf(match) {
  const labels = { value: "supported", derived: "derived", error: "error" };
  return { kind: match.kind, label: labels[match.cls] };
}
