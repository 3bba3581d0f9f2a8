// An audit: the verdict, each question with its figure, sites by heads, and coloured texts.

import { chart, curveSpec, facts } from "./charts.js";
import { el, labelled, option } from "./dom.js";
import { ink, inkChannels } from "./colour.js";
import { number, visible } from "./text.js";

const AUDIT_FOR = "#0072B2";
const AUDIT_AGAINST = "#D55E00";

export class AuditView {
  constructor(root, data) {
    this.root = root;
    this.audits = (data.audits ?? []).map(auditVisible);
    this.chosen = 0;
    this.redraw();
  }

  redraw() {
    const audit = this.audits[this.chosen];
    if (!audit) {
      this.root.replaceChildren(el("p", {}, "There is no audit in these folders."));
      return;
    }
    const parts = [
      this.choice(),
      el("h2", {}, audit.title),
      el("p", { className: "verdict" }, el("strong", {}, audit.sentence)),
      ...audit.notices.map((notice) => el("p", { className: "notice" }, notice)),
      auditFacts(audit.facts),
      auditQuestions(audit.questions),
      auditScores("What each score finds, in parts of what leave-one-out finds", "share", audit.scores),
      auditScores("How often attention's top word is the score's, minus chance", "agreement", audit.agreements),
      auditScores("How often the score's top word is that of IBM Model 1", "agreement", audit.ibm),
      el("div", { className: "maps" }, audit.maps.map(auditMap)),
      auditCurves(audit.curves),
      auditTexts(audit.examples),
    ];
    this.root.replaceChildren(...parts.filter((part) => part !== null));
  }

  choice() {
    if (this.audits.length < 2) return null;
    const select = el("select", {
      onchange: (event) => {
        this.chosen = Number(event.target.value);
        this.redraw();
      },
    });
    select.append(...this.audits.map((audit, index) => option(index, audit.title)));
    select.value = String(this.chosen);
    return labelled("Audit", select);
  }
}

// Every text of an audit, the names of its scores too, with what cannot be seen spelled out.
function auditVisible(value) {
  if (typeof value === "string") return visible(value);
  if (Array.isArray(value)) return value.map(auditVisible);
  if (value === null || typeof value !== "object") return value;
  return Object.fromEntries(Object.entries(value).map(([name, part]) => [visible(name), auditVisible(part)]));
}

function auditFacts(rows) {
  return el("dl", { className: "facts" }, rows.map(([name, value]) => [el("dt", {}, name), el("dd", {}, value)]));
}

function auditInterval(row) {
  if (row.value === null) return "not measured";
  const ends = row.low === null || row.high === null ? "" : ` [${number(row.low)}, ${number(row.high)}]`;
  return `${number(row.value)}${ends}`;
}

function auditTable(caption, heads, rows) {
  return el(
    "table",
    {},
    el("caption", {}, caption),
    el("thead", {}, el("tr", {}, heads.map((head) => el("th", { scope: "col" }, head)))),
    el("tbody", {}, rows.map((row) => el("tr", {}, row.map((cell) => el("td", {}, cell))))),
  );
}

function auditQuestions(rows) {
  return auditTable(
    "Questions",
    ["claim", "verdict", "figure"],
    rows.map((row) => [row.statement, row.verdict, `${row.measured}: ${auditInterval(row)}`]),
  );
}

function auditScores(caption, head, rows) {
  if (!rows.length) return null;
  return auditTable(
    caption,
    ["score", head],
    rows.map((row) => [row.score.replaceAll("_", " "), auditInterval(row)]),
  );
}

function auditShade(cell, share, colour) {
  const [r, g, b] = inkChannels(colour);
  cell.style.background = `rgb(${r} ${g} ${b} / ${(0.85 * Math.min(1, Math.max(0, share))).toFixed(3)})`;
  return cell;
}

