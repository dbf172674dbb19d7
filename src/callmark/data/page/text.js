// Model output is hostile text. It reaches the page as text only, and characters that steer or
// reorder what is read are written out: \x1b, \u202e. The table is the one of the terminal.

const STEERING =
  /[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\u{e0000}-\u{e007f}]/gu;
const LONE = /\p{Surrogate}/gu;

function escaped(character) {
  const code = character.codePointAt(0);
  const digits = code.toString(16);
  if (code <= 0xff) return "\\x" + digits.padStart(2, "0");
  return code <= 0xffff ? "\\u" + digits.padStart(4, "0") : "\\U" + digits.padStart(8, "0");
}

function visible(text) {
  return text.replace(STEERING, escaped).replace(LONE, "\ufffd");
}

// Offsets of the scores are bytes of UTF-8.
class Bytes {
  constructor(text) {
    this.data = new TextEncoder().encode(text);
    this.decoder = new TextDecoder("utf-8", { ignoreBOM: true });
  }

  slice(start, end) {
    return this.decoder.decode(this.data.subarray(start, end));
  }
}

// A whole number that JavaScript cannot hold keeps its digits.
class BigNumber {
  constructor(source) {
    this.source = source;
  }
}

function parseExactly(text) {
  // The third argument is younger than some browsers.
  const revive = (_, value, /** @type {any} */ context = undefined) =>
    Number.isInteger(value) && !Number.isSafeInteger(value) && context !== undefined
      ? new BigNumber(context.source)
      : value;
  return JSON.parse(text, revive);
}

function plural(count, word) {
  return `${count.toLocaleString("en")} ${word}${count === 1 ? "" : "s"}`;
}

function threeDigits(number) {
  return number === null || number === undefined ? "–" : number.toFixed(3);
}
