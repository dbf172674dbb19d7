// What the scorers of plug-ins say, beside the built-in scores. Only the page of a run that has such
// measures holds this file, so that all other pages stay as they are.
const builtInScores = scoresView;
// @ts-ignore - the one function that a page replaces
scoresView = (scores) => [...builtInScores(scores), measuresView(scores.more ?? {})];

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