function auditMap(matrix) {
  const most = Math.max(...matrix.values.flat().filter((value) => value !== null), 1e-9);
  const row = (name, index) =>
    el(
      "tr",
      {},
      el("th", { scope: "row" }, name),
      matrix.values[index].map((value) =>
        value === null ? el("td", {}, "") : auditShade(el("td", { className: "numeric" }, number(value)), value / most, AUDIT_FOR),
      ),
    );
  return el(
    "table",
    { className: "map" },
    el("caption", {}, `${matrix.name}, site by head`),
    el("thead", {}, el("tr", {}, el("th", {}, ""), matrix.columns.map((name) => el("th", { scope: "col", className: "numeric" }, name)))),
    el("tbody", {}, matrix.rows.map(row)),
  );
}

function auditCurves(all) {
  if (!all.length) return null;
  const steps = [...new Set(all.flatMap((curve) => curve.x))].sort((a, b) => a - b);
  const slider = el("input", { type: "range", min: "0", max: String(steps.length - 1), value: String(steps.length - 1), ariaLabel: "step" });
  const shown = el("p", { role: "status" });
  const target = el("div", { className: "chart" });
  let view = null;
  const at = (curve, step) => (curve.x.includes(step) ? number(curve.y[curve.x.indexOf(step)]) : "–");
  const draw = () => {
    const step = steps[Number(slider.value)];
    const parts = all.map((curve) => `${curve.name} ${at(curve, step)}`);
    shown.replaceChildren(`Step ${step}: ${parts.join("; ")}`);
    view?.signal("now", step).runAsync();
  };
  slider.addEventListener("input", draw);
  draw();
  const percent = (share) => (share === null ? null : 100 * share);
  const points = (curve) => curve.x.map((step, index) => ({ series: curve.name, step, value: percent(curve.y[index]) }));
  const series = all.map((curve) => ({ name: curve.name, colour: ink(curve.colour) }));
  // Once the section is in the page: a chart is as wide as its place.
  Promise.resolve()
    .then(() => chart(target, curveSpec(all.flatMap(points), series, steps[Number(slider.value)]), facts))
    .then((drawn) => {
      view = drawn;
    });
  const table = auditTable(
    "All steps that were kept",
    ["step", ...all.map((curve) => curve.name)],
    steps.map((step) => [String(step), ...all.map((curve) => at(curve, step))]),
  );
  return el("section", {}, el("h3", {}, "How it was learned"), target, slider, shown, table);
}

function auditTexts(examples) {
  if (!examples.length) return null;
  const names = [...new Set(examples.flatMap((example) => Object.keys(example.scores)))];
  return el("section", {}, el("h3", {}, "Texts"), examples.map((example) => auditText(example, names)));
}

function auditText(example, names) {
  const rows = example.outputs.length;
  const row = { t: 0 };
  const lines = el("div", { className: "coloured" });
  const draw = () => lines.replaceChildren(...names.filter((name) => example.scores[name]).map((name) => auditLine(example, name, row.t)));
  draw();
  if (rows < 2) {
    const heading = el("h4", {}, `Text ${example.id}, output ${example.outputs[0] ?? "–"}`);
    return el("div", { className: "example" }, heading, lines);
  }
  const select = el("select", {
    onchange: (event) => {
      row.t = Number(event.target.value);
      draw();
    },
  });
  select.append(...example.outputs.map((word, t) => option(t, word)));
  const heading = el("h4", {}, `Text ${example.id}`);
  return el("div", { className: "example" }, heading, labelled("output word", select), lines);
}

function auditLine(example, name, t) {
  const values = example.scores[name][t] ?? [];
  const most = Math.max(...values.map((value) => Math.abs(value ?? 0)), 1e-9);
  const words = example.inputs.map((word, place) => {
    const value = values[place];
    const span = el("span", { title: value === null || value === undefined ? "" : number(value) }, word);
    return value === null || value === undefined ? span : auditShade(span, Math.abs(value) / most, value < 0 ? AUDIT_AGAINST : AUDIT_FOR);
  });
  return el("p", {}, el("b", {}, `${name.replaceAll("_", " ")}: `), words.flatMap((word, place) => [word, auditGap(example.words, place)]));
}

// Pieces of one word stand together.
function auditGap(words, place) {
  return words[place] >= 0 && words[place] === words[place + 1] ? "" : " ";
}
