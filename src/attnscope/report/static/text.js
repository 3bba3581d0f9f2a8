// Numbers and words as a reader wants them; the terminal rounds in the same way (wording.py).

import { el } from "./dom.js";

// Three digits, or whole from 100 on; a half goes up.
function digits(size) {
  if (size >= 1e6 || size < 1e-4) return size.toExponential(2).replace(/\.?0*e/, "e");
  return size >= 100 ? String(Math.round(size)) : String(Number(size.toPrecision(3)));
}

export function number(value) {
  if (value === null || value === undefined || Number.isNaN(value)) return "–";
  const size = Math.abs(value);
  if (Number.isInteger(value) && size < 1e9) return value.toLocaleString("en").replace("-", "−");
  return ((value < 0 ? "-" : "") + digits(size)).replaceAll("-", "−");
}

// Characters that cannot be seen, or that turn the direction of a line, by their names.
const HIDDEN = /[\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]/gu;
const CONTROL = /[\u0000-\u001f\u007f]/gu;
const LONE = /\p{Surrogate}/gu;

export function visible(word) {
  const name = (character) => `⟨U+${character.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}⟩`;
  const picture = (character) =>
    character === "\u007f" ? "␡" : String.fromCodePoint(0x2400 + character.codePointAt(0));
  return word.replace(LONE, "\ufffd").replace(HIDDEN, name).replace(CONTROL, picture);
}

export function short(word, most = 18) {
  const characters = Array.from(visible(word));
  return characters.length > most ? `${characters.slice(0, most - 1).join("")}…` : characters.join("");
}

// A word on its own: its direction does not reach its neighbours, its whole length is in the title.
export function word(text, most = 40) {
  const shown = short(text, most);
  const whole = visible(text);
  return el("bdi", shown === whole ? {} : { title: whole.slice(0, 400) }, shown);
}

// For canvas, where there is no bdi: first strong isolate … pop.
export function isolated(text) {
  return `\u2068${text}\u2069`;
}

export function plural(count, one, many = `${one}s`) {
  return `${number(count)} ${count === 1 ? one : many}`;
}
