// The page itself: which view is shown, and what the address says about it.

async function start(source) {
  const head = await source.head();
  const page = new Page(source, head);
  page.overview();
  const index = await source.index();
  page.samples(index);
}

class Page {
  /** @type {Filters} */ filters;
  /** @type {SampleList} */ list;

  constructor(source, head) {
    this.source = source;
    this.head = head;
    Object.assign(WORDS, head.words ?? {});
    this.index = null;
    this.row = null;
    /** @type {((sample: any) => void) | null} */
    this.filled = null; // who wants to know which sample is shown
    theme();
  }

  overview() {
    this.top(() => showOverview(byId("overview"), this.head, (pick) => this.pick(pick)));
  }

  top(show) {
    byId("title").replaceChildren(visible(this.head.title));
    badge(byId("badge"), this.head);
    show();
    this.view(new URLSearchParams(location.hash.slice(1)).has("s") ? "samples" : "overview");
  }

  samples(index) {
    this.index = index;
    this.count();
    showClusters(index, this.head.kind, (pick) => this.pick(pick));
    if (this.head.left_out) {
      byId("filters").before(make("p", { class: "left-out" }, this.head.left_out));
    }
    this.filters = new Filters(byId("filters"), index, this.head.kind !== "run", () => {
      this.refresh();
      this.remember();
    });
    this.list = new SampleList(byId("list"), index, (row, clicked) => this.open(row, clicked));
    addEventListener("hashchange", () => this.follow());
    addEventListener("keydown", (event) => this.key(event));
    this.follow();
    document.body.dataset.ready = "yes";
  }

  // There are more rows than before: a run goes on.
  renew(index) {
    this.index = index;
    this.count();
    this.filters.renew(index);
    this.list.index = index;
    this.refresh(true);
    if (this.row === null && new URLSearchParams(location.hash.slice(1)).has("s")) this.follow();
  }

  count() {
    const many = this.index.ids.length.toLocaleString("en");
    byId("to-samples").textContent = this.head.kind === "probe" ? `Cases (${many})` : `Samples (${many})`;
    byId("to-samples").hidden = this.hasNoSamples();
  }

  // What a row of the list is.
  noun() {
    return this.head.kind === "probe" ? "case" : "trial";
  }

  // Of several runs only what all of them say together is shown.
  hasNoSamples() {
    return this.head.kind === "runs";
  }

  // What the address asks for: #view=samples, #q=…&kind=…, #s=ID&t=0
  follow() {
    const asked = Object.fromEntries(new URLSearchParams(location.hash.slice(1)));
    const { view, s: id, t: trial, ...filters } = asked;
    this.filters.set(filters);
    this.row = id === undefined ? null : this.find(id, Number(trial ?? 0));
    this.refresh();
    const samples = !this.hasNoSamples() && (view === "samples" || id !== undefined || Object.keys(filters).length > 0);
    this.view(samples ? "samples" : "overview");
    // Beside the list there is room for a sample: the first one is what most people want to see.
    if (samples && id === undefined && !matchMedia("(max-width: 860px)").matches) this.row = this.list.first();
    if (id !== undefined && this.row === null) this.showUnlisted(id, Number(trial ?? 0));
    else this.show(true);
  }

  find(id, trial) {
    const { ids, trials } = this.index;
    const row = ids.findIndex((known, at) => known === id && trials[at] === trial);
    return row < 0 ? null : row;
  }

  refresh(keep = false) {
    const rows = this.filters.rows();
    byId("found").textContent = rows.length === this.index.ids.length
      ? plural(rows.length, this.noun()) : `${rows.length.toLocaleString("en")} of ${plural(this.index.ids.length, this.noun())}`;
    byId("list").hidden = rows.length === 0;
    byId("none").hidden = rows.length > 0;
    byId("none").textContent = this.index.ids.length ? "Nothing fits these filters." : "This run has no trials to show.";
    this.list.show(rows, this.row, keep);
  }

  open(row, clicked) {
    this.row = row;
    this.remember();
    this.show(clicked);
  }

  // `wanted`: somebody pointed at it. On a narrow screen it stands below the list.
  async show(wanted) {
    if (this.row === null) {
      this.empty(this.index.ids.length ? "Choose a sample: its conversation appears here." : "Nothing to show.");
      return;
    }
    const row = this.row;
    const sample = await this.source.sample(row).catch((error) => error);
    if (row !== this.row) return;
    if (sample instanceof Error) {
      this.empty(sample.message);
      return;
    }
    const about = {
      id: this.index.ids[row], trial: this.index.trials[row], fails: this.list.names("fails", row),
      failsLabel: this.list.label("fails"), gained: this.list.names("gained", row), both: this.list.names("both", row), warns: this.list.names("warns", row),
      kinds: [...this.list.names("kind", row), ...this.list.names("status", row), ...this.list.names("stop", row).map((stop) => `stopped by ${stop}`)],
    };
    if (sample === null) {
      const id = about.id;
      this.empty(`${id} is only listed here, to keep the file small. See it with: callmark show RESULTS ${id}`);
      return;
    }
    this.fill(sample, about);
    if (wanted && matchMedia("(max-width: 860px)").matches) byId("sample").scrollIntoView();
  }

  // A source may know samples that its index does not list.
  async showUnlisted(id, trial) {
    const absent = `This page has no sample ${id}, trial ${trial}.`;
    const sample = this.source.named ? await this.source.named(id, trial).catch(() => null) : null;
    if (sample === null) this.empty(absent);
    else this.fill(sample, { id, trial, fails: [], failsLabel: "", gained: [], both: [], warns: [], kinds: ["not in the list"] });
  }

  fill(sample, about) {
    byId("sample").replaceChildren();
    add(byId("sample"), sampleView(sample, about));
    byId("sample").scrollTop = 0;
    this.filled?.(sample);
  }

  empty(text) {
    byId("sample").replaceChildren(make("p", { class: "empty" }, text));
  }

  pick({ facet, value }) {
    location.hash = new URLSearchParams({ view: "samples", [facet]: value }).toString();
  }

  remember() {
    const asked = new URLSearchParams({ view: "samples", ...this.filters.values() });
    if (this.row !== null) {
      asked.set("s", this.index.ids[this.row]);
      asked.set("t", this.index.trials[this.row]);
    }
    history.replaceState(null, "", `#${asked}`);
  }

  view(name) {
    for (const one of ["overview", "samples"]) {
      byId(one).hidden = one !== name;
      if (one === name) byId(`to-${one}`).setAttribute("aria-current", "page");
      else byId(`to-${one}`).removeAttribute("aria-current");
    }
    document.body.dataset.view = name;
    if (name === "samples") this.list?.draw();
  }

  key(event) {
    if (this.hasNoSamples() || isTyped(event) || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "/") {
      event.preventDefault();
      this.view("samples");
      this.filters.search.focus();
    } else if (event.key === "j" || event.key === "k") {
      this.view("samples");
      this.list.move(event.key === "j" ? 1 : -1);
    }
  }
}

function theme() {
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const root = document.documentElement;
  const toggle = byId("theme");
  const isDark = () => (root.dataset.theme ?? (dark.matches ? "dark" : "light")) === "dark";
  const say = () => toggle.setAttribute("aria-pressed", String(isDark()));
  toggle.addEventListener("click", () => {
    root.dataset.theme = isDark() ? "light" : "dark";
    say();
  });
  dark.addEventListener("change", say);
  say();
}
