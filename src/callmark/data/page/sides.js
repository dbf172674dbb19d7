// The same sample of two runs: what differs stands side by side, what is equal stands there once.

const LEAST_KEPT = 0.3; // answers that share fewer of their words are two texts, not one that changed
const MOST_PAIRS = 250000; // the table of two texts has a field for each pair of their words
const WORDS_OF = /[\p{L}\p{N}_]+|\s+|[^\p{L}\p{N}_\s]/gu;

function twoSides(sample) {
  if (sample.sides[0].result.prompt === undefined) {
    return make("div", { class: "sides" }, sample.sides.map((side) => sideSection(side.label, caseView(side.result))));
  }
  const talks = sample.sides.map((side) => new Talk(side.result));
  const [a, b] = talks;
  [a.answer.changed, b.answer.changed] = changedBytes(a.result.model_output, b.result.model_output);
  const equal = equalCalls(a.result.tool_trace, b.result.tool_trace);
  const sameQuestion = JSON.stringify(a.result.prompt) === JSON.stringify(b.result.prompt);
  const shared = sharedParts(talks, equal);
  const sameDataset = JSON.stringify(a.result.metadata) === JSON.stringify(b.result.metadata);
  return [
    sameQuestion ? a.question() : null,
    movedScores(sample.sides.map((side) => side.result.scores)),
    a.result.model_output === b.result.model_output ? make("p", { class: "quiet same-answer" }, "Both gave the same answer, word for word.")
      : a.answer.changed.length + b.answer.changed.length ? null : make("p", { class: "quiet same-answer" }, "The two answers have little in common."),
    make("div", { class: "sides" }, sample.sides.map((side, at) =>
      sideSection(side.label, sideParts(talks[at], equal, sameQuestion)))),
    legendOfMarks(talks.map((talk) => talk.answer)),
    shared,
    make("div", { class: "sides more" }, talks.map((talk, at) =>
      make("div", {}, folded(`The whole conversation, ${sample.sides[at].label}`, talk.conversation()), talk.more(), sameDataset ? null : talk.dataset()))),
    sameDataset ? a.dataset() : null,
  ];
}

function sideSection(label, parts) {
  return make("section", { class: "one", "aria-label": label }, make("h3", { class: "side-name" }, label), parts);
}

function sideParts(talk, equal, sameQuestion) {
  const { result, answer } = talk;
  const own = result.tool_trace.length > equal.size || talk.messages.some((one) => one.role === "tool");
  return [
    result.error ? make("p", { class: "card bad" }, `Not scored: ${result.error}`) : null,
    sameQuestion ? null : talk.question(),
    talk.answers(),
    result.scores ? [answer.flags(), listOf(differencesOf(result.scores, result.metadata?.required_facts ?? [])),
      checksView(result.scores.checks ?? []), problemsView(result.scores)] : null,
    own ? talk.evidence(equal) : result.tool_trace.length ? null : make("p", { class: "quiet" }, "No tool was called."),
    talk.lights.peek,
  ];
}

function listOf(listed) {
  return listed.length ? make("ul", { class: "differences" }, listed) : null;
}

// The places of calls that are the same on both sides, results and all.
function equalCalls(a, b) {
  const keyOf = ({ name, arguments: given, result, status, served_by: by }) => JSON.stringify([name, given, result, status, by]);
  const found = new Set();
  for (let at = 0; at < Math.min(a.length, b.length); at += 1) if (keyOf(a[at]) === keyOf(b[at])) found.add(at);
  return found;
}

// Drawn once; a value of either side lights up in it.
function sharedParts([a, b], equal) {
  if (!equal.size) return null;
  const calls = [...equal].map((at) => a.call(a.result.tool_trace[at], at));
  for (const at of equal) {
    if (a.trees.has(at)) b.trees.set(at, a.trees.get(at));
    b.places.set(at, a.places.get(at));
  }
  return make("details", { class: "folded shared" },
    make("summary", {}, `The same on both sides: ${plural(equal.size, "call")} with ${equal.size === 1 ? "its result" : "their results"}`), calls);
}

