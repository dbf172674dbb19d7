// A finished run: the verdict at once, the samples when the server has read them.

async function openRun(source) {
  instead("Reading the report…", "status");
  const page = new Page(source, await source.verdict());
  page.overview();
  byId("to-samples").textContent = "Samples (reading…)";
  byId("sample").replaceChildren(make("p", { class: "empty", role: "status" }, "Reading the results…"));
  const index = await source.index();
  page.head = await source.head();
  showOverview(byId("overview"), page.head, (pick) => page.pick(pick));
  page.samples(index);
  await judgeObserved(page);
}

// With a dataset to judge, `a` says that what was observed is right, `r` that it is not.
async function judgeObserved(page) {
  const { dataset } = JSON.parse(await ask("../accepting"));
  if (dataset === null) return;
  const keys = `Merely observed. Is it right? a: accept in ${dataset}, r: reject.`;
  const say = (text) => {
    byId("judged")?.remove();
    byId("sample").prepend(make("p", { id: "judged", class: "card", role: "status" }, text));
  };
  const isObserved = (sample) => sample.sides[0].result.scores?.changes !== undefined;
  page.filled = (sample) => {
    if (isObserved(sample)) say(keys);
  };
  page.show(false);
  addEventListener("keydown", async (event) => {
    if (isTyped(event) || event.ctrlKey || event.metaKey || event.altKey || page.row === null) return;
    if (event.key !== "a" && event.key !== "r") return;
    const row = page.row;
    const body = JSON.stringify({ sample_id: page.index.ids[row], right: event.key === "a" });
    const options = { method: "POST", headers: { "Content-Type": "application/json" }, body };
    const told = await ask("../accept", options).then((text) => JSON.parse(text).did, (error) => error.message);
    if (row === page.row) say(told);
  });
}

openRun(servedSource(location.pathname)).catch((error) => instead(error.message, "alert"));
