// Elements made from data. Text is always a text node: no function here reads markup.

export function el(tag, attributes, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name in element && name !== "list") element[name] = value;
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined));
  return element;
}

export function option(value, label) {
  return el("option", { value: String(value) }, label);
}

export function labelled(label, control) {
  return el("label", { className: "control" }, el("span", {}, label), control);
}

export function swatch(colour) {
  const square = el("span", { className: "swatch", ariaHidden: "true" });
  square.style.background = colour;
  return square;
}

// A word of the trade, explained where it is pointed at or reached with the keyboard.
export function term(label, meaning) {
  if (!meaning) return el("span", {}, label);
  return el("span", { className: "term", tabIndex: 0, "data-meaning": meaning }, label);
}

// Text whose symbols, where they first occur, are explained; meanings: {symbol: explanation}.
export function withTerms(text, meanings) {
  const longest = Object.keys(meanings).sort((a, b) => b.length - a.length);
  if (!longest.length) return [text];
  const escaped = longest.map((symbol) => symbol.replace(/[\\^$.*+?()[\]{}|]/g, "\\$&"));
  const symbols = new RegExp(`(?<![\\p{L}\\p{N}_^'’-])(${escaped.join("|")})(?![\\p{L}\\p{M}\\p{N}_^*])`, "gu");
  const seen = new Set();
  // A captured separator stands at every odd place.
  return text.split(symbols).map((part, place) => {
    if (place % 2 === 0 || seen.has(part)) return part;
    seen.add(part);
    return term(part, meanings[part]);
  });
}

const tip = () => document.getElementById("tip");

export function showTip(x, y, ...children) {
  const box = tip();
  box.replaceChildren(...children);
  box.hidden = false;
  const { offsetWidth: width, offsetHeight: height } = box;
  const room = document.documentElement;
  const left = x + 14 + width > room.clientWidth ? x - width - 10 : x + 14;
  const top = y + 14 + height > room.clientHeight ? y - height - 10 : y + 14;
  box.style.left = `${Math.max(4, left)}px`;
  box.style.top = `${Math.max(4, top)}px`;
}

export function hideTip() {
  tip().hidden = true;
}

// One pair of listeners serves all terms of the page.
export function explainTerms() {
  const show = (event) => {
    const found = event.target.closest?.("[data-meaning]");
    if (!found) return;
    const box = found.getBoundingClientRect();
    showTip(box.left, box.bottom - 8, found.getAttribute("data-meaning"));
  };
  const hide = (event) => event.target.closest?.("[data-meaning]") && hideTip();
  for (const name of ["pointerover", "focusin"]) document.addEventListener(name, show);
  for (const name of ["pointerout", "focusout"]) document.addEventListener(name, hide);
  document.addEventListener("keydown", (event) => event.key === "Escape" && hideTip());
}
