// A source that asks the server which serves this page.

async function ask(path, options = {}) {
  let answer;
  try {
    answer = await fetch(path, { cache: "no-store", redirect: "error", ...options });
  } catch {
    throw new Error("The viewer does not answer any more. Start it again: callmark view");
  }
  const text = await answer.text();
  if (!answer.ok) throw new Error(text.trim());
  return text;
}

function sampleFrom(run, query) {
  return ask(`${run}/sample?${new URLSearchParams(query)}`).then(parseExactly);
}

function servedSource(run) {
  /** @type {any} */
  let index = null;
  const head = async (part) => ({ ...JSON.parse(await ask(`${run}/${part}`)), about: "Served by `callmark view` on this machine." });
  return {
    verdict: () => head("verdict"),
    head: () => head("head"),
    index: async () => (index ??= JSON.parse(await ask(`${run}/index`))),
    sample: (row) => sampleFrom(run, { at: index.at[row] }),
    named: (id, trial) => sampleFrom(run, { s: id, t: trial }),
  };
}

function instead(text, role) {
  byId("overview").replaceChildren(make("p", { class: "empty", role }, text));
}

function pause(milliseconds) {
  return new Promise((resolve) => setTimeout(resolve, milliseconds));
}
