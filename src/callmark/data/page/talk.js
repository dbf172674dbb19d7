// A conversation in its parts: the question, what was answered, the calls with their results, and
// the course of it all. Each part is made once, and stands where its reader looks for it first.

const PROMPT = 6000;
const QUESTION = 320;
const QUESTION_LINES = 4;
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
const ROLES = new Set(["system", "user", "assistant", "tool"]);

class Talk {
  constructor(result) {
    this.result = result;
    this.trees = new Map(); // of a call: its results; -1 are those in the prompt
    this.lights = new Lights(this.trees, result.tool_trace.map((entry) => entry.name));
    this.answer = new MarkedAnswer(result.model_output, result.scores, this.lights);
    this.messages = typeof result.prompt === "string" ? [{ role: "user", content: result.prompt }] : result.prompt;
    this.asked = this.messages.findLastIndex((one) => one.role === "user");
    this.places = new Map(); // of a call: its element
    // A browser cannot draw every leaf of thousands of results: each has a button for the rest.
    this.room = Math.min(800, Math.max(3, Math.floor(ALL_NODES / Math.max(1, result.tool_trace.length))));
  }

  question() {
    if (this.asked < 0) return null;
    const text = textOf(this.messages[this.asked].content);
    const start = text.split("\n", QUESTION_LINES).join("\n").length;
    return message("user", make("div", { class: "text" }, clipped(text, Math.min(QUESTION, start))));
  }

  // The turns that have something to read: the last one, and each with a flag.
  get leading() {
    const turns = this.result.turns ?? [{ start: 0, end: this.answer.length }];
    const flags = this.answer.statements.filter((one) => one.tier);
    const told = turns.map((range, at) => ({ ...range, turn: at + 1 })).filter(({ start, end }) => end > start);
    return told.filter(({ start, end }, at) => at === told.length - 1 || flags.some((one) => one.start < end && one.end > start));
  }

  answers() {
    const turns = this.leading;
    if (!turns.length) {
      const lost = Boolean(this.result.error); // an answer that never came is none of the model's
      return make("p", { class: "empty" }, lost ? "There is no answer." : "The model answered with no text.");
    }
    return turns.map(({ start, end, turn }) =>
      message(this.result.turns && turns.length > 1 ? `answer, turn ${turn}` : "answer", this.answer.part(start, end), "assistant"));
  }

  // What the answer could rest on: the results, in a column beside it.
  evidence(skip = new Set()) {
    const given = this.messages.flatMap((one, at) => (one.role === "tool" ? [this.givenResult(one, at)] : []));
    const calls = this.result.tool_trace.flatMap((entry, at) => (skip.has(at) ? [] : [this.call(entry, at)]));
    const none = given.length + calls.length + skip.size ? null : make("p", { class: "empty" }, "No tool was called.");
    return make("section", { class: "beside", tabindex: "0", "aria-label": "What the tools returned" },
      make("h3", {}, "What the tools returned"), given, calls, none);
  }

  givenResult(one, at) {
    const tree = new JsonTree(textOf(one.content), "Result in the prompt", `/messages/${at}`);
    this.trees.set(-1, [...(this.trees.get(-1) ?? []), tree]);
    return message("tool, in the prompt", tree.element, "tool");
  }

  call(entry, at) {
    const state = CALL_STATES[entry.status] ?? "quiet";
    const problems = entry.schema_errors?.length ? entry.schema_errors : entry.reason ? [entry.reason] : [];
    const element = make("div", { class: "message call", tabindex: "-1" },
      make("h4", { class: "role" }, `call ${at} `, make("code", {}, entry.name ?? "(no name)"),
        make("span", { class: `badge ${state}` }, `${SIGNS[state]} ${entry.status.replaceAll("_", " ")}`)),
      new JsonTree(entry.arguments ?? null, `Arguments of call ${at}`).element,
      problems.map((text) => make("p", { class: "problem" }, clipped(text, 600))),
      this.served(entry, at),
      ledgerView(entry, state !== "good"));
    this.places.set(at, element);
    return element;
  }

  served(entry, at) {
    const served = entry.status === "ok" || entry.status === "error";
    const origin = ORIGINS[entry.served_by] ?? entry.served_by ?? (NOT_FOUND[entry.status] ?? "nothing was served");
    const has = entry.result !== null && entry.result !== undefined;
    if (!served && !has) return make("p", { class: "quiet" }, origin);
    const tree = new JsonTree(entry.result ?? null, `Result of call ${at}`, "", this.room);
    if (served) this.trees.set(at, [tree]);
    return make("div", { class: "result" }, make("p", { class: "quiet" }, `result · ${origin}`), tree.element);
  }

