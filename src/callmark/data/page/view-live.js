// A run that goes on: its journal is asked for what is new, every two seconds.

const EVERY = 2000;
const SO_FAR = { "not scored": "errors", "call without a fixture": "with a call without a fixture", "malformed call": "with a malformed call",
  "invalid arguments": "with invalid arguments", "firm flag": "with a firm flag", "falls short": "falling short of a gate" };

class GrowingFacet {
  constructor({ key, label }, rows) {
    this.key = key;
    this.label = label;
    this.names = [];
    this.sets = [];
    this.codes = [];
    this.known = new Map();
    for (let row = 0; row < rows; row += 1) this.put(row, []);
  }

  put(row, names) {
    const places = names.map((name) => {
      if (!this.names.includes(name)) this.names.push(name);
      return this.names.indexOf(name);
    });
    const key = places.join();
    if (!this.known.has(key)) {
      this.known.set(key, this.sets.length);
      this.sets.push(places);
    }
    this.codes[row] = this.known.get(key);
  }
}

// An index to which pieces are added. A trial that was tried again keeps its row.
class GrowingIndex {
  constructor() {
    this.ids = [];
    this.trials = [];
    this.texts = [];
    this.at = [];
    this.facets = [];
    this.numbers = [];
    this.rows = new Map();
  }

  add(piece) {
    for (const { key, label } of piece.facets) {
      if (!this.facet(key)) this.facets.push(new GrowingFacet({ key, label }, this.ids.length));
    }
    if (!this.numbers.length) this.numbers = piece.numbers.map(({ label }) => ({ label, values: [] }));
    for (const from of piece.ids.keys()) this.put(piece, from);
  }

  put(piece, from) {
    const key = `${piece.trials[from]}:${piece.ids[from]}`;
    if (!this.rows.has(key)) this.rows.set(key, this.ids.length);
    const row = this.rows.get(key);
    for (const column of ["ids", "trials", "texts", "at"]) this[column][row] = piece[column][from];
    this.numbers.forEach((one, at) => { one.values[row] = piece.numbers[at].values[from]; });
    for (const facet of this.facets) {
      const given = piece.facets.find((one) => one.key === facet.key);
      facet.put(row, given ? given.sets[given.codes[from]].map((at) => given.names[at]) : []);
    }
  }

  facet(key) {
    return this.facets.find((one) => one.key === key);
  }

  count(key, name) {
    const facet = this.facet(key);
    const place = facet ? facet.names.indexOf(name) : -1;
    return place < 0 ? 0 : facet.codes.filter((code) => facet.sets[code].includes(place)).length;
  }

  mean(at) {
    const values = (this.numbers[at]?.values ?? []).filter((value) => value !== null);
    return values.length ? values.reduce((sum, value) => sum + value, 0) / values.length : null;
  }
}

class LiveRun {
  constructor(run) {
    this.run = run;
    this.index = new GrowingIndex();
    this.from = 0;
    this.pins = [];
    /** @type {any} */
    this.expected = null;
    /** @type {any} */
    this.page = null;
    this.shown = -1;
    this.opened = { count: 0, when: 0 }; // how many there were when, to tell how fast it goes
  }

  async follow() {
    for (;;) {
      const piece = JSON.parse(await ask(`${this.run}/piece?from=${this.from}`));
      if (piece.became) {
        await pause(EVERY); // its report is about to be written
        location.replace(`${piece.became}${location.hash}`);
        return;
      }
      if (piece.start < this.from) {
        location.reload(); // it was begun anew
        return;
      }
      this.index.add(piece.index);
      const moved = piece.next > this.from;
      this.from = piece.next;
      if (piece.pins.length) this.pins = piece.pins;
      if (!piece.more || this.page === null) await this.show(piece.age, moved);
      if (!piece.more) await pause(EVERY);
    }
  }

  async show(age, moved) {
    if (this.page === null) {
      this.expected = await this.earlier();
      this.opened = { count: this.index.ids.length, when: performance.now() };
      const source = { sample: (row) => sampleFrom(this.run, { at: this.index.at[row] }) };
      const head = { title: document.title.split(" · ")[0], word: "unfinished", style: "quiet", left_out: "" };
      this.page = new Page(source, head);
      this.page.top(() => this.overview());
      this.page.samples(this.index);
    } else if (moved) {
      this.page.renew(this.index);
      this.numbers();
    }
    byId("live-age").textContent = `The last trial was written ${plural(Math.round(age), "second")} ago.`;
  }

  // How many trials an earlier run over the same dataset had.
  async earlier() {
    const dataset = this.pins.find(([name]) => name === "dataset_sha256")?.[1] ?? "";
    const { runs } = JSON.parse(await ask("../runs"));
    return runs.find((run) => run.trials && run.pins.dataset && dataset.startsWith(run.pins.dataset)) ?? null;
  }

  overview() {
    const badged = make("p", { class: "word" });
    badge(badged, this.page.head);
    byId("overview").replaceChildren(
      make("div", { class: "hero quiet" }, badged,
        make("p", { class: "reason", id: "live-said", role: "status" }),
        make("div", { id: "live-bar" }),
        make("p", { class: "quiet", id: "live-age" })),
      make("div", { id: "live-table" }),
      pinsOf({ pins: this.pins }),
      make("p", { class: "made quiet" }, "Samples are marked by the gates in force here; nothing passes before the run has ended."));
    this.numbers();
  }

  numbers() {
    const done = this.index.ids.length;
    byId("live-said").textContent = `${plural(done, "trial")} finished, ${plural(this.index.count("status", "not scored"), "error")}, `
      + `${this.index.count("status", "call without a fixture").toLocaleString("en")} with a call without a fixture${this.pace()}`;
    const known = this.expected !== null && this.expected.trials >= done;
    byId("live-bar").replaceChildren();
    if (known) {
      const text = `${Math.floor((100 * done) / this.expected.trials)} % of the ${plural(this.expected.trials, "trial")} of ${this.expected.name}, over the same dataset`;
      byId("live-bar").append(make("progress", { max: this.expected.trials, value: done, "aria-label": text }), make("p", { class: "quiet" }, text));
    }
    if (!byId("live-table").contains(document.activeElement)) byId("live-table").replaceChildren(this.table());
  }

  pace() {
    const minutes = (performance.now() - this.opened.when) / 60000;
    const added = this.index.ids.length - this.opened.count;
    return added > 0 ? `; ${Math.round(added / minutes).toLocaleString("en")} a minute` : "";
  }

  table() {
    const counted = Object.entries(SO_FAR).map(([name, text]) => [name, text, this.index.count("status", name)]).filter(([, , count]) => count);
    const rows = counted.map(([name, text, count]) => [{ text: `trials ${text}` }, { text: count.toLocaleString("en"), pick: { facet: "status", value: name } }]);
    const means = this.index.numbers.map((one, at) => [{ text: `mean ${one.label} of eligible trials` }, { text: threeDigits(this.index.mean(at)) }]);
    return tableOf({ id: "so-far", title: "So far", columns: ["what", "value"], right: [1], rows: [...rows, ...means] }, (pick) => this.page.pick(pick));
  }
}

instead("Reading the journal…", "status");
new LiveRun(location.pathname).follow().catch((error) => {
  const said = document.getElementById("live-said");
  if (said) said.textContent = error.message;
  else instead(error.message, "alert");
});
