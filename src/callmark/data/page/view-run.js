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
}

openRun(servedSource(location.pathname)).catch((error) => instead(error.message, "alert"));