// Which scores are others, and that the rest are not.
function movedScores([a, b]) {
  if (!a || !b) return null;
  const table = (scores) => {
    const found = new Map();
    for (const [name, number] of numbersOf(scores)) found.set(name, number);
    for (const [name, verdict] of checkedOf(scores)) found.set(name, verdict ? "✓" : "✗");
    return found;
  };
  const [before, after] = [table(a), table(b)];
  const names = [...new Set([...before.keys(), ...after.keys()])];
  const moved = names.filter((name) => before.get(name) !== after.get(name));
  const same = names.filter((name) => !moved.includes(name)).map((name) => `${name} ${before.get(name)}`);
  const rows = moved.map((name) => make("tr", {}, make("th", { scope: "row" }, name),
    make("td", { class: "right" }, before.get(name) ?? "–"), make("td", { class: "right" }, after.get(name) ?? "–")));
  return make("div", { class: "moved" },
    rows.length ? make("table", {}, make("thead", {}, make("tr", {}, ["what changed", "A", "B"].map((name, at) =>
      make("th", { scope: "col", class: at ? "right" : null }, name)))), make("tbody", {}, rows)) : make("p", {}, "No score changed."),
    same.length ? make("p", { class: "quiet" }, `The same on both sides: ${same.join(", ")}.`) : null);
}

// The bytes of either text that the other has not, word by word, in ranges.
function changedBytes(left, right) {
  if (left === right) return [[], []];
  const [a, b] = [left.match(WORDS_OF) ?? [], right.match(WORDS_OF) ?? []];
  const most = Math.min(a.length, b.length);
  let head = 0;
  while (head < most && a[head] === b[head]) head += 1;
  let tail = 0;
  while (tail < most - head && a[a.length - 1 - tail] === b[b.length - 1 - tail]) tail += 1;
  const [keptA, keptB] = commonWords(a.slice(head, a.length - tail), b.slice(head, b.length - tail));
  const isWord = (word) => /[\p{L}\p{N}]/u.test(word);
  const all = a.filter(isWord).length + b.filter(isWord).length;
  const [keptOfA, keptOfB] = [[a, keptA], [b, keptB]].map(([words, kept]) => words.filter((word, at) => isWord(word) && isKept(words, at, head, tail, kept)).length);
  if (keptOfA + keptOfB < LEAST_KEPT * all) return [[], []];
  return [rangesOf(a, head, tail, keptA), rangesOf(b, head, tail, keptB)];
}

function isKept(words, at, head, tail, kept) {
  return at < head || at >= words.length - tail || kept.has(at - head);
}

// Of two lists of words the places of a longest common part; none where they are too long to tell.
function commonWords(a, b) {
  const kept = [new Set(), new Set()];
  if (!a.length || !b.length || a.length * b.length > MOST_PAIRS) return kept;
  const wide = b.length + 1;
  const best = new Uint16Array((a.length + 1) * wide);
  for (let i = a.length - 1; i >= 0; i -= 1) {
    for (let j = b.length - 1; j >= 0; j -= 1) {
      best[i * wide + j] = a[i] === b[j] ? best[(i + 1) * wide + j + 1] + 1 : Math.max(best[(i + 1) * wide + j], best[i * wide + j + 1]);
    }
  }
  for (let i = 0, j = 0; i < a.length && j < b.length;) {
    if (a[i] === b[j]) {
      kept[0].add(i++);
      kept[1].add(j++);
    } else if (best[(i + 1) * wide + j] >= best[i * wide + j + 1]) i += 1;
    else j += 1;
  }
  return kept;
}

function rangesOf(words, head, tail, kept) {
  const encoder = new TextEncoder();
  const found = [];
  let place = 0;
  const isEqual = (at) => isKept(words, at, head, tail, kept);
  words.forEach((word, at) => {
    const size = encoder.encode(word).length;
    // Blanks between two changed words have changed with them.
    const isBetween = !word.trim() && at > 0 && at < words.length - 1 && !isEqual(at - 1) && !isEqual(at + 1);
    const isSame = isEqual(at) && !isBetween;
    if (!isSame && found.at(-1)?.end === place) found.at(-1).end = place + size;
    else if (!isSame) found.push({ start: place, end: place + size });
    place += size;
  });
  return found;
}

// A case of the probe: what was written, one call, valid or not. What only this side wrote is marked.
function caseView(result) {
  const written = result.written ?? [];
  return [
    make("ul", { class: "chips" }, chip(result.judged, result.valid ? "good" : "bad"),
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
