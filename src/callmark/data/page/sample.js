// One sample: its conversation turn by turn, calls with their ledger, the answer with its evidence.

const PROMPT = 6000;
const ALL_NODES = 30000; // of all results of a conversation
const LONG_SYSTEM = 600; // a policy of several screens stands before every conversation
const CALL_STATES = {
  ok: "good", error: "warn", miss: "bad", wrong_call: "bad", malformed: "bad", tool_not_offered: "bad",
  tool_not_allowed: "bad", invalid_arguments: "bad", unanswered: "quiet",
};
const NOT_FOUND = {
  miss: "no fixture: a miss grounds nothing",
  wrong_call: "no fixture, and not a call that was expected: the model's mistake",
};
const ORIGINS = {
  "fixture:exact": "from a fixture, exact match", "fixture:pattern": "from a fixture, by its pattern",
  "fixture:any": "from a fixture that fits any arguments", recorded: "recorded with the conversation",
  "fault:fail": "a planted fault: the tool fails", "fault:timeout": "a planted fault: a timeout",
  "fault:error": "a planted fault: an error", "fault:empty": "a planted fault: an empty result",
  "fault:truncated": "a planted fault: a truncated result",
};

const EXTRACTOR_WHY = {
  flag: "an option says so", config: "the settings file says so", header: "the dataset's header says so",
  wrapper: "the prompt wrapper asks for Integration:", system_message: "a system message asks for Integration:",
  teacher_text: "teacher_text has Integration:", default: "nothing asks the model for Integration:",
};

function sampleView(sample, about) {
  const two = sample.sides.length > 1;
  return [
    make("header", { class: "sample-head" },
      make("h2", {}, about.id),
      make("p", { class: "quiet" }, [...(sample.about ?? [`trial ${about.trial}`]), ...about.kinds].join(" · ")),
      about.fails.length + about.gained.length + about.warns.length
        ? make("ul", { class: "chips" }, about.fails.map((name) => chip(sample.about ? name : `${about.failsLabel} ${name}`, "bad")),
          about.warns.map((name) => chip(`warned by ${name}`, "warn")),
          about.gained.map((name) => chip(sample.about ? name : `gained ${name}`, "good")))
        : null),
    make("div", { class: two ? "sides" : "side" }, sample.sides.map((side) => sideView(side, two))),
    changesView(sample.changes),
  ];
}

function sideView(side, titled) {
  const parts = side.result.prompt === undefined ? caseView(side.result) : conversationView(side.result);
  return make("section", { class: "one", "aria-label": side.label || "Conversation" },
    titled ? make("h3", { class: "side-name" }, side.label) : null, parts);
}

function conversationView(result) {
  const trees = new Map();
  const lights = new Lights(trees, result.tool_trace.map((entry) => entry.name));
  const answer = new MarkedAnswer(result.model_output, result.scores, lights);
  return [
    result.error ? make("p", { class: "card bad" }, `Not scored: ${result.error}`) : null,
    result.scores ? scoresView(result.scores, result.metadata?.required_facts ?? []) : null,
    promptView(result.prompt, trees),
    turnsView(result, answer, trees),
    result.scores ? [answer.flags(), make("h4", {}, "Evidence"), readWith(result), answer.legend(), answer.table(), problemsView(result.scores)] : null,
    result.reasoning ? folded("Reasoning", make("div", { class: "text" }, clipped(result.reasoning, PROMPT))) : null,
    result.thought_calls ? folded("Calls that it only thought of", result.thought_calls.map(thoughtCall)) : null,
    folded("What the dataset says", new JsonTree(result.metadata, "Metadata").element),
    lights.peek,
  ];
}

function thoughtCall(call) {
  const where = call.turn == null ? "" : `, turn ${call.turn}`;
  return [
    make("p", { class: "quiet" }, `${call.name ?? "no tool named"} (${call.format}${where}): not made, and no score counts it.`),
    make("div", { class: "text" }, clipped(call.raw, PROMPT)),
  ];
}

function readWith(result) {
  const why = EXTRACTOR_WHY[result.span_extractor_by];
  return make("p", { class: "quiet" }, `Read with ${result.span_extractor}${why ? ` (${why})` : ""}.`);
}

function folded(title, ...parts) {
  return make("details", { class: "folded" }, make("summary", {}, title), parts);
}

function chip(text, state) {
  return make("li", { class: `chip ${state}` }, `${SIGNS[state] ?? ""} ${text}`.trim());
}

