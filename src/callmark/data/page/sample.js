// One sample: the answer with its marks first, beside it what the tools returned, below it the
// conversation. Nothing stands there twice: what is shown elsewhere is pointed at.

const EXTRACTOR_WHY = {
  flag: "an option says so", config: "the settings file says so", header: "the dataset's header says so",
  wrapper: "the prompt wrapper asks for lines with Integration:", system_message: "a system message asks for lines with Integration:",
  teacher_text: "teacher_text has lines with Integration:", default: "no prompt asks for lines with Integration:",
};

function sampleView(sample, about) {
  return [
    make("header", { class: "sample-head" },
      make("h2", {}, about.id),
      make("p", { class: "quiet" }, [...(sample.about ?? [`trial ${about.trial}`]), ...about.kinds].join(" · ")),
      chipsOf(sample, about)),
    sample.sides.length > 1 ? twoSides(sample) : oneSide(sample.sides[0].result),
    changesView(sample.changes),
  ];
}

function chipsOf(sample, about) {
  const word = (name) => wordOf("metrics", name);
  const chips = [
    ...about.fails.map((name) => chip(sample.about ? name : `${about.failsLabel}: ${word(name)}`, "bad")),
    ...about.both.map((name) => chip(`wrong on both sides: ${word(name)}`, "bad")),
    ...about.warns.map((name) => chip(`warning: ${word(name)}`, "warn")),
    ...about.gained.map((name) => chip(sample.about ? name : `gained: ${word(name)}`, "good")),
  ];
  return chips.length ? make("ul", { class: "chips" }, chips) : null;
}

function chip(text, state) {
  return make("li", { class: `chip ${state}` }, `${SIGNS[state] ?? ""} ${text}`.trim());
}

function folded(title, ...parts) {
  return make("details", { class: "folded" }, make("summary", {}, title), parts);
}

function oneSide(result) {
  const talk = new Talk(result);
  const { scores } = result;
  return make("section", { class: "one", "aria-label": "Conversation" },
    make("div", { class: "lead" },
      make("div", { class: "said-side" },
        result.error ? make("p", { class: "card bad" }, `Not scored: ${result.error}`) : null,
        talk.question(), talk.answers(),
        scores ? [legendOfMarks([talk.answer]), talk.answer.flags(), scoresView(scores, result.metadata?.required_facts ?? []), problemsView(scores)] : null,
        talk.lights.peek),
      talk.evidence()),
    talk.conversation(),
    scores ? folded("Every value and where it comes from", readWith(result), talk.answer.table()) : null,
    talk.more(),
    talk.dataset());
}

function readWith(result) {
  const why = EXTRACTOR_WHY[result.span_extractor_by];
  return make("p", { class: "quiet" }, `Read with ${result.span_extractor}${why ? ` (${why})` : ""}.`);
}

// What a sample was judged by: [name, true, false or null] each.
function checkedOf(scores) {
  return Object.entries({
    "valid arguments": scores.json_args_valid, "right tools in the right order": scores.multi_call_parity_ok,
    "recovered from the error": scores.recovered, "honest about an empty result": scores.negative_control_ok,
    "no call where none was needed": scores.controls_with_integration === null ? null : scores.controls_with_integration === 0,
    "asked back": scores.clarify_ok, "numbers in the right locale": scores.locale_probe_ok, privacy: scores.privacy_ok,
    checks: scores.checks_ok ?? null,
    "as it was observed": scores.changes ? !scores.changes.length : null,
  }).filter(([, verdict]) => verdict !== null);
}

// Numbers with what they are made of: [name, number, made of].
function numbersOf(scores) {
  const kind = scores.recall_kind === "facts" ? "required facts stated" : "required results used";
  const parts = scores.kind !== "eligible" ? [] : [["built on results (F1)", scores.lax], ...(scores.strict_keys ? [["on key fields (F1)", scores.strict]] : [])];
  const numbers = parts.map(([name, part]) =>
    [name, threeDigits(part.f1), `${part.grounded} of ${scores.spans_counted} passages grounded, ${part.found} of ${scores.facts_required} ${kind}`]);
  if (scores.call_f1 !== null) {
    numbers.push(["right calls (F1)", threeDigits(scores.call_f1), `${scores.calls.matched} of ${scores.calls.expected} expected calls, ${scores.calls.observed} made`]);
  }
  return [...numbers, ...Object.entries(scores.more ?? {}).map(([name, value]) => [name, measureText(value), "of a plug-in"])];
}

function scoresView(scores, facts) {
  const numbers = numbersOf(scores).map(([name, number, from]) =>
    make("div", { class: "score" }, make("dt", {}, name), make("dd", {}, number), make("dd", { class: "quiet" }, from)));
  const listed = differencesOf(scores, facts);
  return [
    numbers.length ? make("dl", { class: "scores" }, numbers) : null,
    make("ul", { class: "chips", "aria-label": "Checks" }, checkedOf(scores).map(([name, verdict]) => chip(name, verdict ? "good" : "bad"))),
    listed.length ? make("ul", { class: "differences" }, listed) : null,
    checksView(scores.checks ?? []),
  ];
}

function differencesOf(scores, facts) {
  const { missing, extra, differing, reordered } = scores.calls.differences;
  const told = (word, text) => make("li", {}, make("b", {}, `${word}: `), make("code", {}, clipped(text, 400)));
  // Where the dataset expects nothing of the calls, none of them is one too many.
  const listed = scores.kind === "unclassified" ? [] : [["missing call", missing], ["extra call", extra], ["other arguments", differing]]
    .flatMap(([word, calls]) => calls.map((call) => told(word, call)));
  if (reordered && scores.kind !== "unclassified") listed.push(make("li", {}, "the calls came in another order"));
  for (const at of scores.missing_facts ?? []) {
    if (at < facts.length) listed.push(told("missing fact", JSON.stringify(facts[at])));
  }
  return [...listed, ...(scores.changes ?? []).map((change) => told("changed", change))];
}

function measureText(value) {
  if (value === null) return "not judged";
  if (typeof value === "boolean") return value ? "yes" : "no";
  return Number.isInteger(value) ? String(value) : threeDigits(value);
}

function checksView(checks) {
  if (!checks.length) return null;
  return make("ul", { class: "differences checks", "aria-label": "Checks of this sample" }, checks.map((check) => {
    const said = check.ok ? "ok" : check.reason;
    return make("li", {}, make("b", {}, `${SIGNS[check.ok ? "good" : "bad"]} `), clipped(`${wantedText(check)}: ${said}`, 400));
  }));
}

function wantedText({ kind, wanted }) {
  if (kind === "json_path") return `${kind} ${wanted.path} = ${JSON.stringify(wanted.equals)}`;
  if (kind === "before") return `${kind} ${wanted.join(", ")}`;
  return `${kind} ${kind === "called" || kind === "not_called" ? wanted : JSON.stringify(wanted)}`;
}

function problemsView(scores) {
  const found = scores.privacy.findings.map((one) =>
    `${one.kind} in ${one.where}: ${one.severity}${one.echoed ? ", echoed" : ""}`);
  found.push(...scores.privacy.invented_urls.map((url) => `invented URL: ${url}`));
  if (!found.length) return null;
  return [make("h4", {}, "Privacy"), make("ul", { class: "differences" }, found.map((text) => make("li", {}, clipped(text, 400))))];
}

function changesView(changes) {
  if (!changes?.length) return null;
  return make("section", { "aria-label": "Arguments that changed" }, make("h4", {}, "Arguments that changed"),
    make("ul", { class: "differences" }, changes.map((text) => make("li", {}, make("code", {}, text)))));
}
