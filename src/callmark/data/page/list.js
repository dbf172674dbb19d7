// The list of samples. Only the rows that can be seen are elements: 100,000 are no problem.

const ROW = 62;
const AROUND = 6;
// What a row's first status says, as a mark; whatever else passes.
const MARKS = {
  "not scored": "warn", "falls short": "bad", flagged: "bad", "only warns": "warn", "nothing checked": "quiet", "wrong on both sides": "bad",
};

// A share or a mean has three digits, a count has none.
function shareOrCount(number) {
  return number > 1 && Number.isInteger(number) ? String(number) : threeDigits(number);
}

class SampleList {
  constructor(box, index, opened) {
    this.box = box;
    this.index = index;
    this.opened = opened;
    this.rows = [];
    this.drawn = new Map(); // place in `rows` -> its element
    this.current = -1; // the place in `rows`
    this.space = make("div", { class: "space", role: "presentation" });
    box.replaceChildren(this.space);
    box.addEventListener("scroll", () => this.draw(), { passive: true });
    box.addEventListener("keydown", (event) => this.key(event));
    new ResizeObserver(() => this.draw()).observe(box);
  }

  show(rows, selected, keep = false) {
    this.rows = rows;
    this.drawn.clear();
    this.space.replaceChildren();
    this.current = selected === null ? -1 : rows.indexOf(selected);
    this.space.style.height = `${rows.length * ROW}px`;
    if (!keep) {
      if (this.current >= 0) this.reveal();
      else this.box.scrollTop = 0;
    }
    this.draw();
  }

  // The first row, chosen; null: there is none.
  first() {
    this.current = this.rows.length ? 0 : -1;
    this.draw();
    return this.rows[0] ?? null;
  }

  key(event) {
    const page = Math.max(1, Math.floor(this.box.clientHeight / ROW) - 1);
    const steps = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -Infinity, End: Infinity };
    if (event.key in steps) {
      event.preventDefault();
      this.move(steps[event.key]);
    } else if (event.key === "Enter") byId("sample").focus();
  }

  move(step) {
    if (!this.rows.length) return;
    const wanted = this.current < 0 ? (step < 0 && step > -Infinity ? this.rows.length - 1 : 0) : this.current + step;
    const first = this.current < 0 && step !== Infinity;
    this.current = first ? wanted : Math.min(this.rows.length - 1, Math.max(0, wanted));
    this.reveal();
    this.draw();
    this.opened(this.rows[this.current], false);
  }

  reveal() {
    const top = this.current * ROW;
    if (top < this.box.scrollTop) this.box.scrollTop = top;
    else if (top + ROW > this.box.scrollTop + this.box.clientHeight) {
      this.box.scrollTop = top + ROW - this.box.clientHeight;
    }
  }

  draw() {
    const first = Math.max(0, Math.floor(this.box.scrollTop / ROW) - AROUND);
    const last = Math.min(this.rows.length, Math.ceil((this.box.scrollTop + this.box.clientHeight) / ROW) + AROUND);
    for (const [at, option] of this.drawn) {
      if (at >= first && at < last) continue;
      option.remove();
      this.drawn.delete(at);
    }
    for (let at = first; at < last; at += 1) {
      if (!this.drawn.has(at)) this.drawn.set(at, this.space.appendChild(this.option(at)));
      this.drawn.get(at).setAttribute("aria-selected", String(at === this.current));
    }
    const active = this.current >= first && this.current < last ? `row-${this.current}` : null;
    if (active) this.box.setAttribute("aria-activedescendant", active);
    else this.box.removeAttribute("aria-activedescendant");
  }

  option(at) {
    const row = this.rows[at];
    const { ids, trials, texts, numbers } = this.index;
    const facet = (key) => this.names(key, row);
    const fails = facet("fails");
    const standing = facet("status").find((one) => one in MARKS);
    const lost = standing === "not scored";
    const state = fails.length && !lost ? "bad" : MARKS[standing] ?? "good";
    // A checkpoint of a series is named below; it is no trial.
    const trial = trials[row] && !facet("checkpoint").length ? ` · trial ${trials[row]}` : "";
    const scores = numbers.filter((one) => one.values[row] !== null)
      .map((one) => `${one.label} ${shareOrCount(one.values[row])}`).join("  ");
    const option = make("div", {
      role: "option", id: `row-${at}`, class: "row",
      "aria-setsize": this.rows.length, "aria-posinset": at + 1,
    },
      make("span", { class: `sign ${state}`, "aria-label": fails.length && !lost ? this.label("fails") : standing ?? "nothing to look at", role: "img" }, SIGNS[state]),
      make("span", { class: "id" }, ids[row] + trial),
      make("span", { class: "text quiet" }, texts[row].split("\n")[0]),
      make("span", { class: "small quiet" }, [facet("like").join(", ").replaceAll("`", "") || fails.map((one) => wordOf("metrics", one)).join(", "), scores, facet("kind").join(" ")].filter(Boolean).join(" · ")));
    option.style.transform = `translateY(${at * ROW}px)`;
    option.addEventListener("click", () => {
      this.current = at;
      this.draw();
      this.opened(row, true);
    });
    return option;
  }

  label(key) {
    return this.index.facets.find((one) => one.key === key)?.label ?? "";
  }

  names(key, row) {
    const facet = this.index.facets.find((one) => one.key === key);
    return facet ? facet.sets[facet.codes[row]].map((at) => facet.names[at]) : [];
  }
}
