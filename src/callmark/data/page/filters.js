// Which rows of the index are shown, and in which order.

const ONE_SIDE = { "": "worst first", run: "order of the run", f1: "lowest F1 first" };
const TWO_SIDES = { "": "what changed first", run: "order of the run", drop: "largest drop first" };
const NEED_NUMBERS = new Set(["f1", "drop"]);

class Filters {
  /** @type {HTMLSelectElement} */ order;
  /** @type {Map<string, Map<string, Set<number>>>} */ members;

  constructor(form, index, twoSides, changed) {
    this.form = form;
    this.twoSides = twoSides;
    this.changed = changed;
    this.search = make("input", { type: "search", id: "search", autocomplete: "off", spellcheck: "false" });
    this.search.addEventListener("input", () => this.later());
    form.replaceChildren(labelled("search ids, prompts, answers  ( / )", this.search, "wide"));
    form.addEventListener("submit", (event) => event.preventDefault());
    this.selects = new Map();
    this.renew(index);
  }

  // Also where rows came in while somebody chooses: what was chosen and typed stays.
  renew(index) {
    this.index = index;
    this.texts = null;
    if (this.form.querySelector("select:focus")) return;
    const values = this.order ? this.values() : null;
    const telling = index.facets.filter((facet) => facet.sets.length > 1);
    this.members = new Map(telling.map((facet) => [facet.key, membersOf(facet)]));
    const orders = Object.entries(this.twoSides ? TWO_SIDES : ONE_SIDE)
      .filter(([name]) => index.numbers.length || !NEED_NUMBERS.has(name));
    this.order = selectOf("order", orders, () => this.changed());
    this.selects = new Map(telling.map((facet) => [facet.key, this.facetSelect(facet)]));
    const fields = [...this.selects].map(([key, select]) =>
      labelled(index.facets.find((facet) => facet.key === key).label, select));
    while (this.form.children.length > 1) this.form.lastChild.remove();
    this.folded = make("details", { id: "more-filters" }, make("summary", {}, "Filters"), make("div", { class: "fields" }, fields));
    this.told = make("div", { id: "set-filters" });
    this.form.append(labelled("order", this.order, "wide"), this.folded, this.told);
    if (values) this.set({ ...values, q: this.search.value });
  }

  facetSelect(facet) {
    const counts = new Array(facet.names.length).fill(0);
    for (const code of facet.codes) for (const name of facet.sets[code]) counts[name] += 1;
    const options = facet.names.map((name, at) => [name, `${wordOf(WORDED[facet.key], name)} (${counts[at].toLocaleString("en")})`]);
    return selectOf(facet.key, [["", "any"], ...options], () => this.changed());
  }

  later() {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.changed(), 60);
  }

  values() {
    const found = { q: this.search.value.trim(), order: this.order.value };
    for (const [key, select] of this.selects) found[key] = select.value;
    return Object.fromEntries(Object.entries(found).filter(([, value]) => value));
  }

  set(values) {
    this.search.value = values.q ?? "";
    this.order.value = values.order ?? "";
    if (this.order.selectedIndex < 0) this.order.value = "";
    for (const [key, select] of this.selects) {
      select.value = values[key] ?? "";
      if (select.selectedIndex < 0) select.value = "";
    }
    this.tell();
  }

  // The filters that are set, each with a way to take it back: whoever was led here sees why.
  tell() {
    const set = [...this.selects].filter(([, select]) => select.value);
    this.told.replaceChildren(...set.map(([key, select]) => {
      const { label } = this.index.facets.find((facet) => facet.key === key);
      const said = `${label}: ${wordOf(WORDED[key], select.value)}`;
      return button(`${said} ×`, () => {
        select.value = "";
        this.changed();
        this.folded.querySelector("summary").focus();
      }, { class: "set-filter", "aria-label": `remove the filter ${said}` });
    }));
  }

  rows() {
    this.tell();
    const tests = [];
    for (const [key, select] of this.selects) {
      const facet = this.index.facets.find((one) => one.key === key);
      const codes = select.value ? this.members.get(key)?.get(select.value) : null;
      if (codes) tests.push((row) => codes.has(facet.codes[row]));
    }
    const words = this.search.value.toLowerCase().split(/\s+/).filter(Boolean);
    if (words.length) {
      this.texts ??= this.index.ids.map((id, row) => `${id}\n${this.index.texts[row]}`.toLowerCase());
      tests.push((row) => words.every((word) => this.texts[row].includes(word)));
    }
    const found = [];
    for (let row = 0; row < this.index.ids.length; row += 1) {
      if (tests.every((test) => test(row))) found.push(row);
    }
    return this.ordered(found);
  }

  ordered(rows) {
    if (this.order.value === "") return this.twoSides ? this.mostFirst(rows, "fails", "gained", "both") : this.worstFirst(rows);
    if (this.order.value === "f1") {
      const numbers = this.index.numbers[0].values;
      return rows.sort((a, b) => (numbers[a] ?? 2) - (numbers[b] ?? 2) || a - b);
    }
    if (this.order.value === "drop") {
      const [before, after] = this.index.numbers.map((one) => one.values);
      const drop = (row) => (before[row] ?? 0) - (after[row] ?? 0);
      return rows.sort((a, b) => drop(b) - drop(a) || a - b);
    }
    return rows;
  }

  // What was lost, then by how many gates a sample falls short of, by its flags and warnings, by its
  // lowest F1. Rank and row are one number, since numbers are sorted ten times as fast as by a rule.
  worstFirst(rows) {
    const facet = (key) => this.index.facets.find((one) => one.key === key);
    const [fails, rules, warns, status] = ["fails", "rule", "warns", "status"].map(facet);
    const lost = status?.names.indexOf("not scored") ?? -1;
    const counts = (one) => one?.sets.map((set) => Math.min(31, set.length)) ?? [];
    const [failed, flagged, warned] = [fails, rules, warns].map(counts);
    const isLost = status?.sets.map((set) => Number(set.includes(lost))) ?? [];
    const at = (table, one, row) => (one ? table[one.codes[row]] : 0);
    const numbers = this.index.numbers[0]?.values;
    const keys = new Float64Array(rows.length);
    rows.forEach((row, place) => {
      const short = numbers?.[row] == null ? 0 : Math.min(1023, Math.round(1023 * (1 - numbers[row])));
      const rank = (((at(isLost, status, row) * 32 + at(failed, fails, row)) * 32 + at(flagged, rules, row)) * 32 + at(warned, warns, row)) * 1024 + short;
      keys[place] = (2 ** 26 - rank) * 2 ** 26 + row;
    });
    return Array.from(keys.sort(), (key) => key % 2 ** 26);
  }

  // By the number of names in a facet, then in the next one.
  mostFirst(rows, ...keys) {
    const counts = keys.map((key) => this.index.facets.find((one) => one.key === key))
      .filter(Boolean).map((facet) => (row) => facet.sets[facet.codes[row]].length);
    return rows.sort((a, b) => counts.reduce((found, count) => found || count(b) - count(a), 0) || a - b);
  }
}

// name -> the codes whose sets hold it
function membersOf(facet) {
  return new Map(facet.names.map((name, at) =>
    [name, new Set(facet.sets.flatMap((set, code) => (set.includes(at) ? [code] : [])))]));
}

function selectOf(id, options, changed) {
  const select = make("select", { id: `by-${id}` },
    options.map(([value, text]) => make("option", { value }, text)));
  select.addEventListener("change", changed);
  return select;
}

function labelled(text, field, kind = "") {
  return make("label", { class: `field ${kind}`.trim(), for: field.id }, make("span", {}, text), field);
}
