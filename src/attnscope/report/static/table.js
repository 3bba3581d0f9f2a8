// A table that sorts by any column, shows its first rows, and is copied as CSV.

import { el, term } from "./dom.js";

const FIRST = 30;

// columns: {label, meaning, numeric, value(row), cell(row)}; value sorts and is what CSV holds.
export function sortable(columns, rows, { caption, file }) {
  const state = { column: -1, up: true, all: rows.length <= FIRST * 1.5 };
  const body = el("tbody");
  const heads = columns.map((column, index) =>
    el(
      "th",
      { scope: "col", className: column.numeric ? "numeric" : "" },
      el("button", { type: "button", onclick: () => sort(index) }, term(column.label, null)),
      column.meaning ? term("?", column.meaning) : null,
    ),
  );
  const more = el("button", { type: "button", className: "quiet", onclick: () => showAll() });
  const said = el("span", { className: "said", role: "status" });

  function ordered() {
    if (state.column < 0) return rows;
    const { value } = columns[state.column];
    const sign = state.up ? 1 : -1;
    return rows
      .map((row, place) => [value(row), place, row])
      .sort((a, b) => missing(a[0]) - missing(b[0]) || sign * compare(a[0], b[0]) || a[1] - b[1])
      .map((entry) => entry[2]);
  }

  function draw() {
    const shown = state.all ? ordered() : ordered().slice(0, FIRST);
    body.replaceChildren(
      ...shown.map((row) =>
        el("tr", {}, columns.map((column) => el("td", { className: column.numeric ? "numeric" : "" }, column.cell(row)))),
      ),
    );
    heads.forEach((head, index) => {
      head.ariaSort = index === state.column ? (state.up ? "ascending" : "descending") : "none";
    });
    more.hidden = state.all;
    more.textContent = `Show all ${rows.length} rows`;
  }

  function sort(column) {
    state.up = state.column === column ? !state.up : true;
    state.column = column;
    draw();
  }

  function showAll() {
    state.all = true;
    draw();
  }

  async function copy() {
    const done = await copied(csv(columns, ordered()));
    said.textContent = done ? `${rows.length} rows copied.` : "The browser does not allow copying here.";
  }

  draw();
  return el(
    "div",
    { className: "table" },
    el(
      "div",
      { className: "scroll", tabIndex: 0, role: "region", ariaLabel: caption },
      el("table", {}, el("caption", {}, caption), el("thead", {}, el("tr", {}, heads)), body),
    ),
    el(
      "p",
      { className: "tools" },
      more,
      el("button", { type: "button", className: "quiet copy", onclick: copy }, "Copy as CSV"),
      el("button", { type: "button", className: "quiet", onclick: () => download(file, csv(columns, ordered())) }, "Download CSV"),
      said,
    ),
  );
}

// What is not there comes last, whichever way the rest is sorted.
function missing(value) {
  return value === null || value === undefined || value === "";
}

// Numbers by size, words by alphabet.
function compare(a, b) {
  if (typeof a === "number" && typeof b === "number") return a - b;
  return String(a).localeCompare(String(b), "en", { numeric: true });
}

export function csv(columns, rows) {
  const line = (cells) => cells.map(quoted).join(",");
  return [line(columns.map((column) => column.label)), ...rows.map((row) => line(columns.map((column) => column.value(row))))].join("\n");
}

function quoted(value) {
  if (value === null || value === undefined) return "";
  if (typeof value === "number") return String(value);
  // A spreadsheet would take a leading sign for a formula.
  const text = /^[=+\-@\t\r]/.test(value) ? `'${value}` : String(value);
  return /[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

async function copied(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    const area = el("textarea", { value: text, className: "aside" });
    document.body.append(area);
    area.select();
    const done = document.execCommand("copy");
    area.remove();
    return done;
  }
}

export function download(name, text) {
  const link = el("a", { download: name, href: URL.createObjectURL(new Blob([text], { type: "text/csv" })) });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}