function scoresView(scores, facts) {
  const verdicts = {
    "valid arguments": scores.json_args_valid, "multi-call parity": scores.multi_call_parity_ok,
    "recovered from the error": scores.recovered, "negative control": scores.negative_control_ok,
    "control stayed clean": scores.controls_with_integration === null ? null : scores.controls_with_integration === 0,
    "asked back": scores.clarify_ok, locale: scores.locale_probe_ok, privacy: scores.privacy_ok,
    checks: scores.checks_ok ?? null,
    "as it was observed": scores.changes ? !scores.changes.length : null,
  };
  const numbers = scores.kind !== "eligible" ? [] : [["lax", scores.lax], ...(scores.strict_keys ? [["strict", scores.strict]] : [])].map(([name, part]) =>
    make("div", { class: "score" }, make("dt", {}, `F1 ${name}`), make("dd", {}, threeDigits(part.f1)),
      make("dd", { class: "quiet" }, `precision ${part.grounded} of ${scores.spans_counted}, recall ${part.found} of ${scores.facts_required} ${scores.recall_kind === "facts" ? "facts" : "by presence"}`)));
  if (scores.call_f1 !== null) {
    numbers.push(make("div", { class: "score" }, make("dt", {}, "call F1"), make("dd", {}, threeDigits(scores.call_f1)),
      make("dd", { class: "quiet" }, `${scores.calls.matched} of ${scores.calls.expected} expected, ${scores.calls.observed} made`)));
  }
  const differences = scores.calls.differences;
  // Where the dataset expects nothing of the calls, none of them is one too many.
  const listed = scores.kind === "unclassified" ? [] : [["missing", differences.missing], ["extra", differences.extra], ["differs", differences.differing]]
    .flatMap(([word, calls]) => calls.map((call) => make("li", {}, make("b", {}, `${word}: `), make("code", {}, clipped(call, 400)))));
  if (differences.reordered && scores.kind !== "unclassified") listed.push(make("li", {}, "the calls came in another order"));
  for (const at of scores.missing_facts ?? []) {
    if (at < facts.length) listed.push(make("li", {}, make("b", {}, "missing fact: "), make("code", {}, clipped(JSON.stringify(facts[at]), 400))));
  }
  for (const change of scores.changes ?? []) listed.push(make("li", {}, make("b", {}, "changed: "), make("code", {}, clipped(change, 400))));
  return [
    make("dl", { class: "scores" }, numbers),
    make("ul", { class: "chips", "aria-label": "Checks" }, Object.entries(verdicts)
      .filter(([, verdict]) => verdict !== null).map(([name, verdict]) => chip(name, verdict ? "good" : "bad"))),
    listed.length ? make("ul", { class: "differences" }, listed) : null,
    checksView(scores.checks ?? []),
    measuresView(scores.more ?? {}),
  ];
}

// What the scorers of plug-ins say.
function measuresView(more) {
  const shown = Object.entries(more).map(([name, value]) =>
    make("div", { class: "score" }, make("dt", {}, name), make("dd", {}, measureText(value))));
  return shown.length ? make("dl", { class: "scores measures", "aria-label": "Measures of plug-ins" }, shown) : null;
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
  return [make("h4", {}, "Privacy"), make("ul", {}, found.map((text) => make("li", {}, clipped(text, 400))))];
}

function message(role, body, kind = role) {
  return make("div", { class: `message ${kind}` }, make("h4", { class: "role" }, role), body);
}

function promptView(prompt, trees) {
  if (typeof prompt === "string") return message("user", make("div", { class: "text" }, clipped(prompt, PROMPT)));
  const known = new Set(["system", "user", "assistant", "tool"]);
  return prompt.map((one, at) => {
    const role = known.has(one.role) ? one.role : "message";
    const calls = one.tool_calls ? new JsonTree(one.tool_calls, "Calls in the prompt").element : null;
    if (role === "tool") {
      const tree = new JsonTree(textOf(one.content), "Result in the prompt", `/messages/${at}`);
      trees.set(-1, [...(trees.get(-1) ?? []), tree]);
      return message("tool, in the prompt", tree.element, "tool");
    }
    const text = textOf(one.content);
    const body = make("div", { class: "text" }, clipped(text, PROMPT));
    const shut = role === "system" && text.length > LONG_SYSTEM;
    return message(role, [shut ? folded(`${text.length.toLocaleString("en")} characters`, body) : body, calls], role);
  });
}

function textOf(content) {
  if (typeof content === "string") return content;
  if (!Array.isArray(content)) return content === null || content === undefined ? "" : JSON.stringify(content);
  return content.map((part) => (typeof part === "string" ? part : part?.text ?? `[${part?.type ?? "part"}]`)).join("\n");
}

