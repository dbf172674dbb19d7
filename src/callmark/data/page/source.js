// Where the page takes its data from. A source is an object with three functions:
//
//   head()       a promise of the top of the page: verdict, tables, plots, fingerprints
//   index()      a promise of the index, in columns: {ids, trials, texts, at, facets, numbers}
//   sample(row)  a promise of one row of the index in full: {sides: [{label, result}]},
//                or of null where it cannot be had
//
// Below is the one that reads the file that the page stands in. A server gives the same page
// another one: it loads these scripts with its own `start.js`, which calls `start(source)`.

function embeddedSource() {
  const whole = new Promise((resolve) => {
    if (document.readyState === "loading") {
      document.addEventListener("DOMContentLoaded", resolve, { once: true });
    } else resolve(null);
  });
  /** @type {any} */
  let index = null;
  /** @type {HTMLScriptElement[]} */
  let chunks = [];
  const parsed = new Map();

  function chunkOf(place) {
    let low = 0;
    let high = chunks.length - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (Number(chunks[middle].dataset.first) <= place) low = middle;
      else high = middle - 1;
    }
    return low;
  }

  async function ready() {
    await whole;
    index ??= JSON.parse(byId("index").textContent);
    if (!chunks.length) chunks = [.../** @type {NodeListOf<HTMLScriptElement>} */ (document.querySelectorAll("script.chunk"))];
    return index;
  }

  return {
    head: async () => {
      const timing = document.getElementById("timing"); // what a clock measured stands apart
      return { ...JSON.parse(byId("head").textContent), timing: timing && JSON.parse(timing.textContent) };
    },
    index: ready,
    sample: async (row) => {
      const place = (await ready()).at[row];
      if (place < 0) return null;
      const number = chunkOf(place);
      if (!parsed.has(number)) {
        if (parsed.size > 8) parsed.clear();
        parsed.set(number, parseExactly(chunks[number].textContent));
      }
      return parsed.get(number)[place - Number(chunks[number].dataset.first)];
    },
  };
}
