// Vega-Lite charts. The library is part of the page, asleep until a view needs it; its expressions
// are interpreted, because the page's policy forbids making code from text.

import { hideTip, el, showTip } from "./dom.js";
import { ink, isDark } from "./colour.js";
import { number, short } from "./text.js";

function awakened() {
  if (window.vegaEmbed) return true;
  const text = document.getElementById("vega").textContent;
  if (!text) return false;
  const script = document.createElement("script");
  script.textContent = text;
  document.head.append(script);
  return Boolean(window.vegaEmbed);
}

function theme() {
  const text = isDark() ? "#d6d6dd" : "#222222";
  const line = isDark() ? "#6a6a75" : "#8a8a92";
  const font = "system-ui, 'Liberation Sans', Arial, sans-serif";
  return {
    background: "transparent",
    font,
    view: { stroke: null },
    axis: { labelColor: text, titleColor: text, domainColor: line, tickColor: line, grid: false, titleFontWeight: "normal", labelFontSize: 11, titleFontSize: 12 },
    legend: { labelColor: text, titleColor: text, labelFontSize: 12, labelLimit: 0, layout: { bottom: { anchor: "start", direction: "vertical" } } },
    title: { color: text, anchor: "start", fontSize: 13 },
    text: { color: text },
  };
}

// Draw into an element; resolves to the view, or to null where charts cannot be drawn.
export async function chart(element, spec, describe) {
  if (!awakened()) {
    element.replaceChildren(el("p", { className: "notice" }, "Charts need vl-convert-python when the report is made."));
    return null;
  }
  const embedded = await window.vegaEmbed(element, { ...spec, config: theme() }, {
    actions: false,
    ast: true,
    defaultStyle: false,
    renderer: "canvas",
    // Nothing is to be loaded: data is always inside the specification.
    loader: { load: () => Promise.reject(new Error("nothing is loaded")) },
    tooltip: (handler, event, item, value) => {
      if (value) showTip(event.clientX, event.clientY, ...describe(value));
      else hideTip();
    },
  });
  return embedded.view;
}

export function facts(pairs) {
  return Object.entries(pairs).map(([name, value]) =>
    el("div", {}, `${name}: `, el("bdi", {}, typeof value === "number" ? number(value) : short(String(value).replace(/\u2060$/, ""), 60))),
  );
}

// Curves over training steps with the current one marked; rows are {step, value, series}.
export function curveSpec(rows, series, now) {
  const ticks = [0, 1, 10, 100, 1000, 10000, 100000, 1000000];
  const x = { field: "step", type: "quantitative", title: "training step", scale: { type: "symlog", constant: 10 }, axis: { values: ticks, format: ",d" } };
  return {
    $schema: "https://vega.github.io/schema/vega-lite/v6.json",
    data: { name: "rows", values: rows },
    width: "container",
    height: 190,
    params: [{ name: "now", value: now }],
    layer: [
      {
        mark: { type: "line", strokeWidth: 2, point: { size: 22, filled: true }, tooltip: true },
        encoding: {
          x,
          y: { field: "value", type: "quantitative", title: "percent", scale: { domain: [0, 100] } },
          color: {
            field: "series",
            type: "nominal",
            scale: { domain: series.map((each) => each.name), range: series.map((each) => each.colour) },
            legend: { title: null, orient: "top", symbolType: "stroke", columns: window.innerWidth < 640 ? 1 : 3 },
          },
          tooltip: [{ field: "series" }, { field: "step" }, { field: "value" }],
        },
      },
      {
        data: { values: [{}] },
        transform: [{ calculate: "now", as: "step" }],
        mark: { type: "rule", strokeDash: [4, 3], strokeWidth: 1.5, color: isDark() ? "#d6d6dd" : "#333333" },
        encoding: { x },
      },
    ],
  };
}

// Vega keeps groups in plain objects: a name that every object has gets a mark that cannot be seen.
function named(text) {
  return text in Object.prototype ? `${text}\u2060` : text;
}

// Points with a label, a group and two coordinates; those that are searched for are named.
export function pointSpec(plane, colours) {
  const rows = plane.points.map(([label, group, x, y], index) => ({ label: named(short(label, 40)), group: named(String(group)), x, y, index }));
  const tints = ["#0072B2", "#DC3A12", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#6B1A28", "#8FAF62", "#5A5DF8", "#8A5A00"];
  const labels = [...new Set(rows.map((row) => row.label))];
  const groups = [...new Set(rows.map((row) => row.group))];
  const byLabel = !plane.path && groups.length > 0 && labels.length <= 12;
  const names = byLabel ? labels : groups;
  // A word and its translation have one colour.
  const known = names.map((name) => colours.named[name]);
  const free = tints.filter((tint) => !known.includes(tint));
  let next = 0;
  const palette = known.map((colour) => ink(colour ?? free[next++ % free.length]));
  const columns = window.innerWidth < 640 ? 3 : 6;
  const field = byLabel ? "label" : "group";
  const found = "find != '' && indexof(lower(datum.label), find) >= 0";
  const sought = `find == '' || (${found})`;
  const x = { field: "x", type: "quantitative", title: plane.axes[0], scale: { zero: false } };
  const y = { field: "y", type: "quantitative", title: plane.axes[1], scale: { zero: false } };
  const color = { field, type: "nominal", scale: { domain: names, range: palette }, legend: names.length > 1 ? { title: null, orient: "bottom", columns } : null };
  const path = { mark: { type: "line", strokeWidth: 1.2, opacity: 0.5 }, encoding: { x, y, color, detail: { field: "group" }, order: { field: "index" } } };
  const few = rows.length <= 40 && plane.path;
  return {
    $schema: "https://vega.github.io/schema/vega-lite/v6.json",
    data: { name: "rows", values: rows },
    width: "container",
    height: 300,
    params: [{ name: "find", value: "" }],
    layer: [
      ...(plane.path ? [path] : []),
      {
        mark: { type: "point", filled: true, size: rows.length > 400 ? 18 : 46, tooltip: true },
        encoding: {
          x,
          y,
          color,
          shape: byLabel && groups.length > 1 ? { field: "group", type: "nominal", legend: { title: null, orient: "bottom", columns, symbolFillColor: isDark() ? "#d6d6dd" : "#222222" } } : undefined,
          opacity: { condition: { test: sought, value: 0.85 }, value: 0.08 },
          tooltip: [{ field: "label" }, { field: "group" }, { field: "x" }, { field: "y" }],
        },
      },
      {
        mark: { type: "text", dx: 6, dy: -6, align: "left", fontSize: 11, color: isDark() ? "#ffffff" : "#111111" },
        encoding: { x, y, text: few ? { field: "label" } : { condition: { test: found, field: "label" }, value: "" } },
      },
    ],
  };
}