function turnsView(result, answer, trees) {
  const calls = result.tool_trace.map((entry, at) => ({ entry, at }));
  // A browser cannot draw every leaf of thousands of results: each has a button for the rest.
  const room = Math.min(800, Math.max(3, Math.floor(ALL_NODES / Math.max(1, calls.length))));
  const shown = (wanted) => wanted.map(({ entry, at }) => callView(entry, at, trees, room));
  const byTurn = new Map();
  for (const one of calls) {
    if (!byTurn.has(one.entry.turn)) byTurn.set(one.entry.turn, []);
    byTurn.get(one.entry.turn).push(one);
  }
  if (!result.turns) return [shown(calls), message("answer", answer.part(0, answer.length), "assistant")];
  const parts = result.turns.flatMap((range, at) => {
    const turn = at + 1;
    const text = range.end > range.start
      ? message(`assistant, turn ${turn}`, answer.part(range.start, range.end), "assistant") : null;
    const said = result.said.filter((one) => one.turn === turn)
      .map((one) => message("user", make("div", { class: "text" }, clipped(one.text, PROMPT))));
    return [text, shown(byTurn.get(turn) ?? []), said];
  });
  const elsewhere = calls.filter(({ entry }) => !(entry.turn >= 1 && entry.turn <= result.turns.length));
  const silent = answer.length ? null : make("p", { class: "empty" }, "The model answered with no text.");
  return [parts, shown(elsewhere), silent];
}

function callView(entry, at, trees, room) {
  const state = CALL_STATES[entry.status] ?? "quiet";
  const problems = entry.schema_errors?.length ? entry.schema_errors : entry.reason ? [entry.reason] : [];
  return make("div", { class: "message call" },
    make("h4", { class: "role" }, `call ${at} `, make("code", {}, entry.name ?? "(no name)"),
      make("span", { class: `badge ${state}` }, `${SIGNS[state]} ${entry.status.replaceAll("_", " ")}`)),
    new JsonTree(entry.arguments ?? null, `Arguments of call ${at}`).element,
    problems.map((text) => make("p", { class: "problem" }, clipped(text, 600))),
    ledgerView(entry, state !== "good"),
    resultView(entry, at, trees, room));
}

function ledgerView(entry, open) {
  const valid = entry.schema_errors === null || entry.schema_errors === undefined ? "not checked"
    : entry.schema_errors.length ? entry.schema_errors.join("; ") : "the arguments fit";
  const rows = {
    "as written": entry.raw ?? "not recorded",
    "read strictly": entry.status === "malformed" ? `no: ${entry.reason ?? "malformed"}` : "yes",
    repaired: entry.repaired ? `${entry.repaired.name} ${JSON.stringify(entry.repaired.arguments)} (shown, never scored)` : "not needed",
    schema: valid,
    format: entry.format ?? "native",
    "looked up as": entry.key_normalized ? JSON.stringify(entry.key_normalized) : null,
  };
  if (entry.status === "malformed" && !entry.repaired) rows.repaired = "not possible";
  const details = folded("Ledger", make("dl", { class: "pins" }, Object.entries(rows)
    .filter(([, text]) => text !== null).map(([name, text]) => [make("dt", {}, name), make("dd", {}, clipped(text, 1200))])));
  details.open = open;
  return details;
}

function resultView(entry, at, trees, room) {
  const served = entry.status === "ok" || entry.status === "error";
  const origin = ORIGINS[entry.served_by] ?? entry.served_by ?? (NOT_FOUND[entry.status] ?? "nothing was served");
  const has = entry.result !== null && entry.result !== undefined;
  if (!served && !has) return make("p", { class: "quiet" }, origin);
  const tree = new JsonTree(entry.result ?? null, `Result of call ${at}`, "", room);
  if (served) trees.set(at, [tree]);
  return make("div", { class: "result" }, make("p", { class: "quiet" }, `result · ${origin}`), tree.element);
}

// A case of the probe: what was written, one call, valid or not. What only this side wrote is marked.
function caseView(result) {
  const written = result.written ?? [];
  return [
    make("ul", { class: "chips" }, chip(result.valid ? "valid call" : "no valid call", result.valid ? "good" : "bad"),
      result.format ? chip(`written as ${result.format}`, "quiet") : null,
      result.ended === false ? chip("never ended", "warn") : null),
    result.reason ? make("p", { class: "problem" }, clipped(result.reason, 1200)) : null,
    make("div", { class: "message assistant" }, make("h4", { class: "role" }, "as written"),
      make("div", { class: "text mono" }, written.length
        ? written.map(([text, differs]) => (differs ? make("mark", { class: "differs" }, text) : text))
        : make("span", { class: "quiet" }, "(no text)"))),
    result.call ? make("div", { class: "message call" }, make("h4", { class: "role" }, make("code", {}, result.call.name)), new JsonTree(result.call.arguments, "Arguments").element) : null,
  ];
}

function changesView(changes) {
  if (!changes?.length) return null;
  return make("section", { "aria-label": "Arguments that changed" }, make("h4", {}, "Arguments that changed"),
    make("ul", { class: "differences" }, changes.map((text) => make("li", {}, make("code", {}, text)))));
}