  conversation() {
    const turns = this.result.turns;
    const course = [...this.messages.map((one, at) => this.given(one, at))];
    if (turns) turns.forEach((range, at) => { course.push(...this.turn(range, at + 1)); });
    else course.push(...this.calls(() => true), this.pointed("answer"));
    if (turns) course.push(...this.calls(({ turn }) => !(turn >= 1 && turn <= turns.length)));
    return make("section", { class: "talk", "aria-label": "Course of the conversation" }, make("h3", {}, "Conversation"), course);
  }

  turn(range, turn) {
    const shown = this.leading.some((one) => one.turn === turn);
    const text = range.end <= range.start ? null : shown ? this.pointed(`assistant, turn ${turn}`)
      : message(`assistant, turn ${turn}`, this.answer.part(range.start, range.end), "assistant");
    const said = this.result.said.filter((one) => one.turn === turn)
      .map((one) => message("user", make("div", { class: "text" }, clipped(one.text, PROMPT))));
    return [text, ...this.calls((entry) => entry.turn === turn), ...said];
  }

  pointed(role) {
    return make("p", { class: "pointed" }, make("b", {}, role), make("span", { class: "quiet" }, " · above"));
  }

  // A call in the course of things is a line that leads to it.
  calls(isWanted) {
    return this.result.tool_trace.flatMap((entry, at) => {
      if (!isWanted(entry)) return [];
      const state = CALL_STATES[entry.status] ?? "quiet";
      const show = () => {
        const place = this.places.get(at);
        place?.scrollIntoView({ block: "nearest" });
        place?.focus();
      };
      return [make("p", { class: "pointed" }, button(`call ${at}`, show, { class: "link" }), " ",
        make("code", {}, cut(`${entry.name ?? "(no name)"} ${JSON.stringify(entry.arguments ?? null)}`)), " ",
        make("span", { class: `badge ${state}` }, `${SIGNS[state]} ${entry.status.replaceAll("_", " ")}`))];
    });
  }

  given(one, at) {
    if (at === this.asked) return this.pointed("user");
    const role = ROLES.has(one.role) ? one.role : "message";
    if (role === "tool") return make("p", { class: "pointed" }, make("b", {}, "tool, in the prompt"), make("span", { class: "quiet" }, " · among the results"));
    const calls = one.tool_calls ? new JsonTree(one.tool_calls, "Calls in the prompt").element : null;
    const text = textOf(one.content);
    const body = make("div", { class: "text" }, clipped(text, PROMPT));
    const shut = role === "system" && text.length > LONG_SYSTEM;
    return message(role, [shut ? folded(`${text.length.toLocaleString("en")} characters`, body) : body, calls], role);
  }

  more() {
    const { reasoning, thought_calls: thought } = this.result;
    return [
      reasoning ? folded("Reasoning", make("div", { class: "text" }, clipped(reasoning, PROMPT))) : null,
      thought ? folded("Calls that it only thought of", thought.map(thoughtCall)) : null,
    ];
  }

  dataset() {
    return folded("What the dataset says", new JsonTree(this.result.metadata, "Metadata").element);
  }
}

function message(role, body, kind = role) {
  return make("div", { class: `message ${kind}` }, make("h4", { class: "role" }, role), body);
}

function textOf(content) {
  if (typeof content === "string") return content;
  if (!Array.isArray(content)) return content === null || content === undefined ? "" : JSON.stringify(content);
  return content.map((part) => (typeof part === "string" ? part : part?.text ?? `[${part?.type ?? "part"}]`)).join("\n");
}

function thoughtCall(call) {
  const where = call.turn == null ? "" : `, turn ${call.turn}`;
  return [
    make("p", { class: "quiet" }, `${call.name ?? "no tool named"} (${call.format}${where}): not made, and no score counts it.`),
    make("div", { class: "text" }, clipped(call.raw, PROMPT)),
  ];
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
  const details = folded("How the call was read", make("dl", { class: "pins" }, Object.entries(rows)
    .filter(([, text]) => text !== null).map(([name, text]) => [make("dt", {}, name), make("dd", {}, clipped(text, 1200))])));
  details.open = open;
  return details;
}
