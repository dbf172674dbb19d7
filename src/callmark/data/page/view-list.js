// The runs of a folder: list, trend of each metric, two of them compared.

const LOOK_AGAIN = 2000;
const F1_LAX = "integration_f1_macro_lax";

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
    this.editor = make("form", { id: "editor", hidden: true, "aria-label": "Note" });
    this.editor.addEventListener("submit", (event) => event.preventDefault());
    byId("runs").append(
      make("div", { class: "tools" }, labelled("search names, models, datasets, tags and notes  ( / )", this.search, "wide"), labelled("dataset", this.dataset),
        this.compare, this.swap),
      this.picked, this.editor, this.table);
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
    WORDS.metrics = this.listing.words;
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
    const measured = shown.filter((run) => Object.keys(run.metrics).length).reverse();
    drawMatrix(byId("matrix"), measured);
    drawTrends(byId("trends"), measured, (before, run, metric, isWorse) => this.moved(before, run, metric, isWorse));
  }

  // From a step of a trend to the samples behind it.
  moved(before, run, metric, isWorse) {
    this.chosen = [before.id, run.id];
    this.draw();
    byId("said").scrollIntoView({ block: "center" });
    return this.start(false, new URLSearchParams({ view: "samples", [isWorse ? "fails" : "gained"]: metric }).toString());
  }

  datasets(runs) {
    const found = new Map(runs.filter((run) => run.pins.dataset).map((run) => [run.pins.dataset, run.dataset]));
    const before = this.dataset.value;
    const count = (name) => [...found.values()].filter((other) => other === name).length;
    // A fingerprint is told only where names do not tell datasets apart.
    const options = [["", "any"], ...[...found].map(([pin, name]) => [pin, name && count(name) === 1 ? name : [name, pin].filter(Boolean).join(" · ")])];
    if (options.length === this.dataset.options.length) return;
    this.dataset.replaceChildren(...options.map(([value, text]) => make("option", { value }, text)));
    this.dataset.value = found.has(before) ? before : "";
  }

  filtered(runs) {
    const words = this.search.value.toLowerCase().split(/\s+/).filter(Boolean);
    return runs.filter((run) => (!this.dataset.value || run.pins.dataset === this.dataset.value)
      && words.every((word) => `${run.name} ${run.model} ${run.dataset} ${run.word} ${run.tags.join(" ")} ${run.note}`.toLowerCase().includes(word)));
  }

  rows(runs) {
    const names = ["compare", "verdict", "run", "model", "dataset", "samples", wordOf("metrics", F1_LAX), "last written", "note"];
    const right = new Set([5, 6]);
    const table = make("table", {},
      make("thead", {}, make("tr", {}, names.map((name, at) => make("th", { scope: "col", class: right.has(at) ? "right" : null }, name)))),
      make("tbody", {}, runs.map((run) => this.row(run, right))));
    stacking(table);
    return make("div", {}, make("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Runs" }, table), pinTable(runs));
  }

  row(run, right) {
    const f1 = run.metrics[F1_LAX]?.value;
    const trials = run.trials !== null && run.trials !== run.samples ? ` (${plural(run.trials, "trial")})` : "";
    const cells = [
      run.finished ? this.choice(run) : null,
      make("span", { class: `badge ${run.style}` }, `${SIGNS[run.style] ?? ""} ${run.word}`.trim()),
      [make("a", { href: `run/${run.id}`, id: `open-${run.id}` }, run.name), make("p", { class: "why" }, run.reason), notesOf(run)],
      run.model || "–", run.dataset || "–",
      run.samples === null ? "–" : run.samples.toLocaleString("en") + trials,
      threeDigits(f1), shownDate(run.written),
      run.finished ? button(run.note || run.tags.length ? "edit" : "add", () => this.edit(run), { id: `note-${run.id}`, "aria-label": `${run.note || run.tags.length ? "edit" : "add"}: note on ${run.name}` }) : null,
    ];
    return make("tr", {}, cells.map((cell, at) => make("td", { class: right.has(at) ? "right" : at === 7 ? "date" : null }, [cell])));
  }

  // The words of a person about a run. They stand outside of the table, which is drawn anew.
  edit(run) {
    const note = make("input", { id: "edit-note", maxlength: "2000", value: run.note, autocomplete: "off" });
    const tags = make("input", { id: "edit-tags", maxlength: "500", value: run.tags.join(", "), autocomplete: "off" });
    const close = () => {
      this.editor.hidden = true;
      document.getElementById(`note-${run.id}`)?.focus();
    };
    const save = async () => {
      const body = JSON.stringify({ note: note.value, tags: tags.value.split(",") });
      const options = { method: "POST", headers: { "Content-Type": "application/json" }, body };
      try {
        Object.assign(run, JSON.parse(await ask(`run/${run.id}/note`, options)));
        this.draw();
        close();
      } catch (error) {
        this.say(/** @type {Error} */ (error).message);
      }
    };
    this.editor.onsubmit = save;
    this.editor.replaceChildren(make("p", { class: "strong" }, `Note on ${run.name}`),
      labelled("note", note, "wide"), labelled("tags, with commas between them", tags, "wide"),
      make("div", { class: "tools" }, make("button", { type: "submit", id: "save-note" }, "Save"), button("Cancel", close)));
    this.editor.hidden = false;
    note.focus();
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

  async start(common, fragment = "") {
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
      location.assign(`compare/${state.id}${fragment ? `#${fragment}` : ""}`);
    } catch (error) {
      const { message } = /** @type {Error} */ (error);
      this.say(message, message.includes("--common") ? button("Compare the samples that are the same", () => this.start(true, fragment), { id: "common" }) : null);
    }
    this.buttons();
  }

  say(text, more = null) {
    byId("said").replaceChildren();
    add(byId("said"), [text, more]);
  }
}

function notesOf(run) {
  return [run.tags.length ? make("ul", { class: "chips" }, run.tags.map((tag) => make("li", { class: "chip" }, tag))) : null,
    run.note ? make("p", { class: "note" }, run.note) : null];
}

// What only a program compares: on demand, and out of the way.
function pinTable(runs) {
  const pinned = runs.filter((run) => Object.keys(run.pins).length);
  if (!pinned.length) return null;
  return make("details", { id: "fingerprints" }, make("summary", {}, "Fingerprints"),
    make("dl", { class: "pins" }, pinned.map((run) => [make("dt", {}, run.name),
      make("dd", {}, Object.entries(run.pins).map(([name, pin]) => `${name} ${pin}`).join("  "))])));
}

const runList = new RunList();
runList.follow().catch((error) => runList.say(error.message));
