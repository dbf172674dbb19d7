// The only way in which this page makes elements: names and classes are ours, all text is text.

function make(name, attributes = {}, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (value === true) element.setAttribute(key, "");
    else if (value !== false && value !== null && value !== undefined) {
      element.setAttribute(key, value);
    }
  }
  add(element, children);
  return element;
}

function add(element, children) {
  for (const child of children.flat(Infinity)) {
    if (child === null || child === undefined || child === "") continue;
    element.append(child instanceof Node ? child : visible(String(child)));
  }
}

/** An element of the page's own HTML, which has it.
 * @returns {HTMLElement} */
function byId(id) {
  return /** @type {HTMLElement} */ (document.getElementById(id));
}

// Whether a key goes into a field, and is no command.
function isTyped(event) {
  return event.target instanceof Element && event.target.closest("input, select, textarea") !== null;
}

function pressed(element, action) {
  element.addEventListener("click", action);
  element.addEventListener("keydown", (event) => {
    if (event.key === "Enter" || event.key === " ") {
      event.preventDefault();
      action(event);
    }
  });
  return element;
}

// Where there is no room for its columns, a row of this table is a block, and each cell says which
// column it is of.
function stacking(table) {
  const names = [...table.tHead.rows[0].cells].map((cell) => cell.textContent);
  for (const row of table.tBodies[0].rows) {
    for (const cell of row.cells) {
      const name = names[cell.cellIndex];
      if (name && cell.tagName === "TD" && cell.textContent + cell.querySelectorAll("input").length !== "0") cell.dataset.column = name;
    }
  }
  table.classList.add("stacks");
  return table;
}

function button(text, action, attributes = {}) {
  const element = make("button", { type: "button", ...attributes }, text);
  element.addEventListener("click", action);
  return element;
}

// A long text is cut, and can be had piece by piece. Words without an end are cut sooner: a browser
// needs a second to break ten thousand letters into lines.
const PIECE = 50000;
const UNBROKEN = 3000;

function clipped(text, limit) {
  const endless = limit > UNBROKEN && /\S{2000}/.test(text.slice(0, limit));
  const room = endless ? UNBROKEN : limit;
  if (text.length <= room) return [text];
  const rest = button(`show more of ${plural(text.length - room, "character")}`, () => {
    const piece = make("span", { class: "piece" });
    add(piece, clipped(text.slice(room), PIECE));
    rest.replaceWith(piece);
  }, { class: "more" });
  return [text.slice(0, room), rest];
}
